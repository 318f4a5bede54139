//! Finds caches that a controller declares and never reads: they cost memory and permissions.

use super::View;
use crate::{
    reconcile::UsedCaches,
    spec::{RelationKind, RelationSpec},
};

/// The caches of a controller, and which of them its reconciles have used.
#[derive(Clone)]
pub(super) struct Declared {
    pub(super) controller: String,
    pub(super) relations: Vec<RelationSpec>,
    /// One flag per relation, set by the first read in a reconcile.
    pub(super) used: UsedCaches,
}

/// A cache that a controller declares by `reads` or `watches`, and that no reconcile has read.
///
/// Remove the declaration, or declare `reads = K(live)` if the kind is read rarely.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnusedCache {
    /// The name of the controller.
    pub controller: String,
    /// The declaration to remove.
    pub relation: RelationSpec,
}

impl View {
    /// Returns the caches of `reads` and `watches` that no reconcile has read so far.
    ///
    /// Meaningful after a run that covers the controller's code, such as a test. Kinds that were watched at run time
    /// ([`Watches`](crate::watches::Watches)) are left out, because their declaration grants the permission.
    /// `watches = K(metadata)` is left out, because it serves its triggers.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// # let manager = kctl_runtime::manager::Manager::new(client, "settings.example.com", std::sync::Arc::new(|_report| {}));
    /// let view = manager.view();
    /// // … run the manager, then:
    /// for unused in view.unused_caches() {
    ///     println!("{}: remove `{}`", unused.controller, unused.relation.text);
    /// }
    /// # assert!(view.unused_caches().is_empty());
    /// # });
    /// # Ok::<_, std::io::Error>(())
    /// ```
    pub fn unused_caches(&self) -> Vec<UnusedCache> {
        let open = self.informers.open();
        let is_watched_at_run_time = |relation: &RelationSpec| {
            let mut same = open.iter().filter(|(source, _)| {
                let config = source.config();
                config.kind == relation.kind && config.cluster == relation.cluster
            });
            same.any(|(source, n_users)| {
                *n_users > 1 || !self.sources.iter().any(|own| std::sync::Arc::ptr_eq(own, source))
            })
        };
        let mut unused = Vec::new();
        for declared in &self.declared {
            for (index, relation) in declared.relations.iter().enumerate() {
                let is_meant = match relation.declared_as {
                    RelationKind::Read => true,
                    RelationKind::Watched => !relation.field_mask.is_metadata(),
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
