//! Typed results of scripts, webhooks and functions: replica requirements, components and dependencies,
//! checked and in canonical form.
//!
//! All layers of users return loose JSON. Karmada reads it into Go types and writes it again, and later
//! compares the results as a whole. So unknown fields are dropped here, empty fields are left out,
//! and quantities get their canonical form: `1.5` becomes `1500m`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::{
    dependency,
    operation::{DependentReference, or_null},
    quantity::Quantity,
    typed::Typed,
};

/// `ReplicaRequirements` of `work.karmada.io/v1alpha2`, with all fields optional.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplicaRequirements {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    node_claim: Option<NodeClaim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_request: Option<BTreeMap<String, CanonicalQuantity>>,
    /// The namespace whose `ResourceQuota` applies.
    #[serde(skip_serializing_if = "is_empty")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "is_empty")]
    priority_class_name: Option<String>,
}

/// `NodeClaim` of `work.karmada.io/v1alpha2`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeClaim {
    /// A `NodeSelector`, as its Go type writes it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "node_selector")]
    hard_node_affinity: Option<Value>,
    /// Labels that a node must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_selector: Option<BTreeMap<String, String>>,
    /// `Toleration`s, as their Go type writes them.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "tolerations")]
    tolerations: Option<Vec<Value>>,
}

/// `Component` of `work.karmada.io/v1alpha2`. Name and number are always written, even if they are
/// empty.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Component {
    #[serde(deserialize_with = "or_null")]
    name: String,
    /// The number of replicas. A number with a fraction is an error.
    #[serde(deserialize_with = "or_null")]
    replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    replica_requirements: Option<ComponentRequirements>,
}

/// `ComponentReplicaRequirements`: the same fields as [`ReplicaRequirements`], without the
/// namespace.
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

/// Decodes a value as a Kubernetes type and encodes it as Karmada would write it.
fn decode_as<E: de::Error>(name: &'static str, value: &Value) -> Result<Value, E> {
    Typed::from_json(name, value).map(Typed::into_object).map_err(E::custom)
}

/// Reads a `NodeSelector`; null is `None`.
fn node_selector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    value.map(|value| decode_as("NodeSelector", &value)).transpose()
}

/// Reads a list of `Toleration`s; null is `None`.
fn tolerations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Value>>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(deserializer)?;
    values.map(|values| values.iter().map(|value| decode_as("Toleration", value)).collect()).transpose()
}

/// Returns `true` for an absent or empty string, which `omitempty` leaves out.
#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn is_empty(text: &Option<String>) -> bool {
    text.as_deref().is_none_or(str::is_empty)
}

/// A quantity that is read from a string or a number, and written in canonical form. Null is zero.
#[derive(Debug)]
struct CanonicalQuantity(Quantity);

impl<'de> Deserialize<'de> for CanonicalQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::Null => return Ok(Self(Quantity::default())),
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            value => {
                return Err(de::Error::custom(format_args!("{value} is not a quantity: write a string or a number")));
            }
        };
        // Go's decoder of quantities allows spaces around them.
        text.trim()
            .parse()
            .map(Self)
            .map_err(|error| de::Error::custom(format_args!("{text:?} is not a quantity: {error}")))
    }
}

impl Serialize for CanonicalQuantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Reads an object. Serde alone would also accept a list, as the fields in their order.
fn object<'de, D: Deserializer<'de>, T: de::DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value @ Value::Object(_) => T::deserialize(value).map(Some).map_err(de::Error::custom),
        _ => Err(de::Error::custom("the value is not an object")),
    }
}

/// The names of all fields of the types of this file. Keys of maps, which users choose, never get
/// here.
const FIELDS: [&str; 13] = [
    "apiVersion",
    "hardNodeAffinity",
    "kind",
    "labelSelector",
    "name",
    "namespace",
    "nodeClaim",
    "nodeSelector",
    "priorityClassName",
    "replicaRequirements",
    "replicas",
    "resourceRequest",
    "tolerations",
];

/// Renames fields in another case to their proper names, such as `ResourceRequest` to
/// `resourceRequest`.
///
/// Use it for results of scripts: Karmada decodes them with `encoding/json`, which ignores case.
/// Responses of webhooks go through another decoder there, which does not.
pub(crate) fn fold_field_names(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(fold_field_names).collect(),
        Value::Object(fields) => Value::Object(fold_fields(fields)),
        value => value,
    }
}

/// Renames the fields of one object and of the objects in it. A field with the proper name wins
/// over one in another case.
fn fold_fields(mut fields: Map<String, Value>) -> Map<String, Value> {
    let is_other = |name: &String| !FIELDS.contains(&name.as_str());
    let others: Vec<_> = fields.keys().filter(|name| is_other(name)).cloned().collect();
    for other in others {
        let Some(name) = FIELDS.into_iter().find(|name| name.eq_ignore_ascii_case(&other)) else { continue };
        if !fields.contains_key(name)
            && let Some(value) = fields.remove(&other)
        {
            fields.insert(name.to_owned(), value);
        }
    }
    for inner in ["nodeClaim", "replicaRequirements"] {
        if let Some(value) = fields.get_mut(inner) {
            *value = fold_field_names(value.take());
        }
    }
    fields
}

/// Reads an object as `T`; null is the default of `T`.
///
/// # Errors
/// The value is not an object, or a field has another type. The message begins as Karmada's does (`ConvertLuaResultInto` in
/// `luavm/lua_convert.go`).
pub(crate) fn read<T: de::DeserializeOwned + Default>(value: Value) -> Result<T, String> {
    object(value).map(Option::unwrap_or_default).map_err(|error| format!("json unmarshal obj failed: {error}"))
}

/// Reads a list of objects as `T`s.
///
/// # Errors
/// The value is not a list, or an element is invalid.
pub(crate) fn read_list<T: de::DeserializeOwned + Default>(value: Value) -> Result<Vec<T>, String> {
    match value {
        Value::Array(values) => values.into_iter().map(read).collect(),
        _ => Err("json unmarshal obj failed: the value is not a list".to_owned()),
    }
}

/// Serializes a value as JSON.
///
/// # Errors
/// The types of this file always have a JSON form; the message would come from serde.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Verifies dependencies (`VerifyDependencies` in Karmada's
/// `pkg/util/interpreter/validation/validation.go`), sorts them and removes duplicates.
///
/// References with a label selector are never removed: Karmada compares pointers there, so equal
/// ones differ.
///
/// # Errors
/// All problems of the list, in one message.
pub(crate) fn verify_dependencies(
    mut dependencies: Vec<DependentReference>,
) -> Result<Vec<DependentReference>, String> {
    for dependency in &mut dependencies {
        if let Some(selector) = &mut dependency.label_selector {
            *selector = decode_as::<serde_json::Error>("LabelSelector", selector)
                .map_err(|error| format!("json unmarshal obj failed: {error}"))?;
        }
    }
    dependency::verify(&dependencies).map_err(|error| error.to_string())?;
    dependencies.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    dependencies.dedup_by(|a, b| a == b && a.label_selector.is_none());
    Ok(dependencies)
}

/// Returns the order of references. References without a selector come first, so that equal ones are neighbours.
fn sort_key(dependency: &DependentReference) -> (&str, &str, &str, &str, bool) {
    let has_selector = dependency.label_selector.is_some();
    (&dependency.api_version, &dependency.kind, &dependency.namespace, &dependency.name, has_selector)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        Component, DependentReference, ReplicaRequirements, fold_field_names, read, read_list, verify_dependencies,
        write,
    };

    #[test]
    fn requirements_are_canonical() {
        let read = |value| read::<ReplicaRequirements>(value).and_then(|requirements| write(&requirements));
        assert_eq!(
            read(json!({"resourceRequest": {"cpu": "1.5", "memory": 1024}, "foo": 1, "namespace": ""})),
            Ok(json!({"resourceRequest": {"cpu": "1500m", "memory": "1024"}}))
        );
        assert_eq!(read(json!({"resourceRequest": {"cpu": " 1\n"}})), Ok(json!({"resourceRequest": {"cpu": "1"}})));
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
    fn field_names_ignore_case_unlike_map_keys() {
        let read =
            |value| read::<ReplicaRequirements>(fold_field_names(value)).and_then(|requirements| write(&requirements));
        assert_eq!(
            read(json!({"ResourceRequest": {"Name": "1"}, "nodeclaim": {"NodeSelector": {"Name": "x"}}})),
            Ok(json!({"resourceRequest": {"Name": "1"}, "nodeClaim": {"nodeSelector": {"Name": "x"}}}))
        );
        assert_eq!(read(json!({"Namespace": "m", "namespace": "n"})), Ok(json!({"namespace": "n"})));
        assert_eq!(fold_field_names(json!([{"Name": "a"}, 1])), json!([{"name": "a"}, 1]));
    }

    #[test]
    fn components_need_a_name_and_whole_replicas() {
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
        let verify =
            |value| read_list::<DependentReference>(value).and_then(verify_dependencies).and_then(|list| write(&list));
        let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "name": name});
        let by_label = json!({"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "b"}}});
        assert_eq!(verify(json!([secret("b"), secret("a"), secret("b")])), Ok(json!([secret("a"), secret("b")])));
        assert_eq!(verify(json!([by_label, by_label])), Ok(json!([by_label, by_label])));
        let mut both = by_label.clone();
        both["name"] = json!("b");
        assert_eq!(verify(json!([secret("b"), both, secret("b")])), Ok(json!([secret("b"), both])));
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
                "qualified name",
                json!({"apiVersion": "v1", "kind": "S", "labelSelector": {"matchLabels": {"a b": "c"}}}),
            ),
        ] {
            let error = verify(json!([value])).unwrap_err();
            assert!(error.contains(mistake), "{error}");
        }
    }
}
