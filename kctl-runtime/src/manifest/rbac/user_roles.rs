//! Roles for people, aggregated into the built-in roles `view`, `edit` and `admin`.

use std::collections::BTreeSet;

use super::{Manifest, RbacOptions, Rule, role, rule::merged};
use crate::spec::ControllerSpec;

/// Returns `ClusterRoles` to view and to edit the controllers' custom resources.
///
/// Labels aggregate them into the built-in roles `view`, `edit` and `admin` (Kubernetes documentation,
/// "Aggregated `ClusterRoles`"), so people need no further binding. Empty without custom resources.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use kctl_runtime::manifest::{RbacOptions, user_roles};
///
/// // A ConfigMap is built in: the cluster has roles for it already.
/// assert!(user_roles(&[Settings::spec()], &RbacOptions::default())?.is_empty());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An object cannot be written as YAML.
pub fn user_roles(
    specs: &[ControllerSpec],
    options: &RbacOptions,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let custom: Vec<_> = specs.iter().filter(|spec| spec.crd.is_some()).collect();
    if custom.is_empty() {
        return Ok(Vec::new());
    }
    let roles: [(&str, &[&str], &[&str]); 2] = [
        ("view", &["get", "list", "watch"], &["view", "edit", "admin"]),
        ("edit", &["create", "delete", "deletecollection", "patch", "update"], &["edit", "admin"]),
    ];
    let manifest = |(suffix, verbs, targets): (&str, &[&str], &[&str])| {
        let label = |target: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{target}"), "true".to_owned());
        let mut options = options.clone();
        options.labels.extend(targets.iter().map(label));
        // CRDs are installed on the cluster that the program is started against.
        options.cluster.clear();
        let rule = |spec: &&ControllerSpec| Rule {
            groups: BTreeSet::from([spec.primary.kind.group.clone()]),
            resources: BTreeSet::from([spec.primary.kind.plural.clone()]),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            because: BTreeSet::from([format!("{}: its primary, for people", spec.name)]),
            ..Rule::default()
        };
        let rules = merged(custom.iter().map(rule).collect());
        role("ClusterRole", &format!("{}-{suffix}", options.name), &options, None, &rules)
    };
    roles.into_iter().map(manifest).collect()
}
