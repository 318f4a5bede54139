//! Validation of request policies: how much of a shared device one request may consume.
//!
//! Behaviour: `validateRequestPolicy` in `pkg/apis/resource/validation/validation.go`.
//!
//! A policy has a default for requests without an amount, and either a list of amounts or a range
//! with steps.
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
    field_errors::{Errors, text},
    quantity::{self, Quantity},
    validation::entries,
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

/// Validates a policy of a capacity. `most` is the capacity, which no amount may exceed.
///
/// A policy without a list and without a range is valid: each request may consume any amount up to
/// the capacity.
pub(crate) fn policy(policy: &Value, most: &Value, path: &str, errors: &mut Errors) {
    let (values, range) = (&policy["validValues"], &policy["validRange"]);
    let which = match (entries(values).next().is_some(), !range.is_null()) {
        (true, true) => {
            let text = r#"exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time"#;
            return errors.forbidden(path, text);
        }
        (true, false) => "validValues",
        (false, true) => "validRange",
        (false, false) => return,
    };
    let usual = &policy["default"];
    if usual.is_null() {
        return errors.required(&format!("{path}.default"), &format!("required when {which} is defined"));
    }
    let path = format!("{path}.{which}");
    if which == "validValues" {
        options(values, usual, most, &path, errors);
    } else {
        bounds(range, usual, most, &path, errors);
    }
}

/// Validates `validValues`: sorted, unique, within the capacity, and with the default in it.
///
/// `usual` is the default. A list that is too long is not compared with the default, which is then
/// reported as invalid.
fn options(values: &Value, usual: &Value, most: &Value, path: &str, errors: &mut Errors) {
    let all: Vec<&Value> = entries(values).map(|(_, value)| value).collect();
    for (index, pair) in all.windows(2).enumerate().filter(|(_, pair)| is_more(pair[0], pair[1])) {
        let next = pair[1].clone();
        errors.invalid(&format!("{path}[{}]", index + 1), &next, "values must be sorted in ascending order");
    }
    let wrong_default = "default value is not valid according to the requestPolicy";
    if all.len() > OPTIONS_MAX {
        // Further amounts are not validated.
        errors.invalid(path, usual, wrong_default);
        return errors.too_many(path, all.len(), OPTIONS_MAX);
    }
    let mut seen: Vec<Quantity> = Vec::new();
    for (index, value) in all.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if is_more(value, most) {
            let why = format!("option is larger than capacity value: {}", text(most));
            errors.invalid(&path, value, &why);
        }
        let size = amount(value);
        if seen.contains(&size) {
            errors.duplicate(&path);
        }
        seen.push(size);
    }
    if !seen.contains(&amount(usual)) {
        errors.invalid(path, usual, wrong_default);
    }
}

/// Validates `validRange`: `min` is required, `max` and `step` are optional.
///
/// The default and `max` are `min` plus a multiple of `step`. One step above `min` must fit into
/// the capacity. Errors show the amount that is wrong, which is not always that of the field in the
/// path. Amounts with fractions are compared in thousandths (`DRAFractionalCapacityRange`).
fn bounds(range: &Value, usual: &Value, most: &Value, path: &str, errors: &mut Errors) {
    let (min, max, step) = (&range["min"], &range["max"], &range["step"]);
    let field = |name: &str| format!("{path}.{name}");
    if min.is_null() {
        return errors.required(&field("min"), "required when validRange is defined");
    }
    order(range, usual, most, path, errors);
    let parts = [("default", usual), ("min", min), ("max", max), ("step", step)];
    let parts: Vec<_> = parts.into_iter().filter(|(_, value)| !value.is_null()).collect();
    // If any amount has a fraction, all are compared in thousandths.
    let places = if parts.iter().any(|(_, value)| !is_multiple(value, 0)) { 3 } else { 0 };
    let n_errors = errors.len();
    if places > 0 {
        for (name, value) in parts.iter().filter(|(_, value)| !is_multiple(value, places)) {
            errors.invalid(&field(name), value, "value cannot be represented as a milli value");
        }
        if errors.len() > n_errors {
            return;
        }
    }
    if step.is_null() {
        return;
    }
    if amount(step).signum() <= 0 {
        return errors.invalid(&field("step"), step, "must be greater than zero");
    }
    let added = amount(min).plus(amount(step));
    if added > amount(most) {
        let why = format!("one step {added} is larger than capacity value: {}", text(most));
        errors.invalid(&field("step"), step, &why);
    }
    if places == 0 {
        let n_errors = errors.len();
        for (name, value) in parts {
            if amount(value).is_negative() {
                errors.invalid(&field(name), value, "must be greater than or equal to 0");
            } else if amount(value).in_steps(0) > i64::MAX.into() {
                errors.invalid(&field(name), value, "must fit into 64 bits");
            }
        }
        if errors.len() > n_errors {
            return;
        }
    }
    for value in [usual, max].into_iter().filter(|value| !value.is_null()) {
        let from = amount(value).in_steps(places) - amount(min).in_steps(places);
        if from % amount(step).in_steps(places) != 0 {
            let why = format!("value is not a multiple of a given step ({}) from ({})", text(step), text(min));
            errors.invalid(&field("step"), value, &why);
        }
    }
}

/// Validates the order of the amounts: `min`, the default, `max`, the capacity.
fn order(range: &Value, usual: &Value, most: &Value, path: &str, errors: &mut Errors) {
    let (min, max) = (&range["min"], &range["max"]);
    let mut wrong = |name: &str, value: &Value, why: &str| errors.invalid(&format!("{path}.{name}"), value, why);
    if is_more(min, most) {
        wrong("min", min, "must be at most the capacity");
    }
    if is_more(min, usual) {
        wrong("default", usual, "must be at least min");
    }
    if max.is_null() {
        return;
    }
    if is_more(min, max) || is_more(max, most) {
        wrong("max", max, "must be at least min and at most the capacity");
    }
    if is_more(usual, max) {
        wrong("default", usual, "must be at most max");
    }
}

/// Returns `true` if the quantity is a multiple of 10^-`places`.
fn is_multiple(value: &Value, places: u8) -> bool {
    let exact = amount(value);
    exact.rounded_up(places) == exact
}
