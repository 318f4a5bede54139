//! A [`Share`] for tests: a replica that owns all slots.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Share;
use crate::key::ObjectKey;

/// A replica that owns all slots.
#[derive(Default)]
pub(crate) struct AllSlots {
    /// The number of gained slots, which is also the number of moves.
    pub(crate) n_gained: AtomicU64,
    /// Each call of [`Share::n_gained`] gains a slot until this many are gained.
    n_gained_by_calls: u64,
}

impl AllSlots {
    /// Creates a replica that gains a slot with each call of [`Share::n_gained`], up to this number. It has no
    /// `shardSelector`.
    pub(crate) fn gaining(n_gained_by_calls: u64) -> Self {
        Self { n_gained: AtomicU64::default(), n_gained_by_calls }
    }
}

impl Share for AllSlots {
    fn has(&self, _key: &ObjectKey) -> bool {
        true
    }

    fn has_namespace(&self, _namespace: &str) -> bool {
        true
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn n_gained(&self) -> u64 {
        let n_gained = self.n_gained.load(Ordering::Relaxed);
        if n_gained < self.n_gained_by_calls {
            self.n_gained.store(n_gained + 1, Ordering::Relaxed);
        }
        n_gained
    }

    /// The number of moves identifies the set of slots of the replica.
    fn shard_selector(&self) -> Option<String> {
        (self.n_gained_by_calls == 0).then(|| format!("moves-{}", self.n_gained()))
    }
}
