//! Validation that several kinds of `apps` share.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    validation::{pod, selector},
};

/// Returns `true` if an amount is absent, 0 or `0%`.
///
/// A percentage is not rounded here: `1%` of one replica is not 0 in this sense.
pub(crate) fn is_none(amount: &Value) -> bool {
    let digits = |text: &str| text.strip_suffix('%').unwrap_or_default().parse::<i64>().unwrap_or(0);
    amount.is_null() || amount == 0 || amount.as_str().is_some_and(|text| digits(text) == 0)
}

/// Validates selector and template of a Deployment or `ReplicaSet`.
///
/// After an error in the selector the template is not validated, because the selector cannot be evaluated.
pub(crate) fn template_of_set(spec: &Field<'_>) {
    let template = spec.at("template");
    if selector_fits(spec, "deployment") {
        template.check(pod::template);
        template.check(|value, path, errors| always_restarts(value, path, "ReplicaSet", errors));
    }
}

/// Validates that the selector of a workload is valid and matches its template. Returns `false` for a selector with
/// errors: the template is not validated then.
pub(crate) fn selector_fits(spec: &Field<'_>, kind: &str) -> bool {
    let (given, template, mut is_usable) = (spec.at("selector"), spec.at("template"), false);
    given.check(|value, _, errors| is_usable = selector::of_workload(value, kind, errors));
    if is_usable {
        template.check(|value, path, errors| selector::fits_template(&given, value, path, errors));
    } else {
        template.at("spec").discard_errors_below();
        given.invalid("invalid label selector");
    }
    is_usable
}

/// Validates that a template has `restartPolicy: Always` (`FieldValueNotSupported` otherwise) and no
/// `activeDeadlineSeconds` (`FieldValueForbidden`).
///
/// The controllers of these kinds replace terminated Pods, so a Pod that terminates by design would be created
/// again forever. `kind` is the name in the second message.
pub(crate) fn always_restarts(template: &Value, path: &str, kind: &str, errors: &mut Errors) {
    let policy = &template["spec"]["restartPolicy"];
    if !text(policy).is_empty() && policy != "Always" {
        errors.unsupported(&format!("{path}.spec.restartPolicy"), policy, &["Always"]);
    }
    if template["spec"]["activeDeadlineSeconds"].is_number() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&format!("{path}.spec.activeDeadlineSeconds"), &detail);
    }
}
