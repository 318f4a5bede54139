//! Pruning: removes the fields of an object that a structural schema does not declare.
//!
//! Runs when a request is decoded, and when an object is read from the store. So a field that is removed from the
//! schema disappears from responses. On writes, `fieldValidation` decides if the returned paths are errors, warnings or
//! ignored.

use serde_json::Value;

use crate::{decode::REPORTED_LEN_MAX, go, json_path::JsonPath, schema::Schema};

/// Fields of whole objects that pruning keeps. Their contents are decoded by other code.
const KEPT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Name of the built-in schema that metadata is pruned by.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Removes the fields that the schema does not declare and returns the paths of the first [`REPORTED_LEN_MAX`], such as
/// `spec.list[0].field`. Map keys get a dot too, unlike in field errors. If all of them are below `status`, or none is,
/// the first path of the other part follows.
///
/// Metadata is compared with the fields of `ObjectMeta`. Empty fields of embedded metadata are removed without being
/// reported. Upstream: `pruning/algorithm.go` and `objectmeta/coerce.go` in `pkg/apiserver/schema` of
/// apiextensions-apiserver.
///
/// The object is changed in place; the schema must be structural. The root is always a whole object, also without the
/// flag for embedded ones. Values of the wrong type are kept and left to validation.
pub(crate) fn prune(schema: Schema, object: &mut Value) -> Vec<String> {
    let mut pruned = PrunedPaths::default();
    if let Some(metadata) = object.get_mut("metadata") {
        let path = JsonPath::Field(&JsonPath::Root, "metadata");
        fields_of_type(Schema::for_type(META), metadata, &path, &mut pruned);
    }
    pruned.value(Some(schema), object, &JsonPath::Root, ValueKind::Object);
    pruned.paths
}

/// Prunes a value that is not a whole object, such as a default, and returns the removed paths.
///
/// A value whose schema is an embedded object keeps `apiVersion`, `kind` and `metadata`.
pub(super) fn values(schema: Schema, value: &mut Value) -> Vec<String> {
    let mut pruned = PrunedPaths::default();
    pruned.value(Some(schema), value, &JsonPath::Root, value_kind(Some(schema)));
    pruned.paths
}

/// The kind of a value, which decides whether metadata is special in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// An object with apiVersion, kind and metadata.
    Object,
    /// Any other value: no field is special.
    Value,
}

/// Collects the paths of removed fields.
#[derive(Default)]
struct PrunedPaths {
    /// Fields below a removed field are not listed. Invariant: at most [`REPORTED_LEN_MAX`] and one more.
    paths: Vec<String>,
    /// `true` if a path below `status` is recorded.
    has_status: bool,
    /// `true` if another path is recorded.
    has_other: bool,
}

impl PrunedPaths {
    /// Records a removed field. The effect of an apply depends on the parts of the object that have lost fields
    /// (`Unpersisted::decide`), so the first field of each part is recorded beyond the limit.
    fn record(&mut self, path: &JsonPath<'_>) {
        let is_recorded = if path.is_below("status") { &mut self.has_status } else { &mut self.has_other };
        if self.paths.len() < REPORTED_LEN_MAX || !*is_recorded {
            *is_recorded = true;
            self.paths.push(path.to_string());
        }
    }

    /// Prunes a value and everything below it. Without a schema, all fields of an object are removed, also in lists. A
    /// list that preserves unknown fields is pruned by `prune_below_preserved`.
    fn value(&mut self, schema: Option<Schema>, value: &mut Value, path: &JsonPath<'_>, kind: ValueKind) {
        match value {
            Value::Array(_) if schema.is_some_and(|schema| schema.preserves_unknown_fields()) => {
                self.prune_below_preserved(schema, value, path);
            }
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.items());
                for (i, item) in items.iter_mut().enumerate() {
                    self.value(schema, item, &JsonPath::Item(path, i), value_kind(schema));
                }
            }
            Value::Object(fields) => fields.retain(|name, value| {
                let field_path = JsonPath::Field(path, name);
                if kind == ValueKind::Object && KEPT.contains(&name.as_str()) {
                    if name == "metadata" && !matches!(path, JsonPath::Root) {
                        self.embedded_metadata(value, &field_path);
                    }
                    return true;
                }
                self.field(schema, name, value, &field_path)
            }),
            _ => {}
        }
    }

    /// Prunes the declared fields below a value that preserves unknown ones. Items of its lists preserve theirs, too
    /// (`skipPrune`).
    fn prune_below_preserved(&mut self, schema: Option<Schema>, value: &mut Value, path: &JsonPath<'_>) {
        let Some(schema) = schema else { return };
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    self.prune_below_preserved(schema.items(), item, &JsonPath::Item(path, i));
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(field) = schema.field(name) {
                        self.value(Some(field), value, &JsonPath::Field(path, name), value_kind(Some(field)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Prunes a field and returns `true` if it is kept, by a schema, `additionalProperties: true`, or a parent that
    /// preserves unknown fields.
    fn field(&mut self, schema: Option<Schema>, name: &str, value: &mut Value, path: &JsonPath<'_>) -> bool {
        let field = schema.and_then(|schema| schema.field(name));
        let any = schema.is_some_and(|schema| schema.json()["additionalProperties"] == true);
        if field.is_some() || any {
            self.value(field, value, path, value_kind(field));
            return true;
        }
        let stays = schema.is_some_and(|schema| schema.preserves_unknown_fields());
        if !stays {
            self.record(path);
        }
        stays
    }

    /// Prunes the metadata of an embedded object by `ObjectMeta` and removes empty fields, as decoding it in Go would,
    /// except for numbers and booleans. Wrong types have been reported by `fit_embedded`.
    fn embedded_metadata(&mut self, metadata: &mut Value, path: &JsonPath<'_>) {
        fields_of_type(Schema::for_type(META), metadata, path, self);
        if let Value::Object(fields) = metadata {
            fields.retain(|_, value| !go::is_empty(value));
        }
    }
}

/// Returns the kind of a value by its schema.
fn value_kind(schema: Option<Schema>) -> ValueKind {
    let embedded = schema.is_some_and(|schema| schema.flag("x-kubernetes-embedded-resource"));
    if embedded { ValueKind::Object } else { ValueKind::Value }
}

/// Removes the fields that a built-in type does not declare. A type without properties, such as a map of labels, is not
/// entered.
fn fields_of_type(schema: Option<Schema>, value: &mut Value, path: &JsonPath<'_>, pruned: &mut PrunedPaths) {
    let Some(schema) = schema else { return };
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                fields_of_type(schema.items(), item, &JsonPath::Item(path, i), pruned);
            }
        }
        Value::Object(fields) if schema.properties().next().is_some() => fields.retain(|name, value| {
            let path = JsonPath::Field(path, name);
            let Some(field) = schema.property(name) else {
                pruned.record(&path);
                return false;
            };
            fields_of_type(Some(field), value, &path, pruned);
            true
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_field_of_the_status_is_always_recorded() {
        let part = json!({ "type": "object" });
        let schema = json!({ "type": "object", "properties": { "spec": part, "status": part } });
        let fields: serde_json::Map<String, Value> = (0..150).map(|n| (format!("f{n}"), n.into())).collect();
        let mut object = json!({ "spec": fields, "status": { "a": 1, "b": 2 } });
        let paths = prune(Schema::structural(&schema), &mut object);
        assert_eq!(paths.len(), REPORTED_LEN_MAX + 1);
        assert_eq!(paths[REPORTED_LEN_MAX], "status.a");
        assert_eq!(object, json!({ "spec": {}, "status": {} }));
    }

    /// Takes minutes if each item gets its own path.
    #[test]
    fn items_below_a_long_key_are_pruned() {
        let schema = json!({
            "type": "object",
            "additionalProperties": { "type": "array", "items": { "type": "object" } },
        });
        let key = "k".repeat(1_000_000);
        let mut object = json!({ key.clone(): vec![json!({ "a": 1 }); 300_000] });
        let paths = prune(Schema::structural(&schema), &mut object);
        assert_eq!(paths.len(), REPORTED_LEN_MAX);
        assert!(paths[0] == format!("{key}[0].a"));
        assert!(object[&key].as_array().is_some_and(|items| items.iter().all(|item| *item == json!({}))));
    }
}
