//! The state of one key of a queue: whether it waits, is ready or runs, and its failures.

use tokio::time::Instant;

use super::{
    DelayReason,
    effect::{BackoffEffect, KeyEvent, OWN_WRITES_MAX, VersionEffect},
};
use crate::queue::ready::{Age, ReadyPosition};

/// Number of consecutive conflicts that are normal with concurrent writers. A key with more counts as failing.
pub const CONFLICTS_BEFORE_WARNING: u32 = 5;

#[derive(Default)]
pub(super) struct Entry {
    /// Its position in `ready`. Invariant: `None` while it is processed.
    pub(super) queued: Option<ReadyPosition>,
    /// Its wait for a time. Invariant: `None` while it is queued, and while `dirty` is set.
    pub(super) delayed: Option<Delayed>,
    /// Set while a worker has it.
    pub(super) processing: Option<Work>,
    /// Set if it was added while it was processed. Invariant: `None` at all other times.
    pub(super) dirty: Option<Dirty>,
    /// Tags of all adds since it was last taken.
    pub(super) tags: u32,
    /// Failures since the last success, change or giving up: the exponent of its backoff. Conflicts do not reset them.
    pub(super) failures: u32,
    /// Conflicts since the same reset. They are not failures, and failures do not reset them.
    pub(super) conflicts: u32,
    /// The sequence number at which it began to fail: the order of reports. Invariant: above 0 while it fails.
    pub(super) failing_since: u64,
    /// Set when it is given up. A success or a failure that is retried clears it.
    pub(super) given_up: bool,
    /// Versions that its last run wrote, if it failed. Their events do not make the key ready. Invariant: at most
    /// [`OWN_WRITES_MAX`].
    pub(super) own_writes: Vec<VersionEffect>,
}

impl Entry {
    /// Returns `true` if the entry holds no information, so that it can be removed.
    pub(super) fn is_empty(&self) -> bool {
        let idle = self.queued.is_none() && self.delayed.is_none() && self.processing.is_none();
        idle && self.failures == 0 && self.conflicts == 0 && !self.given_up
    }

    /// Checks the invariants of the fields between two calls of the queue.
    pub(super) fn check_invariants(&self) {
        debug_assert!(self.queued.is_none() || self.processing.is_none(), "a key that a worker has is not ready");
        debug_assert!(self.queued.is_none() || self.delayed.is_none(), "a ready key does not wait for a time");
        debug_assert!(self.dirty.is_none() || self.processing.is_some(), "only a key that a worker has gets dirty");
        debug_assert!(self.dirty.is_none() || self.delayed.is_none(), "a key runs again after its run or after a time");
        debug_assert!(
            self.consecutive_failures() == 0 || self.failing_since > 0,
            "reports sort failing keys by when they began to fail"
        );
        debug_assert!(self.own_writes.len() <= OWN_WRITES_MAX, "further own writes count as writes of others");
    }

    /// Returns `true` if the spec changed while it is processed, so that a failure of this run belongs to the old one.
    pub(super) fn is_changed(&self) -> bool {
        self.dirty.as_ref().and_then(Dirty::effect) == Some(BackoffEffect::Reset)
    }

    /// Counts a failure or a conflict. One that belongs to the spec before a change resets both counts instead.
    pub(super) fn count_attempt(&mut self, sequence: u64, counter: impl FnOnce(&mut Self) -> &mut u32) {
        if self.is_changed() {
            return self.reset_failures();
        }
        if self.consecutive_failures() == 0 {
            self.failing_since = sequence;
        }
        let count = counter(self);
        *count = count.saturating_add(1);
    }

    pub(super) fn reset_failures(&mut self) {
        self.failures = 0;
        self.conflicts = 0;
    }

    /// Returns `true` if it was given up, or has failures or more conflicts than usual since the last reset.
    pub(super) fn is_failing(&self) -> bool {
        self.given_up || self.consecutive_failures() > 0
    }

    /// Returns the number of failures in a row, or of conflicts if they are more than usual; 0 for a key that does not
    /// fail.
    pub(super) fn consecutive_failures(&self) -> u32 {
        match (self.failures, self.conflicts) {
            (0, ..=CONFLICTS_BEFORE_WARNING) => 0,
            (0, conflicts) => conflicts,
            (failures, _) => failures,
        }
    }
}

/// The wait of a key. `due` and `order` are its key in [`QueueState`](super::QueueState).
#[derive(Clone, Copy)]
pub(super) struct Delayed {
    pub(super) due: Instant,
    /// Unique. It keeps keys that are due at the same time in the order of their adds.
    pub(super) order: u64,
    /// The priority with which it becomes ready.
    pub(super) priority: i32,
    pub(super) reason: DelayReason,
}

/// A key in the hands of a worker.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Its index in `working`.
    pub(super) idx: usize,
    pub(super) since: Instant,
    /// The priority with which it was taken, which a retry keeps.
    pub(super) priority: i32,
}

/// An add that happened while the key was processed.
pub(super) struct Dirty {
    pub(super) priority: i32,
    pub(super) age: Age,
    /// The greatest effect of the adds that are not in `events`, if there is one.
    pub(super) other: Option<BackoffEffect>,
    /// The events that added it, at most [`OWN_WRITES_MAX`]. Events of own writes are removed at the end of a failed
    /// run.
    pub(super) events: Vec<KeyEvent>,
}

impl Dirty {
    /// Notes an add. One without an event, or beyond the limit, can not be recognized as an own write.
    pub(super) fn record(&mut self, effect: BackoffEffect, event: Option<KeyEvent>) {
        match event {
            Some(event) if self.events.len() < OWN_WRITES_MAX => self.events.push(event),
            _ => self.other = self.other.max(Some(effect)),
        }
        debug_assert!(self.events.len() <= OWN_WRITES_MAX, "it is bounded");
    }

    /// Returns the greatest effect of all adds. `None` if all of them were events of own writes.
    pub(super) fn effect(&self) -> Option<BackoffEffect> {
        self.events.iter().map(|event| Some(event.change.effect)).fold(self.other, Ord::max)
    }
}
