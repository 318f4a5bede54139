//! Starts and stops everything in order: sources and their stores, handlers, and workers once their caches are full.

pub mod health;
pub mod lease;
mod lifecycle;
pub mod metrics;
pub mod serve;

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::watch};

pub use lifecycle::ManagerError;

use self::{
    lease::{ElectionConfig, ElectionError, Elector, Leadership},
    metrics::Metrics,
};
use crate::{
    effect::{Recorder, RecorderView, WritePermit, Writer},
    key::ObjectKey,
    queue::{Backoff, QueueConfig, WorkQueue},
    reconcile::{Env, Reconcile},
    source::{Identity, Source},
    spec::{ControllerSpec, RelationSpec, Role},
    watches::{Closing, Held, Informers, Watches},
    worker::{Observer, Pool},
};

/// A key that waits longer than this by its own wish does not keep a program from being idle.
const IDLE_HORIZON: Duration = Duration::from_secs(5);
/// So long reconciles that run may go on after a manager was told to stop, unless somebody changes it (as in
/// controller-runtime).
pub const GRACEFUL_TIMEOUT: Duration = Duration::from_secs(30);

/// The time that is written into objects: conditions and events.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The controllers of one process on one cluster. Two that read the same kind share one list and one watch.
pub struct Manager {
    client: Client,
    clusters: BTreeMap<String, Client>,
    name: String,
    observer: Observer,
    metrics: Metrics,
    clock: Clock,
    permit: WritePermit,
    elector: Option<Elector>,
    graceful_timeout: Option<Duration>,
    servers: Vec<(TcpListener, Page)>,
    bounds: Vec<Bound>,
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
}

struct Registered {
    env: Arc<Env>,
    queue: WorkQueue<ObjectKey>,
    workers: Task,
}

/// A bound that something beside the loop keeps, shown with those of the loop.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) name: &'static str,
    pub(crate) used: Arc<dyn Fn() -> usize + Send + Sync>,
    pub(crate) limit: usize,
}

/// A running manager, as seen from outside.
#[derive(Clone)]
pub struct View {
    sources: Vec<Arc<Source>>,
    informers: Informers,
    bounds: Vec<Bound>,
    queues: Vec<(ControllerSpec, WorkQueue<ObjectKey>)>,
    recorders: Vec<RecorderView>,
    leadership: Option<Leadership>,
}

impl Manager {
    /// A manager without controllers. `name` is the field manager of all writes.
    pub fn new(client: Client, name: &str, observer: Observer) -> Self {
        Self {
            client,
            clusters: BTreeMap::new(),
            name: name.into(),
            observer,
            metrics: Metrics::default(),
            clock: Arc::new(Timestamp::now),
            permit: WritePermit::always(),
            elector: None,
            graceful_timeout: Some(GRACEFUL_TIMEOUT),
            servers: Vec::new(),
            bounds: Vec::new(),
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

    /// Writes these times into objects instead of the machine's. Counts for controllers that are added later.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Works only while it holds a lease. Its caches are filled before, so that work begins the moment it leads.
    ///
    /// # Errors
    /// When the configuration contradicts itself; it names the flag.
    pub fn elect(mut self, config: ElectionConfig) -> Result<Self, ElectionError> {
        let elector = Elector::new(self.client.clone(), config, self.clock.clone())?;
        elector.leadership().bind(&self.permit);
        self.elector = Some(elector);
        Ok(self)
    }

    /// How long reconciles that run may go on after it was told to stop: 0 does not wait, `None` waits for ever.
    #[must_use]
    pub fn graceful_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.graceful_timeout = timeout;
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

    /// Answers `/metrics` on this listener while it runs: by TLS, and to those alone whose token the API server knows
    /// (`TokenReview`) and whom it allows to get `/metrics` (`SubjectAccessReview`).
    ///
    /// # Errors
    /// When there is no usable certificate.
    pub fn serve_metrics_securely(
        mut self,
        listener: TcpListener,
        certificate: serve::Certificate,
    ) -> Result<Self, serve::TlsError> {
        self.servers.push((listener, Page::SecureMetrics(serve::Tls::new(certificate)?)));
        Ok(self)
    }

    /// Caches and reconciles only what is in these namespaces, instead of those that controllers declare; none is no change.
    /// Kinds without a namespace are not concerned. Counts for controllers that are added later.
    #[must_use]
    pub fn namespaces(mut self, namespaces: Vec<String>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Adds a controller.
    pub fn add<C: Reconcile>(&mut self, controller: C) {
        let mut spec = C::spec();
        if !self.namespaces.is_empty() {
            spec.namespaces.clone_from(&self.namespaces);
        }
        let primary = self.source(&spec, &spec.primary);
        let cached = spec.relations.iter().filter(|relation| !matches!(relation.role, Role::Live | Role::LiveCluster));
        let sources = cached.map(|relation| (relation.clone(), self.source(&spec, relation))).collect();
        let backoff = Backoff { base: spec.backoff.0, max: spec.backoff.1 };
        let queue = WorkQueue::observed(QueueConfig { backoff }, self.metrics.of_queue(&spec.name));
        self.metrics.declare(&spec.name);
        let writer = Writer::new(&self.name).permit(self.permit.clone());
        let (recorder, sending) =
            Recorder::new(self.client.clone(), &self.name, self.clock.clone(), self.permit.clone());
        self.recorders.push(Box::pin(sending));
        let env = Arc::new(Env {
            spec,
            primary,
            sources,
            writer,
            recorder,
            applied: Mutex::default(),
            clusters: self.clusters.clone(),
            uncertain: Mutex::default(),
            clock: self.clock.clone(),
            stopping: self.stopping.subscribe(),
        });
        let pool = Arc::new(Pool {
            controller: Arc::new(controller),
            env: env.clone(),
            queue: queue.clone(),
            observer: self.observer(),
        });
        self.controllers.push(Registered { env, queue, workers: Box::pin(pool.run()) });
    }

    /// Counts first: an observer that panics costs no metric.
    fn observer(&self) -> Observer {
        let (metrics, told) = (self.metrics.clone(), self.observer.clone());
        Arc::new(move |report| {
            metrics.count(report);
            told(report);
        })
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
        };
        let client = self.clusters.get(&relation.cluster).unwrap_or(&self.client);
        let known = self.caches.iter().position(|held| *held.source().identity() == identity);
        let index = known.unwrap_or_else(|| {
            self.caches.push(self.informers.0.hold_own(identity, client));
            self.caches.len() - 1
        });
        let source = self.caches[index].source();
        source.add_check(relation.check.clone());
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

    /// Opens watches at run time, on the clusters that were added so far; whatever controllers watch already is shared.
    pub fn watches(&self) -> Watches {
        Watches::new(self.informers.0.clone(), self.client.clone(), self.clusters.clone())
    }

    /// Adds what runs beside the controllers, until they stop: a stream that triggers them, for example.
    pub fn background(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.push(Box::pin(task));
    }

    /// Shows a bound of something beside the loop in the metrics: how much of it is used.
    pub fn show_bound(&mut self, name: &'static str, limit: usize, used: impl Fn() -> usize + Send + Sync + 'static) {
        self.bounds.push(Bound { name, used: Arc::new(used), limit });
    }

    /// Its metrics; add your own by [`Metrics::register`].
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What can be seen of it while it runs.
    pub fn view(&self) -> View {
        View {
            sources: self.sources(),
            informers: self.informers.0.clone(),
            bounds: self.bounds.clone(),
            queues: self.controllers.iter().map(|c| (c.env.spec.clone(), c.queue.clone())).collect(),
            recorders: self.controllers.iter().map(|c| c.env.recorder.view()).collect(),
            leadership: self.elector.as_ref().map(Elector::leadership),
        }
    }
}

impl View {
    /// Whether nothing is left to do: caches are full, no key is queued or processed, no delta waits, no key comes due within
    /// five seconds, and none failed the last time: however long it waits for its next try, there is something left.
    pub fn is_idle(&self) -> bool {
        let quiet = |queue: &WorkQueue<ObjectKey>| {
            queue.is_empty()
                && queue.processing() == 0
                && queue.next_delayed_within(IDLE_HORIZON) == 0
                && queue.failing().is_empty()
        };
        // Whatever is watched at run time may never be there.
        self.informers.open().iter().all(|(source, _)| source.store().backlog() == 0)
            && self.sources.iter().all(|source| source.store().is_synced())
            && self.queues.iter().all(|(_, queue)| quiet(queue))
    }

    /// The sources.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
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

    /// The election, where there is one.
    pub fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// Specs and queues of all controllers.
    pub fn controllers(&self) -> &[(ControllerSpec, WorkQueue<ObjectKey>)] {
        &self.queues
    }
}
