//! The store and its only writer: one task that applies deltas in order, calls the handlers and acknowledges. A bookmark
//! that changes no object is the exception: its source applies it, if no delta waits.

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

use super::{
    Change, Delta, IndexFn, NamespaceScope,
    cache::{Cache, ListedVersions},
    durations::Durations,
    inbox::Inbox,
};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid, Version},
    sync::RwLock,
};

/// Maximum number of deltas that wait for the writer. At the bound a source waits, so it stops reading from its watch.
pub const DELTAS_MAX: usize = 1024;

/// The origin of a change, as client-go's `isInInitialList`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Origin {
    /// The object belongs to the initial list of its kind or of its namespace, so the change may be old.
    InitialList,
    /// The object belongs to the initial list of a namespace or a kind that was added after the store was complete. It may
    /// concern keys that have been reconciled without it.
    LateList,
    /// The object has changed, also if that was found by a later list.
    Live,
}

/// A function that a store calls for each change, in order.
///
/// It runs on the writer's task: a slow handler delays the store. A panic is logged, and costs this handler one change.
pub type Handler = Arc<dyn Fn(&Change<Stored>, Origin) + Send + Sync>;

enum Message {
    Delta(Delta, Option<oneshot::Sender<()>>),
    Subscribe(Subscriber, oneshot::Sender<()>),
}

/// A handler and the condition under which it is called.
struct Subscriber {
    handler: Handler,
    /// The subscription ends when this pointer is dangling.
    alive: Option<Weak<()>>,
}

impl Subscriber {
    fn is_alive(&self) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.strong_count() > 0)
    }

    /// Calls the handler, unless the subscription has ended. A panic, for example in a user's mapper, costs one change;
    /// the writer and all other handlers continue.
    fn notify(&self, change: &Change<Stored>, origin: Origin) {
        if self.is_alive() && catch_unwind(AssertUnwindSafe(|| (self.handler)(change, origin))).is_err() {
            let object = change.latest().key();
            tracing::error!(%object, "a mapper or a predicate panicked: its controller misses this change");
        }
    }
}

/// The objects of one informer: read by many tasks, and changed by its [writer](Self::write).
///
/// Spawn [`write`](Self::write) once; then send [`Delta`]s by [`push`](Self::push) or
/// [`push_and_wait`](Self::push_and_wait). A [`Source`](crate::source::Source) does that for a real API server. Untyped
/// reads are here, typed ones in [`Store`](super::Store).
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::sync::{Arc, Mutex};
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::{object::{Kind, Stored}, store::{Change, Delta, SharedStore}};
///
/// let store = Arc::new(SharedStore::default());
/// tokio::spawn(store.clone().write());
///
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let log = seen.clone();
/// store.subscribe(Arc::new(move |change, _origin| log.lock().unwrap().push(change.latest().key().to_string()))).await;
///
/// let json = r#"{"metadata":{"namespace":"default","name":"web-0","uid":"1","resourceVersion":"7"}}"#;
/// let pod = Arc::new(Stored::accept(&Kind::of::<Pod>(), json)?);
/// store.push_and_wait(Delta::Replace(None, vec![pod], "7".into())).await;
/// assert!(store.is_synced());
/// assert_eq!(*seen.lock().unwrap(), ["default/web-0"]);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedStore {
    cache: RwLock<Cache>,
    synced: AtomicBool,
    /// Wakes waiting tasks in the order of their arrival, which a `watch` channel would not do: simulated runs repeat
    /// themselves.
    becomes_synced: Notify,
    /// Is `true` if the API server serves the kind.
    served: AtomicBool,
    n_served_changes: AtomicU64,
    served_changes: Notify,
    /// Notified after each delta.
    advances: Notify,
    /// Number of applied deltas since the start.
    applied: AtomicU64,
    processing: Durations,
    inbox: Inbox<Message>,
}

impl std::fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedStore")
            .field("is_synced", &self.is_synced())
            .field("applied", &self.n_applied())
            .finish_non_exhaustive()
    }
}

/// The handlers, and the subscriptions that wait for the initial list.
#[derive(Default)]
struct Subscribers {
    all: Vec<Subscriber>,
    /// Subscriptions from before the first list: they are notified once its objects were delivered.
    waiting: Vec<oneshot::Sender<()>>,
    /// `true` once the store was complete, even if a scope was added since.
    was_synced: bool,
}

/// The handle of a new subscription, which reports when the handler has seen all initial objects. Dropping it does not
/// end the subscription.
#[derive(Debug)]
pub struct Subscription(oneshot::Receiver<()>);

impl Subscription {
    /// Returns once the handler has returned from the last initial object, or the store has ended.
    ///
    /// # Cancel safety
    /// Dropping the future does not affect the subscription.
    pub async fn wait_until_delivered(self) {
        let _gone = self.0.await;
    }
}

impl Default for SharedStore {
    fn default() -> Self {
        Self::for_namespaces(&[])
    }
}

impl SharedStore {
    /// Creates a store for objects of these namespaces; an empty slice means all namespaces.
    ///
    /// The store is synced once each namespace has been listed. Objects of other namespaces are ignored.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use std::sync::Arc;
    /// use kctl_runtime::store::{Delta, SharedStore};
    ///
    /// let store = Arc::new(SharedStore::for_namespaces(&["a".into(), "b".into()]));
    /// tokio::spawn(store.clone().write());
    /// store.push_and_wait(Delta::Replace(Some("a".into()), Vec::new(), "7".into())).await;
    /// assert!(!store.is_synced());
    /// store.push_and_wait(Delta::Replace(Some("b".into()), Vec::new(), "8".into())).await;
    /// assert!(store.is_synced());
    /// # });
    /// ```
    pub fn for_namespaces(namespaces: &[String]) -> Self {
        let cache = if namespaces.is_empty() {
            Cache::default()
        } else {
            Cache::new(namespaces.iter().map(|namespace| Some(namespace.as_str().into())))
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

    /// Applies deltas until the future is dropped. Only the first call has an effect; later ones return at once.
    ///
    /// # Cancel safety
    /// Dropping the future ends the store: later deltas are not applied.
    pub async fn write(self: Arc<Self>) {
        let Some(mut inbox) = self.inbox.open() else { return };
        let mut subscribers = Subscribers::default();
        loop {
            let message = inbox.next().await;
            let done = self.handle(message, &mut subscribers);
            inbox.mark_handled();
            done.map(|done| done.send(()));
        }
    }

    /// Ends a store whose [`write`](Self::write) was never polled: handlers that wait for it are dropped, and no caller
    /// waits for a delta. A running writer does the same when it is dropped.
    pub(crate) fn end_unless_written(&self) {
        drop(self.inbox.open());
    }

    /// Handles one message, and returns the sender to notify that it is done. A separate function, so that the task of
    /// an idle store does not keep its locals.
    fn handle(&self, message: Message, subscribers: &mut Subscribers) -> Option<oneshot::Sender<()>> {
        match message {
            Message::Delta(delta, done) => {
                let begins = Instant::now();
                self.apply(delta, subscribers);
                self.processing.observe(begins.elapsed());
                self.applied.fetch_add(1, Ordering::Relaxed);
                self.advances.notify_waiters();
                done
            }
            Message::Subscribe(subscriber, done) => {
                for object in self.all() {
                    subscriber.notify(&Change::Added(object), Origin::InitialList);
                }
                subscribers.all.push(subscriber);
                if self.is_synced() {
                    return Some(done);
                }
                subscribers.waiting.push(done);
                None
            }
        }
    }

    fn apply(&self, delta: Delta, subscribers: &mut Subscribers) {
        subscribers.was_synced |= self.is_synced();
        // The source has logged that it follows an older list.
        let (is_logged, n_restores) = (matches!(delta, Delta::Restore(..)), self.n_restores());
        let (origin, changes, complete, served) = {
            let mut cache = self.cache.write();
            let origin = match (cache.is_initial(&delta), subscribers.was_synced) {
                (true, false) => Origin::InitialList,
                (true, true) => Origin::LateList,
                (false, _) => Origin::Live,
            };
            let affects_scopes = delta.affects_scopes();
            let changes = cache.apply(delta);
            // A store may have thousands of namespaces, and the event of an object completes none of them.
            let (complete, served) = if affects_scopes {
                (cache.is_complete(), cache.is_served())
            } else {
                (self.is_synced(), self.is_served())
            };
            debug_assert_eq!(complete, cache.is_complete(), "an event of an object neither lists nor adds a scope");
            (origin, changes, complete, served)
        };
        if !is_logged && self.n_restores() != n_restores {
            let object = changes.first().map(|change| change.latest().key().to_string()).unwrap_or_default();
            tracing::warn!(
                object,
                "the API server listed older versions of objects (restored from a backup?): the cache follows it"
            );
        }
        subscribers.all.retain(Subscriber::is_alive);
        for change in &changes {
            for subscriber in &subscribers.all {
                subscriber.notify(change, origin);
            }
        }
        // After the handlers, so that a synced store has delivered its initial objects.
        if complete != self.is_synced() {
            self.synced.store(complete, Ordering::SeqCst);
            if complete {
                self.becomes_synced.notify_waiters();
            }
        }
        // An incomplete cache may belong to a kind that is not served; that is known only after the next request.
        if complete && self.served.swap(served, Ordering::SeqCst) != served {
            self.n_served_changes.fetch_add(1, Ordering::SeqCst);
            self.served_changes.notify_waiters();
        }
        if complete {
            for done in subscribers.waiting.drain(..) {
                let _left = done.send(());
            }
        }
    }

    /// Sends a delta to the writer, without waiting until it is applied. Waits while [`DELTAS_MAX`] deltas are in the
    /// queue.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the delta is not sent.
    pub async fn push(&self, delta: Delta) {
        self.inbox.send(Message::Delta(delta, None)).await;
    }

    /// Sends a delta if there is room for it. Otherwise the caller gets it back.
    pub(crate) fn try_push(&self, delta: Delta) -> Result<(), Delta> {
        if let Delta::Bookmark(scope, version) = &delta
            && self.try_advance(scope, version)
        {
            return Ok(());
        }
        match self.inbox.try_reserve() {
            Some(slot) => {
                slot.put(Message::Delta(delta, None));
                Ok(())
            }
            None => Err(delta),
        }
    }

    /// Applies a bookmark at once, and returns `true`, if no delta waits for the writer and no object leaves the cache by it.
    ///
    /// A replica of a sharded program receives one for each event of another replica's object. Each would wake the writer.
    fn try_advance(&self, scope: &NamespaceScope, version: &str) -> bool {
        let revision = version.parse().ok();
        if !self.inbox.is_idle() || !self.cache.write().try_advance(scope, revision) {
            return false;
        }
        self.applied.fetch_add(1, Ordering::Relaxed);
        self.advances.notify_waiters();
        true
    }

    /// Sends a delta to the writer and returns once it is applied: readers see it, and handlers have returned from its
    /// changes.
    ///
    /// # Cancel safety
    /// If the future is dropped, the delta may still be applied.
    pub async fn push_and_wait(&self, delta: Delta) {
        let (done, seen) = oneshot::channel();
        self.inbox.send(Message::Delta(delta, Some(done))).await;
        // Fails only if the writer task has ended, which drops the sender.
        let _closed = seen.await;
    }

    /// Returns once all deltas that were sent before are applied.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub(crate) async fn flush(&self) {
        // A bookmark without a version moves no mark. The queue is fair, so it is behind every delta that waits for room.
        self.push_and_wait(Delta::Bookmark(None, String::new())).await;
    }

    /// Applies a list of a whole scope that began after [`Delta::Listing`] was applied. Returns `false` if it has to be
    /// requested again, because too much happened during the list.
    ///
    /// # Cancel safety
    /// If the future is dropped, the list may still be applied.
    pub(crate) async fn join(&self, scope: NamespaceScope, objects: Vec<Arc<Stored>>, version: String) -> bool {
        self.push_and_wait(Delta::Join(scope, objects, version)).await;
        self.cache.read().has_joined()
    }

    /// Adds a handler. It is called for each present object as [`Change::Added`], and then for every change exactly
    /// once.
    ///
    /// The returned [`Subscription`] reports when the initial objects are delivered. There is no way to unsubscribe a
    /// handler: it lives as long as the store. [`for_object`](crate::handler::for_object) and
    /// [`for_relation`](crate::handler::for_relation) make handlers that fill a queue; [`SharedStore`] has an example
    /// with a closure.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the handler is not added.
    pub async fn subscribe(&self, handler: Handler) -> Subscription {
        self.add(Subscriber { handler, alive: None }).await
    }

    /// Adds a handler for as long as the value that `alive` points to exists.
    pub(crate) async fn subscribe_while(&self, handler: Handler, alive: Weak<()>) -> Subscription {
        self.add(Subscriber { handler, alive: Some(alive) }).await
    }

    async fn add(&self, subscriber: Subscriber) -> Subscription {
        let (done, seen) = oneshot::channel();
        self.inbox.send(Message::Subscribe(subscriber, done)).await;
        Subscription(seen)
    }

    /// Adds an index under a name, and fills it with the present objects. An existing index of this name is kept.
    ///
    /// A panic of the function ends the writer of the store. [`Store::add_index`](super::Store::add_index) catches it.
    ///
    /// # Panics
    /// If the function panics for a present object.
    pub fn add_index(&self, name: &'static str, values_of: IndexFn) {
        self.cache.write().add_index(name, values_of);
    }

    /// Returns once every scope of the store has been listed. It waits indefinitely if the writer ends before that.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
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

    /// Returns `true` if every scope has been listed. Becomes `false` again while the API server does not serve a
    /// required kind, and while a new namespace is being listed. For an optional kind that is no longer served, it is
    /// `false` only until that is certain, after about twelve seconds.
    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::SeqCst)
    }

    /// Returns `true` if the API server serves the kind. Only an optional kind can be complete and not served.
    pub fn is_served(&self) -> bool {
        self.served.load(Ordering::SeqCst)
    }

    /// Returns `true` if it is certain that the API server does not serve the kind in this scope.
    pub(crate) fn is_absent(&self, scope: &NamespaceScope) -> bool {
        self.cache.read().is_absent(scope)
    }

    /// Returns how often [`is_served`](Self::is_served) has changed since the start.
    pub(crate) fn n_served_changes(&self) -> u64 {
        self.n_served_changes.load(Ordering::SeqCst)
    }

    /// Returns the number of changes of [`is_served`](Self::is_served) once it differs from `n_seen`.
    pub(crate) async fn wait_for_served_change(&self, n_seen: u64) -> u64 {
        loop {
            let mut changes = std::pin::pin!(self.served_changes.notified());
            changes.as_mut().enable();
            let n = self.n_served_changes();
            if n != n_seen {
                return n;
            }
            changes.await;
        }
    }

    /// Returns the `resourceVersion` up to which the source has reported everything; 0 before the first list, or if
    /// versions cannot be compared.
    pub fn revision(&self) -> u64 {
        self.cache.read().revision()
    }

    /// Returns `true` if nothing may be written in a namespace, because the store does not know all objects there.
    pub(crate) fn blocks_writes(&self, namespace: Option<&str>) -> bool {
        self.cache.read().blocks_writes(namespace)
    }

    /// Returns `true` if the store has this state of an object, or a newer one.
    pub(crate) fn has(&self, key: &ObjectKey, uid: &Uid, version: &Version) -> bool {
        self.cache.read().has(key, uid, version)
    }

    /// Returns once the store has this state of an object or a newer one, or the object has left the store.
    pub(crate) async fn wait_for(&self, key: &ObjectKey, uid: &Uid, version: &Version) {
        let mut was_cached = false;
        loop {
            let mut advances = std::pin::pin!(self.advances.notified());
            advances.as_mut().enable();
            let is_cached = self.get(key).is_some_and(|cached| cached.meta().uid == *uid);
            if self.has(key, uid, version) || (was_cached && !is_cached) {
                return;
            }
            was_cached = is_cached;
            advances.await;
        }
    }

    /// Returns `true` if the store has everything of a scope that `present` lists, or a newer state.
    pub(crate) fn has_all(&self, scope: &NamespaceScope, present: &ListedVersions) -> bool {
        self.cache.read().has_all(scope, present)
    }

    /// Returns the number of deltas applied since the start. A store whose number does not grow is idle.
    pub fn n_applied(&self) -> u64 {
        self.applied.load(Ordering::Relaxed)
    }

    /// Returns how often the API server's state went back, so that versions from before say nothing about later ones.
    pub(crate) fn n_restores(&self) -> u64 {
        self.cache.read().n_restores()
    }

    /// Returns the durations of applying a delta, including the handlers.
    pub(crate) fn processing(&self) -> &Durations {
        &self.processing
    }

    /// Returns the number of deltas that wait for the writer or are being applied.
    pub fn backlog(&self) -> usize {
        self.inbox.len()
    }

    /// Returns how long the delta that is applied now, or next, has waited: the delay of the store behind the messages
    /// that the process has received. Zero if none waits.
    pub fn lag(&self) -> Duration {
        self.inbox.lag()
    }

    /// Returns the size of the stored JSON of all objects in bytes: most of a cache's memory.
    ///
    /// JSON counts as it is stored, which may be compressed. Indexes and decoded objects are not counted.
    pub fn n_bytes(&self) -> usize {
        self.cache.read().n_bytes()
    }

    /// Returns the number of own deletes that the watch has not confirmed yet, at most
    /// [`TOMBSTONES_MAX`](super::TOMBSTONES_MAX).
    pub fn tombstones(&self) -> usize {
        self.cache.read().n_tombstones()
    }

    /// Returns the object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.cache.read().get(key).cloned()
    }

    /// Returns all objects, sorted by namespace and name.
    pub fn all(&self) -> Vec<Arc<Stored>> {
        self.cache.read().all().cloned().collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.cache.read().len()
    }

    /// Returns `true` if the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the objects whose controller reference has this uid, sorted by key.
    pub fn owned_by(&self, uid: &Uid) -> Vec<Arc<Stored>> {
        self.cache.read().owned_by(uid)
    }

    /// Returns the objects of one namespace, sorted by name. `None` selects cluster-scoped objects.
    pub fn in_namespace(&self, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.cache.read().in_namespace(namespace)
    }

    /// Returns the objects with this value in an index, or `None` if there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<Stored>>> {
        self.cache.read().by_index(name, value)
    }
}
