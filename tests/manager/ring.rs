//! Shards of a controller ring of kubernetes-controller-sharding, with a sharder that follows its protocol.

mod drains;
mod failing;
mod frozen;
mod leases;
mod permissions;
mod restores;
mod scope;
mod sharder;
mod tenures;
mod unassigned;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kctl::{
    Json,
    apiserver::ApiServer,
    json,
    k8s::api::coordination::v1::Lease,
    kube::{
        Api, Client,
        api::{Patch, PatchParams},
    },
    manager::{lease::ElectionConfig, ring::RingConfig},
    prelude::*,
};
use kctl_tests::Faults;
use parking_lot::Mutex;
use tokio::{task::AbortHandle, time::sleep};

use self::sharder::{DRAIN_LABEL, RING, SHARD_LABEL, Sharder};
use crate::{
    lease_candidates::advance_seconds,
    replicas::{Finished, Replica, change_config, change_configs, create_configs, state_of, wait_until_reconciled_at},
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
    /// The number of reconciles that have begun or ended.
    n_steps: u64,
    /// Reconciles that have written and ended without an error.
    successful: Vec<Run>,
}

/// A reconcile, with the steps in which it began and ended. Shards with separate clocks share no other time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    key: String,
    begun: u64,
    ended: u64,
    shard: &'static str,
}

impl Seen {
    fn end(&mut self, key: &str, shard: &'static str, begun: u64) {
        self.n_steps += 1;
        self.successful.push(Run { key: key.to_owned(), begun, ended: self.n_steps, shard });
    }

    /// Returns pairs of reconciles of one key that succeeded in two shards at the same time.
    fn overlaps(&self) -> Vec<[Run; 2]> {
        let mut runs = self.successful.clone();
        runs.sort();
        let overlaps = runs.windows(2).filter_map(|pair| {
            let [first, second] = pair else { return None };
            let is_overlap = first.key == second.key && first.shard != second.shard && second.begun < first.ended;
            is_overlap.then(|| [first.clone(), second.clone()])
        });
        overlaps.collect()
    }
}

/// A running reconcile, which may be dropped at any time.
struct Busy {
    seen: Arc<Mutex<Seen>>,
    reconcile: (String, &'static str),
    begun: u64,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.seen.lock().busy.remove(&self.reconcile);
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
        all.n_steps += 1;
        let begun = all.n_steps;
        drop(all);
        Self { seen: seen.clone(), reconcile: (format!("{key} by {of}"), shard), begun }
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
struct RingConfigs {
    shard: &'static str,
    takes: Duration,
    seen: Arc<Mutex<Seen>>,
}

impl Reconcile for RingConfigs {
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
        let begun = busy.begun;
        drop(busy);
        let mut seen = self.seen.lock();
        seen.end(&name, self.shard, begun);
        seen.last.note(name, state, self.shard);
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

/// A cluster with shards of one app and their sharder, which runs in a separate task.
struct RingWorld {
    server: ApiServer,
    client: Client,
    sharder: Sharder,
    sharder_task: AbortHandle,
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
        self.cached_names(plural).len()
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

impl RingWorld {
    async fn new(takes: Duration) -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let sharder = Sharder::start(&server).await;
        create_configs(&client, N_KEYS).await;
        let sharder_task = tokio::spawn(sharder.clone().run()).abort_handle();
        Self { server, client, sharder, sharder_task, seen: Arc::default(), takes, slow: None }
    }

    /// Returns a cluster whose shard `a` has reconciled all objects.
    async fn with_shard(takes: Duration) -> (Self, Replica) {
        let world = Self::new(takes).await;
        let a = world.start("a").await;
        world.wait_until_reconciled_at(0).await;
        (world, a)
    }

    /// Returns a cluster whose shards `a` and `b` have reconciled all objects and no longer move any.
    async fn with_two_shards(takes: Duration) -> (Self, Replica, Replica) {
        let world = Self::new(takes).await;
        let (a, b) = (world.start("a").await, world.start("b").await);
        world.wait_until_reconciled_at(0).await;
        advance_seconds(5).await;
        (world, a, b)
    }

    async fn start(&self, shard: &'static str) -> Replica {
        self.start_as(shard, shard, 1).await
    }

    /// Starts a process under the name of a shard.
    async fn start_as(&self, process: &'static str, shard: &str, seed: u64) -> Replica {
        let (seen, takes, faults) = (self.seen.clone(), self.takes, Faults::default());
        let mut app = App::new("podset").controller_with(move |_env| {
            std::future::ready(Ok(RingConfigs { shard: process, takes, seen: seen.clone() }))
        });
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

    /// Sets the state of one object.
    async fn change_one(&self, name: &str, state: u64) {
        change_config(&self.client, name, state).await;
    }

    /// Returns the number of keys whose last reconcile saw this state, and the shards that did them.
    fn reconciled_at(&self, state: u64) -> (usize, BTreeSet<&'static str>) {
        self.seen.lock().last.reconciled_at(state)
    }

    /// Waits until every key has reached a state, and returns how long that took.
    async fn wait_until_reconciled_at(&self, state: u64) -> Duration {
        wait_until_reconciled_at(N_KEYS, Duration::from_secs(120), || self.reconciled_at(state)).await
    }

    fn check_nothing_ran_twice(&self) {
        let seen = self.seen.lock();
        assert_eq!(seen.twice, [""; 0]);
        assert_eq!(seen.drained, [""; 0]);
    }

    /// Returns the shard of each object of a kind; an empty string if it has none.
    fn shard_by_object(&self, resource: &str) -> BTreeMap<String, String> {
        let objects = self.server.objects("", resource);
        let assigned = objects.iter().map(|object| {
            let meta = &object["metadata"];
            let shard = meta["labels"][SHARD_LABEL].as_str().unwrap_or_default();
            (meta["name"].as_str().unwrap().to_owned(), shard.to_owned())
        });
        assigned.collect()
    }

    fn leases(&self) -> Api<Lease> {
        Api::default_namespaced(self.client.clone())
    }

    async fn lease(&self, name: &str) -> Lease {
        self.leases().get(name).await.unwrap()
    }

    /// Changes a Lease as another client would.
    async fn change_lease(&self, name: &str, spec: Json) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.leases().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn holder(&self, name: &str) -> String {
        self.lease(name).await.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }
}
