//! Several processes of one app that reconcile `ConfigMap`s with a state, and the work that they have done.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use kctl::{
    kube::{
        Api, Client,
        api::{Patch, PatchParams, PostParams},
    },
    manager::{Manager, ManagerError, View},
    prelude::*,
};
use kctl_runtime::manager::{health::Health, metrics::Metrics};
use kctl_tests::Faults;
use serde_json::json;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep},
};

/// A process of the app.
pub(crate) struct Replica {
    pub(crate) faults: Faults,
    pub(crate) view: View,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) running: JoinHandle<Result<(), ManagerError>>,
}

impl Replica {
    /// Runs a manager whose client has these faults.
    pub(crate) fn start(manager: Manager, faults: Faults) -> Self {
        let (view, metrics) = (manager.view(), manager.metrics().clone());
        let health = Health::new(view.clone(), metrics.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(manager.run(async move { drop(stopped.await) }));
        Self { faults, view, metrics, health, stop, running }
    }

    pub(crate) async fn stop(self) -> Result<(), ManagerError> {
        self.stop.send(()).unwrap();
        self.running.await.unwrap()
    }

    pub(crate) async fn crash(self) {
        self.running.abort();
        let _aborted = self.running.await;
    }

    /// Panics with the result of the manager if it has ended. A test that waits for a replica would not notice.
    pub(crate) fn check_running(&mut self) {
        if let Some(ended) = (&mut self.running).now_or_never() {
            panic!("the manager has ended: {ended:?}");
        }
    }

    /// Returns the Lease that it needs, its slots and the checks of `/readyz`, for the message of a failing test.
    pub(crate) fn state(&self) -> String {
        let leadership = self.view.leadership().map(|lease| (lease.state(), lease.holder(), lease.failure()));
        let mut slots = BTreeMap::<_, Vec<u32>>::new();
        if let Some(shards) = self.view.shards() {
            for slot in shards.slots() {
                slots.entry((slot.state, slot.owner)).or_default().push(slot.slot);
            }
        }
        let checks: Vec<_> = self.health.ready().into_iter().map(|check| (check.name, check.result)).collect();
        format!("Lease: {leadership:?}\nslots by state and owner: {slots:?}\nchecks: {checks:?}\n")
    }

    /// Returns the names of the cached objects of a kind.
    pub(crate) fn cached_names(&self, plural: &str) -> BTreeSet<String> {
        let source = self.view.sources().iter().find(|source| source.config().kind.plural == plural).unwrap();
        source.store().all().iter().map(|object| object.key().name.to_string()).collect()
    }

    /// Returns the result of a check of `/readyz`.
    pub(crate) fn check(&self, name: &str) -> std::result::Result<String, String> {
        self.health.ready().into_iter().find(|check| check.name == name).unwrap().result
    }
}

/// The last finished reconcile of each key: state, process and time.
#[derive(Default)]
pub(crate) struct Finished(BTreeMap<String, (u64, &'static str, Instant)>);

impl Finished {
    pub(crate) fn note(&mut self, key: String, state: u64, by: &'static str) {
        self.0.insert(key, (state, by, Instant::now()));
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the number of keys whose last reconcile was by this process.
    pub(crate) fn n_reconciled_by(&self, process: &str) -> usize {
        self.0.values().filter(|(_, by, _)| *by == process).count()
    }

    /// Returns the number of keys whose last reconcile saw this state, and the processes that did them.
    pub(crate) fn reconciled_at(&self, state: u64) -> (usize, BTreeSet<&'static str>) {
        let reached: Vec<_> = self.0.values().filter(|(last, ..)| *last == state).collect();
        (reached.len(), reached.iter().map(|(_, process, _)| *process).collect())
    }
}

/// Waits until this many keys have reached a state, and returns how long that took.
pub(crate) async fn wait_until_reconciled_at(
    n: usize,
    within: Duration,
    reached: impl Fn() -> (usize, BTreeSet<&'static str>),
) -> Duration {
    let begun = Instant::now();
    while reached().0 < n {
        assert!(begun.elapsed() < within, "{:?}", reached());
        sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

/// Returns the state that a primary asks for.
pub(crate) fn state_of(config: &ConfigMap) -> u64 {
    config.data.as_ref().and_then(|data| data["state"].parse().ok()).unwrap_or_default()
}

/// Creates this many primaries with the state 0.
pub(crate) async fn create_configs(client: &Client, n: usize) {
    for number in 0..n {
        let config = json!({ "metadata": { "name": format!("config-{number}") }, "data": { "state": "0" } });
        let config = kctl::from_json(config).unwrap();
        Api::<ConfigMap>::default_namespaced(client.clone()).create(&PostParams::default(), &config).await.unwrap();
    }
}

/// Sets the state of all primaries.
pub(crate) async fn change_configs(client: &Client, n: usize, state: u64) {
    for number in 0..n {
        change_config(client, &format!("config-{number}"), state).await;
    }
}

/// Sets the state of one primary.
pub(crate) async fn change_config(client: &Client, name: &str, state: u64) {
    let patch = Patch::Merge(json!({ "data": { "state": state.to_string() } }));
    let configs = Api::<ConfigMap>::default_namespaced(client.clone());
    configs.patch(name, &PatchParams::default(), &patch).await.unwrap();
}
