//! The numbers that metrics report about a queue, without a dependency on a metrics crate: [`QueueStats`] on request,
//! and durations to a [`QueueObserver`] as they end.

use std::time::Duration;

/// Maximum number of priorities in [`QueueStats::depth_by_priority`]. Keys of lower priorities are counted together in
/// [`QueueStats::depth_beyond`] (controller-runtime, `pkg/controller/priorityqueue/metrics.go`, has the same limit).
pub const PRIORITIES_REPORTED_MAX: usize = 25;

/// The state of a queue at one moment, from [`WorkQueue::stats`](super::WorkQueue::stats). Names in parentheses are
/// metrics of client-go (`util/workqueue/metrics.go`).
///
/// ```
/// use kctl_runtime::queue::{Add, QueueConfig, WorkQueue};
///
/// let queue = WorkQueue::<&str>::new(QueueConfig::default());
/// queue.add("a");
/// queue.add("b");
/// queue.add(Add::new("c").priority(-100));
/// let stats = queue.stats();
/// assert_eq!(stats.depth, 3);
/// assert_eq!(stats.depth_by_priority, [(0, 2), (-100, 1)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStats {
    /// Number of ready keys (`workqueue_depth`).
    pub depth: usize,
    /// Numbers of ready keys by priority, the highest first (`workqueue_depth{priority}`). Invariant: at
    /// most [`PRIORITIES_REPORTED_MAX`] entries, of different priorities.
    pub depth_by_priority: Vec<(i32, usize)>,
    /// Number of ready keys whose priority is not in `depth_by_priority`
    /// (`workqueue_depth{priority="exceeded_cardinality_limit"}`).
    pub depth_beyond: usize,
    /// Number of keys that wait for a time.
    pub delayed: usize,
    /// Number of keys that workers process now.
    pub processing: usize,
    /// Number of keys with an entry: they wait, are processed or have failed. The memory of the queue grows with it.
    pub keys: usize,
    /// Number of adds that made a key ready, since the start (`workqueue_adds_total`), and of waits that ended. Adds of a
    /// ready key are not counted. While a key is processed, only the first add is counted.
    pub adds: u64,
    /// Number of adds for a later time, after a failure or conflict, or for [`Cause::Requeue`](super::Cause::Requeue)
    /// (`workqueue_retries_total`).
    pub retries: u64,
    /// Time since the longest of the running reconciles began (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
    /// The sum of these times over all running reconciles (`workqueue_unfinished_work_seconds`). If it grows faster
    /// than the clock, more than one worker hangs.
    pub unfinished_work: Duration,
    /// Time for which the oldest ready key has waited.
    pub oldest_waiting: Duration,
}

/// The keys of a queue that people ask about, at one moment: from [`WorkQueue::keys`](super::WorkQueue::keys).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueKeys<K> {
    /// Keys that failed and are retried, with their failures in a row and the time until the next retry. The time is
    /// `None` if the key is ready or being processed. The key that began to fail first comes first. Keys that were
    /// [given up](super::WorkQueue::give_up) are not among them.
    pub failing: Vec<(K, u32, Option<Duration>)>,
    /// Number of such keys, including those that did not fit into `failing`.
    pub n_failing: usize,
    /// Keys that workers process now, with the time since they were taken; the longest comes first.
    pub running: Vec<(K, Duration)>,
}

/// Receives durations as they end, for histograms. [`WorkQueue::with_observer`](super::WorkQueue::with_observer) has an example.
///
/// The queue calls it without holding its lock. Implementations must return quickly, because they run on the worker's
/// task.
pub trait QueueObserver: Send + Sync {
    /// A worker took a key this long after it became ready (`workqueue_queue_duration_seconds`). A key that was added
    /// while it was processed has waited since that add.
    fn observe_queue_duration(&self, wait: Duration);

    /// A worker handed a key back this long after it took it (`workqueue_work_duration_seconds`).
    fn observe_work_duration(&self, work: Duration);
}
