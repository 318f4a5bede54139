//! What a built-in kind is before anything is set: the value that a create is compared with. Fields that are structs in
//! the API's types are there from the start, so that creating an object does not own them, only what is in them.

use serde_json::{Map, Value};

use crate::schema::Schema;

/// Structs in the types of the built-in kinds: the fields with `default: {}` in the API server's `OpenAPI` v3 documents
/// that a path without lists leads to. A struct can be optional, so `required` does not tell.
const STRUCTS: &[&str] = &[
    "deprecatedSource",
    "involvedObject",
    "jobTemplate",
    "metadata",
    "regarding",
    "roleRef",
    "source",
    "spec",
    "status",
    "devices",
    "template",
    "names",
    "podSelector",
    "pool",
    "priorityLevelConfiguration",
    "resources",
    "scaleTargetRef",
    "strategy",
    "updateStrategy",
    "acceptedNames",
    "daemonEndpoints",
    "kubeletEndpoint",
    "loadBalancer",
    "nodeInfo",
    "user",
    "userInfo",
    "target",
];

/// Fields of these names that are pointers all the same, by their types.
const POINTERS: &[(&str, &str)] =
    &[("io.k8s.api.core.v1.PodSpec", "resources"), ("io.k8s.api.core.v1.ReplicationControllerSpec", "template")];

/// Required fields that Go leaves out of a zero value all the same (`omitempty`).
const LEFT_OUT: &[&str] = &["parentRef", "validationActions"];

/// The zero value of a kind, as far as the new object has it. Objects of custom resources start as nothing.
pub(super) fn zero(schema: Option<Schema<'_>>, new: &Value) -> Value {
    if !is_built_in(schema, new) {
        return Value::Object(Map::new());
    }
    zero_of(schema, new)
}

/// Whether an object is of a kind whose type the API server is built with.
pub(super) fn is_built_in(schema: Option<Schema<'_>>, object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    schema.is_some() && Schema::built_in(text("apiVersion"), text("kind")).is_some()
}

fn zero_of(schema: Option<Schema<'_>>, new: &Value) -> Value {
    let Some(schema) = schema else { return Value::Object(Map::new()) };
    let fields = new.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let property = schema.property(name)?;
        let is_struct = property.text("$ref").is_some() && value.is_object();
        let is_pointer = schema.name().is_some_and(|of| POINTERS.contains(&(of, name.as_str())));
        if is_struct && STRUCTS.contains(&name.as_str()) && !is_pointer {
            return Some((name.clone(), zero_of(Some(property), value)));
        }
        (schema.requires(name) && !LEFT_OUT.contains(&name.as_str())).then(|| (name.clone(), Value::Null))
    });
    Value::Object(fields.collect())
}
