//! Keys wait here: deduplicating, delaying, rate limited, prioritised. Handlers add, workers take.

mod backoff;
mod keys;
mod line;
mod ready;
#[cfg(test)]
mod schedules;
mod state;
mod stats;

use std::{hash::Hash, sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

pub use backoff::Backoff;
pub use ready::PASSED_OVER_MAX;
pub use state::{CONFLICTS_USUAL, TAG_REQUEUED, TAG_RETRIED, WAIT_MAX};
pub use stats::{PRIORITIES_REPORTED_MAX, QueueKeys, QueueObserver, QueueStats};

use crate::turns::Mutex;
pub(crate) use state::{Cause, ECHOES_MAX};
use state::{Next, Phase, Reason, State, Wake};

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
    /// The tags of all adds since it was last given out.
    pub tags: u32,
}

/// A queue in which a key waits once and is in one worker's hands at most. Clones share it.
///
/// It holds one entry for each key that waits, is processed or has failed; nothing else grows.
///
/// **Order.** Keys of the highest priority come first, and those of one priority in the order in which they came to it.
/// Nobody starves: at most [`PASSED_OVER_MAX`] takes in a row pass over the key that has waited longest, so the list of a
/// start and resyncs, which have a low priority, wait behind fresh changes and still advance.
///
/// **Time.** A key waits for one time at most, and of two times the earlier counts. Adding a key that waits for a time
/// makes it ready now, with one exception: [`WorkQueue::add_unchanged`] leaves a key that failed to its wait.
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

struct Shared<K> {
    state: Mutex<State<K>>,
    /// Woken when a key becomes ready, when nobody keeps the time, and at the end.
    ready: Notify,
    /// Woken when the first of the delayed keys is another one, for the worker that sleeps until it is due.
    rescheduled: Notify,
    /// Woken when a key is done, and when nobody waits for that any more.
    done: Notify,
    backoff: Backoff,
    observer: Option<Arc<dyn QueueObserver>>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: Eq + Hash + Clone + Send + Sync + 'static> WorkQueue<K> {
    /// An empty queue.
    pub fn new(config: QueueConfig) -> Self {
        Self::build(config, None)
    }

    /// An empty queue that tells an observer how long keys waited and were processed.
    pub fn observed(config: QueueConfig, observer: Arc<dyn QueueObserver>) -> Self {
        Self::build(config, Some(observer))
    }

    fn build(config: QueueConfig, observer: Option<Arc<dyn QueueObserver>>) -> Self {
        let shared = Shared {
            state: Mutex::new(State::default()),
            ready: Notify::new(),
            rescheduled: Notify::new(),
            done: Notify::new(),
            backoff: config.backoff,
            observer,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key with normal priority.
    pub fn add(&self, key: K) {
        self.add_with(key, 0);
    }

    /// Adds a key. One that waits already keeps its place, or moves up to a higher priority; one that waits for a time
    /// becomes ready now; one that is processed runs once more afterwards. Its failures are kept.
    pub fn add_with(&self, key: K, priority: i32) {
        self.add_for(key, priority, Cause::Asked, 0);
    }

    /// Adds a key as [`WorkQueue::add_with`], with tags that say why: bits that the caller gives a meaning, apart from
    /// [`TAG_REQUEUED`] and [`TAG_RETRIED`]. The worker gets the tags of all adds since the key was last given out.
    pub fn add_tagged(&self, key: K, priority: i32, tags: u32) {
        self.add_for(key, priority, Cause::Asked, tags);
    }

    /// Adds a key because what it names has really changed: as [`WorkQueue::add_tagged`], and its failures are forgotten,
    /// for they were failures of another state.
    pub fn add_changed(&self, key: K, priority: i32, tags: u32) {
        self.add_for(key, priority, Cause::Changed, tags);
    }

    /// Adds a key for an event that brings nothing new, such as the controller's own status write.
    ///
    /// It works like [`WorkQueue::add_tagged`], but does not shorten the backoff of a failed key. Otherwise a controller that writes and then
    /// fails would run in a hot loop on its own events. The key is not lost: the next retry sees the state of the event.
    pub fn add_unchanged(&self, key: K, priority: i32, tags: u32) {
        self.add_for(key, priority, Cause::Unchanged, tags);
    }

    /// Adds a key because of an event that brings this version of an object: as the cause says, unless the key waits after a
    /// run that [disowned](WorkQueue::disown) the version.
    pub(crate) fn add_brought(&self, key: K, priority: i32, cause: Cause, tags: u32, version: u64) {
        let wake = self.shared.state.lock().add_brought(key, priority, (cause, version), tags, Instant::now());
        self.shared.wake(wake);
    }

    fn add_for(&self, key: K, priority: i32, cause: Cause, tags: u32) {
        let wake = self.shared.state.lock().add(key, priority, cause, tags, Instant::now());
        self.shared.wake(wake);
    }

    /// Adds a key when this time has passed, [`WAIT_MAX`] at most. One that waits for an earlier time keeps it; one that
    /// is ready or will run again stays so. A key that is processed keeps its priority, others get the normal one.
    pub fn add_after(&self, key: K, wait: Duration) {
        let wake = self.shared.state.lock().add_after(key, wait, Reason::Wish, Instant::now());
        self.shared.wake(wake);
    }

    /// Counts a failure and adds the key after the wait that it has earned, which is returned.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        self.fail(key, None)
    }

    /// Counts a failure and adds the key after a wait that the failure asks for, instead of the one that it has earned.
    pub fn add_failed(&self, key: K, wait: Duration) {
        self.fail(key, Some(wait));
    }

    fn fail(&self, key: K, wait: Option<Duration>) -> Duration {
        let (wait, wake) = self.shared.state.lock().fail(key, wait, self.shared.backoff, Instant::now());
        self.shared.wake(wake);
        wait
    }

    /// Counts a conflict and adds the key after at least this wait; consecutive conflicts grow the wait like failures. Each earlier add
    /// makes the key ready at once, because it may bring the newer state.
    pub fn add_outdated(&self, key: K, least: Duration) {
        let wake = self.shared.state.lock().meet(key, least, self.shared.backoff, Instant::now());
        self.shared.wake(wake);
    }

    /// Conflicts of the key since it was last forgotten.
    pub fn num_conflicts(&self, key: &K) -> u32 {
        self.shared.state.lock().conflicts(key)
    }

    /// Failures of the key since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.state.lock().failures(key)
    }

    /// The keys that failed when they were last processed, with their failures in a row, or with their conflicts where these
    /// are more than [`CONFLICTS_USUAL`]; the one that began to fail first comes first.
    pub fn failing(&self) -> Vec<(K, u32)> {
        self.shared.state.lock().failing()
    }

    /// The keys that fail and those that are processed, at most `max` of each.
    pub fn keys(&self, max: usize) -> QueueKeys<K> {
        self.shared.state.lock().keys(max, Instant::now())
    }

    /// Forgets the failures of the key; where it waits does not change.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().forget(key);
    }

    /// Forgets the failures of the key, which is not tried again before it is added: it counts as one that fails until a later
    /// run ends otherwise.
    pub fn give_up(&self, key: K) {
        self.shared.state.lock().give_up(key);
    }

    /// Says what the run of a key has written, before it is given up or waits after a conflict: events of these versions are
    /// echoes. If nothing else came while it ran, [`WorkQueue::done`] does not make it ready, and no later echo does.
    pub(crate) fn disown(&self, key: &K, written: Vec<u64>) {
        self.shared.state.lock().disown(key, written);
    }

    /// How many keys failed when they were last processed, with those that were given up.
    pub fn n_failing(&self) -> usize {
        self.shared.state.lock().n_failing()
    }

    /// Waits for the next key; `None` once the queue is shut down and empty.
    ///
    /// # Cancel safety
    /// A dropped future has taken no key.
    pub async fn get(&self) -> Option<Item<K>> {
        let mut timekeeper = None;
        loop {
            let notified = self.shared.ready.notified();
            let next = self.shared.next(&mut timekeeper);
            match next {
                Next::Taken { item, waited, more } => {
                    if more {
                        self.shared.ready.notify_one();
                    }
                    if let Some(observer) = &self.shared.observer {
                        observer.waited(waited);
                    }
                    return Some(item);
                }
                Next::End => return None,
                Next::Wait(due) if timekeeper.is_some() => tokio::select! {
                    biased;
                    () = notified => {}
                    () = self.shared.rescheduled.notified() => {}
                    () = sleep_until(due.unwrap_or_else(|| Instant::now() + WAIT_MAX)) => {}
                },
                Next::Wait(_) => notified.await,
            }
        }
    }

    /// Marks a key as processed. If it was added meanwhile, it is ready again. Does nothing for a key that no worker has.
    pub fn done(&self, key: &K) {
        let (done, drains) = {
            let mut state = self.shared.state.lock();
            (state.done(key, Instant::now()), state.phase == Phase::Draining)
        };
        let Some((worked, wake)) = done else { return };
        self.shared.wake(wake);
        if drains {
            self.shared.done.notify_waiters();
        }
        if let Some(observer) = &self.shared.observer {
            observer.worked(worked);
        }
    }

    /// Keys that are ready.
    pub fn len(&self) -> usize {
        self.shared.state.lock().len(Instant::now())
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys in workers' hands.
    pub fn processing(&self) -> usize {
        self.shared.state.lock().n_processing()
    }

    /// Keys that wait for a time.
    pub fn delayed(&self) -> usize {
        self.shared.state.lock().delayed_until(None, Instant::now())
    }

    /// Keys that wait for a time which comes within `horizon`.
    pub fn next_delayed_within(&self, horizon: Duration) -> usize {
        let now = Instant::now();
        self.shared.state.lock().delayed_until(Some(now + horizon.min(WAIT_MAX)), now)
    }

    /// The key whose time comes next, and in how long.
    pub fn next_due(&self) -> Option<(K, Duration)> {
        let now = Instant::now();
        self.shared.state.lock().next_due().map(|(key, due)| (key, due.saturating_duration_since(now)))
    }

    /// Numbers for metrics.
    pub fn stats(&self) -> QueueStats {
        self.shared.state.lock().stats(Instant::now())
    }

    /// The keys that have been in a worker's hands for at least so long, and for how long, the longest first.
    pub fn processing_for(&self, least: Duration) -> Vec<(K, Duration)> {
        let now = Instant::now();
        let Some(before) = now.checked_sub(least) else { return Vec::new() };
        let works = self.shared.state.lock().processing_since(before);
        works.into_iter().map(|(key, since)| (key, now.saturating_duration_since(since))).collect()
    }

    /// Takes no more keys. Ready ones are still handed out; those that wait for a time are dropped. A drain that is waited
    /// for ends at once.
    pub fn shut_down(&self) {
        self.shut(Phase::ShutDown);
    }

    fn shut(&self, phase: Phase) {
        self.shared.state.lock().shut_down(phase);
        self.shared.ready.notify_waiters();
        self.shared.done.notify_waiters();
    }

    /// Shuts down and returns once no key is ready or processed, or [`WorkQueue::shut_down`] is called.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue shut down.
    pub async fn shut_down_with_drain(&self) {
        self.shut(Phase::Draining);
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
    fn wake(&self, wake: Wake) {
        match wake {
            Wake::Nobody => {}
            Wake::Timekeeper if self.state.lock().timekeeper => self.rescheduled.notify_one(),
            Wake::Worker | Wake::Timekeeper => self.ready.notify_one(),
        }
    }

    /// Takes a key. A worker that has to wait for a time becomes the one that keeps it, if nobody does.
    fn next<'a>(&'a self, timekeeper: &mut Option<Timekeeper<'a, K>>) -> Next<K> {
        let mut state = self.state.lock();
        let next = state.next(Instant::now());
        if matches!(next, Next::Wait(Some(_))) && !state.timekeeper {
            state.timekeeper = true;
            *timekeeper = Some(Timekeeper(self));
        }
        next
    }

    fn is_drained(&self) -> bool {
        let mut state = self.state.lock();
        state.phase != Phase::Draining || (state.len(Instant::now()) == 0 && state.n_processing() == 0)
    }
}

/// The worker that sleeps until the first of the delayed keys is due; all others sleep until they are woken. When it
/// leaves, with a key or because it was dropped, another one takes over.
struct Timekeeper<'a, K>(&'a Shared<K>);

impl<K> Drop for Timekeeper<'_, K> {
    fn drop(&mut self) {
        self.0.state.lock().timekeeper = false;
        self.0.ready.notify_one();
    }
}
