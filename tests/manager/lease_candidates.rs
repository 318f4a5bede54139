//! An API server with candidates for one Lease, each with a separate connection.

use kctl::{
    Json,
    apiserver::ApiServer,
    k8s::api::coordination::v1::Lease,
    kube::{
        Api, Client,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
};
use kctl_runtime::manager::lease::{ElectionConfig, Elector, End, Leadership};
use kctl_tests::Faults;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Duration, sleep},
};

/// The API server on which the candidates contend.
pub(crate) struct Contest {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
}

/// A running candidate.
pub(crate) struct Candidate {
    pub(crate) faults: Faults,
    pub(crate) leadership: Leadership,
    stop: oneshot::Sender<bool>,
    pub(crate) running: JoinHandle<End>,
}

pub(crate) fn config(identity: &str) -> ElectionConfig {
    let mut config = ElectionConfig::new("podset", "default", identity);
    config.seed = 7;
    config
}

impl Contest {
    pub(crate) fn new() -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        Self { server, client }
    }

    pub(crate) fn leases(&self) -> Api<Lease> {
        Api::default_namespaced(self.client.clone())
    }

    /// Returns the current Lease.
    pub(crate) async fn lease(&self) -> Lease {
        self.leases().get("podset").await.unwrap()
    }

    /// Returns holder, duration and number of transitions of the Lease.
    pub(crate) async fn lease_state(&self) -> (String, i32, i32) {
        let spec = self.lease().await.spec.unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        (holder, spec.lease_duration_seconds.unwrap_or(0), spec.lease_transitions.unwrap_or(0))
    }

    /// Creates the Lease as another client would.
    pub(crate) async fn create(&self, spec: Json) {
        let lease = kctl::json!({ "metadata": { "name": "podset" }, "spec": spec });
        let lease = kctl::from_json(lease).unwrap();
        self.leases().create(&PostParams::default(), &lease).await.unwrap();
    }

    /// Changes the Lease as another client would.
    pub(crate) async fn change(&self, change: Json) {
        self.leases().patch("podset", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// Starts an elector in a task of the test, with separate faults between it and the server.
    pub(crate) fn start(&self, config: ElectionConfig) -> Candidate {
        let faults = Faults::default();
        let (client, server) = (faults.client(&self.server), self.server.clone());
        let elector = Elector::new(client, config, Arc::new(move || server.now())).unwrap();
        let leadership = elector.leadership();
        let (stop, stopped) = oneshot::channel();
        let stopped = async { stopped.await.unwrap_or(false) };
        let running = tokio::spawn(elector.run(stopped));
        Candidate { faults, leadership, stop, running }
    }

    /// Returns verb and status code of the answered requests for the Lease in order, without its watch.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.server.requests();
        let about = requests.iter().filter(|request| request.resource == "leases");
        let about = about.filter(|request| !["list", "watch"].contains(&request.verb));
        about.map(|request| format!("{} {}", request.verb, request.code)).collect()
    }
}

impl Candidate {
    /// Stops the candidate. `release` is `true` if no write is in flight, so that the Lease can be released.
    pub(crate) async fn stop(self, release: bool) -> End {
        self.stop.send(release).unwrap();
        self.running.await.unwrap()
    }
}

pub(crate) async fn advance_seconds(n: u64) {
    sleep(Duration::from_secs(n)).await;
}

/// Returns the error of a write that is based on an outdated `resourceVersion`.
pub(crate) fn conflict() -> kctl::Error {
    let status = r#"{"reason":"Conflict","message":"the object has been modified"}"#;
    ApiError::rejected("update ConfigMap default/conflicts", 409, None, status).into()
}
