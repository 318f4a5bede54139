//! The checks of an answer, in the order and the words of Karmada (`VerifyResourceInterpreterContext`).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::{configuration::API_VERSION, error::CallFailed, request::KIND};
use crate::{
    canonical::{self, Component, ReplicaRequirements},
    dependency,
    operation::{DependentReference, Operation},
};

/// What an answer holds, by operation.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The answer as layers give it.
    Whole(Value),
    /// A patch of the object.
    Patch(Vec<u8>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    response: Option<Response>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    successful: bool,
    #[serde(default)]
    status: Option<Status>,
    #[serde(default, deserialize_with = "base64")]
    patch: Vec<u8>,
    #[serde(default)]
    patch_type: Option<String>,
    #[serde(default)]
    replica_requirements: Option<Value>,
    #[serde(default)]
    replicas: Option<i32>,
    #[serde(default)]
    components: Option<Value>,
    #[serde(default)]
    dependencies: Option<Vec<DependentReference>>,
    #[serde(default)]
    raw_status: Option<Value>,
    #[serde(default)]
    healthy: Option<bool>,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    message: String,
    #[serde(default)]
    code: i64,
}

fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    STANDARD.decode(&text).map_err(|error| de::Error::custom(format_args!("response.patch is no base64: {error}")))
}

/// Reads an answer and checks it.
///
/// # Errors
/// The first thing that breaks the protocol, or the failure that the webhook tells of.
pub(super) fn verify(uid: &str, operation: Operation, body: &[u8]) -> Result<Answer, CallFailed> {
    let context = decoded(body).map_err(CallFailed::Request)?;
    let answer = |text: &str| CallFailed::Answer(text.to_owned());
    let response = context.response.ok_or_else(|| answer("webhook response was absent"))?;
    if response.uid != uid {
        return Err(CallFailed::Answer(format!("expected response.uid {uid:?}, got {:?}", response.uid)));
    }
    if !response.successful {
        let Status { message, code } = response
            .status
            .ok_or_else(|| answer("webhook require response.status when response.successful is false"))?;
        return Err(CallFailed::Unsuccessful { code, message });
    }
    response.of(operation)
}

/// Reads JSON, and YAML as Go does.
fn decoded(body: &[u8]) -> Result<Context, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("the answer is no text: {error}"))?;
    let is_json = text.trim_start().starts_with('{');
    let context: Context = if is_json {
        serde_json::from_str(text).map_err(|error| format!("the answer is no {KIND}: {error}"))?
    } else {
        serde_saphyr::from_str(text).map_err(|error| format!("the answer is no {KIND} in JSON or YAML: {error}"))?
    };
    let Context { api_version, kind, .. } = &context;
    let is_known = (api_version.is_empty() || api_version == API_VERSION) && (kind.is_empty() || kind == KIND);
    if !is_known {
        return Err(format!(
            "no kind {kind:?} is registered for version {api_version:?}: answer a {KIND} of {API_VERSION}"
        ));
    }
    Ok(context)
}

impl Response {
    fn of(self, operation: Operation) -> Result<Answer, CallFailed> {
        let answer = |text: String| CallFailed::Answer(text);
        let missing = |field: &str| answer(format!("webhook returned nil response.{field}"));
        let output = match operation {
            Operation::InterpretReplica => {
                let replicas = self.replicas.ok_or_else(|| missing("replicas"))?;
                let requirements = match self.replica_requirements {
                    Some(value) => requirements(value).map_err(CallFailed::Request)?,
                    None => Value::Null,
                };
                serde_json::json!({ "replica": replicas, "requires": requirements })
            }
            Operation::InterpretComponent => match self.components {
                Some(value) => canonical::read_list::<Component>(value)
                    .and_then(|components| canonical::write(&components))
                    .map_err(CallFailed::Request)?,
                None => Value::Null,
            },
            Operation::InterpretDependency => match self.dependencies {
                Some(dependencies) => {
                    dependency::verify(&dependencies)?;
                    canonical::write(&dependencies).map_err(CallFailed::Request)?
                }
                None => Value::Null,
            },
            Operation::InterpretStatus => {
                // The typing error is Karmada's.
                self.raw_status.ok_or_else(|| answer("webhook returned nill response.rawStatus".into()))?
            }
            Operation::InterpretHealth => self.healthy.ok_or_else(|| missing("healthy"))?.into(),
            Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus | Operation::Prune => {
                return self.checked_patch().map(Answer::Patch).map_err(answer);
            }
        };
        Ok(Answer::Whole(crate::operation::field(operation, output)))
    }

    fn checked_patch(self) -> Result<Vec<u8>, String> {
        match (self.patch_type.as_deref(), self.patch.is_empty()) {
            (None, false) => Err("webhook returned nil response.patchType".into()),
            (Some(_), true) => Err("webhook returned empty response.patch".into()),
            (Some(other), false) if other != "JSONPatch" => {
                Err(format!("webhook returned invalid response.patchType of {other:?}"))
            }
            (None, true) | (Some(_), false) => Ok(self.patch),
        }
    }
}

fn requirements(value: Value) -> Result<Value, String> {
    canonical::read::<ReplicaRequirements>(value).and_then(|requirements| canonical::write(&requirements))
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
