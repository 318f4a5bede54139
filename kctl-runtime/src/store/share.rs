//! The part of a kind that one replica of a sharded program caches.

use std::sync::Arc;

use crate::key::ObjectKey;

/// The keys that this replica owns. Slots come and go, so two calls may differ.
pub(crate) trait Share: Send + Sync {
    /// Returns `true` if this replica owns the slot of the key.
    fn has(&self, key: &ObjectKey) -> bool;

    /// Returns `true` if it owns all keys of a namespace.
    fn has_namespace(&self, namespace: &str) -> bool;

    /// Returns `true` if this replica owns no slot.
    fn is_empty(&self) -> bool;

    /// Returns how many slots were gained so far.
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
    Primaries(Arc<dyn Share>),
    /// The objects that those primaries own. A key does not tell if an object is among them.
    Children,
}
