//! The work of a key whose slot moves to another replica: none of it is lost, and none is done twice.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    kube::{
        Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    manager::Manager,
    prelude::*,
};
use kctl_runtime::worker::Outcome;
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    lease_candidates::{Contest, advance_seconds},
    replicas::{Replica, create_configs},
    shards::{N_SLOTS, shards},
};

/// Starts a replica of an app that shards by object. `set_up` adds observers.
async fn start(contest: &Contest, identity: &str, app: App, set_up: impl FnOnce(Manager) -> Manager) -> Replica {
    let faults = Faults::default();
    let client = faults.client(&contest.server);
    let manager = app.manager(client.clone()).await.unwrap().shard(client, shards(identity, N_SLOTS)).unwrap();
    Replica::start(set_up(manager), faults)
}

/// Waits until a replica owns all slots.
async fn wait_for_all_slots(replica: &Replica) {
    while replica.n_owned() < N_SLOTS as usize {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Reads the primary that its primary names.
#[controller(retries = 0)]
async fn reader(config: Arc<ConfigMap>, cx: Context<reader>) -> Result<Action> {
    if let Some(name) = config.data.as_ref().and_then(|data| data.get("reads")) {
        let found = cx.store::<ConfigMap>().get(&Key::namespaced("default", name));
        assert!(found.is_some(), "the list is complete");
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn read_of_a_gained_slot_repeats_until_listed() {
    let contest = Contest::new();
    create_configs(&contest.client, 20).await;
    let outcomes = Arc::<Mutex<Vec<(String, Outcome)>>>::default();
    let noted = outcomes.clone();
    let note = |manager: Manager| {
        manager.on_end(Arc::new(move |report| {
            noted.lock().push((report.key.name.to_string(), report.outcome.clone()));
        }))
    };
    let app = || App::new("podset").controller::<reader>();
    let a = start(&contest, "a", app(), note).await;
    let b = start(&contest, "b", app(), |manager| manager).await;
    advance_seconds(5).await;
    let [own, other] = [&a, &b].map(|replica| replica.cached_names("configmaps").pop_first().unwrap());
    let is_list = |request: &RequestSummary| request.reads("configmaps") && !request.is_watch;
    a.faults.add(Fault::DelayResponse(Duration::from_secs(5)), is_list);
    b.stop().await.unwrap();
    wait_for_all_slots(&a).await;
    outcomes.lock().clear();
    let reads = Patch::Merge(json!({ "data": { "reads": &other } }));
    let configs = Api::<ConfigMap>::default_namespaced(contest.client.clone());
    configs.patch(&own, &PatchParams::default(), &reads).await.unwrap();
    advance_seconds(20).await;
    let mut outcomes: Vec<_> = outcomes.lock().iter().filter(|(name, _)| *name == own).cloned().collect();
    let (_, last) = outcomes.pop().unwrap();
    assert_eq!(last, Outcome::Done(Action::await_change()));
    let text = format!("this replica has just gained the slot of default/{other}, and its cache is not complete yet");
    let too_early = Outcome::Failed { conflict: true, terminal: false, invalid: false, retry_after: None, text };
    assert!(!outcomes.is_empty() && outcomes.iter().all(|(_, outcome)| *outcome == too_early), "{outcomes:?}");
}

/// The cleanups of all replicas.
#[derive(Default)]
struct Cleanups {
    begun: Vec<(String, &'static str)>,
    ended: Vec<String>,
}

#[controller(of = ConfigMap, finalizer = "example.com/disk", concurrency = 4)]
struct DiskCleaner {
    replica: &'static str,
    cleanups: Arc<Mutex<Cleanups>>,
}

impl Reconcile for DiskCleaner {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for DiskCleaner {
    async fn finalize(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        let name = config.name_any();
        self.cleanups.lock().begun.push((name.clone(), self.replica));
        sleep(Duration::from_millis(150)).await;
        self.cleanups.lock().ended.push(name);
        Ok(())
    }
}

/// Deletes these primaries, one each 50 ms.
async fn delete_configs(contest: &Contest, numbers: std::ops::Range<usize>) {
    let configs = Api::<ConfigMap>::default_namespaced(contest.client.clone());
    for number in numbers {
        configs.delete(&format!("config-{number}"), &DeleteParams::default()).await.unwrap();
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn object_deleted_during_move_is_finalized_once() {
    let contest = Contest::new();
    create_configs(&contest.client, 60).await;
    let cleanups = Arc::<Mutex<Cleanups>>::default();
    let app = |replica: &'static str| {
        let cleanups = cleanups.clone();
        App::new("podset")
            .controller_with(move |_env| std::future::ready(Ok(DiskCleaner { replica, cleanups: cleanups.clone() })))
    };
    let a = start(&contest, "a", app("a"), |manager| manager).await;
    advance_seconds(5).await;
    let b = start(&contest, "b", app("b"), |manager| manager).await;
    delete_configs(&contest, 0..40).await;
    let (stopped, ()) = tokio::join!(b.stop(), delete_configs(&contest, 40..60));
    stopped.unwrap();
    advance_seconds(5).await;
    assert_eq!(a.n_owned(), N_SLOTS as usize);
    let left = Api::<ConfigMap>::default_namespaced(contest.client.clone()).list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 0, "each finalizer is removed");
    let cleanups = cleanups.lock();
    let by: BTreeSet<_> = cleanups.begun.iter().map(|(_, replica)| *replica).collect();
    assert_eq!(by, ["a", "b"].into());
    let names = |all: Vec<&String>| all.into_iter().cloned().collect::<BTreeSet<_>>().len();
    let begun = names(cleanups.begun.iter().map(|(name, _)| name).collect());
    assert_eq!((begun, cleanups.begun.len()), (60, 60), "{:?}", cleanups.begun);
    let ended = names(cleanups.ended.iter().collect());
    assert_eq!((ended, cleanups.ended.len()), (60, 60), "{:?}", cleanups.ended);
}

const MINUTE: Duration = Duration::from_secs(60);

/// Runs of each key, with the replica and the time.
type Runs = BTreeMap<String, Vec<(&'static str, Instant)>>;

/// Reconciles each primary every minute.
#[controller(of = ConfigMap)]
struct EachMinute {
    replica: &'static str,
    runs: Arc<Mutex<Runs>>,
}

impl Reconcile for EachMinute {
    async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        self.runs.lock().entry(config.name_any()).or_default().push((self.replica, Instant::now()));
        Ok(Action::requeue(MINUTE))
    }
}

#[tokio::test(start_paused = true)]
async fn requeue_timer_does_not_outlive_its_slot() {
    let contest = Contest::new();
    create_configs(&contest.client, 20).await;
    let runs = Arc::<Mutex<Runs>>::default();
    let app = |replica: &'static str| {
        let runs = runs.clone();
        App::new("podset")
            .controller_with(move |_env| std::future::ready(Ok(EachMinute { replica, runs: runs.clone() })))
    };
    let a = start(&contest, "a", app("a"), |manager| manager).await;
    advance_seconds(10).await;
    let joined = Instant::now();
    let b = start(&contest, "b", app("b"), |manager| manager).await;
    advance_seconds(10).await;
    let moved = b.cached_names("configmaps");
    assert!(!moved.is_empty() && moved.len() < 20, "{moved:?}");
    let left = Instant::now();
    b.stop().await.unwrap();
    // The timers of the first runs would end 50 s later.
    advance_seconds(70).await;
    assert_eq!(a.n_owned(), N_SLOTS as usize);
    let (second, exact) = (Duration::from_secs(1), MINUTE..MINUTE + Duration::from_millis(100));
    for (name, runs) in &*runs.lock() {
        let (by, at): (Vec<_>, Vec<_>) = runs.iter().copied().unzip();
        if moved.contains(name) {
            assert_eq!(by, ["a", "b", "a", "a"], "{name}");
            assert!(at[1] - joined < 3 * second && at[2] - left < second, "{name}: each new owner runs it at once");
            assert!(exact.contains(&(at[3] - at[2])), "{name}: {:?}", at[3] - at[2]);
        } else {
            assert_eq!(by, ["a", "a"], "{name}");
            assert!(exact.contains(&(at[1] - at[0])), "{name}: {:?}", at[1] - at[0]);
        }
    }
    assert_eq!(runs.lock().len(), 20);
}

/// Reconciles of namespaces: the name, the replica, and the number of cached children at the begin.
type SpaceRuns = Vec<(String, &'static str, usize)>;

/// Keeps a `Secret` in each `Namespace` whose name begins with `shop-`.
#[controller(of = Namespace, owns = Secret(apply), name = "shops")]
struct Shops {
    replica: &'static str,
    runs: Arc<Mutex<SpaceRuns>>,
}

impl Reconcile for Shops {
    async fn reconcile(&self, space: Arc<Namespace>, cx: Context<Self>) -> Result<Action> {
        let name = space.name_any();
        if name.starts_with("shop-") {
            let secrets = cx.owned::<Secret>();
            self.runs.lock().push((name.clone(), self.replica, secrets.len()));
            secrets.apply(json!({ "metadata": { "name": &name, "namespace": &name } })).await?;
        }
        Ok(Action::await_change())
    }
}

/// Returns the shops that a replica caches. Checks that exactly their children are cached with them.
fn shops_of(replica: &Replica) -> BTreeSet<String> {
    let shops: BTreeSet<_> =
        replica.cached_names("namespaces").into_iter().filter(|name| name.starts_with("shop-")).collect();
    assert_eq!(replica.cached_names("secrets"), shops);
    shops
}

#[tokio::test(start_paused = true)]
async fn children_in_namespaces_move_with_cluster_scoped_primary() {
    let contest = Contest::new();
    let spaces = Api::<Namespace>::all(contest.client.clone());
    for number in 0..16 {
        let space = kctl::from_json(json!({ "metadata": { "name": format!("shop-{number}") } })).unwrap();
        spaces.create(&PostParams::default(), &space).await.unwrap();
    }
    let runs = Arc::<Mutex<SpaceRuns>>::default();
    let app = |replica: &'static str| {
        let runs = runs.clone();
        App::new("podset").controller_with(move |_env| std::future::ready(Ok(Shops { replica, runs: runs.clone() })))
    };
    let take_runs = || std::mem::take(&mut *runs.lock());
    let a = start(&contest, "a", app("a"), |manager| manager).await;
    advance_seconds(5).await;
    assert_eq!(shops_of(&a).len(), 16);
    take_runs();
    let b = start(&contest, "b", app("b"), |manager| manager).await;
    advance_seconds(5).await;
    let (of_a, of_b) = (shops_of(&a), shops_of(&b));
    assert!(!of_a.is_empty() && !of_b.is_empty() && of_a.is_disjoint(&of_b), "{of_a:?} and {of_b:?}");
    assert_eq!(of_a.len() + of_b.len(), 16);
    let with_child = |names: &BTreeSet<String>, replica| -> SpaceRuns {
        names.iter().map(|name| (name.clone(), replica, 1)).collect()
    };
    let mut moved = take_runs();
    moved.sort_unstable();
    assert_eq!(moved, with_child(&of_b, "b"), "each moved primary runs once, and its child is in the cache");
    let name = of_b.first().unwrap();
    Api::<Secret>::namespaced(contest.client.clone(), name).delete(name, &DeleteParams::default()).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(take_runs().first(), Some(&(name.clone(), "b", 0)), "the deletion reaches the new owner");
    assert_eq!(shops_of(&b), of_b, "the child is there again");
    b.stop().await.unwrap();
    advance_seconds(5).await;
    assert_eq!(shops_of(&a).len(), 16);
    let mut moved = take_runs();
    moved.sort_unstable();
    assert_eq!(moved, with_child(&of_b, "a"));
}
