//! Keys wait here: deduplicating, delaying, rate limited, prioritised. Handlers add, workers take.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Waits after failures: `base · 2^n`, at most `max` (client-go, `util/workqueue/default_rate_limiters.go`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure; 5 ms by default.
    pub base: Duration,
    /// The longest; 1000 s by default.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// The wait after `failures` earlier failures.
    pub fn wait(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures).filter(|_| failures < 31).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }
}

/// How a queue behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueConfig {
    /// Waits after failures.
    pub backoff: Backoff,
}

/// A key that a worker was given. It must be handed back by [`WorkQueue::done`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<K> {
    /// The key.
    pub key: K,
    /// The priority with which it waited.
    pub priority: i32,
}

/// A queue in which a key waits once and is in one worker's hands at most. Clones share it.
///
/// It holds one entry for each key that waits, is processed or has failed; nothing else grows.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    /// Woken when a key becomes ready, when an earlier time is set, and at the end.
    ready: Notify,
    /// Woken when a key is done.
    done: Notify,
    backoff: Backoff,
}

struct State<K> {
    keys: HashMap<K, Entry>,
    /// Highest priority first, then first come first served.
    ready: BTreeMap<(Reverse<i32>, u64), K>,
    delayed: BTreeSet<(Instant, u64)>,
    delayed_keys: HashMap<u64, K>,
    sequence: u64,
    n_processing: usize,
    shut: bool,
}

#[derive(Default)]
struct Entry {
    /// Its place in `ready`.
    queued: Option<(Reverse<i32>, u64)>,
    /// Its place in `delayed`, with its priority.
    delayed: Option<(Instant, u64, i32)>,
    processing: bool,
    /// Added while it was processed: invariant, only then.
    dirty: Option<i32>,
    failures: u32,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: Eq + Hash + Clone + Send + Sync + 'static> WorkQueue<K> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        let state = State {
            keys: HashMap::new(),
            ready: BTreeMap::new(),
            delayed: BTreeSet::new(),
            delayed_keys: HashMap::new(),
            sequence: 0,
            n_processing: 0,
            shut: false,
        };
        let shared =
            Shared { state: Mutex::new(state), ready: Notify::new(), done: Notify::new(), backoff: config.backoff };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key with normal priority.
    pub fn add(&self, key: K) {
        self.add_with(key, 0);
    }

    /// Adds a key. One that waits already keeps its place, or moves up to a higher priority; one that waits for a time
    /// becomes ready now; one that is processed runs once more afterwards.
    pub fn add_with(&self, key: K, priority: i32) {
        if self.shared.state.lock().add(key, priority) {
            self.shared.ready.notify_one();
        }
    }

    /// Adds a key when this time has passed. One that waits for an earlier time keeps it.
    pub fn add_after(&self, key: K, wait: Duration) {
        if wait.is_zero() {
            return self.add(key);
        }
        // Far beyond any requeue that somebody means, and within what the clock can add.
        let due = Instant::now() + wait.min(Duration::from_secs(365 * 86_400));
        self.shared.state.lock().delay(key, due, 0);
        self.shared.ready.notify_one();
    }

    /// Counts a failure and adds the key after the wait that it has earned, which is returned.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        let wait = {
            let mut state = self.shared.state.lock();
            let entry = state.keys.entry(key.clone()).or_default();
            let wait = self.shared.backoff.wait(entry.failures);
            entry.failures = entry.failures.saturating_add(1);
            wait
        };
        self.add_after(key, wait);
        wait
    }

    /// Counts a failure and adds the key after a wait that somebody asked for.
    pub fn add_failed_after(&self, key: K, wait: Duration) {
        {
            let mut state = self.shared.state.lock();
            let entry = state.keys.entry(key.clone()).or_default();
            entry.failures = entry.failures.saturating_add(1);
        }
        self.add_after(key, wait);
    }

    /// Failures of the key since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.state.lock().keys.get(key).map_or(0, |entry| entry.failures)
    }

    /// The keys that failed when they were last processed, with their failures in a row.
    pub fn failing(&self) -> Vec<(K, u32)> {
        let state = self.shared.state.lock();
        let failing = state.keys.iter().filter(|(_, entry)| entry.failures > 0);
        failing.map(|(key, entry)| (key.clone(), entry.failures)).collect()
    }

    /// Forgets the failures of the key; where it waits does not change.
    pub fn forget(&self, key: &K) {
        let mut state = self.shared.state.lock();
        if let Some(entry) = state.keys.get_mut(key) {
            entry.failures = 0;
        }
        state.tidy(key);
    }

    /// Waits for the next key; `None` once the queue is shut down and empty.
    ///
    /// # Cancel safety
    /// A dropped future has taken no key.
    pub async fn get(&self) -> Option<Item<K>> {
        loop {
            let notified = self.shared.ready.notified();
            let due = {
                let mut state = self.shared.state.lock();
                state.mature(Instant::now());
                if let Some(item) = state.take() {
                    if !state.ready.is_empty() {
                        self.shared.ready.notify_one();
                    }
                    return Some(item);
                }
                if state.shut {
                    self.shared.ready.notify_waiters();
                    return None;
                }
                state.delayed.first().map(|(due, _)| *due)
            };
            match due {
                Some(due) => tokio::select! {
                    biased;
                    () = notified => {}
                    () = tokio::time::sleep_until(due) => {}
                },
                None => notified.await,
            }
        }
    }

    /// Hands a key back. If it was added meanwhile, it is ready again.
    pub fn done(&self, key: &K) {
        if self.shared.state.lock().done(key) {
            self.shared.ready.notify_one();
        }
        self.shared.done.notify_waiters();
    }

    /// Keys that are ready.
    pub fn len(&self) -> usize {
        self.shared.state.lock().ready.len()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys in workers' hands.
    pub fn processing(&self) -> usize {
        self.shared.state.lock().n_processing
    }

    /// Keys that wait for a time.
    pub fn delayed(&self) -> usize {
        self.shared.state.lock().delayed.len()
    }

    /// Keys whose time comes within `horizon`.
    pub fn next_delayed_within(&self, horizon: Duration) -> usize {
        let until = Instant::now() + horizon;
        self.shared.state.lock().delayed.iter().take_while(|(due, _)| *due <= until).count()
    }

    /// Takes no more keys. Ready ones are still handed out; those that wait for a time are dropped.
    pub fn shut_down(&self) {
        let mut state = self.shared.state.lock();
        state.shut = true;
        state.delayed.clear();
        state.delayed_keys.clear();
        drop(state);
        self.shared.ready.notify_waiters();
        self.shared.ready.notify_one();
    }

    /// Shuts down and returns once no key is ready or processed.
    pub async fn shut_down_with_drain(&self) {
        self.shut_down();
        loop {
            let notified = self.shared.done.notified();
            if self.is_empty() && self.processing() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl<K: Eq + Hash + Clone> State<K> {
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Returns whether a worker may have something to do.
    fn add(&mut self, key: K, priority: i32) -> bool {
        if self.shut {
            return false;
        }
        let sequence = self.next();
        let entry = self.keys.entry(key.clone()).or_default();
        let waited = entry.delayed.take();
        let priority = waited.map_or(priority, |(_, _, earlier)| priority.max(earlier));
        if let Some((due, place, _)) = waited {
            self.delayed.remove(&(due, place));
            self.delayed_keys.remove(&place);
        }
        if entry.processing {
            entry.dirty = Some(entry.dirty.map_or(priority, |dirty| dirty.max(priority)));
            return false;
        }
        match entry.queued {
            Some((Reverse(present), _)) if present >= priority => return false,
            Some(place) => drop(self.ready.remove(&place)),
            None => {}
        }
        entry.queued = Some((Reverse(priority), sequence));
        self.ready.insert((Reverse(priority), sequence), key);
        true
    }

    fn delay(&mut self, key: K, due: Instant, priority: i32) {
        if self.shut {
            return;
        }
        let sequence = self.next();
        let entry = self.keys.entry(key.clone()).or_default();
        if entry.queued.is_some() || entry.dirty.is_some() {
            return;
        }
        if let Some((present, place, _)) = entry.delayed {
            if present <= due {
                return;
            }
            self.delayed.remove(&(present, place));
            self.delayed_keys.remove(&place);
        }
        entry.delayed = Some((due, sequence, priority));
        self.delayed.insert((due, sequence));
        self.delayed_keys.insert(sequence, key);
    }

    fn mature(&mut self, now: Instant) {
        while let Some((due, place)) = self.delayed.first().copied().filter(|(due, _)| *due <= now) {
            self.delayed.remove(&(due, place));
            let Some(key) = self.delayed_keys.remove(&place) else { continue };
            let priority = self.keys.get_mut(&key).and_then(|entry| entry.delayed.take()).map_or(0, |(_, _, p)| p);
            self.add(key, priority);
        }
    }

    fn take(&mut self) -> Option<Item<K>> {
        let ((Reverse(priority), _), key) = self.ready.pop_first()?;
        let entry = self.keys.entry(key.clone()).or_default();
        entry.queued = None;
        entry.processing = true;
        self.n_processing += 1;
        Some(Item { key, priority })
    }

    fn done(&mut self, key: &K) -> bool {
        let Some(entry) = self.keys.get_mut(key).filter(|entry| entry.processing) else { return false };
        entry.processing = false;
        self.n_processing -= 1;
        let again = entry.dirty.take();
        if let Some(priority) = again {
            let sequence = self.next();
            if let Some(entry) = self.keys.get_mut(key) {
                entry.queued = Some((Reverse(priority), sequence));
            }
            self.ready.insert((Reverse(priority), sequence), key.clone());
        }
        self.tidy(key);
        again.is_some()
    }

    /// An entry that says nothing goes.
    fn tidy(&mut self, key: &K) {
        let idle = self.keys.get(key).is_some_and(|entry| {
            entry.queued.is_none() && entry.delayed.is_none() && !entry.processing && entry.failures == 0
        });
        if idle {
            self.keys.remove(key);
        }
    }
}
