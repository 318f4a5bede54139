//! Validates immutable fields that have no tag.
//!
//! Each rule compares the stored object with the new one after defaulting. Upstream:
//! `ValidateImmutableField` in `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`. Fields with
//! the tag `+k8s:immutable` are validated by `declared` instead.

use serde_json::Value;

use crate::validation::Errors;

/// Reports a field that has changed. A field that is absent equals `null`.
///
/// Adds `FieldValueInvalid` at `field` with the new value. Adding, changing and removing the value
/// all count as changes. Comparison is by JSON value: the order of a map's keys does not matter,
/// that of a list does.
pub(crate) fn immutable_field(field: &str, old: &Value, new: &Value, errors: &mut Errors) {
    if old != new {
        errors.invalid(field, new, "field is immutable");
    }
}

/// Validates that a workload keeps its `spec.selector`.
///
/// Changing the selector of a `Deployment`, `ReplicaSet` or `DaemonSet` would orphan the Pods that
/// it selects today, so `apps/v1` made the field immutable.
pub(crate) fn selector(old: &Value, new: &Value, errors: &mut Errors) {
    immutable_field("spec.selector", &old["spec"]["selector"], &new["spec"]["selector"], errors);
}
