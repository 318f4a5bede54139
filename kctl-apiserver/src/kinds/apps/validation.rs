//! Validation that several kinds of `apps` share.

use serde_json::Value;

use crate::{
    field::Field,
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
    if selector_fits(spec) {
        template.check(pod::validate_template);
        pod::validate_restart_always(&template);
    }
}

/// Validates that the selector of a workload is valid and matches its template. Returns `false` for a selector with
/// errors: the template is not validated then.
pub(crate) fn selector_fits(spec: &Field<'_>) -> bool {
    let (given, template) = (spec.at("selector"), spec.at("template"));
    let is_usable = selector::validate_workload_selector(&given);
    if is_usable {
        selector::validate_matches_template(&given, &template);
    } else {
        template.at("spec").discard_errors_below();
        given.invalid("invalid label selector");
    }
    is_usable
}
