//! Starts and stops everything in order: sources and their stores, handlers, and workers once their caches are full.

use std::{collections::BTreeMap, pin::Pin, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    effect::{Recorder, Writer},
    handler,
    key::ObjectKey,
    queue::{Backoff, QueueConfig, WorkQueue},
    reconcile::{Env, Reconcile},
    source::{Identity, Source},
    spec::{ControllerSpec, RelationSpec, Role},
    store::SharedStore,
    worker::{Observer, Pool},
};

/// A key that waits longer than this by its own wish does not keep a program from being idle.
const IDLE_HORIZON: Duration = Duration::from_secs(5);

/// The time that is written into objects: conditions and events.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The controllers of one process on one cluster. Two that read the same kind share one list and one watch.
pub struct Manager {
    client: Client,
    clusters: BTreeMap<String, Client>,
    name: String,
    observer: Observer,
    clock: Clock,
    namespaces: Vec<String>,
    stopping: watch::Sender<bool>,
    background: Vec<Task>,
    sources: BTreeMap<Identity, Arc<Source>>,
    controllers: Vec<Registered>,
}

struct Registered {
    env: Arc<Env>,
    queue: WorkQueue<ObjectKey>,
    workers: Task,
}

/// A running manager, as seen from outside.
#[derive(Clone)]
pub struct View {
    sources: Vec<Arc<Source>>,
    queues: Vec<(ControllerSpec, WorkQueue<ObjectKey>)>,
}

impl Manager {
    /// A manager without controllers. `name` is the field manager of all writes.
    pub fn new(client: Client, name: &str, observer: Observer) -> Self {
        Self {
            client,
            clusters: BTreeMap::new(),
            name: name.into(),
            observer,
            clock: Arc::new(Timestamp::now),
            namespaces: Vec::new(),
            stopping: watch::Sender::new(false),
            background: Vec::new(),
            sources: BTreeMap::new(),
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
        let queue = WorkQueue::new(QueueConfig { backoff: Backoff { base: spec.backoff.0, max: spec.backoff.1 } });
        let writer = Writer::new(&self.name);
        let (recorder, sending) = Recorder::new(self.client.clone(), &self.name, self.clock.clone());
        self.background.push(Box::pin(sending));
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
            observer: self.observer.clone(),
        });
        self.controllers.push(Registered { env, queue, workers: Box::pin(pool.run()) });
    }

    fn source(&mut self, spec: &ControllerSpec, relation: &RelationSpec) -> Arc<Source> {
        let mut namespaces = if relation.namespaced { spec.namespaces.clone() } else { Vec::new() };
        namespaces.sort();
        namespaces.dedup();
        let n_scopes = namespaces.len();
        let identity = Identity {
            cluster: relation.cluster.clone(),
            kind: relation.kind.clone(),
            namespaces,
            labels: relation.labels.clone(),
            fields: relation.fields.clone(),
        };
        let client = self.clusters.get(&relation.cluster).unwrap_or(&self.client);
        let source = self.sources.entry(identity.clone()).or_insert_with(|| {
            Arc::new(Source::new(client.clone(), identity, Arc::new(SharedStore::of_scopes(n_scopes))))
        });
        source.add_check(relation.check.clone());
        for (name, values) in &relation.indexes {
            source.store().add_index(name, values.clone());
        }
        source.clone()
    }

    /// Adds what runs beside the controllers, until they stop: a stream that triggers them, for example.
    pub fn background(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.push(Box::pin(task));
    }

    /// What can be seen of it while it runs.
    pub fn view(&self) -> View {
        View {
            sources: self.sources.values().cloned().collect(),
            queues: self.controllers.iter().map(|c| (c.env.spec.clone(), c.queue.clone())).collect(),
        }
    }

    /// Runs until `shutdown` is ready; then no new work starts, reconciles that run are finished, and it returns.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let mut background = JoinSet::new();
        for source in self.sources.into_values() {
            background.spawn(source.store().clone().write());
            background.spawn(async move { source.run().await });
        }
        let queues: Vec<_> = self.controllers.iter().map(|controller| controller.queue.clone()).collect();
        let mut workers = JoinSet::new();
        for controller in self.controllers {
            workers.spawn(start(controller));
        }
        for task in self.background {
            background.spawn(task);
        }
        shutdown.await;
        self.stopping.send_replace(true);
        for queue in &queues {
            queue.shut_down();
        }
        // A controller whose caches never filled has no workers to wait for.
        let _stuck =
            tokio::time::timeout(Duration::from_secs(30), async { while workers.join_next().await.is_some() {} }).await;
    }
}

/// Handlers first, then the initial objects through them, then workers: none starts on half a cache.
async fn start(controller: Registered) {
    let Registered { env, queue, workers } = controller;
    let primaries = env.primary.store().clone();
    let mut delivered = Vec::new();
    let own = std::iter::once((&env.spec.primary, &env.primary));
    let related = env.sources.iter().map(|(relation, source)| (relation, source));
    for (index, (relation, source)) in own.chain(related).enumerate() {
        let handler = handler::for_relation(index, relation, &env.spec.primary, primaries.clone(), queue.clone());
        delivered.push(source.store().subscribe(handler).await);
    }
    for subscription in delivered {
        subscription.delivered().await;
    }
    tokio::select! {
        () = workers => {}
        () = resync(&env, &queue) => {}
    }
}

/// Queues every object once a period, behind all that changed.
async fn resync(env: &Env, queue: &WorkQueue<ObjectKey>) {
    let Some(period) = env.spec.resync else { return std::future::pending().await };
    loop {
        tokio::time::sleep(period).await;
        for object in env.primary.store().all() {
            queue.add_tagged(object.key().clone(), handler::PRIORITY_INITIAL, handler::TAG_RESYNC);
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
        self.sources.iter().all(|source| source.store().is_synced() && source.store().backlog() == 0)
            && self.queues.iter().all(|(_, queue)| quiet(queue))
    }

    /// The sources.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// Specs and queues of all controllers.
    pub fn controllers(&self) -> &[(ControllerSpec, WorkQueue<ObjectKey>)] {
        &self.queues
    }
}
