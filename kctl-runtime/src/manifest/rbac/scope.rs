//! The namespaces that a hand-written rule needs.
//!
//! Only a resource that is known to have namespaces goes into Roles. A Role would grant nothing on a
//! cluster-scoped one.

use std::collections::BTreeMap;

use super::{PermissionTarget, resources};
use crate::spec::{ControllerSpec, RelationSpec};

/// The declared resources by group and plural, with `true` for a namespaced one.
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
    pub(super) fn is_in_namespaces(&self, target: &PermissionTarget) -> bool {
        let PermissionTarget::Resource { group, resource, .. } = target else { return false };
        let plural = resource.split('/').next().unwrap_or_default();
        let declared = self.0.get(&(group.clone(), plural.to_owned())).copied();
        let built_in = || resources::find(group, plural).map(|resource| resource.is_namespaced);
        // `*` and resources of versions that are not stable are not in the table.
        declared.or_else(built_in).unwrap_or_else(|| resources::is_namespaced_group(group))
    }
}
