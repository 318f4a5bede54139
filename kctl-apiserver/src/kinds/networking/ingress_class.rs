//! `IngressClass` of `networking.k8s.io`: names the controller that implements an Ingress.
//!
//! `spec.controller` is immutable; `spec.parameters` may change.
//!
//! Upstream: `pkg/registry/networking/ingressclass/strategy.go` and `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::add,
    field::Field,
    field_errors::{Errors, text},
    registry::kind::{Cell, Defaults, Kind, Metadata, TableColumns, Validation},
    status::GroupResource,
    table::{
        fields::{self, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingressclasses",
    kind: "IngressClass",
    metadata: Metadata::COUNTED,
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation {
        validate: super::ingress::validation::validate_class,
        validate_update,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::ClassName(&["ingressclass.kubernetes.io/is-default-class"]),
        Cell::Text("/spec/controller"),
        Cell::Computed(|class, _| parameters(class).into()),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Validates that the controller is unchanged: another controller would take over the Ingresses of the class. An absent
/// controller equals an empty one.
fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let [was, is] = [old, new].map(|class| Value::from(text(&class["spec"]["controller"])));
    Field::new(&is, "spec.controller", errors).immutable(&was);
}

/// Returns the parameters as `kind.group/name`, or `<none>`.
fn parameters(object: &Value) -> String {
    let parameters = value_at(object, "/spec/parameters");
    if !parameters.is_object() {
        return NONE.to_owned();
    }
    let kind = GroupResource::new(fields::text(parameters, "/apiGroup"), fields::text(parameters, "/kind"));
    format!("{kind}/{}", fields::text(parameters, "/name"))
}

/// Fills in `scope: Cluster` of the parameters, if there are any (`SetDefaults_IngressClass`).
fn default(object: &mut Value) {
    if let Some(parameters) = object.pointer_mut("/spec/parameters") {
        add(parameters, "scope", "Cluster");
    }
}
