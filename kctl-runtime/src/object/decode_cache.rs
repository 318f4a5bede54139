//! A ring of recently decoded objects, so that the next reader of an object shares the decoded value.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// Maximum estimated size of the decoded objects that are kept in memory, in bytes, for the whole process.
///
/// The oldest value is dropped first. The bound holds the hundred Pods of one owner, so that the next reconcile does not
/// decode them again.
pub const DECODED_BYTES_MAX: usize = 2 << 20;

/// Estimated bytes of a decoded value for each byte of its JSON, in addition to the value itself.
///
/// The rest of an object is mostly vectors of large structs. A vector grows to four items at once, and a `Container`
/// takes 1 KB if it has only an image. A decoded Pod of 1.2 KB of JSON took 10 KB (heap profile of `benches/shards`).
const BYTES_PER_JSON_BYTE: usize = 6;

type Decoded = Arc<dyn Any + Send + Sync>;

/// The ring of the process. All stores share one, because the share of each in the reads is not known beforehand.
///
/// Objects hold a [`StateId`] instead of a weak reference: a `Weak` would keep the allocation alive.
static CACHE: LazyLock<Mutex<DecodeCache>> = LazyLock::new(Mutex::default);

static N_IDS: AtomicU64 = AtomicU64::new(0);

/// Identifies one state of one object for the lifetime of the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StateId(u64);

impl StateId {
    pub(super) fn new() -> Self {
        Self(N_IDS.fetch_add(1, Ordering::Relaxed))
    }
}

/// A decoded value and its estimated size.
struct Entry {
    n_bytes: usize,
    value: Decoded,
}

/// Decoded values by id, and the order of their insertion.
#[derive(Default)]
struct DecodeCache {
    values: HashMap<StateId, Entry, FixedState>,
    /// Ids in the order of insertion. Invariant: the keys of `values`.
    ids: VecDeque<StateId>,
    n_bytes: usize,
}

impl DecodeCache {
    /// Inserts a value and returns those that were removed to make room.
    ///
    /// The caller drops them after it released the lock.
    fn insert(&mut self, id: StateId, entry: Entry) -> Vec<Entry> {
        let mut gone = Vec::new();
        if self.values.contains_key(&id) {
            return vec![entry];
        }
        while self.n_bytes + entry.n_bytes > DECODED_BYTES_MAX || self.values.len() >= VALUES_MAX {
            let Some(oldest) = self.ids.pop_front().and_then(|id| self.values.remove(&id)) else { return gone };
            self.n_bytes -= oldest.n_bytes;
            gone.push(oldest);
        }
        self.n_bytes += entry.n_bytes;
        self.values.insert(id, entry);
        self.ids.push_back(id);
        debug_assert_eq!(self.ids.len(), self.values.len(), "each value has one place in the order");
        debug_assert!(self.n_bytes <= DECODED_BYTES_MAX, "the oldest values were removed at the bound");
        gone
    }

    fn get(&self, id: StateId) -> Option<Decoded> {
        self.values.get(&id).map(|entry| entry.value.clone())
    }
}

/// Maximum number of decoded values, however small they are.
const VALUES_MAX: usize = 1024;

/// Returns the decoded value of a state while it is in the ring.
pub(super) fn get(id: StateId) -> Option<Decoded> {
    CACHE.lock().get(id)
}

pub(super) fn insert<T: Any + Send + Sync>(id: StateId, json_len: usize, value: Arc<T>) {
    let n_bytes = size_of::<T>() + json_len.saturating_mul(BYTES_PER_JSON_BYTE);
    let gone = CACHE.lock().insert(id, Entry { n_bytes, value });
    // Freed without the lock, which would block all readers.
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_values_go_when_a_bound_is_reached() {
        let mut ring = DecodeCache::default();
        let third = DECODED_BYTES_MAX / 3;
        let steps = [(third, 1), (third, 2), (third, 3), (third, 3), (2 * third, 2), (DECODED_BYTES_MAX, 1)];
        for (n, (n_bytes, n_values)) in steps.into_iter().enumerate() {
            let id = StateId::new();
            ring.insert(id, Entry { n_bytes, value: Arc::new(n) });
            assert_eq!(ring.values.len(), n_values, "after {n}");
            assert_eq!(ring.n_bytes, ring.values.values().map(|entry| entry.n_bytes).sum::<usize>());
            assert_eq!(ring.ids.len(), ring.values.len());
            assert!(ring.get(id).is_some_and(|value| value.downcast_ref() == Some(&n)));
        }
        ring.insert(StateId::new(), Entry { n_bytes: DECODED_BYTES_MAX + 1, value: Arc::new(0) });
        assert!(ring.values.is_empty(), "what is larger than the bound is not kept");
        for _ in 0..2 * VALUES_MAX {
            ring.insert(StateId::new(), Entry { n_bytes: 1, value: Arc::new(0) });
        }
        assert_eq!(ring.values.len(), VALUES_MAX);
    }
}
