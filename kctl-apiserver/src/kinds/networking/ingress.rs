//! `Ingress` of `networking.k8s.io`.

use serde_json::Value;

use crate::{
    admit::{defaults, rules},
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
    validate: rules::ingress::ingress,
    validate_create: Some(validate_create),
    validate_status: rules::ingress::status,
    warn,
    printer: Some(table::network::ingress),
    ..Kind::DEFAULT
};

fn validate_create(object: &Value, errors: &mut Errors) {
    rules::ingress::ingress(object, errors);
    rules::ingress::new_ingress(object, errors);
}

fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    let annotation = "kubernetes.io/ingress.class";
    if old.is_none() && object["metadata"]["annotations"].get(annotation).is_some() {
        warnings.push(format!("annotation {annotation:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}
