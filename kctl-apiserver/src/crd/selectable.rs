//! Selectable fields of a version: reads their paths and the schema, hands on what the real server refuses.
//!
//! Upstream: `ValidateCustomResourceSelectableFields` of apiextensions-apiserver.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field_error::FieldError;

/// Most fields of one version.
const FIELDS_LEN_MAX: usize = 8;

pub(super) fn check(fields: &Value, schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let all = fields.as_array().map(Vec::as_slice).unwrap_or_default();
    let path = |field: &Value| field["jsonPath"].as_str().unwrap_or_default().to_owned();
    let n_paths = all.iter().map(path).filter(|path| place(schema, path).is_ok()).collect::<BTreeSet<_>>().len();
    if n_paths > FIELDS_LEN_MAX {
        let message = format!("Too many: {n_paths}: must have at most {FIELDS_LEN_MAX} items");
        errors.push(FieldError::new("FieldValueTooMany", at, message));
    }
    for (index, field) in all.iter().enumerate() {
        let (at, path_text) = (format!("{at}[{index}].jsonPath"), path(field));
        if path_text.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if let Err(why) = place(schema, &path_text) {
            errors.push(FieldError::invalid(&at, &path_text.clone().into(), &why));
        }
        if !path_text.is_empty() && all[..index].iter().any(|other| path(other) == path_text) {
            errors.push(FieldError::duplicate(&at, &path_text.into()));
        }
    }
}

/// Whether a path leads to a field that can be compared.
fn place(schema: &Value, path: &str) -> Result<(), String> {
    let Some(steps) = path.strip_prefix('.') else {
        let found = path.split('.').next().unwrap_or_default();
        return Err(format!("is an invalid path: expected [ or . but got: {found}"));
    };
    if steps.is_empty() {
        return Err("is an invalid path: unexpected end of JSON path".into());
    }
    if path.contains('[') {
        return Err("is an invalid path: array notation is not allowed".into());
    }
    let missing = || "is an invalid path: does not refer to a valid field".to_owned();
    if steps.split('.').next() == Some("metadata") {
        return Err(missing());
    }
    let mut found = schema;
    for step in steps.split('.') {
        let values = Some(&found["additionalProperties"]).filter(|values| values.is_object());
        found = found["properties"].get(step).or(values).ok_or_else(missing)?;
    }
    let is_simple = ["string", "boolean", "integer"].contains(&found["type"].as_str().unwrap_or_default());
    let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
    if is_simple { Ok(()) } else { Err(detail.into()) }
}
