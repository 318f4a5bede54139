//! A shard of [kubernetes-controller-sharding](https://github.com/timebertt/kubernetes-controller-sharding): several
//! active replicas, whose objects another program assigns by labels.
//!
//! ```text
//! join       Lease of the shard held ─▶ the sharder labels objects ─▶ they enter the caches ─▶ reconciled
//! hand-over  drain label ─▶ no reconcile begins ─▶ running ones end ─▶ writes resolved ─▶ both labels removed
//! leave      reconciles end ─▶ Lease released ─▶ the sharder moves all objects
//! loss       Lease not renewed ─▶ no write starts ─▶ the process ends ─▶ the sharder takes the Lease, moves all objects
//! ```
//!
//! Election and write permit come from [`lease`](super::lease), with one candidate per Lease. `shard::Ring` decides
//! about keys, and the workers hand them over.
//!
//! The protocol gives an object to a shard when the sharder's clock says that the shard before is dead for one Lease
//! duration. So clocks of nodes must not differ by more than that.

mod config;

use std::sync::Arc;

use kube::Client;

pub use config::{RING_LABEL, RingConfig, RingError};

use super::{
    Manager, View,
    lease::{Elector, ObservedLease},
};
use crate::{
    reconcile::Env,
    shard::{LabelledShare, Ring},
    source::Source,
    spec::{ControllerSpec, RelationKind, RelationSpec},
    store::{Part, Primaries},
    writer::WritePermit,
};

/// A shard of a controller ring, as its process sees it.
///
/// [`View::controller_ring`] returns it.
#[derive(Clone, Debug)]
pub struct RingView {
    config: Arc<RingConfig>,
    ring: Arc<Ring>,
}

impl RingView {
    /// Returns the configuration of the shard, with the names of the ring and of its Lease.
    pub fn config(&self) -> &RingConfig {
        &self.config
    }

    /// Makes the gate of a controller admit the keys of this shard, and registers the cache of its primaries.
    pub(super) fn bind(&self, env: &Env) {
        env.gate.bind_ring(&self.ring);
        self.ring.add_primaries(&env.spec.primary.kind, env.primary.store());
    }

    /// Returns how many objects this shard has handed over because the sharder asked for them.
    pub fn n_handed_over(&self) -> u64 {
        self.ring.n_handed_over()
    }
}

impl Manager {
    /// Makes this process a shard of a controller ring: it reconciles the objects that the sharder labels for it.
    ///
    /// Call it before [`add`](Self::add), because it changes what is cached: of primaries and of kinds that are only
    /// owned, the objects with the label of this shard. Cannot be combined with [`elect`](Self::elect) and
    /// [`shard`](Self::shard). `client` sends the requests about the Lease.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// use std::sync::Arc;
    /// use kctl_runtime::manager::{Manager, lease::ElectionConfig, ring::RingConfig};
    ///
    /// let lease = ElectionConfig::new("unused", "shop", "settings-7f4");
    /// let config = RingConfig::new("settings", lease)?;
    /// let manager = Manager::new(client.clone(), "settings.example.com", Arc::new(|_report| {}));
    /// let manager = manager.join_ring(client, config)?;
    /// assert_eq!(manager.view().controller_ring().map(|ring| ring.n_handed_over()), Some(0));
    /// # Ok::<_, kctl_runtime::manager::ring::RingError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name or time of the Lease is invalid, or the manager has a Lease by another call.
    pub fn join_ring(mut self, client: Client, config: RingConfig) -> Result<Self, RingError> {
        let elector = Elector::new(client, config.lease(), self.shared_options.clock())?;
        self.sole_lease.set("join_ring")?;
        self.informers.0.seed_jitter(config.lease().seed);
        // No other process waits for this Lease, so no watch has to notice that it is free.
        let elector = elector.with_role(format!(" --controller-ring {}", config.ring()));
        let elector = elector.with_process_number(config.lease().seed).with_watch(ObservedLease {
            seen: None,
            missing: None,
            latest: Box::new(|| None),
            free: Arc::default(),
        });
        let ring = Arc::new(Ring::new(config.labels(), elector.leadership().permit()));
        self.permit.bind(&WritePermit::from_shards(ring.clone()));
        self.elector = Some(elector);
        self.ring = Some(RingView { config: Arc::new(config), ring });
        Ok(self)
    }

    /// Returns the label selector of a relation's cache: the selector of the declaration. In a controller ring it
    /// includes the shard's selector for kinds whose other objects this process does not need.
    pub(super) fn labels_of(&self, spec: &ControllerSpec, relation: &RelationSpec) -> String {
        match self.labelled_in(spec, relation) {
            Some(RingView { ring, .. }) if relation.labels.is_empty() => ring.labels().selector(),
            Some(RingView { ring, .. }) => format!("{},{}", relation.labels, ring.labels().selector()),
            None => relation.labels.clone(),
        }
    }

    /// Makes reads fail that ask a cache for objects of other shards.
    pub(super) fn limit_to_shard(&self, spec: &ControllerSpec, relation: &RelationSpec, source: &Source) {
        if self.labelled_in(spec, relation).is_some() {
            source.selects_part(match relation.declared_as {
                RelationKind::Primary => {
                    let share = Arc::new(LabelledShare(source.store().clone()));
                    Part::Primaries(Primaries::new(share, Arc::default()))
                }
                _ => Part::Children,
            });
        }
    }

    /// Returns the ring whose sharder labels the objects of a relation for the shard that needs them.
    ///
    /// A kind with a mapper concerns primaries of other shards. A kind that another controller reconciles is assigned
    /// by its own key. A kind of another cluster is not assigned at all.
    fn labelled_in(&self, spec: &ControllerSpec, relation: &RelationSpec) -> Option<&RingView> {
        let ring = self.ring.as_ref()?;
        let is_assigned = match relation.declared_as {
            RelationKind::Primary => true,
            RelationKind::Owned => relation.map.is_none() && !ring.config.reconciles(&relation.kind),
            _ => false,
        };
        let is_here = relation.cluster.is_empty() && spec.primary.cluster.is_empty();
        (is_assigned && is_here && !self.whole.contains(&relation.kind)).then_some(ring)
    }
}

impl View {
    /// Returns this process as a shard of a controller ring, `None` without [`Manager::join_ring`].
    pub fn controller_ring(&self) -> Option<&RingView> {
        self.ring.as_ref()
    }
}
