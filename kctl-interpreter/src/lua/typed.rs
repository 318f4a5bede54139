//! The typed results of scripts: replica requirements, components and dependencies, checked and in canonical form.
//!
//! Unknown fields are dropped and empty ones left out, as Karmada's types do when they are read and written.

use k8s_openapi::api::core::v1::{NodeSelector, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::collections::BTreeMap;

use super::quantity::Quantity;

/// `ReplicaRequirements` of `work.karmada.io/v1alpha2`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReplicaRequirements {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    node_claim: Option<NodeClaim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_request: Option<BTreeMap<String, CanonicalQuantity>>,
    #[serde(skip_serializing_if = "is_empty")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "is_empty")]
    priority_class_name: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeClaim {
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_node_affinity: Option<NodeSelector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_selector: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerations: Option<Vec<Toleration>>,
}

/// `Component` of `work.karmada.io/v1alpha2`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Component {
    name: String,
    replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    replica_requirements: Option<ComponentRequirements>,
}

/// `ComponentReplicaRequirements`: those of replicas, but for the namespace.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ComponentRequirements {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    node_claim: Option<NodeClaim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_request: Option<BTreeMap<String, CanonicalQuantity>>,
    #[serde(skip_serializing_if = "is_empty")]
    priority_class_name: Option<String>,
}

/// `DependentObjectReference` of `config.karmada.io/v1alpha1`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Dependency {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "is_empty")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "is_empty")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<LabelSelector>,
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn is_empty(text: &Option<String>) -> bool {
    text.as_deref().is_none_or(str::is_empty)
}

/// A quantity that is written in canonical form, whichever way it was read.
#[derive(Debug)]
struct CanonicalQuantity(Quantity);

impl<'de> Deserialize<'de> for CanonicalQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::Null => return Ok(Self(Quantity::ZERO)),
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            value => return Err(de::Error::custom(format_args!("{value} is no quantity: write a string or a number"))),
        };
        Quantity::parse(&text).map(Self).map_err(de::Error::custom)
    }
}

impl Serialize for CanonicalQuantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Reads an object; serde would take a list for one too, as its fields in order.
fn object<'de, D: Deserializer<'de>, T: de::DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value @ Value::Object(_) => T::deserialize(value).map(Some).map_err(de::Error::custom),
        _ => Err(de::Error::custom("it is no object")),
    }
}

/// Reads an object as `T`.
///
/// # Errors
/// It is no object, or a field has the wrong type.
pub(super) fn read<T: de::DeserializeOwned + Default>(value: Value) -> Result<T, String> {
    object(value).map(Option::unwrap_or_default).map_err(|error| format!("json unmarshal obj failed: {error}"))
}

/// Reads a list of objects.
///
/// # Errors
/// It is no list, or an element is wrong.
pub(super) fn read_list<T: de::DeserializeOwned + Default>(value: Value) -> Result<Vec<T>, String> {
    match value {
        Value::Array(values) => values.into_iter().map(read).collect(),
        _ => Err("json unmarshal obj failed: it is no list".to_owned()),
    }
}

/// Writes a value as JSON.
///
/// # Errors
/// None for the types of this file; the text would be serde's.
pub(super) fn write<T: Serialize>(value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Checks dependencies as Karmada's `validation.VerifyDependencies`, and puts them in their order, each once.
/// References by label are pointers in Karmada, so equal ones all stay.
///
/// # Errors
/// All that is wrong with the list, in one text.
pub(super) fn verify_dependencies(mut dependencies: Vec<Dependency>) -> Result<Vec<Dependency>, String> {
    let wrong: Vec<String> =
        dependencies.iter().enumerate().flat_map(|(idx, dependency)| dependency.mistakes(idx)).collect();
    if !wrong.is_empty() {
        return Err(wrong.join(", "));
    }
    for dependency in &mut dependencies {
        for field in [&mut dependency.namespace, &mut dependency.name] {
            if is_empty(field) {
                *field = None;
            }
        }
    }
    dependencies.sort_by(|a, b| a.order().cmp(&b.order()));
    dependencies.dedup_by(|a, b| a == b && a.label_selector.is_none());
    Ok(dependencies)
}

impl Dependency {
    fn order(&self) -> (&str, &str, Option<&str>, Option<&str>) {
        (&self.api_version, &self.kind, self.namespace.as_deref(), self.name.as_deref())
    }

    fn mistakes(&self, idx: usize) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.api_version.is_empty() {
            mistakes.push(format!("dependencies[{idx}].apiVersion: Invalid value: \"\": missing required apiVersion"));
        }
        if self.kind.is_empty() {
            mistakes.push(format!("dependencies[{idx}].kind: Invalid value: \"\": missing required kind"));
        }
        if is_empty(&self.name) && self.label_selector.is_none() {
            let shown = serde_json::to_string(self).unwrap_or_default();
            let why = "dependency can not leave name and labelSelector all empty";
            mistakes.push(format!("dependencies[{idx}]: Invalid value: {shown}: {why}"));
        }
        for mistake in self.label_selector.iter().flat_map(selector_mistakes) {
            mistakes.push(format!("dependencies[{idx}].labelSelector.{mistake}"));
        }
        mistakes
    }
}

fn selector_mistakes(selector: &LabelSelector) -> Vec<String> {
    let mut mistakes = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        if !is_label_key(key) {
            mistakes.push(format!("matchLabels: Invalid value: {key:?}: not the key of a label"));
        }
        if !is_label_value(value) {
            mistakes.push(format!("matchLabels: Invalid value: {value:?}: not the value of a label"));
        }
    }
    for (idx, expression) in selector.match_expressions.iter().flatten().enumerate() {
        let at = format!("matchExpressions[{idx}]");
        let n_values = expression.values.as_ref().map_or(0, Vec::len);
        match expression.operator.as_str() {
            "In" | "NotIn" if n_values == 0 => {
                mistakes
                    .push(format!("{at}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"));
            }
            "Exists" | "DoesNotExist" if n_values > 0 => mistakes.push(format!(
                "{at}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            operator => {
                mistakes.push(format!("{at}.operator: Invalid value: {operator:?}: not a valid selector operator"));
            }
        }
        for value in expression.values.iter().flatten().filter(|value| !is_label_value(value)) {
            mistakes.push(format!("{at}.values: Invalid value: {value:?}: not the value of a label"));
        }
        if !is_label_key(&expression.key) {
            mistakes.push(format!("{at}.key: Invalid value: {:?}: not the key of a label", expression.key));
        }
    }
    mistakes
}

/// Returns whether the text is the key of a label: a name, with a DNS subdomain and a slash before it or not.
fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => {
            let is_part = |part: &str| {
                is_label_name(part) && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            };
            domain.len() <= 253 && domain.split('.').all(is_part) && is_label_name(name)
        }
        None => is_label_name(key),
    }
}

fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_label_name(value)
}

fn is_label_name(name: &str) -> bool {
    let ends = [name.chars().next(), name.chars().next_back()];
    name.len() <= 63
        && ends.iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Component, Dependency, ReplicaRequirements, read, read_list, verify_dependencies, write};

    #[test]
    fn requirements_are_canonical() {
        let read = |value| read::<ReplicaRequirements>(value).and_then(|requirements| write(&requirements));
        assert_eq!(
            read(json!({"resourceRequest": {"cpu": "1.5", "memory": 1024}, "foo": 1, "namespace": ""})),
            Ok(json!({"resourceRequest": {"cpu": "1500m", "memory": "1024"}}))
        );
        for wrong in [
            json!({"resourceRequest": {"cpu": "x"}}),
            json!({"nodeClaim": "x"}),
            json!({"namespace": 1}),
            json!([{}]),
            json!({"nodeClaim": [{}]}),
            json!([1]),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_component_has_a_name_and_whole_replicas() {
        let read = |value| read_list::<Component>(value).and_then(|components| write(&components));
        assert_eq!(
            read(json!([{"name": "a", "replicas": 2}, {}])),
            Ok(json!([{"name": "a", "replicas": 2}, {"name": "", "replicas": 0}]))
        );
        for wrong in
            [json!([{"replicas": 1.5}]), json!([{"replicas": "1"}]), json!({"name": "a"}), json!([{"name": 1}])]
        {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dependencies_are_checked_sorted_and_unique() {
        let verify = |value| read_list::<Dependency>(value).and_then(verify_dependencies).and_then(|list| write(&list));
        let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "name": name});
        let by_label = json!({"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "b"}}});
        assert_eq!(verify(json!([secret("b"), secret("a"), secret("b")])), Ok(json!([secret("a"), secret("b")])));
        assert_eq!(verify(json!([by_label, by_label])), Ok(json!([by_label, by_label])));
        for (mistake, value) in [
            ("missing required apiVersion", json!({"kind": "Secret", "name": "x"})),
            ("missing required kind", json!({"apiVersion": "v1", "name": "x"})),
            ("all empty", json!({"apiVersion": "v1", "kind": "Secret"})),
            (
                "operator",
                json!({"apiVersion": "v1", "kind": "S", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}),
            ),
            (
                "values",
                json!({"apiVersion": "v1", "kind": "S", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            ),
            (
                "key of a label",
                json!({"apiVersion": "v1", "kind": "S", "labelSelector": {"matchLabels": {"a b": "c"}}}),
            ),
        ] {
            let error = verify(json!([value])).unwrap_err();
            assert!(error.contains(mistake), "{error}");
        }
    }
}
