//! The namespaces that a hand-written rule needs.
//!
//! Only a resource that is known to have namespaces goes into Roles. A Role would grant nothing on a
//! cluster-scoped one.

use std::collections::BTreeMap;

use super::On;
use crate::spec::{ControllerSpec, RelationSpec};

/// Matches every resource of a group.
const ALL: &str = "*";

/// Built-in namespaced resources, by group and plural. Unlisted ones may be cluster-scoped.
const IN_NAMESPACES: [(&str, &str); 29] = [
    ("", "bindings"),
    ("", "configmaps"),
    ("", "endpoints"),
    ("", "events"),
    ("", "limitranges"),
    ("", "persistentvolumeclaims"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", ALL),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("autoscaling", ALL),
    ("batch", ALL),
    ("certificates.k8s.io", "podcertificaterequests"),
    ("coordination.k8s.io", ALL),
    ("discovery.k8s.io", ALL),
    ("events.k8s.io", ALL),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", ALL),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("storage.k8s.io", "csistoragecapacities"),
];

/// Namespaced resources: the built-in ones, and those of the declarations.
pub(super) struct Scopes(BTreeMap<(String, String), bool>);

impl Scopes {
    /// Reads the scopes of the declared kinds.
    pub(super) fn of(specs: &[ControllerSpec]) -> Self {
        let relations = specs.iter().flat_map(|spec| std::iter::once(&spec.primary).chain(&spec.relations));
        let scope = |relation: &RelationSpec| {
            ((relation.kind.group.clone(), relation.kind.plural.clone()), relation.namespaced)
        };
        Self(relations.map(scope).collect())
    }

    /// Returns `true` if the resource is known to have namespaces.
    pub(super) fn is_in_namespaces(&self, on: &On) -> bool {
        let On::Resource { group, resource, .. } = on else { return false };
        let plural = resource.split('/').next().unwrap_or_default();
        let built_in = |(api_group, kind): &(&str, &str)| api_group == group && (*kind == ALL || *kind == plural);
        self.0.get(&(group.clone(), plural.to_owned())).copied().unwrap_or_else(|| IN_NAMESPACES.iter().any(built_in))
    }
}
