//! Validates the `selectableFields` of a version against its schema.
//!
//! Upstream: `ValidateCustomResourceSelectableFields` of apiextensions-apiserver.
//!
//! A field selector compares a single string, so only scalars can be selected: lists and objects have no such value.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field_errors::Errors;

/// Maximum number of selectable fields of one version (`MaxSelectableFields`).
const FIELDS_LEN_MAX: usize = 8;

/// Checks the number of selectable fields, and that each is a distinct path to a string, boolean or integer.
///
/// The limit counts distinct valid paths, as upstream collects them in a set. A duplicate gets
/// `FieldValueDuplicate`, in addition to an error about its form.
pub(super) fn check(fields: &Value, schema: &Value, field_path: &str, errors: &mut Errors) {
    let all = fields.as_array().map(Vec::as_slice).unwrap_or_default();
    let path = |field: &Value| field["jsonPath"].as_str().unwrap_or_default().to_owned();
    let n_paths = all.iter().map(path).filter(|path| is_comparable(schema, path)).collect::<BTreeSet<_>>().len();
    if n_paths > FIELDS_LEN_MAX {
        errors.too_many(field_path, n_paths, FIELDS_LEN_MAX);
    }
    for (index, field) in all.iter().enumerate() {
        let (field_path, path_text) = (format!("{field_path}[{index}].jsonPath"), path(field));
        if path_text.is_empty() {
            errors.required(&field_path, "");
        } else if !is_comparable(schema, &path_text) {
            let detail = "must be the path of a field of type string, boolean or integer, such as .spec.color";
            errors.invalid(&field_path, &path_text.clone().into(), detail);
        }
        if !path_text.is_empty() && all[..index].iter().any(|other| path(other) == path_text) {
            errors.duplicate(&field_path);
        }
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
