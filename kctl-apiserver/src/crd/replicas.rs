//! Validates the fields of a custom object that its `scale` subresource exposes, at the JSON paths that the CRD names.
//!
//! Upstream: `ValidateScaleSpec` and `ValidateScaleStatus` of `pkg/registry/customresource/validator.go` in
//! `k8s.io/apiextensions-apiserver`.
//!
//! The schema usually covers these fields too. But a path may lead to a field that the schema does
//! not declare as a number, and then a client of `/scale` would read nonsense.

use serde_json::Value;

use crate::field_errors::{Errors, FieldError};

/// The message about a value that is not a count.
const COUNT: &str = "must be an integer from 0 to 2147483647";

/// Validates the desired replicas; `scale` is `subresources.scale` of the version.
///
/// At most one error, whose field is the JSON path of the CRD, with its leading dot.
pub(crate) fn wrong_in_spec(scale: &Value, object: &Value) -> Errors {
    check_path(scale, "specReplicasPath", object, is_count, COUNT).into_iter().collect()
}

/// Validates the observed replicas and the serialized label selector.
///
/// The selector is a string in its serialized form; its syntax is not checked.
pub(crate) fn wrong_in_status(scale: &Value, object: &Value) -> Errors {
    let replicas = check_path(scale, "statusReplicasPath", object, is_count, COUNT);
    let selector = check_path(scale, "labelSelectorPath", object, Value::is_string, "must be a string");
    replicas.into_iter().chain(selector).collect()
}

/// Returns `true` for a non-negative `int32`.
fn is_count(value: &Value) -> bool {
    value.as_i64().is_some_and(|count| (0..=i64::from(i32::MAX)).contains(&count))
}

/// Returns the error of the value at the path in field `which` of `scale`. Absent values are valid. A step through a
/// value that is not an object is an error with that value.
fn check_path(
    scale: &Value,
    which: &str,
    object: &Value,
    is_valid: fn(&Value) -> bool,
    why: &str,
) -> Option<FieldError> {
    let path = scale[which].as_str()?;
    let (found, fits) = match value_at(object, path) {
        Ok(found) => found.map(|found| (found, is_valid(found)))?,
        Err(no_object) => (no_object, false),
    };
    (!fits).then(|| FieldError::invalid(path, found, why))
}

/// Returns the value at a path of fields; `None` if a field is missing or null.
///
/// # Errors
/// Returns the first value on the path that is not an object.
fn value_at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, &'a Value> {
    let mut found = object;
    for name in path.trim_start_matches('.').split('.') {
        // A null value is treated as missing (`NestedFieldNoCopy` in
        // `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`).
        if found.is_null() {
            return Ok(None);
        }
        let Value::Object(fields) = found else { return Err(found) };
        match fields.get(name) {
            Some(field) => found = field,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: &Value, expected: &[&str]) {
        let scale = json!({
            "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.selector",
        });
        let mut causes = wrong_in_spec(&scale, object);
        causes.extend(wrong_in_status(&scale, object));
        let paths: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(paths, expected, "{object}");
    }

    #[test]
    fn scale_replicas_and_selector_have_bounds_and_types() {
        check(&json!({}), &[]);
        check(&json!({ "spec": { "n": 0 }, "status": { "n": 2_147_483_647, "selector": "a=b" } }), &[]);
        check(&json!({ "spec": { "n": -1 }, "status": { "n": 2_147_483_648_i64 } }), &[".spec.n", ".status.n"]);
        check(&json!({ "spec": { "n": "x" }, "status": { "selector": true } }), &[".spec.n", ".status.selector"]);
        check(&json!({ "spec": ["x"] }), &[".spec.n"]);
    }
}
