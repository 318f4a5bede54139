//! The work queue with many threads: races that a single thread can't show.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use kctl_runtime::queue::{Add, Backoff, Cause, QueueConfig, WorkQueue};
use parking_lot::Mutex;
use tokio::{task::JoinSet, time::Duration};

const KEYS: usize = 16;
const ADDERS: usize = 4;
const ADDS: usize = 2_000;

/// Mixes the bits of a number, so that runs differ only in the scheduling of threads.
fn mix(number: usize) -> usize {
    (number ^ 0x9e37).wrapping_mul(0x85eb_ca6b) >> 7
}

async fn add(queue: WorkQueue<usize>, adder: usize, versions: Arc<Vec<AtomicUsize>>) {
    for n in 0..ADDS {
        let choice = mix(adder * ADDS + n);
        let key = choice % KEYS;
        // The version is increased before its key is added, so that the worker that takes the key sees the new version.
        versions[key].fetch_add(1, Ordering::SeqCst);
        let add = Add::new(key);
        queue.add(match choice / KEYS % 8 {
            0 => add.priority(-100),
            1 => add.priority(5),
            2 => add.cause(Cause::Requeue(Duration::from_micros(200))),
            3 => add.cause(Cause::Unchanged),
            4 => add.cause(Cause::Changed),
            _ => add,
        });
        if n.is_multiple_of(16) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_share_no_key_and_see_last_state() {
    let backoff = Backoff { base: Duration::from_micros(50), max: Duration::from_millis(1) };
    let queue: WorkQueue<usize> = WorkQueue::new(QueueConfig::default().backoff(backoff));
    let versions: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let hands: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let seen: Arc<Mutex<HashMap<usize, usize>>> = Arc::default();
    let mut workers = JoinSet::new();
    for worker in 0..4 {
        let (queue, versions, hands, seen) = (queue.clone(), versions.clone(), hands.clone(), seen.clone());
        workers.spawn(async move {
            let mut n_runs = worker;
            while let Some(item) = queue.get().await {
                n_runs += 1;
                assert_eq!(hands[item.key].fetch_add(1, Ordering::SeqCst), 0, "{} is in two hands", item.key);
                let version = versions[item.key].load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                let fails = mix(n_runs).is_multiple_of(4);
                if fails {
                    queue.add(Add::new(item.key).cause(Cause::Failure));
                } else {
                    seen.lock().insert(item.key, version);
                    queue.forget(&item.key);
                }
                hands[item.key].fetch_sub(1, Ordering::SeqCst);
                queue.done(&item.key);
            }
        });
    }
    let mut adders = JoinSet::new();
    for adder in 0..ADDERS {
        adders.spawn(add(queue.clone(), adder, versions.clone()));
    }
    adders.join_all().await;
    let quiet = async {
        while queue.stats().keys > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), quiet).await.expect("every key is handed out and back");
    queue.shut_down();
    workers.join_all().await;
    for (key, version) in versions.iter().enumerate() {
        let last = version.load(Ordering::SeqCst);
        assert_eq!(seen.lock().get(&key).copied().unwrap_or(0), last, "the last state of {key}");
    }
}
