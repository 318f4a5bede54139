//! `IPAddress` of `networking.k8s.io`: a cluster IP in use, with a reference to its owner.
//!
//! The name is the address in its canonical form, so each address has at most one owner. `spec.parentRef` is required
//! and immutable, by tags of the API.
//!
//! Upstream: `pkg/registry/networking/ipaddress/strategy.go` and `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Cell, Kind, Metadata, TableColumns, Validation},
    status::GroupResource,
    table::{
        fields::{self, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    metadata: Metadata { names: NameRule::Address, ..Metadata::DEFAULT },
    validation: Validation { validate, ..Validation::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Computed(|address, _| parent(address).into()), Cell::Age]),
    ..Kind::DEFAULT
};

/// Returns the owner of the address as `resource.group/namespace/name`, or `<none>`.
fn parent(object: &Value) -> String {
    let parent = value_at(object, "/spec/parentRef");
    if parent.is_null() {
        return NONE.to_owned();
    }
    let resource = GroupResource::new(fields::text(parent, "/group"), fields::text(parent, "/resource"));
    match (fields::text(parent, "/namespace"), fields::text(parent, "/name")) {
        ("", name) => format!("{resource}/{name}"),
        (namespace, name) => format!("{resource}/{namespace}/{name}"),
    }
}

/// Validates the names in `spec.parentRef` (`validateIPAddressParentReference`), if they are not empty. The parent,
/// usually a Service, need not exist.
fn validate(object: &Value, errors: &mut Errors) {
    let parent = Field::new(&object["spec"]["parentRef"], "spec.parentRef", errors);
    parent.at("group").name_if_set(NameRule::Subdomain);
    parent.check_children(&["resource", "name", "namespace"], |field| field.name_if_set(NameRule::PathSegment));
}
