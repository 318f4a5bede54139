//! RBAC manifests: a `ServiceAccount`, roles with a comment for each rule, and bindings.
//!
//! The permissions follow from the declaration alone:
//!
//! | Declaration | Permissions |
//! |---|---|
//! | the primary, `owns`, `watches`, `reads` | `list`, `watch` |
//! | `reads = K(live)` | `get`, in the controller's namespaces |
//! | `reads = K(live(cluster))` | `get`, in all namespaces |
//! | `owns = K` without verbs | `create`, `update`, `patch`, `delete`; an apply is a `create` and a `patch` |
//! | verbs in parentheses | these ([`verbs_of`]) |
//! | a custom resource with a status as primary, unless `read_only` | `patch` on its `…/status` |
//! | `finalizer = "…"` | `patch` on the primary |
//! | `block_owner_deletion` | `update` on `…/finalizers` of the primary |
//! | `fields = "metadata.name=x"` | its `list` and `watch` are limited to that name |
//! | `rbac(…)` | its rules |
//! | every controller | `create`, `patch` on Events |
//!
//! A controller that is limited to namespaces gets a Role in each of them. Cluster-scoped kinds need a
//! `ClusterRole` in any case.

mod permission;
mod resources;
mod rule;
mod scope;
mod subresource;
mod user_roles;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

pub use permission::{
    Permission, PermissionScope, PermissionTarget, all_permissions, permissions, permissions_of_rule, rule_problem,
    verbs_of,
};
pub use resources::is_built_in_group;
pub use rule::{Rule, rules};
pub use subresource::{lacks_subresource, subresource_problem};
pub use user_roles::user_roles;

use super::Manifest;
use crate::spec::ControllerSpec;

/// Names in the manifests, and the cluster that they are for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RbacOptions {
    /// Name of the `ServiceAccount`, the roles and the bindings.
    pub name: String,
    /// Namespace in which the program runs.
    pub namespace: String,
    /// Labels of the roles, for example for aggregation into another `ClusterRole`.
    pub labels: BTreeMap<String, String>,
    /// Cluster that the roles are for, as in `on = name`; empty for the default one.
    pub cluster: String,
}

impl RbacOptions {
    /// Returns the options of a program: its name, and the namespace in which it runs. Labels and cluster are fields.
    ///
    /// ```
    /// use kctl_runtime::manifest::RbacOptions;
    ///
    /// let mut options = RbacOptions::new("podset", "system");
    /// options.labels.insert("team".to_owned(), "storage".to_owned());
    /// assert_eq!(options.cluster, "", "the default cluster");
    /// ```
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self { name: name.into(), namespace: namespace.into(), ..Self::default() }
    }
}

/// Returns the `ServiceAccount`, roles and bindings that the controllers need on one cluster.
///
/// A controller that is limited to namespaces gets a Role in each of them, and a `ClusterRole` for its
/// cluster-scoped kinds. The page of the [module](crate::manifest) has an example.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn rbac(specs: &[ControllerSpec], options: &RbacOptions) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    rbac_of(&permissions(specs, &options.cluster), options)
}

/// Returns the `ServiceAccount`, roles and bindings for these permissions, as [`rbac`] does for declarations.
///
/// Role tests leave one permission out, and check that the program then fails.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn rbac_of(
    permissions: &[Permission],
    options: &RbacOptions,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace, .. } = options;
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name, "namespace": namespace },
    });
    let mut manifests = vec![Manifest::new(file("ServiceAccount", name, options, None), account)?];
    manifests.extend(bound_roles(name, options, permissions)?.into_iter().flatten());
    Ok(manifests)
}

/// Returns a role with its binding for each scope of the permissions; the `ClusterRole` is the first.
pub(super) fn bound_roles(
    name: &str,
    options: &RbacOptions,
    permissions: &[Permission],
) -> Result<Vec<[Manifest; 2]>, serde_saphyr::SerializeError> {
    let scopes: BTreeSet<&PermissionScope> = permissions.iter().map(|permission| &permission.scope).collect();
    let roles = scopes.into_iter().map(|scope| {
        let here: Vec<Permission> =
            permissions.iter().filter(|permission| permission.scope == *scope).cloned().collect();
        let (kind, namespace) = match scope {
            PermissionScope::Everywhere => ("ClusterRole", None),
            PermissionScope::Namespace(namespace) => ("Role", Some(namespace)),
        };
        Ok([role(kind, name, options, namespace, &rules(&here))?, binding(kind, name, options, namespace)?])
    });
    roles.collect()
}

/// Returns the path of a manifest; manifests of other clusters have their own folder.
fn file(kind: &str, name: &str, options: &RbacOptions, namespace: Option<&String>) -> String {
    let kind = kind.to_lowercase();
    let folder = if options.cluster.is_empty() { "rbac".to_owned() } else { format!("rbac-{}", options.cluster) };
    namespace.map_or_else(
        || format!("{folder}/{kind}-{name}.yaml"),
        |namespace| format!("{folder}/{kind}-{name}.{namespace}.yaml"),
    )
}

fn meta(name: &str, namespace: Option<&String>) -> Value {
    namespace.map_or_else(|| json!({ "name": name }), |namespace| json!({ "name": name, "namespace": namespace }))
}

/// Binds a role to the `ServiceAccount` of the program. Role and binding have the same name.
pub(super) fn binding(
    role: &str,
    name: &str,
    options: &RbacOptions,
    namespace: Option<&String>,
) -> Result<Manifest, serde_saphyr::SerializeError> {
    let RbacOptions { name: account, namespace: account_namespace, .. } = options;
    let kind = format!("{role}Binding");
    let object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": meta(name, namespace),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": account_namespace }],
    });
    Manifest::new(file(&kind, name, options, namespace), object)
}

/// Returns a role with a comment before each rule that names its declarations.
pub(super) fn role(
    kind: &str,
    name: &str,
    options: &RbacOptions,
    namespace: Option<&String>,
    rules: &[Rule],
) -> Result<Manifest, serde_saphyr::SerializeError> {
    let mut meta = meta(name, namespace);
    if !options.labels.is_empty() {
        meta["labels"] = json!(options.labels);
    }
    let head = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta });
    let mut yaml = serde_saphyr::to_string(&head)?;
    yaml += "rules:\n";
    for rule in rules {
        for because in &rule.because {
            yaml += &format!("# {}\n", because.replace('\n', " "));
        }
        yaml += &serde_saphyr::to_string(&[rule.object()])?;
    }
    let mut object = head;
    object["rules"] = rules.iter().map(Rule::object).collect();
    Ok(Manifest { file: file(kind, name, options, namespace), object, yaml })
}
