//! Fields that an update may not change, where no tag says so.

use serde_json::Value;

use crate::validation::Errors;

/// Reports a field that has changed. A field that is absent equals `null`.
pub(crate) fn immutable_field(field: &str, old: &Value, new: &Value, errors: &mut Errors) {
    if old != new {
        errors.invalid(field, new, "field is immutable");
    }
}

/// Validates that a workload keeps its `spec.selector`.
pub(crate) fn selector(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (&old["spec"]["selector"], &new["spec"]["selector"]);
    if old != new {
        errors.invalid("spec.selector", new, "field is immutable");
    }
}
