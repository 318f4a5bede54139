//! Keys of the work queue: each is queued once, is processed by one worker at a time, and comes out in order.

use futures::FutureExt;
use kctl_runtime::queue::{Add, Cause, PASSED_OVER_MAX, QueueConfig, WorkQueue};
use tokio::time::{Duration, advance};

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(QueueConfig::default())
}

/// Returns the next key if one is ready.
fn try_get<K: std::hash::Hash + Eq + Clone + Send + Sync + 'static>(queue: &WorkQueue<K>) -> Option<K> {
    queue.get().now_or_never().flatten().map(|item| item.key)
}

/// Processes keys until none is ready, and returns them.
fn drain(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| try_get(queue).inspect(|key| queue.done(key))).collect()
}

#[tokio::test(start_paused = true)]
async fn key_added_twice_is_delivered_once() {
    let queue = queue();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue), ["a"]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn key_added_while_processing_runs_once_more() {
    let queue = queue();
    queue.add("a");
    assert_eq!(try_get(&queue), Some("a"));
    for _ in 0..3 {
        queue.add("a");
    }
    assert!(queue.is_empty());
    queue.done(&"a");
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn second_worker_waits_until_the_key_is_done() {
    let queue = queue();
    queue.add("a");
    let first = queue.get().await.unwrap();
    queue.add("a");
    let other = queue.clone();
    let second = tokio::spawn(async move { other.get().await });
    tokio::task::yield_now().await;
    assert!(!second.is_finished());
    queue.done(&first.key);
    assert_eq!(second.await.unwrap().unwrap().key, "a");
}

#[tokio::test(start_paused = true)]
async fn keys_come_in_the_order_of_adds() {
    let queue = queue();
    for key in ["a", "b", "c", "a"] {
        queue.add(key);
    }
    assert_eq!(drain(&queue), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn dirty_key_goes_behind_waiting_keys() {
    let queue = queue();
    queue.add("hot");
    assert_eq!(try_get(&queue), Some("hot"));
    queue.add("hot");
    queue.add("b");
    queue.done(&"hot");
    assert_eq!(drain(&queue), ["b", "hot"]);
}

#[tokio::test(start_paused = true)]
async fn hot_key_does_not_delay_others() {
    let queue = queue();
    for key in ["hot", "a", "b", "c"] {
        queue.add(key);
    }
    let mut seen = Vec::new();
    for _ in 0..5 {
        let key = try_get(&queue).unwrap();
        if key == "hot" {
            queue.add("hot");
        }
        queue.done(&key);
        seen.push(key);
    }
    assert_eq!(seen, ["hot", "a", "b", "c", "hot"]);
}

#[tokio::test(start_paused = true)]
async fn done_without_a_worker_changes_nothing() {
    let queue = queue();
    queue.done(&"unknown");
    queue.add("a");
    queue.done(&"a");
    assert_eq!((queue.len(), queue.processing()), (1, 0));
    assert_eq!(try_get(&queue), Some("a"));
    queue.done(&"a");
    queue.done(&"a");
    assert_eq!(queue.stats().keys, 0);
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_handed_back_leave_nothing_behind() {
    let queue = queue();
    for key in ["a", "b"] {
        queue.add(key);
        queue.add(Add::new(key).cause(Cause::Failure));
    }
    for key in drain(&queue) {
        queue.forget(&key);
    }
    assert_eq!(queue.stats().keys, 0);
}

#[tokio::test(start_paused = true)]
async fn len_counts_ready_keys_only() {
    let queue = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    queue.add(Add::new("later").cause(Cause::Requeue(Duration::from_secs(1))));
    assert_eq!(try_get(&queue), Some("a"));
    assert_eq!((queue.len(), queue.processing(), queue.n_delayed()), (2, 1, 1));
    advance(Duration::from_secs(1)).await;
    assert_eq!((queue.len(), queue.processing(), queue.n_delayed()), (3, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_get_has_taken_no_key() {
    let queue = queue();
    assert_eq!(queue.get().now_or_never(), None);
    let mut waiting = Box::pin(queue.get());
    assert!(waiting.as_mut().now_or_never().is_none());
    queue.add("a");
    drop(waiting);
    assert_eq!(queue.processing(), 0);
    assert_eq!(queue.get().await.unwrap().key, "a");
}

#[tokio::test(start_paused = true)]
async fn dropped_get_hands_its_wake_up_on() {
    let queue = queue();
    let mut dropped = Box::pin(queue.get());
    let mut other = Box::pin(queue.get());
    assert!(dropped.as_mut().now_or_never().is_none());
    assert!(other.as_mut().now_or_never().is_none());
    queue.add("a");
    drop(dropped);
    assert_eq!(other.await.unwrap().key, "a");
}

#[tokio::test(start_paused = true)]
async fn each_of_several_waiting_workers_gets_a_key() {
    let queue = queue();
    let get = |queue: WorkQueue<_>| tokio::spawn(async move { queue.get().await.unwrap().key });
    let workers: Vec<_> = (0..3).map(|_| get(queue.clone())).collect();
    tokio::task::yield_now().await;
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let mut keys = Vec::new();
    for worker in workers {
        keys.push(worker.await.unwrap());
    }
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn higher_priority_comes_first() {
    let queue = queue();
    queue.add(Add::new("initial").priority(-100));
    queue.add(Add::new("fresh").priority(0));
    queue.add(Add::new("urgent").priority(1));
    let item = queue.get().await.unwrap();
    assert_eq!((item.key, item.priority), ("urgent", 1));
    assert_eq!(drain(&queue), ["fresh", "initial"]);
}

#[tokio::test(start_paused = true)]
async fn late_higher_priority_is_taken_next() {
    let queue = queue();
    for key in ["a", "b"] {
        queue.add(Add::new(key).priority(-100));
    }
    assert_eq!(try_get(&queue), Some("a"));
    queue.add(Add::new("fresh").cause(Cause::Requeue(Duration::from_secs(1))));
    advance(Duration::from_secs(1)).await;
    assert_eq!(drain(&queue), ["fresh", "b"]);
}

#[tokio::test(start_paused = true)]
async fn raised_keys_keep_the_order_of_raising() {
    let queue = queue();
    queue.add("y");
    queue.add("x");
    queue.add(Add::new("x").priority(5));
    queue.add(Add::new("y").priority(5));
    assert_eq!(drain(&queue), ["x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn priority_never_sinks() {
    let queue = queue();
    queue.add(Add::new("a").priority(10));
    queue.add(Add::new("a").priority(1));
    assert_eq!(queue.get().await.unwrap().priority, 10);
    queue.add(Add::new("a").priority(2));
    queue.add(Add::new("a").priority(1));
    queue.done(&"a");
    assert_eq!(queue.get().await.unwrap().priority, 2);
}

#[tokio::test(start_paused = true)]
async fn delayed_key_keeps_its_higher_priority() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(Duration::from_secs(60))));
    queue.add(Add::new("a").priority(-100));
    assert_eq!(queue.get().await.unwrap().priority, 0);
}

#[tokio::test(start_paused = true)]
async fn retry_keeps_the_priority_of_its_run() {
    let queue = queue();
    queue.add(Add::new("a").priority(-100));
    let item = queue.get().await.unwrap();
    queue.add(Add::new(item.key).cause(Cause::Failure));
    queue.done(&item.key);
    assert_eq!(queue.get().await.unwrap().priority, -100);
}

/// Returns the number of takes until `low` comes out, while new keys of a higher priority are added before every take.
async fn takes_until_low(n_older: u32) -> u32 {
    let queue = WorkQueue::new(QueueConfig::default());
    for older in 0..n_older {
        queue.add(Add::new(format!("older-{older}")).priority(-100));
    }
    queue.add(Add::new("low".to_string()).priority(-100));
    for take in 1.. {
        queue.add(format!("fresh-{take}-a"));
        queue.add(format!("fresh-{take}-b"));
        let item = queue.get().await.unwrap();
        queue.done(&item.key);
        if item.key == "low" {
            return take;
        }
        assert!(take < 1000, "it starves");
    }
    unreachable!("takes are counted without end")
}

#[tokio::test(start_paused = true)]
async fn low_priority_keys_never_starve() {
    for n_older in [0, 1, 7] {
        assert_eq!(takes_until_low(n_older).await, (n_older + 1) * (PASSED_OVER_MAX + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn fresh_keys_overtake_up_to_the_bound() {
    let queue = WorkQueue::new(QueueConfig::default());
    queue.add(Add::new(1000).priority(-100));
    for key in 0..=PASSED_OVER_MAX {
        queue.add(key);
    }
    let order: Vec<_> = std::iter::from_fn(|| try_get(&queue)).collect();
    assert_eq!(order, (0..PASSED_OVER_MAX).chain([1000, PASSED_OVER_MAX]).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn key_that_moves_up_keeps_its_age() {
    let queue = WorkQueue::new(QueueConfig::default());
    queue.add(Add::new(1000).priority(-100));
    queue.add(Add::new(2000).priority(-100));
    queue.add(Add::new(1000).priority(-50));
    for key in 0..20 {
        queue.add(key);
    }
    let order: Vec<_> = std::iter::from_fn(|| try_get(&queue)).collect();
    assert_eq!(order.iter().position(|key| *key == 1000), Some(PASSED_OVER_MAX as usize));
}
