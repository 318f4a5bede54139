//! A ring of recently decoded objects, so that the next reader of an object shares the decoded value.

use std::{
    any::Any,
    collections::{HashMap, VecDeque},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::time::Instant;

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

/// A value that is not read during a whole period of this length is dropped at its end.
///
/// A start decodes most objects once, and fills the ring. An idle program would keep them for good.
const PERIOD: Duration = Duration::from_secs(10);

type Decoded = Arc<dyn Any + Send + Sync>;

/// The ring of the process. All stores share one, because the share of each in the reads is not known beforehand.
///
/// Objects hold a [`StateId`] instead of a weak reference: a `Weak` would keep the allocation alive.
static CACHE: LazyLock<Mutex<DecodeCache>> = LazyLock::new(Mutex::default);

static N_IDS: AtomicU64 = AtomicU64::new(0);

/// Identifies one state of one object for the lifetime of the process. States that were accepted later have greater IDs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// The period in which it was last read. Invariant: not after the present one.
    read_in: u64,
}

/// Decoded values by id, and the order of their insertion.
#[derive(Default)]
struct DecodeCache {
    values: HashMap<StateId, Entry, FixedState>,
    /// Ids in the order of insertion. Invariant: the keys of `values`.
    ids: VecDeque<StateId>,
    n_bytes: usize,
    /// The number of the present period, and when it began.
    period: u64,
    began: Option<Instant>,
}

impl DecodeCache {
    /// Inserts a value and returns those that were removed to make room. A value that is not kept is returned itself.
    ///
    /// The caller drops them after it released the lock.
    fn insert(&mut self, id: StateId, n_bytes: usize, value: Decoded) -> Vec<Entry> {
        let (entry, mut gone) = (Entry { n_bytes, value, read_in: self.period }, Vec::new());
        // An entry that never fits would only empty the ring for all other readers.
        if self.values.contains_key(&id) || entry.n_bytes > DECODED_BYTES_MAX {
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

    fn get(&mut self, id: StateId) -> Option<Decoded> {
        let entry = self.values.get_mut(&id)?;
        entry.read_in = self.period;
        Some(entry.value.clone())
    }

    /// Ends the present period if it has lasted long enough. Returns the values that were not read in it.
    ///
    /// The caller drops them after it released the lock.
    fn remove_unread(&mut self, now: Instant) -> Vec<Entry> {
        let began = *self.began.get_or_insert(now);
        if now.saturating_duration_since(began) < PERIOD {
            return Vec::new();
        }
        let (period, mut gone) = (self.period, Vec::new());
        (self.period, self.began) = (period + 1, Some(now));
        let Self { values, ids, n_bytes, .. } = self;
        ids.retain(|id| {
            if values.get(id).is_some_and(|entry| entry.read_in == period) {
                return true;
            }
            if let Some(unread) = values.remove(id) {
                *n_bytes -= unread.n_bytes;
                gone.push(unread);
            }
            false
        });
        if values.is_empty() {
            values.shrink_to_fit();
            ids.shrink_to_fit();
        }
        debug_assert_eq!(self.ids.len(), self.values.len(), "each value has one place in the order");
        gone
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
    let gone = CACHE.lock().insert(id, n_bytes, value);
    // Freed without the lock, which would block all readers.
    drop(gone);
}

/// Drops values that no reader has asked for during the last whole period.
///
/// Watches call it when something arrives, at least a bookmark per minute. So an idle process needs no timer for it.
pub(crate) fn drop_unread_values() {
    let gone = CACHE.lock().remove_unread(Instant::now());
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
            ring.insert(id, n_bytes, Arc::new(n));
            assert_eq!(ring.values.len(), n_values, "after {n}");
            assert_eq!(ring.n_bytes, ring.values.values().map(|entry| entry.n_bytes).sum::<usize>());
            assert_eq!(ring.ids.len(), ring.values.len());
            assert!(ring.get(id).is_some_and(|value| value.downcast_ref() == Some(&n)));
        }
        let (small, huge) = (StateId::new(), StateId::new());
        ring.insert(small, 1, Arc::new(0));
        let gone = ring.insert(huge, DECODED_BYTES_MAX + 1, Arc::new(0));
        assert_eq!((gone.len(), ring.values.len()), (1, 1), "the value that is larger than the bound is not kept");
        assert!(ring.get(small).is_some() && ring.get(huge).is_none(), "and it removes no other value");
        for _ in 0..2 * VALUES_MAX {
            ring.insert(StateId::new(), 1, Arc::new(0));
        }
        assert_eq!(ring.values.len(), VALUES_MAX);
    }

    #[test]
    fn values_unread_for_a_period_are_dropped() {
        let (mut ring, start) = (DecodeCache::default(), Instant::now());
        let n_dropped = |ring: &mut DecodeCache, n_periods: u32| ring.remove_unread(start + PERIOD * n_periods).len();
        assert_eq!(n_dropped(&mut ring, 0), 0, "the first period begins");
        let [read, unread] = [StateId::new(), StateId::new()];
        for (n, id) in [read, unread].into_iter().enumerate() {
            ring.insert(id, n + 1, Arc::new(n));
        }
        assert_eq!(n_dropped(&mut ring, 1), 0, "they were decoded in this period");
        assert!(ring.get(read).is_some());
        assert_eq!(
            ring.remove_unread(start + PERIOD * 2 - Duration::from_millis(1)).len(),
            0,
            "the period has not ended"
        );
        assert_eq!(n_dropped(&mut ring, 2), 1);
        assert_eq!((ring.values.len(), ring.ids.len(), ring.n_bytes), (1, 1, 1));
        assert!(ring.get(unread).is_none() && ring.get(read).is_some());
        assert_eq!([n_dropped(&mut ring, 3), n_dropped(&mut ring, 4)], [0, 1]);
        assert_eq!((ring.values.capacity(), ring.ids.capacity(), ring.n_bytes), (0, 0, 0));
    }
}
