//! A rolling update under load: replicas are replaced one by one while objects change continuously.

use std::collections::{BTreeMap, HashSet};

use kctl::{
    kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    },
    manager::ManagerError,
    prelude::*,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

use crate::lease_candidates::{Contest, advance_seconds, config};

/// Number of objects that change.
const N_CHANGING: u64 = 100;
/// Number of objects that never change, for tests with large caches.
const N_QUIET: u64 = 3_000;
/// Interval between two changes, for 200 changes per second.
const BETWEEN_CHANGES: Duration = Duration::from_millis(5);

/// The work of all replicas.
#[derive(Default)]
struct Seen {
    /// Keys that are being reconciled.
    busy: HashSet<String>,
    twice: Vec<String>,
    /// The last state of each key whose reconcile completed.
    states: BTreeMap<String, u64>,
    /// Time at which the last reconcile ended, and the longest time between two.
    last: Option<Instant>,
    pause: Duration,
    /// Replicas that reconciled, in order.
    workers: Vec<&'static str>,
}

#[controller(of = ConfigMap, owns = Secret(apply), concurrency = 8)]
struct RollingConfigs {
    replica: &'static str,
    seen: Arc<Mutex<Seen>>,
}

impl Reconcile for RollingConfigs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        if config.data.is_none() {
            return Ok(Action::await_change());
        }
        let name = config.name_any();
        {
            let mut seen = self.seen.lock();
            if !seen.busy.insert(name.clone()) {
                seen.twice.push(name.clone());
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        let state = config.data.as_ref().and_then(|data| data["state"].parse().ok()).unwrap_or_default();
        let written =
            cx.owned::<Secret>().apply(json!({ "metadata": { "name": &name }, "stringData": config.data })).await;
        let mut seen = self.seen.lock();
        seen.busy.remove(&name);
        written?;
        seen.states.insert(name, state);
        let now = Instant::now();
        let pause = seen.last.map_or(Duration::ZERO, |last| now.duration_since(last));
        (seen.pause, seen.last) = (seen.pause.max(pause), Some(now));
        if seen.workers.last() != Some(&self.replica) {
            seen.workers.push(self.replica);
        }
        Ok(Action::await_change())
    }
}

struct Replica {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ManagerError>>,
}

async fn start(contest: &Contest, faults: &Faults, replica: &'static str, seen: &Arc<Mutex<Seen>>) -> Replica {
    let seen = seen.clone();
    let app = App::new("configs")
        .controller_with(move |_env| std::future::ready(Ok(RollingConfigs { replica, seen: seen.clone() })));
    let manager = app.manager(faults.client(&contest.server)).await.unwrap();
    let manager = manager.elect(config(replica)).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    Replica { stop, running: tokio::spawn(manager.run(async move { drop(stopped.await) })) }
}

/// Changes one object after another until it is stopped. Returns the last number written to each.
async fn change(api: Api<ConfigMap>, mut stopped: oneshot::Receiver<()>) -> BTreeMap<String, u64> {
    let mut written = BTreeMap::new();
    for number in 1_u64.. {
        if stopped.try_recv().is_ok() {
            break;
        }
        let name = format!("config-{}", number % N_CHANGING);
        let patch = json!({ "data": { "state": number.to_string() } });
        api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        written.insert(name, number);
        tokio::time::sleep(BETWEEN_CHANGES).await;
    }
    written
}

async fn create(api: &Api<ConfigMap>, name: String, data: Option<BTreeMap<String, String>>) {
    let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &ConfigMap { metadata, data, ..ConfigMap::default() }).await.unwrap();
}

/// Returns delays as in a large cluster: each request takes a while, and lists take longer.
fn as_in_a_large_cluster() -> Faults {
    let faults = Faults::default();
    let lists =
        |request: &RequestSummary| request.method == "GET" && !request.is_watch && !request.path.contains("/leases");
    faults.add(Fault::DelayResponse(Duration::from_millis(300)), lists);
    faults.add(Fault::DelayResponse(Duration::from_millis(20)), |request| !request.is_watch);
    faults
}

/// Checks that three replicas are replaced one by one. Their connections have these delays.
async fn check(n_quiet: u64, faults: Faults) {
    let contest = Contest::new();
    let api: Api<ConfigMap> = Api::default_namespaced(contest.client.clone());
    for number in 0..N_CHANGING {
        create(&api, format!("config-{number}"), Some([("state".to_owned(), "0".to_owned())].into())).await;
    }
    for number in 0..n_quiet {
        create(&api, format!("quiet-{number}"), None).await;
    }
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let mut old = Vec::new();
    for replica in ["a-old", "b-old", "c-old"] {
        old.push(start(&contest, &faults, replica, &seen).await);
        advance_seconds(2).await;
    }
    let (quiet, stopped) = oneshot::channel();
    let changes = tokio::spawn(change(api, stopped));
    advance_seconds(1).await;
    // There was nothing to do before the load started, so that pause does not count.
    seen.lock().pause = Duration::ZERO;
    advance_seconds(1).await;
    let mut new = Vec::new();
    for (replica, old) in ["a-new", "b-new", "c-new"].into_iter().zip(old) {
        // Like a Deployment: the new replica has to be ready before an old one is stopped.
        new.push(start(&contest, &faults, replica, &seen).await);
        advance_seconds(2).await;
        old.stop.send(()).unwrap();
        old.running.await.unwrap().unwrap();
        advance_seconds(1).await;
    }
    quiet.send(()).unwrap();
    let written = changes.await.unwrap();
    advance_seconds(2).await;
    let seen = seen.lock();
    assert!(written.values().max().unwrap() > &1_400, "the load was on all the time: {:?}", written.values().max());
    assert_eq!(seen.twice, [""; 0]);
    assert_eq!(seen.states, written, "the last state of every key was worked on");
    assert!(seen.pause < Duration::from_secs(1), "no replica worked for {:?}", seen.pause);
    assert!(seen.workers.len() >= 2 && seen.workers[0] == "a-old", "{:?}", seen.workers);
    assert!(seen.workers.last().unwrap().ends_with("-new"), "{:?}", seen.workers);
    drop(new);
}

#[tokio::test(start_paused = true)]
async fn rolling_update_loses_and_overlaps_no_key() {
    check(0, Faults::default()).await;
}

#[tokio::test(start_paused = true)]
async fn large_replicas_hand_over_fast_despite_slow_requests() {
    check(N_QUIET, as_in_a_large_cluster()).await;
}
