//! The schema of a kind before kube's derive rewrites it: `#[resource]` puts it on the type that the derive makes, so that
//! `Kind::crd()` is what an API server needs, too.

use schemars::{Schema, transform::Transform};
use serde_json::Value;

use super::{
    union,
    values::{self, Formats},
};

/// Marks a schema that was completed here. API servers do not know the key, and the derive drops it.
pub(super) const COMPLETED: &str = "x-kctl-completed";

/// Completes the schema of a kind: bounds and formats that match its types, null where the API server accepts it, and enums whose
/// variants share fields.
pub struct Structure;

impl Transform for Structure {
    fn transform(&mut self, schema: &mut Schema) {
        let mut value = schema.clone().to_value();
        // With references it is not what the definition is made of, but what names the types in messages.
        if !has_reference(&value) {
            values::complete(&mut value, Formats::OfTypes);
            let mut joined = value.clone();
            // Variants that can't be joined are reported by the check of variants, with the name of the type.
            if union::join_all(&mut joined).is_ok() {
                value = joined;
            }
        }
        if let Ok(mut completed) = Schema::try_from(value) {
            completed.insert(COMPLETED.into(), true.into());
            *schema = completed;
        }
    }
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key("$ref") || fields.values().any(has_reference),
        Value::Array(all) => all.iter().any(has_reference),
        _ => false,
    }
}
