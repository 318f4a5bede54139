//! `NetworkPolicy` of `networking.k8s.io`: the traffic that is allowed to and from selected Pods.

pub(crate) mod validation;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting::{add, items, part},
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
    default,
    validate: validation::policy,
    printer: Some(cells),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(selector(at(object, "/spec/podSelector"))), json!(age(object, now))]
}

fn default(object: &mut Value) {
    let spec = part(object, "spec");
    part(spec, "podSelector");
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            items(rule, "ports").for_each(|port| add(port, "protocol", "TCP"));
        }
    }
    let has_egress = items(spec, "egress").next().is_some();
    add(spec, "policyTypes", if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
}
