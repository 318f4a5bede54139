//! Measures how keys pass through the work queue: `cargo bench -p parts --bench queue`.
//!
//! A key costs an insertion into the set of dirty keys, a wait for a worker, and the bookkeeping of `done`. The
//! benchmarks measure the throughput of one thread, the latency of a single key, and the contention between threads
//! separately.

use divan::{Bencher, counter::ItemsCount};
use kctl_runtime::{
    key::ObjectKey,
    queue::{Add, QueueConfig, WorkQueue},
};
use tokio::{runtime, task::JoinSet};

/// Number of keys in an iteration.
const KEYS: usize = 10_000;

fn main() {
    divan::main();
}

/// Returns [`KEYS`] different keys.
///
/// They are created before the measured part, because creating a key allocates.
fn keys() -> Vec<ObjectKey> {
    (0..KEYS).map(|n| ObjectKey::new(Some("default"), &format!("web-{n}"))).collect()
}

/// One thread adds 10,000 keys with three priorities, then takes each key and marks it as done.
///
/// All keys are queued before the first one is taken, as after an initial list.
#[divan::bench]
fn one_thread(bencher: Bencher<'_, '_>) {
    let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let keys = keys();
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        runtime.block_on(async {
            let queue = WorkQueue::<ObjectKey>::new(QueueConfig::default());
            for (n, key) in keys.iter().enumerate() {
                queue.add(Add::new(key.clone()).priority([0, -100, 5][n % 3]));
            }
            for _ in 0..KEYS {
                let item = queue.get().await.unwrap();
                queue.done(&item.key);
            }
        });
    });
}

/// A key passes through an empty queue while a worker waits: the latency of an event.
///
/// The worker runs in the same task, so no thread has to be woken up.
#[divan::bench]
fn one_key_at_a_time(bencher: Bencher<'_, '_>) {
    let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let queue = WorkQueue::new(QueueConfig::default());
    let key = ObjectKey::new(Some("default"), "web");
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        runtime.block_on(async {
            queue.add(key.clone());
            let item = queue.get().await.unwrap();
            queue.done(&item.key);
        });
    });
}

/// `n` producers and as many workers share a queue, on two threads: contention for its lock.
///
/// A worker only marks its key as done. This is the worst case, because real workers hold the lock for a smaller part
/// of their time.
#[divan::bench(args = [1, 2, 8])]
fn producers_and_workers(bencher: Bencher<'_, '_>, n: usize) {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let keys = keys();
    bencher.counter(ItemsCount::new(KEYS)).bench_local(|| {
        runtime.block_on(async {
            let queue = WorkQueue::new(QueueConfig::default());
            let mut workers = JoinSet::new();
            for _ in 0..n {
                let queue = queue.clone();
                workers.spawn(async move {
                    while let Some(item) = queue.get().await {
                        queue.done(&item.key);
                    }
                });
            }
            let mut producers = JoinSet::new();
            for part in keys.chunks(KEYS.div_ceil(n)) {
                let (queue, part) = (queue.clone(), part.to_vec());
                producers.spawn(async move {
                    for key in part {
                        queue.add(key);
                    }
                });
            }
            while producers.join_next().await.is_some() {}
            queue.shut_down_with_drain().await;
            while workers.join_next().await.is_some() {}
        });
    });
}
