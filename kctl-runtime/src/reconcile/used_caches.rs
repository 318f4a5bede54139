//! The caches of a controller that its reconciles have used, to report declarations that are larger than needed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Flags of used caches, by position in the declaration. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct UsedCaches(Arc<[AtomicBool]>);

impl UsedCaches {
    /// Creates it for this number of caches, all unused.
    pub(crate) fn new(n: usize) -> Self {
        Self((0..n).map(|_| AtomicBool::new(false)).collect())
    }

    /// Marks a cache as used.
    pub(super) fn mark(&self, index: usize) {
        // Loaded before it is stored, so that reconciles on several threads do not invalidate each other's cache line.
        if let Some(used) = self.0.get(index).filter(|used| !used.load(Ordering::Relaxed)) {
            used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` for a cache that was used.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|used| used.load(Ordering::Relaxed))
    }
}
