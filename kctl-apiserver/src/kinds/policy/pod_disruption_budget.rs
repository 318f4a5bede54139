//! `PodDisruptionBudget` of `policy`: limits how many Pods evictions may take down at once.
//!
//! A controller writes the status. The eviction subresource of Pods reads `status.disruptionsAllowed`.
//!
//! Upstream: `pkg/registry/policy/poddisruptionbudget/strategy.go` and `pkg/apis/policy/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Cell, Kind, Metadata, NewStatus, Strategy, TableColumns, Validation},
    validation::{self, selector, status::Numbers},
};

pub(crate) static KIND: Kind = Kind {
    group: "policy",
    resource: "poddisruptionbudgets",
    kind: "PodDisruptionBudget",
    metadata: Metadata { names: NameRule::PathSegment, ..Metadata::COUNTED },
    strategy: Strategy { new_status: NewStatus::Empty, ..Strategy::CONDITIONAL },
    validation: Validation { validates_metadata_last: true, validate, validate_status, ..Validation::DEFAULT },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::ScalarOr("/spec/minAvailable", "N/A"),
        Cell::ScalarOr("/spec/maxUnavailable", "N/A"),
        Cell::Int("/status/disruptionsAllowed"),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Counts of the status that may not be negative.
const STATUS: Numbers =
    Numbers { counts: &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"], subsets: &[] };

/// Validates conditions and counts of the status.
fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    Field::new(&new["status"]["conditions"], "status.conditions", errors)
        .check(validation::status::validate_condition_list);
    validation::status::validate_numbers(&STATUS, old, new, errors);
}

/// Validates a budget (`ValidatePodDisruptionBudgetSpec`). The error about both bounds is at `spec`, and shows the
/// whole spec.
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let bounds = [spec.at("minAvailable"), spec.at("maxUnavailable")];
    let has_both = bounds.iter().all(|bound| !bound.is_null());
    spec.invalid_if(has_both, "minAvailable and maxUnavailable cannot be both set");
    for bound in bounds {
        bound.non_negative_int_or_percent();
        bound.at_most_100_percent();
    }
    spec.at("selector").check(selector::validate_selector);
}
