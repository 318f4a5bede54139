//! Roles for people, aggregated into the built-in roles `view`, `edit` and `admin`.

use std::collections::BTreeSet;

use super::{Manifest, RbacOptions, Rule, role, rule::merge_same_resources};
use crate::manifest::KindSpec;

/// Returns `ClusterRoles` to view and to edit custom resources.
///
/// `kinds` are an app's kinds with a CRD, including kinds without a controller. Versions of a kind share a rule.
///
/// Labels aggregate them into the built-in roles `view`, `edit` and `admin` (Kubernetes documentation,
/// "Aggregated `ClusterRoles`"), so people need no further binding. Empty without kinds.
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
/// use kctl_runtime::manifest::{KindSpec, RbacOptions, user_roles};
///
/// // A ConfigMap is built in: the cluster has roles for it already.
/// let kinds: Vec<KindSpec> = KindSpec::from_spec(&Settings::spec()).into_iter().collect();
/// assert!(user_roles(&kinds, &RbacOptions::default())?.is_empty());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An object cannot be written as YAML.
pub fn user_roles(kinds: &[KindSpec], options: &RbacOptions) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let plurals: Vec<_> = kinds.iter().map(|kind| (&kind.kind, (kind.crd)().spec.names.plural)).collect();
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
        let rules = plurals.iter().map(|(kind, plural)| Rule {
            groups: BTreeSet::from([kind.group.clone()]),
            resources: BTreeSet::from([plural.clone()]),
            verbs: verbs.iter().map(ToString::to_string).collect(),
            because: BTreeSet::from([format!("kind {}, for people", kind.kind)]),
            ..Rule::default()
        });
        let rules = merge_same_resources(rules.collect());
        role("ClusterRole", &format!("{}-{suffix}", options.name), &options, None, &rules)
    };
    roles.into_iter().map(manifest).collect()
}
