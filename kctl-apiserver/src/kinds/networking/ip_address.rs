//! `IPAddress` of `networking.k8s.io`: a cluster IP in use, with a reference to its owner.
//!
//! The name is the address in its canonical form, so each address has at most one owner.
//! `spec.parentRef` is required and immutable, by rules that the schema declares.
//!
//! Upstream: `pkg/registry/networking/ipaddress/strategy.go` and `pkg/apis/networking/validation/validation.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    field_errors::{Errors, text},
    kinds::networking::with_group,
    names::NameRule,
    registry::kind::{Kind, Metadata, TableColumns, Validation},
    table::{
        age::age,
        fields::{self, name, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    metadata: Metadata { names: NameRule::Address, ..Metadata::DEFAULT },
    validation: Validation { validate, ..Validation::DEFAULT },
    table: TableColumns { printer: Some(cells), ..TableColumns::DEFAULT },
    ..Kind::DEFAULT
};

/// Returns name and parent (`printIPAddress`). The age is returned as well, though the kind has no
/// such column.
///
/// The parent is shown as `resource.group/namespace/name`; without a parent, the cell is `<none>`.
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = value_at(object, "/spec/parentRef");
    if parent.is_null() {
        return vec![json!(name(object)), json!(NONE), json!(age(object, now))];
    }
    let resource = with_group(fields::text(parent, "/resource"), fields::text(parent, "/group"));
    let (namespace, parent_name) = (fields::text(parent, "/namespace"), fields::text(parent, "/name"));
    let shown = if namespace.is_empty() {
        format!("{resource}/{parent_name}")
    } else {
        format!("{resource}/{namespace}/{parent_name}")
    };
    vec![json!(name(object)), json!(shown), json!(age(object, now))]
}

/// Validates the names in `spec.parentRef` (`validateIPAddressParentReference`), if they are not
/// empty.
///
/// The parent of an address is usually the Service that has it. The object is not required to
/// exist.
fn validate(object: &Value, errors: &mut Errors) {
    let (parent, path) = (&object["spec"]["parentRef"], "spec.parentRef");
    if !text(&parent["group"]).is_empty() {
        errors.name(&format!("{path}.group"), &parent["group"], NameRule::Subdomain);
    }
    for field in ["resource", "name"].into_iter().filter(|field| !text(&parent[*field]).is_empty()) {
        errors.name(&format!("{path}.{field}"), &parent[field], NameRule::PathSegment);
    }
    if !text(&parent["namespace"]).is_empty() {
        errors.name(&format!("{path}.namespace"), &parent["namespace"], NameRule::PathSegment);
    }
}
