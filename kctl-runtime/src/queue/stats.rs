//! What can be measured of a queue, without a metrics crate: numbers when somebody asks, durations to an observer.

use std::time::Duration;

/// Priorities that [`QueueStats::depth_by_priority`] tells apart at most; the keys of lower ones are counted in
/// [`QueueStats::depth_beyond`] together (controller-runtime, `pkg/controller/priorityqueue/metrics.go`, has the same number).
pub const PRIORITIES_REPORTED_MAX: usize = 25;

/// A queue at one moment. The names in parentheses are those of client-go's metrics (`util/workqueue/metrics.go`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Keys that are ready (`workqueue_depth`).
    pub depth: usize,
    /// Ready keys by priority, the highest first (`workqueue_depth{priority}`); at most [`PRIORITIES_REPORTED_MAX`] of them.
    pub depth_by_priority: Vec<(i32, usize)>,
    /// Ready keys of the priorities that are not told apart (`workqueue_depth{priority="exceeded_cardinality_limit"}`).
    pub depth_beyond: usize,
    /// Keys that wait for a time.
    pub delayed: usize,
    /// Keys in workers' hands.
    pub processing: usize,
    /// Keys of which the queue knows anything: they wait, are processed or have failed.
    pub keys: usize,
    /// Adds that made a key wait (`workqueue_adds_total`). Adds of a key that waits already are not counted; those of a
    /// key that is processed are, once, though the depth changes only when it is done.
    pub adds: u64,
    /// Adds for later, be it after a failure or by wish (`workqueue_retries_total`).
    pub retries: u64,
    /// How long the longest work has been going on (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
    /// The sum over all work that is going on (`workqueue_unfinished_work_seconds`): growing faster than the clock, it
    /// tells how many workers hang.
    pub unfinished_work: Duration,
    /// How long the oldest ready key has been waiting.
    pub oldest_waiting: Duration,
}

/// The keys of a queue that people ask about, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueKeys<K> {
    /// Keys that failed when they were last processed, with their failures in a row and the time until the next try, if one
    /// is waited for; the one that began to fail first comes first.
    pub failing: Vec<(K, u32, Option<Duration>)>,
    /// How many keys fail, also those that are left out.
    pub n_failing: usize,
    /// Keys in workers' hands and since when; the longest comes first.
    pub running: Vec<(K, Duration)>,
}

/// Told of durations as they end. It is called without any lock held, and must return quickly.
pub trait QueueObserver: Send + Sync {
    /// A key was given to a worker this long after it became ready, or was added while it was processed
    /// (`workqueue_queue_duration_seconds`).
    fn waited(&self, wait: Duration);

    /// A key was handed back this long after it was given out (`workqueue_work_duration_seconds`).
    fn worked(&self, work: Duration);
}
