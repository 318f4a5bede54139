//! The end of a work queue, with and without a drain.

use futures::FutureExt;
use kctl_runtime::queue::{Add, Cause, QueueConfig, WorkQueue};
use tokio::time::{Duration, advance};

const MS: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(QueueConfig::default())
}

fn try_get(queue: &WorkQueue<&'static str>) -> Option<&'static str> {
    queue.get().now_or_never().flatten().map(|item| item.key)
}

#[tokio::test(start_paused = true)]
async fn shutdown_serves_ready_keys_and_ignores_adds() {
    let queue = queue();
    queue.add("a");
    queue.add("b");
    queue.shut_down();
    queue.add("c");
    queue.add(Add::new("c").cause(Cause::Changed));
    queue.add(Add::new("c").cause(Cause::Requeue(MS)));
    queue.add(Add::new("c").cause(Cause::Failure));
    advance(MINUTE).await;
    assert_eq!(try_get(&queue), Some("a"));
    assert_eq!(try_get(&queue), Some("b"));
    assert_eq!(queue.get().await, None);
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn dirty_key_runs_once_more_after_shutdown() {
    let queue = queue();
    queue.add("a");
    assert_eq!(try_get(&queue), Some("a"));
    queue.add("a");
    queue.shut_down();
    queue.done(&"a");
    assert_eq!(try_get(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn shut_down_ends_all_waiting_workers() {
    let queue = queue();
    queue.add(Add::new("later").cause(Cause::Requeue(MINUTE)));
    let get = |queue: WorkQueue<_>| tokio::spawn(async move { queue.get().await });
    let workers: Vec<_> = (0..4).map(|_| get(queue.clone())).collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for worker in workers {
        assert_eq!(worker.await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_drops_delayed_keys() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(MS)));
    queue.add("b");
    assert_eq!(try_get(&queue), Some("b"));
    queue.add(Add::new("b").cause(Cause::Requeue(MS)));
    queue.shut_down();
    queue.done(&"b");
    advance(MINUTE).await;
    assert_eq!(queue.get().await, None);
    assert_eq!((queue.n_delayed(), queue.stats().keys), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn drain_of_an_empty_queue_returns_at_once() {
    assert!(queue().shut_down_with_drain().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_dirty_keys_too() {
    let queue = queue();
    queue.add("a");
    assert_eq!(try_get(&queue), Some("a"));
    queue.add("a");
    let mut drain = Box::pin(queue.shut_down_with_drain());
    assert!(drain.as_mut().now_or_never().is_none());
    queue.done(&"a");
    assert!(drain.as_mut().now_or_never().is_none());
    assert_eq!(try_get(&queue), Some("a"));
    assert!(drain.as_mut().now_or_never().is_none());
    queue.done(&"a");
    drain.await;
}

#[tokio::test(start_paused = true)]
async fn shut_down_ends_a_drain_at_once() {
    let queue = queue();
    queue.add("a");
    assert_eq!(try_get(&queue), Some("a"));
    let other = queue.clone();
    let drain = tokio::spawn(async move { other.shut_down_with_drain().await });
    tokio::task::yield_now().await;
    assert!(!drain.is_finished());
    queue.shut_down();
    tokio::time::timeout(MINUTE, drain).await.expect("the drain ends").unwrap();
    assert_eq!(queue.processing(), 1);
}
