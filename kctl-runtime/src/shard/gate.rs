//! The gate of one controller: it admits the keys of the slots that this replica works on.

use std::{
    collections::BTreeMap,
    future::pending,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Ring, RunningReconcile, Tenure, Tenures};
use crate::{key::ObjectKey, store::Share, writer::ShardPermits};

/// Admits the keys of slots whose tenure the controller has opened. Clones share the state.
///
/// In a program without shards it admits every key. A tenure that ends closes the gate for its slot at once, because a
/// slot is open for one tenure only.
#[derive(Clone, Default)]
pub(crate) struct Gate {
    /// Set when the program is sharded, which may be after the controller was added.
    tenures: Arc<OnceLock<Arc<Tenures>>>,
    /// The number of the tenure for which a slot is open. Invariant: it only grows.
    open: Arc<Mutex<BTreeMap<u32, u64>>>,
    /// Set in a shard of a controller ring, whose keys are chosen by the labels of their objects.
    ring: Arc<OnceLock<Arc<Ring>>>,
    /// Is `true` once the controller can work on slots: its handlers have seen the initial objects.
    is_ready: Arc<watch::Sender<bool>>,
}

/// The permission to reconcile one key.
pub(crate) enum ReconcileGuard {
    /// The program is not sharded.
    Always,
    /// The slot is this replica's as long as this tenure lasts.
    During(Arc<Tenure>),
    /// The key had no object when it was taken, in a shard of a controller ring. Its run may only forget it.
    Gone,
    /// The key is this shard's, and is not handed over while this exists.
    Counted(RunningReconcile),
}

impl ReconcileGuard {
    /// Runs a reconcile, and returns `None` if its slot is lost during the reconcile.
    pub(crate) async fn run<T>(&self, reconcile: impl Future<Output = T>) -> Option<T> {
        match self {
            Self::Always | Self::Gone | Self::Counted(_) => Some(reconcile.await),
            Self::During(tenure) => tenure.run(reconcile).await,
        }
    }

    /// Returns the number of the only tenure in which the reconcile may write; 0 if it may always write, or not at all.
    pub(crate) fn tenure(&self) -> u64 {
        match self {
            Self::Always | Self::Gone => 0,
            Self::Counted(running) => running.tenure(),
            Self::During(tenure) => Tenures::number(tenure),
        }
    }

    /// Returns `true` while further keys of the slot are given out.
    pub(crate) fn serves(&self) -> bool {
        match self {
            Self::Always | Self::Gone | Self::Counted(_) => true,
            Self::During(tenure) => tenure.serves(),
        }
    }
}

impl Gate {
    /// Makes this the gate of a sharded program. Only the first call has an effect.
    pub(crate) fn bind(&self, tenures: &Arc<Tenures>) {
        debug_assert!(self.ring.get().is_none(), "`SoleLease` rejects `shard` after `join_ring`");
        let _bound = self.tenures.set(tenures.clone());
    }

    /// Makes this the gate of a shard of a controller ring.
    pub(crate) fn bind_ring(&self, ring: &Arc<Ring>) {
        debug_assert!(self.tenures.get().is_none(), "`SoleLease` rejects `join_ring` after `shard`");
        let _bound = self.ring.set(ring.clone());
    }

    /// Returns the shard of a controller ring, `None` outside of one.
    pub(crate) fn ring(&self) -> Option<&Arc<Ring>> {
        self.ring.get()
    }

    /// Notes that the handlers of the controller have seen the initial objects.
    pub(crate) fn set_ready(&self) {
        self.is_ready.send_replace(true);
    }

    /// Returns `true` if the handlers of the controller have seen the initial objects. No worker runs before.
    pub(crate) fn is_ready(&self) -> bool {
        *self.is_ready.borrow()
    }

    /// Returns once the handlers of the controller have seen the initial objects.
    pub(crate) async fn ready(&self) {
        let mut is_ready = self.is_ready.subscribe();
        // The sender lives as long as this gate, so this does not fail.
        drop(is_ready.wait_for(|is_ready| *is_ready).await);
    }

    /// Returns `true` if keys move between replicas while they work.
    pub(crate) fn moves_keys(&self) -> bool {
        self.tenures.get().is_some() || self.ring.get().is_some()
    }

    /// Returns the slot of a key, whose writes have a permit in common. 0 if all keys have one permit.
    pub(crate) fn slot(&self, key: &ObjectKey) -> u32 {
        if let Some(ring) = self.ring.get() {
            return ring.slot(key);
        }
        self.tenures.get().map_or(0, |tenures| tenures.slot(key))
    }

    /// Returns `true` if this replica owns the key's slot, even if its caches are not yet as new as the tenure.
    pub(crate) fn owns(&self, key: &ObjectKey) -> bool {
        self.tenures.get().is_none_or(|tenures| tenures.has(key))
    }

    /// Returns how often a slot has been gained or lost so far.
    pub(crate) fn n_changes(&self) -> u64 {
        self.tenures.get().map_or(0, |tenures| tenures.n_changes())
    }

    /// Waits until a slot was gained or lost since [`n_changes`](Self::n_changes) returned `n_seen`. Without slots it
    /// never returns.
    pub(crate) async fn changed_since(&self, n_seen: u64) {
        match self.tenures.get() {
            Some(tenures) => tenures.changed_since(n_seen).await,
            None => pending().await,
        }
    }

    /// Returns `true` if the controller works on the key's slot.
    pub(crate) fn admits(&self, key: &ObjectKey) -> bool {
        self.enter(key).is_some()
    }

    /// Returns the permission to reconcile a key, or `None` if another replica has to reconcile it.
    pub(crate) fn enter(&self, key: &ObjectKey) -> Option<ReconcileGuard> {
        let Some(tenures) = self.tenures.get() else { return Some(ReconcileGuard::Always) };
        let tenure = tenures.get(tenures.slot(key)).filter(|tenure| tenure.serves())?;
        let is_open = self.open.lock().get(&tenure.slot()) == Some(&Tenures::number(&tenure));
        is_open.then_some(ReconcileGuard::During(tenure))
    }

    /// Opens the gate for one tenure: the caches of the controller are as new as its begin.
    pub(crate) fn open(&self, tenure: &Tenure) {
        let number = Tenures::number(tenure);
        let before = self.open.lock().insert(tenure.slot(), number);
        debug_assert!(before.is_none_or(|before| before <= number), "caches are older than a tenure that began later");
    }

    /// Returns `true` if the gate was opened for this tenure.
    pub(crate) fn is_open(&self, tenure: &Tenure) -> bool {
        self.open.lock().get(&tenure.slot()) == Some(&Tenures::number(tenure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        shard::{ShardBy, Slots},
        writer::WritePermit,
    };

    #[test]
    fn slot_is_open_for_one_tenure_only() {
        let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
        let (gate, key) = (Gate::default(), ObjectKey::new(Some("default"), "web"));
        assert!(gate.admits(&key), "not sharded");
        gate.bind(&tenures);
        assert!(!gate.admits(&key), "not owned");
        let first = tenures.begin(0, &WritePermit::always());
        assert!(!gate.admits(&key), "its caches may be old");
        gate.open(&first);
        assert!(gate.admits(&key));
        tenures.drain(&first);
        assert!(!gate.admits(&key), "it is handed over");
        tenures.end(0);
        let second = tenures.begin(0, &WritePermit::always());
        assert!(!gate.admits(&key) && !gate.is_open(&second), "the caches may be older than the new tenure");
    }
}
