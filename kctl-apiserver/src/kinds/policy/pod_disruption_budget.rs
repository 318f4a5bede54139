//! `PodDisruptionBudget` of `policy`: limits how many Pods evictions may take down at once.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting::{part, zero_counts},
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Generation, Kind, NewStatus},
    table::{
        age::age,
        fields::{at, int, name, scalar},
    },
    validation::{self, selector, status::Numbers},
};

pub(crate) static KIND: Kind = Kind {
    group: "policy",
    resource: "poddisruptionbudgets",
    kind: "PodDisruptionBudget",
    names: NameRule::PathSegment,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    new_status: NewStatus::Empty,
    default,
    validate,
    validate_status,
    printer: Some(cells),
    ..Kind::DEFAULT
};

const STATUS: Numbers =
    Numbers { counts: &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"], orders: &[] };

fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    validation::status::conditions(&new["status"]["conditions"], "status.conditions", errors);
    validation::status::numbers(&STATUS, old, new, errors);
}

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = |pointer: &str| json!(scalar(at(object, pointer)).unwrap_or_else(|| "N/A".to_owned()));
    vec![
        json!(name(object)),
        bound("/spec/minAvailable"),
        bound("/spec/maxUnavailable"),
        json!(int(object, "/status/disruptionsAllowed")),
        json!(age(object, now)),
    ]
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        errors.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set");
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let at = format!("spec.{name}");
        errors.count_or_percent(&at, &spec[name]);
        errors.at_most_all(&at, &spec[name]);
    }
    selector::selector(&spec["selector"], "spec.selector", errors);
}

fn default(object: &mut Value) {
    part(object, "spec");
    zero_counts(object, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]);
}
