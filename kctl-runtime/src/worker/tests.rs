//! Tests of the worker pool on paused time and without an API server. Reconciles are closures of the test.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    jiff::Timestamp,
};
use kube::{Client, Config, client::Body};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Duration, Instant, sleep},
};

use super::*;
use crate::{
    object::Kind,
    queue::{Add, Cause, QueueConfig},
    reconcile::{Applied, Controller, NoopWrites, Result, ResultExt, TimedRuns, UsedCaches},
    shard::{Gate, ReconcileGuard, ShardBy, Slots, Tenures},
    source::{BelongsTo, Filter, Source, WatchConfig},
    spec::{ControllerSpec, SpecBuilder},
    store::{AllSlots, Delta, SharedStore},
    writer::{Recorder, WritePermit, Writer},
};

const SECOND: Duration = Duration::from_secs(1);

type ReconcileFn = Arc<dyn Fn(String, u32) -> Pin<Box<dyn Future<Output = Result<Action>> + Send>> + Send + Sync>;

/// Calls a closure of the test with the name of the object and the number of the attempt.
struct Test {
    act: ReconcileFn,
}

impl Controller for Test {
    type Primary = ConfigMap;
    type Verbs = ();

    fn spec() -> ControllerSpec {
        SpecBuilder::<Test>::new("Test", file!(), line!()).build()
    }
}

impl Reconcile for Test {
    async fn reconcile(&self, object: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        (self.act)(object.metadata.name.clone().unwrap_or_default(), cx.attempt()).await
    }
}

fn act<F: Future<Output = Result<Action>> + Send + 'static>(
    f: impl Fn(String, u32) -> F + Send + Sync + 'static,
) -> ReconcileFn {
    Arc::new(move |name, attempt| Box::pin(f(name, attempt)))
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("default"), name)
}

/// A running pool, with the objects `a` to `h` in its cache.
struct World {
    queue: WorkQueue<ObjectKey>,
    reports: Arc<Mutex<Vec<Report>>>,
    pool: JoinHandle<()>,
}

fn source(kind: Kind) -> Arc<Source> {
    // No test here sends a request.
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    Arc::new(Source::new(client, WatchConfig::new(kind), Arc::new(SharedStore::default())))
}

fn env(spec: ControllerSpec) -> Arc<Env> {
    let primary = source(spec.primary.kind.clone());
    let relations = spec.relations.iter();
    let sources: Vec<_> = relations.map(|relation| (relation.clone(), source(relation.kind.clone()))).collect();
    let (client, clock) = (primary.client().clone(), Arc::new(|| Timestamp::UNIX_EPOCH));
    let (recorder, _sending) = Recorder::new(client.clone(), "test", "Test", clock, WritePermit::always());
    Arc::new(Env {
        spec,
        primary,
        used: UsedCaches::new(sources.len()),
        sources,
        writer: Writer::new("test"),
        raw: Mutex::default(),
        recorder,
        warn_after_failures: Arc::default(),
        traces: Arc::default(),
        applied: Applied::default(),
        default_client: client,
        clusters: BTreeMap::new(),
        noop_writes: NoopWrites::default(),
        clock: Arc::new(|| Timestamp::UNIX_EPOCH),
        stopping: watch::channel(false).1,
        gate: Gate::default(),
        timed_runs: TimedRuns::default(),
    })
}

#[tokio::test]
#[should_panic(expected = "configmap has no cache of Secret")]
async fn undeclared_kind_is_not_the_primary() {
    env(Test::spec()).source::<Secret>();
}

impl World {
    async fn new(change: impl FnOnce(&mut ControllerSpec), act: ReconcileFn) -> Self {
        let reports: Arc<Mutex<Vec<Report>>> = Arc::default();
        let seen = reports.clone();
        Self::observed(change, act, reports, Arc::new(move |report| seen.lock().push(report.clone()))).await
    }

    async fn observed(
        change: impl FnOnce(&mut ControllerSpec),
        act: ReconcileFn,
        reports: Arc<Mutex<Vec<Report>>>,
        observer: Observer,
    ) -> Self {
        let mut spec = Test::spec();
        change(&mut spec);
        Self::start(env(spec), act, reports, observer, Arc::new(|_, _, _| {})).await
    }

    async fn start(
        env: Arc<Env>,
        act: ReconcileFn,
        reports: Arc<Mutex<Vec<Report>>>,
        observer: Observer,
        begun: BeginObserver,
    ) -> Self {
        let store = env.primary.store().clone();
        tokio::spawn(store.clone().write());
        let objects = "abcdefgh".chars().map(|name| {
            let json = format!(
                r#"{{"metadata":{{"namespace":"default","name":"{name}","uid":"{name}","resourceVersion":"1"}}}}"#
            );
            Arc::new(Stored::accept(&Kind::of::<ConfigMap>(), &json).unwrap())
        });
        store.push_and_wait(Delta::Replace(None, objects.collect(), "1".into())).await;
        for (_, source) in &env.sources {
            tokio::spawn(source.store().clone().write());
            source.store().push_and_wait(Delta::Replace(None, Vec::new(), "1".into())).await;
        }
        let queue = WorkQueue::new(QueueConfig::default());
        let pool = Pool { controller: Arc::new(Test { act }), env, queue: queue.clone(), observer, begun };
        Self { queue, reports, pool: tokio::spawn(Arc::new(pool).run()) }
    }

    fn add(&self, names: &str) {
        for name in names.chars() {
            self.queue.add(key(&name.to_string()));
        }
    }

    /// Returns the reports, each as `name decision`.
    fn reports(&self) -> Vec<String> {
        self.reports.lock().iter().map(|report| format!("{} {:?}", report.key.name, report.decision)).collect()
    }

    async fn finish(self) -> Vec<String> {
        self.queue.shut_down();
        let done = tokio::time::timeout(Duration::from_secs(3600), &mut { self.pool }).await;
        done.expect("the pool ends").unwrap();
        self.reports.lock().iter().map(|report| format!("{} {:?}", report.key.name, report.decision)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn panic_fails_its_key_and_keeps_the_worker() {
    let world = World::new(
        |_| {},
        act(|name, attempt| async move {
            assert!(name != "a" || attempt > 0, "planted");
            Ok(Action::await_change())
        }),
    )
    .await;
    world.add("ab");
    sleep(SECOND).await;
    let first = world.reports.lock()[0].outcome.clone();
    assert!(matches!(first, Outcome::Panicked(text) if text.contains("planted")));
    assert_eq!(world.finish().await, ["a RateLimited", "b Forget", "a Forget"]);
}

#[tokio::test(start_paused = true)]
async fn long_error_or_panic_is_cut() {
    let world = World::new(
        |_| {},
        act(|name, _attempt| async move {
            let text = "é".repeat(1 << 20);
            assert!(name != "a", "{text}");
            Err(text.into())
        }),
    )
    .await;
    world.add("ab");
    sleep(SECOND).await;
    let reports = world.reports.lock().clone();
    let lens: Vec<_> = reports
        .iter()
        .take(2)
        .map(|report| match &report.outcome {
            Outcome::Panicked(text) | Outcome::Failed { text, .. } => (text.ends_with("é…"), text.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lens, [(true, ERROR_LEN_MAX + '…'.len_utf8()); 2]);
}

#[tokio::test(start_paused = true)]
async fn begin_observer_that_panics_costs_no_worker() {
    let reports: Arc<Mutex<Vec<Report>>> = Arc::default();
    let seen = reports.clone();
    let observer: Observer = Arc::new(move |report| seen.lock().push(report.clone()));
    let begun: BeginObserver = Arc::new(|_, key, _| assert!(&*key.name != "a", "planted"));
    let act = act(|_, _| async { Ok(Action::await_change()) });
    let world = World::start(env(Test::spec()), act, reports, observer, begun).await;
    world.add("ab");
    sleep(SECOND).await;
    assert_eq!(world.queue.stats().keys, 0);
    assert_eq!(world.finish().await, ["a Forget", "b Forget"]);
}

/// Panics when a reconcile is cut off.
struct PanicOnDrop;

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        panic!("planted");
    }
}

#[tokio::test(start_paused = true)]
async fn panic_outside_of_a_reconcile_ends_the_pool() {
    let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
    let env = env(Test::spec());
    env.gate.bind(&tenures);
    env.gate.open(&tenures.begin(0, &WritePermit::always()));
    let cut_off = act(|_, _| async {
        let _bomb = PanicOnDrop;
        std::future::pending().await
    });
    let world = World::start(env, cut_off, Arc::default(), Arc::new(|_| {}), Arc::new(|_, _, _| {})).await;
    world.add("a");
    sleep(SECOND).await;
    tenures.end(0);
    let ended = tokio::time::timeout(SECOND, world.pool).await;
    assert!(ended.unwrap().unwrap_err().is_panic(), "the process ends, and not only the worker");
}

#[tokio::test(start_paused = true)]
async fn observer_that_panics_costs_no_worker() {
    let reports: Arc<Mutex<Vec<Report>>> = Arc::default();
    let seen = reports.clone();
    let observer: Observer = Arc::new(move |report| {
        assert!(&*report.key.name != "a", "planted");
        seen.lock().push(report.clone());
    });
    let world = World::observed(|_| {}, act(|_, _| async { Ok(Action::await_change()) }), reports, observer).await;
    world.add("ab");
    sleep(SECOND).await;
    assert_eq!(world.queue.stats().keys, 0);
    assert_eq!(world.finish().await, ["b Forget"]);
}

#[tokio::test(start_paused = true)]
async fn failure_during_a_stop_is_reported_as_such() {
    let ((stop, stopping), reports) = (watch::channel(false), Arc::<Mutex<Vec<Report>>>::default());
    let mut env = env(Test::spec());
    Arc::get_mut(&mut env).unwrap().stopping = stopping;
    let fails = act(|_, _| async {
        sleep(SECOND).await;
        Err("cut off".into())
    });
    let seen = reports.clone();
    let observer: Observer = Arc::new(move |report| seen.lock().push(report.clone()));
    let world = World::start(env, fails, reports, observer, Arc::new(|_, _, _| {})).await;
    world.add("a");
    sleep(SECOND / 2).await;
    stop.send_replace(true);
    sleep(SECOND).await;
    assert!(world.reports.lock()[0].stopping);
}

#[tokio::test(start_paused = true)]
async fn reconcile_beyond_its_timeout_is_retried() {
    let world = World::new(
        |spec| spec.timeout = Some(SECOND),
        act(|_, attempt| async move {
            if attempt == 0 {
                sleep(1000 * SECOND).await;
            }
            Ok(Action::await_change())
        }),
    )
    .await;
    world.add("a");
    sleep(SECOND.saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(world.queue.processing(), 1);
    sleep(SECOND).await;
    let first = world.reports.lock()[0].clone();
    assert_eq!((first.outcome, first.timeout, first.stopping), (Outcome::TimedOut, Some(SECOND), false));
    assert_eq!(world.finish().await, ["a RateLimited", "a Forget"]);
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_hangs_holds_only_its_worker() {
    let world = World::new(
        |spec| spec.concurrency = 2,
        act(|name, _| async move {
            if name == "a" {
                std::future::pending::<()>().await;
            }
            Ok(Action::await_change())
        }),
    )
    .await;
    world.add("abcdefgh");
    sleep(60 * SECOND).await;
    assert_eq!(world.reports().len(), 7);
    let stats = world.queue.stats();
    assert_eq!((stats.depth, stats.processing, stats.longest_running), (0, 1, 60 * SECOND));
    // A change of the key that hangs does not give it to another worker.
    world.add("a");
    sleep(SECOND).await;
    assert_eq!((world.queue.len(), world.queue.processing()), (0, 1));
    world.pool.abort();
}

#[tokio::test(start_paused = true)]
async fn concurrency_bounds_running_reconciles() {
    for concurrency in [1, 3, 8] {
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let seen = most.clone();
        let world = World::new(
            |spec| spec.concurrency = concurrency,
            act(move |_, _| {
                let (running, most) = (running.clone(), seen.clone());
                async move {
                    most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    sleep(SECOND).await;
                    running.fetch_sub(1, Ordering::Relaxed);
                    Ok(Action::await_change())
                }
            }),
        )
        .await;
        world.add("abcdefgh");
        assert_eq!(world.finish().await.len(), 8);
        assert_eq!(most.load(Ordering::Relaxed), concurrency);
    }
}

#[tokio::test(start_paused = true)]
async fn one_worker_at_a_time_reconciles_a_key() {
    let running = Arc::new(AtomicUsize::new(0));
    let world = World::new(
        |spec| spec.concurrency = 4,
        act(move |_, _| {
            let running = running.clone();
            async move {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "two at once");
                sleep(SECOND).await;
                running.fetch_sub(1, Ordering::Relaxed);
                Ok(Action::await_change())
            }
        }),
    )
    .await;
    for _ in 0..10 {
        world.add("aaa");
        sleep(SECOND / 4).await;
    }
    assert_eq!(world.finish().await, ["a Forget"; 4]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_running_reconciles() {
    let world = World::new(
        |_| {},
        act(|name, _| async move {
            sleep(SECOND).await;
            Ok(if name == "a" { Action::requeue(SECOND) } else { Action::await_change() })
        }),
    )
    .await;
    let start = Instant::now();
    world.add("ab");
    world.queue.add(Add::new(key("c")).cause(Cause::Requeue(SECOND / 2)));
    sleep(SECOND / 4).await;
    assert_eq!(world.finish().await, ["a RequeueAfter(1s)", "b Forget"]);
    assert_eq!(start.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn exhausted_key_is_reported_and_waits_for_change() {
    let attempts: Arc<Mutex<Vec<u32>>> = Arc::default();
    let seen = attempts.clone();
    let world = World::new(
        |spec| spec.retries = Some(2),
        act(move |_, attempt| {
            seen.lock().push(attempt);
            async { Err("no".into()) }
        }),
    )
    .await;
    for _ in 0..2 {
        world.add("a");
        sleep(3600 * SECOND).await;
        // The entry of the key only records that it was given up.
        assert_eq!((world.queue.failing().len(), world.queue.n_failing(), world.queue.stats().keys), (0, 1, 1));
    }
    assert_eq!(*attempts.lock(), [0, 1, 2, 0, 1, 2]);
    let round = ["a RateLimited", "a RateLimited", "a Drop"];
    assert_eq!(world.finish().await, [round, round].concat());
}

#[tokio::test(start_paused = true)]
async fn deleted_key_is_forgotten_despite_dropping_predicate() {
    let (env, reports) = (env(Test::spec()), Arc::<Mutex<Vec<Report>>>::default());
    let (store, seen) = (env.primary.store().clone(), reports.clone());
    let observer: Observer = Arc::new(move |report| seen.lock().push(report.clone()));
    let fails = act(|_, _| async { Err::<Action, _>("no").terminal() });
    let world = World::start(env, fails, reports, observer, Arc::new(|_, _, _| {})).await;
    let mut primary = Test::spec().primary;
    primary.when = Some(Arc::new(|_| false));
    let handler = handler::for_relation(0, &primary, &primary, store.clone(), world.queue.clone());
    let _subscription = store.subscribe(handler).await;
    world.add("a");
    sleep(SECOND).await;
    assert_eq!((world.reports(), world.queue.n_failing()), (vec!["a Drop".to_owned()], 1));
    for name in ["a", "b"] {
        let uid = store.get(&key(name)).unwrap().meta().uid.clone();
        store.push_and_wait(Delta::Gone(key(name), uid)).await;
    }
    sleep(SECOND).await;
    assert_eq!((world.queue.n_failing(), world.queue.stats().keys), (0, 0));
    assert_eq!(world.finish().await, ["a Drop", "a Forget"], "`b` had no entry to free");
}

#[tokio::test(start_paused = true)]
async fn failures_with_a_wait_use_up_retries() {
    let start = Instant::now();
    let world =
        World::new(|spec| spec.retries = Some(2), act(|_, _| async { Err::<Action, _>("no").retry_after(SECOND) }))
            .await;
    world.add("a");
    sleep(5 * SECOND / 2).await;
    assert_eq!(world.queue.failing(), []);
    assert_eq!(world.finish().await, ["a RetryAfter(1s)", "a RetryAfter(1s)", "a Drop"]);
    assert_eq!(start.elapsed(), 5 * SECOND / 2);
}

#[tokio::test(start_paused = true)]
async fn own_writes_do_not_end_the_backoff() {
    let queue: Arc<Mutex<Option<WorkQueue<ObjectKey>>>> = Arc::default();
    let events = queue.clone();
    let world = World::new(
        |_| {},
        act(move |_, _| {
            if let Some(queue) = &*events.lock() {
                queue.add(Add::new(key("a")).cause(Cause::Unchanged));
            }
            async { Err("no".into()) }
        }),
    )
    .await;
    *queue.lock() = Some(world.queue.clone());
    world.add("a");
    sleep(SECOND).await;
    // The attempts are at 0, 5, 15, 35, 75, 155, 315 and 635 ms.
    assert_eq!(world.reports().len(), 8);
    *queue.lock() = None;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn success_forgets_the_failures() {
    let world = World::new(
        |_| {},
        act(|_, attempt| async move { if attempt < 3 { Err("no".into()) } else { Ok(Action::requeue(60 * SECOND)) } }),
    )
    .await;
    world.add("a");
    sleep(SECOND).await;
    assert_eq!((world.queue.num_requeues(&key("a")), world.queue.n_delayed()), (0, 1));
    let expected = ["a RateLimited", "a RateLimited", "a RateLimited", "a RequeueAfter(60s)"];
    assert_eq!(world.finish().await, expected);
}

#[tokio::test(start_paused = true)]
async fn key_of_a_deleted_object_is_forgotten() {
    let world = World::new(|_| {}, act(|_, _| async { panic!("there is nothing to reconcile") })).await;
    world.queue.add(key("gone"));
    world.queue.add(Add::new(key("gone")).cause(Cause::Failure));
    sleep(SECOND).await;
    assert_eq!(world.queue.stats().keys, 0);
    assert_eq!(world.finish().await, ["gone Forget"]);
}

#[tokio::test(start_paused = true)]
async fn uncertain_write_is_forgotten_with_a_lost_slot() {
    for (slot, n_left) in [("stays", 1), ("drains", 1), ("ends", 0), ("returns", 1)] {
        let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
        let env = env(Test::spec());
        env.gate.bind(&tenures);
        let tenure = tenures.begin(0, &WritePermit::always());
        env.gate.open(&tenure);
        let (run_env, uncertain) = (env.clone(), env.writer.uncertain_writes().clone());
        let act = act(move |name, _| {
            run_env.writer.uncertain_writes().add_lost(&key(&name), &run_env.primary);
            match slot {
                "drains" => tenures.drain(&tenure),
                "ends" | "returns" => tenures.end(0),
                _ => {}
            }
            if slot == "returns" {
                run_env.gate.open(&tenures.begin(0, &WritePermit::always()));
            }
            async { Ok(Action::await_change()) }
        });
        let world = World::start(env, act, Arc::default(), Arc::new(|_| {}), Arc::new(|_, _, _| {})).await;
        world.add("a");
        sleep(SECOND).await;
        assert_eq!(uncertain.keys().len(), n_left, "{slot}");
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn slots_gained_during_lists_drop_no_key() {
    let server = tower::service_fn(|_request: http::Request<Body>| {
        let item = r#"{"metadata":{"namespace":"default","name":"a","uid":"a","resourceVersion":"1"}}"#;
        let list = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{item}]}}"#);
        std::future::ready(Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes()))))
    });
    let primary = Source::new(Client::new(server, "default"), WatchConfig::of::<ConfigMap>(), Arc::default());
    let rules = vec![BelongsTo::Itself { namespaced: true }];
    // It is asked before and after each list, so a slot is gained during each of three.
    primary.select(Filter::new(Arc::new(AllSlots::gaining(6)), rules, None));
    let mut spec = Test::spec();
    spec.retries = Some(0);
    let mut env = env(spec);
    Arc::get_mut(&mut env).expect("nothing else has it").primary = Arc::new(primary);
    env.writer.uncertain_writes().add_lost(&key("a"), &env.primary);
    let (reports, act) = (Arc::<Mutex<Vec<Report>>>::default(), act(|_, _| async { Ok(Action::requeue(60 * SECOND)) }));
    let seen = reports.clone();
    let observer: Observer = Arc::new(move |report| seen.lock().push(report.clone()));
    let world = World::start(env, act, reports, observer, Arc::new(|_, _, _| {})).await;
    world.add("a");
    sleep(10 * SECOND).await;
    assert_eq!(world.finish().await, ["a Outdated { in_a_row: 1 }", "a RequeueAfter(60s)"]);
}

#[tokio::test]
async fn object_lost_after_the_patch_has_its_finalizer() {
    let object = |uid: &str, version: u64, finalizers: &str| {
        let identity = format!(r#""namespace":"default","name":"a","uid":"{uid}","resourceVersion":"{version}""#);
        format!(r#"{{"metadata":{{{identity},"finalizers":[{finalizers}]}}}}"#)
    };
    for successor in [None, Some(object("2", 7, ""))] {
        let response = object("1", 6, r#""test/cleanup""#);
        let server = tower::service_fn(move |_request: http::Request<Body>| {
            let body = Body::from(response.clone().into_bytes());
            std::future::ready(Ok::<_, Infallible>(http::Response::new(body)))
        });
        let primary = Source::new(Client::new(server, "default"), WatchConfig::of::<ConfigMap>(), Arc::default());
        tokio::spawn(primary.store().clone().write());
        // The watch is past the patch when its response arrives.
        let listed = successor.iter().map(|json| primary.accept(json).unwrap()).collect();
        primary.store().push_and_wait(Delta::Replace(None, listed, "7".into())).await;
        let stored = primary.accept(&object("1", 5, "")).unwrap();
        let mut env = env(Test::spec());
        Arc::get_mut(&mut env).expect("nothing else has it").primary = Arc::new(primary);
        let added = finalizer::add(&ReconcileEnv::new(&env, 0), &stored, "test/cleanup").await.unwrap();
        assert!(added.meta().uid == stored.meta().uid && added.meta().has_finalizer("test/cleanup"), "{successor:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_worker_hands_back_its_key() {
    let world = World::new(|_| {}, act(|_, _| std::future::pending())).await;
    world.add("a");
    sleep(SECOND).await;
    assert_eq!(world.queue.processing(), 1);
    world.pool.abort();
    sleep(SECOND).await;
    assert_eq!(world.queue.processing(), 0);
}

#[tokio::test(start_paused = true)]
async fn lost_slot_drops_next_run_of_key() {
    for (slot, n_left) in [("stays", 1), ("drains", 0), ("ends", 0)] {
        let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
        let env = env(Test::spec());
        env.gate.bind(&tenures);
        let tenure = tenures.begin(0, &WritePermit::always());
        env.gate.open(&tenure);
        let gate = env.gate.clone();
        let act = act(move |_, _| {
            match slot {
                "drains" => tenures.drain(&tenure),
                "ends" => tenures.end(0),
                _ => {}
            }
            async { Ok(Action::requeue(60 * SECOND)) }
        });
        let world = World::start(env, act, Arc::default(), Arc::new(|_| {}), Arc::new(|_, _, _| {})).await;
        world.queue.filter(move |key| gate.admits(key));
        world.add("a");
        sleep(SECOND).await;
        assert_eq!(world.queue.stats().keys, n_left, "{slot}");
        world.finish().await;
    }
}

/// The reconcile of a key without an object isn't counted, so it must not begin when the object appears in between.
#[tokio::test(start_paused = true)]
async fn object_that_appears_in_ring_is_reconciled_later() {
    let never = act(|_, _| async { panic!("this run is not counted") });
    let env = env(Test::spec());
    let (ignore, begun): (Observer, BeginObserver) = (Arc::new(|_| {}), Arc::new(|_, _, _| {}));
    let world = World::start(env.clone(), never.clone(), Arc::default(), ignore.clone(), begun.clone()).await;
    let queue = WorkQueue::new(QueueConfig::default());
    let pool = Pool { controller: Arc::new(Test { act: never }), env, queue: queue.clone(), observer: ignore, begun };
    for (name, n_queued) in [("a", 1), ("gone", 1)] {
        let outcome = pool.run_once(&key(name), 0, &ReconcileGuard::Gone).await;
        assert!(matches!(outcome, Outcome::Vanished), "{outcome:?}");
        assert_eq!(queue.len(), n_queued, "{name}");
    }
    world.finish().await;
}

/// In real time: under simulated time, code takes none.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the reconcile has to take real time")]
async fn busy_reconciles_leave_time_for_timers() {
    let n_runs = Arc::new(AtomicUsize::new(0));
    let counted = n_runs.clone();
    let busy = act(move |_, _| {
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_micros(200) {
            std::hint::spin_loop();
        }
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(Action::requeue(Duration::ZERO)) }
    });
    let world = World::new(|_| {}, busy).await;
    world.add("a");
    sleep(Duration::from_millis(5)).await;
    // About 25. Tokio's budget would let the worker run 128 at once.
    let n_runs = n_runs.load(Ordering::Relaxed);
    assert!((1..100).contains(&n_runs), "{n_runs} reconciles before the timer");
    world.pool.abort();
}
