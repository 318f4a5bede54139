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

mod debug;
mod handlers;
pub mod health;
mod idle;
pub mod lease;
mod lifecycle;
pub mod metrics;
pub mod ring;
pub mod serve;
mod settable;
pub mod shards;
mod unreadable;
mod unused;

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kube::Client;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch};

pub use crate::clock::Clock;
pub use lifecycle::ManagerError;
pub use unused::UnusedCache;

use self::{
    debug::History,
    handlers::Handlers,
    lease::{ElectionConfig, ElectionError, Elector, Leadership},
    metrics::Metrics,
    ring::RingView,
    settable::Settable,
    shards::{Coordinator, Planted, ShardConfig, ShardView},
    unused::Declared,
};
use crate::{
    handler::SpawnedHandler,
    key::ObjectKey,
    object::Kind,
    queue::{Backoff, QueueConfig, WorkQueue},
    reconcile::{Applied, Env, NoopWrites, Reconcile, UsedCaches},
    shard::Gate,
    source::{Source, WatchConfig},
    spec::{ControllerSpec, RelationKind, RelationSpec, finalizer_warning},
    watches::{Closing, InformerHandle, Informers, Watches},
    worker::{BeginObserver, Observer, Pool},
    writer::{Recorder, RecorderView, WritePermit, Writer},
};

/// Default time that running reconciles get to finish after the manager is stopped (as in
/// controller-runtime).
pub const GRACEFUL_TIMEOUT: Duration = Duration::from_secs(30);

/// Default number of consecutive failures after which a `Warning` event is recorded on the object; with the
/// default backoff that is after 5 s.
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
/// | namespaces | [`namespaces`](Self::namespaces) | those of each declaration |
/// | leader election | [`elect`](Self::elect) | off: this process works at once |
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
    settable: Arc<Settable>,
    metrics: Metrics,
    history: Arc<History>,
    /// Shared by all writers. It is bound to the Lease by [`Manager::elect`], even after controllers were added.
    permit: WritePermit,
    elector: Option<Elector>,
    /// Set in a sharded program.
    coordinator: Option<Coordinator>,
    /// Set in a shard of a controller ring.
    ring: Option<RingView>,
    /// Kinds of which each replica of a sharded program caches all objects.
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
    informers: Closing,
    /// The caches of its controllers.
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

/// The pages of one listener.
enum Page {
    Health,
    Metrics,
    /// With the client that sends the reviews.
    SecureMetrics(Client, serve::Tls),
    /// The debug page, and the hosts that requests may name in addition to loopback.
    Debug(Vec<String>),
}

/// A controller that was added, ready to start.
///
/// Its queue exists before its workers, so that a view can read it at any time.
struct Registered {
    env: Arc<Env>,
    queue: WorkQueue<ObjectKey>,
    workers: Task,
    handlers: Handlers,
}

/// A bound outside of the loop, such as a webhook's connections, which metrics show as well.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) used: Arc<dyn Fn() -> usize + Send + Sync>,
    pub(crate) limit: usize,
}

/// Returns a note if something outside of the loop is ready, or the reason why it is not.
type IsReady = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// A check of `/readyz` for something outside of the loop.
#[derive(Clone)]
struct ReadyCheck {
    name: &'static str,
    is_ready: IsReady,
}

/// A running manager, seen from outside: its caches, queues, handlers and leader election.
///
/// [`Manager::view`] returns it before the manager runs, and it stays valid afterwards. Health, metrics and
/// the debug page read it; `kctl dev` waits with [`is_idle`](Self::is_idle).
///
/// A view keeps no task alive, and reading it only takes short locks. It is cheap to clone.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # use kube::client::Body;
/// # type Response = http::Response<Body>;
/// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
/// # let client = kube::Client::new(tower::service_fn(offline), "default");
/// # use std::sync::Arc;
/// use kctl_runtime::manager::Manager;
///
/// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {}));
/// let view = manager.view();
/// for (spec, queue) in view.controllers() {
///     println!("{}: {} keys wait", spec.name, queue.len());
/// }
/// assert!(view.controllers().is_empty() && view.leadership().is_none());
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct View {
    sources: Vec<Arc<Source>>,
    informers: Informers,
    bounds: Vec<Bound>,
    others_ready: Vec<ReadyCheck>,
    /// Declaration and queue of each controller, in the order in which they were added.
    queues: Vec<(ControllerSpec, WorkQueue<ObjectKey>)>,
    primaries: Vec<Arc<Source>>,
    /// For each controller, the caches that its workers wait for.
    awaited: Vec<Vec<Arc<Source>>>,
    recorders: Vec<RecorderView>,
    /// Handlers with user code, which have their own backlogs.
    spawned_handlers: Vec<Arc<SpawnedHandler>>,
    leadership: Option<Leadership>,
    shards: Option<ShardView>,
    ring: Option<RingView>,
    /// The gates of all controllers, which are open for the slots that they work on.
    gates: Vec<Gate>,
    declared: Vec<Declared>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("sources", &self.sources).finish_non_exhaustive()
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
            settable: Settable::new(observer),
            metrics: Metrics::default(),
            history: Arc::default(),
            permit: WritePermit::always(),
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
            informers: Closing(Informers::new()),
            caches: Vec::new(),
            controllers: Vec::new(),
        }
    }

    /// Adds the client of another cluster, for relations that are declared with `on = name`.
    ///
    /// Applies to controllers that are added later. Leader election uses the first
    /// client, and events of a controller that of its primary.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// # let member_client = client.clone();
    /// use std::sync::Arc;
    /// use kctl_runtime::manager::Manager;
    ///
    /// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {}))
    ///     .cluster("member-1", member_client);
    /// # drop(manager);
    /// # });
    /// # Ok::<_, std::io::Error>(())
    /// ```
    #[must_use]
    pub fn cluster(mut self, name: &str, client: Client) -> Self {
        self.clusters.insert(name.into(), client);
        self
    }

    /// Replaces the clock for times that are written into objects. The default is the system's.
    ///
    /// Timers, backoff and the election are not affected: they use tokio's clock, which tests can pause.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        self.settable.set_clock(clock);
        self
    }

    /// Sets a function that is called with controller, key and trace when a reconcile begins.
    ///
    /// Together with [`on_end`](Self::on_end) it can open and close a span of a tracing system.
    #[must_use]
    pub fn on_begin(self, begun: BeginObserver) -> Self {
        self.settable.set_begun(begun);
        self
    }

    /// Adds a function that is called after each reconcile, after the earlier ones.
    #[must_use]
    pub fn on_end(self, ended: Observer) -> Self {
        self.settable.add_ended(ended);
        self
    }

    /// Enables leader election: reconciles run only while this process holds the Lease.
    ///
    /// Caches are filled before, so a standby takes over without listing everything. Each write also checks
    /// the rest of the Lease ([`WritePermit`]).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// use std::sync::Arc;
    /// use kctl_runtime::manager::{Manager, lease::{ElectionConfig, identity}};
    ///
    /// let config = ElectionConfig::new("settings.example.com", "shop", &identity());
    /// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {})).elect(config)?;
    /// assert!(manager.view().leadership().is_some_and(|leadership| !leadership.is_leading()));
    /// # Ok::<_, kctl_runtime::manager::lease::ElectionError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ElectionError`] if names or times in the configuration are invalid; it names the flag.
    pub fn elect(self, config: ElectionConfig) -> Result<Self, ElectionError> {
        let client = self.client.clone();
        self.elect_by(client, config)
    }

    /// Does the same with a separate client for the Lease, so that its requests don't wait behind rate-limited
    /// ones.
    ///
    /// # Errors
    /// As [`elect`](Self::elect).
    pub fn elect_by(mut self, client: Client, config: ElectionConfig) -> Result<Self, ElectionError> {
        let elector = Elector::new(client, config, self.settable.clock())?;
        self.permit.bind(&elector.leadership().permit());
        self.elector = Some(elector);
        Ok(self)
    }

    /// Enables leader election without the check before writes, so that tests show what it prevents.
    pub(crate) fn elect_unfenced(mut self, config: ElectionConfig) -> Result<Self, ElectionError> {
        self.elector = Some(Elector::new(self.client.clone(), config, self.settable.clock())?);
        Ok(self)
    }

    /// Shares the keys among all replicas: each reconciles the keys of its slots, instead of one that reconciles all.
    ///
    /// Excludes [`elect`](Self::elect): the last call of either counts. `client` sends the requests about Leases.
    /// Replicas join and leave at any time; [`shards`] describes how slots move.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// use std::sync::Arc;
    /// use kctl_runtime::{
    ///     manager::{Manager, lease::{ElectionConfig, identity}, shards::ShardConfig},
    ///     shard::ShardBy,
    /// };
    ///
    /// let leases = ElectionConfig::new("settings.example.com", "shop", &identity());
    /// let config = ShardConfig::new(leases, 16, ShardBy::Object)?;
    /// let manager = Manager::new(client.clone(), "settings.example.com", Arc::new(|_report| {})).shard(client, config)?;
    /// assert_eq!(manager.view().shards().map(|shards| shards.n_owned()), Some(0));
    /// # Ok::<_, kctl_runtime::manager::shards::ShardError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name or time of the Leases is invalid.
    pub fn shard(self, client: Client, config: ShardConfig) -> Result<Self, ElectionError> {
        self.shard_with(client, config, None)
    }

    /// Does the same with a bug in the protocol, so that tests show what it would do.
    pub(crate) fn shard_with(
        mut self,
        client: Client,
        config: ShardConfig,
        bug: Option<Planted>,
    ) -> Result<Self, ElectionError> {
        let clock = self.settable.clock();
        let elector = Elector::new(client.clone(), config.settings(), clock.clone())?.together();
        let mut coordinator = Coordinator::new(client, clock, config, elector.leadership().permit());
        if let Some(bug) = bug {
            coordinator = coordinator.plant(bug);
        }
        if bug != Some(Planted::PermitGrants) {
            self.permit.bind(&WritePermit::from_shards(coordinator.tenures().clone()));
        }
        for controller in &self.controllers {
            controller.env.gate.bind(coordinator.tenures());
        }
        self.elector = Some(elector);
        self.coordinator = Some(coordinator);
        Ok(self)
    }

    /// Makes each replica of a sharded program cache all objects of a kind.
    ///
    /// Without it a replica caches the primaries of its slots, and of kinds that are only owned, the objects of those
    /// primaries. Kinds that a controller reads or watches with a mapper are whole anyway.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn add(manager: Manager) -> Manager {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::object::Kind;
    ///
    /// manager.cache_whole(Kind::of::<Pod>())
    /// # }
    /// ```
    #[must_use]
    pub fn cache_whole(mut self, kind: Kind) -> Self {
        self.whole.push(kind);
        self
    }

    /// Sets the time that running reconciles get after the manager is stopped.
    ///
    /// The default is [`GRACEFUL_TIMEOUT`]. Zero does not wait, and `None` waits without a limit.
    ///
    /// A Pod gets `terminationGracePeriodSeconds` between SIGTERM and SIGKILL, 30 s by default. Set that to at least
    /// this timeout and 15 s more: after the reconciles, events are sent (5 s) and the Lease is released (10 s).
    #[must_use]
    pub fn graceful_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.graceful_timeout = timeout;
        self
    }

    /// Derives trace ids from a seed, so that each run has the same ones. The default is random ids.
    ///
    /// Recorded runs of the simulator compare trace ids, so they need the same ones.
    #[must_use]
    pub fn trace_seed(self, seed: u64) -> Self {
        self.settable.seed_traces(seed);
        self
    }

    /// Sets the number of consecutive failures after which a `Warning` event is recorded on the object; 0 turns
    /// it off. The default is [`WARN_AFTER_FAILURES`].
    ///
    /// A key that is given up gets the event at once. Conflicts count after more than
    /// [`CONFLICTS_USUAL`](crate::worker::CONFLICTS_USUAL) in a row. The event is recorded once until the key
    /// succeeds again.
    #[must_use]
    pub fn warn_after_failures(self, failures: u32) -> Self {
        self.warn_after_failures.store(failures, Ordering::Relaxed);
        self
    }

    /// Answers `/healthz`, `/livez` and `/readyz` on this listener ([`serve::bind`]) while the manager runs.
    ///
    /// A kubelet probes from outside the Pod, so listen on all addresses, as in `:8081`.
    #[must_use]
    pub fn serve_health(mut self, listener: TcpListener) -> Self {
        self.servers.push((listener, Page::Health));
        self
    }

    /// Answers `/metrics` on this listener over plain HTTP, to every client that can reach it.
    ///
    /// Meant for loopback; on other addresses prefer [`serve_metrics_securely`](Self::serve_metrics_securely).
    #[must_use]
    pub fn serve_metrics(mut self, listener: TcpListener) -> Self {
        self.servers.push((listener, Page::Metrics));
        self
    }

    /// Serves `/metrics` over TLS, to clients whose token the API server knows (`TokenReview`) and that may
    /// `get` `/metrics` (`SubjectAccessReview`). controller-runtime calls this `SecureServing` with
    /// `WithAuthenticationAndAuthorization`.
    ///
    /// The scraper needs a `ClusterRole` with `nonResourceURLs: ["/metrics"]` and the verb `get`. This process needs to
    /// create `TokenReview`s and `SubjectAccessReview`s, which `system:auth-delegator` allows.
    ///
    /// # Errors
    /// [`TlsError`](serve::TlsError) if the certificate cannot be read or created.
    pub fn serve_metrics_securely(
        self,
        listener: TcpListener,
        certificate: serve::Certificate,
    ) -> Result<Self, serve::TlsError> {
        let client = self.client.clone();
        self.serve_metrics_securely_by(client, listener, certificate)
    }

    /// Does the same with a separate client for the reviews. Then requests with wrong tokens take nothing from the
    /// rate limit of the controllers.
    ///
    /// # Errors
    /// As [`serve_metrics_securely`](Self::serve_metrics_securely).
    pub fn serve_metrics_securely_by(
        mut self,
        client: Client,
        listener: TcpListener,
        certificate: serve::Certificate,
    ) -> Result<Self, serve::TlsError> {
        let tls = serve::Tls::new(certificate)?;
        tls.count_in(&self.metrics);
        self.servers.push((listener, Page::SecureMetrics(client, tls)));
        Ok(self)
    }

    /// Answers `/debug/` on this listener: a page about controllers, queues, caches and the last reconciles.
    ///
    /// It is served without authentication, to requests that name loopback or one of these hosts. Reconciles
    /// are only recorded for the page if this was called.
    #[must_use]
    pub fn serve_debug(mut self, listener: TcpListener, hosts: Vec<String>) -> Self {
        self.history.switch_on();
        self.servers.push((listener, Page::Debug(hosts)));
        self
    }

    /// Limits caches and reconciles to these namespaces, instead of those that controllers declare.
    ///
    /// An empty list changes nothing. Cluster-scoped kinds are not limited. Applies to controllers that are
    /// added later.
    ///
    /// A Role per namespace is enough then for namespaced kinds, instead of a `ClusterRole`.
    #[must_use]
    pub fn namespaces(mut self, namespaces: Vec<String>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Adds a controller: opens its caches and prepares its queue, workers and event recorder.
    ///
    /// Nothing is requested before [`run`](Self::run). Controllers with the same name share metrics, so give
    /// each its own.
    ///
    /// A controller whose declaration names a kind that another one reads shares that cache. Both then see the union of
    /// the parts and checks that they declare.
    pub fn add<C: Reconcile>(&mut self, controller: C) {
        let mut spec = C::spec();
        if let Some(warning) = finalizer_warning(&spec) {
            tracing::warn!(controller = spec.name, "{warning}");
        }
        if !self.namespaces.is_empty() {
            spec.namespaces.clone_from(&self.namespaces);
        }
        let primary = self.source(&spec, &spec.primary);
        let cached = spec
            .relations
            .iter()
            .filter(|relation| !matches!(relation.declared_as, RelationKind::Live | RelationKind::LiveCluster));
        let sources: Vec<_> = cached.map(|relation| (relation.clone(), self.source(&spec, relation))).collect();
        let backoff = Backoff { base: spec.backoff.0, max: spec.backoff.1 };
        let queue = WorkQueue::observed(QueueConfig::default().backoff(backoff), self.metrics.of_queue(&spec.name));
        self.metrics.declare(&spec.name);
        let writer = Writer::new(&self.name).permit(self.permit.clone());
        let (recorder, sending) = Recorder::new(
            self.client_of(&spec.primary.cluster).clone(),
            &self.name,
            &spec.name,
            self.settable.clock(),
            self.permit.clone(),
        );
        self.recorders.push(Box::pin(sending));
        let env = Arc::new(Env {
            spec,
            primary,
            used: UsedCaches::new(sources.len()),
            sources,
            writer,
            raw: Mutex::default(),
            recorder,
            warn_after_failures: self.warn_after_failures.clone(),
            traces: self.settable.traces(),
            applied: Applied::default(),
            clusters: self.clusters.clone(),
            noop_writes: NoopWrites::default(),
            clock: self.settable.clock(),
            stopping: self.stopping.subscribe(),
            gate: Gate::default(),
        });
        if let Some(coordinator) = &self.coordinator {
            env.gate.bind(coordinator.tenures());
        }
        if let Some(ring) = &self.ring {
            ring.bind(&env);
        }
        let gate = env.gate.clone();
        queue.filter(move |key| gate.admits(key));
        let pool = Arc::new(Pool {
            controller: Arc::new(controller),
            env: env.clone(),
            queue: queue.clone(),
            observer: self.observer(),
            begun: self.settable.begun(),
        });
        let handlers = Handlers::new(&env, &queue);
        self.controllers.push(Registered { env, queue, workers: Box::pin(pool.run()), handlers });
    }

    /// Returns the observer of reconciles. Metrics are recorded first, so that an observer that panics does not lose
    /// them.
    fn observer(&self) -> Observer {
        let (metrics, callback) = (self.metrics.clone(), self.settable.ended());
        let (history, clock) = (self.history.clone(), self.settable.clock());
        Arc::new(move |report| {
            metrics.count(report);
            history.record(report, &*clock);
            callback(report);
        })
    }

    /// Returns the client of the default cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the client of a cluster; the default one has an empty name.
    fn client_of(&self, cluster: &str) -> &Client {
        self.clusters.get(cluster).unwrap_or(&self.client)
    }

    /// Returns the cache of a relation: an existing one with the same watch config, widened to what it reads.
    fn source(&mut self, spec: &ControllerSpec, relation: &RelationSpec) -> Arc<Source> {
        let mut namespaces = if relation.namespaced { spec.namespaces.clone() } else { Vec::new() };
        namespaces.sort();
        namespaces.dedup();
        let config = WatchConfig {
            cluster: relation.cluster.clone(),
            kind: relation.kind.clone(),
            namespaces,
            labels: self.labels_of(spec, relation),
            fields: relation.fields.clone(),
            presence: relation.presence,
        };
        let client = self.clusters.get(&relation.cluster).unwrap_or(&self.client); // a method would borrow all of self
        let position = self.caches.iter().position(|cache| *cache.source().config() == config);
        let index = position.unwrap_or_else(|| {
            self.caches.push(self.informers.0.acquire_for_relation(config, &relation.field_mask, client));
            self.caches.len() - 1
        });
        let source = self.caches[index].source();
        // Relations with different field masks share one watch, whose cache keeps the fields of both.
        source.widen_field_mask(&relation.field_mask);
        source.add_check(relation.check);
        self.limit_to_shard(spec, relation, source);
        for (name, values) in &relation.indexes {
            source.store().add_index(name, values.clone());
        }
        source.clone()
    }

    /// Returns all caches, sorted by watch config.
    fn sources(&self) -> Vec<Arc<Source>> {
        let mut sources: Vec<_> = self.caches.iter().map(|cache| cache.source().clone()).collect();
        sources.sort_by(|a, b| a.config().cmp(b.config()));
        sources
    }

    /// Requests the initial state of each kind as a stream of watch events (KEP-3157, `WatchList`) where the API
    /// server supports it. See [`Source::stream_state`].
    #[must_use]
    pub fn stream_states(self) -> Self {
        self.informers.0.stream_states();
        self
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

    /// Adds a check to `/readyz`. `name` becomes the last part of its path.
    ///
    /// The function returns `Ok` with a note, or `Err` with what is missing. It is called at each probe and must
    /// not block.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn add(manager: &mut Manager) {
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    ///
    /// let connected = Arc::new(AtomicBool::new(false));
    /// let seen = connected.clone();
    /// manager.ready_when("database", move || match seen.load(Ordering::Relaxed) {
    ///     true => Ok(String::new()),
    ///     false => Err("no connection yet".into()),
    /// });
    /// # }
    /// ```
    pub fn ready_when(
        &mut self,
        name: &'static str,
        is_ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) {
        self.others_ready.push(ReadyCheck { name, is_ready: Arc::new(is_ready) });
    }

    /// Adds a bound outside of the loop to the metrics `kctl_bound_used` and `kctl_bound_limit`.
    ///
    /// `used` is called at each scrape and must not block. A dashboard that divides the two shows which buffer fills
    /// up.
    ///
    /// ```
    /// # use kctl_runtime::manager::Manager;
    /// # fn add(manager: &mut Manager) {
    /// use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
    ///
    /// let open = Arc::new(AtomicUsize::new(0));
    /// let seen = open.clone();
    /// manager.show_bound("connections", 64, move || seen.load(Ordering::Relaxed));
    /// # }
    /// ```
    pub fn show_bound(&mut self, name: &'static str, limit: usize, used: impl Fn() -> usize + Send + Sync + 'static) {
        self.bounds.push(Bound { name, used: Arc::new(used), limit });
    }

    /// Returns the metrics of this manager; add your own with [`Metrics::register`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns a view of the manager with its controllers, queues and caches as of now.
    ///
    /// Controllers that are added later are not in it.
    pub fn view(&self) -> View {
        View {
            sources: self.sources(),
            informers: self.informers.0.clone(),
            bounds: self.bounds.clone(),
            others_ready: self.others_ready.clone(),
            queues: self.controllers.iter().map(|c| (c.env.spec.clone(), c.queue.clone())).collect(),
            primaries: self.controllers.iter().map(|c| c.env.primary.clone()).collect(),
            awaited: self.controllers.iter().map(|c| c.env.caches().cloned().collect()).collect(),
            recorders: self.controllers.iter().map(|c| c.env.recorder.view()).collect(),
            spawned_handlers: self.controllers.iter().flat_map(|c| c.handlers.spawned_handlers().cloned()).collect(),
            leadership: self.elector.as_ref().map(Elector::leadership),
            shards: self.coordinator.as_ref().map(Coordinator::view),
            ring: self.ring.clone(),
            gates: self.controllers.iter().map(|c| c.env.gate.clone()).collect(),
            declared: self.controllers.iter().map(|c| declared(&c.env)).collect(),
        }
    }
}

/// Returns the caches of a controller, with the record of those that its reconciles read.
fn declared(env: &Env) -> Declared {
    let relations = env.sources.iter().map(|(relation, _)| relation.clone()).collect();
    Declared { controller: env.spec.name.clone(), relations, used: env.used.clone() }
}

impl View {
    /// Returns the caches that controllers declare, sorted by watch config.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// Returns all open caches, with those that were opened at run time.
    ///
    /// It may contain other clusters and kinds that do not exist: a watch at run time waits for its kind.
    pub fn sources_now(&self) -> Vec<Arc<Source>> {
        self.informers.open().into_iter().map(|(source, _n_users)| source).collect()
    }

    /// Returns all open caches with the number of their users.
    pub(crate) fn informers(&self) -> &Informers {
        &self.informers
    }

    pub(crate) fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    pub(crate) fn recorders(&self) -> &[RecorderView] {
        &self.recorders
    }

    /// Returns the handlers with user code (`map`, `when`), which can be behind their stores.
    pub(crate) fn spawned_handlers(&self) -> &[Arc<SpawnedHandler>] {
        &self.spawned_handlers
    }

    /// Returns the state of the leader election, `None` without one.
    pub fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// Returns the slots of a sharded program, `None` without [`Manager::shard`].
    pub fn shards(&self) -> Option<&ShardView> {
        self.shards.as_ref()
    }

    /// Returns the caches of the primaries, in the order of [`controllers`](Self::controllers).
    pub fn primaries(&self) -> &[Arc<Source>] {
        &self.primaries
    }

    /// Returns the caches that each controller waits for, in the order of [`controllers`](Self::controllers).
    pub(crate) fn awaited(&self) -> &[Vec<Arc<Source>>] {
        &self.awaited
    }

    /// Returns the declarations and queues of all controllers, in the order in which they were added.
    pub fn controllers(&self) -> &[(ControllerSpec, WorkQueue<ObjectKey>)] {
        &self.queues
    }
}
