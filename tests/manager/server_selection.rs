//! Replicas whose objects the API server selects (`shardSelector`, KEP-5866), with servers that do it and that ignore it.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    apiserver::FeatureGates,
    k8s::api::coordination::v1::Lease,
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    manager::lease::ElectionConfig,
    prelude::*,
};
use kctl_runtime::{manager::shards::ShardConfig, shard::ShardBy};
use kctl_tests::{Fault, Faults};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use crate::{
    lease_candidates::{Contest, advance_seconds, config},
    replicas::{Finished, Replica, state_of, wait_until_reconciled_at},
};

/// Namespaces that FNV-1a spreads over most of the slots.
const NAMESPACES: [&str; 8] = ["argocd", "billing", "ingress", "logging", "monitoring", "payments", "shop", "web"];
const N_SLOTS: u32 = 8;
/// Time within which all objects are reconciled.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The same while compilers and other suites run: two replicas acquire 256 Leases of a real API server, which takes 3 s
/// alone.
const BUSY_MACHINE_TIMEOUT: Duration = Duration::from_secs(240);

/// Copies the state of each `ConfigMap` to a Secret.
#[controller(of = ConfigMap, owns = Secret(apply))]
struct CopiedConfigs {
    replica: &'static str,
    finished: Arc<Mutex<Finished>>,
}

impl Reconcile for CopiedConfigs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        // A real server has ConfigMaps of its controllers.
        if config.name_any() != "config" {
            return Ok(Action::await_change());
        }
        let state = state_of(&config);
        let data = json!({ "state": state.to_string() });
        cx.owned::<Secret>().apply(json!({ "metadata": { "name": "copy" }, "stringData": data })).await?;
        self.finished.lock().note(Key::from_object(&*config).to_string(), state, self.replica);
        Ok(Action::await_change())
    }
}

/// Shares the cache of the `ConfigMap`s with the other controller.
#[controller(name = "observer")]
async fn observer(_config: Arc<ConfigMap>, _cx: Context<observer>) -> Result<Action> {
    Ok(Action::await_change())
}

/// A request for `ConfigMap`s.
#[derive(Clone, Debug)]
struct ConfigRequest {
    is_watch: bool,
    query: String,
}

struct Cluster {
    contest: Contest,
    finished: Arc<Mutex<Finished>>,
}

impl Cluster {
    async fn new(gates: FeatureGates) -> Self {
        let contest = Contest::new();
        contest.server.set_feature_gates(gates);
        let client = &contest.client;
        for name in NAMESPACES {
            let namespace = kctl::from_json(json!({ "metadata": { "name": name } })).unwrap();
            Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
            let config = json!({ "metadata": { "name": "config" }, "data": { "state": "0" } });
            let config = kctl::from_json(config).unwrap();
            configs(client, name).create(&PostParams::default(), &config).await.unwrap();
        }
        Self { contest, finished: Arc::default() }
    }

    /// Starts a replica, and returns it with its requests.
    async fn start(&self, replica: &'static str) -> (Replica, Arc<Mutex<Vec<ConfigRequest>>>) {
        self.start_with(App::new("podset"), replica).await
    }

    /// Does the same for a program with further controllers.
    async fn start_with(&self, app: App, replica: &'static str) -> (Replica, Arc<Mutex<Vec<ConfigRequest>>>) {
        let (faults, requests) = (Faults::default(), Arc::<Mutex<Vec<ConfigRequest>>>::default());
        let noted = requests.clone();
        faults.add(Fault::Break, move |request| {
            if request.reads("configmaps") {
                noted.lock().push(ConfigRequest { is_watch: request.is_watch, query: request.query.clone() });
            }
            false
        });
        let client = faults.client(&self.contest.server);
        let finished = self.finished.clone();
        let app = app
            .controller_with(move |_env| std::future::ready(Ok(CopiedConfigs { replica, finished: finished.clone() })));
        let slots = ShardConfig::new(config(replica), N_SLOTS, ShardBy::NamespaceRange).unwrap();
        let manager = app.manager(client.clone()).await.unwrap().shard(client, slots).unwrap();
        (Replica::start(manager, faults), requests)
    }

    /// Sets the state of all objects, and waits until a replica has reconciled each.
    async fn wait_until_reconciled_at(&self, state: u64) -> BTreeSet<&'static str> {
        for namespace in NAMESPACES {
            let change = Patch::Merge(json!({ "data": { "state": state.to_string() } }));
            configs(&self.contest.client, namespace).patch("config", &PatchParams::default(), &change).await.unwrap();
        }
        wait_until_reconciled_at(NAMESPACES.len(), TIMEOUT, || self.finished.lock().reconciled_at(state)).await;
        self.finished.lock().reconciled_at(state).1
    }

    /// Returns the number of objects that the API server sends for the last selection that a replica requested.
    async fn n_sent(&self, requests: &Mutex<Vec<ConfigRequest>>) -> usize {
        let last = requests.lock().iter().rev().find(|request| request.is_watch).unwrap().query.clone();
        let selector = last.split('&').find(|part| part.starts_with("shardSelector=")).unwrap();
        let path = format!("/api/v1/configmaps?{selector}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let list: kctl::Json = self.contest.client.request(request).await.unwrap();
        list["items"].as_array().unwrap().len()
    }
}

fn configs(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

/// Returns the namespaces of the cached objects of a replica.
fn cached_names(replica: &Replica, plural: &str) -> BTreeSet<String> {
    let source = replica.view.sources().iter().find(|source| source.config().kind.plural == plural).unwrap();
    source.store().all().iter().filter_map(|object| object.key().namespace.as_deref().map(Into::into)).collect()
}

#[tokio::test(start_paused = true)]
async fn server_sends_each_replica_only_its_objects() {
    for is_on in [true, false] {
        let cluster = Cluster::new(FeatureGates::default().sharded_list_and_watch(is_on)).await;
        let ((a, by_a), (b, by_b)) = (cluster.start("a").await, cluster.start("b").await);
        advance_seconds(5).await;
        assert_eq!(cluster.wait_until_reconciled_at(1).await, BTreeSet::from(["a", "b"]));
        let (of_a, of_b) = (cached_names(&a, "configmaps"), cached_names(&b, "configmaps"));
        assert!(of_a.is_disjoint(&of_b) && of_a.len() + of_b.len() == NAMESPACES.len(), "{of_a:?} {of_b:?}");
        assert_eq!((cached_names(&a, "secrets"), cached_names(&b, "secrets")), (of_a.clone(), of_b.clone()));
        let n_sent = (cluster.n_sent(&by_a).await, cluster.n_sent(&by_b).await);
        let expected = if is_on { (of_a.len(), of_b.len()) } else { (NAMESPACES.len(), NAMESPACES.len()) };
        assert_eq!(n_sent, expected);

        a.stop().await.unwrap();
        assert_eq!(cluster.wait_until_reconciled_at(2).await, BTreeSet::from(["b"]));
        assert_eq!(cached_names(&b, "configmaps").len(), NAMESPACES.len());
        assert_eq!(cluster.n_sent(&by_b).await, NAMESPACES.len());

        let (_a, _requests) = cluster.start("a").await;
        advance_seconds(5).await;
        assert_eq!(cluster.wait_until_reconciled_at(3).await, BTreeSet::from(["a", "b"]));
        assert_eq!(cached_names(&b, "configmaps"), of_b);
        assert_eq!(cluster.n_sent(&by_b).await, expected.1, "it gave slots back");
    }
}

/// A watch without the new slot could pass the version of its list, and what happened in between would be lost.
#[tokio::test(start_paused = true)]
async fn gained_slots_are_watched_before_they_are_listed() {
    let cluster = Cluster::new(FeatureGates::default().sharded_list_and_watch(true)).await;
    let ((a, _), (b, requests)) = (cluster.start("a").await, cluster.start("b").await);
    advance_seconds(5).await;
    requests.lock().clear();
    a.stop().await.unwrap();
    cluster.wait_until_reconciled_at(1).await;
    let requests = requests.lock().clone();
    let selector = |query: &str| query.split('&').find(|part| part.starts_with("shardSelector=")).map(str::to_owned);
    let mut watched = BTreeMap::new();
    for (n, request) in requests.iter().enumerate() {
        let selected = selector(&request.query).unwrap_or_else(|| panic!("{request:?}"));
        if request.is_watch {
            watched.insert(selected, n);
        } else {
            assert!(watched.contains_key(&selected), "request {n}: {requests:?}");
        }
    }
    assert!(requests.iter().any(|request| !request.is_watch) && !watched.is_empty(), "{requests:?}");
    drop(b);
}

/// Each move ends a watch. One that ended soon after its request counted as failed, and the next waited longer each time.
#[tokio::test(start_paused = true)]
async fn events_arrive_at_once_after_many_moves() {
    let cluster = Cluster::new(FeatureGates::default().sharded_list_and_watch(true)).await;
    let app = || App::new("podset").controller::<observer>();
    let (_a, _requests) = cluster.start_with(app(), "a").await;
    advance_seconds(5).await;
    for n in 1..=6 {
        let (b, _requests) = cluster.start_with(app(), "b").await;
        advance_seconds(5).await;
        let changed = Instant::now();
        assert_eq!(cluster.wait_until_reconciled_at(2 * n).await, BTreeSet::from(["a", "b"]));
        assert!(changed.elapsed() < Duration::from_secs(1), "start {n}: {:?}", changed.elapsed());
        b.stop().await.unwrap();
        let changed = Instant::now();
        assert_eq!(cluster.wait_until_reconciled_at(2 * n + 1).await, BTreeSet::from(["a"]));
        assert!(changed.elapsed() < Duration::from_secs(1), "stop {n}: {:?}", changed.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_selector_is_left_out() {
    let cel_error = "invalid shard selector: unsupported function \"shardRange\"";
    for fault in [Fault::Reject(400), Fault::RejectWith(500, cel_error)] {
        let cluster = Cluster::new(FeatureGates::default().sharded_list_and_watch(true)).await;
        let ((a, by_a), (b, by_b)) = (cluster.start("a").await, cluster.start("b").await);
        for replica in [&a, &b] {
            replica.faults.add(fault, |request| request.query.contains("shardSelector="));
        }
        advance_seconds(5).await;
        assert_eq!(cluster.wait_until_reconciled_at(1).await, BTreeSet::from(["a", "b"]), "{fault:?}");
        by_a.lock().clear();
        by_b.lock().clear();
        a.stop().await.unwrap();
        assert_eq!(cluster.wait_until_reconciled_at(2).await, BTreeSet::from(["b"]), "{fault:?}");
        assert_eq!(cached_names(&b, "configmaps").len(), NAMESPACES.len());
        let requests = by_b.lock().clone();
        let is_selective = |request: &ConfigRequest| request.query.contains("shardSelector=");
        assert!(!requests.is_empty() && !requests.iter().any(is_selective), "{fault:?}: {requests:?}");
    }
}

/// Returns the scope of the cached `ConfigMap`s that a replica shows on its debug page.
async fn scope_shown_at(address: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /debug/state.json HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let state: kctl::Json = kctl::from_json(response.split_once("\r\n\r\n").unwrap().1.parse().unwrap()).unwrap();
    let caches = state["caches"].as_array().unwrap();
    caches.iter().find(|cache| cache["kind"] == "ConfigMap").unwrap()["scope"].as_str().unwrap().to_owned()
}

/// Returns the Leases whose names begin with `app`, with their holders, last renewals and annotations.
async fn describe_leases(client: &Client, app: &str) -> String {
    let leases = Api::<Lease>::namespaced(client.clone(), "default");
    let listed = tokio::time::timeout(Duration::from_secs(30), leases.list(&ListParams::default())).await;
    let listed = match listed {
        Ok(Ok(listed)) => listed,
        failed => return format!("{failed:?}"),
    };
    let of_app = listed.iter().filter(|lease| lease.name_any().starts_with(app));
    let lines = of_app.map(|lease| {
        let spec = lease.spec.clone().unwrap_or_default();
        let (name, holder) = (lease.name_any(), spec.holder_identity);
        format!("{name}: {holder:?}, renewed {:?}, {:?}", spec.renew_time, lease.metadata.annotations)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replicas on a real server.
struct RealReplicas {
    client: Client,
    /// The names of all Leases begin with it.
    app: String,
    running: Vec<Replica>,
}

impl RealReplicas {
    /// Waits until a condition holds. Fails at once if a replica has ended. At the timeout it fails with the states of the
    /// replicas and their Leases.
    async fn wait_until(&mut self, what: &str, is_met: impl Fn(&[Replica]) -> bool) {
        let begun = Instant::now();
        while !is_met(&self.running) {
            self.running.iter_mut().for_each(Replica::check_running);
            if begun.elapsed() > BUSY_MACHINE_TIMEOUT {
                let states: Vec<_> = self.running.iter().map(Replica::state).collect();
                let leases = describe_leases(&self.client, &self.app).await;
                panic!("{what}:\n{}\n{leases}", states.join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The server has the feature gate `ShardedListAndWatch`.
#[tokio::test]
#[ignore = "needs KUBECONFIG: cargo xtask conformance"]
async fn objects_are_selected_on_a_real_server() {
    let options = kctl::kube::config::KubeConfigOptions::default();
    let config = kctl::kube::Config::from_kubeconfig(&options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let run = format!("r{}", std::process::id());
    let namespaces = NAMESPACES.map(|name| format!("{run}-{name}"));
    for name in &namespaces {
        let namespace = kctl::from_json(json!({ "metadata": { "name": name } })).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        let config = json!({ "metadata": { "name": "config" }, "data": { "state": "0" } });
        configs(&client, name).create(&PostParams::default(), &kctl::from_json(config).unwrap()).await.unwrap();
    }
    let finished = Arc::<Mutex<Finished>>::default();
    let mut replicas = RealReplicas { client: client.clone(), app: run.clone(), running: Vec::new() };
    let mut addresses = Vec::new();
    for replica in ["a", "b"] {
        let finished = finished.clone();
        let app = App::new("select")
            .controller_with(move |_env| std::future::ready(Ok(CopiedConfigs { replica, finished: finished.clone() })));
        let mut leases = ElectionConfig::new(&run, "default", replica);
        // On a busy machine, the only thread of this debug build has no time for 128 renewals a second and their events in
        // both replicas. It would lose Leases.
        let seconds = Duration::from_secs;
        (leases.lease_duration, leases.renew_deadline, leases.retry_period) = (seconds(60), seconds(40), seconds(10));
        // With this many slots, a selector has as many ranges as it may have.
        let slots = ShardConfig::new(leases, 256, ShardBy::NamespaceRange).unwrap();
        let manager = app.manager(client.clone()).await.unwrap().shard(client.clone(), slots).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let manager = manager.serve_debug(listener, vec![address.clone()]);
        replicas.running.push(Replica::start(manager, Faults::default()));
        addresses.push(address);
    }
    let n_reached = |state| finished.lock().reconciled_at(state).0;
    replicas.wait_until("all objects are reconciled", |_| n_reached(0) >= namespaces.len()).await;
    let has_its_share = |replica: &Replica| replica.n_owned() == 128;
    replicas.wait_until("each replica has its share", |running| running.iter().all(has_its_share)).await;
    for address in &addresses {
        assert_eq!(scope_shown_at(address).await, "slots of this replica, selected by the API server");
    }
    for name in &namespaces {
        let change = Patch::Merge(json!({ "data": { "state": "1" } }));
        configs(&client, name).patch("config", &PatchParams::default(), &change).await.unwrap();
    }
    replicas.wait_until("the first change is reconciled", |_| n_reached(1) >= namespaces.len()).await;
    assert_eq!(finished.lock().reconciled_at(1).1, BTreeSet::from(["a", "b"]));
    replicas.running.remove(0).stop().await.unwrap();
    for name in &namespaces {
        let change = Patch::Merge(json!({ "data": { "state": "2" } }));
        configs(&client, name).patch("config", &PatchParams::default(), &change).await.unwrap();
    }
    replicas.wait_until("the second change is reconciled", |_| n_reached(2) >= namespaces.len()).await;
    assert_eq!(finished.lock().reconciled_at(2).1, BTreeSet::from(["b"]));
    replicas.running.remove(0).stop().await.unwrap();
    for name in &namespaces {
        Api::<Namespace>::all(client.clone()).delete(name, &DeleteParams::default()).await.unwrap();
    }
}
