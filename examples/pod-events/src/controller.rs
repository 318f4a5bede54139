//! Passes each changed key to a function: source → store → handler → queue → workers, built from the parts of
//! `kctl-runtime`.
//!
//! The start order matters. First the writer of the store runs, then the source, and then the handler subscribes.
//! Workers start once the handler has seen the whole initial list, so that no key is handled with a partial cache. At
//! the end, the queue is shut down before the informer, so that workers read a complete cache up to their last key.

use std::{future::Future, num::NonZeroUsize, pin::pin, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use kctl_runtime::{
    handler,
    key::{Key, ObjectKey},
    object::Kind,
    queue::{Add, Cause, QueueConfig, WorkQueue},
    source::{Source, WatchConfig},
    store::Store,
};
use kube::Client;
use tokio::task::JoinSet;

/// Maximum number of retries before a key is dropped (client-go, `examples/workqueue/main.go`, `handleErr`).
pub(crate) const RETRIES_MAX: u32 = 5;

/// The error of a handler.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The callbacks of the program.
pub(crate) trait SyncHandler: Send + Sync + 'static {
    /// Called once, after all pods are in the store and before the first key is handled.
    fn synced(&self, pods: &Store<Pod>);

    /// Called with the newest state of a pod that may have changed, or `None` if it is gone. Calls for one key never
    /// overlap.
    ///
    /// # Errors
    /// The key is retried with increasing backoff, at most [`RETRIES_MAX`] times.
    fn sync(&self, key: &Key<Pod>, pod: Option<Arc<Pod>>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Called when a key has failed too often. The key is not retried until the pod changes.
    fn dropped(&self, key: &Key<Pod>, error: &Failure);
}

/// Index function: returns the node of a pod, or an empty name.
pub(crate) fn on_node(pod: &Pod) -> Vec<String> {
    vec![pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()]
}

/// An informer of all pods, and the work queue that it fills.
pub(crate) struct PodController<H> {
    /// Lists and watches the pods.
    source: Source,
    /// The typed view of the cache.
    pods: Store<Pod>,
    /// Keys of changed pods.
    queue: WorkQueue<ObjectKey>,
    handler: H,
}

impl<H: SyncHandler> PodController<H> {
    /// Creates a controller; [`run`](Self::run) starts it.
    pub(crate) fn new(client: Client, handler: H) -> Self {
        let source = Source::new(client, WatchConfig::new(Kind::of::<Pod>()), Arc::default());
        let pods = source.view();
        pods.add_index(on_node);
        Self { source, pods, queue: WorkQueue::new(QueueConfig::default()), handler }
    }

    /// Runs until `shutdown` completes. Keys that are due at that time are still handled; keys that wait for a retry
    /// are not.
    pub(crate) async fn run(self, n_workers: NonZeroUsize, shutdown: impl Future<Output = ()>) {
        let this = Arc::new(self);
        // Dropping the set ends both tasks, after the workers have ended.
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
            () = handled.wait_until_delivered() => this.handler.synced(&this.pods),
        }
        let mut workers = JoinSet::new();
        for _ in 0..n_workers.get() {
            workers.spawn(this.clone().work());
        }
        shutdown.await;
        this.queue.shut_down();
        workers.join_all().await;
    }

    /// Handles keys until the queue is shut down and drained.
    async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            let key = Key::from(item.key.clone());
            let result = self.handler.sync(&key, self.pods.get(&key)).await;
            self.retry_or_forget(&key, result);
            self.queue.done(&item.key);
        }
    }

    /// Requeues a failed key with backoff. After a success or the last retry, forgets its failures.
    fn retry_or_forget(&self, key: &Key<Pod>, result: Result<(), Failure>) {
        let failures = self.queue.num_requeues(key.object());
        match result {
            Err(_) if failures < RETRIES_MAX => {
                self.queue.add(Add::new(key.object().clone()).cause(Cause::Failure));
            }
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
