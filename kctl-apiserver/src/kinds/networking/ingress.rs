//! `Ingress` of `networking.k8s.io`: routes HTTP requests from outside to Services.
//!
//! An Ingress needs a default backend or rules. A new one may name its class by field and by annotation only if both
//! are equal.
//!
//! Upstream: `pkg/registry/networking/ingress/strategy.go` and `pkg/apis/networking/validation/validation.go`.

pub(crate) mod validation;

use serde_json::Value;

use crate::{
    kinds::core::service::table::balancer_addresses,
    registry::kind::{Cell, Kind, Metadata, Plugin, TableColumns, Validation},
    table::{
        fields::{SHOWN_MAX, list, text},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingresses",
    kind: "Ingress",
    metadata: Metadata::COUNTED,
    admission: &[Plugin::DefaultIngressClass],
    validation: Validation {
        validate: validation::validate_ingress,
        validate_create: validation::new_ingress,
        validate_status: validation::validate_status,
        warn,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::TextOr("/spec/ingressClassName", NONE),
        Cell::Computed(|ingress, _| hosts(ingress).into()),
        Cell::Computed(|ingress, _| balancer_addresses(ingress).join(",").into()),
        Cell::Computed(|ingress, _| ports(ingress).into()),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Warns about the annotation for the class when an Ingress is created.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let annotation = "kubernetes.io/ingress.class";
    if old.is_none() && object["metadata"]["annotations"].get(annotation).is_some() {
        warnings.push(format!("annotation {annotation:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

/// Returns the ports, which are not read from the object: 443 is one of them if `spec.tls` has an entry.
fn ports(object: &Value) -> &'static str {
    if list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" }
}

/// Returns the first hosts and the number of other rules. The column is `*` if no rule has a host. The number after `+`
/// counts all rules, including those without a host, less the shown ones.
fn hosts(object: &Value) -> String {
    let rules = list(object, "/spec/rules");
    let mut shown: Vec<&str> = Vec::new();
    let mut is_cut = false;
    for rule in rules {
        is_cut |= shown.len() == SHOWN_MAX;
        let host = text(rule, "/host");
        if !is_cut && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), is_cut) {
        (true, _) => "*".to_owned(),
        (false, false) => shown.join(","),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN_MAX),
    }
}
