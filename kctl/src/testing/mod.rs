//! Runs an app on an API server of its own, for tests.

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

/// An app that runs on an embedded API server. Under `#[tokio::test(start_paused = true)]` no time passes.
///
/// ```
/// use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::TestServer};
///
/// /// Deploys what each config map names.
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
    /// Starts the server, installs the definitions of the app's kinds and runs its controllers. Kinds that are only owned, watched
    /// or read are installed as well, where their types have a definition; optional ones (`reads = K(optional)`) only with
    /// [`App::kind`].
    ///
    /// # Errors
    /// When a controller cannot be made, a definition is refused, or a kind is declared that the server does not have: the
    /// error names it. [`App::kind`] adds a definition, and [`start_with`](Self::start_with) one that is no Rust type.
    pub async fn start(app: App) -> Result<Self> {
        Ok(Self(World::start(&app).await?))
    }

    /// Starts the server as [`start`](Self::start), and applies objects before the controllers run, as a stream of YAML documents:
    /// definitions of kinds that have none in Rust, and whatever is there before the app is.
    ///
    /// # Errors
    /// As [`start`](Self::start), and when an object cannot be read or applied.
    pub async fn start_with(app: App, yaml: &str) -> Result<Self> {
        let mut objects = Vec::new();
        app::parse(yaml, "the objects of the test", &mut objects)?;
        Ok(Self(World::start_with(&app, &objects).await?))
    }

    /// A client of the server.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// A client of another cluster (`App::cluster`).
    pub fn cluster(&self, name: &str) -> Option<Client> {
        self.0.others.iter().find(|other| other.name == name).map(|other| other.client.clone())
    }

    /// The API server itself: what was requested, what is stored.
    pub fn server(&self) -> &kctl_apiserver::ApiServer {
        &self.0.server
    }

    /// From here on Deployments, `ReplicaSets` and Jobs have pods and say so, as in a cluster with the controllers of Kubernetes. Those of
    /// other clusters have that always.
    pub fn simulate_workloads(&self) {
        self.0.add_workloads();
    }

    /// Returns once nothing is left to do.
    ///
    /// # Errors
    /// When something is left after a minute: the error names what fails. Under paused time also when a key is reconciled 1,000
    /// times, or one reconcile sends 10,000 requests, while time stands still: such a hot loop would never let time advance. The
    /// error names the controller, the key and what it did, and the app is stopped. Writes by other clients begin the count of
    /// reconciles anew, up to 10,000.
    pub async fn idle(&self) -> Result<()> {
        self.0.idle(Duration::from_secs(60)).await
    }
}
