//! The work queue: keys wait here until a worker reconciles them.
//!
//! Handlers add keys, workers take them. The queue holds a key once, however often it is added, and never gives a key
//! to two workers at the same time. It delays keys that failed, orders ready keys by priority, and shuts down in an
//! orderly way. It follows client-go's `util/workqueue` and the priority queue of controller-runtime
//! (`pkg/controller/priorityqueue`).
//!
//! The queue knows nothing about Kubernetes: a key is any type that is `Eq + Hash + Clone`. A worker loop without the
//! rest of this crate looks like this:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use std::time::Duration;
//! use kctl_runtime::queue::{Add, Backoff, Cause, QueueConfig, WorkQueue};
//!
//! fn reconcile(key: &str) -> Result<(), String> {
//!     if key == "broken" { Err("still broken".into()) } else { Ok(()) }
//! }
//!
//! let backoff = Backoff { base: Duration::from_secs(60), ..Backoff::default() };
//! let queue = WorkQueue::new(QueueConfig::default().backoff(backoff));
//! queue.add("web");
//! queue.add("broken");
//! for _ in 0..2 {
//!     let Some(item) = queue.get().await else { break };
//!     match reconcile(item.key) {
//!         Ok(()) => queue.forget(&item.key),
//!         Err(_) => drop(queue.add(Add::new(item.key).cause(Cause::Failure))),
//!     }
//!     queue.done(&item.key);
//! }
//! assert_eq!(queue.failing(), [("broken", 1)]);
//! assert_eq!(queue.n_delayed(), 1);
//! # });
//! ```
//!
//! [`worker::decide`](crate::worker::decide) determines which of these methods a controller's worker calls.

mod add;
mod backoff;
mod keys;
mod ordered_map;
mod ready;
#[cfg(test)]
mod schedules;
mod state;
mod stats;

use std::{
    hash::Hash,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

pub use add::{Add, Cause};
pub use backoff::Backoff;
pub use ready::PASSED_OVER_MAX;
pub use state::{CONFLICTS_BEFORE_WARNING, TAG_CONFLICTED, TAG_REQUEUED, TAG_RETRIED, WAIT_MAX};
pub use stats::{PRIORITIES_REPORTED_MAX, QueueKeys, QueueObserver, QueueStats};

use crate::sync::Mutex;
pub(crate) use state::{BackoffEffect, KeyEvent, OWN_WRITES_MAX, VersionEffect};
use state::{Next, Phase, QueueState, Wake};

/// The configuration of a [`WorkQueue`].
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::queue::{Add, Backoff, Cause, QueueConfig, WorkQueue};
///
/// let patient = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(60) };
/// let queue = WorkQueue::<String>::new(QueueConfig::default().backoff(patient));
/// assert_eq!(queue.add(Add::new("web".into()).cause(Cause::Failure)), Duration::from_secs(1));
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct QueueConfig {
    /// The waits after failures; from 5 ms to 1000 s by default.
    pub backoff: Backoff,
}

impl QueueConfig {
    /// Sets the waits after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }
}

/// A key that [`WorkQueue::get`] gave to a worker.
///
/// The worker must call [`WorkQueue::done`] with the key, also after a failure or a panic. Until then the queue
/// gives the key to no other worker, and a drain waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item<K> {
    /// The key to reconcile.
    pub key: K,
    /// The highest priority with which the key was added since it was last taken. 0 is the normal priority, and higher
    /// ones go first.
    pub priority: i32,
    /// The tags of all adds since the key was last taken, combined with `|`. See [`Add::tags`].
    pub tags: u32,
}

/// A queue that holds each key once and gives it to one worker at a time. Clones share the same queue.
///
/// It has one entry for each key that waits, is processed or has failed; nothing else grows.
///
/// **Order.** Ready keys of the highest priority go first, and keys of equal priority in the order of their adds. No
/// key starves: at most [`PASSED_OVER_MAX`] takes in a row pass over the key that has waited longest. So the initial
/// list and resyncs, which have a low priority, wait behind fresh changes and still advance.
///
/// **Time.** A key waits for at most one time: the earlier of two. Adding a key that waits for a time makes it ready
/// now, with one exception: [`Cause::Unchanged`] leaves a failed key in its backoff.
///
/// | Call | Use it after | Failure counter |
/// |---|---|---|
/// | [`add`](Self::add), [`Cause::Request`] | a request by a user, a mapper or a timer, or a change of metadata | kept |
/// | [`add`](Self::add), [`Cause::Changed`] | a change of the spec, a deletion, another uid | reset |
/// | [`add`](Self::add), [`Cause::Unchanged`] | an event that probably changes nothing | kept |
/// | [`add`](Self::add), [`Cause::Requeue`] | a success that wants another run | kept, so [`forget`](Self::forget) it first |
/// | [`add`](Self::add), [`Cause::Failure`] | a failure | incremented |
/// | [`add`](Self::add), [`Cause::FailureAfter`] | a failure that names its wait | incremented |
/// | [`add`](Self::add), [`Cause::Conflict`] | a conflict | kept; conflicts have a counter |
/// | [`forget`](Self::forget) | a success | reset |
/// | [`give_up`](Self::give_up) | a failure without a retry | reset; the key still counts as failing |
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use kctl_runtime::queue::{QueueConfig, WorkQueue};
///
/// let queue = WorkQueue::new(QueueConfig::default());
/// queue.add("web");
/// queue.add("web");
/// let item = queue.get().await.unwrap();
/// queue.add("web"); // runs once more, after this run
/// assert!(queue.is_empty());
/// queue.done(&item.key);
/// assert_eq!(queue.len(), 1);
/// # });
/// ```
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> std::fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkQueue").finish_non_exhaustive()
    }
}

/// The state behind all clones of a queue. A task is woken only after the lock of `state` was released.
struct Shared<K> {
    state: Mutex<QueueState<K>>,
    /// Woken when a key becomes ready, when no worker sleeps until the first delayed key is due, and at the end.
    ready: Notify,
    /// Notified when another delayed key is the first, for the worker that sleeps until it is due.
    rescheduled: Notify,
    /// Woken when a key is done, and when a drain ends.
    done: Notify,
    backoff: Backoff,
    observer: Option<Arc<dyn QueueObserver>>,
    /// Keys that it rejects are not added.
    filter: OnceLock<Filter<K>>,
}

/// Returns `true` for the keys that may be added.
type Filter<K> = Arc<dyn Fn(&K) -> bool + Send + Sync>;

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: Eq + Hash + Clone + Send + Sync + 'static> WorkQueue<K> {
    /// Creates an empty queue.
    pub fn new(config: QueueConfig) -> Self {
        Self::build(config, None)
    }

    /// Creates an empty queue that reports to `observer` how long keys waited and how long they were processed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// use std::{sync::{Arc, atomic::{AtomicUsize, Ordering}}, time::Duration};
    /// use kctl_runtime::queue::{QueueConfig, QueueObserver, WorkQueue};
    ///
    /// #[derive(Default)]
    /// struct Runs(AtomicUsize);
    ///
    /// impl QueueObserver for Runs {
    ///     fn observe_queue_duration(&self, _wait: Duration) {}
    ///     fn observe_work_duration(&self, _work: Duration) {
    ///         self.0.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let runs = Arc::new(Runs::default());
    /// let queue = WorkQueue::with_observer(QueueConfig::default(), runs.clone());
    /// queue.add("web");
    /// let item = queue.get().await.unwrap();
    /// queue.done(&item.key);
    /// assert_eq!(runs.0.load(Ordering::Relaxed), 1);
    /// # });
    /// ```
    pub fn with_observer(config: QueueConfig, observer: Arc<dyn QueueObserver>) -> Self {
        Self::build(config, Some(observer))
    }

    fn build(config: QueueConfig, observer: Option<Arc<dyn QueueObserver>>) -> Self {
        let shared = Shared {
            state: Mutex::new(QueueState::default()),
            ready: Notify::new(),
            rescheduled: Notify::new(),
            done: Notify::new(),
            backoff: config.backoff,
            observer,
            filter: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Ignores later adds of keys for which `admits` returns `false`. Only the first call has an effect.
    ///
    /// [`evict`](Self::evict) calls `admits` under the lock of the queue, so it must not use the queue.
    pub(crate) fn filter(&self, admits: impl Fn(&K) -> bool + Send + Sync + 'static) {
        let _first = self.shared.filter.set(Arc::new(admits));
    }

    /// Removes all keys of `matches` that the [filter](Self::filter) rejects, with their waits and failures. A key that
    /// is processed is kept until [`done`](Self::done), and adds from before are forgotten.
    ///
    /// The filter is called under the lock, so a key that is added after the filter began to accept it is kept.
    pub(crate) fn evict(&self, matches: impl Fn(&K) -> bool) {
        let leaves = |key: &K| matches(key) && !self.shared.admits(key);
        self.shared.state.lock().evict(leaves);
    }

    /// Removes one key in the same way.
    pub(crate) fn evict_key(&self, key: &K) {
        let mut state = self.shared.state.lock();
        if !self.shared.admits(key) {
            state.evict_key(key);
        }
    }

    /// Returns once no key that `matches` selects is processed.
    pub(crate) async fn wait_while_processing(&self, matches: impl Fn(&K) -> bool) {
        loop {
            let notified = self.shared.done.notified();
            if !self.shared.state.lock().processes(&matches) {
                return;
            }
            notified.await;
        }
    }

    /// Adds a key, or an [`Add`] with priority, tags and [`Cause`]. Returns the wait that the cause asks for, 0 for an add
    /// without a wait. The key may be ready earlier.
    ///
    /// An add without a wait has these effects:
    /// - A key that is ready keeps its position, or moves up if the new priority is higher.
    /// - A key that waits for a time becomes ready now.
    /// - A key that is processed runs once more after [`done`](Self::done).
    ///
    /// An add with a wait does not delay a key further. A key that already waits for an earlier time keeps it, and one
    /// that is ready or will run again keeps that state.
    ///
    /// [`Cause::Unchanged`] is the exception: it does not end the backoff of a failed key. Added during a run that fails, it
    /// does not make the key run again before its backoff is over.
    ///
    /// After a shutdown, failures and conflicts are still counted, and nothing else has an effect.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kctl_runtime::queue::{Add, Cause, QueueConfig, WorkQueue};
    ///
    /// let queue = WorkQueue::<&str>::new(QueueConfig::default());
    /// queue.add("web");
    /// assert_eq!(queue.len(), 1);
    ///
    /// queue.add(Add::new("api").cause(Cause::Requeue(Duration::from_secs(60))));
    /// queue.add(Add::new("api").cause(Cause::Requeue(Duration::from_secs(3600)))); // the earlier time counts
    /// assert_eq!((queue.n_delayed(), queue.next_delayed_within(Duration::from_secs(61))), (1, 1));
    ///
    /// assert_eq!(queue.add(Add::new("db").cause(Cause::Failure)), Duration::from_millis(5));
    /// assert_eq!(queue.add(Add::new("db").cause(Cause::Failure)), Duration::from_millis(10));
    /// queue.forget(&"db");
    /// assert_eq!(queue.num_requeues(&"db"), 0);
    /// ```
    pub fn add(&self, add: impl Into<Add<K>>) -> Duration {
        let add = add.into();
        // The end of a run of a key is counted even if its slot was lost during the run: `done` removes it then.
        if !add.cause.is_counted() && !self.shared.admits(&add.key) {
            return Duration::ZERO;
        }
        let (wait, wake) = self.shared.state.lock().add(add, self.shared.backoff, Instant::now());
        self.shared.wake(wake);
        wait
    }

    /// Returns `true` if the key waits, is ready, is processed, or has failed since its last success.
    pub(crate) fn has_entry(&self, key: &K) -> bool {
        self.shared.state.lock().has_entry(key)
    }

    /// Returns the number of conflicts of the key since it was last forgotten, given up or changed. A failure does not
    /// reset it.
    pub fn num_conflicts(&self, key: &K) -> u32 {
        self.shared.state.lock().conflicts(key)
    }

    /// Returns the number of failures of the key since it was last forgotten, given up or changed (client-go,
    /// `NumRequeues`). A conflict does not reset it.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.state.lock().failures(key)
    }

    /// Returns the keys that failed and are retried, with their failures in a row; a key that only meets conflicts is
    /// among them beyond [`CONFLICTS_BEFORE_WARNING`]. The key that began to fail first comes first. Keys that were
    /// [given up](Self::give_up) are not among them.
    ///
    /// This copies all failing keys. Use [`keys`](Self::keys) for a bounded result, and [`n_failing`](Self::n_failing)
    /// for a number.
    pub fn failing(&self) -> Vec<(K, u32)> {
        self.shared.state.lock().failing()
    }

    /// Returns the keys that fail and those that are processed, at most `max` of each, for a page that people read.
    pub fn keys(&self, max: usize) -> QueueKeys<K> {
        self.shared.state.lock().keys(max, Instant::now())
    }

    /// Resets the failures and conflicts of the key, after a success. A key that waits or is ready keeps its place.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().forget(key);
    }

    /// Resets the failures and conflicts of the key and does not add it again. Call it after an error that a retry
    /// cannot fix, or after too many failures.
    ///
    /// The key counts as failing, in [`n_failing`](Self::n_failing), until [`forget`](Self::forget) is called. If a
    /// later run fails and is retried, it counts as any other failing key.
    ///
    /// ```
    /// use kctl_runtime::queue::{QueueConfig, WorkQueue};
    ///
    /// let queue = WorkQueue::new(QueueConfig::default());
    /// queue.give_up("web");
    /// assert_eq!((queue.len(), queue.n_delayed(), queue.n_failing()), (0, 0, 1));
    /// ```
    pub fn give_up(&self, key: K) {
        self.shared.state.lock().give_up(key);
    }

    /// Records the versions that the run of a key wrote, before the key waits after a failure or is given up. If no
    /// other event came during the run, [`done`](WorkQueue::done) does not make the key ready, and no later event of
    /// these versions does.
    pub(crate) fn ignore_own_writes(&self, key: &K, written: Vec<VersionEffect>) {
        self.shared.state.lock().ignore_own_writes(key, written);
    }

    /// Returns the number of keys that [fail](Self::failing) or were [given up](Self::give_up).
    pub fn n_failing(&self) -> usize {
        self.shared.state.lock().n_failing()
    }

    /// Waits for the next ready key and gives it to the caller, who must hand it back by [`done`](Self::done).
    ///
    /// Returns `None` once the queue is shut down and no key is ready. Any number of workers may wait at the same time.
    ///
    /// # Cancel safety
    /// A dropped future has taken no key.
    pub async fn get(&self) -> Option<Item<K>> {
        let mut timer = None;
        loop {
            let notified = self.shared.ready.notified();
            let next = self.shared.next(&mut timer);
            match next {
                Next::Taken { item, waited, more } => {
                    if more {
                        self.shared.ready.notify_one();
                    }
                    if let Some(observer) = &self.shared.observer {
                        observer.observe_queue_duration(waited);
                    }
                    return Some(item);
                }
                Next::End => return None,
                Next::Wait(due) if timer.is_some() => tokio::select! {
                    biased;
                    () = notified => {}
                    () = self.shared.rescheduled.notified() => {}
                    () = sleep_until(due.unwrap_or_else(|| Instant::now() + WAIT_MAX)) => {}
                },
                Next::Wait(_) => notified.await,
            }
        }
    }

    /// Ends the processing of a key. If the key was added during the processing, it is ready again. Does nothing for a
    /// key that is not being processed.
    pub fn done(&self, key: &K) {
        let done = self.shared.state.lock().finish_processing(key, Instant::now());
        let Some((worked, wake)) = done else { return };
        self.shared.wake(wake);
        self.shared.done.notify_waiters();
        if let Some(observer) = &self.shared.observer {
            observer.observe_work_duration(worked);
        }
    }

    /// Returns the number of ready keys: without those that are processed or wait for a time.
    pub fn len(&self) -> usize {
        self.shared.state.lock().len(Instant::now())
    }

    /// Returns `true` if no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of keys that workers process now.
    pub fn processing(&self) -> usize {
        self.shared.state.lock().n_processing()
    }

    /// Returns the number of keys that wait for a time.
    pub fn n_delayed(&self) -> usize {
        self.shared.state.lock().delayed_until(None, Instant::now())
    }

    /// Returns the number of keys whose wait ends within `horizon`. Tests use it to find out if a controller is idle.
    pub fn next_delayed_within(&self, horizon: Duration) -> usize {
        let now = Instant::now();
        self.shared.state.lock().delayed_until(Some(now + horizon.min(WAIT_MAX)), now)
    }

    /// Returns the key whose wait ends first, and the rest of its wait.
    pub fn next_due(&self) -> Option<(K, Duration)> {
        let now = Instant::now();
        self.shared.state.lock().next_due().map(|(key, due)| (key, due.saturating_duration_since(now)))
    }

    /// Returns the numbers that metrics report.
    pub fn stats(&self) -> QueueStats {
        self.shared.state.lock().stats(Instant::now())
    }

    /// Returns the keys that have been processed for at least `least`, with the time since they were taken, the longest
    /// first. A key that appears here for minutes usually belongs to a reconcile that hangs.
    pub fn processing_for(&self, least: Duration) -> Vec<(K, Duration)> {
        let now = Instant::now();
        let Some(before) = now.checked_sub(least) else { return Vec::new() };
        let works = self.shared.state.lock().processing_since(before);
        works.into_iter().map(|(key, since)| (key, now.saturating_duration_since(since))).collect()
    }

    /// Ignores all later adds. Workers still get the ready keys; keys that wait for a time are dropped. A
    /// [drain](Self::shut_down_with_drain) that is under way returns at once.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// use kctl_runtime::queue::{QueueConfig, WorkQueue};
    ///
    /// let queue = WorkQueue::new(QueueConfig::default());
    /// queue.add("ready");
    /// queue.shut_down();
    /// queue.add("too late");
    /// assert_eq!(queue.get().await.map(|item| item.key), Some("ready"));
    /// assert!(queue.get().await.is_none());
    /// # });
    /// ```
    pub fn shut_down(&self) {
        self.enter_phase(Phase::ShutDown);
    }

    fn enter_phase(&self, phase: Phase) {
        self.shared.state.lock().shut_down(phase);
        self.shared.ready.notify_waiters();
        self.shared.done.notify_waiters();
    }

    /// Shuts the queue down and waits until no key is ready or processed, or until [`shut_down`](Self::shut_down) is
    /// called.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue shut down.
    pub async fn shut_down_with_drain(&self) {
        self.enter_phase(Phase::Draining);
        loop {
            let notified = self.shared.done.notified();
            if self.shared.is_drained() {
                return;
            }
            notified.await;
        }
    }
}

impl<K: Eq + Hash + Clone> Shared<K> {
    fn admits(&self, key: &K) -> bool {
        self.filter.get().is_none_or(|admits| admits(key))
    }

    fn wake(&self, wake: Wake) {
        match wake {
            Wake::None => {}
            Wake::DelayTimer if self.state.lock().timer => self.rescheduled.notify_one(),
            Wake::Worker | Wake::DelayTimer => self.ready.notify_one(),
        }
    }

    /// Takes a key. A worker that has to wait for a time becomes the timer, unless there is one.
    fn next<'a>(&'a self, timer: &mut Option<DelayTimer<'a, K>>) -> Next<K> {
        let mut state = self.state.lock();
        let next = state.next(Instant::now());
        if matches!(next, Next::Wait(Some(_))) && !state.timer {
            state.timer = true;
            *timer = Some(DelayTimer(self));
        }
        next
    }

    fn is_drained(&self) -> bool {
        let mut state = self.state.lock();
        state.phase != Phase::Draining || (state.len(Instant::now()) == 0 && state.n_processing() == 0)
    }
}

/// The worker that sleeps until the first delayed key is due; all others sleep until they are woken. When it leaves,
/// with a key or because its future was dropped, another worker takes over.
struct DelayTimer<'a, K>(&'a Shared<K>);

impl<K> Drop for DelayTimer<'_, K> {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut self.0.state.lock().timer, false);
        debug_assert!(before, "one worker at a time sleeps for the others");
        self.0.ready.notify_one();
    }
}
