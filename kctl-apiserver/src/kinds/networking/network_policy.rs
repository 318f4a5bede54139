//! `NetworkPolicy` of `networking.k8s.io`.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::defaults,
    registry::kind::{Generation, Kind},
    table::{
        age::age,
        fields::{at, name},
        labels::selector,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    kind: "NetworkPolicy",
    generation: Generation::Counted,
    default: defaults::service::network_policy,
    validate: validation::policy,
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(selector(at(object, "/spec/podSelector"))), json!(age(object, now))]
}
