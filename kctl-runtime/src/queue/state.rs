//! What the queue knows, and the rules by which it changes: pure, with the time as an input; called under the queue's lock.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    time::Duration,
};

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::{
    Backoff, Item,
    ready::{Age, Place, Ready},
    stats::{PRIORITIES_REPORTED_MAX, QueueKeys, QueueStats},
};

/// The longest time for which a key can wait: far beyond any that somebody means, and within what the clock can add.
pub const WAIT_MAX: Duration = Duration::from_secs(365 * 86_400);

/// The tag of a key whose last run asked for another one.
pub const TAG_REQUEUED: u32 = 1;
/// The tag of a key that failed.
pub const TAG_RETRIED: u32 = 2;

/// Why a key is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// Somebody asks for it, or its time has come.
    Asked,
    /// What it names is not what failed before.
    Changed,
    /// Something happened that does not make another outcome of a failing key likely.
    Unchanged,
}

/// Why a key waits for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// Its last run asked for it.
    Wish,
    /// It failed.
    Backoff,
}

impl Reason {
    fn tag(self) -> u32 {
        match self {
            Self::Wish => TAG_REQUEUED,
            Self::Backoff => TAG_RETRIED,
        }
    }
}

/// Whom a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    Nobody,
    /// A key became ready.
    Worker,
    /// The earliest time is another one.
    Timekeeper,
}

/// What a worker that asks for a key gets.
pub(super) enum Next<K> {
    /// A key, how long it waited, and whether more are ready.
    Taken { item: Item<K>, waited: Duration, more: bool },
    /// Nothing before this time.
    Wait(Option<Instant>),
    /// Nothing ever again.
    End,
}

/// Which adds are taken, and what a drain waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Adds are ignored; what is ready is handed out.
    ShutDown,
    /// The same, and somebody waits until all of it is done.
    Draining,
}

pub(super) struct State<K> {
    keys: HashMap<K, Entry, FixedState>,
    ready: Ready<K>,
    /// Keys that wait for a time. Invariant: none when it is shut down.
    delayed: BTreeMap<(Instant, u64), K>,
    /// Since when keys are being processed, by the number under which they were given out.
    working: BTreeMap<u64, Instant>,
    sequence: u64,
    pub(super) phase: Phase,
    /// Whether a worker sleeps until the first of `delayed`. Invariant: one at most.
    pub(super) timekeeper: bool,
    adds: u64,
    retries: u64,
}

#[derive(Default)]
struct Entry {
    /// Its place in `ready`. Invariant: not while it is processed.
    queued: Option<Place>,
    /// Invariant: not while it is queued.
    delayed: Option<Delayed>,
    processing: Option<Work>,
    /// Added while it was processed: invariant, only then.
    dirty: Option<Dirty>,
    /// Tags of all adds since it was last taken.
    tags: u32,
    failures: u32,
    /// In the order of first failures.
    failed: u64,
}

impl Entry {
    fn says_nothing(&self) -> bool {
        self.queued.is_none() && self.delayed.is_none() && self.processing.is_none() && self.failures == 0
    }
}

#[derive(Clone, Copy)]
struct Delayed {
    due: Instant,
    order: u64,
    priority: i32,
    reason: Reason,
}

#[derive(Clone, Copy)]
struct Work {
    order: u64,
    since: Instant,
    priority: i32,
}

#[derive(Clone, Copy)]
struct Dirty {
    priority: i32,
    age: Age,
    /// Whether it runs again at once even if the run that goes on fails.
    at_once: bool,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            keys: HashMap::default(),
            ready: Ready::default(),
            delayed: BTreeMap::new(),
            working: BTreeMap::new(),
            sequence: 0,
            phase: Phase::Open,
            timekeeper: false,
            adds: 0,
            retries: 0,
        }
    }
}

impl<K: Eq + Hash + Clone> State<K> {
    fn next_number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub(super) fn add(&mut self, key: K, priority: i32, cause: Cause, tags: u32, now: Instant) -> Wake {
        if self.phase != Phase::Open {
            return Wake::Nobody;
        }
        let sequence = self.next_number();
        let entry = self.keys.entry(key.clone()).or_default();
        entry.tags |= tags;
        if cause == Cause::Changed {
            entry.failures = 0;
        }
        let mut priority = priority;
        if let Some(delayed) = &mut entry.delayed {
            delayed.priority = delayed.priority.max(priority);
            if cause == Cause::Unchanged && delayed.reason == Reason::Backoff {
                return Wake::Nobody;
            }
            priority = delayed.priority;
            self.delayed.remove(&(delayed.due, delayed.order));
            entry.delayed = None;
        }
        let fresh = Age { sequence, since: now };
        if entry.processing.is_some() {
            self.adds += u64::from(entry.dirty.is_none());
            let dirty = entry.dirty.get_or_insert(Dirty { priority, age: fresh, at_once: false });
            dirty.priority = dirty.priority.max(priority);
            dirty.at_once |= cause != Cause::Unchanged;
            return Wake::Nobody;
        }
        let age = match entry.queued {
            Some(place) if place.priority() >= priority => return Wake::Nobody,
            Some(place) => {
                self.ready.remove(&place);
                place.age()
            }
            None => {
                self.adds += 1;
                fresh
            }
        };
        let place = Place::new(priority, sequence, age);
        entry.queued = Some(place);
        self.ready.insert(place, key);
        Wake::Worker
    }

    /// A key that is processed keeps the priority with which it was taken (controller-runtime,
    /// `pkg/internal/controller/controller.go`, `reconcileHandler`).
    pub(super) fn add_after(&mut self, key: K, wait: Duration, reason: Reason, now: Instant) -> Wake {
        if self.phase != Phase::Open {
            return Wake::Nobody;
        }
        self.retries += 1;
        let working = self.keys.get(&key).and_then(|entry| entry.processing);
        let priority = working.map_or(0, |work| work.priority);
        if wait.is_zero() {
            return self.add(key, priority, Cause::Asked, reason.tag(), now);
        }
        self.delay(key, priority, now + wait.min(WAIT_MAX), reason)
    }

    fn delay(&mut self, key: K, priority: i32, due: Instant, reason: Reason) -> Wake {
        let order = self.next_number();
        let entry = self.keys.entry(key.clone()).or_default();
        let mut delayed = Delayed { due, order, priority, reason };
        match entry.dirty {
            // It runs again before that.
            Some(dirty) if dirty.at_once || reason == Reason::Wish => return Wake::Nobody,
            Some(dirty) => delayed.priority = priority.max(dirty.priority),
            None if entry.queued.is_some() => return Wake::Nobody,
            None => {}
        }
        entry.dirty = None;
        if let Some(present) = &mut entry.delayed {
            if reason == Reason::Backoff {
                present.reason = Reason::Backoff;
            }
            present.priority = present.priority.max(delayed.priority);
            if present.due <= due {
                return Wake::Nobody;
            }
            self.delayed.remove(&(present.due, present.order));
            delayed = Delayed { due, order, ..*present };
        }
        entry.delayed = Some(delayed);
        self.delayed.insert((due, order), key);
        let is_first = self.delayed.first_key_value().is_some_and(|(first, _)| *first == (due, order));
        if is_first { Wake::Timekeeper } else { Wake::Nobody }
    }

    /// Counts a failure; the key waits for `wait`, or for what it has earned.
    pub(super) fn fail(&mut self, key: K, wait: Option<Duration>, backoff: Backoff, now: Instant) -> (Duration, Wake) {
        let sequence = self.next_number();
        let entry = self.keys.entry(key.clone()).or_default();
        let wait = wait.unwrap_or_else(|| backoff.wait(entry.failures));
        if entry.failures == 0 {
            entry.failed = sequence;
        }
        entry.failures = entry.failures.saturating_add(1);
        (wait, self.add_after(key, wait, Reason::Backoff, now))
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(entry) = self.keys.get_mut(key) {
            entry.failures = 0;
        }
        self.tidy(key);
    }

    pub(super) fn failures(&self, key: &K) -> u32 {
        self.keys.get(key).map_or(0, |entry| entry.failures)
    }

    pub(super) fn failing(&self) -> Vec<(K, u32)> {
        let mut failing: Vec<_> = self.keys.iter().filter(|(_, entry)| entry.failures > 0).collect();
        failing.sort_by_key(|(_, entry)| entry.failed);
        failing.into_iter().map(|(key, entry)| (key.clone(), entry.failures)).collect()
    }

    /// One pass over all keys; what is kept of it is sorted, and never more than `max`.
    pub(super) fn keys(&self, max: usize, now: Instant) -> QueueKeys<K> {
        let (mut failing, mut running) = (Vec::new(), Vec::new());
        for (key, entry) in &self.keys {
            if entry.failures > 0 {
                failing.push((entry.failed, key, entry));
            }
            if let Some(work) = entry.processing {
                running.push((work.since, key));
            }
        }
        let n_failing = failing.len();
        failing.sort_unstable_by_key(|(failed, ..)| *failed);
        running.sort_unstable_by_key(|(since, _)| *since);
        let wait = |entry: &Entry| entry.delayed.map(|delayed| delayed.due.saturating_duration_since(now));
        let failing = failing.into_iter().take(max).map(|(_, key, entry)| (key.clone(), entry.failures, wait(entry)));
        let running = running.into_iter().take(max);
        QueueKeys {
            failing: failing.collect(),
            n_failing,
            running: running.map(|(since, key)| (key.clone(), now.saturating_duration_since(since))).collect(),
        }
    }

    pub(super) fn next(&mut self, now: Instant) -> Next<K> {
        self.mature(now);
        if let Some((place, key)) = self.ready.take() {
            let order = self.next_number();
            let entry = self.keys.entry(key.clone()).or_default();
            debug_assert!(entry.processing.is_none(), "a key is in one worker's hands at most");
            entry.queued = None;
            entry.processing = Some(Work { order, since: now, priority: place.priority() });
            self.working.insert(order, now);
            let item = Item { key, priority: place.priority(), tags: std::mem::take(&mut entry.tags) };
            let waited = now.saturating_duration_since(place.age().since);
            return Next::Taken { item, waited, more: self.ready.len() > 0 };
        }
        match self.phase {
            Phase::Open => Next::Wait(self.delayed.first_key_value().map(|((due, _), _)| *due)),
            Phase::ShutDown | Phase::Draining => Next::End,
        }
    }

    /// Makes ready what has waited long enough.
    fn mature(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            let (due, _) = *first.key();
            let key = first.remove();
            let delayed = self.keys.get_mut(&key).and_then(|entry| entry.delayed.take());
            debug_assert!(delayed.is_some(), "a key that waits for a time says for which");
            let (priority, tags) = delayed.map_or((0, 0), |delayed| (delayed.priority, delayed.reason.tag()));
            self.add(key, priority, Cause::Asked, tags, due);
        }
    }

    /// How long the key was processed and whether it is ready again; `None` when it was not being processed.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> Option<(Duration, Wake)> {
        let order = self.next_number();
        let entry = self.keys.get_mut(key)?;
        let work = entry.processing.take()?;
        self.working.remove(&work.order);
        let wake = if let Some(dirty) = entry.dirty.take() {
            debug_assert!(entry.delayed.is_none(), "a key that runs again at once waits for no time");
            let place = Place::new(dirty.priority, order, dirty.age);
            entry.queued = Some(place);
            self.ready.insert(place, key.clone());
            Wake::Worker
        } else {
            if entry.says_nothing() {
                self.keys.remove(key);
            }
            Wake::Nobody
        };
        Some((now.saturating_duration_since(work.since), wake))
    }

    pub(super) fn shut_down(&mut self, phase: Phase) {
        self.phase = phase;
        for key in std::mem::take(&mut self.delayed).into_values() {
            if let Some(entry) = self.keys.get_mut(&key) {
                entry.delayed = None;
            }
            self.tidy(&key);
        }
    }

    /// An entry that says nothing goes.
    fn tidy(&mut self, key: &K) {
        if self.keys.get(key).is_some_and(Entry::says_nothing) {
            self.keys.remove(key);
        }
    }

    pub(super) fn len(&mut self, now: Instant) -> usize {
        self.mature(now);
        self.ready.len()
    }

    pub(super) fn n_processing(&self) -> usize {
        self.working.len()
    }

    pub(super) fn delayed_until(&mut self, until: Option<Instant>, now: Instant) -> usize {
        self.mature(now);
        match until {
            Some(until) => self.delayed.keys().take_while(|(due, _)| *due <= until).count(),
            None => self.delayed.len(),
        }
    }

    pub(super) fn stats(&mut self, now: Instant) -> QueueStats {
        self.mature(now);
        let running = self.working.values().map(|since| now.saturating_duration_since(*since));
        QueueStats {
            depth: self.ready.len(),
            depth_by_priority: self.ready.depths().take(PRIORITIES_REPORTED_MAX).collect(),
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
