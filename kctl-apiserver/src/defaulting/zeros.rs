//! Adds the fields that Go always writes: those without `omitempty`, with their zero value.
//!
//! An example is `status.replicas` of a `ReplicaSet`, which a new object has with the value 0. Without these fields,
//! clients with generated types would see no difference, but `kubectl get -o json` and JSON patches with a `test`
//! would.

use std::sync::LazyLock;

use serde_json::Value;

use crate::schema::{PerPosition, Schema};

/// The fields of each type that are in JSON even if they are zero, from the recorded protobuf and JSON tags.
static ALWAYS: LazyLock<PerPosition<Vec<(&'static str, Value)>>> = LazyLock::new(|| {
    PerPosition::new(|position| position.name().map(crate::proto::always_written_fields).unwrap_or_default())
});

/// Adds the fields to an object and everything below it. Parts that equal the stored object are skipped: they already
/// have them. Items of a list are compared by their index.
pub(super) fn add(schema: Schema<'_>, value: &mut Value, stored: Option<&Value>) {
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                let stored = stored.and_then(|stored| stored.get(index));
                if stored != Some(item) {
                    add(schema, item, stored);
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut().filter(|(_, field)| field.is_object() || field.is_array()) {
                let stored = stored.and_then(|stored| stored.get(name));
                if stored != Some(field)
                    && let Some(schema) = schema.field(name)
                {
                    add(schema, field, stored);
                }
            }
            for (name, zero) in ALWAYS.get(&schema).into_iter().flatten() {
                if !fields.contains_key(*name) {
                    fields.insert((*name).to_owned(), zero.clone());
                }
            }
        }
        _ => {}
    }
}
