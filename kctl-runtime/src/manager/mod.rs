//! Starts and stops everything in order: sources and their stores, handlers, and workers once their caches are full.

mod debug;
mod handlers;
pub mod health;
mod idle;
pub mod lease;
mod lifecycle;
pub mod metrics;
pub mod serve;
mod settable;
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

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch};

pub use lifecycle::ManagerError;
pub use unused::UnusedCache;

use self::{
    debug::History,
    handlers::Handlers,
    lease::{ElectionConfig, ElectionError, Elector, Leadership},
    metrics::Metrics,
    settable::Settable,
    unused::Declared,
};
use crate::{
    effect::{Recorder, RecorderView, WritePermit, Writer},
    handler::Aside,
    key::ObjectKey,
    queue::{Backoff, QueueConfig, WorkQueue},
    reconcile::{Applied, Env, Reconcile, Used, Vain},
    source::{Identity, Source},
    spec::{ControllerSpec, RelationSpec, Role, finalizer_warning},
    watches::{Closing, Held, Informers, Watches},
    worker::{BeginObserver, Observer, Pool},
};

/// Default time that running reconciles have after the manager is stopped (as in controller-runtime).
pub const GRACEFUL_TIMEOUT: Duration = Duration::from_secs(30);

/// Default number of consecutive failures after which a `Warning` event is recorded on the object; after 5 s with the default backoff.
pub const TELL_FAILURE: u32 = 10;

/// The time that is written into objects: conditions and events.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The controllers of one process on one cluster. Two that read the same kind share one list and one watch.
pub struct Manager {
    client: Client,
    clusters: BTreeMap<String, Client>,
    name: String,
    settable: Arc<Settable>,
    metrics: Metrics,
    history: Arc<History>,
    permit: WritePermit,
    elector: Option<Elector>,
    graceful_timeout: Option<Duration>,
    tell_failure: Arc<AtomicU32>,
    servers: Vec<(TcpListener, Page)>,
    bounds: Vec<Bound>,
    others_ready: Vec<ReadyCheck>,
    namespaces: Vec<String>,
    stopping: watch::Sender<bool>,
    recorders: Vec<Task>,
    background: Vec<Task>,
    informers: Closing,
    /// The informers of its controllers.
    caches: Vec<Held>,
    controllers: Vec<Registered>,
}

/// What a listener is for.
enum Page {
    Health,
    Metrics,
    SecureMetrics(serve::Tls),
    /// With the hosts that requests may name beside loopback.
    Debug(Vec<String>),
}

struct Registered {
    env: Arc<Env>,
    queue: WorkQueue<ObjectKey>,
    workers: Task,
    handlers: Handlers,
}

/// A bound that something beside the loop keeps, shown with those of the loop.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) used: Arc<dyn Fn() -> usize + Send + Sync>,
    pub(crate) limit: usize,
}

/// Says whether something beside the loop is ready: a note, or why it is not.
type IsReady = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// Something beside the loop that has to be ready, too.
#[derive(Clone)]
struct ReadyCheck {
    name: &'static str,
    is_ready: IsReady,
}

/// A running manager, as seen from outside.
#[derive(Clone)]
pub struct View {
    sources: Vec<Arc<Source>>,
    informers: Informers,
    bounds: Vec<Bound>,
    others_ready: Vec<ReadyCheck>,
    queues: Vec<(ControllerSpec, WorkQueue<ObjectKey>)>,
    primaries: Vec<Arc<Source>>,
    /// Of each controller, all caches that it waits for.
    awaited: Vec<Vec<Arc<Source>>>,
    recorders: Vec<RecorderView>,
    asides: Vec<Arc<Aside>>,
    leadership: Option<Leadership>,
    declared: Vec<Declared>,
}

impl Manager {
    /// A manager without controllers. `name` is the field manager of all writes.
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
            graceful_timeout: Some(GRACEFUL_TIMEOUT),
            tell_failure: Arc::new(TELL_FAILURE.into()),
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

    /// Another cluster: relations say `on = name`. Counts for controllers that are added later.
    #[must_use]
    pub fn cluster(mut self, name: &str, client: Client) -> Self {
        self.clusters.insert(name.into(), client);
        self
    }

    /// Writes these times into objects instead of the machine's.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        self.settable.set_clock(clock);
        self
    }

    /// Calls this with a controller, a key and a trace when a reconcile begins.
    #[must_use]
    pub fn on_begin(self, begun: BeginObserver) -> Self {
        self.settable.set_begun(begun);
        self
    }

    /// Calls this after each reconcile, after the observers that are there.
    #[must_use]
    pub fn on_end(self, ended: Observer) -> Self {
        self.settable.add_ended(ended);
        self
    }

    /// Works only while it holds a lease. Its caches are filled before, so that work begins the moment it leads.
    ///
    /// # Errors
    /// When the configuration contradicts itself; it names the flag.
    pub fn elect(self, config: ElectionConfig) -> Result<Self, ElectionError> {
        let client = self.client.clone();
        self.elect_by(client, config)
    }

    /// Does the same with a separate client for the Lease, so that its requests don't wait behind rate-limited ones.
    ///
    /// # Errors
    /// As [`elect`](Self::elect).
    pub fn elect_by(mut self, client: Client, config: ElectionConfig) -> Result<Self, ElectionError> {
        let elector = Elector::new(client, config, self.settable.clock())?;
        self.permit.bind(&elector.leadership().permit());
        self.elector = Some(elector);
        Ok(self)
    }

    /// The same with a permit that grants always, so that tests see what a missing permit does.
    pub(crate) fn elect_unfenced(mut self, config: ElectionConfig) -> Result<Self, ElectionError> {
        self.elector = Some(Elector::new(self.client.clone(), config, self.settable.clock())?);
        Ok(self)
    }

    /// Sets the time that running reconciles have after the manager is stopped. Zero does not wait, `None` waits forever.
    #[must_use]
    pub fn graceful_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.graceful_timeout = timeout;
        self
    }

    /// Gives reconciles the same trace ids in each run, instead of random ones: for a world that repeats itself.
    #[must_use]
    pub fn trace_seed(self, seed: u64) -> Self {
        self.settable.seed_traces(seed);
        self
    }

    /// Sets the number of consecutive failures after which a `Warning` event is recorded on the object; 0 turns it off.
    ///
    /// A key that is given up gets the event at once, conflicts after more than [`CONFLICTS_USUAL`](crate::worker::CONFLICTS_USUAL) in a row.
    /// It is recorded once until the key succeeds again.
    #[must_use]
    pub fn tell_failure(self, failures: u32) -> Self {
        self.tell_failure.store(failures, Ordering::Relaxed);
        self
    }

    /// Answers `/healthz`, `/livez` and `/readyz` on this listener while it runs ([`serve::bind`]).
    #[must_use]
    pub fn serve_health(mut self, listener: TcpListener) -> Self {
        self.servers.push((listener, Page::Health));
        self
    }

    /// Answers `/metrics` on this listener while it runs, to everybody who can reach it: for loopback.
    #[must_use]
    pub fn serve_metrics(mut self, listener: TcpListener) -> Self {
        self.servers.push((listener, Page::Metrics));
        self
    }

    /// Serves `/metrics` on this listener over TLS, to clients whose token the API server knows (`TokenReview`) and that may get
    /// `/metrics` (`SubjectAccessReview`).
    ///
    /// # Errors
    /// There is no usable certificate.
    pub fn serve_metrics_securely(
        mut self,
        listener: TcpListener,
        certificate: serve::Certificate,
    ) -> Result<Self, serve::TlsError> {
        let tls = serve::Tls::new(certificate)?;
        tls.count_in(&self.metrics);
        self.servers.push((listener, Page::SecureMetrics(tls)));
        Ok(self)
    }

    /// Answers `/debug/` on this listener while it runs: a page about controllers, queues, caches and the last reconciles, for
    /// everybody who can reach it. Requests have to name loopback or one of these hosts.
    #[must_use]
    pub fn serve_debug(mut self, listener: TcpListener, hosts: Vec<String>) -> Self {
        self.history.switch_on();
        self.servers.push((listener, Page::Debug(hosts)));
        self
    }

    /// Limits caches and reconciles to these namespaces, instead of those that controllers declare. An empty list changes nothing.
    /// Cluster-scoped kinds are not limited. Applies to controllers that are added later.
    #[must_use]
    pub fn namespaces(mut self, namespaces: Vec<String>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Adds a controller.
    pub fn add<C: Reconcile>(&mut self, controller: C) {
        let mut spec = C::spec();
        if let Some(warning) = finalizer_warning(&spec) {
            tracing::warn!(controller = spec.name, "{warning}");
        }
        if !self.namespaces.is_empty() {
            spec.namespaces.clone_from(&self.namespaces);
        }
        let primary = self.source(&spec, &spec.primary);
        let cached = spec.relations.iter().filter(|relation| !matches!(relation.role, Role::Live | Role::LiveCluster));
        let sources: Vec<_> = cached.map(|relation| (relation.clone(), self.source(&spec, relation))).collect();
        let backoff = Backoff { base: spec.backoff.0, max: spec.backoff.1 };
        let queue = WorkQueue::observed(QueueConfig { backoff }, self.metrics.of_queue(&spec.name));
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
            used: Used::none_of(sources.len()),
            sources,
            writer,
            raw: Mutex::default(),
            recorder,
            tell_failure: self.tell_failure.clone(),
            traces: self.settable.traces(),
            applied: Applied::default(),
            clusters: self.clusters.clone(),
            vain: Vain::default(),
            clock: self.settable.clock(),
            stopping: self.stopping.subscribe(),
        });
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

    /// Counts first: an observer that panics costs no metric.
    fn observer(&self) -> Observer {
        let (metrics, told) = (self.metrics.clone(), self.settable.ended());
        let (history, clock) = (self.history.clone(), self.settable.clock());
        Arc::new(move |report| {
            metrics.count(report);
            history.record(report, &*clock);
            told(report);
        })
    }

    /// The client of a cluster; the one that the program is started against has an empty name.
    fn client_of(&self, cluster: &str) -> &Client {
        self.clusters.get(cluster).unwrap_or(&self.client)
    }

    fn source(&mut self, spec: &ControllerSpec, relation: &RelationSpec) -> Arc<Source> {
        let mut namespaces = if relation.namespaced { spec.namespaces.clone() } else { Vec::new() };
        namespaces.sort();
        namespaces.dedup();
        let identity = Identity {
            cluster: relation.cluster.clone(),
            kind: relation.kind.clone(),
            namespaces,
            labels: relation.labels.clone(),
            fields: relation.fields.clone(),
            presence: relation.presence,
        };
        let client = self.clusters.get(&relation.cluster).unwrap_or(&self.client); // a method would borrow all of self
        let known = self.caches.iter().position(|held| *held.source().identity() == identity);
        let index = known.unwrap_or_else(|| {
            self.caches.push(self.informers.0.hold_own(identity, &relation.keep, client));
            self.caches.len() - 1
        });
        let source = self.caches[index].source();
        // Two that read different parts of a kind share one watch, which keeps what both read.
        source.keep_also(&relation.keep);
        source.add_check(relation.check);
        for (name, values) in &relation.indexes {
            source.store().add_index(name, values.clone());
        }
        source.clone()
    }

    /// By identity, as they are shown.
    fn sources(&self) -> Vec<Arc<Source>> {
        let mut sources: Vec<_> = self.caches.iter().map(|held| held.source().clone()).collect();
        sources.sort_by(|a, b| a.identity().cmp(b.identity()));
        sources
    }

    /// Has the state of each kind streamed before its watch, where the server does that: [`Source::stream_state`].
    #[must_use]
    pub fn stream_states(self) -> Self {
        self.informers.0.stream_states();
        self
    }

    /// Opens watches at run time, on the clusters that were added so far; whatever controllers watch already is shared.
    pub fn watches(&self) -> Watches {
        Watches::new(self.informers.0.clone(), self.client.clone(), self.clusters.clone())
    }

    /// Adds what runs beside the controllers, until they stop: a stream that triggers them, for example.
    pub fn background(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.push(Box::pin(task));
    }

    /// Has `/readyz` ask whether something beside the controllers is ready, under a name that becomes a part of its path. The
    /// function returns a note or what is missing, and is called at every probe: it must not wait.
    pub fn ready_when(
        &mut self,
        name: &'static str,
        is_ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) {
        self.others_ready.push(ReadyCheck { name, is_ready: Arc::new(is_ready) });
    }

    /// Shows a bound of something beside the loop in the metrics: how much of it is used.
    pub fn show_bound(&mut self, name: &'static str, limit: usize, used: impl Fn() -> usize + Send + Sync + 'static) {
        self.bounds.push(Bound { name, used: Arc::new(used), limit });
    }

    /// Its metrics; add your own by [`Metrics::register`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns a view of the running manager: its controllers, queues, caches and health.
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
            asides: self.controllers.iter().flat_map(|c| c.handlers.asides().cloned()).collect(),
            leadership: self.elector.as_ref().map(Elector::leadership),
            declared: self.controllers.iter().map(|c| declared(&c.env)).collect(),
        }
    }
}

fn declared(env: &Env) -> Declared {
    let relations = env.sources.iter().map(|(relation, _)| relation.clone()).collect();
    Declared { controller: env.spec.name.clone(), relations, used: env.used.clone() }
}

impl View {
    /// The sources.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// The sources, and those of what is watched at run time.
    pub fn sources_now(&self) -> Vec<Arc<Source>> {
        self.informers.open().into_iter().map(|(source, _n_users)| source).collect()
    }

    /// All informers, also those that were opened at run time, and how many use each.
    pub(crate) fn informers(&self) -> &Informers {
        &self.informers
    }

    pub(crate) fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    pub(crate) fn recorders(&self) -> &[RecorderView] {
        &self.recorders
    }

    /// The handlers with code of the user, which can be behind their stores.
    pub(crate) fn asides(&self) -> &[Arc<Aside>] {
        &self.asides
    }

    /// The election, where there is one.
    pub fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// The caches of the primaries of all controllers, in the order of [`View::controllers`].
    pub fn primaries(&self) -> &[Arc<Source>] {
        &self.primaries
    }

    /// The caches that each controller waits for, in the order of [`View::controllers`].
    pub(crate) fn awaited(&self) -> &[Vec<Arc<Source>>] {
        &self.awaited
    }

    /// Specs and queues of all controllers.
    pub fn controllers(&self) -> &[(ControllerSpec, WorkQueue<ObjectKey>)] {
        &self.queues
    }
}
