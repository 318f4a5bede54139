//! Statistics of a work queue, which follow client-go's metrics.

use std::sync::Arc;

use kctl_runtime::queue::{Add, Cause, PRIORITIES_REPORTED_MAX, QueueConfig, QueueObserver, QueueStats, WorkQueue};
use parking_lot::Mutex;
use tokio::time::{Duration, advance};

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct ObservedDurations {
    waited: Mutex<Vec<Duration>>,
    worked: Mutex<Vec<Duration>>,
}

impl QueueObserver for ObservedDurations {
    fn observe_queue_duration(&self, wait: Duration) {
        self.waited.lock().push(wait);
    }

    fn observe_work_duration(&self, work: Duration) {
        self.worked.lock().push(work);
    }
}

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(QueueConfig::default())
}

#[tokio::test(start_paused = true)]
async fn run_counts_one_add_wait_and_work() {
    let seen = Arc::new(ObservedDurations::default());
    let queue = WorkQueue::with_observer(QueueConfig::default(), seen.clone());
    queue.add("a");
    queue.add("a");
    assert_eq!((queue.stats().depth, queue.stats().adds), (1, 1));
    advance(SECOND).await;
    assert_eq!(queue.stats().oldest_waiting, SECOND);
    queue.get().await.unwrap();
    advance(2 * SECOND).await;
    queue.done(&"a");
    let mut once = QueueStats::default();
    once.adds = 1;
    assert_eq!(queue.stats(), once);
    assert_eq!((seen.waited.lock().clone(), seen.worked.lock().clone()), (vec![SECOND], vec![2 * SECOND]));
}

#[tokio::test(start_paused = true)]
async fn dirty_key_counts_in_the_depth_when_done() {
    let seen = Arc::new(ObservedDurations::default());
    let queue = WorkQueue::with_observer(QueueConfig::default(), seen.clone());
    queue.add("a");
    queue.get().await.unwrap();
    queue.add("a");
    queue.add("a");
    assert_eq!((queue.stats().depth, queue.stats().adds), (0, 2));
    advance(SECOND).await;
    queue.done(&"a");
    assert_eq!((queue.stats().depth, queue.stats().adds), (1, 2));
    queue.get().await.unwrap();
    assert_eq!(*seen.waited.lock(), [Duration::ZERO, SECOND]);
}

#[tokio::test(start_paused = true)]
async fn delayed_add_counts_as_retry_then_add() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(SECOND)));
    queue.add(Add::new("a").cause(Cause::Requeue(2 * SECOND)));
    queue.add(Add::new("b").cause(Cause::Failure));
    assert_eq!((queue.stats().retries, queue.stats().adds, queue.stats().delayed), (3, 0, 2));
    advance(SECOND).await;
    assert_eq!((queue.stats().retries, queue.stats().adds, queue.stats().depth), (3, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn delayed_key_has_waited_since_it_was_due() {
    let seen = Arc::new(ObservedDurations::default());
    let queue = WorkQueue::<&str>::with_observer(QueueConfig::default(), seen.clone());
    queue.add(Add::new("a").cause(Cause::Requeue(SECOND)));
    advance(3 * SECOND).await;
    queue.get().await.unwrap();
    assert_eq!(*seen.waited.lock(), [2 * SECOND]);
}

#[tokio::test(start_paused = true)]
async fn work_that_hangs_is_seen_while_it_hangs() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    queue.get().await.unwrap();
    advance(SECOND).await;
    queue.get().await.unwrap();
    advance(2 * SECOND).await;
    let stats = queue.stats();
    assert_eq!((stats.processing, stats.longest_running, stats.unfinished_work), (2, 3 * SECOND, 5 * SECOND));
    assert_eq!(queue.processing_for(2 * SECOND), [("a", 3 * SECOND), ("b", 2 * SECOND)]);
    assert_eq!(queue.processing_for(3 * SECOND), [("a", 3 * SECOND)]);
    assert_eq!(queue.processing_for(4 * SECOND), []);
    queue.done(&"a");
    assert_eq!((queue.stats().longest_running, queue.stats().unfinished_work), (2 * SECOND, 2 * SECOND));
    queue.done(&"b");
    assert_eq!((queue.stats().longest_running, queue.stats().unfinished_work), (Duration::ZERO, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn depth_by_priority_follows_keys_that_move_up() {
    let queue = queue();
    queue.add(Add::new("a").priority(-100));
    queue.add(Add::new("b").priority(-100));
    queue.add(Add::new("a").priority(5));
    assert_eq!(queue.stats().depth_by_priority, [(5, 1), (-100, 1)]);
    queue.get().await.unwrap();
    assert_eq!(queue.stats().depth_by_priority, [(-100, 1)]);
}

#[tokio::test(start_paused = true)]
async fn number_of_reported_priorities_is_bounded() {
    let queue = WorkQueue::<i32>::new(QueueConfig::default());
    for priority in 0..=i32::try_from(PRIORITIES_REPORTED_MAX).unwrap() {
        queue.add(Add::new(priority).priority(priority));
        let stats = queue.stats();
        assert_eq!(stats.depth_by_priority.len(), stats.depth.min(PRIORITIES_REPORTED_MAX));
        assert_eq!(stats.depth_beyond, stats.depth.saturating_sub(PRIORITIES_REPORTED_MAX));
    }
    assert_eq!(queue.stats().depth, PRIORITIES_REPORTED_MAX + 1);
    assert_eq!(queue.stats().depth_by_priority.last(), Some(&(1, 1)));
}
