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

/// Maximum JSON size of the decoded objects that stay in memory, in bytes, for the whole process.
///
/// The oldest value goes first. Decoded values take several times the size of their JSON. The bound
/// holds the hundred Pods of one owner, so that the next reconcile does not decode them again.
pub const HOT_BYTES_MAX: usize = 512 << 10;

/// A decoded object of any type.
type Decoded = Arc<dyn Any + Send + Sync>;

/// The ring of the process. All stores share one, because no one knows beforehand which is read most.
///
/// Objects hold an [`Id`] instead of a weak reference: a `Weak` would keep the allocation alive.
static HOT: LazyLock<Mutex<Ring>> = LazyLock::new(Mutex::default);

static N_IDS: AtomicU64 = AtomicU64::new(0);

/// Identifies one state of one object for the lifetime of the process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id(u64);

impl Id {
    pub(super) fn new() -> Self {
        Self(N_IDS.fetch_add(1, Ordering::Relaxed))
    }
}

/// A decoded value and the length of the JSON that it came from.
struct Hot {
    n_bytes: usize,
    value: Decoded,
}

/// Decoded values by id, and the order in which they came.
#[derive(Default)]
struct Ring {
    values: HashMap<Id, Hot, FixedState>,
    /// Ids in the order of insertion.
    ids: VecDeque<Id>,
    n_bytes: usize,
}

impl Ring {
    /// Inserts a value and returns those that were removed to make room.
    ///
    /// The caller drops them after it released the lock.
    fn keep(&mut self, id: Id, hot: Hot) -> Vec<Hot> {
        let mut gone = Vec::new();
        if self.values.contains_key(&id) {
            return vec![hot];
        }
        while self.n_bytes + hot.n_bytes > HOT_BYTES_MAX || self.values.len() >= VALUES_MAX {
            let Some(oldest) = self.ids.pop_front().and_then(|id| self.values.remove(&id)) else { return gone };
            self.n_bytes -= oldest.n_bytes;
            gone.push(oldest);
        }
        self.n_bytes += hot.n_bytes;
        self.values.insert(id, hot);
        self.ids.push_back(id);
        gone
    }

    fn get(&self, id: Id) -> Option<Decoded> {
        self.values.get(&id).map(|hot| hot.value.clone())
    }
}

/// Maximum number of decoded values, however small they are.
const VALUES_MAX: usize = 1024;

/// Returns the decoded value of a state while it is in the ring.
pub(super) fn get(id: Id) -> Option<Decoded> {
    HOT.lock().get(id)
}

/// Inserts a value that was decoded from `n_bytes` of JSON.
pub(super) fn keep(id: Id, n_bytes: usize, value: Decoded) {
    let gone = HOT.lock().keep(id, Hot { n_bytes, value });
    // What it takes to free them is nobody else's wait.
    drop(gone);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_values_go_when_a_bound_is_reached() {
        let mut ring = Ring::default();
        let third = HOT_BYTES_MAX / 3;
        let steps = [(third, 1), (third, 2), (third, 3), (third, 3), (2 * third, 2), (HOT_BYTES_MAX, 1)];
        for (n, (n_bytes, kept)) in steps.into_iter().enumerate() {
            let id = Id::new();
            ring.keep(id, Hot { n_bytes, value: Arc::new(n) });
            assert_eq!(ring.values.len(), kept, "after {n}");
            assert_eq!(ring.n_bytes, ring.values.values().map(|hot| hot.n_bytes).sum::<usize>());
            assert_eq!(ring.ids.len(), ring.values.len());
            assert!(ring.get(id).is_some_and(|value| value.downcast_ref() == Some(&n)));
        }
        ring.keep(Id::new(), Hot { n_bytes: HOT_BYTES_MAX + 1, value: Arc::new(0) });
        assert!(ring.values.is_empty(), "what is larger than the bound is not kept");
        for _ in 0..2 * VALUES_MAX {
            ring.keep(Id::new(), Hot { n_bytes: 1, value: Arc::new(0) });
        }
        assert_eq!(ring.values.len(), VALUES_MAX);
    }
}
