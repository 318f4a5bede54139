//! `IngressClass` of `networking.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{defaults, rules::change::keeps},
    field_errors::{Errors, text},
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingressclasses",
    kind: "IngressClass",
    generation: Generation::Counted,
    default: defaults::service::ingress_class,
    validate: super::ingress::validation::class,
    validate_update,
    printer: Some(table::network::ingress_class),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let controller = |class: &Value| Value::from(text(&class["spec"]["controller"]));
    keeps("spec.controller", &controller(old), &controller(new), errors);
}
