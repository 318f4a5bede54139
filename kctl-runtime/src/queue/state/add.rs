//! Adds keys: at once, after a wait, or after the run that has them.

use std::{hash::Hash, time::Duration};

use tokio::time::Instant;

use super::{
    DelayReason, Phase, QueueState, WAIT_MAX, Wake,
    effect::{BackoffEffect, KeyEvent},
    entry::{Delayed, Dirty},
};
use crate::queue::{
    Add, Backoff, Cause,
    keys::KeyId,
    ready::{Age, ReadyPosition},
};

impl<K: Eq + Hash + Clone> QueueState<K> {
    /// Adds a key, and returns the wait that its cause asks for, although the key may be ready earlier. After a shutdown,
    /// only failures and conflicts are counted.
    ///
    /// If the last run failed, an event of a version that it wrote only adds its tags: the key does not become ready.
    pub(in crate::queue) fn add(&mut self, add: Add<K>, backoff: Backoff, now: Instant) -> (Duration, Wake) {
        let Add { key, priority, tags, cause, event } = add;
        if self.phase != Phase::Open && !cause.is_counted() {
            return (Duration::ZERO, Wake::None);
        }
        let id = self.keys.ensure(key);
        let entry = self.keys.value_mut(id);
        entry.tags |= tags;
        let (wait, reason) = match cause {
            Cause::Request => return self.add_now(id, priority, BackoffEffect::End, event, now),
            Cause::Changed => return self.add_now(id, priority, BackoffEffect::Reset, event, now),
            Cause::Unchanged => return self.add_now(id, priority, BackoffEffect::Keep, event, now),
            Cause::Failure => (backoff.wait(entry.failures), DelayReason::Backoff),
            Cause::FailureAfter(wait) => (wait, DelayReason::Backoff),
            Cause::Conflict(least) => (least.max(backoff.wait(entry.conflicts)), DelayReason::Conflict),
            Cause::Requeue(wait) => (wait, DelayReason::Requeue),
        };
        self.add_later(id, priority, wait, reason, now)
    }

    /// Adds a key without a wait, unless the writes of its last run explain the event.
    fn add_now(
        &mut self,
        id: KeyId,
        priority: i32,
        effect: BackoffEffect,
        event: Option<KeyEvent>,
        now: Instant,
    ) -> (Duration, Wake) {
        let own_writes = &self.keys.value(id).own_writes;
        if event.is_some_and(|event| event.is_explained_by(own_writes)) {
            return (Duration::ZERO, Wake::None);
        }
        (Duration::ZERO, self.add_known(id, priority, effect, event, now))
    }

    /// Adds a key that waits for a time, and counts its failure or conflict.
    fn add_later(
        &mut self,
        id: KeyId,
        priority: i32,
        wait: Duration,
        reason: DelayReason,
        now: Instant,
    ) -> (Duration, Wake) {
        let sequence = self.next_number();
        let entry = self.keys.value_mut(id);
        match reason {
            DelayReason::Backoff => {
                entry.given_up = false;
                entry.count_attempt(sequence, |entry| &mut entry.failures);
            }
            DelayReason::Conflict => entry.count_attempt(sequence, |entry| &mut entry.conflicts),
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
    pub(super) fn add_known(
        &mut self,
        id: KeyId,
        priority: i32,
        effect: BackoffEffect,
        event: Option<KeyEvent>,
        now: Instant,
    ) -> Wake {
        let sequence = self.next_number();
        let entry = self.keys.value_mut(id);
        entry.check_invariants();
        // The event may come from an own write, which the end of the run determines.
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
            dirty.record(effect, event);
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
        entry.check_invariants();
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
        debug_assert!(matches!(self.phase, Phase::Open), "no key is delayed after a shutdown");
        entry.delayed = Some(delayed);
        self.delayed.insert((due, order), id);
        let is_first = self.delayed.first_key_value().is_some_and(|(first, _)| *first == (due, order));
        if is_first { Wake::DelayTimer } else { Wake::None }
    }
}
