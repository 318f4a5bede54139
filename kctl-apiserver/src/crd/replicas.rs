//! What the subresource `scale` needs of a custom object: reads the paths that the definition names, hands on causes.
//! Upstream: `ValidateScaleSpec` and `ValidateScaleStatus` of `pkg/registry/customresource/validator.go` in
//! `k8s.io/apiextensions-apiserver`.

use serde_json::Value;

use crate::{decode::misfit, field_error::FieldError};

/// What is wrong with the wanted number; `scale` is what the version says of its subresource.
pub(crate) fn wrong_in_spec(scale: &Value, object: &Value) -> Vec<FieldError> {
    number(scale, "specReplicasPath", object).into_iter().collect()
}

/// What is wrong with the number that is there, and with the selector.
pub(crate) fn wrong_in_status(scale: &Value, object: &Value) -> Vec<FieldError> {
    let mut causes: Vec<FieldError> = number(scale, "statusReplicasPath", object).into_iter().collect();
    if let Some(path) = scale["labelSelectorPath"].as_str() {
        match at(object, path) {
            Ok(Some(found)) if !found.is_string() => {
                causes.push(FieldError::invalid(path, &"".into(), &misfit(path, "a string", found)));
            }
            Err(why) => causes.push(FieldError::invalid(path, &"".into(), &why)),
            Ok(_) => {}
        }
    }
    causes
}

fn number(scale: &Value, which: &str, object: &Value) -> Option<FieldError> {
    let path = scale[which].as_str()?;
    let wrong = |value: i64, why: &str| Some(FieldError::invalid(path, &value.into(), why));
    let found = match at(object, path) {
        Ok(found) => found?,
        Err(why) => return wrong(0, &why),
    };
    match found.as_i64() {
        None => wrong(0, &misfit(path, "an integer", found)),
        Some(count) if count < 0 => wrong(count, "should be a non-negative integer"),
        Some(count) if count > i64::from(i32::MAX) => {
            wrong(count, &format!("should be less than or equal to {}", i32::MAX))
        }
        Some(_) => None,
    }
}

/// What is at a path of fields; nothing where a field is missing.
fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut found = object;
    for name in path.trim_start_matches('.').split('.') {
        // As where a field is missing (`NestedFieldNoCopy` in `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`).
        if found.is_null() {
            return Ok(None);
        }
        let Value::Object(fields) = found else { return Err(misfit(path, "an object", found)) };
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
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        assert_eq!(texts, expected, "{object}");
    }

    #[test]
    fn numbers_and_the_selector_of_a_scale_have_bounds_and_types() {
        check(&json!({}), &[]);
        check(&json!({ "spec": { "n": 0 }, "status": { "n": 2_147_483_647, "selector": "a=b" } }), &[]);
        check(
            &json!({ "spec": { "n": -1 }, "status": { "n": 2_147_483_648_i64 } }),
            &[
                ".spec.n: Invalid value: -1: should be a non-negative integer",
                ".status.n: Invalid value: 2147483648: should be less than or equal to 2147483647",
            ],
        );
        check(
            &json!({ "spec": { "n": "x" }, "status": { "selector": true } }),
            &[
                ".spec.n: Invalid value: 0: .spec.n: must be an integer, found string \"x\"",
                ".status.selector: Invalid value: \"\": .status.selector: must be a string, found bool true",
            ],
        );
        check(&json!({ "spec": ["x"] }), &[".spec.n: Invalid value: 0: .spec.n: must be an object, found array"]);
    }
}
