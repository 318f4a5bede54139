//! Roles for people: who may view or edit the cluster's built-in kinds may do the same with those of the program.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Manifest, RbacOptions};
use crate::spec::ControllerSpec;

/// A role to view the custom resources of the controllers and one to edit them, added to the cluster's own roles `view`,
/// `edit` and `admin` by their labels. Nothing, where there is no custom resource.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn user_roles(
    specs: &[ControllerSpec],
    options: &RbacOptions,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let kinds: BTreeSet<_> = specs.iter().filter(|spec| spec.crd.is_some()).map(|spec| &spec.primary.kind).collect();
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let roles: [(&str, &[&str], &[&str]); 2] = [
        ("view", &["get", "list", "watch"], &["view", "edit", "admin"]),
        ("edit", &["create", "delete", "deletecollection", "patch", "update"], &["edit", "admin"]),
    ];
    let manifest = |(suffix, verbs, targets): (&str, &[&str], &[&str])| {
        let name = format!("{}-{suffix}", options.name);
        let label = |target: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{target}"), json!("true"));
        let rule = |kind: &&crate::object::Kind| json!({ "apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs });
        let object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": name, "labels": targets.iter().map(label).collect::<serde_json::Map<_, _>>() },
            "rules": kinds.iter().map(rule).collect::<Vec<_>>(),
        });
        Manifest::new(format!("rbac/clusterrole-{name}.yaml"), object)
    };
    roles.into_iter().map(manifest).collect()
}
