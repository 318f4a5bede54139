//! A server, a connection that fails on demand, and kube's `Controller` on it, for tests of what that does.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kctl_apiserver::ApiServer;
use kctl_tests::Faults;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use kube_runtime::{
    Controller,
    controller::{Action, Config},
    watcher,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinHandle;

/// Record of the steps of a test.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Adds a line.
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    /// The lines since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A server, a client that never fails, and faults for the one of the controller.
pub struct World {
    /// The API server.
    pub server: ApiServer,
    /// Never fails.
    pub client: Client,
    /// Faults of the requests of [`own_client`](Self::own_client).
    pub faults: Faults,
}

impl World {
    /// An empty cluster.
    pub fn empty() -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        Self { server, client, faults: Faults::default() }
    }

    /// The client of the controller.
    pub fn own_client(&self) -> Client {
        self.faults.client(&self.server)
    }

    /// Runs a controller of `ConfigMap`s that owns pods and writes down what it is called for.
    pub fn run_logging(&self, log: &Log, config: Config) -> JoinHandle<()> {
        let client = self.own_client();
        let controller =
            Controller::new(Api::<ConfigMap>::default_namespaced(client.clone()), watcher::Config::default())
                .owns(Api::<Pod>::default_namespaced(client), watcher::Config::default())
                .with_config(config);
        let log = log.clone();
        let reconcile = move |config: Arc<ConfigMap>, _context: Arc<()>| {
            log.add(config.name_any());
            async { Ok::<_, Infallible>(Action::await_change()) }
        };
        let items = controller.run(reconcile, |_, never, _| match *never {}, Arc::new(()));
        tokio::spawn(items.for_each(|_item| std::future::ready(())))
    }

    /// Creates a `ConfigMap`, or changes its data.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn set(&self, name: &str, text: &str) -> kube::Result<ConfigMap> {
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "text": text },
        });
        let configs = Api::<ConfigMap>::default_namespaced(self.client.clone());
        configs.patch(name, &PatchParams::apply("test"), &Patch::Apply(config)).await
    }

    /// Creates a pod that a `ConfigMap` controls.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn create_pod_of(&self, owner: &ConfigMap) -> kube::Result<Pod> {
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(), "controller": true,
        });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": owner.name_any(), "ownerReferences": [reference] },
            "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
        });
        self.pods().patch(&owner.name_any(), &PatchParams::apply("test"), &Patch::Apply(pod)).await
    }

    /// The pods, by the client that never fails.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    /// Answered requests with this verb on a resource.
    pub fn n_requests(&self, verb: &str, resource: &str) -> usize {
        let requests = self.server.requests();
        requests.iter().filter(|request| request.verb == verb && request.resource == resource).count()
    }
}

/// Advances the simulated time by `n` seconds.
pub async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}
