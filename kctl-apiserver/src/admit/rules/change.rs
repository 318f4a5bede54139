//! Validation of changes in objects of the built-in kinds.

use serde_json::Value;

use crate::admit::rules::Errors;

pub(crate) fn keeps(field: &str, old: &Value, new: &Value, errors: &mut Errors) {
    if old != new {
        errors.invalid(field, new, "field is immutable");
    }
}

pub(crate) fn selector_stays(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (&old["spec"]["selector"], &new["spec"]["selector"]);
    if old != new {
        errors.invalid("spec.selector", new, "field is immutable");
    }
}
