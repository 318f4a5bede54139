//! `ResourceInterpreterWebhookConfiguration` as a client reads it: rules and addresses.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{kind::Gvk, operation::Operation};

/// The group and version of configurations.
pub(super) const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// The kind of the objects.
pub const KIND: &str = "ResourceInterpreterWebhookConfiguration";
/// The port of a Service where none is written.
const SERVICE_PORT: u16 = 443;

/// An object that is not a valid webhook configuration. The message names the field to correct.
#[derive(Debug, thiserror::Error)]
#[error("object {name:?} is no {KIND} of {API_VERSION}")]
pub struct ConfigurationMalformed {
    /// The name of the object, as far as it has one.
    pub name: String,
    /// The underlying error.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default, deserialize_with = "or_null")]
    pub(super) webhooks: Vec<Webhook>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Webhook {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) client_config: ClientConfig,
    #[serde(default, deserialize_with = "or_null")]
    pub(super) rules: Vec<Rule>,
    #[serde(default)]
    pub(super) timeout_seconds: Option<u32>,
    #[serde(default, deserialize_with = "or_null")]
    pub(super) interpreter_context_versions: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientConfig {
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) service: Option<Service>,
    /// PEM in base64.
    #[serde(default, deserialize_with = "or_null")]
    pub(super) ca_bundle: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(default, deserialize_with = "or_null")]
    pub(super) path: String,
    #[serde(default = "service_port", deserialize_with = "port_or_null")]
    pub(super) port: u16,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    #[serde(default, deserialize_with = "or_null")]
    operations: Vec<String>,
    #[serde(default, deserialize_with = "or_null")]
    api_groups: Vec<String>,
    #[serde(default, deserialize_with = "or_null")]
    api_versions: Vec<String>,
    #[serde(default, deserialize_with = "or_null")]
    kinds: Vec<String>,
}

/// Go writes a list that is nil as null.
fn or_null<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

fn port_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    Ok(Option::<u16>::deserialize(deserializer)?.unwrap_or(SERVICE_PORT))
}

fn service_port() -> u16 {
    SERVICE_PORT
}

impl Configuration {
    pub(super) fn read(object: &Value) -> Result<Self, ConfigurationMalformed> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let malformed = |source| ConfigurationMalformed { name: text("/metadata/name").to_owned(), source };
        if (text("/apiVersion"), text("/kind")) != (API_VERSION, KIND) {
            let found = format!("it is a {} of {}", text("/kind"), text("/apiVersion"));
            return Err(malformed(found.into()));
        }
        Self::deserialize(object).map_err(|error| malformed(error.into()))
    }
}

impl Rule {
    /// Whether each of the four lists has the value, or stands for all by `*`.
    pub(super) fn matches(&self, operation: Operation, kind: &Gvk) -> bool {
        let pairs = [
            (&self.operations, operation.name()),
            (&self.api_groups, &kind.group),
            (&self.api_versions, &kind.version),
            (&self.kinds, &kind.kind),
        ];
        pairs.iter().all(|(list, value)| list.iter().any(|item| item == "*" || item == value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_matches_what_all_of_its_lists_name() {
        let rule = |operations: &[&str], groups: &[&str], versions: &[&str], kinds: &[&str]| {
            let rule =
                json!({ "operations": operations, "apiGroups": groups, "apiVersions": versions, "kinds": kinds });
            Rule::deserialize(rule).unwrap()
        };
        let kind = Gvk { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() };
        let cases = [
            (rule(&["*"], &["*"], &["*"], &["*"]), true),
            (rule(&["Retain", "InterpretHealth"], &["", "apps"], &["v1"], &["Deployment"]), true),
            (rule(&["Retain"], &["*"], &["*"], &["*"]), false),
            (rule(&["*"], &[""], &["*"], &["*"]), false),
            (rule(&["*"], &["*"], &["v2"], &["*"]), false),
            (rule(&["*"], &["*"], &["*"], &["deployments"]), false),
            (rule(&["*"], &["*"], &["*"], &[]), false),
        ];
        for (rule, expected) in cases {
            assert_eq!(rule.matches(Operation::InterpretHealth, &kind), expected, "{rule:?}");
        }
    }

    #[test]
    fn what_is_no_configuration_is_named_with_its_field() {
        let object = |more: Value| {
            let mut object = json!({ "apiVersion": API_VERSION, "kind": KIND, "metadata": { "name": "a" } });
            object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object
        };
        let cases = [
            (object(json!({ "kind": "Pod" })), "it is a Pod of config.karmada.io/v1alpha1"),
            (object(json!({ "webhooks": 1 })), "expected a sequence"),
            (object(json!({ "webhooks": [{ "timeoutSeconds": "1s" }] })), "expected u32"),
            (object(json!({ "webhooks": [{ "clientConfig": { "service": {} } }] })), "missing field `namespace`"),
        ];
        for (object, expected) in cases {
            let error = Configuration::read(&object).unwrap_err();
            assert!(error.to_string().starts_with("object \"a\" is no Resource"), "{error}");
            assert!(error.source.to_string().contains(expected), "{}", error.source);
        }
        let read = Configuration::read(&object(json!({ "webhooks": null }))).unwrap();
        assert!(read.webhooks.is_empty());
    }

    #[test]
    fn the_port_of_a_service_is_443_where_none_is_written() {
        for (port, expected) in [(json!({}), 443), (json!({ "port": null }), 443), (json!({ "port": 8443 }), 8443)] {
            let mut service = json!({ "namespace": "n", "name": "s" });
            service.as_object_mut().unwrap().extend(port.as_object().unwrap().clone());
            assert_eq!(Service::deserialize(service).unwrap().port, expected);
        }
    }
}
