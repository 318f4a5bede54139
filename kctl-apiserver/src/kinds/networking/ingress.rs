//! `Ingress` of `networking.k8s.io`.

pub(crate) mod validation;

use serde_json::Value;

use crate::{
    admit::defaults,
    field_errors::Errors,
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingresses",
    kind: "Ingress",
    generation: Generation::Counted,
    storage_key: Some("ingress"),
    default: defaults::service::ingress,
    validate: validation::ingress,
    validate_create: Some(validate_create),
    validate_status: validation::status,
    warn,
    printer: Some(table::network::ingress),
    ..Kind::DEFAULT
};

fn validate_create(object: &Value, errors: &mut Errors) {
    validation::ingress(object, errors);
    validation::new_ingress(object, errors);
}

fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let annotation = "kubernetes.io/ingress.class";
    if old.is_none() && object["metadata"]["annotations"].get(annotation).is_some() {
        warnings.push(format!("annotation {annotation:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}
