//! Compares the work queue with a simple model after each step of random sequences of operations.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use kctl_runtime::queue::{Add, Backoff, Cause, QueueConfig, WorkQueue};
use proptest::prelude::*;
use tokio::time::{Duration, Instant, advance};

const KEYS: u8 = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    Add(u8, i32),
    Changed(u8, i32),
    Unchanged(u8, i32),
    After(u8, u64),
    /// A worker takes a key.
    Get,
    /// A worker finishes the key, if it is processing it.
    Done(u8),
    /// The reconcile of the key fails and the worker finishes it, if it is processing it.
    Fail(u8),
    Forget(u8),
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS;
    let priority = prop_oneof![Just(-100), Just(0), Just(5)];
    prop_oneof![
        3 => (key.clone(), priority.clone()).prop_map(|(key, priority)| Step::Add(key, priority)),
        1 => (key.clone(), priority.clone()).prop_map(|(key, priority)| Step::Changed(key, priority)),
        2 => (key.clone(), priority).prop_map(|(key, priority)| Step::Unchanged(key, priority)),
        2 => (key.clone(), 0_u64..40).prop_map(|(key, ms)| Step::After(key, ms)),
        4 => Just(Step::Get),
        3 => key.clone().prop_map(Step::Done),
        3 => key.clone().prop_map(Step::Fail),
        1 => key.prop_map(Step::Forget),
        2 => (0_u64..30).prop_map(Step::Advance),
    ]
}

/// Models which keys are ready, delayed or to be processed again. It has no order, priorities or sizes.
#[derive(Default)]
struct Model {
    ready: BTreeSet<u8>,
    /// When the key is due, and `true` if it waits because it failed.
    delayed: BTreeMap<u8, (Instant, bool)>,
    processing: BTreeSet<u8>,
    /// `true` if the key is processed again even if the current run fails.
    dirty: BTreeMap<u8, bool>,
    failures: BTreeMap<u8, u32>,
    /// Keys that changed while they were processed. A failure of that run belongs to the earlier state.
    changed: BTreeSet<u8>,
}

impl Model {
    fn add(&mut self, key: u8, at_once: bool) {
        if !at_once && self.delayed.get(&key).is_some_and(|(_, failed)| *failed) {
            return;
        }
        self.delayed.remove(&key);
        if self.processing.contains(&key) {
            *self.dirty.entry(key).or_default() |= at_once;
        } else {
            self.ready.insert(key);
        }
    }

    fn delay(&mut self, key: u8, wait: Duration, failed: bool) {
        let again = self.dirty.get(&key).copied();
        if wait.is_zero() {
            return self.add(key, true);
        }
        if self.ready.contains(&key) || again == Some(true) || (again == Some(false) && !failed) {
            return;
        }
        self.dirty.remove(&key);
        let due = Instant::now() + wait;
        let known = self.delayed.entry(key).or_insert((due, failed));
        *known = (known.0.min(due), known.1 || failed);
    }

    fn mature(&mut self) {
        let now = Instant::now();
        let due: Vec<_> = self.delayed.iter().filter(|(_, (due, _))| *due <= now).map(|(key, _)| *key).collect();
        for key in due {
            self.delayed.remove(&key);
            self.add(key, true);
        }
    }

    fn done(&mut self, key: u8) {
        self.processing.remove(&key);
        if self.changed.remove(&key) {
            self.failures.remove(&key);
        }
        if self.dirty.remove(&key).is_some() {
            self.ready.insert(key);
        }
    }
}

struct Run {
    queue: WorkQueue<u8>,
    model: Model,
    backoff: Backoff,
}

impl Run {
    fn new() -> Self {
        let backoff = Backoff { base: Duration::from_millis(5), max: Duration::from_millis(50) };
        Self { queue: WorkQueue::new(QueueConfig::default().backoff(backoff)), model: Model::default(), backoff }
    }

    async fn perform(&mut self, step: Step) {
        let Self { queue, model, .. } = self;
        match step {
            Step::Add(key, priority) => {
                queue.add(Add::new(key).priority(priority));
                model.add(key, true);
            }
            Step::Changed(key, priority) => {
                queue.add(Add::new(key).priority(priority).cause(Cause::Changed));
                model.failures.remove(&key);
                if model.processing.contains(&key) {
                    model.changed.insert(key);
                }
                model.add(key, true);
            }
            Step::Unchanged(key, priority) => {
                queue.add(Add::new(key).priority(priority).cause(Cause::Unchanged));
                model.add(key, false);
            }
            Step::After(key, ms) => {
                queue.add(Add::new(key).cause(Cause::Requeue(Duration::from_millis(ms))));
                model.delay(key, Duration::from_millis(ms), false);
            }
            Step::Get => self.get(),
            Step::Done(key) => {
                queue.done(&key);
                if model.processing.contains(&key) {
                    model.done(key);
                }
            }
            Step::Fail(key) if model.processing.contains(&key) => self.fail(key),
            Step::Fail(_) => {}
            Step::Forget(key) => {
                queue.forget(&key);
                model.failures.remove(&key);
            }
            Step::Advance(ms) => advance(Duration::from_millis(ms)).await,
        }
        self.model.mature();
    }

    fn get(&mut self) {
        match self.queue.get().now_or_never() {
            Some(item) => {
                let key = item.expect("the queue is open").key;
                assert!(self.model.ready.remove(&key), "{key} was not ready");
                assert!(self.model.processing.insert(key), "{key} is in two workers' hands");
            }
            None => assert!(self.model.ready.is_empty(), "{:?} are ready", self.model.ready),
        }
    }

    fn fail(&mut self, key: u8) {
        let failures = self.model.failures.entry(key).or_default();
        let wait = self.backoff.wait(*failures);
        *failures += u32::from(!self.model.changed.contains(&key));
        assert_eq!(self.queue.add(Add::new(key).cause(Cause::Failure)), wait);
        self.model.delay(key, wait, true);
        self.queue.done(&key);
        self.model.done(key);
    }

    fn compare(&self) {
        let Model { ready, delayed, processing, failures, .. } = &self.model;
        let stats = self.queue.stats();
        assert_eq!((stats.depth, stats.delayed, stats.processing), (ready.len(), delayed.len(), processing.len()));
        assert_eq!(stats.depth_by_priority.iter().map(|(_, depth)| depth).sum::<usize>(), stats.depth);
        for key in 0..KEYS {
            assert_eq!(self.queue.num_requeues(&key), failures.get(&key).copied().unwrap_or(0), "failures of {key}");
        }
    }

    /// Lets all workers finish. Every added key must come out, and then the queue must be empty.
    async fn finish(mut self) {
        for key in std::mem::take(&mut self.model.processing) {
            self.queue.done(&key);
            self.model.done(key);
        }
        while !(self.model.ready.is_empty() && self.model.delayed.is_empty()) {
            let item = tokio::time::timeout(Duration::from_secs(60), self.queue.get()).await;
            let key = item.expect("no key is lost").expect("the queue is open").key;
            self.model.mature();
            assert!(self.model.ready.remove(&key), "{key} was not ready");
            self.queue.done(&key);
        }
        for key in 0..KEYS {
            self.queue.forget(&key);
        }
        assert_eq!(self.queue.stats().keys, 0, "a key that has no business here is still known");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_gives_each_key_to_one_worker(steps in prop::collection::vec(step(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let mut run = Run::new();
            for step in steps {
                run.perform(step).await;
                run.compare();
            }
            run.finish().await;
        });
    }
}
