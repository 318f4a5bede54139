//! Source → store → handler → queue → workers: reads pods from an API server, hands each key that changes to a handler.

use std::{future::Future, num::NonZeroUsize, pin::pin, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use kctl_runtime::{
    handler,
    key::{Key, ObjectKey},
    object::Kind,
    queue::{QueueConfig, WorkQueue},
    source::{Identity, Source},
    store::Store,
};
use kube::Client;
use tokio::task::JoinSet;

/// How often a key that fails is tried again before it is given up (client-go, `examples/workqueue/main.go`, `handleErr`).
pub(crate) const RETRIES_MAX: u32 = 5;

/// Any error.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is done with each key.
pub(crate) trait SyncHandler: Send + Sync + 'static {
    /// Called once, when all pods are in the store and before the first key is handled.
    fn synced(&self, pods: &Store<Pod>);

    /// Called with the newest state of a pod that may have changed, `None` when it is gone; for no key twice at once.
    ///
    /// # Errors
    /// An error is tried again with growing waits, at most [`RETRIES_MAX`] times.
    fn sync(&self, key: &Key<Pod>, pod: Option<Arc<Pod>>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Called when a key has failed too often: it is not tried again until the pod changes.
    fn dropped(&self, key: &Key<Pod>, error: &Failure);
}

/// The name of the node that a pod is on, empty for none: an index.
pub(crate) fn on_node(pod: &Pod) -> Vec<String> {
    vec![pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()]
}

/// An informer of all pods with the queue that it fills.
pub(crate) struct PodController<H> {
    source: Source,
    pods: Store<Pod>,
    queue: WorkQueue<ObjectKey>,
    handler: H,
}

impl<H: SyncHandler> PodController<H> {
    /// A controller that has not started.
    pub(crate) fn new(client: Client, handler: H) -> Self {
        let source = Source::new(client, Identity::all(Kind::of::<Pod>()), Arc::default());
        let pods = source.view();
        pods.add_index(on_node);
        Self { source, pods, queue: WorkQueue::new(QueueConfig::default()), handler }
    }

    /// Runs until `shutdown` is ready; then the keys that are ready are still handled, those that wait for their next try
    /// are not.
    pub(crate) async fn run(self, n_workers: NonZeroUsize, shutdown: impl Future<Output = ()>) {
        let this = Arc::new(self);
        // Both end when the set is dropped: the last thing that happens here.
        let mut informer = JoinSet::new();
        informer.spawn(this.source.store().clone().write());
        informer.spawn({
            let this = this.clone();
            async move { this.source.run().await }
        });
        let handled = this.source.store().subscribe(handler::for_object(this.queue.clone())).await;
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            () = handled.delivered() => this.handler.synced(&this.pods),
        }
        let mut workers = JoinSet::new();
        for _ in 0..n_workers.get() {
            workers.spawn(this.clone().work());
        }
        shutdown.await;
        this.queue.shut_down();
        workers.join_all().await;
    }

    async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            let key = Key::from(item.key.clone());
            let result = self.handler.sync(&key, self.pods.get(&key)).await;
            self.settle(&key, result);
            self.queue.done(&item.key);
        }
    }

    fn settle(&self, key: &Key<Pod>, result: Result<(), Failure>) {
        let failures = self.queue.num_requeues(key.object());
        match result {
            Err(_) if failures < RETRIES_MAX => drop(self.queue.add_rate_limited(key.object().clone())),
            Err(error) => {
                self.queue.forget(key.object());
                self.handler.dropped(key, &error);
            }
            Ok(()) => self.queue.forget(key.object()),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
