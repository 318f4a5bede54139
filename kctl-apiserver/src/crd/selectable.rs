//! Validates the `selectableFields` of a version against its schema.
//!
//! Upstream: `ValidateCustomResourceSelectableFields` of apiextensions-apiserver.
//!
//! A field selector compares a single string, so only scalars can be selected: lists and objects have no such value.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{field::Field, field_errors::text, json_path::entries};

/// Maximum number of selectable fields of one version (`MaxSelectableFields`).
const FIELDS_LEN_MAX: usize = 8;

/// Checks the number of selectable fields, and that each is a distinct path to a string, boolean or integer.
///
/// The limit counts distinct valid paths, as upstream collects them in a set. A duplicate gets
/// `FieldValueDuplicate`, in addition to an error about its form.
pub(super) fn check(fields: &Field<'_>, schema: &Value) {
    let mut seen = BTreeSet::new();
    for path in fields.items().map(|field| field.at("jsonPath")) {
        if path.require_value() {
            let detail = "must be the path of a field of type string, boolean or integer, such as .spec.color";
            path.invalid_if(!is_comparable(schema, path.text()), detail);
            path.duplicate_if(!seen.insert(path.text()));
        }
    }
    let paths = entries(fields).map(|(_, field)| text(&field["jsonPath"]));
    let n_paths = paths.filter(|path| is_comparable(schema, path)).collect::<BTreeSet<_>>().len();
    if n_paths > FIELDS_LEN_MAX {
        fields.with_errors(|errors, path| errors.too_many(path, n_paths, FIELDS_LEN_MAX));
    }
}

/// Returns `true` if the path of a field leads to a scalar, such as the value of a map key, outside of lists and
/// metadata.
fn is_comparable(schema: &Value, path: &str) -> bool {
    let Some(steps) = path.strip_prefix('.').filter(|steps| !steps.contains('[') && !steps.starts_with("metadata."))
    else {
        return false;
    };
    let found = steps.split('.').try_fold(schema, |found, step| {
        let values = Some(&found["additionalProperties"]).filter(|values| values.is_object());
        found["properties"].get(step).or(values)
    });
    found.is_some_and(|found| ["string", "boolean", "integer"].contains(&found["type"].as_str().unwrap_or_default()))
}
