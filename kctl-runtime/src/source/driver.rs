//! The source: performs the requests, waits and effects that the reflector returns.
//!
//! The decisions are in [`Reflector`](super::Reflector). The files of this folder do the I/O: `run` takes the next
//! request of each scope, `list` and `watch` send it, `watch_event` and `decode` read the response, and `effects` pushes
//! the deltas to the store.
//!
//! Its futures are kept small on purpose. A program may have thousands of watches, most of them idle. A local variable
//! that lives across an `.await` costs its size in each of them. So a value that is needed only for a moment is boxed,
//! or used in a function that does not wait.

mod decode;
mod effects;
mod list;
mod run;
mod selection;
#[cfg(test)]
mod tests;
mod watch;
mod watch_event;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use kctl_apimachinery::url;
use kube::Client;
use parking_lot::RwLock;
use tokio::sync::{Notify, OnceCell};

use super::{
    DecodeCheck, WatchConfig,
    condition::{Condition, Health},
    filter::Filter,
    list_limiter::ListLimiter,
    scopes::Scopes,
    unreadable::{Unreadable, Unreadables},
};
use crate::{
    key::ObjectKey,
    object::{Deduplicator, FieldMask, Kind, Readable, Stored},
    store::{NamespaceScope, Part, SharedStore, Store},
    transport,
};

/// One list and one watch per scope of a [`WatchConfig`], feeding one store.
///
/// A program that only needs a cache can use it without controllers:
///
/// ```
/// # use kube::{Client, client::Body};
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::{source::{WatchConfig, Source}, store::Store};
///
/// async fn print_pods(client: Client) {
///     let source = Arc::new(Source::new(client, WatchConfig::of::<Pod>(), Arc::default()));
///     let pods: Store<Pod> = source.view();
///     tokio::spawn(source.store().clone().write());
///     tokio::spawn({
///         let source = source.clone();
///         async move { source.run().await }
///     });
///     source.store().wait_until_synced().await;
///     for key in pods.keys() {
///         println!("{key}");
///     }
/// }
/// ```
///
/// Inside a program with controllers the [`manager`](crate::manager) creates sources, one per [`WatchConfig`]. Create one
/// yourself to test a stage alone, to fill a cache in a tool, or to embed this crate in another framework.
///
/// Set options first ([`with_field_mask`](Self::with_field_mask), [`with_list_limiter`](Self::with_list_limiter)). Then one task calls [`run`](Self::run), and
/// any task may call the other methods at any time.
pub struct Source {
    client: Client,
    /// The kind, selectors and first namespaces.
    config: WatchConfig,
    /// The scopes that are listed and watched: the namespaces of the watch config, until they are changed.
    scopes: Scopes,
    /// The store that it feeds. Others may read it, and writes of this process enter it too.
    store: Arc<SharedStore>,
    /// One check per type that reads the store.
    checks: RwLock<Vec<DecodeCheck>>,
    /// The parts of each object that its readers need.
    field_mask: RwLock<FieldMask>,
    /// The parts that its objects have in common, stored once.
    deduplicator: Deduplicator,
    /// The failures, for health and log.
    pub(super) condition: Condition,
    /// Objects whose last state does not fit a type that reads them.
    unreadable: Unreadables,
    /// Is `true` if the initial state is requested as a stream.
    streams: AtomicBool,
    /// Seed of the jitter: 0, or a hash of the seed of this replica's election.
    jitter_seed: AtomicU32,
    /// Notified when a watch may have to be requested again. Each watch looks if it is one of those.
    pub(super) reopen: Notify,
    /// Number of calls of [`check_served`](Self::check_served), which each end all watches.
    pub(super) n_served_checks: AtomicU32,
    /// Set once the store has been compared with the newest state.
    pub(super) compared: OnceCell<()>,
    list_limiter: ListLimiter,
    /// Selects the objects of this replica in a sharded program. `None` inside keeps all of them for good.
    ///
    /// Boxed, because most programs have no filter.
    filter: OnceLock<Option<Box<Filter>>>,
    /// Set if the labels of the watch config select the objects of one replica.
    labelled: OnceLock<Part>,
    /// Held while objects of moved slots are added or dropped.
    pub(super) moving: tokio::sync::Mutex<()>,
    /// Number of concurrent lists in progress ([`Delta::Listing`](crate::store::Delta::Listing)).
    pub(super) n_lists: AtomicU32,
    /// The number of slots that had been gained before the last comparison with the newest state.
    pub(super) listed_gains: Arc<AtomicU64>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Source {
    /// Creates a source that has not started. The store should have the namespaces of the watch config
    /// ([`SharedStore::for_namespaces`]).
    ///
    /// Nothing is requested before [`run`](Self::run).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::{source::{WatchConfig, Source}, store::SharedStore};
    /// use kube::Client;
    ///
    /// fn pods_of(client: Client, namespaces: [&str; 2]) -> Source {
    ///     let config = WatchConfig::of::<Pod>().in_namespaces(namespaces);
    ///     let store = SharedStore::for_namespaces(&config.namespaces);
    ///     Source::new(client, config, Arc::new(store))
    /// }
    /// ```
    pub fn new(client: Client, config: WatchConfig, store: Arc<SharedStore>) -> Self {
        let scopes = Scopes::new(&config.namespaces);
        Self {
            client,
            config,
            scopes,
            store,
            checks: RwLock::default(),
            field_mask: RwLock::new(FieldMask::whole()),
            deduplicator: Deduplicator::default(),
            condition: Condition::default(),
            unreadable: Unreadables::default(),
            streams: AtomicBool::new(false),
            jitter_seed: AtomicU32::new(0),
            reopen: Notify::new(),
            n_served_checks: AtomicU32::new(0),
            compared: OnceCell::new(),
            list_limiter: ListLimiter::default(),
            filter: OnceLock::new(),
            labelled: OnceLock::new(),
            moving: tokio::sync::Mutex::default(),
            n_lists: AtomicU32::new(0),
            listed_gains: Arc::default(),
        }
    }

    /// Requests the initial state as a stream from the next start on (`sendInitialEvents`,
    /// [KEP-3157](https://github.com/kubernetes/enhancements/issues/3157)), from API servers that support it.
    ///
    /// A stream needs less memory of the API server, and twice the CPU of a list (measured, `benches/README.md`). The
    /// default is a list.
    ///
    /// A server without support answers 400, 405 or 422, or never ends the initial state. So the source uses lists for
    /// good after such an answer, or after a stream of ten seconds or more that ended or fell silent before that.
    /// client-go uses streams by default (`WatchListClient`), and falls back to lists as well. A cache that is filtered
    /// by slots is always listed.
    pub fn stream_state(&self) {
        self.streams.store(true, Ordering::Relaxed);
    }

    /// Sets a seed, so that two processes have different jitter. Call it before [`run`](Self::run).
    pub(crate) fn seed_jitter(&self, seed: u64) {
        let hash = u32::try_from((seed ^ (seed >> 32)) & u64::from(u32::MAX)).unwrap_or_default();
        self.jitter_seed.store(hash, Ordering::Relaxed);
    }

    pub(crate) fn jitter_seed(&self) -> u64 {
        self.jitter_seed.load(Ordering::Relaxed).into()
    }

    /// Sets the options of `generate-rbac` that print the permissions for this source, for the log: ` --shards 24`.
    #[must_use]
    pub(crate) fn with_role(self, options: &str) -> Self {
        self.condition.set_role(options);
        self
    }

    /// Starts the watch again, to find out if the API server still serves the kind.
    ///
    /// A write that fails with 404 for the resource itself suggests that the CRD was deleted. The watch would notice
    /// only at its end, minutes later.
    pub(crate) fn check_served(&self) {
        self.n_served_checks.fetch_add(1, Ordering::Relaxed);
        self.reopen.notify_waiters();
    }

    /// Adds a check. Objects that fail it are reported and not stored; their last valid state is kept.
    ///
    /// A check that is added later holds for objects that arrive later. Objects in the store are not checked again, so
    /// add checks before [`run`](Self::run).
    pub fn add_check(&self, check: DecodeCheck) {
        self.checks.write().push(check);
    }

    /// Keeps only these parts of each object in the cache. Call it before [`run`](Self::run).
    ///
    /// A controller that only needs names, labels and owner references uses a fraction of the memory this way. If
    /// only metadata is kept, `PartialObjectMetadata` is requested and the API server sends no more.
    #[must_use]
    pub fn with_field_mask(self, field_mask: FieldMask) -> Self {
        *self.field_mask.write() = field_mask;
        self
    }

    /// Shares the limit of concurrent lists with other sources.
    ///
    /// [`ListLimiter`] has an example.
    #[must_use]
    pub fn with_list_limiter(self, list_limiter: ListLimiter) -> Self {
        Self { list_limiter, ..self }
    }

    /// Also keeps these parts of each object that arrives from now on.
    ///
    /// Objects that are in the store keep their old form until they change or are listed again.
    pub(crate) fn widen_field_mask(&self, field_mask: &FieldMask) {
        self.field_mask.write().widen(field_mask);
    }

    /// Returns `true` if the cache keeps whole objects.
    ///
    /// If it is `false`, an update must not be made from a cached object: the parts that were left out would be
    /// removed.
    pub fn is_whole(&self) -> bool {
        self.field_mask.read().is_whole()
    }

    /// Returns a typed view of the store. From now on objects that do not fit `K` are reported and not stored, so reads
    /// never fail.
    ///
    /// Call it before [`run`](Self::run). [`Source`] has an example.
    pub fn view<K: Readable>(&self) -> Store<K> {
        debug_assert_eq!(self.config.kind, Kind::of::<K>(), "a source delivers objects of its kind alone");
        self.add_check(DecodeCheck::fits::<K>());
        Store::new(self.store.clone())
    }

    /// Returns the present failure and the number of undecodable objects.
    ///
    /// ```
    /// use kctl_runtime::source::Source;
    ///
    /// fn print(source: &Source) {
    ///     match source.health().failure {
    ///         Some(error) => println!("{}: {error}", source.config().kind.plural),
    ///         None => println!("{}: {} objects", source.config().kind.plural, source.store().len()),
    ///     }
    /// }
    /// ```
    pub fn health(&self) -> Health {
        self.condition.health()
    }

    /// Returns the last state of an object if it cannot be decoded.
    pub(crate) fn unreadable(&self, key: &ObjectKey) -> Option<Arc<Unreadable>> {
        self.unreadable.get(key)
    }

    /// Returns the newest known state of an object: the one that cannot be decoded, or else the cached one.
    pub(crate) fn newest(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        let unreadable = self.unreadable(key).map(|one| one.stored.clone());
        unreadable.or_else(|| self.store().get(key))
    }

    /// Returns all objects that cannot be decoded now, at most [`UNREADABLE_MAX`](super::UNREADABLE_MAX).
    pub(crate) fn all_unreadable(&self) -> Vec<Arc<Unreadable>> {
        self.unreadable.all()
    }

    /// Returns the number of objects that cannot be decoded now.
    pub(crate) fn num_unreadable(&self) -> usize {
        self.unreadable.len()
    }

    /// Forgets an unreadable object, because the response to a write says that it is gone.
    pub(crate) fn forget_unreadable(&self, key: &ObjectKey) {
        self.unreadable.remove(key);
    }

    /// Returns a receiver that changes with each new state of an unreadable object.
    pub(crate) fn unreadable_changes(&self) -> tokio::sync::watch::Receiver<()> {
        self.unreadable.changes()
    }

    /// Returns the time since the API server last sent a page, an event or a bookmark, or `None` before the first. A
    /// minute or two is normal for a kind without changes, because bookmarks come about once a minute.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kctl_runtime::source::Source;
    ///
    /// fn is_suspicious(source: &Source) -> bool {
    ///     source.time_since_message().is_some_and(|silence| silence > Duration::from_secs(180))
    /// }
    /// ```
    pub fn time_since_message(&self) -> Option<Duration> {
        self.condition.time_since_message()
    }

    /// Returns the kind, namespaces and selectors that it lists and watches.
    pub fn config(&self) -> &WatchConfig {
        &self.config
    }

    /// Returns the store that it fills.
    pub fn store(&self) -> &Arc<SharedStore> {
        &self.store
    }

    /// Returns the namespaces that are listed and watched now. Empty if all are, or after the last one was removed.
    ///
    /// It starts with the namespaces of the [`WatchConfig`], and follows changes at run time.
    pub fn namespaces(&self) -> Vec<String> {
        self.scopes.all().iter().flatten().map(ToString::to_string).collect()
    }

    /// Returns the scopes that are listed and watched now.
    pub(crate) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns the `Accept` header. API servers that lack the metadata form send whole objects, but only the same parts
    /// are kept.
    pub(super) fn accepts(&self, metadata: &'static str) -> &'static str {
        if self.field_mask.read().is_metadata() { metadata } else { transport::JSON }
    }

    /// Returns `true` if the kind is optional, and the last response of the API server was that it does not serve the
    /// kind.
    ///
    /// Always `false` for a [`Presence::Required`](super::Presence::Required) kind, whose 404 is a failure in [`health`](Self::health).
    pub fn is_absent(&self) -> bool {
        self.condition.is_absent()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns path and query of a request for a scope, with the selectors of the watch config and this `shardSelector`.
    pub(super) fn path_with(&self, scope: &NamespaceScope, query: &str, shards: Option<&str>) -> String {
        let config = &self.config;
        let mut path = format!("{}?{query}", config.kind.path(scope.as_deref()));
        let selectors = [
            ("labelSelector", &*config.labels),
            ("fieldSelector", &*config.fields),
            ("shardSelector", shards.unwrap_or_default()),
        ];
        for (name, selector) in selectors {
            if !selector.is_empty() {
                path += &format!("&{name}={}", url::escape(selector));
            }
        }
        path
    }
}
