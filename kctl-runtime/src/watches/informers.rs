//! The informers of a process: one list and one watch per watch config, which run as long as they have a user.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use futures::FutureExt;
use kube::Client;
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinSet};

use super::WatchError;
use crate::{
    freezer,
    handler::mailbox::Mailbox,
    object::FieldMask,
    source::{ListLimiter, Source, WatchConfig},
    store::{Delta, NamespaceScope, SharedStore},
};

/// Maximum number of open informers in a process. [`Watches::watch`](super::Watches::watch) fails beyond it; declared
/// caches always open.
pub const INFORMERS_MAX: usize = 2000;

/// The table of open informers, shared by the manager and all handles. Clones share it.
#[derive(Clone)]
pub(crate) struct Informers {
    table: Arc<Mutex<InformerTable>>,
    /// The reason why a task of an informer ended; such tasks never end by themselves.
    failed: watch::Sender<Option<String>>,
    closed: watch::Sender<bool>,
    mailboxes: Arc<Mutex<Vec<Weak<Mailbox>>>>,
    /// Is `true` if initial states are requested as streams (`sendInitialEvents`).
    streams: Arc<AtomicBool>,
    /// Seed of the jitter of each informer.
    jitter_seed: Arc<AtomicU64>,
    /// Held while the set of namespaces changes: one change at a time.
    changing: Arc<tokio::sync::Mutex<()>>,
    list_limiter: ListLimiter,
}

/// All open informers of a process, under one lock.
#[derive(Default)]
struct InformerTable {
    informers: BTreeMap<InformerId, Informer>,
    /// Number of the informer that was opened last. An informer that is opened again has another number.
    n_opened: u64,
    /// Is `true` once the manager runs. Nothing is listed before, because controllers that are added later bring
    /// further checks and indexes.
    begun: bool,
}

/// Identifies an informer: users with the same id share it. Informers of controllers that are limited to namespaces are
/// separate, because their namespaces can change while other users want exactly those that they asked for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct InformerId {
    config: WatchConfig,
    changeable: bool,
    /// Is `true` for an informer that was opened at run time with whole objects, in addition to one that already runs
    /// and keeps less.
    separate: bool,
}

/// One source with its store, shared by all that opened the same watch config.
struct Informer {
    /// Distinguishes it from an earlier informer of the same watch config, so that a late handle of that one does not
    /// close this one.
    number: u64,
    source: Arc<Source>,
    /// Number of live [`InformerHandle`]s. Invariant: at least one.
    n_users: usize,
    /// Empty until the manager runs. Dropping it ends the tasks.
    tasks: JoinSet<()>,
}

/// One use of an informer. Dropping the last one ends the informer.
pub(crate) struct InformerHandle {
    informers: Informers,
    id: InformerId,
    number: u64,
    source: Arc<Source>,
}

/// Ends all informers when it is dropped: none outlives the manager.
pub(crate) struct CloseOnDrop(pub(crate) Informers);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.closed.send_replace(true);
        let ended = std::mem::take(&mut self.0.table.lock().informers);
        for Informer { source, tasks, .. } in ended.into_values() {
            drop(tasks);
            // A manager that never ran has no writers, whose end would end the streams of its watches.
            source.store().end_unless_written();
        }
    }
}

impl Informers {
    /// Creates an empty set, which lists nothing before [`begin`](Self::begin).
    pub(crate) fn new() -> Self {
        Self {
            table: Arc::default(),
            failed: watch::Sender::new(None),
            closed: watch::Sender::new(false),
            mailboxes: Arc::default(),
            streams: Arc::default(),
            jitter_seed: Arc::default(),
            changing: Arc::default(),
            list_limiter: ListLimiter::default(),
        }
    }

    /// Starts list and watch of all open informers, and of each one that is opened later.
    pub(crate) fn begin(&self) {
        let mut table = self.table.lock();
        table.begun = true;
        table.start(self);
    }

    /// Returns an informer of a watch config with whole objects, of all slots: the open one, or a new one.
    ///
    /// A controller may share the informer. Before the manager runs, its field mask is widened and its filter is disabled.
    /// Afterwards its objects were cut and filtered already, so a separate informer is opened.
    ///
    /// # Errors
    /// The manager has ended, or [`INFORMERS_MAX`] informers are open.
    pub(crate) fn acquire(&self, config: WatchConfig, client: &Client) -> Result<InformerHandle, WatchError> {
        let mut table = self.table.lock();
        if *self.closed.borrow() {
            return Err(WatchError::Closed);
        }
        let mut id = InformerId { config, changeable: false, separate: false };
        if let Some(Informer { source, .. }) = table.informers.get(&id) {
            if !table.begun {
                source.widen_field_mask(&FieldMask::whole());
                source.disable_filter();
            }
            // Caches are limited to slots just before informers begin, which leaves a filter in place that came first.
            id.separate = !source.is_whole() || source.part().is_some();
        }
        if table.informers.len() >= INFORMERS_MAX && !table.informers.contains_key(&id) {
            return Err(WatchError::TooMany);
        }
        let handle = self.acquire_in(&mut table, id, &FieldMask::whole(), client);
        // A controller that is added later shares a new informer, and would limit it to its slots. The lock keeps the
        // controller from doing so first.
        handle.source.disable_filter();
        Ok(handle)
    }

    /// Returns the informer for a relation of a controller. It keeps of each object at least what `field_mask` names.
    /// [`INFORMERS_MAX`] does not apply, because the declarations bound the number of these informers.
    pub(crate) fn acquire_for_relation(
        &self,
        config: WatchConfig,
        field_mask: &FieldMask,
        client: &Client,
    ) -> InformerHandle {
        let changeable = !config.namespaces.is_empty();
        let id = InformerId { config, changeable, separate: false };
        let handle = self.acquire_in(&mut self.table.lock(), id, field_mask, client);
        // The informer may run already with a field mask of another controller that reads less.
        handle.source.widen_field_mask(field_mask);
        handle
    }

    /// Opens the informer of `id` unless it is open, and counts one more user.
    fn acquire_in(
        &self,
        table: &mut InformerTable,
        id: InformerId,
        field_mask: &FieldMask,
        client: &Client,
    ) -> InformerHandle {
        let number = table.n_opened + 1;
        let informer = table.informers.entry(id.clone()).or_insert_with_key(|InformerId { config, .. }| {
            let store = Arc::new(SharedStore::for_namespaces(&config.namespaces));
            let source = Source::new(client.clone(), config.clone(), store).with_field_mask(field_mask.clone());
            let source = Arc::new(source.with_list_limiter(self.list_limiter.clone()));
            source.seed_jitter(self.jitter_seed.load(Ordering::Relaxed));
            if self.streams.load(Ordering::Relaxed) {
                source.stream_state();
            }
            Informer { number, source, n_users: 0, tasks: JoinSet::new() }
        });
        informer.n_users += 1;
        let (number, source) = (informer.number, informer.source.clone());
        table.n_opened = table.n_opened.max(number);
        if table.begun {
            table.start(self);
        }
        InformerHandle { informers: self.clone(), id, number, source }
    }

    /// Requests initial states as streams from now on, also for open informers that have not begun.
    pub(crate) fn stream_states(&self) {
        self.streams.store(true, Ordering::Relaxed);
        self.open().iter().for_each(|(source, _)| source.stream_state());
    }

    /// Sets a seed for the jitter of all informers, also of open informers that have not begun. Replicas have different seeds.
    pub(crate) fn seed_jitter(&self, seed: u64) {
        self.jitter_seed.store(seed, Ordering::Relaxed);
        self.open().iter().for_each(|(source, _)| source.seed_jitter(seed));
    }

    /// Returns the open informers and their numbers of users. If several have one watch config, the one of the controllers
    /// comes first and a separate one last.
    pub(crate) fn open(&self) -> Vec<(Arc<Source>, usize)> {
        let table = self.table.lock();
        let mut all: Vec<_> = table.informers.iter().collect();
        let rank = |id: &InformerId| (id.separate, !id.changeable);
        all.sort_by(|(a, _), (b, _)| a.config.cmp(&b.config).then_with(|| rank(a).cmp(&rank(b))));
        all.into_iter().map(|(_, informer)| (informer.source.clone(), informer.n_users)).collect()
    }

    /// Adds the mailbox of a watch to those that [`backlog_max`](Self::backlog_max) looks at, and forgets dropped ones.
    pub(super) fn add_mailbox(&self, mailbox: &Arc<Mailbox>) {
        let mut mailboxes = self.mailboxes.lock();
        mailboxes.retain(|mailbox| mailbox.strong_count() > 0);
        mailboxes.push(Arc::downgrade(mailbox));
    }

    /// Returns the number of waiting changes of the watch that is furthest behind.
    pub(crate) fn backlog_max(&self) -> usize {
        self.mailboxes.lock().iter().filter_map(Weak::upgrade).map(|mailbox| mailbox.len()).max().unwrap_or(0)
    }

    /// Returns the informers whose namespaces can be changed, and for each if it runs.
    fn with_changeable_namespaces(&self) -> Result<Vec<(Arc<Source>, bool)>, WatchError> {
        let table = self.table.lock();
        let changeable = table.informers.iter().filter(|(id, _)| id.changeable);
        let found: Vec<_> =
            changeable.map(|(_, informer)| (informer.source.clone(), !informer.tasks.is_empty())).collect();
        if found.is_empty() { Err(WatchError::NotLimited) } else { Ok(found) }
    }

    /// Returns the namespaces of all informers whose namespaces can change, sorted.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let sources = self.with_changeable_namespaces().unwrap_or_default();
        let namespaces: BTreeSet<String> = sources.iter().flat_map(|(source, _)| source.namespaces()).collect();
        namespaces.into_iter().collect()
    }

    /// Adds a namespace to all informers whose namespaces can change.
    ///
    /// # Errors
    /// No controller of the program is limited to namespaces, or the name is empty.
    ///
    /// # Cancel safety
    /// If the future is dropped, the namespace is added in any case, unless an earlier change is not complete.
    pub(super) async fn add_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        let _one_at_a_time = self.changing.lock().await;
        let (sources, scope): (_, NamespaceScope) = (self.with_changeable_namespaces()?, Some(namespace.into()));
        if namespace.is_empty() {
            // The API server lists no namespace without a name, so the caches would never be complete.
            return Err(WatchError::EmptyNamespace);
        }
        let added = sources.into_iter().filter(|(source, _)| !source.scopes().has(&scope)).collect();
        let add = |source: &Source, scope: &NamespaceScope| source.scopes().add(scope.clone());
        let change = ScopeChange { sources: added, scope, perform: add };
        // All caches become incomplete before one of them lists the namespace. Otherwise a reconcile could read the
        // namespace in one cache and miss it in another.
        change.mark_incomplete().await;
        Ok(())
    }

    /// Removes a namespace from all informers whose namespaces can change. Its objects leave the caches as deletions.
    ///
    /// # Errors
    /// No controller of the program is limited to namespaces.
    ///
    /// # Cancel safety
    /// If the future is dropped, the namespace is removed in any case, unless an earlier change is not complete.
    pub(super) async fn remove_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        let _one_at_a_time = self.changing.lock().await;
        let (sources, scope): (_, NamespaceScope) = (self.with_changeable_namespaces()?, Some(namespace.into()));
        let removed = sources.into_iter().filter(|(source, _)| source.scopes().has(&scope)).collect();
        let remove = |source: &Source, scope: &NamespaceScope| source.scopes().remove(scope);
        let change = ScopeChange { sources: removed, scope, perform: remove };
        // Writes to the namespace fail from here on: a running reconcile sees objects disappear that still exist.
        change.mark_incomplete().await;
        Ok(())
    }

    /// Waits until a task of an informer has ended, and returns the reason.
    pub(crate) async fn wait_for_failure(&self) -> String {
        let mut failed = self.failed.subscribe();
        let text = failed.wait_for(Option::is_some).await;
        text.ok().and_then(|text| text.clone()).unwrap_or_default()
    }

    /// Returns once the manager has ended.
    pub(crate) async fn wait_until_closed(&self) {
        let mut closed = self.closed.subscribe();
        let _gone = closed.wait_for(|closed| *closed).await;
    }

    /// Runs a task that ends only with the manager, and records its end as a failure of the program.
    async fn supervise(self, task: impl Future<Output = ()>) {
        let end = AssertUnwindSafe(task).catch_unwind().await;
        let text = match end {
            Ok(()) => "a cache".to_owned(),
            Err(panic) => format!("a cache panicked: {}", crate::panic::panic_text(&*panic)),
        };
        self.failed.send_replace(Some(text));
    }
}

impl InformerTable {
    /// Starts the informers that do not run yet.
    fn start(&mut self, informers: &Informers) {
        for informer in self.informers.values_mut().filter(|informer| informer.tasks.is_empty()) {
            let source = informer.source.clone();
            let store = source.store().clone();
            freezer::spawn(&mut informer.tasks, informers.clone().supervise(store.write()));
            freezer::spawn(&mut informer.tasks, informers.clone().supervise(async move { source.run().await }));
        }
    }
}

/// A namespace that is added to sources, or removed from them, when this is dropped: also if the caller gives up halfway.
/// Otherwise a cache that was marked as incomplete would wait for a list of the namespace that never comes, and its
/// controllers would wait for the cache.
struct ScopeChange {
    /// The sources, and for each if it runs.
    sources: Vec<(Arc<Source>, bool)>,
    scope: NamespaceScope,
    perform: fn(&Source, &NamespaceScope),
}

impl ScopeChange {
    /// Marks the namespace as incomplete in all stores. Returns once those that run have applied it.
    ///
    /// A store that does not run yet applies nothing, so its queue may be full. Its source marks the namespaces that were
    /// added since as well, before it lists the first one.
    async fn mark_incomplete(&self) {
        for (source, runs) in &self.sources {
            let delta = Delta::Incomplete(self.scope.clone());
            if *runs {
                source.store().push_and_wait(delta).await;
            } else {
                let _full = source.store().try_push(delta);
            }
        }
    }
}

impl Drop for ScopeChange {
    fn drop(&mut self) {
        for (source, _) in &self.sources {
            (self.perform)(source, &self.scope);
        }
    }
}

impl InformerHandle {
    /// Returns the source, which has the store as well.
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns the set that the informer belongs to.
    pub(crate) fn informers(&self) -> &Informers {
        &self.informers
    }
}

impl Drop for InformerHandle {
    fn drop(&mut self) {
        let mut table = self.informers.table.lock();
        let Entry::Occupied(mut informer) = table.informers.entry(self.id.clone()) else { return };
        if informer.get().number != self.number {
            return;
        }
        debug_assert!(informer.get().n_users > 0, "an informer without users is removed");
        informer.get_mut().n_users -= 1;
        let ended = (informer.get().n_users == 0).then(|| informer.remove());
        // Dropped without the lock: its handlers may own handles of other informers, whose drop locks the table.
        drop(table);
        drop(ended);
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending, time::Duration};

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use tokio::time::timeout;

    use super::*;
    use crate::{
        shard::{ShardBy, Slots, Tenures},
        source::{BelongsTo, Filter},
        store::DELTAS_MAX,
        writer::WritePermit,
    };

    fn silent_client() -> Client {
        let silent =
            tower::service_fn(|_request: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>());
        Client::new(silent, "default")
    }

    #[tokio::test]
    async fn dropped_namespace_change_takes_effect() {
        let (client, informers) = (silent_client(), Informers::new());
        let config = WatchConfig::of::<ConfigMap>().in_namespaces(["a"]);
        let _limited = informers.acquire_for_relation(config, &FieldMask::whole(), &client);
        informers.begin();
        assert!(informers.add_namespace("b").now_or_never().is_none(), "the store has not answered");
        assert_eq!(informers.namespaces(), ["a", "b"]);
        assert!(informers.remove_namespace("a").now_or_never().is_none(), "the store has not answered");
        assert_eq!(informers.namespaces(), ["b"]);
    }

    #[tokio::test]
    async fn namespace_without_a_name_is_not_added() {
        let (client, informers) = (silent_client(), Informers::new());
        assert!(matches!(informers.add_namespace("").await, Err(WatchError::NotLimited)));
        let config = WatchConfig::of::<ConfigMap>().in_namespaces(["a"]);
        let _limited = informers.acquire_for_relation(config, &FieldMask::whole(), &client);
        assert!(matches!(informers.add_namespace("").await, Err(WatchError::EmptyNamespace)));
        assert_eq!(informers.namespaces(), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_beyond_the_queue_are_added_before_start() {
        let (client, informers) = (silent_client(), Informers::new());
        let config = WatchConfig::of::<ConfigMap>().in_namespaces(["a"]);
        let limited = informers.acquire_for_relation(config, &FieldMask::whole(), &client);
        for n in 0..=DELTAS_MAX {
            let namespace = format!("b-{n}");
            let added = timeout(Duration::from_secs(1), informers.add_namespace(&namespace)).await;
            added.expect("it does not wait for room").unwrap();
        }
        assert_eq!(limited.source().namespaces().len(), DELTAS_MAX + 2);
    }

    #[tokio::test]
    async fn watch_opened_between_limit_and_begin_is_separate() {
        let (client, informers) = (silent_client(), Informers::new());
        let config = WatchConfig::of::<ConfigMap>();
        let limited = informers.acquire_for_relation(config.clone(), &FieldMask::whole(), &client);
        let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
        limited.source().select(Filter::new(tenures, vec![BelongsTo::Itself { namespaced: true }], None));
        let watched = informers.acquire(config, &client).unwrap();
        assert!(limited.source().part().is_some() && watched.source().part().is_none());
    }
}
