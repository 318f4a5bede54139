//! `Deployment` of `apps`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{
        defaults,
        rules::{self, status::Numbers},
        warnings,
    },
    registry::kind::{Generation, Kind, NewStatus},
    table::{
        age::age,
        fields::{at, int, name},
        labels::query,
        workload::{containers, ready_of_desired},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "deployments",
    kind: "Deployment",
    generation: Generation::Counted,
    counted_metadata: &["annotations"],
    new_status: NewStatus::Empty,
    kept_by_status: &["labels"],
    reset_fields: &[("status", &[&["spec"], &["metadata", "labels"]])],
    default: defaults::workload::deployment,
    validate: rules::workload::deployment,
    validate_update: rules::change::selector_stays,
    validate_status: |old, new, errors| rules::status::numbers(&STATUS, old, new, errors),
    validates_spec_only: true,
    warn: warnings::of_template,
    warns_once_per_generation: true,
    printer: Some(cells),
    pod_template: Some("/spec/template"),
    ..Kind::DEFAULT
};

const STATUS: Numbers = Numbers {
    counts: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    orders: &[
        ("updatedReplicas", "replicas", "status.replicas"),
        ("readyReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "readyReplicas"),
    ],
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![
        json!(name(object)),
        json!(ready_of_desired(object)),
        json!(int(object, "/status/updatedReplicas")),
        json!(int(object, "/status/availableReplicas")),
        json!(age(object, now)),
        names,
        images,
        json!(query(at(object, "/spec/selector"))),
    ]
}
