//! Timing of the work queue: delays, backoff after failures, and events in between.

use futures::FutureExt;
use kctl_runtime::queue::{Add, Cause, QueueConfig, WAIT_MAX, WorkQueue};
use tokio::time::{Duration, Instant, advance};

const MS: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(QueueConfig::default())
}

fn try_get(queue: &WorkQueue<&'static str>) -> Option<&'static str> {
    queue.get().now_or_never().flatten().map(|item| item.key)
}

/// Takes the next key, finishes it, and returns it with the time that passed since `start`.
async fn next(queue: &WorkQueue<&'static str>, start: Instant) -> (&'static str, Duration) {
    let item = queue.get().await.unwrap();
    queue.done(&item.key);
    (item.key, start.elapsed())
}

/// Takes a key and fails it. Returns the delay until its retry.
async fn fail(queue: &WorkQueue<&'static str>) -> Duration {
    let item = queue.get().await.unwrap();
    let wait = queue.add(Add::new(item.key).cause(Cause::Failure));
    queue.done(&item.key);
    wait
}

#[tokio::test(start_paused = true)]
async fn delayed_key_comes_exactly_at_its_time() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(50 * MS)));
    advance(49 * MS).await;
    assert_eq!(try_get(&queue), None);
    advance(MS).await;
    assert_eq!(try_get(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn waiting_worker_gets_a_delayed_key_in_time() {
    let queue = queue();
    let start = Instant::now();
    queue.add(Add::new("b").cause(Cause::Requeue(70 * MS)));
    queue.add(Add::new("a").cause(Cause::Requeue(50 * MS)));
    assert_eq!(next(&queue, start).await, ("a", 50 * MS));
    assert_eq!(next(&queue, start).await, ("b", 70 * MS));
}

#[tokio::test(start_paused = true)]
async fn waiting_worker_is_woken_for_an_earlier_time() {
    let queue = queue();
    let start = Instant::now();
    queue.add(Add::new("late").cause(Cause::Requeue(100 * MS)));
    let mut waiting = Box::pin(next(&queue, start));
    assert!(waiting.as_mut().now_or_never().is_none());
    queue.add(Add::new("early").cause(Cause::Requeue(20 * MS)));
    assert_eq!(waiting.await, ("early", 20 * MS));
}

#[tokio::test(start_paused = true)]
async fn of_two_times_the_earlier_counts() {
    for (first, second) in [(100, 50), (50, 100)] {
        let queue = queue();
        let start = Instant::now();
        queue.add(Add::new("a").cause(Cause::Requeue(first * MS)));
        queue.add(Add::new("a").cause(Cause::Requeue(second * MS)));
        assert_eq!(next(&queue, start).await, ("a", 50 * MS));
        advance(MINUTE).await;
        assert_eq!(try_get(&queue), None);
    }
}

#[tokio::test(start_paused = true)]
async fn zero_wait_is_ready_at_once() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(Duration::ZERO)));
    assert_eq!(try_get(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn add_replaces_the_delay_of_a_key() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(MINUTE)));
    queue.add("a");
    assert_eq!(next(&queue, Instant::now()).await, ("a", Duration::ZERO));
    advance(2 * MINUTE).await;
    assert_eq!(try_get(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn later_delay_does_not_affect_a_ready_key() {
    let queue = queue();
    queue.add("a");
    queue.add(Add::new("a").cause(Cause::Requeue(MINUTE)));
    assert_eq!(try_get(&queue), Some("a"));
    assert_eq!(queue.n_delayed(), 0);
}

#[tokio::test(start_paused = true)]
async fn wait_beyond_the_clock_is_cut() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Requeue(Duration::MAX)));
    assert_eq!(queue.next_delayed_within(WAIT_MAX.saturating_sub(MS)), 0);
    assert_eq!(queue.next_delayed_within(WAIT_MAX), 1);
    assert_eq!(queue.next_delayed_within(Duration::MAX), 1);
}

#[tokio::test(start_paused = true)]
async fn key_due_while_processed_runs_once_more() {
    let queue = queue();
    queue.add("a");
    assert_eq!(try_get(&queue), Some("a"));
    queue.add(Add::new("a").cause(Cause::Requeue(10 * MS)));
    advance(20 * MS).await;
    assert_eq!(try_get(&queue), None);
    queue.done(&"a");
    assert_eq!(try_get(&queue), Some("a"));
    queue.done(&"a");
    assert_eq!(queue.stats().keys, 0);
}

/// The worker that slept until the key was due is dropped. Another worker must take over the timer.
#[tokio::test(start_paused = true)]
async fn delayed_key_survives_its_timekeeper() {
    let queue = queue();
    let mut gone = Box::pin(queue.get());
    let mut stays = Box::pin(queue.get());
    assert!(gone.as_mut().now_or_never().is_none());
    assert!(stays.as_mut().now_or_never().is_none());
    queue.add(Add::new("a").cause(Cause::Requeue(10 * MS)));
    assert!(gone.as_mut().now_or_never().is_none());
    assert!(stays.as_mut().now_or_never().is_none());
    drop(gone);
    let item = tokio::time::timeout(MINUTE, stays).await;
    assert_eq!(item.expect("a worker waits for it").unwrap().key, "a");
}

#[tokio::test(start_paused = true)]
async fn delayed_key_survives_a_busy_timekeeper() {
    let queue = queue();
    let start = Instant::now();
    queue.add(Add::new("later").cause(Cause::Requeue(10 * MS)));
    let get = |queue: WorkQueue<_>| tokio::spawn(async move { queue.get().await.unwrap().key });
    let first = get(queue.clone());
    tokio::task::yield_now().await;
    let second = get(queue.clone());
    tokio::task::yield_now().await;
    queue.add("now");
    let mut keys = [first.await.unwrap(), second.await.unwrap()];
    keys.sort_unstable();
    assert_eq!((keys, start.elapsed()), (["later", "now"], 10 * MS));
}

#[tokio::test(start_paused = true)]
async fn timekeeper_continues_after_a_take() {
    let queue = queue();
    let start = Instant::now();
    queue.add(Add::new("a").cause(Cause::Requeue(MINUTE)));
    let mut waiting = Box::pin(next(&queue, start));
    assert!(waiting.as_mut().now_or_never().is_none());
    queue.add("a");
    assert_eq!(try_get(&queue), Some("a"));
    assert!(waiting.as_mut().now_or_never().is_none());
    queue.add(Add::new("b").cause(Cause::Requeue(10 * MS)));
    assert_eq!(waiting.await, ("b", 10 * MS));
}

#[tokio::test(start_paused = true)]
async fn backoff_is_per_key_until_forgotten() {
    let queue = queue();
    queue.add("x");
    for expected in [5, 10, 20, 40, 80] {
        assert_eq!(fail(&queue).await, expected * MS);
    }
    queue.add("y");
    assert_eq!(fail(&queue).await, 5 * MS);
    assert_eq!((queue.num_requeues(&"x"), queue.num_requeues(&"y"), queue.num_requeues(&"z")), (5, 1, 0));
    assert_eq!(queue.failing(), [("x", 5), ("y", 1)]);
    queue.forget(&"x");
    assert_eq!(queue.num_requeues(&"x"), 0);
    assert_eq!(queue.add(Add::new("x").cause(Cause::Failure)), 5 * MS);
}

#[tokio::test(start_paused = true)]
async fn thousand_failures_wait_the_longest_time() {
    let queue = queue();
    let mut wait = Duration::ZERO;
    for _ in 0..1000 {
        wait = queue.add(Add::new("a").cause(Cause::Failure));
    }
    assert_eq!(wait, Duration::from_secs(1000));
    assert_eq!(queue.num_requeues(&"a"), 1000);
}

#[tokio::test(start_paused = true)]
async fn forgetting_does_not_move_a_key_that_waits() {
    let queue = queue();
    queue.add("a");
    queue.forget(&"a");
    queue.forget(&"unknown");
    queue.add(Add::new("b").cause(Cause::Requeue(MINUTE)));
    queue.forget(&"b");
    assert_eq!((queue.len(), queue.n_delayed()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn failure_with_a_wait_is_counted() {
    let queue = queue();
    let start = Instant::now();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add(Add::new(item.key).cause(Cause::FailureAfter(MINUTE)));
    queue.done(&item.key);
    assert_eq!(queue.num_requeues(&"a"), 1);
    queue.add(Add::new("a").cause(Cause::Unchanged));
    assert_eq!(next(&queue, start).await, ("a", MINUTE));
}

#[tokio::test(start_paused = true)]
async fn unchanged_event_keeps_the_backoff() {
    let queue = queue();
    queue.add("a");
    let start = Instant::now();
    fail(&queue).await;
    queue.add(Add::new("a").cause(Cause::Unchanged));
    assert_eq!(try_get(&queue), None);
    assert_eq!(next(&queue, start).await, ("a", 5 * MS));
    assert_eq!(try_get(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn own_write_event_keeps_the_backoff() {
    let queue = queue();
    queue.add("a");
    let start = Instant::now();
    let item = queue.get().await.unwrap();
    queue.add(Add::new("a").cause(Cause::Unchanged));
    queue.add(Add::new("a").cause(Cause::Failure));
    queue.done(&item.key);
    assert_eq!(try_get(&queue), None);
    assert_eq!(next(&queue, start).await, ("a", 5 * MS));
    assert_eq!(try_get(&queue), None);
}

#[tokio::test(start_paused = true)]
async fn unchanged_event_runs_a_healthy_key() {
    let queue = queue();
    queue.add(Add::new("a").cause(Cause::Unchanged));
    assert_eq!(try_get(&queue), Some("a"));
    queue.add(Add::new("a").cause(Cause::Unchanged));
    queue.done(&"a");
    assert_eq!(try_get(&queue), Some("a"));
    queue.add(Add::new("a").cause(Cause::Requeue(MINUTE)));
    queue.done(&"a");
    queue.add(Add::new("a").cause(Cause::Unchanged));
    assert_eq!(try_get(&queue), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn real_change_ends_the_backoff() {
    let queue = queue();
    queue.add("a");
    for _ in 0..5 {
        fail(&queue).await;
    }
    queue.add(Add::new("a").cause(Cause::Changed));
    assert_eq!(queue.num_requeues(&"a"), 0);
    assert_eq!(fail(&queue).now_or_never(), Some(5 * MS));
}

#[tokio::test(start_paused = true)]
async fn change_during_a_failing_run_runs_again() {
    let queue = queue();
    queue.add("a");
    let item = queue.get().await.unwrap();
    queue.add(Add::new("a").cause(Cause::Unchanged));
    queue.add(Add::new("a").cause(Cause::Changed));
    queue.add(Add::new("a").cause(Cause::Failure));
    queue.done(&item.key);
    assert_eq!(try_get(&queue), Some("a"));
    assert_eq!(queue.n_delayed(), 0);
}

#[tokio::test(start_paused = true)]
async fn add_runs_a_failing_key_and_keeps_failures() {
    let queue = queue();
    queue.add("a");
    fail(&queue).await;
    queue.add("a");
    assert_eq!(fail(&queue).now_or_never(), Some(10 * MS));
}
