//! Completes the schema of a kind before kube's derive rewrites it.
//!
//! `#[resource]` adds the transform to the type that the derive generates, so `Kind::crd()` returns the
//! completed CRD as well.

use schemars::{Schema, transform::Transform};
use serde_json::Value;

use super::{
    union,
    values::{self, Formats},
};

/// Schema key that marks a completed schema. The derive drops it, and API servers do not know it.
pub(super) const COMPLETED: &str = "x-kctl-completed";

/// A schema transform that completes a kind.
///
/// It adds bounds and formats that match the Rust types, null where an API server accepts it, and one set of
/// fields for enums whose variants share some.
#[derive(Debug)]
pub struct Structure;

impl Transform for Structure {
    fn transform(&mut self, schema: &mut Schema) {
        let mut value = schema.clone().to_value();
        // A schema with references only names types in messages. The CRD comes from the one with inlined subschemas.
        if !has_reference(&value) {
            values::complete(&mut value, Formats::OfTypes);
            let mut joined = value.clone();
            // `variants` reports variants that can't be joined, with the name of the type.
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
