//! Start and stop of a manager: parts that run before it leads, and work that it completes after the signal.

use std::sync::atomic::{AtomicUsize, Ordering};

use kctl::{
    kube::{
        Api,
        api::{ListParams, PostParams},
    },
    manager::{Manager, ManagerError},
    prelude::*,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use crate::{
    lease_candidates::{Contest, advance_seconds, config},
    trace::capture_log,
};

/// Takes some time, then creates a Secret and records an Event.
#[controller(of = ConfigMap, owns = Secret, concurrency = 4)]
struct SlowConfigs {
    takes: Duration,
    done: Arc<AtomicUsize>,
}

impl Reconcile for SlowConfigs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        tokio::time::sleep(self.takes).await;
        let name = config.name_any();
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        cx.owned::<Secret>().create(Secret { metadata, ..Secret::default() }).or_get().await?;
        cx.event(Normal, "Seen", "it was seen");
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(Action::await_change())
    }
}

struct Process {
    faults: Faults,
    done: Arc<AtomicUsize>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ManagerError>>,
}

impl Process {
    /// Stops the manager and returns its result.
    async fn stop(self) -> Result<(), ManagerError> {
        self.stop.send(()).unwrap();
        self.running.await.unwrap()
    }

    fn n_done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

async fn start(contest: &Contest, takes: Duration, setup: impl FnOnce(Manager) -> Manager) -> Process {
    let (faults, done) = (Faults::default(), Arc::<AtomicUsize>::default());
    let counted = done.clone();
    let app = App::new("configs")
        .controller_with(move |_env| std::future::ready(Ok(SlowConfigs { takes, done: counted.clone() })));
    let manager = setup(app.manager(faults.client(&contest.server)).await.unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async move { drop(stopped.await) }));
    Process { faults, done, stop, running }
}

fn elect_as(identity: &str) -> impl FnOnce(Manager) -> Manager {
    let config = config(identity);
    move |manager| manager.elect(config).unwrap()
}

async fn create(contest: &Contest, names: impl IntoIterator<Item = usize>) {
    for name in names {
        let metadata = ObjectMeta { name: Some(format!("config-{name}")), ..ObjectMeta::default() };
        let config = ConfigMap { metadata, ..ConfigMap::default() };
        Api::default_namespaced(contest.client.clone()).create(&PostParams::default(), &config).await.unwrap();
    }
}

fn n_requests(contest: &Contest, verb: &str, resource: &str) -> usize {
    contest.server.requests().iter().filter(|request| (request.verb, &*request.resource) == (verb, resource)).count()
}

#[tokio::test(start_paused = true)]
async fn standby_fills_its_caches_and_reconciles_nothing() {
    let contest = Contest::new();
    create(&contest, 0..3).await;
    let _leader = start(&contest, Duration::ZERO, elect_as("a")).await;
    advance_seconds(1).await;
    let n_watches = n_requests(&contest, "watch", "configmaps");
    let standby = start(&contest, Duration::ZERO, elect_as("b")).await;
    advance_seconds(60).await;
    assert!(n_requests(&contest, "watch", "configmaps") > n_watches);
    assert_eq!(standby.n_done(), 0);
}

#[tokio::test(start_paused = true)]
async fn standby_keeps_no_keys_of_passing_objects() {
    let contest = Contest::new();
    let _leader = start(&contest, Duration::ZERO, elect_as("a")).await;
    advance_seconds(1).await;
    let mut seen = None;
    let elect = |manager: Manager| {
        let manager = manager.elect(config("b")).unwrap();
        seen = Some(manager.view());
        manager
    };
    let standby = start(&contest, Duration::ZERO, elect).await;
    let view = seen.unwrap();
    advance_seconds(1).await;
    create(&contest, 0..3).await;
    advance_seconds(1).await;
    let (_, queue) = &view.controllers()[0];
    assert_eq!((view.primaries()[0].store().len(), queue.stats().adds), (3, 0), "it knows them, and queues nothing");
    assert_eq!(standby.n_done(), 0);
}

#[tokio::test(start_paused = true)]
async fn warm_standby_takes_over_within_a_second() {
    let contest = Contest::new();
    let leader = start(&contest, Duration::ZERO, elect_as("a")).await;
    advance_seconds(1).await;
    let standby = start(&contest, Duration::ZERO, elect_as("b")).await;
    advance_seconds(10).await;
    let begun = Instant::now();
    leader.stop().await.unwrap();
    create(&contest, 0..3).await;
    while standby.n_done() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(contest.lease_state().await, ("b".into(), 15, 1));
}

/// Creates a `Secret` with a generated name for a `ConfigMap` that seems to have none.
#[controller(of = ConfigMap, name = "namer", owns = Secret)]
struct Namer {
    done: Arc<AtomicUsize>,
}

impl Reconcile for Namer {
    async fn reconcile(&self, _config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        if cx.owned::<Secret>().is_empty() {
            let metadata = ObjectMeta { generate_name: Some("made-".into()), ..ObjectMeta::default() };
            cx.owned::<Secret>().create(Secret { metadata, ..Secret::default() }).await?;
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(Action::await_change())
    }
}

/// Checks a takeover by a standby whose watches deliver nothing. `fault` makes its lists of Secrets fail for some
/// seconds.
async fn check_deaf_standby(fault: Option<(Fault, u64)>) {
    let contest = Contest::new();
    let start = async |identity| {
        let (faults, done) = (Faults::default(), Arc::<AtomicUsize>::default());
        let counted = done.clone();
        let app =
            App::new("namer").controller_with(move |_env| std::future::ready(Ok(Namer { done: counted.clone() })));
        let manager = elect_as(identity)(app.manager(faults.client(&contest.server)).await.unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(manager.run(async move { drop(stopped.await) }));
        Process { faults, done, stop, running }
    };
    let leader = start("a").await;
    advance_seconds(1).await;
    let standby = start("b").await;
    advance_seconds(1).await;
    // Its watches reconnect, but deliver nothing for an hour.
    let deaf = |request: &RequestSummary| request.is_watch && !request.path.contains("/leases");
    standby.faults.add(Fault::DelayResponse(Duration::from_secs(3_600)), deaf);
    standby.faults.cut_watches();
    advance_seconds(1).await;
    create(&contest, 0..3).await;
    advance_seconds(1).await;
    assert_eq!(n_requests(&contest, "create", "secrets"), 3);
    if let Some((fault, _)) = fault {
        standby.faults.add(fault, |request| request.reads("secrets") && !request.is_watch);
    }
    let begun = Instant::now();
    leader.stop().await.unwrap();
    if let Some((_, lasts)) = fault {
        advance_seconds(lasts).await;
        assert_eq!(standby.n_done(), 0, "it waits until it knows");
        standby.faults.clear();
    }
    while standby.n_done() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let bound = Duration::from_secs(fault.map_or(1, |(_, lasts)| lasts + 7));
    assert!(begun.elapsed() < bound, "{:?}", begun.elapsed());
    assert_eq!(n_requests(&contest, "create", "secrets"), 3, "nothing is made twice");
}

#[tokio::test(start_paused = true)]
async fn new_leader_sees_predecessor_writes_despite_late_watches() {
    check_deaf_standby(None).await;
}

#[tokio::test(start_paused = true)]
async fn new_leader_waits_for_the_newest_state() {
    check_deaf_standby(Some((Fault::Reject(500), 60))).await;
    check_deaf_standby(Some((Fault::Break, 60))).await;
}

#[tokio::test(start_paused = true)]
async fn takeover_with_current_caches_lists_each_kind_once() {
    let contest = Contest::new();
    create(&contest, 0..3).await;
    let leader = start(&contest, Duration::ZERO, elect_as("a")).await;
    advance_seconds(1).await;
    let standby = start(&contest, Duration::ZERO, elect_as("b")).await;
    advance_seconds(10).await;
    let n_lists = || ["configmaps", "secrets"].map(|kind| n_requests(&contest, "list", kind));
    let [n_configs, n_secrets] = n_lists();
    leader.stop().await.unwrap();
    advance_seconds(10).await;
    assert_eq!(standby.n_done(), 3);
    // Each of the three reconciles also reads its Secret, which exists already.
    assert_eq!(n_lists(), [n_configs + 1, n_secrets + 1 + 3]);
}

#[tokio::test(start_paused = true)]
async fn manager_that_loses_its_lease_ends_at_once() {
    let contest = Contest::new();
    create(&contest, 0..1).await;
    let process = start(&contest, Duration::from_secs(3_600), elect_as("a")).await;
    advance_seconds(1).await;
    process.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    let begun = Instant::now();
    let ended = process.running.await.unwrap().unwrap_err();
    let expected = "this process ends because it lost its Lease: the lease default/podset was not renewed within 10s";
    assert!(ended.to_string().starts_with(expected), "{ended}");
    assert_eq!(begun.elapsed().as_secs(), 11);
    assert_eq!(process.done.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn leader_without_renewal_stops_writing_and_standby_continues() {
    let contest = Contest::new();
    let leader = start(&contest, Duration::ZERO, elect_as("a")).await;
    advance_seconds(1).await;
    let standby = start(&contest, Duration::ZERO, elect_as("b")).await;
    create(&contest, 0..1).await;
    advance_seconds(1).await;
    let before = (leader.n_done(), n_requests(&contest, "create", "secrets"));
    assert!(before.0 > 0);
    // Only the leader's requests for the Lease fail. Its other writes would succeed.
    leader.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    advance_seconds(6).await;
    create(&contest, 1..4).await;
    // The rest of the lease duration is enough to lead, but not for a write.
    advance_seconds(3).await;
    assert!(!leader.running.is_finished());
    assert_eq!((leader.n_done(), n_requests(&contest, "create", "secrets")), before);
    let ended = leader.running.await.unwrap();
    assert!(matches!(ended, Err(ManagerError::LeaseLost(_))), "{ended:?}");
    advance_seconds(20).await;
    assert_eq!(leader.done.load(Ordering::Relaxed), before.0);
    let secrets = Api::<Secret>::default_namespaced(contest.client.clone());
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 4);
    assert!(standby.n_done() >= 4);
}

#[tokio::test(start_paused = true)]
async fn stop_finishes_reconciles_and_releases_the_lease() {
    let contest = Contest::new();
    create(&contest, 0..4).await;
    let process = start(&contest, Duration::from_secs(20), elect_as("a")).await;
    advance_seconds(1).await;
    process
        .faults
        .add(Fault::Delay(Duration::from_millis(500)), |summary: &RequestSummary| summary.path.ends_with("/events"));
    let (done, begun) = (process.done.clone(), Instant::now());
    process.stop().await.unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 4);
    assert_eq!(n_requests(&contest, "create", "events"), 4);
    assert_eq!(contest.lease_state().await.0, "", "and the lease lasted longer than 15 s for it");
    assert_eq!(begun.elapsed().as_secs(), 21);
    let requests = contest.server.requests();
    let last = requests.iter().rfind(|request| request.verb != "get").unwrap();
    assert_eq!((last.verb, last.resource.as_str()), ("update", "leases"), "the release of the Lease comes last");
}

/// Reports and contexts may outlive their reconcile, for example in the debug page or in a user's task.
#[tokio::test(start_paused = true)]
async fn kept_reports_do_not_delay_the_stop() {
    let contest = Contest::new();
    let kept = Arc::<parking_lot::Mutex<Vec<_>>>::default();
    let keep = kept.clone();
    let setup = |manager| elect_as("a")(manager).on_end(Arc::new(move |report| keep.lock().push(report.clone())));
    let process = start(&contest, Duration::ZERO, setup).await;
    create(&contest, 0..1).await;
    advance_seconds(3).await;
    let stopped_at = Instant::now();
    process.stop().await.unwrap();
    assert!(!kept.lock().is_empty());
    assert!(stopped_at.elapsed() < Duration::from_secs(1), "{:?}", stopped_at.elapsed());
    assert_eq!(contest.lease_state().await.0, "");
    assert_eq!(n_requests(&contest, "create", "events"), 1);
}

#[tokio::test(start_paused = true)]
async fn no_reconcile_starts_after_the_stop() {
    let contest = Contest::new();
    create(&contest, 0..10).await;
    let process = start(&contest, Duration::from_secs(5), |manager| manager).await;
    advance_seconds(1).await;
    let done = process.done.clone();
    process.stop().await.unwrap();
    // Four reconciles run concurrently. After the stop, no further key is taken from the queue.
    assert_eq!(done.load(Ordering::Relaxed), 4);
}

/// Runs a manager with one reconcile that takes 40 s more. Returns its error, the seconds from stop to end, and the
/// Lease's holder.
async fn stop_within(timeout: Option<Duration>) -> (Option<String>, u64, String) {
    let contest = Contest::new();
    create(&contest, 0..1).await;
    let setup = |manager: Manager| elect_as("a")(manager).graceful_timeout(timeout);
    let process = start(&contest, Duration::from_secs(41), setup).await;
    advance_seconds(1).await;
    let begun = Instant::now();
    let ended = process.stop().await.err().map(|error| error.to_string());
    (ended, begun.elapsed().as_secs(), contest.lease_state().await.0)
}

#[tokio::test(start_paused = true)]
async fn reconciles_beyond_graceful_timeout_abort_and_keep_lease() {
    let error = |period: &str| {
        Some(format!(
            "reconciles of configmap (default/config-0) still ran {period} after the stop; `--graceful-shutdown-timeout` \
             gives them longer"
        ))
    };
    assert_eq!(stop_within(Some(Duration::ZERO)).await, (error("0ns"), 0, "a".into()));
    assert_eq!(stop_within(Some(Duration::from_secs(30))).await, (error("30s"), 30, "a".into()));
    assert_eq!(stop_within(Some(Duration::from_secs(50))).await, (None, 40, String::new()));
    for unlimited in [Some(Duration::MAX), None] {
        assert_eq!(stop_within(unlimited).await, (None, 40, String::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn late_stop_names_the_first_running_keys() {
    let contest = Contest::new();
    create(&contest, 0..10).await;
    let setup = |manager: Manager| manager.graceful_timeout(Some(Duration::from_secs(1)));
    let process = start(&contest, Duration::from_secs(41), setup).await;
    advance_seconds(1).await;
    let error = process.stop().await.unwrap_err().to_string();
    // Four reconciles run concurrently.
    assert!(error.starts_with("reconciles of configmap (default/config-"), "{error}");
    assert!(error.matches("default/config-").count() == 3 && error.contains(", 1 more) still ran 1s"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_manager_releases_the_lease_without_any_grace() {
    for round in 0..100 {
        let contest = Contest::new();
        let mut seen = None;
        let setup = |manager: Manager| {
            seen = Some(manager.view());
            elect_as("a")(manager).graceful_timeout(Some(Duration::ZERO))
        };
        let process = start(&contest, Duration::ZERO, setup).await;
        let view = seen.unwrap();
        create(&contest, 0..1).await;
        // The Event is the last write. The event of the Secret triggers one more reconcile.
        while n_requests(&contest, "create", "events") < 1 || !view.is_idle() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let ended = process.stop().await;
        assert!(ended.is_ok(), "round {round}: {ended:?}");
        assert_eq!(contest.lease_state().await.0, "", "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_reconcile_logs_warning_with_remedy_each_minute() {
    let (lines, _logged) = capture_log();
    let hanging = || -> Vec<String> {
        let text = lines.text();
        text.lines().filter(|line| line.contains("has been running for")).map(ToOwned::to_owned).collect()
    };
    let contest = Contest::new();
    let _process = start(&contest, Duration::from_secs(190), |manager| manager).await;
    advance_seconds(30).await;
    create(&contest, 0..2).await;
    advance_seconds(85).await;
    assert_eq!(hanging(), Vec::<String>::new(), "at 60 s they had run for half a minute");
    for (wait, since) in [(10, "90 s"), (60, "150 s")] {
        advance_seconds(wait).await;
        let lines = hanging();
        let last = lines.last().unwrap();
        let text = format!(
            "a reconcile has been running for {since}, and 1 more for a minute or longer; `timeout = \"…\"` in its declaration would end it"
        );
        let names = [" WARN ", &text, "controller=\"configmap\"", "key=default/config-"];
        assert!(names.iter().all(|name| last.contains(name)), "{last}");
    }
    advance_seconds(600).await;
    assert_eq!(hanging().len(), 4, "what they made ran each once more, and nothing hangs any longer");
}

#[tokio::test(start_paused = true)]
async fn stopping_standby_never_starts_its_workers() {
    let contest = Contest::new();
    create(&contest, 0..3).await;
    let leader = start(&contest, Duration::ZERO, elect_as("a")).await;
    advance_seconds(1).await;
    let standby = start(&contest, Duration::ZERO, elect_as("b")).await;
    advance_seconds(5).await;
    let (done, begun) = (standby.done.clone(), Instant::now());
    let (first, second) = tokio::join!(leader.stop(), standby.stop());
    first.and(second).unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 0);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn unsynced_caches_do_not_delay_shutdown() {
    let contest = Contest::new();
    let process = start(&contest, Duration::ZERO, |manager| manager).await;
    process.faults.add(Fault::Reject(403), |request: &RequestSummary| request.reads("secrets"));
    advance_seconds(5).await;
    let begun = Instant::now();
    process.stop().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn impossible_election_is_rejected_before_anything_runs() {
    let contest = Contest::new();
    let app = App::new("configs");
    let manager = app.manager(contest.client.clone()).await.unwrap();
    let mut config = config("a");
    config.renew_deadline = Duration::from_secs(20);
    let rejected = manager.elect(config).err().unwrap().to_string();
    assert!(rejected.contains("--leader-elect-lease-duration (15s)"), "{rejected}");
}
