//! The row of a `RoleBinding` or `ClusterRoleBinding`.

use serde_json::Value;

use crate::{
    registry::kind::{Cell, TableColumns},
    table::fields::{list, text, value_at},
};

/// The columns of bindings in a namespace or not (`printRoleBinding`). kubectl shows the subjects only with `-o wide`.
pub(crate) const BINDING: TableColumns = TableColumns::cells(&[
    Cell::Name,
    Cell::Computed(|binding, _| role(value_at(binding, "/roleRef")).into()),
    Cell::Age,
    Cell::Computed(|binding, _| subjects(binding, "User").into()),
    Cell::Computed(|binding, _| subjects(binding, "Group").into()),
    Cell::Computed(|binding, _| subjects(binding, "ServiceAccount").into()),
]);

/// Returns the role as `Kind/name`.
fn role(reference: &Value) -> String {
    format!("{}/{}", text(reference, "/kind"), text(reference, "/name"))
}

/// Returns the names of the subjects of a kind; service accounts are shown as `namespace/name`.
fn subjects(binding: &Value, kind: &str) -> String {
    let same_kind = list(binding, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
    let shown = same_kind.map(|subject| match kind {
        "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
        _ => text(subject, "/name").to_owned(),
    });
    shown.collect::<Vec<_>>().join(", ")
}
