//! The row of a `RoleBinding` or `ClusterRoleBinding`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::age,
    fields::{list, name, text, value_at},
};

/// Returns the cells of a binding of a role, in a namespace or not. The role is shown as `Kind/name`, service accounts
/// as `namespace/name`. Upstream: `printRoleBinding`. Users, groups and accounts are only shown with `-o wide`, each
/// joined by a comma and a space.
pub(crate) fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = value_at(object, "/roleRef");
    let subjects = |kind: &str| {
        let of_kind = list(object, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
        let shown = of_kind.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
            _ => text(subject, "/name").to_owned(),
        });
        json!(shown.collect::<Vec<_>>().join(", "))
    };
    vec![
        json!(name(object)),
        json!(format!("{}/{}", text(role, "/kind"), text(role, "/name"))),
        json!(age(object, now)),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
