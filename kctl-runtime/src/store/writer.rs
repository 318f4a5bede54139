//! The one task that changes a store: reads deltas in order, applies each, calls the handlers, acknowledges.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{Change, Delta, IndexFn, Scope, cache::Cache};
use crate::{key::ObjectKey, object::Stored, source::Present};

/// Deltas that wait for the writer; a source that finds the channel full waits, which holds its watch back.
pub const DELTAS_MAX: usize = 1024;

/// Told of each change, in order. The flag says whether it belongs to the initial list.
pub type Handler = Arc<dyn Fn(&Change<Stored>, bool) + Send + Sync>;

enum Message {
    Delta(Delta, Option<oneshot::Sender<()>>),
    Subscribe(Subscriber, oneshot::Sender<()>),
}

struct Subscriber {
    handler: Handler,
    /// Whose end ends the subscription.
    alive: Option<Weak<()>>,
}

impl Subscriber {
    fn is_alive(&self) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.strong_count() > 0)
    }
}

/// The objects of one informer: read by many, changed by one writer task.
pub struct SharedStore {
    cache: RwLock<Cache>,
    synced: watch::Sender<bool>,
    /// Deltas that were taken in since the start.
    applied: AtomicU64,
    sender: mpsc::Sender<Message>,
    /// Since when each delta waits, in their order.
    waiting: Mutex<VecDeque<Instant>>,
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
        Self::of_namespaces(&[])
    }
}

impl SharedStore {
    /// A store of what is in these namespaces; none is all. It has synced when each of them has been listed.
    pub fn of_namespaces(namespaces: &[String]) -> Self {
        let (sender, receiver) = mpsc::channel(DELTAS_MAX);
        let cache = if namespaces.is_empty() {
            Cache::default()
        } else {
            Cache::of(namespaces.iter().map(|namespace| Some(namespace.as_str().into())))
        };
        Self {
            cache: RwLock::new(cache),
            synced: watch::Sender::new(false),
            applied: AtomicU64::new(0),
            sender,
            waiting: Mutex::default(),
            receiver: Mutex::new(Some(receiver)),
        }
    }

    /// Takes deltas until the store is dropped by all others. Only the first call does anything.
    ///
    /// # Cancel safety
    /// Dropping the future ends the store: later deltas are not applied.
    pub async fn write(self: Arc<Self>) {
        let Some(mut receiver) = self.receiver.lock().take() else { return };
        let mut subscribers: Vec<Subscriber> = Vec::new();
        // Those that came before the first list are told once its objects were delivered.
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        while let Some(message) = receiver.recv().await {
            match message {
                Message::Delta(delta, done) => {
                    self.apply(delta, &mut subscribers, &mut waiting);
                    self.waiting.lock().pop_front();
                    self.applied.fetch_add(1, Ordering::Relaxed);
                    done.map(|done| done.send(()));
                }
                Message::Subscribe(subscriber, done) => {
                    let mut present = self.all();
                    present.sort_by(|a, b| a.key().cmp(b.key()));
                    for object in present {
                        tell(&subscriber.handler, &Change::Added(object), true);
                    }
                    subscribers.push(subscriber);
                    if *self.synced.borrow() {
                        let _left = done.send(());
                    } else {
                        waiting.push(done);
                    }
                }
            }
        }
    }

    fn apply(&self, delta: Delta, subscribers: &mut Vec<Subscriber>, waiting: &mut Vec<oneshot::Sender<()>>) {
        let listed = matches!(delta, Delta::Replace(..) | Delta::Restore(..));
        let initial = listed && !*self.synced.borrow();
        let (changes, complete) = {
            let mut cache = self.cache.write();
            (cache.apply(delta), cache.is_complete())
        };
        subscribers.retain(Subscriber::is_alive);
        for change in &changes {
            for Subscriber { handler, .. } in &*subscribers {
                tell(handler, change, initial);
            }
        }
        if complete != *self.synced.borrow() {
            self.synced.send_replace(complete);
        }
        if complete {
            for done in waiting.drain(..) {
                let _left = done.send(());
            }
        }
    }

    /// Hands a delta to the writer without waiting for its effect.
    pub async fn push(&self, delta: Delta) {
        self.send(delta, None).await;
    }

    /// Whether it was sent.
    async fn send(&self, delta: Delta, done: Option<oneshot::Sender<()>>) -> bool {
        let since = Instant::now();
        let Ok(place) = self.sender.reserve().await else { return false };
        self.waiting.lock().push_back(since);
        place.send(Message::Delta(delta, done));
        true
    }

    /// Hands a delta to the writer and returns once readers see it.
    pub async fn acknowledged(&self, delta: Delta) {
        let (done, seen) = oneshot::channel();
        if self.send(delta, Some(done)).await {
            let _closed = seen.await;
        }
    }

    /// Adds a handler: it gets every object present, then every change, each exactly once.
    pub async fn subscribe(&self, handler: Handler) -> Subscription {
        self.add(Subscriber { handler, alive: None }).await
    }

    /// The same, as long as somebody holds what `alive` points to.
    pub(crate) async fn subscribe_while(&self, handler: Handler, alive: Weak<()>) -> Subscription {
        self.add(Subscriber { handler, alive: Some(alive) }).await
    }

    async fn add(&self, subscriber: Subscriber) -> Subscription {
        let (done, seen) = oneshot::channel();
        let _closed = self.sender.send(Message::Subscribe(subscriber, done)).await;
        Subscription(seen)
    }

    /// Adds an index.
    pub fn add_index(&self, name: &'static str, values_of: IndexFn) {
        self.cache.write().add_index(name, values_of);
    }

    /// Returns once everything that is wanted has been listed.
    pub async fn wait_until_synced(&self) {
        let mut synced = self.synced.subscribe();
        let _closed = synced.wait_for(|synced| *synced).await;
    }

    /// Whether everything that is wanted has been listed: not before the first list, nor while the kind is not there.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Up to which revision the source has reported.
    pub fn revision(&self) -> u64 {
        self.cache.read().revision()
    }

    /// Whether nothing may be written in a namespace, because the store does not know (any longer) what is there.
    pub(crate) fn bars(&self, namespace: Option<&str>) -> bool {
        self.cache.read().bars(namespace)
    }

    /// Whether it has everything of a scope that is there, or something newer.
    pub(crate) fn has_all(&self, scope: &Scope, present: &Present) -> bool {
        self.cache.read().has_all(scope, present)
    }

    /// Deltas that were taken in since the start: it grows as long as there are any.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// Deltas that wait for the writer.
    pub fn backlog(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// How long the delta that is taken in next, or is being taken in, has waited: so much the store may be behind what the
    /// process has been told. Zero when none waits.
    pub fn lag(&self) -> Duration {
        self.waiting.lock().front().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Length of the JSON of all objects: the larger part of what a cache holds.
    pub fn n_bytes(&self) -> usize {
        self.cache.read().n_bytes()
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
