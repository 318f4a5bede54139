//! `IPAddress` of `networking.k8s.io`.

use serde_json::Value;

use crate::{
    admit::rules::{self, change::keeps},
    field_errors::Errors,
    names::NameRule,
    registry::kind::Kind,
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    names: NameRule::Address,
    validate: rules::served::owned_address,
    validate_update,
    printer: Some(table::network::ip_address),
    ..Kind::DEFAULT
};

fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    keeps("spec.parentRef", &old["spec"]["parentRef"], &new["spec"]["parentRef"], errors);
}
