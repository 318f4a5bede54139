//! The one task that changes a store: reads deltas in order, applies each, calls the handlers, acknowledges.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{Change, Delta, IndexFn, Scope, cache::Cache, durations::Durations, inbox::Inbox};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid, Version},
    source::Present,
    turns::RwLock,
};

/// Deltas that wait for the writer; a source that finds no room waits, which holds its watch back.
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

    /// Who goes while a list is told hears nothing of the rest of it. A handler that panics, be it a mapper or a predicate of
    /// the user, misses one change: the writer and all other handlers go on.
    fn tell(&self, change: &Change<Stored>, initial: bool) {
        if self.is_alive() && catch_unwind(AssertUnwindSafe(|| (self.handler)(change, initial))).is_err() {
            let object = change.latest().key();
            tracing::error!(%object, "a mapper or a predicate panicked: this change of the object queues nothing for it");
        }
    }
}

/// The objects of one informer: read by many, changed by one writer task.
pub struct SharedStore {
    cache: RwLock<Cache>,
    synced: AtomicBool,
    /// Who waits for it is woken in the order of coming, as a `watch` channel would not do: simulated runs repeat themselves.
    becomes_synced: Notify,
    /// Whether the API server serves the kind, and how often that has changed.
    served: AtomicBool,
    n_served_changes: AtomicU64,
    served_changes: Notify,
    /// After each delta.
    advances: Notify,
    /// Deltas that were taken in since the start.
    applied: AtomicU64,
    processing: Durations,
    inbox: Inbox<Message>,
}

/// Who hears of changes, and who waits for that.
#[derive(Default)]
struct Audience {
    subscribers: Vec<Subscriber>,
    /// Those that came before the first list are told once its objects were delivered.
    waiting: Vec<oneshot::Sender<()>>,
}

/// Says when a handler has seen all initial objects.
pub struct Subscription(oneshot::Receiver<()>);

impl Subscription {
    /// Returns once the handler has returned from the last of the initial objects, or the store is no more.
    pub async fn delivered(self) {
        let _gone = self.0.await;
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
        let cache = if namespaces.is_empty() {
            Cache::default()
        } else {
            Cache::of(namespaces.iter().map(|namespace| Some(namespace.as_str().into())))
        };
        Self {
            cache: RwLock::new(cache),
            synced: AtomicBool::new(false),
            becomes_synced: Notify::new(),
            served: AtomicBool::new(false),
            n_served_changes: AtomicU64::new(0),
            served_changes: Notify::new(),
            advances: Notify::new(),
            applied: AtomicU64::new(0),
            processing: Durations::default(),
            inbox: Inbox::new(DELTAS_MAX),
        }
    }

    /// Takes deltas for ever. Only the first call does anything.
    ///
    /// # Cancel safety
    /// Dropping the future ends the store: later deltas are not applied.
    pub async fn write(self: Arc<Self>) {
        let Some(mut inbox) = self.inbox.open() else { return };
        let mut audience = Audience::default();
        loop {
            let message = inbox.next().await;
            let done = self.take_in(message, &mut audience);
            inbox.done();
            done.map(|done| done.send(()));
        }
    }

    /// Says whom to tell that it is done. Apart, so that the task of a quiet store does not keep the place for it.
    fn take_in(&self, message: Message, audience: &mut Audience) -> Option<oneshot::Sender<()>> {
        match message {
            Message::Delta(delta, done) => {
                let begins = Instant::now();
                self.apply(delta, audience);
                self.processing.observe(begins.elapsed());
                self.applied.fetch_add(1, Ordering::Relaxed);
                self.advances.notify_waiters();
                done
            }
            Message::Subscribe(subscriber, done) => {
                for object in self.all() {
                    subscriber.tell(&Change::Added(object), true);
                }
                audience.subscribers.push(subscriber);
                if self.is_synced() {
                    return Some(done);
                }
                audience.waiting.push(done);
                None
            }
        }
    }

    fn apply(&self, delta: Delta, audience: &mut Audience) {
        let listed = matches!(delta, Delta::Replace(..) | Delta::Restore(..));
        let initial = listed && !self.is_synced();
        let (changes, complete, served) = {
            let mut cache = self.cache.write();
            (cache.apply(delta), cache.is_complete(), cache.is_served())
        };
        audience.subscribers.retain(Subscriber::is_alive);
        for change in &changes {
            for subscriber in &audience.subscribers {
                subscriber.tell(change, initial);
            }
        }
        if complete != self.is_synced() {
            self.synced.store(complete, Ordering::SeqCst);
            if complete {
                self.becomes_synced.notify_waiters();
            }
        }
        // What is not complete may be served or not: that is known later.
        if complete && self.served.swap(served, Ordering::SeqCst) != served {
            self.n_served_changes.fetch_add(1, Ordering::SeqCst);
            self.served_changes.notify_waiters();
        }
        if complete {
            for done in audience.waiting.drain(..) {
                let _left = done.send(());
            }
        }
    }

    /// Hands a delta to the writer without waiting for its effect.
    pub async fn push(&self, delta: Delta) {
        self.inbox.send(Message::Delta(delta, None)).await;
    }

    /// The same where there is room for it; otherwise the caller has it back.
    pub(crate) fn try_push(&self, delta: Delta) -> Result<(), Delta> {
        match self.inbox.try_reserve() {
            Some(place) => {
                place.put(Message::Delta(delta, None));
                Ok(())
            }
            None => Err(delta),
        }
    }

    /// Hands a delta to the writer and returns once readers see it.
    pub async fn acknowledged(&self, delta: Delta) {
        let (done, seen) = oneshot::channel();
        self.inbox.send(Message::Delta(delta, Some(done))).await;
        // Without a writer the sender is gone.
        let _closed = seen.await;
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
        self.inbox.send(Message::Subscribe(subscriber, done)).await;
        Subscription(seen)
    }

    /// Adds an index.
    pub fn add_index(&self, name: &'static str, values_of: IndexFn) {
        self.cache.write().add_index(name, values_of);
    }

    /// Returns once everything that is wanted has been listed.
    pub async fn wait_until_synced(&self) {
        loop {
            let mut becomes = std::pin::pin!(self.becomes_synced.notified());
            becomes.as_mut().enable();
            if self.is_synced() {
                return;
            }
            becomes.await;
        }
    }

    /// Whether everything that is wanted has been listed: not before the first list, nor while the kind is not there.
    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::SeqCst)
    }

    /// Returns `true` if the API server serves the kind. Only an optional kind can be complete and not served.
    pub fn is_served(&self) -> bool {
        self.served.load(Ordering::SeqCst)
    }

    /// How often [`is_served`](Self::is_served) has changed since the start.
    pub(crate) fn n_served_changes(&self) -> u64 {
        self.n_served_changes.load(Ordering::SeqCst)
    }

    /// Returns the number of changes of [`is_served`](Self::is_served) once it differs from `known`.
    pub(crate) async fn served_change(&self, known: u64) -> u64 {
        loop {
            let mut changes = std::pin::pin!(self.served_changes.notified());
            changes.as_mut().enable();
            let n = self.n_served_changes();
            if n != known {
                return n;
            }
            changes.await;
        }
    }

    /// Returns the size of the stored JSON in bytes, without indexes and decoded objects.
    pub fn bytes(&self) -> usize {
        self.cache.read().n_bytes()
    }

    /// Up to which revision the source has reported.
    pub fn revision(&self) -> u64 {
        self.cache.read().revision()
    }

    /// Whether nothing may be written in a namespace, because the store does not know (any longer) what is there.
    pub(crate) fn bars(&self, namespace: Option<&str>) -> bool {
        self.cache.read().bars(namespace)
    }

    /// Whether it has a state of an object, or something newer.
    pub(crate) fn has(&self, key: &ObjectKey, uid: &Uid, version: &Version) -> bool {
        self.cache.read().has(key, uid, version)
    }

    /// Returns once it has a state of an object, or something newer, or nothing of it after it had it.
    pub(crate) async fn wait_for(&self, key: &ObjectKey, uid: &Uid, version: &Version) {
        let mut was_there = false;
        loop {
            let mut advances = std::pin::pin!(self.advances.notified());
            advances.as_mut().enable();
            let is_there = self.get(key).is_some_and(|known| known.meta().uid == *uid);
            if self.has(key, uid, version) || (was_there && !is_there) {
                return;
            }
            was_there = is_there;
            advances.await;
        }
    }

    /// Whether it has everything of a scope that is there, or something newer.
    pub(crate) fn has_all(&self, scope: &Scope, present: &Present) -> bool {
        self.cache.read().has_all(scope, present)
    }

    /// Deltas that were taken in since the start: it grows as long as there are any.
    pub fn applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// How long deltas have taken, handlers included.
    pub(crate) fn processing(&self) -> &Durations {
        &self.processing
    }

    /// Deltas that wait for the writer or are being taken in.
    pub fn backlog(&self) -> usize {
        self.inbox.len()
    }

    /// How long the delta that is taken in next, or is being taken in, has waited: so much the store may be behind what the
    /// process has been told. Zero when none waits.
    pub fn lag(&self) -> Duration {
        self.inbox.lag()
    }

    /// Returns the size of the stored JSON of all objects in bytes: most of a cache's memory.
    pub fn n_bytes(&self) -> usize {
        self.cache.read().n_bytes()
    }

    /// Returns the number of own deletes that the watch has not confirmed yet, at most [`TOMBSTONES_MAX`](super::TOMBSTONES_MAX).
    pub fn tombstones(&self) -> usize {
        self.cache.read().n_tombstones()
    }

    /// The object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.cache.read().get(key).cloned()
    }

    /// All objects, by namespace and name.
    pub fn all(&self) -> Vec<Arc<Stored>> {
        self.cache.read().all().cloned().collect()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.cache.read().len()
    }

    /// Returns `true` if the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects whose controller reference has that uid.
    pub fn owned_by(&self, uid: &Uid) -> Vec<Arc<Stored>> {
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
