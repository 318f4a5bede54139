//! The one task that changes a store: reads deltas in order, applies each, calls the handlers, acknowledges.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{mpsc, oneshot, watch};

use super::{Change, Delta, IndexFn, cache::Cache};
use crate::{key::ObjectKey, object::Stored};

/// Deltas that wait for the writer; a source that finds the channel full waits, which holds its watch back.
pub const DELTAS_MAX: usize = 1024;

/// Told of each change, in order. The flag says whether it belongs to the initial list.
pub type Handler = Arc<dyn Fn(&Change<Stored>, bool) + Send + Sync>;

enum Message {
    Delta(Delta, Option<oneshot::Sender<()>>),
    Subscribe(Handler, oneshot::Sender<()>),
}

/// The objects of one informer: read by many, changed by one writer task.
pub struct SharedStore {
    cache: RwLock<Cache>,
    /// How many scopes make it complete.
    n_scopes: usize,
    synced: watch::Sender<bool>,
    /// Deltas that were taken in since the start.
    applied: AtomicU64,
    sender: mpsc::Sender<Message>,
    receiver: Mutex<Option<mpsc::Receiver<Message>>>,
}

/// Says when a handler has seen all initial objects.
pub struct Subscription(oneshot::Receiver<()>);

impl Subscription {
    /// Returns once the handler has returned from the last of the initial objects, or the store is no more.
    pub async fn delivered(self) {
        let _gone = self.0.await;
    }
}

/// A handler that panics, be it a mapper or a predicate of the user, misses one change: the writer and all other handlers go on.
fn tell(handler: &Handler, change: &Change<Stored>, initial: bool) {
    if catch_unwind(AssertUnwindSafe(|| handler(change, initial))).is_err() {
        let object = change.latest().key();
        tracing::error!(%object, "a mapper or a predicate panicked: this change of the object queues nothing for it");
    }
}

impl Default for SharedStore {
    fn default() -> Self {
        Self::of_scopes(1)
    }
}

impl SharedStore {
    /// A store that is filled by so many lists and watches: it has synced when each of them has listed.
    pub fn of_scopes(n_scopes: usize) -> Self {
        let (sender, receiver) = mpsc::channel(DELTAS_MAX);
        Self {
            cache: RwLock::default(),
            n_scopes: n_scopes.max(1),
            synced: watch::Sender::new(false),
            applied: AtomicU64::new(0),
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }

    /// Takes deltas until the store is dropped by all others. Only the first call does anything.
    ///
    /// # Cancel safety
    /// Dropping the future ends the store: later deltas are not applied.
    pub async fn write(self: Arc<Self>) {
        let Some(mut receiver) = self.receiver.lock().take() else { return };
        let mut handlers: Vec<Handler> = Vec::new();
        // Those that came before the first list are told once its objects were delivered.
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        while let Some(message) = receiver.recv().await {
            match message {
                Message::Delta(delta, done) => {
                    self.apply(delta, &handlers, &mut waiting);
                    self.applied.fetch_add(1, Ordering::Relaxed);
                    done.map(|done| done.send(()));
                }
                Message::Subscribe(handler, done) => {
                    let mut present = self.all();
                    present.sort_by(|a, b| a.key().cmp(b.key()));
                    for object in present {
                        tell(&handler, &Change::Added(object), true);
                    }
                    handlers.push(handler);
                    if *self.synced.borrow() {
                        let _left = done.send(());
                    } else {
                        waiting.push(done);
                    }
                }
            }
        }
    }

    fn apply(&self, delta: Delta, handlers: &[Handler], waiting: &mut Vec<oneshot::Sender<()>>) {
        let listed = matches!(delta, Delta::Replace(..));
        let initial = listed && !*self.synced.borrow();
        let (changes, n_scopes) = {
            let mut cache = self.cache.write();
            (cache.apply(delta), cache.n_scopes())
        };
        for change in &changes {
            for handler in handlers {
                tell(handler, change, initial);
            }
        }
        if listed && n_scopes >= self.n_scopes {
            self.synced.send_replace(true);
            for done in waiting.drain(..) {
                let _left = done.send(());
            }
        }
    }

    /// Hands a delta to the writer without waiting for its effect.
    pub async fn push(&self, delta: Delta) {
        let _closed = self.sender.send(Message::Delta(delta, None)).await;
    }

    /// Hands a delta to the writer and returns once readers see it.
    pub async fn acknowledged(&self, delta: Delta) {
        let (done, seen) = oneshot::channel();
        if self.sender.send(Message::Delta(delta, Some(done))).await.is_ok() {
            let _closed = seen.await;
        }
    }

    /// Adds a handler: it gets every object present, then every change, each exactly once.
    pub async fn subscribe(&self, handler: Handler) -> Subscription {
        let (done, seen) = oneshot::channel();
        let _closed = self.sender.send(Message::Subscribe(handler, done)).await;
        Subscription(seen)
    }

    /// Adds an index.
    pub fn add_index(&self, name: &'static str, values_of: IndexFn) {
        self.cache.write().add_index(name, values_of);
    }

    /// Returns once the first complete list is in the store.
    pub async fn wait_until_synced(&self) {
        let mut synced = self.synced.subscribe();
        let _closed = synced.wait_for(|synced| *synced).await;
    }

    /// Whether a complete list has been taken in.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// How many bytes the objects take as trimmed JSON; what indexes and decoded objects take beside is not in it.
    pub fn bytes(&self) -> usize {
        self.cache.read().n_bytes()
    }

    /// Up to which revision the source has reported.
    pub fn revision(&self) -> u64 {
        self.cache.read().revision()
    }

    /// Deltas that were taken in since the start: it grows as long as there are any.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// Deltas that wait for the writer.
    pub fn backlog(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Deleted objects that are remembered until the watch has told of them; at most [`TOMBSTONES_MAX`](super::TOMBSTONES_MAX).
    pub fn tombstones(&self) -> usize {
        self.cache.read().n_tombstones()
    }

    /// The object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.cache.read().get(key).cloned()
    }

    /// All objects, in no order.
    pub fn all(&self) -> Vec<Arc<Stored>> {
        self.cache.read().all().cloned().collect()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.cache.read().len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects whose controller reference has that uid.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Stored>> {
        self.cache.read().owned_by(uid)
    }

    /// The objects of one namespace, by name.
    pub fn in_namespace(&self, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.cache.read().in_namespace(namespace)
    }

    /// The objects that an index has under a value; `None` when there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<Stored>>> {
        self.cache.read().by_index(name, value)
    }
}
