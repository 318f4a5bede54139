//! `PriorityClass` of `scheduling.k8s.io`: a named priority for Pods.
//!
//! - `value` and `preemptionPolicy` are immutable, because Pods have copies of them.
//! - Values above one billion, and names that begin with `system-`, are for the two classes of the
//!   system.
//! - The generation is 1 and never changes.
//!
//! Upstream: `pkg/registry/scheduling/priorityclass/strategy.go` and `pkg/apis/scheduling/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting,
    field_errors::{Errors, text},
    registry::kind::{
        Cell, Defaults, DeleteStrategy, Generation, Kind, ManagedFields, Metadata, TableColumns, Validation,
    },
    validation::{declared, immutable::immutable_field},
};

pub(crate) static KIND: Kind = Kind {
    group: "scheduling.k8s.io",
    resource: "priorityclasses",
    kind: "PriorityClass",
    metadata: Metadata { generation: Generation::Fixed, ..Metadata::DEFAULT },
    defaults: Defaults {
        set: |object| defaulting::add(object, "preemptionPolicy", "PreemptLowerPriority"),
        ..Defaults::DEFAULT
    },
    validation: Validation { validate_create, validate_update, ..Validation::DEFAULT },
    managed_fields: ManagedFields { filled_in: &["/value"], ..ManagedFields::DEFAULT },
    delete: DeleteStrategy { undeletable, ..DeleteStrategy::DEFAULT },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Int("/value"),
        Cell::Flag("/globalDefault"),
        Cell::Age,
        Cell::TextOr("/preemptionPolicy", "PreemptLowerPriority"),
    ]),
    ..Kind::DEFAULT
};

/// The classes of the system may not be deleted.
fn undeletable(name: &str) -> Option<&'static str> {
    OF_SYSTEM.contains(&name).then_some("this is a system priority class and cannot be deleted")
}

/// Validates that value and preemption policy are unchanged.
///
/// A changed value is `FieldValueForbidden`, a changed policy `FieldValueInvalid`.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    if old["value"] != new["value"] {
        errors.forbidden("value", "may not be changed in an update.");
    }
    immutable_field("preemptionPolicy", &old["preemptionPolicy"], &new["preemptionPolicy"], errors);
}

/// The highest priority that users may define: `HighestUserDefinablePriority`.
const PRIORITY_MAX: i64 = 1_000_000_000;
/// Classes of critical Pods, whose values are above `PRIORITY_MAX`.
const OF_SYSTEM: &[&str] = &["system-cluster-critical", "system-node-critical"];

/// Validates a new class (`ValidatePriorityClass`). Uniqueness of the global default is not validated here.
fn validate_create(object: &Value, errors: &mut Errors) {
    let is_of_system = text(&object["metadata"]["name"]).starts_with("system-");
    if is_of_system {
        let name = text(&object["metadata"]["name"]);
        if !OF_SYSTEM.contains(&name) {
            let detail = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            errors.forbidden("metadata.name", &format!("{detail}{name} is not a known system priority class"));
        }
    }
    if !is_of_system && object["value"].as_i64().is_some_and(|value| value > PRIORITY_MAX) {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        errors.forbidden("value", &detail);
    }
    if object["preemptionPolicy"] == "" {
        errors.required("preemptionPolicy", "");
    } else {
        let supported = declared::values("scheduling.v1.PriorityClass", "preemptionPolicy");
        errors.one_of("preemptionPolicy", &object["preemptionPolicy"], &supported);
    }
}
