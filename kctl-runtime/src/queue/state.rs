//! The state machine of the queue. It is pure: the time is an argument, and each method returns a [`Wake`] instead of
//! waking a task. The [`WorkQueue`](super::WorkQueue) calls it under its lock.

use std::{collections::BTreeMap, hash::Hash, mem, time::Duration};

use tokio::time::Instant;

use super::{
    Add, Backoff, Cause, Item,
    keys::{KeyId, Keys},
    ready::{Age, Ready, ReadyPosition},
    stats::{PRIORITIES_REPORTED_MAX, QueueKeys, QueueStats},
};

/// Maximum wait of a key, one year: longer than any useful wait, and within the range of the clock. Longer waits are
/// shortened to it.
pub const WAIT_MAX: Duration = Duration::from_secs(365 * 86_400);

/// The tag of a key whose last run requested another one, for [`Cause::Requeue`].
pub const TAG_REQUEUED: u32 = 1;
/// The tag of a key that was added again after a failure.
pub const TAG_RETRIED: u32 = 2;
/// The tag of a key that was added again after a conflict, for [`Cause::Conflict`].
pub const TAG_CONFLICTED: u32 = 1 << 5;

/// Maximum number of versions that are remembered of the writes of one run, and of the events during it. An event
/// beyond the limit counts as the write of another client.
pub(crate) const OWN_WRITES_MAX: usize = 64;

/// The effect of an add on a key that failed. All other keys run in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BackoffEffect {
    /// The backoff continues: only a status changed, or an owned object. Most of these changes are the writes of the
    /// failing reconcile itself, which would make it run in a hot loop.
    Keep,
    /// The backoff ends and the failures are kept: a user, a mapper or a timer asks for the key, or something else than
    /// the primary's spec changed, on which the outcome may depend.
    End,
    /// The backoff ends and the failures are reset: they belong to another spec.
    Reset,
}

/// A version of an object: one that a run wrote, or one whose event added a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VersionEffect {
    /// The number of the version, from `own_writes.rs`.
    pub(crate) version: u64,
    /// The effect of the event. For a write, the greatest effect that the write itself can have.
    pub(crate) effect: BackoffEffect,
}

/// An event that adds a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEvent {
    /// The version of the changed object, with the effect on the key.
    pub(crate) change: VersionEffect,
    /// The effect that a write needs to explain the change. A write of that version with a lesser one leaves open that
    /// another client has changed the object as well.
    pub(crate) min_write_effect: BackoffEffect,
}

impl KeyEvent {
    /// Returns `true` if these writes of a run explain the event.
    fn is_explained_by(self, writes: &[VersionEffect]) -> bool {
        writes.iter().any(|write| write.version == self.change.version && self.min_write_effect <= write.effect)
    }
}

/// The reason for which a key waits for a time.
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
    Timekeeper,
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
/// A key has one entry, however often it was added. The collections beside `keys` hold only its number. An entry without
/// any information is removed, so the memory depends on the keys that wait, run or fail, and not on those ever seen.
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
    pub(super) timekeeper: bool,
    /// Number of adds that made a key ready or dirty, as client-go's `workqueue_adds_total`.
    adds: u64,
    /// Number of adds with a wait, as client-go's `workqueue_retries_total`.
    retries: u64,
}

/// Number of consecutive conflicts that are normal with concurrent writers. A key with more counts as failing.
pub const CONFLICTS_USUAL: u32 = 5;

/// The state of one key.
#[derive(Default)]
struct Entry {
    /// Its position in `ready`. Invariant: `None` while it is processed.
    queued: Option<ReadyPosition>,
    /// Its wait for a time. Invariant: `None` while it is queued, and while `dirty` is set.
    delayed: Option<Delayed>,
    /// Set while a worker has it.
    processing: Option<Work>,
    /// Set if it was added while it was processed. Invariant: `None` at all other times.
    dirty: Option<Dirty>,
    /// Tags of all adds since it was last taken.
    tags: u32,
    /// Failures since the last success or change: the exponent of its backoff.
    failures: u32,
    /// Conflicts in a row, which are not failures.
    conflicts: u32,
    /// The sequence number at which it began to fail: the order of reports. Invariant: above 0 while it fails.
    failing_since: u64,
    /// Is `true` if it failed with a terminal error or too often, and has not succeeded since.
    given_up: bool,
    /// Versions that its last run wrote, if it failed. Their events do not make the key ready. Invariant: at most
    /// [`OWN_WRITES_MAX`].
    own_writes: Vec<VersionEffect>,
}

impl Entry {
    /// Returns `true` if the entry holds no information, so that it can be removed.
    fn is_empty(&self) -> bool {
        let idle = self.queued.is_none() && self.delayed.is_none() && self.processing.is_none();
        idle && self.failures == 0 && self.conflicts == 0 && !self.given_up
    }

    /// Checks the invariants of the fields between two calls of the queue.
    fn check(&self) {
        debug_assert!(self.queued.is_none() || self.processing.is_none(), "a key that a worker has is not ready");
        debug_assert!(self.queued.is_none() || self.delayed.is_none(), "a ready key does not wait for a time");
        debug_assert!(self.dirty.is_none() || self.processing.is_some(), "only a key that a worker has gets dirty");
        debug_assert!(self.dirty.is_none() || self.delayed.is_none(), "a key runs again after its run or after a time");
        debug_assert!(
            self.in_a_row() == 0 || self.failing_since > 0,
            "reports sort failing keys by when they began to fail"
        );
        debug_assert!(self.own_writes.len() <= OWN_WRITES_MAX, "further own writes count as those of others");
    }

    /// Returns `true` if the spec changed while it is processed, so that a failure of this run belongs to the old one.
    fn is_changed(&self) -> bool {
        self.dirty.as_ref().and_then(Dirty::effect) == Some(BackoffEffect::Reset)
    }

    /// Counts a failure or a conflict. One that belongs to the spec before a change resets both counts instead.
    fn count(&mut self, sequence: u64, counter: impl FnOnce(&mut Self) -> &mut u32) {
        if self.is_changed() {
            return self.reset_failures();
        }
        if self.in_a_row() == 0 {
            self.failing_since = sequence;
        }
        let count = counter(self);
        *count = count.saturating_add(1);
    }

    fn reset_failures(&mut self) {
        self.failures = 0;
        self.conflicts = 0;
    }

    /// Returns `true` if its last run failed.
    fn is_failing(&self) -> bool {
        self.given_up || self.in_a_row() > 0
    }

    /// Returns the number of failures in a row, or of conflicts if they are more than usual; 0 for a key that does not
    /// fail.
    fn in_a_row(&self) -> u32 {
        match (self.failures, self.conflicts) {
            (0, ..=CONFLICTS_USUAL) => 0,
            (0, conflicts) => conflicts,
            (failures, _) => failures,
        }
    }
}

/// The wait of a key. `due` and `order` are its key in [`QueueState::delayed`].
#[derive(Clone, Copy)]
struct Delayed {
    due: Instant,
    /// Unique. It keeps keys that are due at the same time in the order of their adds.
    order: u64,
    /// The priority with which it becomes ready.
    priority: i32,
    reason: DelayReason,
}

/// A key in the hands of a worker.
#[derive(Clone, Copy)]
struct Work {
    /// Its index in `working`.
    idx: usize,
    since: Instant,
    /// The priority with which it was taken, which a retry keeps.
    priority: i32,
}

/// An add that happened while the key was processed.
struct Dirty {
    priority: i32,
    age: Age,
    /// The greatest effect of the adds that are not in `events`, if there is one.
    other: Option<BackoffEffect>,
    /// The events that added it, at most [`OWN_WRITES_MAX`]. Those of own writes are removed at the end of a failed
    /// run.
    events: Vec<KeyEvent>,
}

impl Dirty {
    /// Notes an add. One without an event, or beyond the limit, can not be recognized as an own write.
    fn note(&mut self, effect: BackoffEffect, event: Option<KeyEvent>) {
        match event {
            Some(event) if self.events.len() < OWN_WRITES_MAX => self.events.push(event),
            _ => self.other = self.other.max(Some(effect)),
        }
        debug_assert!(self.events.len() <= OWN_WRITES_MAX, "it is bounded");
    }

    /// Returns the greatest effect of all adds. `None` if all of them were events of own writes.
    fn effect(&self) -> Option<BackoffEffect> {
        self.events.iter().map(|event| Some(event.change.effect)).fold(self.other, Ord::max)
    }
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
            timekeeper: false,
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

    /// Adds a key, and returns the wait until it is ready. After a shutdown, only failures and conflicts are counted.
    ///
    /// An event of a version that the last run wrote before it failed changes nothing but the tags.
    pub(super) fn add(&mut self, add: Add<K>, backoff: Backoff, now: Instant) -> (Duration, Wake) {
        let Add { key, priority, tags, cause, event } = add;
        if self.phase != Phase::Open && !cause.is_counted() {
            return (Duration::ZERO, Wake::None);
        }
        let id = self.keys.ensure(key);
        let entry = self.keys.value_mut(id);
        entry.tags |= tags;
        let Some(effect) = cause.effect() else { return self.add_later(id, priority, cause, backoff, now) };
        if event.is_some_and(|event| event.is_explained_by(&entry.own_writes)) {
            return (Duration::ZERO, Wake::None);
        }
        (Duration::ZERO, self.add_known(id, priority, effect, event, now))
    }

    /// Adds a key that waits for a time, and counts its failure or conflict.
    fn add_later(
        &mut self,
        id: KeyId,
        priority: i32,
        cause: Cause,
        backoff: Backoff,
        now: Instant,
    ) -> (Duration, Wake) {
        let sequence = self.next_number();
        let entry = self.keys.value_mut(id);
        let (wait, reason) = match cause {
            Cause::Failure => (backoff.wait(entry.failures), DelayReason::Backoff),
            Cause::FailureAfter(wait) => (wait, DelayReason::Backoff),
            Cause::Conflict(least) => (least.max(backoff.wait(entry.conflicts)), DelayReason::Conflict),
            Cause::Requeue(wait) => (wait, DelayReason::Requeue),
            Cause::Request | Cause::Changed | Cause::Unchanged => (Duration::ZERO, DelayReason::Requeue),
        };
        match reason {
            DelayReason::Backoff => {
                entry.given_up = false;
                entry.count(sequence, |entry| &mut entry.failures);
            }
            DelayReason::Conflict => entry.count(sequence, |entry| &mut entry.conflicts),
            DelayReason::Requeue => {}
        }
        if self.phase != Phase::Open {
            return (wait, Wake::None);
        }
        (wait, self.add_known_after(id, priority, wait, reason, now))
    }

    /// Adds a key that has an entry.
    ///
    /// A key that waits becomes ready, except for a change that does not end its backoff. A ready key moves up if the
    /// new priority is higher, and keeps its age.
    fn add_known(
        &mut self,
        id: KeyId,
        priority: i32,
        effect: BackoffEffect,
        event: Option<KeyEvent>,
        now: Instant,
    ) -> Wake {
        let sequence = self.next_number();
        let entry = self.keys.value_mut(id);
        entry.check();
        // The event may be that of an own write, which the end of the run finds out.
        if effect == BackoffEffect::Reset && (entry.processing.is_none() || event.is_none()) {
            entry.reset_failures();
        }
        let mut priority = priority;
        if let Some(delayed) = &mut entry.delayed {
            delayed.priority = delayed.priority.max(priority);
            if effect == BackoffEffect::Keep && delayed.reason == DelayReason::Backoff {
                return Wake::None;
            }
            priority = delayed.priority;
            let removed = self.delayed.remove(&(delayed.due, delayed.order));
            debug_assert_eq!(removed, Some(id), "a key that waits is in `delayed` under its own wait");
            entry.delayed = None;
        }
        let fresh = Age { sequence, since: now };
        if entry.processing.is_some() {
            self.adds += u64::from(entry.dirty.is_none());
            let clean = Dirty { priority, age: fresh, other: None, events: Vec::new() };
            let dirty = entry.dirty.get_or_insert(clean);
            dirty.note(effect, event);
            dirty.priority = dirty.priority.max(priority);
            return Wake::None;
        }
        let age = match entry.queued {
            Some(position) if position.priority() >= priority => return Wake::None,
            Some(position) => {
                self.ready.remove(&position);
                position.age()
            }
            None => {
                self.adds += 1;
                fresh
            }
        };
        debug_assert!(entry.delayed.is_none(), "a key that becomes ready does not wait for a time");
        let position = ReadyPosition::new(priority, sequence, age);
        entry.queued = Some(position);
        self.ready.insert(position, id);
        Wake::Worker
    }

    /// Adds a key that has an entry, after a wait of at most [`WAIT_MAX`].
    ///
    /// A key that is processed keeps the priority with which it was taken (controller-runtime,
    /// `pkg/internal/controller/controller.go`, `reconcileHandler`).
    fn add_known_after(&mut self, id: KeyId, priority: i32, wait: Duration, reason: DelayReason, now: Instant) -> Wake {
        self.retries += 1;
        let priority = self.keys.value(id).processing.map_or(priority, |work| work.priority);
        if wait.is_zero() {
            self.keys.value_mut(id).tags |= reason.tag();
            return self.add_known(id, priority, BackoffEffect::End, None, now);
        }
        self.delay(id, priority, now + wait.min(WAIT_MAX), reason)
    }

    /// Lets a key wait until `due`. The earlier of two waits is kept, and the higher of two priorities. A key that is
    /// ready, or runs again at once, does not wait.
    fn delay(&mut self, id: KeyId, priority: i32, due: Instant, reason: DelayReason) -> Wake {
        let order = self.next_number();
        let entry = self.keys.value_mut(id);
        entry.check();
        let mut delayed = Delayed { due, order, priority, reason };
        match &entry.dirty {
            // The key runs again before this wait would end.
            Some(dirty) if dirty.effect() > Some(BackoffEffect::Keep) || reason != DelayReason::Backoff => {
                return Wake::None;
            }
            Some(dirty) => delayed.priority = priority.max(dirty.priority),
            None if entry.queued.is_some() => return Wake::None,
            None => {}
        }
        entry.dirty = None;
        if let Some(present) = &mut entry.delayed {
            if reason == DelayReason::Backoff || present.reason == DelayReason::Requeue {
                present.reason = reason;
            }
            present.priority = present.priority.max(delayed.priority);
            if present.due <= due {
                return Wake::None;
            }
            let removed = self.delayed.remove(&(present.due, present.order));
            debug_assert_eq!(removed, Some(id), "a key that waits is in `delayed` under its own wait");
            delayed = Delayed { due, order, ..*present };
        }
        debug_assert!(matches!(self.phase, Phase::Open), "nothing waits for a time after a shutdown");
        entry.delayed = Some(delayed);
        self.delayed.insert((due, order), id);
        let is_first = self.delayed.first_key_value().is_some_and(|(first, _)| *first == (due, order));
        if is_first { Wake::Timekeeper } else { Wake::None }
    }

    /// Resets failures and conflicts after a success.
    pub(super) fn forget(&mut self, key: &K) {
        if let Some(id) = self.keys.find(key) {
            let entry = self.keys.value_mut(id);
            entry.reset_failures();
            entry.given_up = false;
            self.remove_if_empty(id);
        }
    }

    /// Resets the failures of a key, which still counts as failing until it succeeds.
    pub(super) fn give_up(&mut self, key: K) {
        let id = self.keys.ensure(key);
        let entry = self.keys.value_mut(id);
        entry.reset_failures();
        entry.given_up = true;
    }

    /// Records the versions that the ending run wrote. Their events, earlier or later, do not make the key run again.
    pub(super) fn ignore_own_writes(&mut self, key: &K, mut written: Vec<VersionEffect>) {
        let Some(id) = self.keys.find(key) else { return };
        let entry = self.keys.value_mut(id);
        written.truncate(OWN_WRITES_MAX);
        if let Some(dirty) = &mut entry.dirty {
            dirty.events.retain(|event| !event.is_explained_by(&written));
        }
        entry.dirty = entry.dirty.take().filter(|dirty| dirty.effect().is_some());
        entry.own_writes = written;
        if entry.is_changed() {
            entry.reset_failures();
        }
    }

    /// Returns the conflicts in a row of a key.
    pub(super) fn conflicts(&self, key: &K) -> u32 {
        self.keys.find(key).map_or(0, |id| self.keys.value(id).conflicts)
    }

    /// Returns the failures in a row of a key.
    pub(super) fn failures(&self, key: &K) -> u32 {
        self.keys.find(key).map_or(0, |id| self.keys.value(id).failures)
    }

    /// Returns the number of keys whose last run failed, with those that were given up.
    pub(super) fn n_failing(&self) -> usize {
        self.keys.iter().filter(|(_, entry)| entry.is_failing()).count()
    }

    /// Returns the keys that fail and are retried, with their failures or conflicts in a row, longest failing first.
    pub(super) fn failing(&self) -> Vec<(K, u32)> {
        let mut failing: Vec<_> = self.keys.iter().filter(|(_, entry)| entry.in_a_row() > 0).collect();
        failing.sort_by_key(|(_, entry)| entry.failing_since);
        failing.into_iter().map(|(key, entry)| (key.clone(), entry.in_a_row())).collect()
    }

    /// Collects the failing and the running keys in one pass, and returns at most `max` of each.
    pub(super) fn keys(&self, max: usize, now: Instant) -> QueueKeys<K> {
        let (mut failing, mut running) = (Vec::new(), Vec::new());
        for (key, entry) in self.keys.iter() {
            if entry.in_a_row() > 0 {
                failing.push((entry.failing_since, key, entry));
            }
            if let Some(work) = entry.processing {
                running.push((work.since, key));
            }
        }
        let n_failing = failing.len();
        failing.sort_unstable_by_key(|(since, ..)| *since);
        running.sort_unstable_by_key(|(since, _)| *since);
        let wait = |entry: &Entry| entry.delayed.map(|delayed| delayed.due.saturating_duration_since(now));
        let failing = failing.into_iter().take(max).map(|(_, key, entry)| (key.clone(), entry.in_a_row(), wait(entry)));
        let running = running.into_iter().take(max);
        QueueKeys {
            failing: failing.collect(),
            n_failing,
            running: running.map(|(since, key)| (key.clone(), now.saturating_duration_since(since))).collect(),
        }
    }

    /// Takes the next ready key for a worker, or returns until when it has to wait.
    pub(super) fn next(&mut self, now: Instant) -> Next<K> {
        self.promote_due(now);
        if let Some((position, id)) = self.ready.take()
            && let Some(key) = self.keys.key(id).cloned()
        {
            let entry = self.keys.value_mut(id);
            debug_assert!(entry.processing.is_none(), "one worker processes a key");
            debug_assert!(entry.delayed.is_none() && entry.dirty.is_none(), "a ready key neither waits nor runs");
            entry.queued = None;
            entry.own_writes = Vec::new();
            entry.processing = Some(Work { idx: self.working.len(), since: now, priority: position.priority() });
            let tags = mem::take(&mut entry.tags);
            self.working.push(id);
            let item = Item { key, priority: position.priority(), tags };
            let waited = now.saturating_duration_since(position.age().since);
            return Next::Taken { item, waited, more: self.ready.len() > 0 };
        }
        match self.phase {
            Phase::Open => Next::Wait(self.delayed.first_key_value().map(|((due, _), _)| *due)),
            Phase::ShutDown | Phase::Draining => {
                debug_assert!(self.delayed.is_empty(), "a worker that ends leaves no key behind");
                Next::End
            }
        }
    }

    /// Makes the keys ready whose wait has ended.
    fn promote_due(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let (due, _) = *first.key();
            let id = first.remove();
            let delayed = self.keys.value_mut(id).delayed.take();
            debug_assert!(delayed.is_some(), "a key in `delayed` knows its wait");
            let (priority, tags) = delayed.map_or((0, 0), |delayed| (delayed.priority, delayed.reason.tag()));
            self.keys.value_mut(id).tags |= tags;
            self.add_known(id, priority, BackoffEffect::End, None, due);
        }
    }

    /// Ends the processing of a key. Returns its duration and the task to wake, or `None` if the key was not being
    /// processed.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> Option<(Duration, Wake)> {
        let order = self.next_number();
        let id = self.keys.find(key)?;
        let work = self.keys.value_mut(id).processing.take()?;
        debug_assert_eq!(self.working.get(work.idx), Some(&id), "a processed key knows its index in `working`");
        self.remove_working(work.idx);
        let entry = self.keys.value_mut(id);
        let wake = if let Some(dirty) = entry.dirty.take() {
            if dirty.effect() == Some(BackoffEffect::Reset) {
                entry.reset_failures();
            }
            debug_assert!(entry.delayed.is_none(), "a key that runs again at once waits for no time");
            let position = ReadyPosition::new(dirty.priority, order, dirty.age);
            entry.queued = Some(position);
            self.ready.insert(position, id);
            Wake::Worker
        } else {
            self.remove_if_empty(id);
            Wake::None
        };
        Some((now.saturating_duration_since(work.since), wake))
    }

    /// Removes a key from `working`; the last one moves to its index.
    fn remove_working(&mut self, idx: usize) {
        self.working.swap_remove(idx);
        if let Some(moved) = self.working.get(idx)
            && let Some(work) = &mut self.keys.value_mut(*moved).processing
        {
            work.idx = idx;
        }
    }

    /// Ends adds, and drops the keys that wait for a time. Ready keys are still taken.
    pub(super) fn shut_down(&mut self, phase: Phase) {
        debug_assert!(phase != Phase::Open, "a queue that was shut down stays so");
        self.phase = phase;
        for id in mem::take(&mut self.delayed).into_values() {
            self.keys.value_mut(id).delayed = None;
            self.remove_if_empty(id);
        }
    }

    /// Removes all keys that `leaves` selects. A key that is processed stays, as if nothing had happened meanwhile.
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
        entry.check();
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

    /// Returns `true` if a key that `matches` selects is processed.
    pub(super) fn processes(&self, matches: impl Fn(&K) -> bool) -> bool {
        self.working.iter().filter_map(|id| self.keys.key(*id)).any(matches)
    }

    /// Removes an entry that holds no information.
    fn remove_if_empty(&mut self, id: KeyId) {
        if self.keys.value(id).is_empty() {
            self.keys.remove(id);
        }
    }

    /// Returns the number of ready keys.
    pub(super) fn len(&mut self, now: Instant) -> usize {
        self.promote_due(now);
        self.ready.len()
    }

    /// Returns the number of keys that workers have.
    pub(super) fn n_processing(&self) -> usize {
        self.working.len()
    }

    /// Returns the number of waiting keys that are due by `until`, or of all with `None`.
    pub(super) fn delayed_until(&mut self, until: Option<Instant>, now: Instant) -> usize {
        self.promote_due(now);
        match until {
            Some(until) => self.delayed.keys().take_while(|(due, _)| *due <= until).count(),
            None => self.delayed.len(),
        }
    }

    /// Returns the key whose wait ends first.
    pub(super) fn next_due(&self) -> Option<(K, Instant)> {
        let ((due, _), id) = self.delayed.first_key_value()?;
        Some((self.keys.key(*id)?.clone(), *due))
    }

    /// Returns the keys that have been processed since `before` or longer, the longest first.
    pub(super) fn processing_since(&self, before: Instant) -> Vec<(K, Instant)> {
        let works = self.working.iter().filter_map(|id| {
            let since = self.keys.value(*id).processing?.since;
            self.keys.key(*id).filter(|_| since <= before).map(|key| (key.clone(), since))
        });
        let mut works: Vec<_> = works.collect();
        works.sort_by_key(|(_, since)| *since);
        works
    }

    /// Returns the numbers for metrics, at a cost of the keys in workers and not of all keys.
    pub(super) fn stats(&mut self, now: Instant) -> QueueStats {
        self.promote_due(now);
        debug_assert!(self.ready.len() + self.working.len() <= self.keys.len(), "a key is ready, or with one worker");
        let running = self.working.iter().filter_map(|id| self.keys.value(*id).processing);
        let running = running.map(|work| now.saturating_duration_since(work.since));
        QueueStats {
            depth: self.ready.len(),
            depth_by_priority: self.ready.depths().take(PRIORITIES_REPORTED_MAX).collect(),
            depth_beyond: self.ready.depths().skip(PRIORITIES_REPORTED_MAX).map(|(_, depth)| depth).sum(),
            delayed: self.delayed.len(),
            processing: self.working.len(),
            keys: self.keys.len(),
            adds: self.adds,
            retries: self.retries,
            longest_running: running.clone().max().unwrap_or_default(),
            unfinished_work: running.fold(Duration::ZERO, Duration::saturating_add),
            oldest_waiting: self.ready.oldest().map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
        }
    }
}
