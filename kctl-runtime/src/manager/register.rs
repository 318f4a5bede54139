//! Adds a controller to a manager: opens its caches, and prepares its queue, workers and event recorder.

use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;

use super::{Manager, Task, handlers::Handlers, history::History};
use crate::{
    key::ObjectKey,
    queue::{Backoff, QueueConfig, WorkQueue},
    reconcile::{Applied, Env, NoopWrites, Reconcile, TimedRuns, UsedCaches},
    shard::Gate,
    source::{Source, WatchConfig},
    spec::{ControllerSpec, RelationKind, RelationSpec, finalizer_warning},
    worker::{Observer, Pool},
    writer::{Recorder, Writer},
};

/// A controller that was added, ready to start.
///
/// Its queue exists before its workers, so that a view can read it at any time.
pub(super) struct Registered {
    pub(super) env: Arc<Env>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) workers: Task,
    pub(super) handlers: Handlers,
    pub(super) history: Arc<History>,
}

impl Manager {
    /// Adds a controller: opens its caches and prepares its queue, workers and event recorder.
    ///
    /// Nothing is requested before [`run`](Self::run). Controllers with the same name share metrics, so give
    /// each its own.
    ///
    /// A controller whose declaration names a kind that another controller reads shares the cache. Both then see the
    /// union of the parts and checks that they declare.
    ///
    /// # Panics
    /// If the declaration names a cluster that was not added before, by [`cluster`](Self::cluster).
    pub fn add<C: Reconcile>(&mut self, controller: C) {
        let mut spec = C::spec();
        self.check_clusters(&spec);
        if let Some(warning) = finalizer_warning(&spec) {
            tracing::warn!(controller = spec.name, "{warning}");
        }
        if !self.namespaces.is_empty() {
            spec.namespaces.clone_from(&self.namespaces);
        }
        let env = self.env(spec);
        let backoff = Backoff { base: env.spec.backoff.0, max: env.spec.backoff.1 };
        let metrics = self.metrics.queue_observer(&env.spec.name);
        let queue = WorkQueue::with_observer(QueueConfig::default().backoff(backoff), metrics);
        self.metrics.init_series(&env.spec.name);
        let gate = env.gate.clone();
        queue.filter(move |key| gate.admits(key));
        let pool = Arc::new(Pool {
            controller: Arc::new(controller),
            env: env.clone(),
            queue: queue.clone(),
            observer: self.observer(),
            begun: self.shared_options.begin_observer(),
        });
        let handlers = Handlers::new(&env, &queue);
        let history = self.history.clone();
        self.controllers.push(Registered { env, queue, workers: Box::pin(pool.run()), handlers, history });
    }

    /// Panics unless each cluster of a declaration has a client. The client of the default cluster would read and write
    /// objects of another cluster.
    fn check_clusters(&self, spec: &ControllerSpec) {
        let relations = std::iter::once(&spec.primary).chain(&spec.relations).map(|relation| &relation.cluster);
        for cluster in relations.chain(spec.rbac.iter().map(|extra| &extra.cluster)) {
            assert!(
                cluster.is_empty() || self.clusters.contains_key(cluster),
                "{}: there is no cluster `{cluster}`; add it by `Manager::cluster` before the controller",
                spec.location
            );
        }
    }

    /// Opens the caches of a controller, and prepares its writer, event recorder and gate.
    fn env(&mut self, spec: ControllerSpec) -> Arc<Env> {
        let primary = self.source(&spec, &spec.primary);
        let cached = spec
            .relations
            .iter()
            .filter(|relation| !matches!(relation.declared_as, RelationKind::Live | RelationKind::LiveCluster));
        let sources: Vec<_> = cached.map(|relation| (relation.clone(), self.source(&spec, relation))).collect();
        let writer = Writer::new(&self.name).permit(self.permit.clone());
        let (recorder, sending) = Recorder::new(
            self.client_of(&spec.primary.cluster).clone(),
            &self.name,
            &spec.name,
            self.shared_options.clock(),
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
            traces: self.shared_options.traces(),
            applied: Applied::default(),
            default_client: self.client.clone(),
            clusters: self.clusters.clone(),
            noop_writes: NoopWrites::default(),
            clock: self.shared_options.clock(),
            stopping: self.stopping.subscribe(),
            gate: Gate::default(),
            timed_runs: TimedRuns::default(),
        });
        if let Some(coordinator) = &self.coordinator {
            env.gate.bind(coordinator.tenures());
        }
        if let Some(ring) = &self.ring {
            ring.bind(&env);
        }
        env
    }

    /// Returns the observer of reconciles. Metrics are recorded first, so that an observer that panics does not lose
    /// them.
    fn observer(&self) -> Observer {
        let (metrics, callback) = (self.metrics.clone(), self.shared_options.end_observer());
        let (history, clock) = (self.history.clone(), self.shared_options.clock());
        Arc::new(move |report| {
            metrics.count(report);
            history.record(report, &*clock);
            callback(report);
        })
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
    pub(super) fn sources(&self) -> Vec<Arc<Source>> {
        let mut sources: Vec<_> = self.caches.iter().map(|cache| cache.source().clone()).collect();
        sources.sort_by(|a, b| a.config().cmp(b.config()));
        sources
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use kube::client::Body;

    use super::*;
    use crate::{
        reconcile::{Action, Context, Controller, Result},
        spec::SpecBuilder,
    };

    struct CountsAtEdge;

    impl Controller for CountsAtEdge {
        type Primary = ConfigMap;
        type Verbs = ();

        fn spec() -> ControllerSpec {
            SpecBuilder::<Self>::new("CountsAtEdge", "edge.rs", 7).reads::<Pod>("reads = Pod").on("edge").build()
        }
    }

    impl Reconcile for CountsAtEdge {
        async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
            Ok(Action::await_change())
        }
    }

    fn manager() -> Manager {
        let silent =
            tower::service_fn(|_request: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>());
        Manager::new(Client::new(silent, "default"), "web", Arc::new(|_report| {}))
    }

    #[tokio::test]
    async fn controller_uses_the_cluster_that_it_names() {
        let manager = manager();
        let edge = manager.client().clone();
        let mut manager = manager.cluster("edge", edge);
        manager.add(CountsAtEdge);
        assert_eq!(manager.sources().len(), 2);
    }

    #[tokio::test]
    #[should_panic(expected = "there is no cluster `edge`; add it by `Manager::cluster` before the controller")]
    async fn controller_of_an_unknown_cluster_is_rejected() {
        manager().add(CountsAtEdge);
    }
}
