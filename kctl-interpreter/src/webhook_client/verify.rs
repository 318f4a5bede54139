//! The checks of a response, in the order and with the messages of Karmada
//! (`VerifyResourceInterpreterContext` in
//! `pkg/resourceinterpreter/customized/webhook/request/resourceinterpretercontext.go`).

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::{configuration::API_VERSION, error::CallError, request::KIND};
use crate::{
    canonical::{self, Component, ReplicaRequirements},
    dependency,
    operation::{DependentReference, Operation, or_null},
};

/// The content of a valid response.
#[derive(Debug, PartialEq)]
pub(super) enum WebhookReply {
    /// The complete result, in the form that layers exchange.
    Whole(Value),
    /// A JSON patch of the object; empty if the object is not changed.
    Patch(Vec<u8>),
}

/// The envelope of a response. Null counts as absent in every field, as in Go.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    /// May be absent; otherwise it must be the known version.
    #[serde(default, deserialize_with = "or_null")]
    api_version: String,
    /// May be absent; otherwise it must be `ResourceInterpreterContext`.
    #[serde(default, deserialize_with = "or_null")]
    kind: String,
    /// The response; without one the reply is an error.
    #[serde(default)]
    response: Option<Response>,
}

/// The response in the envelope. Each operation reads the fields that it needs, and ignores the
/// others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// Must be the uid of the request.
    #[serde(default, deserialize_with = "or_null")]
    uid: String,
    /// `false` for an error that the webhook reports.
    #[serde(default, deserialize_with = "or_null")]
    successful: bool,
    /// The error of an unsuccessful response.
    #[serde(default)]
    status: Option<Status>,
    /// A JSON patch, decoded from base64.
    #[serde(default, deserialize_with = "base64")]
    patch: Vec<u8>,
    /// `JSONPatch`, whenever there is a patch.
    #[serde(default)]
    patch_type: Option<String>,
    /// The requirements of one replica, for `InterpretReplica`.
    #[serde(default)]
    replica_requirements: Option<Value>,
    /// The number of replicas, for `InterpretReplica`.
    #[serde(default)]
    replicas: Option<i32>,
    /// The list of `InterpretComponent`.
    #[serde(default)]
    components: Option<Value>,
    /// The list of `InterpretDependency`.
    #[serde(default)]
    dependencies: Option<Vec<DependentReference>>,
    /// The status of `InterpretStatus`.
    #[serde(default)]
    raw_status: Option<Value>,
    /// The result of `InterpretHealth`.
    #[serde(default)]
    healthy: Option<bool>,
}

/// The error that a webhook reports. An absent code is 0.
#[derive(Default, Deserialize)]
struct Status {
    #[serde(default, deserialize_with = "or_null")]
    message: String,
    #[serde(default, deserialize_with = "or_null")]
    code: i64,
}

/// Reads bytes in base64; an absent or null field is empty.
fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    STANDARD.decode(&text).map_err(|error| de::Error::custom(format_args!("response.patch is not base64: {error}")))
}

/// Decodes a response to the request with this uid, and checks the fields of the operation.
///
/// # Errors
/// The first violation of the protocol, or the error that the webhook reports with `successful:
/// false`.
pub(super) fn verify(uid: &str, operation: Operation, body: &[u8]) -> Result<WebhookReply, CallError> {
    let context = decode_context(body).map_err(CallError::Request)?;
    let invalid = |text: &str| CallError::InvalidResponse(text.to_owned());
    let response = context.response.ok_or_else(|| invalid("webhook response was absent"))?;
    if response.uid != uid {
        return Err(CallError::InvalidResponse(format!("expected response.uid {uid:?}, got {:?}", response.uid)));
    }
    if !response.successful {
        let Status { message, code } = response
            .status
            .ok_or_else(|| invalid("webhook require response.status when response.successful is false"))?;
        return Err(CallError::Unsuccessful { code, message });
    }
    response.into_reply(operation)
}

/// Decodes JSON, or YAML if the body does not begin with `{`, as Karmada's codec does.
fn decode_context(body: &[u8]) -> Result<Context, String> {
    let text = std::str::from_utf8(body).map_err(|error| format!("the answer is not UTF-8: {error}"))?;
    let is_json = text.trim_start().starts_with('{');
    let context: Context = if is_json {
        serde_json::from_str(text).map_err(|error| format!("the answer is not a {KIND}: {error}"))?
    } else {
        serde_saphyr::from_str(text).map_err(|error| format!("the answer is not a {KIND} in JSON or YAML: {error}"))?
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
    /// Returns the reply to one operation.
    ///
    /// `InterpretReplica`, `InterpretStatus` and `InterpretHealth` need their field. A response
    /// without components or dependencies has none. The remaining operations answer with a patch.
    fn into_reply(self, operation: Operation) -> Result<WebhookReply, CallError> {
        let invalid = |text: String| CallError::InvalidResponse(text);
        let missing = |field: &str| invalid(format!("webhook returned nil response.{field}"));
        let output = match operation {
            Operation::InterpretReplica => {
                let replicas = self.replicas.ok_or_else(|| missing("replicas"))?;
                let requirements = match self.replica_requirements {
                    Some(value) => requirements(value).map_err(CallError::Request)?,
                    None => Value::Null,
                };
                serde_json::json!({ "replica": replicas, "requires": requirements })
            }
            Operation::InterpretComponent => match self.components {
                Some(value) => canonical::read_list::<Component>(value)
                    .and_then(|components| canonical::write(&components))
                    .map_err(CallError::Request)?,
                None => Value::Null,
            },
            Operation::InterpretDependency => match self.dependencies {
                Some(dependencies) => {
                    let dependencies = dependency::verify_and_canonicalize(dependencies)?;
                    canonical::write(&dependencies).map_err(CallError::Request)?
                }
                None => Value::Null,
            },
            Operation::InterpretStatus => self.raw_status.ok_or_else(|| missing("rawStatus"))?,
            Operation::InterpretHealth => self.healthy.ok_or_else(|| missing("healthy"))?.into(),
            Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus | Operation::Prune => {
                return self.checked_patch().map(WebhookReply::Patch).map_err(invalid);
            }
        };
        Ok(WebhookReply::Whole(crate::operation::field(operation, output)))
    }

    /// Returns the patch, which must have a type exactly if it is not empty
    /// (`verifyResourceInterpreterContextWithPatch`).
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

/// Reads replica requirements and writes them in canonical form.
fn requirements(value: Value) -> Result<Value, String> {
    canonical::read::<ReplicaRequirements>(value).and_then(|requirements| canonical::write(&requirements))
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
