//! Validation of request policies: how much of a shared device one request may consume.
//!
//! A policy has a default for requests without an amount, and either a list of amounts or a range with steps.
//! Behaviour: `validateRequestPolicy` in `pkg/apis/resource/validation/validation.go`.
//!
//! ```text
//! capacity:
//!   memory:
//!     value: 64Gi
//!     requestPolicy:
//!       default: 1Gi
//!       validRange: {min: 1Gi, max: 32Gi, step: 1Gi}
//! ```

use serde_json::Value;

use crate::{
    feature_gates::{self, Gate},
    field::Field,
    field_errors::text,
    quantity::{self, Quantity},
};

/// Maximum number of amounts that a policy lists (`CapacityRequestPolicyDiscreteMaxOptions`).
const OPTIONS_MAX: usize = 10;

/// Returns the quantity, or zero if it is absent or invalid.
fn amount(value: &Value) -> Quantity {
    quantity::parse(text(value)).unwrap_or_default()
}

/// Returns `true` if the first quantity is greater than the second.
fn is_more(left: &Value, right: &Value) -> bool {
    amount(left) > amount(right)
}

/// Validates a policy of a capacity. `most` is the capacity, which no amount may exceed. A policy without a list and
/// without a range is valid: each request may consume any amount up to the capacity.
pub(crate) fn validate(policy: &Field<'_>, most: &Value) {
    let (values, range, usual) = (policy.at("validValues"), policy.at("validRange"), policy.at("default"));
    let (has_values, has_range) = (!values.is_empty(), !range.is_null());
    policy.forbidden_if(has_values && has_range, "must have only one of `validValues` and `validRange`");
    if has_values == has_range {
        return;
    }
    if usual.is_null() {
        usual.required_with("must be set with validValues or validRange");
    } else if has_values {
        validate_options(&values, &usual, most);
    } else {
        validate_bounds(&range, &usual, most);
    }
}

/// Validates `validValues`: sorted, unique, within the capacity, and with the default in it. `usual` is the default. A
/// list that is too long is not compared with the default, which is then reported as invalid. Amounts that round up to
/// the same integer are duplicates unless fractions count.
fn validate_options(values: &Field<'_>, usual: &Value, most: &Value) {
    let is_short = values.items().count() <= OPTIONS_MAX;
    let key = |size: Quantity| if has_fractions() { size } else { size.rounded_up(0) };
    let mut seen: Vec<Quantity> = Vec::new();
    for value in values.items() {
        let size = amount(&value);
        let is_unsorted = seen.last().is_some_and(|previous| *previous > size);
        let is_wrong = is_unsorted || (is_short && is_more(&value, most));
        value.invalid_if(is_wrong, format_args!("must be in ascending order, and at most the capacity {}", text(most)));
        let is_same = |previous: &Quantity| key(*previous) == key(size);
        value.duplicate_if(is_short && seen.iter().any(is_same));
        seen.push(size);
    }
    let has_default = is_short && seen.contains(&amount(usual));
    values.with(usual).invalid_if(!has_default, "the default must be one of the values");
    values.max_items(OPTIONS_MAX);
}

/// Returns `true` if amounts may have fractions, which are then compared in thousandths. Otherwise they are rounded up
/// to integers.
fn has_fractions() -> bool {
    feature_gates::is_enabled(Gate::DRAFractionalCapacityRange)
}

/// Validates `validRange`: `min` is required, `max` and `step` are optional. The default and `max` are `min` plus a
/// multiple of `step`. One step above `min` must fit into the capacity. Errors show the amount that is wrong, which is
/// not always the amount in the field of the path.
fn validate_bounds(range: &Field<'_>, usual: &Value, most: &Value) {
    let (min, max, step) = (range.at("min"), range.at("max"), range.at("step"));
    if min.is_null() {
        return min.required_with("must be set with validRange");
    }
    validate_order(range, usual, most);
    let parts = [range.at_with("default", usual), min.clone(), max.clone(), step.clone()];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_null()).collect();
    // If any amount has a fraction, all are compared in thousandths.
    let places = if has_fractions() && !parts.iter().all(|part| is_multiple(part, 0)) { 3 } else { 0 };
    let report = |detail: &str, is_wrong: &dyn Fn(&Value) -> bool| {
        let wrong: Vec<_> = parts.iter().filter(|part| is_wrong(part)).collect();
        for part in &wrong {
            part.invalid(detail);
        }
        !wrong.is_empty()
    };
    let is_too_fine = places > 0 && report("must be a multiple of 1m", &|part| !is_multiple(part, places));
    if is_too_fine || step.is_null() {
        return;
    }
    if amount(&step).signum() <= 0 {
        return step.invalid("must be greater than zero");
    }
    let is_large = amount(&min).plus(amount(&step)) > amount(most);
    step.invalid_if(is_large, "one step above `min` must be at most the capacity");
    let is_out = |part: &Value| amount(part).is_negative() || amount(part).in_steps(0) > i64::MAX.into();
    if places == 0 && report("must be at least 0, and fit into 64 bits", &is_out) {
        return;
    }
    for value in [usual, max.value()].into_iter().filter(|value| !value.is_null()) {
        // Both may be clamped to the ends of 128 bits.
        let from = amount(value).in_steps(places).saturating_sub(amount(&min).in_steps(places));
        let is_multiple = from % amount(&step).in_steps(places) == 0;
        step.with(value).invalid_if(!is_multiple, "must be `min` plus a multiple of the step");
    }
}

/// Validates the order of the amounts: `min`, the default, `max`, the capacity.
fn validate_order(range: &Field<'_>, usual: &Value, most: &Value) {
    let (min, max, default) = (range.at("min"), range.at("max"), range.at_with("default", usual));
    let has_max = !max.is_null();
    min.invalid_if(is_more(&min, most), "must be at most the capacity");
    let is_outside = is_more(&min, usual) || (has_max && is_more(usual, &max));
    default.invalid_if(is_outside, "must be at least `min` and at most `max`");
    let is_outside = has_max && (is_more(&min, &max) || is_more(&max, most));
    max.invalid_if(is_outside, "must be at least `min` and at most the capacity");
}

/// Returns `true` if the quantity is a multiple of 10^-`places`.
fn is_multiple(value: &Value, places: u8) -> bool {
    let exact = amount(value);
    exact.rounded_up(places) == exact
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{has_fractions, validate};
    use crate::{field::Field, field_errors::Errors};

    #[test]
    fn fractions_are_rounded_up_without_the_gate() {
        let range = json!({ "default": "250m", "validRange": { "min": "200m", "max": "1", "step": "100m" } });
        let values = json!({ "default": "100m", "validValues": ["100m", "200m"] });
        let expected = if has_fractions() { ["validRange.step", ""] } else { ["", "validValues[1]"] };
        for (policy, expected) in [range, values].into_iter().zip(expected) {
            let most = json!("1");
            let errors = Errors::collect(|errors| validate(&Field::new(&policy, "", errors), &most));
            let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields.join(" "), expected, "{errors:?}");
        }
    }

    #[test]
    fn amounts_beyond_128_bits_are_invalid() {
        let range = json!({ "min": "-1e36", "max": "1e36", "step": "500m" });
        let policy = json!({ "default": "1e36", "validRange": range });
        let errors = Errors::collect(|errors| validate(&Field::new(&policy, "", errors), &json!("1e36")));
        assert!(!errors.is_empty());
    }
}
