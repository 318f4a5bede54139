//! Roles for people, aggregated into the built-in roles `view`, `edit` and `admin`.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinitionSpec;
use kube::core::GroupVersionKind;

use super::{Manifest, RbacOptions, Rule, role, rule::merge_same_resources};
use crate::manifest::KindSpec;

/// A role for people.
struct UserRole {
    /// The end of its name.
    suffix: &'static str,
    /// Verbs on the objects of a kind.
    verbs: &'static [&'static str],
    /// Verbs on the `scale` of a kind that has one. `kubectl scale` needs them.
    scale_verbs: &'static [&'static str],
    /// The built-in roles that get its rules.
    targets: &'static [&'static str],
}

/// The roles, with the verbs of the built-in roles (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy` in Kubernetes).
const ROLES: [UserRole; 2] = [
    UserRole {
        suffix: "view",
        verbs: &["get", "list", "watch"],
        scale_verbs: &["get"],
        targets: &["view", "edit", "admin"],
    },
    UserRole {
        suffix: "edit",
        verbs: &["create", "delete", "deletecollection", "patch", "update"],
        scale_verbs: &["patch", "update"],
        targets: &["edit", "admin"],
    },
];

/// Returns `ClusterRoles` to view, to edit and to scale custom resources.
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
    let specs: Vec<_> = kinds.iter().map(|kind| (&kind.kind, (kind.crd)().spec)).collect();
    let manifest = |user_role: &UserRole| {
        let label = |target: &&str| (format!("rbac.authorization.k8s.io/aggregate-to-{target}"), "true".to_owned());
        let mut options = options.clone();
        options.labels.extend(user_role.targets.iter().map(label));
        // CRDs are installed on the cluster that the program is started against.
        options.cluster.clear();
        let rules = specs.iter().flat_map(|(kind, spec)| {
            let plural = &spec.names.plural;
            let scale = has_scale(spec).then(|| rule(kind, format!("{plural}/scale"), user_role.scale_verbs));
            std::iter::once(rule(kind, plural.clone(), user_role.verbs)).chain(scale)
        });
        let rules = merge_same_resources(rules.collect());
        role("ClusterRole", &format!("{}-{}", options.name, user_role.suffix), &options, None, &rules)
    };
    ROLES.iter().map(manifest).collect()
}

/// Returns the rule of one resource of a kind.
fn rule(kind: &GroupVersionKind, resource: String, verbs: &[&str]) -> Rule {
    Rule {
        groups: BTreeSet::from([kind.group.clone()]),
        resources: BTreeSet::from([resource]),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        because: BTreeSet::from([format!("kind {}, for people", kind.kind)]),
        ..Rule::default()
    }
}

/// Returns `true` if a version of the kind has the subresource `scale`.
fn has_scale(spec: &CustomResourceDefinitionSpec) -> bool {
    spec.versions.iter().any(|version| version.subresources.as_ref().is_some_and(|all| all.scale.is_some()))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use serde_json::json;

    use super::*;

    fn crd() -> CustomResourceDefinition {
        let scale = json!({ "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" });
        let version = json!({ "name": "v1", "served": true, "storage": true, "subresources": { "scale": scale } });
        let names = json!({ "kind": "Web", "plural": "webs" });
        let spec = json!({ "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version] });
        let meta = json!({ "name": "webs.example.com" });
        let (version, kind) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        serde_json::from_value(json!({ "apiVersion": version, "kind": kind, "metadata": meta, "spec": spec })).unwrap()
    }

    #[test]
    fn people_may_scale_a_kind_with_scale() {
        let kind = KindSpec::new("lib.rs", GroupVersionKind::gvk("example.com", "v1", "Web"), crd);
        let roles = user_roles(&[kind], &RbacOptions::new("app", "system")).unwrap();
        for (role, verbs) in roles.iter().zip([json!(["get"]), json!(["patch", "update"])]) {
            let rules = role.object["rules"].as_array().unwrap();
            assert_eq!(rules.len(), 2, "{rules:?}");
            assert_eq!((&rules[1]["resources"], &rules[1]["verbs"]), (&json!(["webs/scale"]), &verbs));
        }
    }
}
