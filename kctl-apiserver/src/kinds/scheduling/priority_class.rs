//! `PriorityClass` of `scheduling.k8s.io`: a named priority for Pods.
//!
//! - `value` and `preemptionPolicy` are immutable, because Pods have copies of them.
//! - Values above one billion, and names that begin with `system-`, are for the two classes of the system.
//!
//! Upstream: `pkg/registry/scheduling/priorityclass/strategy.go` and `pkg/apis/scheduling/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting,
    field::Field,
    field_errors::Errors,
    registry::kind::{
        Cell, Defaults, DeleteStrategy, Generation, Kind, ManagedFields, Metadata, Plugin, TableColumns, Validation,
    },
    validation::declared,
};

pub(crate) static KIND: Kind = Kind {
    group: "scheduling.k8s.io",
    resource: "priorityclasses",
    kind: "PriorityClass",
    metadata: Metadata { generation: Generation::Fixed, ..Metadata::DEFAULT },
    admission: &[Plugin::PriorityForClasses],
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
    SYSTEM_PRIORITY_CLASSES.contains(&name).then_some("this is a system priority class and cannot be deleted")
}

/// Validates that value and preemption policy are unchanged.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let class = Field::new(new, "", errors);
    class.at("value").forbidden_if(old["value"] != new["value"], "must not change");
    class.at("preemptionPolicy").immutable(&old["preemptionPolicy"]);
}

/// The highest priority that users may define: `HighestUserDefinablePriority`.
const PRIORITY_MAX: i64 = 1_000_000_000;
/// Classes of critical Pods, whose values are above `PRIORITY_MAX`.
const SYSTEM_PRIORITY_CLASSES: &[&str] = &["system-cluster-critical", "system-node-critical"];

/// Validates a new class (`ValidatePriorityClass`). Uniqueness of the global default is not validated here.
fn validate_create(object: &Value, errors: &mut Errors) {
    let class = Field::new(object, "", errors);
    let (name, value, policy) = (class.at("metadata").at("name"), class.at("value"), class.at("preemptionPolicy"));
    let has_system_prefix = name.text().starts_with("system-");
    let is_unknown = has_system_prefix && !SYSTEM_PRIORITY_CLASSES.contains(&name.text());
    name.forbidden_if(is_unknown, "names with the prefix 'system-' are reserved for classes of the system");
    let is_high = !has_system_prefix && value.as_i64() > Some(PRIORITY_MAX);
    value.forbidden_if(is_high, format_args!("must be at most {PRIORITY_MAX}"));
    policy.required_if(*policy == "");
    if *policy != "" {
        policy.one_of(&declared::values("scheduling.v1.PriorityClass", "preemptionPolicy"));
    }
}
