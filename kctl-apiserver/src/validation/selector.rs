//! Rules of label selectors, and whether they select labels.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::check_label_value,
    selector::selects,
    validation::entries,
};

/// Validates a label selector: the labels and each requirement (`ValidateLabelSelector` in
/// `k8s.io/apimachinery/pkg/apis/meta/v1/validation`).
pub(crate) fn selector(selector: &Value, at: &str, errors: &mut Errors) {
    errors.labels(&format!("{at}.matchLabels"), &selector["matchLabels"]);
    for (index, requirement) in entries(&selector["matchExpressions"]) {
        requirement_of(requirement, &format!("{at}.matchExpressions[{index}]"), false, errors);
    }
}

/// Validates one label requirement; `any_operator` accepts unknown operators.
pub(crate) fn requirement_of(requirement: &Value, at: &str, any_operator: bool, errors: &mut Errors) {
    values(requirement, at, any_operator, errors);
    errors.qualified_name(&format!("{at}.key"), text(&requirement["key"]));
    for (nth, value) in entries(&requirement["values"]) {
        if let Some(message) = check_label_value(text(value)) {
            errors.invalid(&format!("{at}.values[{nth}]"), value, message);
        }
    }
}

/// Validates the operator of a requirement and its values.
///
/// `In` and `NotIn` need values (`FieldValueRequired`), `Exists` and `DoesNotExist` take none (`FieldValueForbidden`).
pub(crate) fn values(requirement: &Value, at: &str, any_operator: bool, errors: &mut Errors) {
    let has_values = requirement["values"].as_array().is_some_and(|values| !values.is_empty());
    match text(&requirement["operator"]) {
        "In" | "NotIn" if !has_values => {
            errors.required(&format!("{at}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if has_values => {
            errors.forbidden(
                &format!("{at}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            );
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ if any_operator => {}
        _ => errors.invalid(&format!("{at}.operator"), &requirement["operator"], "not a valid selector operator"),
    }
}

/// Validates the selector of a workload; returns `false` for a selector with errors, which cannot be evaluated.
///
/// An absent one is `FieldValueRequired`, an empty one `FieldValueInvalid`; for both the result is `true`. `kind` is the
/// name of the workload in the error.
pub(crate) fn of_workload(given: &Value, kind: &str, errors: &mut Errors) -> bool {
    let (at, before) = ("spec.selector", errors.len());
    if given.is_null() {
        errors.required(at, "");
        return true;
    }
    selector(given, at, errors);
    let is_usable = errors.len() == before;
    if is_empty(given) {
        errors.invalid_as_such(at, &format!("empty selector is invalid for {kind}"));
    }
    is_usable
}

/// Validates that a selector matches the labels of a template. An absent selector matches nothing.
pub(crate) fn fits_template(given: &Value, template: &Value, at: &str, errors: &mut Errors) {
    let labels = &template["metadata"]["labels"];
    if given.is_null() || !selects(given, labels) {
        let at = format!("{at}.metadata.labels");
        errors.invalid(&at, labels, "`selector` does not match template `labels`");
    }
}

pub(crate) fn is_empty(selector: &Value) -> bool {
    ["matchLabels", "matchExpressions"].iter().all(|part| match &selector[*part] {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    })
}
