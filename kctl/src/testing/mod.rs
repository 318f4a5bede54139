//! Tests of an app against an embedded API server: [`TestServer`], role tests, and simulation with [`Scenario`].

mod bypass;
mod emitted;
mod made;
mod real;
mod refusal;
mod role;
mod sim;
mod trial;

use std::time::Duration;

use kctl_runtime::reconcile::Result;
use kube::Client;

pub use emitted::check_grants;
#[doc(hidden)]
pub use emitted::{Emitted, Granted, Probe, Refused};
pub(crate) use refusal::Refusals;
#[doc(hidden)]
pub use role::names_a_real_server;
pub use role::{check_role, check_role_on_cluster, check_whole_role_on_cluster};
#[doc(hidden)]
pub use sim::simulate;
pub use sim::{Failure, Report, Scenario, Sim, Snapshot};
pub use trial::Trial;

use crate::{
    App,
    app::{self, World},
};

/// An app that runs on an embedded API server, for tests.
///
/// Under `#[tokio::test(start_paused = true)]` time is simulated: waits, backoffs and Pod starts take no real time. Dropping the value
/// stops the app and the server.
///
/// ```
/// use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::TestServer};
///
/// /// Keeps a `ServiceAccount` for each `ConfigMap`.
/// #[controller(owns = ServiceAccount(create))]
/// async fn accounts(config: Arc<ConfigMap>, cx: Context<accounts>) -> Result<Action> {
///     let owned = cx.owned::<ServiceAccount>();
///     if owned.is_empty() {
///         let name = Some(config.name_any());
///         owned.create(ServiceAccount { metadata: ObjectMeta { name, ..Default::default() }, ..Default::default() }).await?;
///     }
///     Ok(Action::await_change())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> kctl::Result<()> {
/// let server = TestServer::start(App::new("accounts").controller::<accounts>()).await?;
/// let config = kctl::from_json(kctl::json!({ "metadata": { "name": "web" } }))?;
/// Api::<ConfigMap>::default_namespaced(server.client()).create(&PostParams::default(), &config).await?;
/// server.idle().await?;
/// let accounts = Api::<ServiceAccount>::default_namespaced(server.client());
/// assert!(accounts.get_opt("web").await?.is_some());
/// # Ok(())
/// # }
/// ```
pub struct TestServer(World);

impl TestServer {
    /// Starts the server, installs the CRDs of the app's kinds and runs its controllers. Kinds that are only owned, watched or read are
    /// installed as well, if their types have a CRD.
    ///
    /// # Errors
    /// A controller can't be created, the API server rejects a CRD, or it does not serve a declared kind; the error names the kind.
    /// [`App::kind`] adds a CRD from a type, and [`start_with`](Self::start_with) one from YAML.
    pub async fn start(app: App) -> Result<Self> {
        Ok(Self(World::start(&app).await?))
    }

    /// Starts the server like [`start`](Self::start), and applies a stream of YAML documents before the controllers run: CRDs of kinds
    /// without a Rust type, and initial objects.
    ///
    /// # Errors
    /// As [`start`](Self::start), or an object can't be parsed or applied.
    pub async fn start_with(app: App, yaml: &str) -> Result<Self> {
        let mut objects = Vec::new();
        app::parse(yaml, "the objects of the test", &mut objects)?;
        Ok(Self(World::start_with(&app, &objects).await?))
    }

    /// Returns a client of the server with all permissions.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// Returns a client of another cluster of the app (`App::cluster`), or `None` if there is no cluster of that name.
    pub fn cluster(&self, name: &str) -> Option<Client> {
        self.0.others.iter().find(|other| other.name == name).map(|other| other.client.clone())
    }

    /// Returns the API server itself, with its request log and its stored objects.
    pub fn server(&self) -> &kctl_apiserver::ApiServer {
        &self.0.server
    }

    /// From here on Deployments, `ReplicaSets` and Jobs have pods and say so, as in a cluster with the controllers of Kubernetes. Those of
    /// other clusters have that always.
    pub fn simulate_workloads(&self) {
        self.0.add_workloads();
    }

    /// Waits until nothing is left to do: no key is queued or reconciled, and all caches are up to date.
    ///
    /// # Errors
    /// The app is still busy after a minute; the error names what fails or waits. Under paused time also if a key is reconciled 1,000
    /// times, or one reconcile sends 10,000 requests, without time passing: such a hot loop would never let time advance. The error
    /// names the controller, the key and its requests, and the app is stopped. Writes by other clients restart the count of reconciles,
    /// up to 10,000.
    pub async fn idle(&self) -> Result<()> {
        self.0.idle(Duration::from_secs(60)).await
    }
}
