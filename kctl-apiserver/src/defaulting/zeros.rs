//! Adds the fields that Go always writes: those without `omitempty`, with their zero value.

use std::sync::LazyLock;

use serde_json::Value;

use crate::schema::{PerPlace, Schema};

/// The fields of each type that are in JSON even if they are zero.
static ALWAYS: LazyLock<PerPlace<Vec<(&'static str, Value)>>> =
    LazyLock::new(|| PerPlace::new(|place| place.name().map(crate::proto::always).unwrap_or_default()));

/// Adds them everywhere but in what is as in the stored object, which has them.
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
