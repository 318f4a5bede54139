//! `ResourceInterpreterWebhookConfiguration` as a client reads it: rules and addresses.
//!
//! Reading is lenient: what Karmada's validating webhook rejects can still be read. Use
//! [`validate`](crate::webhook::validate) to check an object before it is written.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    kind::Gvk,
    operation::{Operation, or_null},
};

/// `apiVersion` of configurations and of the requests.
pub(super) const API_VERSION: &str = "config.karmada.io/v1alpha1";
/// `kind` of a configuration, for watches and for the check of what is read.
pub const KIND: &str = "ResourceInterpreterWebhookConfiguration";
/// The port of a Service reference without one.
const SERVICE_PORT: u16 = 443;

/// An object that is not a webhook configuration, returned by [`Webhooks::new`](super::Webhooks::new).
///
/// The message names the object; the source names the field and the problem with it.
#[derive(Debug, thiserror::Error)]
#[error("object {name:?} is not a {KIND} of {API_VERSION}")]
#[non_exhaustive]
pub struct ConfigurationError {
    /// `metadata.name` of the object; empty if it has none.
    pub name: String,
    /// The problem: another kind, or a field of another type.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// A configuration with the fields that a client needs.
#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default, deserialize_with = "or_null")]
    pub(super) webhooks: Vec<WebhookEntry>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookEntry {
    /// The name, unique in its configuration.
    #[serde(default)]
    pub(super) name: String,
    /// The address and the CA bundle.
    #[serde(default)]
    pub(super) client_config: ClientConfig,
    /// The operations and kinds; without any rule the webhook is never called.
    #[serde(default, deserialize_with = "or_null")]
    pub(super) rules: Vec<RuleSelector>,
    #[serde(default)]
    pub(super) timeout_seconds: Option<u32>,
    /// The versions of the request that the webhook accepts, in order of preference.
    #[serde(default, deserialize_with = "or_null")]
    pub(super) interpreter_context_versions: Vec<String>,
}

/// The address of a webhook. A Service takes precedence if both are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientConfig {
    /// An https URL.
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) service: Option<Service>,
    /// The PEM certificates that sign the server's certificate, in base64; empty for the
    /// certificates of the system.
    #[serde(default, deserialize_with = "or_null")]
    pub(super) ca_bundle: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The path of the URL; empty for `/`.
    #[serde(default, deserialize_with = "or_null")]
    pub(super) path: String,
    /// The port of the Service; 443 if it is absent or null.
    #[serde(default = "service_port", deserialize_with = "port_or_null")]
    pub(super) port: u16,
}

/// A rule: it matches if each of its lists has the value, or `*`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleSelector {
    #[serde(default, deserialize_with = "or_null")]
    operations: Vec<String>,
    /// API groups; the core group is an empty string.
    #[serde(default, deserialize_with = "or_null")]
    api_groups: Vec<String>,
    /// Versions without the group, such as `v1`.
    #[serde(default, deserialize_with = "or_null")]
    api_versions: Vec<String>,
    /// Kinds, such as `Deployment`.
    #[serde(default, deserialize_with = "or_null")]
    kinds: Vec<String>,
}

/// Reads null as [`SERVICE_PORT`].
fn port_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    Ok(Option::<u16>::deserialize(deserializer)?.unwrap_or(SERVICE_PORT))
}

fn service_port() -> u16 {
    SERVICE_PORT
}

impl Configuration {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The object is of another kind or version, or a field has another type.
    pub(super) fn read(object: &Value) -> Result<Self, ConfigurationError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let malformed = |source| ConfigurationError { name: text("/metadata/name").to_owned(), source };
        if (text("/apiVersion"), text("/kind")) != (API_VERSION, KIND) {
            let found = format!("it is a {} of {}", text("/kind"), text("/apiVersion"));
            return Err(malformed(found.into()));
        }
        Self::deserialize(object).map_err(|error| malformed(error.into()))
    }
}

impl RuleSelector {
    /// Returns `true` if each of the four lists has the value or `*` (`Matcher` in Karmada's
    /// `pkg/util/interpreter/matcher.go`).
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
    fn rule_matches_what_all_of_its_lists_name() {
        let rule = |operations: &[&str], groups: &[&str], versions: &[&str], kinds: &[&str]| {
            let rule =
                json!({ "operations": operations, "apiGroups": groups, "apiVersions": versions, "kinds": kinds });
            RuleSelector::deserialize(rule).unwrap()
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
    fn invalid_configuration_is_named_with_its_field() {
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
            assert!(error.to_string().starts_with("object \"a\" is not a Resource"), "{error}");
            assert!(error.source.to_string().contains(expected), "{}", error.source);
        }
        let read = Configuration::read(&object(json!({ "webhooks": null }))).unwrap();
        assert!(read.webhooks.is_empty());
    }

    #[test]
    fn service_port_defaults_to_443() {
        for (port, expected) in [(json!({}), 443), (json!({ "port": null }), 443), (json!({ "port": 8443 }), 8443)] {
            let mut service = json!({ "namespace": "n", "name": "s" });
            service.as_object_mut().unwrap().extend(port.as_object().unwrap().clone());
            assert_eq!(Service::deserialize(service).unwrap().port, expected);
        }
    }
}
