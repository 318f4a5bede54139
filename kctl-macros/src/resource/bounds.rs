//! Markers of one place that contradict each other: no value could ever be stored, or the API server would reject the
//! CRD.
//!
//! Only literals are compared. Bounds of a number are compared as `f64`, which is exact up to 2^53; larger bounds
//! that differ by less are not reported.

use super::{json::Json, marker::Markers};
use crate::{codes, diagnostics::Errors};

/// Names of a lower and an upper bound. The flag is `true` if equal bounds leave no value, because one of them is
/// exclusive.
const PAIRS: [(&str, &str, bool); 7] = [
    ("minimum", "maximum", false),
    ("minimum", "exclusive_maximum", true),
    ("exclusive_minimum", "maximum", true),
    ("exclusive_minimum", "exclusive_maximum", true),
    ("min_length", "max_length", false),
    ("min_items", "max_items", false),
    ("min_properties", "max_properties", false),
];

/// Markers that exclude each other: at most one may be given. `schemaless` removes the schema that the other markers
/// would extend.
const MUTUALLY_EXCLUSIVE: [(&str, &str); 6] = [
    ("minimum", "exclusive_minimum"),
    ("maximum", "exclusive_maximum"),
    ("schemaless", "type_"),
    ("schemaless", "list"),
    ("schemaless", "map"),
    ("int_or_string", "type_"),
];

/// Reports K0087 for contradictions, at the second of the two markers, and K0088 for a default outside of the bounds.
pub(super) fn check(markers: &Markers, errors: &mut Errors) {
    for (lower, upper, or_equal) in PAIRS {
        let (Some(low), Some(high)) = (markers.number(lower), markers.number(upper)) else { continue };
        if low > high || (or_equal && low >= high) {
            let what = format!("no value has `{lower} = {low}` and `{upper} = {high}`");
            errors.push(
                markers.get_ident(upper),
                codes::CONTRADICTING_MARKERS,
                &what,
                &format!("make `{upper}` the larger one, or leave one of them out"),
            );
        }
    }
    for (one, other) in MUTUALLY_EXCLUSIVE {
        if markers.has(one) && markers.has(other) {
            let what = format!("`{one}` and `{other}` contradict each other");
            let help = format!("write `{one}` or `{other}`");
            errors.push(markers.get_ident(other), codes::CONTRADICTING_MARKERS, &what, &help);
        }
    }
    if markers.number("multiple_of").is_some_and(|factor| factor <= 0.0) {
        errors.push(
            markers.get_ident("multiple_of"),
            codes::CONTRADICTING_MARKERS,
            "`multiple_of` must be more than 0",
            "write for example `multiple_of = 5`",
        );
    }
    check_default(markers, errors);
}

/// Reports K0088 for a default that the same place forbids. API servers validate defaults when a CRD is created.
fn check_default(markers: &Markers, errors: &mut Errors) {
    let (Some(default), Some(at)) = (markers.get("default"), markers.get_ident("default")) else { return };
    if let Some(Json::List(allowed)) = markers.get("allowed")
        && !allowed.contains(default)
    {
        errors.push(
            at,
            codes::FORBIDDEN_DEFAULT,
            "the default is not one of the allowed values",
            "add it to `allowed(…)`, or write another default",
        );
    }
    let Json::Number(digits) = default else { return };
    let Ok(value) = digits.parse::<f64>() else { return };
    let low = markers.number("minimum").is_some_and(|bound| value < bound)
        || markers.number("exclusive_minimum").is_some_and(|bound| value <= bound);
    let high = markers.number("maximum").is_some_and(|bound| value > bound)
        || markers.number("exclusive_maximum").is_some_and(|bound| value >= bound);
    if low || high {
        let help = "write a default between the bounds";
        errors.push(
            at,
            codes::FORBIDDEN_DEFAULT,
            &format!("the default {digits} is {} its bound", if low { "below" } else { "above" }),
            help,
        );
    }
}
