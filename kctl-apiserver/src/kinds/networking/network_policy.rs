//! `NetworkPolicy` of `networking.k8s.io`: the traffic that is allowed to and from selected Pods.
//!
//! The embedded server has no network: policies are stored and validated, and have no effect.
//!
//! Upstream: `pkg/registry/networking/networkpolicy/strategy.go` and `pkg/apis/networking/validation/validation.go`.

pub(crate) mod validation;

use serde_json::{Value, json};

use crate::{
    defaulting::{add, items, part},
    registry::kind::{Cell, Defaults, Kind, Metadata, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    kind: "NetworkPolicy",
    metadata: Metadata::COUNTED,
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation { validate: validation::validate_policy, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Labels("/spec/podSelector"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Fills in the defaults of a policy (`SetDefaults_NetworkPolicy`). A policy that forbids all egress traffic has no
/// rules, so it must name the type itself.
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            items(rule, "ports").for_each(|port| add(port, "protocol", "TCP"));
        }
    }
    let has_egress = items(spec, "egress").next().is_some();
    add(spec, "policyTypes", if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
}
