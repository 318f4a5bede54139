//! The part of a kind that one replica of a sharded program caches.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::key::ObjectKey;

/// The keys that this replica owns. Slots come and go, so two calls may differ.
pub(crate) trait Share: Send + Sync {
    /// Returns `true` if this replica owns the slot of the key.
    fn has(&self, key: &ObjectKey) -> bool;

    /// Returns `true` if this replica owns the slot of the key, and has owned it since [`n_gained`](Self::n_gained) was
    /// this number.
    fn has_since(&self, key: &ObjectKey, _n_gained: u64) -> bool {
        self.has(key)
    }

    /// Returns `true` if it owns all keys of a namespace.
    fn has_namespace(&self, namespace: &str) -> bool;

    /// Returns `true` if this replica owns no slot.
    fn is_empty(&self) -> bool;

    /// Returns how many slots were gained so far. Each gain begins a tenure (`shard/tenure.rs`), so this is also the
    /// number of tenures that have begun.
    fn n_gained(&self) -> u64;

    /// Returns how often a slot was gained or lost so far.
    fn n_moves(&self) -> u64 {
        self.n_gained()
    }

    /// Returns the `shardSelector` of the namespaced objects that belong to it. `None` if the API server can't select
    /// them, or if there is no need.
    fn shard_selector(&self) -> Option<String> {
        None
    }
}

/// The part of a kind that a filtered cache has.
#[derive(Clone)]
pub(crate) enum Part {
    /// The primaries of this replica's slots.
    Primaries(Primaries),
    /// The objects that those primaries own. A key does not tell if an object is among them.
    Children,
}

/// The primaries in a filtered cache.
#[derive(Clone)]
pub(crate) struct Primaries {
    share: Arc<dyn Share>,
    /// The number of gained slots at the last list. The objects of a slot that was gained later are not in the cache yet.
    /// Invariant: at most [`Share::n_gained`], which only grows.
    listed: Arc<AtomicU64>,
}

impl Primaries {
    pub(crate) fn new(share: Arc<dyn Share>, listed: Arc<AtomicU64>) -> Self {
        Self { share, listed }
    }

    /// Returns `true` if the cache has the object of this key, if there is one.
    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        let listed = self.listed.load(Ordering::Relaxed);
        debug_assert!(listed <= self.share.n_gained(), "a cache is not listed for slots that will be gained later");
        self.share.has_since(key, listed)
    }

    /// Returns `true` if the cache has all objects of a namespace.
    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        self.owns_namespace(namespace) && self.has(&ObjectKey::new(Some(namespace), ""))
    }

    /// Returns `true` if this replica owns the slot of the key, even if the cache does not have its objects yet.
    pub(super) fn owns(&self, key: &ObjectKey) -> bool {
        self.share.has(key)
    }

    /// Returns `true` if this replica owns all keys of a namespace, even if the cache does not have them yet.
    pub(super) fn owns_namespace(&self, namespace: &str) -> bool {
        self.share.has_namespace(namespace)
    }
}
