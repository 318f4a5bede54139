//! `StatefulSet` of `apps`.

mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::{
        defaults,
        rules::{self, status::Numbers},
        warnings,
    },
    names::NameRule,
    registry::kind::{Generation, Kind, NewStatus},
    table::{
        age::age,
        fields::{at, name},
        workload::{containers, ready_of_desired},
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "statefulsets",
    kind: "StatefulSet",
    names: NameRule::Label,
    generation: Generation::Counted,
    new_status: NewStatus::Empty,
    default: defaults::workload::stateful_set,
    filled_in: &["/spec/serviceName", "/spec/updateStrategy/rollingUpdate/maxUnavailable"],
    filled_in_by_update: &["/spec/updateStrategy/rollingUpdate/maxUnavailable"],
    validate: |object, errors| validation::validate(object, false, errors),
    validate_create: Some(|object, errors| validation::validate(object, true, errors)),
    validate_update: validation::validate_update,
    validate_status: |old, new, errors| rules::status::numbers(&STATUS, old, new, errors),
    validates_spec_only: true,
    warn: |_, object, warnings| warnings::stateful_set(&object["spec"], warnings),
    warns_once_per_generation: true,
    printer: Some(cells),
    pod_template: Some("/spec/template"),
    ..Kind::DEFAULT
};

const STATUS: Numbers = Numbers {
    counts: &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    orders: &[
        ("readyReplicas", "replicas", "status.replicas"),
        ("currentReplicas", "replicas", "status.replicas"),
        ("updatedReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "status.readyReplicas"),
    ],
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![json!(name(object)), json!(ready_of_desired(object)), json!(age(object, now)), names, images]
}
