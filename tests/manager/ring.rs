//! Shards of a controller ring of kubernetes-controller-sharding, with a sharder that follows its protocol.

mod sharder;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kctl::{
    apiserver::{ApiServer, User},
    json,
    k8s::api::{
        coordination::v1::Lease,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    kube::{
        Api, Client,
        api::{ListParams, Patch, PatchParams, PostParams},
    },
    manager::{ManagerError, lease::ElectionConfig, ring::RingConfig},
    manifest::{Manifest, RbacOptions, rbac},
    prelude::*,
};
use kctl_runtime::{
    manager::metrics::Format,
    manifest::{controller_ring, ring_rbac},
    worker::Outcome,
};
use kctl_tests::{Asked, Fault, Faults};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle, time::sleep};

use self::sharder::{DRAIN_LABEL, RING, SHARD_LABEL, STATE_LABEL, Sharder, TAKEN};
use crate::{
    contest::seconds,
    replicas::{Finished, Replica, change_configs, create_configs, reaches, state_of},
};

const N_KEYS: usize = 24;

/// The work of all shards.
#[derive(Default)]
struct Seen {
    /// Keys that are being reconciled, with controller and shard.
    busy: HashSet<(String, &'static str)>,
    /// Keys that two shards reconciled at the same time.
    twice: Vec<String>,
    /// Keys that were reconciled although their object had the drain label.
    drained: Vec<String>,
    last: Finished,
    /// Errors of writes, with the shard.
    failed: Vec<(&'static str, String)>,
}

/// A running reconcile, which may be dropped at any time.
struct Busy(Arc<Mutex<Seen>>, (String, &'static str));

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().busy.remove(&self.1);
    }
}

impl Busy {
    /// Records the start of a reconcile. No other shard may be reconciling the key.
    fn begin(seen: &Arc<Mutex<Seen>>, key: &str, shard: &'static str, of: &'static str) -> Self {
        let mut all = seen.lock();
        if !all.busy.insert((format!("{key} by {of}"), shard))
            || all.busy.iter().any(|(busy, other)| *other != shard && busy.split(' ').next() == Some(key))
        {
            all.twice.push(key.into());
        }
        drop(all);
        Self(seen.clone(), (format!("{key} by {of}"), shard))
    }
}

/// Returns `true` for changes of `data`, and for added and deleted objects.
fn data_changed(change: &Change<ConfigMap>) -> bool {
    match change {
        Change::Updated { old, new } => old.data != new.data,
        _ => true,
    }
}

#[controller(of = ConfigMap, owns = Secret(apply), primary(when = data_changed), concurrency = 4)]
struct Configs {
    shard: &'static str,
    takes: Duration,
    seen: Arc<Mutex<Seen>>,
}

impl Reconcile for Configs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let name = config.name_any();
        let busy = Busy::begin(&self.seen, &name, self.shard, "configs");
        if config.labels().contains_key(DRAIN_LABEL) {
            self.seen.lock().drained.push(name.clone());
        }
        sleep(self.takes).await;
        let state = state_of(&config);
        // Copies the labels of the primary, as many controllers do.
        let metadata = json!({ "name": &name, "labels": config.labels() });
        let data = json!({ "by": self.shard, "state": state.to_string() });
        let written = cx.owned::<Secret>().apply(json!({ "metadata": metadata, "stringData": data })).await;
        if let Err(error) = written {
            self.seen.lock().failed.push((self.shard, error.to_string()));
            return Err(error.into());
        }
        drop(busy);
        self.seen.lock().last.note(name, state, self.shard);
        Ok(Action::await_change())
    }
}

/// A second controller for the same primaries that takes much longer.
#[controller(of = ConfigMap, name = "slow", concurrency = 64)]
struct Slow {
    shard: &'static str,
    takes: Duration,
    seen: Arc<Mutex<Seen>>,
}

impl Reconcile for Slow {
    async fn reconcile(&self, config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        let _busy = Busy::begin(&self.seen, &config.name_any(), self.shard, "slow");
        sleep(self.takes).await;
        Ok(Action::await_change())
    }
}

/// A cluster with shards of one app and their sharder.
struct World {
    server: ApiServer,
    client: Client,
    sharder: Sharder,
    seen: Arc<Mutex<Seen>>,
    takes: Duration,
    /// Duration of a reconcile of the second controller; `None` if it does not run.
    slow: Option<Duration>,
}

impl Replica {
    fn holds_its_lease(&self) -> bool {
        self.view.leadership().unwrap().is_leading()
    }

    fn n_handed_over(&self) -> u64 {
        self.view.controller_ring().unwrap().n_handed_over()
    }

    /// Returns the number of cached objects of a kind.
    fn n_cached(&self, plural: &str) -> usize {
        self.cached(plural).len()
    }

    /// Returns the result of the check of `/readyz` about the ring.
    fn ready_in_ring(&self) -> std::result::Result<String, String> {
        self.check("controller-ring")
    }
}

fn config(shard: &str, seed: u64) -> RingConfig {
    let mut lease = ElectionConfig::new("unused", "default", shard);
    lease.seed = seed;
    RingConfig::new(RING, lease).unwrap()
}

impl World {
    async fn new(takes: Duration) -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let sharder = Sharder::start(&server).await;
        let world = Self { server, client, sharder, seen: Arc::default(), takes, slow: None };
        create_configs(&world.client, N_KEYS).await;
        world
    }

    fn configs(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.client.clone())
    }

    /// Runs the sharder in a separate task.
    fn shards(&self) -> JoinHandle<()> {
        tokio::spawn(self.sharder.clone().run())
    }

    async fn start(&self, shard: &'static str) -> Replica {
        self.start_as(shard, shard, 1).await
    }

    /// Starts a process under the name of a shard.
    async fn start_as(&self, process: &'static str, shard: &str, seed: u64) -> Replica {
        let (seen, takes, faults) = (self.seen.clone(), self.takes, Faults::default());
        let mut app = App::new("podset")
            .controller_with(move |_env| std::future::ready(Ok(Configs { shard: process, takes, seen: seen.clone() })));
        if let Some(takes) = self.slow {
            let seen = self.seen.clone();
            app = app.controller_with(move |_env| {
                std::future::ready(Ok(Slow { shard: process, takes, seen: seen.clone() }))
            });
        }
        let client = faults.client(&self.server);
        let manager = app.manager_in_ring(client.clone(), client, config(shard, seed)).await.unwrap();
        let server = self.server.clone();
        let manager = manager.clock(Arc::new(move || server.now()));
        Replica::start(manager, faults)
    }

    /// Sets the state of all objects.
    async fn change(&self, state: u64) {
        change_configs(&self.client, N_KEYS, state).await;
    }

    /// Returns the number of keys whose last reconcile saw this state, and the shards that did them.
    fn reached(&self, state: u64) -> (usize, BTreeSet<&'static str>) {
        self.seen.lock().last.reached(state)
    }

    /// Waits until every key has reached a state, and returns how long that took.
    async fn reaches(&self, state: u64) -> Duration {
        reaches(N_KEYS, Duration::from_secs(120), || self.reached(state)).await
    }

    fn check_nothing_ran_twice(&self) {
        let seen = self.seen.lock();
        assert_eq!(seen.twice, [""; 0]);
        assert_eq!(seen.drained, [""; 0]);
    }

    /// Returns the shard of each object of a kind; an empty string if it has none.
    fn assigned(&self, resource: &str) -> BTreeMap<String, String> {
        let objects = self.server.objects("", resource);
        let assigned = objects.iter().map(|object| {
            let meta = &object["metadata"];
            let shard = meta["labels"][SHARD_LABEL].as_str().unwrap_or_default();
            (meta["name"].as_str().unwrap().to_owned(), shard.to_owned())
        });
        assigned.collect()
    }

    async fn lease(&self, name: &str) -> Lease {
        Api::<Lease>::default_namespaced(self.client.clone()).get(name).await.unwrap()
    }

    async fn holder(&self, name: &str) -> String {
        self.lease(name).await.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn shard_that_joins_gets_its_part_by_drains() {
    let world = World::new(Duration::from_millis(20)).await;
    let _sharder = world.shards();
    let a = world.start("a").await;
    world.reaches(0).await;
    assert_eq!((a.n_cached("configmaps"), a.n_cached("secrets")), (N_KEYS, N_KEYS));
    assert_eq!(a.ready_in_ring(), Ok("shard a of the ring podset".into()));
    let b = world.start("b").await;
    seconds(5).await;
    let (of_a, of_b) = (a.n_cached("configmaps"), b.n_cached("configmaps"));
    assert!(of_a > 0 && of_b > 0 && of_a + of_b == N_KEYS, "{of_a} and {of_b}");
    assert_eq!((a.n_handed_over(), b.n_handed_over()), (of_b as u64, 0));
    let text = a.metrics.text(Format::Prometheus);
    assert!(text.contains(&format!("kctl_ring_handed_over_total{{}} {of_b}\n")), "{text}");
    assert_eq!((a.n_cached("secrets"), b.n_cached("secrets")), (of_a, of_b));
    world.change(1).await;
    world.reaches(1).await;
    assert_eq!(world.reached(1).1, ["a", "b"].into());
    assert_eq!(world.assigned("configmaps"), world.assigned("secrets"));
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn shard_lease_keeps_the_sharders_label() {
    let world = World::new(Duration::from_millis(20)).await;
    let _sharder = world.shards();
    let _a = world.start("a").await;
    seconds(30).await;
    let lease = world.lease("a").await;
    assert_eq!(lease.labels()["alpha.sharding.timebertt.dev/controllerring"], RING);
    assert_eq!(lease.labels()[STATE_LABEL], "ready");
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_never_owns_sharding_labels() {
    let world = World::new(Duration::from_millis(20)).await;
    let _sharder = world.shards();
    let _a = world.start("a").await;
    world.reaches(0).await;
    let _b = world.start("b").await;
    seconds(5).await;
    world.change(1).await;
    world.reaches(1).await;
    for secret in world.server.objects("", "secrets") {
        let managers = secret["metadata"]["managedFields"].as_array().unwrap();
        let applied: Vec<_> = managers.iter().filter(|manager| manager["operation"] == "Apply").collect();
        assert_eq!(applied.len(), 1, "{secret}");
        assert!(!applied[0]["fieldsV1"].to_string().contains("sharding.timebertt.dev"), "{}", applied[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn drained_key_is_handed_over_after_its_reconcile() {
    let world = World::new(Duration::from_secs(8)).await;
    let sharder = world.shards();
    let a = world.start("a").await;
    world.reaches(0).await;
    // Wait for the reconciles that the written Secrets trigger.
    seconds(100).await;
    sharder.abort();
    let moves: BTreeSet<String> =
        (0..N_KEYS).map(|number| format!("config-{number}")).filter(|name| moves_to_b(name)).collect();
    let busy: BTreeSet<String> = moves.iter().take(3).cloned().collect();
    for name in &busy {
        let patch = Patch::Merge(json!({ "data": { "state": "1" } }));
        world.configs().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }
    let b = world.start("b").await;
    seconds(2).await;
    world.sharder.step().await;
    seconds(2).await;
    let of_b = || {
        let assigned = world.assigned("configmaps").into_iter();
        assigned.filter(|(_, shard)| shard == "b").map(|(name, _)| name).collect::<BTreeSet<_>>()
    };
    assert_eq!(of_b(), moves.difference(&busy).cloned().collect(), "idle keys are handed over at once");
    assert_eq!((drained(&world), a.n_handed_over()), (busy, (moves.len() - 3) as u64));
    seconds(5).await;
    assert_eq!(of_b(), moves);
    seconds(60).await;
    assert_eq!(world.reached(1), (3, ["b"].into()), "the next shard reconciles them once more");
    world.check_nothing_ran_twice();
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn change_during_a_drain_is_reconciled_again() {
    let world = World::new(Duration::from_secs(8)).await;
    let sharder = world.shards();
    let _a = world.start("a").await;
    world.reaches(0).await;
    seconds(100).await;
    sharder.abort();
    let name = (0..N_KEYS).map(|number| format!("config-{number}")).find(|name| moves_to_b(name)).unwrap();
    let change = async |state: &str| {
        let patch = Patch::Merge(json!({ "data": { "state": state } }));
        world.configs().patch(&name, &PatchParams::default(), &patch).await.unwrap();
    };
    change("1").await;
    // This shard joins, and leaves again before an object is assigned to it.
    let leases = Api::<Lease>::default_namespaced(world.client.clone());
    let lease = json!({
        "metadata": { "name": "b", "labels": { "alpha.sharding.timebertt.dev/controllerring": RING } },
        "spec": { "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": world.server.now().to_string() },
    });
    leases.create(&PostParams::default(), &kctl::from_json(lease).unwrap()).await.unwrap();
    seconds(1).await;
    world.sharder.step().await;
    let leaves = Patch::Merge(json!({ "spec": { "holderIdentity": "" } }));
    leases.patch("b", &PatchParams::default(), &leaves).await.unwrap();
    change("2").await;
    assert!(drained(&world).contains(&name));
    seconds(30).await;
    assert_eq!(world.assigned("configmaps")[&name], "a");
    assert_eq!(world.reached(2), (1, ["a"].into()));
    world.check_nothing_ran_twice();
}

/// Returns `true` if the sharder moves an object to `b` when `b` joins `a`.
fn moves_to_b(name: &str) -> bool {
    let shards = ["a", "b"].map(ToOwned::to_owned);
    sharder::assigned(&format!("/ConfigMap/default/{name}"), &shards).as_deref() == Some("b")
}

/// Returns the objects with the drain label.
fn drained(world: &World) -> BTreeSet<String> {
    let objects = world.server.objects("", "configmaps");
    let drained = objects.iter().filter(|object| !object["metadata"]["labels"][DRAIN_LABEL].is_null());
    drained.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn hand_over_waits_for_all_controllers_of_kind() {
    let mut world = World::new(Duration::from_millis(20)).await;
    world.slow = Some(Duration::from_secs(10));
    let _sharder = world.shards();
    let a = world.start("a").await;
    world.reaches(0).await;
    let _b = world.start("b").await;
    seconds(5).await;
    assert!(!drained(&world).is_empty());
    assert_eq!(a.n_handed_over(), 0, "the second controller still runs");
    seconds(20).await;
    assert!(a.n_handed_over() > 0 && drained(&world).is_empty());
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn unanswered_write_delays_the_hand_over() {
    let world = World::new(Duration::from_millis(20)).await;
    let sharder = world.shards();
    let a = world.start("a").await;
    world.reaches(0).await;
    // The response to the last write of each key is lost.
    a.faults.add(Fault::LoseAnswer, |asked: &Asked| asked.path.contains("/secrets") && asked.method == "PATCH");
    world.change(1).await;
    seconds(1).await;
    a.faults.clear();
    let _b = world.start("b").await;
    seconds(3).await;
    assert!(!drained(&world).is_empty());
    assert_eq!(a.n_handed_over(), 0, "its writes may still be on their way");
    seconds(15).await;
    assert!(a.n_handed_over() > 0 && drained(&world).is_empty());
    world.reaches(1).await;
    world.check_nothing_ran_twice();
    drop(sharder);
}

#[tokio::test(start_paused = true)]
async fn crashed_shards_keys_move_with_its_taken_lease() {
    let world = World::new(Duration::from_millis(20)).await;
    let _sharder = world.shards();
    let (a, _b) = (world.start("a").await, world.start("b").await);
    world.reaches(0).await;
    seconds(5).await;
    a.crash().await;
    world.change(1).await;
    let took = world.reaches(1).await;
    assert!(took > Duration::from_secs(25) && took < Duration::from_secs(33), "{took:?}");
    assert_eq!((world.holder("a").await.as_str(), world.reached(1).1), (TAKEN, ["b"].into()));
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn stopped_shard_keys_move_within_a_second() {
    let world = World::new(Duration::from_millis(20)).await;
    let _sharder = world.shards();
    let (a, _b) = (world.start("a").await, world.start("b").await);
    world.reaches(0).await;
    seconds(5).await;
    world.change(1).await;
    a.stop().await.unwrap();
    assert_eq!(world.holder("a").await, "", "it has given its Lease back");
    let took = world.reaches(1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn shard_whose_lease_was_taken_ends() {
    let world = World::new(Duration::from_secs(1)).await;
    let sharder = world.shards();
    let a = world.start("a").await;
    world.reaches(0).await;
    sharder.abort();
    let patch = Patch::Merge(json!({ "spec": { "holderIdentity": TAKEN } }));
    let leases = Api::<Lease>::default_namespaced(world.client.clone());
    leases.patch("a", &PatchParams::default(), &patch).await.unwrap();
    let lost = tokio::time::timeout(Duration::from_secs(3), a.running).await.expect("it ends by itself");
    let Err(ManagerError::LeaseLost(why)) = lost.unwrap() else { panic!("it goes on") };
    assert_eq!(why, "the lease is held by shardlease-controller");
    let before = world.server.revision();
    world.change(1).await;
    seconds(60).await;
    assert_eq!(world.server.revision(), before + N_KEYS as u64, "it wrote after that");
}

#[tokio::test(start_paused = true)]
async fn same_named_shards_never_reconcile_concurrently() {
    let world = World::new(Duration::from_millis(200)).await;
    let _sharder = world.shards();
    let a = world.start("a").await;
    world.reaches(0).await;
    let namesake = world.start_as("namesake", "a", 2).await;
    for state in 1..=30 {
        world.change(state).await;
        seconds(1).await;
    }
    assert!(a.holds_its_lease() && !namesake.holds_its_lease());
    let waits = namesake.ready_in_ring().unwrap_err();
    assert!(waits.starts_with("another process holds the Lease of shard a"), "{waits}");
    a.crash().await;
    world.change(31).await;
    let took = world.reaches(31).await;
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(25), "{took:?}");
    assert!(namesake.holds_its_lease() && namesake.ready_in_ring().is_ok());
    world.check_nothing_ran_twice();
}

/// Reads objects that may belong to another shard.
#[controller(owns = Secret(apply))]
async fn curious(config: Arc<ConfigMap>, cx: Context<curious>) -> Result<Action> {
    let configs = cx.store::<ConfigMap>();
    match config.name_any().as_str() {
        "own" => drop(configs.get(&cx.key())),
        "missing" => drop(configs.get(&Key::namespaced("default", "missing-one"))),
        "all" => drop(configs.iter().count()),
        "children" => drop(cx.store::<Secret>().iter().count()),
        _ => drop(cx.owned::<Secret>()),
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn read_beyond_the_shard_panics() {
    let server = ApiServer::new();
    let client = Client::new(server.service(), "default");
    let sharder = Sharder::start(&server).await;
    let configs = Api::<ConfigMap>::default_namespaced(client.clone());
    for name in ["own", "missing", "all", "children", "owned"] {
        let config = kctl::from_json(json!({ "metadata": { "name": name } })).unwrap();
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    let panics = Arc::<Mutex<BTreeMap<String, String>>>::default();
    let noted = panics.clone();
    let app = App::new("podset").controller::<curious>();
    let manager = app.manager_in_ring(client.clone(), client, config("a", 1)).await.unwrap();
    let manager = manager.clock(Arc::new(move || server.now())).on_end(Arc::new(move |report| {
        if let Outcome::Panicked(text) = &report.outcome {
            noted.lock().insert(report.key.name.to_string(), text.clone());
        }
    }));
    let running = tokio::spawn(manager.run(std::future::pending()));
    let _sharder = tokio::spawn(sharder.run());
    seconds(5).await;
    running.abort();
    assert_eq!(panics.lock().keys().collect::<Vec<_>>(), ["all", "children", "missing"]);
}

#[controller(of = Namespace)]
struct OfTheCluster;

impl Reconcile for OfTheCluster {
    async fn reconcile(&self, _namespace: Arc<Namespace>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

#[tokio::test]
async fn cluster_scoped_primary_does_not_join_a_ring() {
    let client = Client::new(ApiServer::new().service(), "default");
    let app = App::new("podset").controller_with(|_env| std::future::ready(Ok(OfTheCluster)));
    let error = app.manager_in_ring(client.clone(), client, config("a", 1)).await.err().unwrap().to_string();
    assert!(
        error.contains("reconciles the cluster-scoped kind Namespace: the sharder never moves such objects"),
        "{error}"
    );
}

/// Runs a shard with a separate clock, which can be stopped while the others continue.
mod frozen {
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
    }

    fn drive(runtimes: &[&Runtime], time: Duration) {
        for _ in 0..time.as_millis() / STEP.as_millis() {
            for runtime in runtimes {
                runtime.block_on(async { sleep(STEP).await });
            }
        }
    }

    #[test]
    fn frozen_shard_with_a_taken_lease_writes_nothing() {
        let (ours, theirs) = (runtime(), runtime());
        let world = ours.block_on(World::new(Duration::from_secs(2)));
        let entered = ours.enter();
        let _sharder = world.shards();
        drop(entered);
        let a = theirs.block_on(world.start("a"));
        let _b = ours.block_on(world.start("b"));
        let both = [&ours, &theirs];
        drive(&both, Duration::from_secs(40));
        assert_eq!(world.reached(0), (N_KEYS, ["a", "b"].into()));
        ours.block_on(world.change(1));
        drive(&both, Duration::from_secs(1));
        assert!(world.seen.lock().busy.iter().any(|(_, shard)| *shard == "a"), "it is at work");
        // SIGSTOP for 40 s, then SIGCONT.
        drive(&[&ours], Duration::from_secs(40));
        assert_eq!(ours.block_on(world.holder("a")), TAKEN);
        assert_eq!(world.assigned("configmaps").into_values().collect::<BTreeSet<_>>(), ["b".to_owned()].into());
        let written_by_a = |world: &World| {
            let secrets = world.server.objects("", "secrets");
            // `YQ==` is `a`.
            secrets.iter().filter(|secret| secret["data"]["by"] == "YQ==").count()
        };
        let before = written_by_a(&world);
        theirs.block_on(async { tokio::time::advance(Duration::from_secs(40)).await });
        drive(&both, Duration::from_secs(5));
        assert!(written_by_a(&world) <= before, "it wrote after it was continued");
        assert!(a.running.is_finished(), "its Lease is lost");
        drive(&both, Duration::from_secs(60));
        assert_eq!(world.reached(1), (N_KEYS, ["b"].into()));
    }
}

#[test]
fn ring_has_the_kinds_of_the_declarations() {
    let app = App::new("podset").controller::<curious>();
    let ring = controller_ring(&app.specs(), RING).unwrap();
    assert_eq!(ring.file, "sharding/controllerring-podset.yaml");
    let (configs, secrets) =
        (json!({ "group": "", "resource": "configmaps" }), json!({ "group": "", "resource": "secrets" }));
    let mut resource = configs.clone();
    resource["controlledResources"] = json!([secrets]);
    assert_eq!(ring.object["spec"], json!({ "resources": [resource] }));
    let manifests = ring_rbac(&app.specs(), &names(), RING).unwrap();
    let sharder: Vec<_> = manifests.iter().filter(|manifest| manifest.file.starts_with("sharding/")).collect();
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "patch"] }]);
    assert_eq!(sharder[0].object["rules"], rules);
    let subjects = json!([{ "kind": "ServiceAccount", "name": "sharder", "namespace": "sharding-system" }]);
    assert_eq!(sharder[1].object["subjects"], subjects);
}

fn names() -> RbacOptions {
    RbacOptions::new("podset", "default")
}

/// Installs roles and bindings for the `ServiceAccount` of the app.
async fn install(server: &ApiServer, manifests: &[Manifest]) {
    let admin = Client::new(server.service(), "default");
    let new = PostParams::default();
    for Manifest { object, .. } in manifests {
        let object = object.clone();
        match object["kind"].as_str().unwrap() {
            "Role" => drop(
                Api::<Role>::default_namespaced(admin.clone())
                    .create(&new, &kctl::from_json(object).unwrap())
                    .await
                    .unwrap(),
            ),
            "RoleBinding" => {
                drop(
                    Api::<RoleBinding>::default_namespaced(admin.clone())
                        .create(&new, &kctl::from_json(object).unwrap())
                        .await
                        .unwrap(),
                );
            }
            "ClusterRole" => drop(
                Api::<ClusterRole>::all(admin.clone()).create(&new, &kctl::from_json(object).unwrap()).await.unwrap(),
            ),
            "ClusterRoleBinding" => {
                drop(
                    Api::<ClusterRoleBinding>::all(admin.clone())
                        .create(&new, &kctl::from_json(object).unwrap())
                        .await
                        .unwrap(),
                );
            }
            _ => {}
        }
    }
}

/// Runs two shards one after the other with these roles and those of their controllers. Returns the requests that were
/// rejected.
async fn refused_under(manifests: &[Manifest]) -> Vec<String> {
    let server = ApiServer::new();
    let sharder = Sharder::start(&server).await;
    let app = App::new("podset").controller::<curious>();
    install(&server, &rbac(&app.specs(), &names()).unwrap()).await;
    install(&server, manifests).await;
    let configs = Api::<ConfigMap>::default_namespaced(Client::new(server.service(), "default"));
    for number in 0..N_KEYS {
        let config = kctl::from_json(json!({ "metadata": { "name": format!("config-{number}") } })).unwrap();
        configs.create(&PostParams::default(), &config).await.unwrap();
    }
    let user = User::service_account("default", "podset");
    let _sharder = tokio::spawn(sharder.run());
    let mut stops = Vec::new();
    for shard in ["a", "b"] {
        let client = Client::new(server.service_as(user.clone()), "default");
        let manager = app.manager_in_ring(client.clone(), client, config(shard, 1)).await.unwrap();
        let clock = server.clone();
        let manager = manager.clock(Arc::new(move || clock.now()));
        let (stop, stopped) = oneshot::channel::<()>();
        stops.push((stop, tokio::spawn(manager.run(async move { drop(stopped.await) }))));
        seconds(5).await;
    }
    let (stop, running) = stops.remove(0);
    // A shard that may not renew its Lease has lost it and ended already.
    let _stopped = stop.send(());
    let _ended = running.await.unwrap();
    let listed = configs.list(&ListParams::default()).await.unwrap();
    let refused = server.requests().into_iter().filter(|request| request.code == 403);
    let mut refused: Vec<_> = refused.map(|request| format!("{} {}", request.verb, request.resource)).collect();
    if refused.is_empty() {
        assert!(listed.iter().all(|config| config.labels().contains_key(SHARD_LABEL)), "the ring works");
    }
    refused.dedup();
    refused
}

#[tokio::test(start_paused = true)]
async fn each_permission_of_a_shard_is_needed() {
    let app = App::new("podset").controller::<curious>();
    let all = ring_rbac(&app.specs(), &names(), RING).unwrap();
    let of_shard: Vec<Manifest> = all.into_iter().filter(|manifest| manifest.file.starts_with("rbac/")).collect();
    assert_eq!(refused_under(&of_shard).await, [""; 0], "the whole role is enough");
    let mut n_dropped = 0;
    for (index, manifest) in of_shard.iter().enumerate() {
        for (rule, object) in manifest.object["rules"].as_array().into_iter().flatten().enumerate() {
            for verb in 0..object["verbs"].as_array().unwrap().len() {
                let mut fewer = of_shard.clone();
                let verbs = fewer[index].object["rules"][rule]["verbs"].as_array_mut().unwrap();
                let dropped = verbs.remove(verb);
                if verbs.is_empty() {
                    fewer[index].object["rules"] = json!([]);
                }
                assert!(!refused_under(&fewer).await.is_empty(), "{dropped} of {} is not needed", manifest.file);
                n_dropped += 1;
            }
        }
    }
    assert_eq!(n_dropped, 4, "create, get and update of Leases, and patch of primaries");
}
