//! Puts the stages of the control loop together, and starts and stops them in order.
//!
//! A [`Manager`] holds the controllers of one process. Controllers that read the same kind with the same
//! selectors share one cache. [`Manager::run`] starts as controller-runtime's manager does:
//!
//! 1. HTTP servers for health, metrics and debugging, and all caches.
//! 2. With leader election: wait until the caches are full, then until this process leads, then bring the
//!    caches up to the state that the previous leader left.
//! 3. Event handlers, which queue each object once.
//! 4. Workers, when the caches of their controller are full.
//!
//! At the end the queues close, running reconciles finish within the graceful timeout, waiting events are
//! sent, and the Lease is released.
//!
//! ```
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kctl_runtime::{
//!     manager::Manager,
//!     reconcile::{Action, Context, Controller, Reconcile, Result},
//!     spec::{ControllerSpec, SpecBuilder},
//! };
//!
//! struct Settings;
//!
//! impl Controller for Settings {
//!     type Primary = ConfigMap;
//!     type Verbs = ();
//!
//!     fn spec() -> ControllerSpec {
//!         SpecBuilder::<Self>::new("Settings", file!(), line!()).build()
//!     }
//! }
//!
//! impl Reconcile for Settings {
//!     async fn reconcile(&self, object: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
//!         println!("{:?}", object.metadata.name);
//!         Ok(Action::await_change())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # use kube::client::Body;
//! # type Response = http::Response<Body>;
//! # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
//! # let client = kube::Client::new(tower::service_fn(offline), "default");
//! let mut manager = Manager::new(client, "settings.example.com", Arc::new(|report| {
//!     println!("{} {}: {:?}", report.controller, report.key, report.outcome);
//! }));
//! manager.add(Settings);
//!
//! // A program passes a future that is ready at SIGTERM.
//! let shutdown = async {};
//! manager.run(shutdown).await?;
//! # Ok::<_, kctl_runtime::manager::ManagerError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules below can be used alone: [`lease`] elects a leader, [`metrics`] collects and prints metrics,
//! [`health`] answers probes, and [`serve`] listens for them.

mod coordination;
mod debug;
mod endpoints;
mod external;
mod handlers;
pub mod health;
mod history;
mod idle;
pub mod lease;
mod lifecycle;
pub mod metrics;
mod options;
mod register;
pub mod ring;
pub mod serve;
pub mod shards;
mod shared_options;
mod unreadable;
mod unused;
mod view;

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use kube::Client;
use tokio::{net::TcpListener, sync::watch};

use self::{
    endpoints::Page,
    external::{Bound, ReadyCheck},
    history::History,
    lease::{ElectionRuntime, Elector, SoleLease},
    metrics::Metrics,
    register::Registered,
    ring::RingView,
    shards::Coordinator,
    shared_options::SharedOptions,
};
use crate::{
    object::Kind,
    watches::{CloseOnDrop, InformerHandle, Informers, Watches},
    worker::Observer,
    writer::WritePermit,
};

pub use crate::clock::Clock;
pub use lifecycle::ManagerError;
pub use unused::UnusedCache;
pub use view::View;

/// Default time that running reconciles get to finish after the manager is stopped (as in
/// controller-runtime).
pub const GRACEFUL_TIMEOUT: Duration = Duration::from_secs(30);

/// Default number of consecutive failures after which a `Warning` event is recorded on the object. With the default
/// backoff the nine waits before the tenth failure take 2.6 s.
pub const WARN_AFTER_FAILURES: u32 = 10;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The controllers of one process.
///
/// The module's page has an example. Options that return `Self` are set first. [`add`](Self::add) and the
/// other `&mut self` methods follow, then [`run`](Self::run) consumes the manager. Take a
/// [`view`](Self::view) before, to look into the running one.
///
/// `kctl::App` builds a manager from flags and a declaration; use this type directly to run the loop inside
/// another program.
///
/// | Set | By | Default |
/// |---|---|---|
/// | other clusters | [`cluster`](Self::cluster) | none |
/// | namespaces | [`namespaces`](Self::namespaces) | the namespaces of each declaration |
/// | leader election | [`elect`](Self::elect) | off: this process works at once |
/// | keys shared by several replicas | [`shard`](Self::shard), or [`join_ring`](Self::join_ring) | off: this process works on all keys |
/// | time for running reconciles at a stop | [`graceful_timeout`](Self::graceful_timeout) | 30 s |
/// | events about failures | [`warn_after_failures`](Self::warn_after_failures) | after 10 failures in a row |
/// | initial state as a stream | [`stream_states`](Self::stream_states) | lists |
/// | health, metrics and debug pages | [`serve_health`](Self::serve_health) and others | not served |
pub struct Manager {
    /// Reaches the default cluster, in which the Lease is.
    client: Client,
    /// Clients of other clusters, by the name in `on = name`.
    clusters: BTreeMap<String, Client>,
    /// Field manager of all writes and reporting controller of all events.
    name: String,
    shared_options: Arc<SharedOptions>,
    metrics: Metrics,
    history: Arc<History>,
    /// Shared by all writers. It is bound to the Lease by [`Manager::elect`], even after controllers were added.
    permit: WritePermit,
    sole_lease: SoleLease,
    elector: Option<Elector>,
    /// The runtime of all elections; `None` for the manager's runtime.
    election_runtime: Option<ElectionRuntime>,
    /// Set in a sharded program.
    coordinator: Option<Coordinator>,
    /// Set in a shard of a controller ring.
    ring: Option<RingView>,
    /// Kinds whose objects are all cached by each replica of a sharded program.
    whole: Vec<Kind>,
    graceful_timeout: Option<Duration>,
    warn_after_failures: Arc<AtomicU32>,
    servers: Vec<(TcpListener, Page)>,
    bounds: Vec<Bound>,
    others_ready: Vec<ReadyCheck>,
    namespaces: Vec<String>,
    /// `true` once the manager stops: nothing new begins then.
    stopping: watch::Sender<bool>,
    /// The futures that send events, one per controller.
    recorders: Vec<Task>,
    background: Vec<Task>,
    /// All caches, declared and opened at run time. Dropping it ends their watches.
    informers: CloseOnDrop,
    caches: Vec<InformerHandle>,
    controllers: Vec<Registered>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manager")
            .field("name", &self.name)
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

impl Manager {
    /// Creates a manager without controllers.
    ///
    /// `name` is the field manager of all writes and the reporting controller of events, usually a domain name.
    /// `observer` is called after each reconcile; pass `Arc::new(|_| {})` if nothing needs it.
    ///
    /// The observer runs on the worker's task before the next key is taken, so it must not block. One that panics is
    /// logged, and the worker continues.
    pub fn new(client: Client, name: &str, observer: Observer) -> Self {
        Self {
            client,
            clusters: BTreeMap::new(),
            name: name.into(),
            shared_options: SharedOptions::new(observer),
            metrics: Metrics::default(),
            history: Arc::default(),
            permit: WritePermit::always(),
            sole_lease: SoleLease::default(),
            election_runtime: None,
            elector: None,
            coordinator: None,
            ring: None,
            whole: Vec::new(),
            graceful_timeout: Some(GRACEFUL_TIMEOUT),
            warn_after_failures: Arc::new(WARN_AFTER_FAILURES.into()),
            servers: Vec::new(),
            bounds: Vec::new(),
            others_ready: Vec::new(),
            namespaces: Vec::new(),
            stopping: watch::Sender::new(false),
            recorders: Vec::new(),
            background: Vec::new(),
            informers: CloseOnDrop(Informers::new()),
            caches: Vec::new(),
            controllers: Vec::new(),
        }
    }

    /// Returns the client of the default cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns a handle that opens watches at run time, on the clusters that were added so far.
    ///
    /// A watch of a kind that a controller caches already shares that cache.
    ///
    /// [`Watches`] describes what a reconcile function does with it. The handle outlives the manager; then its watches
    /// are closed.
    pub fn watches(&self) -> Watches {
        Watches::new(self.informers.0.clone(), self.client.clone(), self.clusters.clone())
    }

    /// Adds a task that runs next to the controllers, such as a stream of triggers. It is dropped when the
    /// manager ends; ending earlier is fine.
    ///
    /// Panics in it do not stop the manager.
    pub fn background(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.push(Box::pin(task));
    }

    /// Returns the metrics of this manager; add your own with [`Metrics::register`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
