//! Custom resources: what their structural schema keeps, fills in and refuses.

use serde_json::Value;

use crate::{schema::Schema, status::Cause};

/// Removes fields that the schema does not name; returns their paths.
pub(crate) fn prune(schema: Schema<'_>, object: &mut Value) -> Vec<String> {
    let mut pruned = Vec::new();
    prune_at(schema, object, "", &mut pruned);
    pruned
}

fn prune_at(schema: Schema<'_>, value: &mut Value, path: &str, pruned: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let keeps = schema.preserves_unknown_fields();
            let root = path.is_empty() || schema.flag("x-kubernetes-embedded-resource");
            let names: Vec<String> = map.keys().cloned().collect();
            for name in names {
                let own = root && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
                let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match schema.field(&name) {
                    _ if own => {}
                    Some(field) => prune_at(field, &mut map[&name], &at, pruned),
                    None if keeps || schema.json()["additionalProperties"] == true => {}
                    None => {
                        map.remove(&name);
                        pruned.push(at);
                    }
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = schema.items() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(of_items, item, &format!("{path}[{index}]"), pruned);
            }
        }
        _ => {}
    }
}

/// Fills in defaults.
pub(crate) fn default(schema: Schema<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, field) in schema.properties() {
                let default = &field.json()["default"];
                let null = map.get(name).is_some_and(Value::is_null) && !field.flag("nullable");
                if !default.is_null() && (null || !map.contains_key(name)) {
                    map.insert(name.into(), default.clone());
                }
            }
            for (name, value) in map.iter_mut() {
                if let Some(field) = schema.field(name) {
                    default(field, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = schema.items() else { return };
            for item in items {
                default(of_items, item);
            }
        }
        _ => {}
    }
}

/// What the schema refuses.
pub(crate) fn validate(_schema: Schema<'_>, _object: &Value) -> Vec<Cause> {
    Vec::new()
}
