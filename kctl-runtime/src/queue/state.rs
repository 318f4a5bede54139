//! The state machine of the queue. It is pure: the time is an argument, and each method returns a [`Wake`] instead of
//! waking a task. The [`WorkQueue`](super::WorkQueue) calls it under its lock.

mod add;
mod effect;
mod entry;
mod failures;
mod get;
mod report;

use std::{collections::BTreeMap, hash::Hash, mem, time::Duration};

use tokio::time::Instant;

use self::entry::Entry;
use super::{
    Item,
    keys::{KeyId, Keys},
    ready::Ready,
};

pub(crate) use effect::{BackoffEffect, KeyEvent, OWN_WRITES_MAX, VersionEffect};
pub use entry::CONFLICTS_BEFORE_WARNING;

/// Maximum wait of a key, one year: longer than any useful wait, and within the range of the clock. Longer waits are
/// shortened to it.
pub const WAIT_MAX: Duration = Duration::from_secs(365 * 86_400);

// `handler/mod.rs` has the table of all tags.

/// The tag of a key whose last run requested another run, for [`Cause::Requeue`](super::Cause::Requeue).
pub const TAG_REQUEUED: u32 = 1;

/// The tag of a key that was added again after a failure.
pub const TAG_RETRIED: u32 = 2;

/// The tag of a key that was added again after a conflict, for [`Cause::Conflict`](super::Cause::Conflict).
pub const TAG_CONFLICTED: u32 = 1 << 5;

/// The reason why a key waits for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelayReason {
    /// Its last run requested it.
    Requeue,
    /// Its last run was based on an outdated state.
    Conflict,
    /// Its last run failed.
    Backoff,
}

impl DelayReason {
    /// Returns the tag that the key gets when its wait ends.
    fn tag(self) -> u32 {
        match self {
            Self::Requeue => TAG_REQUEUED,
            Self::Conflict => TAG_CONFLICTED,
            Self::Backoff => TAG_RETRIED,
        }
    }
}

/// The task to wake after a change of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// No task: the key was added to an existing entry, or has to wait.
    None,
    /// Any worker, because a key became ready.
    Worker,
    /// The worker that sleeps until the earliest wait ends, because that time has changed.
    DelayTimer,
}

/// The result for a worker that requests a key.
pub(super) enum Next<K> {
    /// A key, the time for which it waited, and `more` if other keys are ready.
    Taken { item: Item<K>, waited: Duration, more: bool },
    /// No key is ready; the first delayed one is due at this time.
    Wait(Option<Instant>),
    /// No key will ever be ready again.
    End,
}

/// The phase of the queue. Invariant: a queue that was shut down is never `Open` again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Keys are added and taken.
    Open,
    /// Adds are ignored. Workers still get the keys that are ready.
    ShutDown,
    /// Adds are ignored, and a caller waits until all keys are done.
    Draining,
}

/// All keys of a queue, and the orders in which they become ready and are taken.
///
/// A key has one entry, however often it was added. The other collections hold only its number. An entry without any
/// information is removed, so the memory depends on the keys that wait, run or fail, and not on those ever seen.
pub(super) struct QueueState<K> {
    keys: Keys<K, Entry>,
    /// Keys that a worker can take now.
    ready: Ready<KeyId>,
    /// Keys with a delay. Invariant: empty after a shutdown, and each key in it has this wait in its entry.
    delayed: BTreeMap<(Instant, u64), KeyId>,
    /// Keys that are being processed. Invariant: each entry has its index here, and no key is also in `ready`.
    working: Vec<KeyId>,
    /// The last number that [`next_number`](Self::next_number) returned. Adds, waits and failures share the counter, so
    /// that each of them has its place in one order.
    sequence: u64,
    pub(super) phase: Phase,
    /// Is `true` while a worker sleeps until the first of `delayed` is due. Invariant: at most one worker does.
    pub(super) timer: bool,
    /// Number of adds that made a key ready or dirty, as client-go's `workqueue_adds_total`.
    adds: u64,
    /// Number of adds with a wait, as client-go's `workqueue_retries_total`.
    retries: u64,
}

impl<K> Default for QueueState<K> {
    fn default() -> Self {
        Self {
            keys: Keys::default(),
            ready: Ready::default(),
            delayed: BTreeMap::new(),
            working: Vec::new(),
            sequence: 0,
            phase: Phase::Open,
            timer: false,
            adds: 0,
            retries: 0,
        }
    }
}

impl<K: Eq + Hash + Clone> QueueState<K> {
    /// Returns the next number of the common order.
    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Ends adds, and drops the keys that wait for a time. Ready keys are still taken.
    pub(super) fn shut_down(&mut self, phase: Phase) {
        debug_assert!(phase != Phase::Open, "a queue that was shut down never opens again");
        self.phase = phase;
        for id in mem::take(&mut self.delayed).into_values() {
            self.keys.value_mut(id).delayed = None;
            self.remove_if_empty(id);
        }
    }

    /// Removes all keys that `leaves` selects. A key that is processed is kept, as if it had not been added again.
    pub(super) fn evict(&mut self, leaves: impl Fn(&K) -> bool) {
        for id in self.keys.ids(leaves) {
            self.evict_known(id);
        }
    }

    /// Removes one key in the same way.
    pub(super) fn evict_key(&mut self, key: &K) {
        if let Some(id) = self.keys.find(key) {
            self.evict_known(id);
        }
    }

    /// Removes a key from everything but `working`, and forgets its failures.
    fn evict_known(&mut self, id: KeyId) {
        let entry = self.keys.value_mut(id);
        entry.check_invariants();
        let (queued, delayed) = (entry.queued.take(), entry.delayed.take());
        *entry = Entry { processing: entry.processing, ..Entry::default() };
        if let Some(position) = queued {
            self.ready.remove(&position);
        }
        if let Some(delayed) = delayed {
            self.delayed.remove(&(delayed.due, delayed.order));
        }
        self.remove_if_empty(id);
    }

    pub(super) fn has_entry(&self, key: &K) -> bool {
        self.keys.find(key).is_some()
    }

    /// Removes an entry that holds no information.
    fn remove_if_empty(&mut self, id: KeyId) {
        if self.keys.value(id).is_empty() {
            self.keys.remove(id);
        }
    }
}
