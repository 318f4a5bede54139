//! Tests an app without a cluster: on an embedded API server, under its generated role, and under
//! simulated faults.
//!
//! All of them run the [`App`] that `main` runs. Controllers need no code for tests.
//!
//! | | tests | use it for |
//! |---|---|---|
//! | [`TestServer`] | one sequence of events that you write | what a reconcile does: objects, status, events, webhooks |
//! | [`role_tests!`](crate::role_tests) | runs a test that you write with the generated role, then with one permission removed at a time | a role that is sufficient and minimal; requests that bypass the `Context` |
//! | [`permissions_test!`](crate::permissions_test) | compares the generated role with the verbs that the types of a `Context` allow | code that names verbs in two places, such as your macros |
//! | [`#[kctl::test]`](macro@crate::test), [`Sim`] | many runs of one scenario with crashes, lost responses, late watch events | retries, restarts, leader election, leaked objects, hot loops |
//!
//! A good order is the order of this table: a `TestServer` test is fast and shows one mistake, a
//! simulation finds the cases that no test covers.
//!
//! The embedded API server stores, validates, defaults and serves watches like `kube-apiserver`, and
//! also runs the garbage collector and a simulated kubelet. It does not run images: a Pod becomes
//! ready because the simulated kubelet says so. The workload controllers, such as the Deployment controller, run only
//! after `TestServer::simulate_workloads`.
//!
//! Kubelet and workload controllers need the feature `dev`. With the feature `testing` alone Pods remain `Pending` and
//! Deployments are only stored; a controller of custom resources compiles less that way.
//!
//! # Time
//!
//! Time in these tests is Tokio's. Under `#[tokio::test(start_paused = true)]` it does not advance while a task can run
//! and jumps to the next timer when none can. A backoff of ten minutes takes no real time, and the order of events is
//! the same in each run. `SystemTime::now()` still returns the real time; use
//! [`Context::now`](crate::reconcile::Context::now).
//!
//! # Tests that hang
//!
//! A reconcile that never waits, such as one with `loop {}`, keeps the only thread of a test, so no timeout can fire.
//! After 300 seconds of real time without progress, a `TestServer` or a [`Trial`] prints the controller and the key to
//! standard error and ends the process with code 101. It does the same if simulated time passes and no object is
//! written, because a wait of the test never ends. `KCTL_TEST_STUCK_SECONDS=900` sets another number of seconds, and 0
//! turns this off.
//!
//! Time that passes on a clock that is not paused counts as progress. So on a multi-threaded runtime `idle` fails after a
//! minute, but the end of the runtime waits for that reconcile; write such tests for one thread.
//!
//! # Example
//!
//! ```
//! use kctl::{kube::{Api, api::PostParams}, prelude::*, testing::TestServer};
//!
//! /// Adds the label `seen` to each `ConfigMap`.
//! #[controller(primary(patch))]
//! async fn labels(config: Arc<ConfigMap>, cx: Context<labels>) -> Result<Action> {
//!     if !config.labels().contains_key("seen") {
//!         cx.patch(kctl::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
//!     }
//!     Ok(Action::await_change())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kctl::Result<()> {
//! let server = TestServer::start(App::new("labels").controller::<labels>()).await?;
//! let configs = Api::<ConfigMap>::default_namespaced(server.client());
//! let web = ConfigMap { metadata: ObjectMeta { name: Some("web".into()), ..Default::default() }, ..Default::default() };
//! configs.create(&PostParams::default(), &web).await?;
//! server.idle().await?;
//! assert_eq!(configs.get("web").await?.labels()["seen"], "yes");
//! # Ok(())
//! # }
//! ```

mod bypass;
mod cleanup;
mod created_objects;
mod permissions;
mod real;
mod role;
#[cfg(feature = "sim")]
mod sim;
mod trial;
mod watchdog;

use std::time::Duration;

use kctl_runtime::reconcile::Result;
use kube::Client;

#[doc(hidden)]
pub use permissions::{Allowed, AllowedVerb, Denied, Probe, check_permissions};
pub use role::{check_role, check_whole_role_on_cluster};
#[doc(hidden)]
pub use role::{check_role_on_cluster, names_a_real_server};
#[cfg(feature = "sim")]
pub use sim::{Failure, Report, Scenario, Sim, Snapshot, external};
#[cfg(feature = "sim")]
#[doc(hidden)]
pub use sim::{SimulatedTest, simulate};
pub use trial::Trial;

use self::watchdog::Watchdog;
use crate::{
    App,
    app::{self, World},
};

/// An app that runs on an embedded API server, for tests.
///
/// A test acts as a user. It creates objects with [`client`](Self::client), waits with [`idle`](Self::idle) until the
/// controllers have nothing left to do, and reads what they made. No sleeps and no polling are needed. The app runs
/// under its generated role, so a missing permission fails here as it would in a cluster.
///
/// Under `#[tokio::test(start_paused = true)]` time is simulated: waits, backoffs and Pod starts
/// take no real time. Dropping the value stops the app and the server.
///
/// Use a [`Scenario`] instead when the question is what happens if a request fails or the program
/// crashes halfway.
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
pub struct TestServer {
    world: World,
    _watchdog: Watchdog,
}

impl std::fmt::Debug for TestServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestServer").finish_non_exhaustive()
    }
}

impl TestServer {
    /// Starts the server, installs the CRDs of the app's kinds and runs its controllers.
    ///
    /// Kinds that are only owned, watched or read are installed as well, if their types have a CRD.
    /// Admission functions and conversions are registered, and are called within the process. For
    /// each cluster of [`App::cluster`] another server starts.
    ///
    /// # Errors
    /// A controller can't be created, the API server rejects a CRD, or it does not serve a declared
    /// kind; the error names the kind. [`App::kind`] adds a CRD from a type, and
    /// [`start_with`](Self::start_with) one from YAML. Also if `KCTL_TEST_STUCK_SECONDS` is not a number.
    pub async fn start(app: App) -> Result<Self> {
        let watchdog = Watchdog::start()?;
        Ok(Self::with_watchdog(World::start(&app).await?, watchdog))
    }

    /// Starts the server like [`start`](Self::start), and applies a stream of YAML documents before
    /// the controllers run: CRDs of kinds without a Rust type, and initial objects.
    ///
    /// Documents are separated by `---`, as in a file for `kubectl apply`. Objects without a
    /// namespace go to `default`.
    ///
    /// ```
    /// use kctl::{kube::Api, prelude::*, testing::TestServer};
    ///
    /// /// Deletes each `ConfigMap`.
    /// #[controller(primary(delete))]
    /// async fn cleaner(_config: Arc<ConfigMap>, cx: Context<cleaner>) -> Result<Action> {
    ///     cx.delete().await?;
    ///     Ok(Action::await_change())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> kctl::Result<()> {
    /// let objects = "
    /// apiVersion: v1
    /// kind: ConfigMap
    /// metadata: { name: a }
    /// ---
    /// apiVersion: v1
    /// kind: ConfigMap
    /// metadata: { name: b }
    /// ";
    /// let server = TestServer::start_with(App::new("cleaner").controller::<cleaner>(), objects).await?;
    /// server.idle().await?;
    /// let configs = Api::<ConfigMap>::default_namespaced(server.client());
    /// assert!(configs.get_opt("a").await?.is_none());
    /// assert!(configs.get_opt("b").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`start`](Self::start), or an object can't be parsed or applied.
    pub async fn start_with(app: App, yaml: &str) -> Result<Self> {
        let mut objects = Vec::new();
        app::parse(yaml, "the objects of the test", &mut objects)?;
        let watchdog = Watchdog::start()?;
        Ok(Self::with_watchdog(World::start_with(&app, &objects).await?, watchdog))
    }

    fn with_watchdog(world: World, watchdog: Watchdog) -> Self {
        watchdog.watch_world(&world);
        Self { world, _watchdog: watchdog }
    }

    /// Returns a client of the server with all permissions, in the namespace `default`.
    ///
    /// It is the user of the test, not the app: its requests are not checked against the app's
    /// role.
    pub fn client(&self) -> Client {
        self.world.client.clone()
    }

    /// Returns a client of another cluster of the app ([`App::cluster`]), or `None` if there is no
    /// cluster of that name.
    ///
    /// Like [`client`](Self::client), it has all permissions.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::TestServer};
    ///
    /// /// Counts the Pods of the cluster `edge`.
    /// #[controller(reads = Pod(on = "edge"))]
    /// async fn census(_config: Arc<ConfigMap>, cx: Context<census>) -> Result<Action> {
    ///     println!("{} pods", cx.store::<Pod>().len());
    ///     Ok(Action::await_change())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> kctl::Result<()> {
    /// let app = App::new("census").controller::<census>();
    /// // In a test the closure is not called: an embedded API server takes its place.
    /// let server = TestServer::start(app.cluster("edge", || async { Err("no such cluster".into()) })).await?;
    /// assert!(server.cluster("edge").is_some());
    /// assert!(server.cluster("moon").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cluster(&self, name: &str) -> Option<Client> {
        self.world.others.iter().find(|other| other.name == name).map(|other| other.client.clone())
    }

    /// Returns the API server itself, with its request log and its stored objects.
    ///
    /// Use it to assert on requests instead of objects, for example that an app at rest sends none:
    ///
    /// ```
    /// use kctl::{prelude::*, testing::TestServer};
    ///
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> kctl::Result<()> {
    /// let server = TestServer::start(App::new("idler").controller::<idle>()).await?;
    /// server.idle().await?;
    /// let user = "system:serviceaccount:default:idler";
    /// let before = server.server().requests().iter().filter(|request| request.user == user).count();
    /// tokio::time::sleep(Duration::from_secs(30)).await;
    /// let after = server.server().requests().iter().filter(|request| request.user == user).count();
    /// assert_eq!(before, after);
    /// # Ok(())
    /// # }
    /// ```
    pub fn server(&self) -> &kctl_apiserver::ApiServer {
        &self.world.server
    }

    /// Starts controllers that create Pods for Deployments, `ReplicaSets` and Jobs and report their
    /// status, as in a cluster.
    ///
    /// Call it in a test of an app that waits for a Deployment to be available or for a Job to
    /// complete. Without it such an object is stored and nothing else happens, as on a control
    /// plane without `kube-controller-manager`. Further calls have no effect. Other clusters of the
    /// app run these controllers from the start.
    ///
    /// ```
    /// use kctl::{kube::Api, prelude::*, testing::TestServer};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> kctl::Result<()> {
    /// let job = "
    /// apiVersion: batch/v1
    /// kind: Job
    /// metadata: { name: pi }
    /// spec: { template: { spec: { restartPolicy: Never, containers: [{ name: pi, image: perl }] } } }
    /// ";
    /// let server = TestServer::start_with(App::new("nothing"), job).await?;
    /// server.simulate_workloads();
    /// server.idle().await?;
    /// let job = Api::<Job>::default_namespaced(server.client()).get("pi").await?;
    /// assert_eq!(job.status.and_then(|status| status.succeeded), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "dev")]
    pub fn simulate_workloads(&self) {
        self.world.add_workloads();
    }

    /// Waits until nothing is left to do: no key is queued or reconciled, and all caches are up to
    /// date.
    ///
    /// A key that waits for a requeue in the future does not count, so the call returns although
    /// `Action::requeue` was used. To see that reconcile, advance time and call `idle` again:
    ///
    /// ```
    /// use kctl::{kube::Api, prelude::*, testing::TestServer};
    ///
    /// /// Deletes each `ConfigMap` an hour after it was created.
    /// #[controller(primary(delete))]
    /// async fn expires(config: Arc<ConfigMap>, cx: Context<expires>) -> Result<Action> {
    ///     let created = config.creation_timestamp().map_or(cx.now(), |time| time.0);
    ///     if cx.now().duration_since(created).as_hours() >= 1 {
    ///         cx.delete().await?;
    ///         return Ok(Action::await_change());
    ///     }
    ///     Ok(Action::requeue(Duration::from_secs(3_600)))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> kctl::Result<()> {
    /// let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}";
    /// let server = TestServer::start_with(App::new("expires").controller::<expires>(), config).await?;
    /// let configs = Api::<ConfigMap>::default_namespaced(server.client());
    /// server.idle().await?;
    /// assert!(configs.get_opt("web").await?.is_some());
    /// tokio::time::sleep(Duration::from_secs(3_601)).await;
    /// server.idle().await?;
    /// assert!(configs.get_opt("web").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The app is still busy after a minute; the error names what fails or waits. Under paused time also if a key is
    /// reconciled 1,000 times without time passing, or if one reconcile, or the caches of one kind, send 10,000
    /// requests. Such a hot loop would never let time advance. The error names the controller, the key and its
    /// requests, and the app is stopped. Writes by other clients restart the count of reconciles, up to 10,000.
    ///
    /// A key that is not retried, after a [terminal](kctl_runtime::reconcile::ResultExt::terminal) error for example, is not
    /// busy: the call succeeds. `dev --until-idle` fails for it. Assert on the object's status or events.
    ///
    /// # Cancel safety
    /// Dropping the future stops only the waiting. The app keeps running.
    pub async fn idle(&self) -> Result<()> {
        self.world.idle(Duration::from_secs(60)).await
    }
}
