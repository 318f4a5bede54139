//! kube-runtime's `Controller` on an embedded API server, with a connection that fails on demand.
//!
//! The tests in `tests/letters.rs` show its behaviour under faults, one letter per row of the table in `README.md`.
//! They fail if a new release of kube-runtime behaves differently, so that the comparison in the book remains correct.

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

/// The log of a test. Clones share the same lines.
///
/// ```
/// let log = kube_controller::Log::default();
/// log.clone().add("reconciled");
/// assert_eq!(log.take(), ["reconciled"]);
/// assert!(log.take().is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// Appends a line, for [`take`](Self::take) to return.
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    /// Removes and returns the lines added since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// An API server, a client that never fails, and injected faults for the controller's client.
///
/// Time is simulated: tests run with a paused clock and advance it with [`seconds`]. So a wait of an hour takes no
/// time, and results don't depend on the machine.
pub struct World {
    /// The API server.
    pub server: ApiServer,
    /// A client without faults.
    pub client: Client,
    /// Faults of the requests of [`own_client`](Self::own_client).
    pub faults: Faults,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("server", &self.server).field("faults", &self.faults).finish_non_exhaustive()
    }
}

impl World {
    /// Creates an empty cluster.
    pub fn empty() -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        Self { server, client, faults: Faults::default() }
    }

    /// Returns a client for the controller. [`faults`](Self::faults) apply to its requests.
    pub fn own_client(&self) -> Client {
        self.faults.client(&self.server)
    }

    /// Runs a controller of `ConfigMap`s that own Pods. It logs the name of each reconciled object.
    ///
    /// Aborting the returned task stops the controller as a crash of its process would.
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
    /// The server rejects it.
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
    /// The server rejects it.
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

    /// Returns the Pod API of the client without faults.
    pub fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    /// Returns the number of answered requests with this verb on a resource.
    pub fn n_requests(&self, verb: &str, resource: &str) -> usize {
        let requests = self.server.requests();
        requests.iter().filter(|request| request.verb == verb && request.resource == resource).count()
    }
}

/// Advances the simulated time by `n` seconds.
pub async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}
