//! Finds caches that were declared and never read.

use super::View;
use crate::{
    reconcile::Used,
    spec::{RelationSpec, Role},
};

/// The caches that a controller declares, and which of them its reconciles have used.
#[derive(Clone)]
pub(super) struct Declared {
    pub(super) controller: String,
    pub(super) relations: Vec<RelationSpec>,
    pub(super) used: Used,
}

/// A cache that a controller declares by `reads` or `watches`, and that none of its reconciles has used.
#[derive(Clone)]
pub struct UnusedCache {
    /// The name of the controller.
    pub controller: String,
    /// The declaration.
    pub relation: RelationSpec,
}

impl View {
    /// Returns the caches of `reads` and `watches` of which no reconcile has asked for the store or the objects so far.
    ///
    /// Left out are kinds that were watched at run time ([`Watches`](crate::watches::Watches)), for which a declaration is the
    /// permission, and `watches = K(metadata)`, which is there for its changes alone.
    pub fn unused_caches(&self) -> Vec<UnusedCache> {
        let open = self.informers.open();
        let is_watched_at_run_time = |relation: &RelationSpec| {
            let mut same = open.iter().filter(|(source, _)| {
                let identity = source.identity();
                identity.kind == relation.kind && identity.cluster == relation.cluster
            });
            same.any(|(source, n_users)| {
                *n_users > 1 || !self.sources.iter().any(|own| std::sync::Arc::ptr_eq(own, source))
            })
        };
        let mut unused = Vec::new();
        for declared in &self.declared {
            for (index, relation) in declared.relations.iter().enumerate() {
                let is_meant = match relation.role {
                    Role::Read => true,
                    Role::Watched => !relation.keep.is_metadata(),
                    _ => false,
                };
                if is_meant && !declared.used.has(index) && !is_watched_at_run_time(relation) {
                    unused.push(UnusedCache { controller: declared.controller.clone(), relation: relation.clone() });
                }
            }
        }
        unused
    }
}
