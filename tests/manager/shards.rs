//! Several active replicas: each reconciles the keys of its slots, and no replica writes for keys of another.

mod caches;
mod frozen;
mod incomplete;
mod lease_edits;
mod leases;
mod moves;
mod owners;
mod permissions;
mod restores;
mod rollouts;
mod settings;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kctl::{
    k8s::api::coordination::v1::Lease,
    kube::{Api, Client, api::ListParams},
    manager::Manager,
    prelude::*,
};
use kctl_runtime::{
    manager::{metrics::Format, shards::ShardConfig},
    shard::ShardBy,
};
use kctl_tests::Faults;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    lease_candidates::{Contest, config},
    replicas::{Finished, Replica, change_configs, create_configs, state_of, wait_until_reconciled_at},
};

pub(crate) const N_SLOTS: u32 = 8;
const N_KEYS: usize = 40;

/// The work of all replicas.
#[derive(Default)]
struct Seen {
    /// Keys that are being reconciled.
    busy: HashSet<String>,
    /// Keys that two replicas reconciled at the same time.
    twice: Vec<String>,
    last: Finished,
    /// Errors of writes, with the replica.
    failed: Vec<(&'static str, String)>,
    /// Keys whose Secret was written, but missing in the cache of the next reconcile.
    lost: Vec<String>,
    /// Number of reconciles of each key.
    n_runs: BTreeMap<String, usize>,
}

/// A running reconcile, which may be dropped at any time.
struct Busy(Arc<Mutex<Seen>>, String);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.lock().busy.remove(&self.1);
    }
}

#[controller(of = ConfigMap, owns = Secret(apply), concurrency = 4)]
struct ShardConfigs {
    replica: &'static str,
    takes: Duration,
    seen: Arc<Mutex<Seen>>,
}

impl Reconcile for ShardConfigs {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let name = config.name_any();
        if !self.seen.lock().busy.insert(name.clone()) {
            self.seen.lock().twice.push(name.clone());
        }
        let busy = Busy(self.seen.clone(), name.clone());
        {
            let mut seen = self.seen.lock();
            *seen.n_runs.entry(name.clone()).or_default() += 1;
            if seen.last.contains(&name) && cx.owned::<Secret>().is_empty() {
                seen.lost.push(name.clone());
            }
        }
        sleep(self.takes).await;
        let state = state_of(&config);
        let data = json!({ "by": self.replica, "state": state.to_string() });
        let written = cx.owned::<Secret>().apply(json!({ "metadata": { "name": &name }, "stringData": data })).await;
        if let Err(error) = written {
            self.seen.lock().failed.push((self.replica, error.to_string()));
            return Err(error.into());
        }
        drop(busy);
        self.seen.lock().last.note(name, state, self.replica);
        Ok(Action::await_change())
    }
}

/// A cluster with replicas of one app.
pub(crate) struct ShardWorld {
    pub(crate) contest: Contest,
    seen: Arc<Mutex<Seen>>,
    takes: Duration,
}

impl Replica {
    /// Returns the value of a metric.
    pub(crate) fn metric(&self, name: &str) -> usize {
        let text = self.metrics.text(Format::Prometheus);
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix("{} "));
        let value = values.next().unwrap_or_else(|| panic!("{name} is not in {text}"));
        assert_eq!(values.next(), None, "{name} is written twice");
        value.parse().unwrap()
    }

    fn leads(&self) -> bool {
        self.view.shards().unwrap().leader_permit().is_some()
    }

    pub(crate) fn n_owned(&self) -> usize {
        self.view.shards().unwrap().n_owned()
    }

    /// Returns the result of the check of `/readyz` about the slots.
    pub(crate) fn ready(&self) -> std::result::Result<String, String> {
        self.check("shards")
    }
}

pub(crate) fn shards(identity: &str, n: u32) -> ShardConfig {
    ShardConfig::new(config(identity), n, ShardBy::Object).unwrap()
}

impl ShardWorld {
    pub(crate) async fn new(takes: Duration) -> Self {
        let world = Self { contest: Contest::new(), seen: Arc::default(), takes };
        create_configs(&world.contest.client, N_KEYS).await;
        world
    }

    fn configs(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.contest.client.clone())
    }

    pub(crate) async fn start(&self, replica: &'static str) -> Replica {
        self.start_by(replica, |manager, client| manager.shard(client, shards(replica, N_SLOTS)).unwrap()).await
    }

    pub(crate) async fn start_by(
        &self,
        replica: &'static str,
        set_up: impl FnOnce(Manager, Client) -> Manager,
    ) -> Replica {
        self.start_on(replica, Faults::default(), set_up).await
    }

    pub(crate) async fn start_on(
        &self,
        replica: &'static str,
        faults: Faults,
        set_up: impl FnOnce(Manager, Client) -> Manager,
    ) -> Replica {
        let (seen, takes) = (self.seen.clone(), self.takes);
        let app = App::new("podset")
            .controller_with(move |_env| std::future::ready(Ok(ShardConfigs { replica, takes, seen: seen.clone() })));
        let client = faults.client(&self.contest.server);
        let manager = set_up(app.manager(client.clone()).await.unwrap(), client);
        Replica::start(manager, faults)
    }

    /// Sets the state of all objects.
    pub(crate) async fn change(&self, state: u64) {
        change_configs(&self.contest.client, N_KEYS, state).await;
    }

    /// Returns the number of keys whose last reconcile was by this replica.
    pub(crate) fn n_reconciled_by(&self, replica: &str) -> usize {
        self.seen.lock().last.n_reconciled_by(replica)
    }

    /// Returns the number of keys whose last reconcile saw this state, and the replicas that did them.
    fn reconciled_at(&self, state: u64) -> (usize, BTreeSet<&'static str>) {
        self.seen.lock().last.reconciled_at(state)
    }

    /// Waits until every key has reached a state, and returns how long that took.
    pub(crate) async fn wait_until_reconciled_at(&self, state: u64) -> Duration {
        wait_until_reconciled_at(N_KEYS, Duration::from_secs(60), || self.reconciled_at(state)).await
    }

    pub(crate) fn check_nothing_ran_twice(&self) {
        assert_eq!(self.seen.lock().twice, [""; 0]);
        assert_eq!(self.seen.lock().lost, [""; 0], "a cache was older than its slot, or lacked a part of it");
    }

    pub(crate) async fn leases(&self) -> BTreeMap<String, String> {
        let all = self.contest.leases().list(&ListParams::default()).await.unwrap();
        let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        all.iter().map(|lease| (lease.name_any(), holder(lease).unwrap_or_default())).collect()
    }
}
