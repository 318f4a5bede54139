//! The source: performs the requests, waits and effects that the reflector returns.
//!
//! The decisions are in [`Reflector`]. This file does the I/O: it builds URLs, decodes and checks objects, measures
//! silence, and pushes deltas to the store.
//!
//! Its futures are kept small on purpose. A program may have thousands of watches, most of them idle. A local variable
//! that lives across an `.await` costs its size in each of them, so whatever is needed only for a moment is boxed or
//! done in a function that does not wait.

use std::{
    future::pending,
    ops::ControlFlow,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{
    StreamExt,
    future::{AbortHandle, BoxFuture, abortable},
    stream::FuturesUnordered,
};
use http_body_util::{BodyDataStream, BodyExt};
use kctl_apimachinery::url;
use kube::{Client, client::Body};
use parking_lot::RwLock;
use tokio::{
    sync::{Notify, OnceCell, watch},
    time::Instant,
};

use super::{
    Check, METADATA, METADATA_LIST, PAGE_LEN, Presence, WatchConfig,
    check::Arrival,
    condition::{Activity, Condition, Health},
    event::{Bookmark, Event},
    filter::{Filter, Head},
    items::ListMeta,
    jitter::Jitter,
    lines::Lines,
    list_limiter::{ListLimiter, ListPermit},
    pages::each_item,
    reflector::{Effect, Input, Reflector, Request, STREAM_SILENCE_MAX, wants_pages},
    scopes::Scopes,
    unreadable::{ListNumber, Unreadable, Unreadables},
};
use crate::{
    key::ObjectKey,
    object::{DecodeError, Deduplicator, FieldMask, Kind, Meta, Readable, Stored},
    store::{Delta, Part, Scope, SharedStore, Store},
    transport::{self, ApiError, Operation},
};

/// Shortest life of a watch that is requested from the API server; the longest is twice that, as in client-go. The
/// server ends the watch, not the client.
const WATCH_LIFE_MIN: Duration = Duration::from_secs(300);
/// The reflected scopes, with the handle that ends each.
type Handles = Vec<(Scope, AbortHandle)>;

/// The state at the beginning of a list, for its later pages.
#[derive(Default)]
struct ListBegin {
    /// The number of gained slots.
    gained: u64,
    /// The number of the list.
    list: ListNumber,
}

/// The time at which a source begins to follow scopes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With the source.
    First,
    /// While the source runs.
    Later,
}

/// Number of lists that may be repeated because slots move meanwhile.
const GAINS_MAX: usize = 3;
/// The body of a watch response.
type Chunks = Pin<Box<BodyDataStream<Body>>>;

/// The query of every watch. Bookmarks cost about one line a minute, and keep the version fresh for the next watch.
const WATCH: &str = "watch=true&allowWatchBookmarks=true";
/// A watch that is silent for its life and this time longer has a dead connection.
const WATCH_GRACE: Duration = Duration::from_secs(5);

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
    /// The client of its cluster.
    client: Client,
    /// The kind, selectors and first namespaces.
    config: WatchConfig,
    /// The scopes that are listed and watched: the namespaces of the watch config, until they are changed.
    scopes: Scopes,
    /// The store that it feeds. Others may read it, and writes of this process enter it too.
    store: Arc<SharedStore>,
    /// One check per type that reads the store.
    checks: RwLock<Vec<Check>>,
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
    /// Ends the present watch, because a write found the kind missing.
    check_served: Notify,
    /// Set once the store has been compared with the newest state.
    pub(super) compared: OnceCell<()>,
    /// Limits the number of concurrent lists.
    list_limiter: ListLimiter,
    /// Selects the objects of this replica in a sharded program. `None` inside keeps all of them for good.
    filter: OnceLock<Option<Filter>>,
    /// Set if the labels of the watch config select the objects of one replica.
    labelled: OnceLock<Part>,
    /// Held while objects of moved slots are added or dropped.
    pub(super) moving: tokio::sync::Mutex<()>,
    /// Number of lists beside the watch that are under way ([`Delta::Listing`]).
    pub(super) n_lists: AtomicU32,
    /// The number of moves at the last list that was requested because of them.
    pub(super) listed_gains: AtomicU64,
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
            check_served: Notify::new(),
            compared: OnceCell::new(),
            list_limiter: ListLimiter::default(),
            filter: OnceLock::new(),
            labelled: OnceLock::new(),
            moving: tokio::sync::Mutex::default(),
            n_lists: AtomicU32::new(0),
            listed_gains: AtomicU64::new(0),
        }
    }

    /// Requests the initial state as a stream from the next start on (`sendInitialEvents`,
    /// [KEP-3157](https://github.com/kubernetes/enhancements/issues/3157)), from API servers that support it.
    ///
    /// A stream needs less memory of the API server, and twice the CPU of a list (measured, `benches/README.md`). The
    /// default is a list.
    ///
    /// A server without support answers 400, 405 or 422, or sends no end of the initial state within ten seconds. Then
    /// the source falls back to lists. client-go uses streams by default (`WatchListClient`), with the same fallback.
    pub fn stream_state(&self) {
        self.streams.store(true, Ordering::Relaxed);
    }

    /// Starts the watch again, to find out if the API server still serves the kind.
    ///
    /// A write that fails with 404 for the resource itself suggests that the CRD was deleted. The watch would notice
    /// only at its end, minutes later.
    pub(crate) fn check_served(&self) {
        self.check_served.notify_waiters();
    }

    /// Adds a check. Objects that fail it are reported and not stored; their last good state stays.
    ///
    /// A check that is added later holds for objects that arrive later. Objects in the store are not checked again, so
    /// add checks before [`run`](Self::run).
    pub fn add_check(&self, check: Check) {
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

    /// Keeps only the objects that a filter selects. Call it before [`run`](Self::run).
    ///
    /// It has no effect after [`keep_all`](Self::keep_all).
    pub(crate) fn select(&self, filter: Filter) {
        let _all = self.filter.set(Some(filter));
    }

    /// Keeps the objects of all slots, for readers that need them.
    pub(crate) fn keep_all(&self) {
        let _selected = self.filter.set(None);
    }

    pub(super) fn filter(&self) -> Option<&Filter> {
        self.filter.get()?.as_ref()
    }

    /// Notes that the labels of the watch config select the objects of this replica, so that a read beyond them fails.
    pub(crate) fn selects_part(&self, part: Part) {
        let _first = self.labelled.set(part);
    }

    /// Returns the part of the kind that the cache has, `None` if it has all objects.
    pub(crate) fn part(&self) -> Option<Part> {
        self.filter().map(Filter::part).or_else(|| self.labelled.get().cloned())
    }

    /// Returns the metadata of an object that the filter does not select.
    pub(super) fn foreign<'a>(&self, json: &'a str) -> Option<Head<'a>> {
        self.filter()?.foreign(json)
    }

    /// Returns how many slots were gained so far.
    pub(super) fn n_gained(&self) -> u64 {
        self.filter().map_or(0, Filter::n_gained)
    }

    /// Returns the error of a list during which a slot was gained: the list may lack some of its objects.
    fn gained(&self) -> ApiError {
        self.expired("this replica gained a slot during the list")
    }

    /// Returns the error of a list that came too late: another list of the scope was applied, or there were too many
    /// deletes.
    pub(super) fn overtaken(&self) -> ApiError {
        self.expired("the cache was listed meanwhile, or too many objects were deleted")
    }

    /// Drops the objects of slots that were lost since they were read.
    fn retain_selected(&self, objects: &mut Vec<Arc<Stored>>) {
        if let Some(filter) = self.filter() {
            objects.retain(|object| filter.has(object));
        }
    }

    fn expired(&self, message: &str) -> ApiError {
        ApiError::Refused {
            operation: self.config.operation("list"),
            code: 410,
            reason: "Expired".into(),
            message: message.into(),
            details: Box::default(),
            retry_after: None,
        }
    }

    /// Drops the objects of slots that this replica has lost.
    ///
    /// Call it only after the reconciles of those slots have ended. Objects of a slot that is gained meanwhile come back
    /// with the list of [`compare`](Self::compare), which waits for this.
    pub(crate) async fn drop_lost(&self) {
        let Some(filter) = self.filter() else { return };
        let _one_at_a_time = self.moving.lock().await;
        // Events that were selected before the loss may still wait for the store.
        self.store.flush().await;
        for object in self.store.all() {
            if !filter.has(&object) {
                self.store.push(Delta::Drop(object)).await;
            }
        }
        for one in self.unreadable.all() {
            if !filter.has(&one.stored) {
                self.unreadable.remove(one.stored.key());
            }
        }
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
        self.add_check(Check::fits::<K>());
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
    pub(crate) fn unreadable_changes(&self) -> watch::Receiver<()> {
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
    ///     source.silence().is_some_and(|silence| silence > Duration::from_secs(180))
    /// }
    /// ```
    pub fn silence(&self) -> Option<Duration> {
        self.condition.silence()
    }

    /// Returns the kind, namespaces and selectors that it lists and watches.
    pub fn config(&self) -> &WatchConfig {
        &self.config
    }

    /// Returns the store that it fills.
    pub fn store(&self) -> &Arc<SharedStore> {
        &self.store
    }

    /// Decodes the JSON of an object, runs the checks, and returns it in the form of the cache. The store is not
    /// changed.
    ///
    /// The stage that writes uses it for responses: a state enters the cache in the same form, whichever way it came.
    ///
    /// # Errors
    /// The JSON is not an object of this kind, or does not fit a type that reads the store.
    pub fn accept(&self, json: &str) -> Result<Arc<Stored>, DecodeError> {
        self.prepare(self.kept(json)?, Arrival::Alone)
    }

    /// Returns the kept parts of an object, unchecked.
    fn kept(&self, json: &str) -> Result<Stored, DecodeError> {
        Stored::accept_masked(&self.config.kind, json, &self.field_mask.read())
    }

    /// Checks an object, and makes it as small as possible.
    ///
    /// Parts that it has in common with the known state, or with other objects of the kind, are shared with them.
    ///
    /// # Errors
    /// The first check that fails.
    fn prepare(&self, object: Stored, arrival: Arrival) -> Result<Arc<Stored>, DecodeError> {
        for check in self.checks.read().iter() {
            check.check(&object, arrival)?;
        }
        let cached = self.store.get(object.key());
        Ok(Arc::new(object.deduplicated(&self.deduplicator, cached.as_deref())))
    }

    /// Lists and watches for ever.
    ///
    /// Each scope has its own future inside this one, so a slow or forbidden namespace does not hold up
    /// the others. Changes of the scopes take effect at once: the watch of a removed one is dropped before its objects
    /// leave the store.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watches. The store keeps its objects, which then become outdated.
    pub async fn run(&self) {
        let (mut running, mut handles) = (FuturesUnordered::new(), Handles::new());
        let mut start = Start::First;
        loop {
            for scope in Box::pin(self.update_scopes(&mut handles, start)).await {
                let (reflect, handle) = abortable(self.reflect(scope.clone()));
                // Boxed: `FuturesUnordered` keeps one empty node of that size.
                running.push(Box::pin(reflect));
                handles.push((scope, handle));
            }
            start = Start::Later;
            tokio::select! {
                biased;
                () = self.scopes.change() => {}
                () = async { while running.next().await.is_some() {} pending().await } => {}
            }
        }
    }

    /// Ends the scopes that were removed, and returns those that have to be listed and watched now. Of a scope that was
    /// removed and added again, both.
    async fn update_scopes(&self, handles: &mut Handles, start: Start) -> Vec<Scope> {
        let (removed, mut scopes) = self.scopes.take_removed();
        for scope in &removed {
            // No delta of the scope is sent after this, so `Close` is its last one.
            for (_, handle) in handles.extract_if(.., |(started, _)| started == scope) {
                handle.abort();
            }
            self.condition.forget_scope(scope);
            self.unreadable.clear(scope);
            self.store.push(Delta::Close(scope.clone())).await;
        }
        scopes.retain(|scope| handles.iter().all(|(started, _)| started != scope));
        for scope in &scopes {
            // The store has the scopes of the start. A later one may have been closed after it was added.
            if start == Start::Later || removed.contains(scope) {
                self.store.push(Delta::Open(scope.clone())).await;
            }
        }
        scopes
    }

    /// Returns the namespaces that are listed and watched now; empty for all.
    ///
    /// It starts with those of the [`WatchConfig`], and follows changes at run time.
    pub fn namespaces(&self) -> Vec<String> {
        self.scopes.all().iter().flatten().map(ToString::to_string).collect()
    }

    /// Returns the scopes that are listed and watched now.
    pub(crate) fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Lists and watches one scope for ever: takes the reflector's next request, performs it, and waits for the
    /// returned time.
    async fn reflect(&self, scope: Scope) {
        // A stream never ends, so a filtered source could not check at its end if slots have moved.
        let streams = self.streams.load(Ordering::Relaxed) && self.filter().is_none();
        let reflector = if streams { Reflector::streaming(scope.clone()) } else { Reflector::new(scope.clone()) };
        let mut reflector = reflector.with(self.config.presence);
        let mut jitter = Jitter::new((&self.config, &scope));
        // Held from the first list until the watch after it has begun.
        let (mut permit, mut begun) = (None, ListBegin::default());
        loop {
            // Lists are boxed, so that an informer that only watches does not hold the memory of their futures.
            let wait = match reflector.request() {
                Request::Whole { .. } | Request::List { .. } => {
                    if permit.is_none() {
                        permit = Some(self.list_limiter.next().await);
                    }
                    Box::pin(self.list(&mut reflector, &scope, &mut begun)).await
                }
                Request::Probe => Box::pin(self.list(&mut reflector, &scope, &mut begun)).await,
                Request::Stream | Request::Watch { .. } => {
                    self.watch(&mut reflector, &scope, jitter.life(WATCH_LIFE_MIN), &mut permit).await
                }
            };
            if let Some(wait) = wait {
                permit = None;
                tokio::time::sleep(jitter.wait(wait)).await;
            }
        }
    }

    /// Performs a list, a page or a probe, and returns the wait before the next request.
    ///
    /// If a slot was gained since the beginning of the list, it is requested again.
    async fn list(&self, reflector: &mut Reflector, scope: &Scope, begun: &mut ListBegin) -> Option<Duration> {
        let request = reflector.request().clone();
        if !matches!(request, Request::List { token: Some(_), .. }) {
            begun.gained = self.n_gained();
        }
        let mut input = self.request_list(scope, &request, &mut begun.list).await;
        if matches!(input, Input::Page { .. }) && request != Request::Probe && self.n_gained() != begun.gained {
            input = Input::Failed(self.gained());
        }
        self.perform(reflector, input).await
    }

    /// Requests a list or one page of it.
    ///
    /// All failures come back as an [`Input`], since the reflector decides about them. Items are in their final form.
    ///
    /// `list` is the number of the list that its first page sets. Objects that were unreadable are forgotten only at
    /// its last page, because a list that fails says nothing about them.
    pub(super) async fn request_list(&self, scope: &Scope, request: &Request, list: &mut ListNumber) -> Input {
        if matches!(request, Request::Whole { .. } | Request::List { token: None, .. }) {
            *list = self.unreadable.begin_list();
        }
        // If no object is selected, a list with one item is enough to get the version. If a slot is gained meanwhile,
        // the list is requested again.
        let is_empty = matches!(request, Request::Whole { .. }) && self.filter().is_some_and(Filter::selects_nothing);
        let mut query = Vec::new();
        let (version, token) = match request {
            Request::List { version, token } => {
                query.push(format!("limit={PAGE_LEN}"));
                (version, token)
            }
            Request::Whole { version } => {
                query.extend(is_empty.then(|| "limit=1".to_owned()));
                (version, &None)
            }
            Request::Probe => {
                query.push("limit=1".into());
                (&None, &None)
            }
            Request::Stream | Request::Watch { .. } => (&None, &None),
        };
        query.extend(token.as_ref().map(|token| format!("continue={}", url::escape(token))));
        if let Some(version) = version {
            query.push(format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan"));
        }
        let operation = self.config.operation("list");
        let path = self.path(scope, &query.join("&"));
        let input = match transport::list_all(&self.client, &operation, &path, self.accepts(METADATA_LIST)).await {
            Ok(body) => match self.read_list(&operation, body).await {
                Ok(Input::Page { objects, version, .. }) if is_empty => Input::Page { objects, version, token: None },
                input => input.unwrap_or_else(Input::Cut),
            },
            Err(error) => Input::Failed(error),
        };
        let is_last =
            |input: &Input| matches!(input, Input::Page { token, .. } if token.as_deref().is_none_or(str::is_empty));
        if *request != Request::Probe && is_last(&input) {
            self.unreadable.end_list(scope, *list);
        }
        input
    }

    /// Returns the `Accept` header. API servers that lack the metadata form send whole objects, of which the same parts
    /// are kept.
    pub(super) fn accepts(&self, metadata: &'static str) -> &'static str {
        if self.field_mask.read().is_metadata() { metadata } else { transport::JSON }
    }

    /// Reads the items of a list as they arrive.
    ///
    /// # Errors
    /// The response breaks off or is not a list. Items that cannot be decoded are not an error: they are reported, and
    /// their last good state is part of the result.
    pub(super) async fn read_list(&self, operation: &Operation, body: Body) -> Result<Input, ApiError> {
        let mut objects = Vec::new();
        let heard = || self.condition.record_response();
        let take = |item: &str| {
            if self.foreign(item).is_none() {
                objects.extend(self.accept_or_last(item, Arrival::Listed));
            }
            Ok(())
        };
        let ListMeta { resource_version, token } = each_item(operation, body, heard, take).await?;
        Ok(Input::Page { objects, version: resource_version, token })
    }

    /// Accepts one item. Items of built-in kinds in lists have no `kind` and `apiVersion`, which readers of the JSON
    /// expect.
    ///
    /// An item whose uid and version the store has already is not decoded again: a list after a short break costs
    /// little more than its bytes.
    fn accept_typed(&self, json: &str, arrival: Arrival) -> Option<Arc<Stored>> {
        let same = |meta: &Meta| {
            let cached = self.store.get(&meta.key)?;
            let is_same = cached.meta().uid == meta.uid && cached.meta().resource_version == meta.resource_version;
            (is_same && !meta.resource_version.is_empty()).then_some(cached)
        };
        let object = Stored::accept_item(&self.config.kind, json, &self.field_mask.read(), same);
        self.or_report(json, object.and_then(|object| object.or_else(|object| self.prepare(object, arrival))))
    }

    /// Returns the last state of a deleted object as handlers can read it: its last good state if the final one cannot
    /// be decoded.
    fn readable(&self, last: Stored) -> Arc<Stored> {
        let fits = self.checks.read().iter().all(|check| check.check(&last, Arrival::Alone).is_ok());
        let cached = self.store.get(last.key()).filter(|cached| !fits && cached.meta().uid == last.meta().uid);
        cached.unwrap_or_else(|| Arc::new(last))
    }

    /// Accepts an object of a complete state. An unreadable one is replaced by its last good state, because it would
    /// count as deleted otherwise. A predecessor of that name is deleted, so its state does not count.
    fn accept_or_last(&self, json: &str, arrival: Arrival) -> Option<Arc<Stored>> {
        self.accept_typed(json, arrival).or_else(|| {
            let unread = self.kept(json).ok()?;
            self.store.get(unread.key()).filter(|cached| cached.meta().uid == unread.meta().uid)
        })
    }

    /// Accepts an object, or reports that it cannot be decoded.
    fn accept_or_report(&self, json: &str) -> Option<Arc<Stored>> {
        self.or_report(json, self.accept(json))
    }

    /// Records the outcome: a readable object is no longer on the list of unreadable ones, an unreadable one is added,
    /// counted and logged with the decoder's message.
    fn or_report(&self, json: &str, object: Result<Arc<Stored>, DecodeError>) -> Option<Arc<Stored>> {
        match object {
            Ok(object) => {
                self.unreadable.remove(object.key());
                Some(object)
            }
            Err(error) => {
                self.condition.count_undecodable();
                if let Ok(unread) = self.kept(json) {
                    self.unreadable.add(unread, error.source.to_string());
                }
                tracing::error!(%error, cause = %error.source, "object can't be deserialized; the cache keeps its last readable state");
                None
            }
        }
    }

    /// Performs one watch. Results are handled before anything is awaited: locals that live across an `.await` need
    /// memory as long as the watch lasts.
    ///
    /// Returns the wait before the next request, or `None` to send it at once.
    async fn watch(
        &self,
        reflector: &mut Reflector,
        scope: &Scope,
        life: Duration,
        permit: &mut Option<ListPermit>,
    ) -> Option<Duration> {
        let began = Instant::now();
        let opened = Box::pin(self.open(scope, reflector.request(), life)).await;
        *permit = None;
        let mut chunks = match opened.map_err(|error| self.perform(reflector, Input::Failed(error))) {
            Ok(chunks) => chunks,
            Err(performed) => return performed.await,
        };
        self.condition.record_success(&self.config, scope, Activity::Follow);
        let (mut lines, mut any) = (Lines::default(), false);
        while self.receive_chunk(&mut chunks, &mut lines, reflector, life).await {
            while let Some(line) = lines.next() {
                any = true;
                let (rest, next) = self.apply_line(reflector, line, began);
                if let Some(rest) = rest {
                    rest.await;
                }
                // Later events of this response are not applied.
                if let ControlFlow::Break(wait) = next {
                    return wait;
                }
            }
            if lines.is_too_long() {
                break;
            }
        }
        let lasted = began.elapsed();
        self.perform(reflector, Input::Closed { lasted, any }).await
    }

    /// Waits for more bytes of a watch. Returns `false` if it has ended or is silent for too long.
    ///
    /// The server ends a watch at its `timeoutSeconds`. Only a dead connection is silent for longer, because a healthy
    /// one brings a bookmark about once a minute. Pings find most dead connections earlier
    /// ([`connection`](crate::connection)).
    async fn receive_chunk(
        &self,
        chunks: &mut Chunks,
        lines: &mut Lines,
        reflector: &Reflector,
        life: Duration,
    ) -> bool {
        let streams = *reflector.request() == Request::Stream;
        let silence = if streams { STREAM_SILENCE_MAX } else { life + WATCH_GRACE };
        let chunk = tokio::select! {
            biased;
            chunk = tokio::time::timeout(silence, chunks.next()) => chunk,
            () = self.check_served.notified() => return false,
        };
        let Ok(Some(Ok(chunk))) = chunk else { return false };
        self.condition.record_response();
        lines.push(&chunk);
        true
    }

    /// Applies one line of a watch. Returns the rest for which the store has no room yet, and the wait before the next
    /// request if the watch is over.
    ///
    /// An unreadable line or an `ERROR` event ends the watch. Events after it belong to an uncertain state.
    fn apply_line(
        &self,
        reflector: &mut Reflector,
        line: &[u8],
        began: Instant,
    ) -> (Option<BoxFuture<'_, ()>>, ControlFlow<Option<Duration>>) {
        let mut left = Vec::new();
        let (input, is_over) = match self.read_event(line, reflector, &mut left) {
            Ok(None) => return (None, ControlFlow::Continue(())),
            Ok(Some(input)) => (input, false),
            Err(error) => (Input::Broken { error, lasted: began.elapsed() }, true),
        };
        let (mut deltas, wait) = self.apply_input(reflector, input);
        deltas.splice(0..0, left);
        let is_over = is_over || wait.is_some();
        (self.push_deltas(deltas), if is_over { ControlFlow::Break(wait) } else { ControlFlow::Continue(()) })
    }

    /// Opens a watch. A separate function, so that the request does not live as long as the response.
    ///
    /// # Errors
    /// The server rejects the watch or does not answer within 60 s.
    async fn open(&self, scope: &Scope, request: &Request, life: Duration) -> Result<Chunks, ApiError> {
        let from = match request {
            Request::Watch { version } => format!("resourceVersion={version}"),
            _ => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=".to_owned(),
        };
        let path = self.path(scope, &format!("{WATCH}&{from}&timeoutSeconds={}", life.as_secs()));
        let body = transport::open(&self.client, &self.watching(), &path, self.accepts(METADATA)).await?;
        Ok(Box::pin(body.into_data_stream()))
    }

    /// Returns the name of a watch in errors.
    fn watching(&self) -> Operation {
        self.config.operation("watch")
    }

    /// Returns the input of a line, `None` for a line without one, or the error that ends the watch.
    ///
    /// Unknown event types are ignored with a warning, so a newer API server may add some. A deleted object needs only
    /// its metadata: whatever else is wrong with it, it is gone.
    ///
    /// An object that the filter does not select is not decoded, and its event only moves the version on. `left` receives
    /// a deletion if it has just ceased to be selected, and its version while the scope is listed beside the watch.
    fn read_event(&self, line: &[u8], reflector: &Reflector, left: &mut Vec<Delta>) -> Result<Option<Input>, ApiError> {
        let event: Event<'_> = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) if line.trim_ascii().is_empty() => return Ok(None),
            Err(error) => {
                return Err(ApiError::Unreadable { operation: self.watching(), cause: error.to_string() });
            }
        };
        let json = event.object.get();
        if ["ADDED", "MODIFIED", "DELETED"].contains(&event.kind)
            && let Some(head) = self.foreign(json)
        {
            self.unreadable.remove(&head.key());
            left.extend(self.last_selected(&head).map(Delta::Delete));
            if self.n_lists.load(Ordering::Relaxed) > 0 {
                left.push(Delta::Unselected(
                    reflector.scope().clone(),
                    (&*head.uid).into(),
                    head.resource_version.to_string(),
                ));
            }
            return Ok(Some(Input::Bookmark(head.resource_version.into_owned())));
        }
        Ok(match event.kind {
            "ADDED" | "MODIFIED" if *reflector.request() == Request::Stream => {
                self.accept_or_last(json, Arrival::Alone).map(Input::Applied)
            }
            "ADDED" | "MODIFIED" => match self.accept_typed(json, Arrival::Alone) {
                Some(object) => Some(Input::Applied(object)),
                None => self.kept(json).ok().and_then(|unread| version_of(&unread)),
            },
            // The metadata of a deleted object is enough; the rest may be unreadable.
            "DELETED" => match self.kept(json) {
                Ok(object) => Some(self.ended(object, reflector.scope(), left)),
                Err(_) => self.accept_or_report(json).map(Input::Deleted),
            },
            "BOOKMARK" => Bookmark::read(json),
            "ERROR" => return Err(ApiError::refused(self.watching(), 500, None, json)),
            other => {
                tracing::warn!(event = other, "ignored a watch event of an unknown type");
                None
            }
        })
    }

    /// Returns the input of a deletion.
    ///
    /// If the final state cannot be decoded, handlers get the last readable one, in `left`. The watch continues at the
    /// version of the event: that of the readable state is older.
    ///
    /// A cached state that is later than the event stays: the object had left the selector, and was written after that.
    fn ended(&self, last: Stored, scope: &Scope, left: &mut Vec<Delta>) -> Input {
        self.unreadable.remove(last.key());
        let (uid, version) = (last.meta().uid.clone(), version_of(&last));
        let end = last.meta().revision();
        let readable = self.readable(last);
        match version {
            Some(Input::Bookmark(version)) if readable.meta().resource_version != *version => {
                if readable.meta().revision().zip(end).is_none_or(|(readable, end)| readable <= end) {
                    left.push(Delta::Delete(readable));
                }
                // A list beside the watch may have a state between the two.
                left.push(Delta::Unselected(scope.clone(), uid, version.clone()));
                Input::Bookmark(version)
            }
            _ => Input::Deleted(readable),
        }
    }

    /// Returns the cached state of an object that is no longer selected. A state that is newer than the event stays,
    /// because its own event has not arrived yet.
    fn last_selected(&self, head: &Head<'_>) -> Option<Arc<Stored>> {
        let cached = self.store.get(&head.key()).filter(|cached| cached.meta().uid == *head.uid)?;
        // The object was not selected before the event either. Its slot was lost, and `drop_lost` removes it.
        if self.filter().is_none_or(|filter| !filter.has(&cached)) {
            return None;
        }
        let versions = head.resource_version.parse::<u64>().ok().zip(cached.meta().revision());
        versions.is_none_or(|(event, version)| event >= version).then_some(cached)
    }

    /// Applies an input, and returns the wait before the next request.
    ///
    /// The reflector has moved on before the returned future is polled. Only the push into a full store waits.
    fn perform(&self, reflector: &mut Reflector, input: Input) -> impl Future<Output = Option<Duration>> + Send {
        let (deltas, wait) = self.apply_input(reflector, input);
        let rest = self.push_deltas(deltas);
        async move {
            if let Some(rest) = rest {
                rest.await;
            }
            wait
        }
    }

    /// Sends deltas to the store: at once where there is room, so that an idle informer keeps no buffer for them.
    fn push_deltas(&self, deltas: Vec<Delta>) -> Option<BoxFuture<'_, ()>> {
        let mut deltas = deltas.into_iter();
        let first = deltas.find_map(|delta| self.store.try_push(delta).err())?;
        Some(Box::pin(async move {
            self.store.push(first).await;
            for delta in deltas {
                self.store.push(delta).await;
            }
        }))
    }

    /// Passes an input to the reflector, and records the health that follows from it. Returns the deltas in order, and
    /// the wait if the request is over.
    fn apply_input(&self, reflector: &mut Reflector, input: Input) -> (Vec<Delta>, Option<Duration>) {
        if let Input::Failed(error) | Input::Cut(error) | Input::Broken { error, .. } = &input {
            if self.lacks_optional(error) {
                self.condition.record_absent(&self.config, reflector.scope());
            } else if !error.is_expired() {
                self.condition.record_failure(&self.config, reflector.scope(), Activity::Follow, error);
            }
        } else if matches!(input, Input::Page { .. }) {
            self.condition.record_success(&self.config, reflector.scope(), Activity::Follow);
        }
        let (mut deltas, mut wait) = (Vec::new(), None);
        for effect in reflector.handle(input) {
            match effect {
                Effect::Emit(mut delta) => {
                    if let Delta::Replace(_, objects, _) | Delta::Restore(_, objects, _) = &mut delta {
                        self.retain_selected(objects);
                    }
                    if let Delta::Clear(scope) | Delta::Absent(scope) = &delta {
                        self.unreadable.clear(scope);
                    }
                    if let Delta::Restore(_, objects, version) = &delta {
                        let (kind, n_objects) = (&self.config.kind.plural, objects.len());
                        tracing::warn!(
                            kind,
                            version,
                            n_objects,
                            "the API server returned an older state (restored from a backup?): the cache follows it"
                        );
                    }
                    deltas.push(delta);
                }
                Effect::Wait(duration) => wait = Some(duration),
                Effect::Next => {}
            }
        }
        (deltas, wait)
    }

    /// Returns `true` if the error says that the API server does not serve a kind that is optional.
    pub(super) fn lacks_optional(&self, error: &ApiError) -> bool {
        self.config.presence == Presence::Optional && error.is_not_found()
    }

    /// Returns `true` if the kind is optional, and the last response of the API server was that it does not serve the
    /// kind.
    ///
    /// Always `false` for a [`Presence::Required`] kind, whose 404 is a failure in [`health`](Self::health).
    pub fn is_absent(&self) -> bool {
        self.condition.is_absent()
    }

    /// Returns the client of its cluster.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Lists the newest state beside the watch, whole or in pages, and returns it with its version.
    ///
    /// It falls back to pages as the reflector does, for this one read. All pages of a list show the same version.
    ///
    /// # Errors
    /// A request fails, or slots are gained during each of [`GAINS_MAX`] lists. Nothing else is retried here.
    pub(super) async fn state(&self, scope: &Scope) -> Result<(Vec<Arc<Stored>>, String), ApiError> {
        for _try in 0..GAINS_MAX {
            let gained = self.n_gained();
            let (mut objects, version) = self.partial_state(scope).await?;
            if self.n_gained() == gained {
                self.retain_selected(&mut objects);
                return Ok((objects, version));
            }
        }
        Err(self.gained())
    }

    /// Does the same, and keeps a list during which a slot was gained. It lacks some objects of that slot.
    pub(super) async fn partial_state(&self, scope: &Scope) -> Result<(Vec<Arc<Stored>>, String), ApiError> {
        let mut request = Request::Whole { version: None };
        let (mut state, mut list) = (Vec::new(), ListNumber::default());
        loop {
            match self.request_list(scope, &request, &mut list).await {
                Input::Page { objects, version, token } => {
                    state.extend(objects);
                    match token.filter(|token| !token.is_empty()) {
                        Some(token) => request = Request::List { version: None, token: Some(token) },
                        None => return Ok((state, version)),
                    }
                }
                Input::Failed(error) if matches!(request, Request::Whole { .. }) && wants_pages(&error) => {
                    request = Request::List { version: None, token: None };
                }
                Input::Failed(error) | Input::Cut(error) => return Err(error),
                _ => return Ok((state, String::new())),
            }
        }
    }

    /// Returns path and query of a request for a scope, with the selectors of the watch config.
    pub(super) fn path(&self, scope: &Scope, query: &str) -> String {
        let config = &self.config;
        let mut path = format!("{}?{query}", config.kind.path(scope.as_deref()));
        for (name, selector) in [("labelSelector", &config.labels), ("fieldSelector", &config.fields)] {
            if !selector.is_empty() {
                path += &format!("&{name}={}", url::escape(selector));
            }
        }
        path
    }
}

/// Returns the input of an event of which only the version matters: the next watch continues there. `None` for an object
/// without a version.
fn version_of(unread: &Stored) -> Option<Input> {
    let version = unread.meta().resource_version.to_string();
    (!version.is_empty()).then_some(Input::Bookmark(version))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use k8s_openapi::api::core::v1::Pod;
    use tower::service_fn;

    use super::{
        super::filter::{BelongsTo, OvertakenList},
        *,
    };
    use crate::store::Share;

    /// Returns a source of Pods whose requests get an empty response.
    fn source() -> Source {
        let nobody = service_fn(|_request: http::Request<Body>| async {
            Ok::<_, Infallible>(http::Response::new(Body::empty()))
        });
        Source::new(Client::new(nobody, "default"), WatchConfig::new(Kind::of::<Pod>()), Arc::default())
    }

    #[tokio::test]
    async fn only_objects_of_events_stay_decoded() {
        let source = source();
        let _readers = source.view::<Pod>();
        let json = |name: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"containers":[]}}}}"#);
        let line = format!(r#"{{"type":"ADDED","object":{}}}"#, json("alone"));
        let reflector = Reflector::default();
        let Some(Input::Applied(alone)) = source.read_event(line.as_bytes(), &reflector, &mut Vec::new()).unwrap()
        else {
            panic!("an event");
        };
        let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#, json("listed"));
        let Input::Page { objects, .. } =
            source.read_list(&"list pods".into(), Body::from(list.into_bytes())).await.unwrap()
        else {
            panic!("a list");
        };
        assert!(alone.is_decoded(), "its handlers read it at once");
        assert!(objects.len() == 1 && !objects[0].is_decoded(), "those behind it would push it out");
    }

    #[tokio::test]
    async fn scope_removed_before_the_source_looks_is_closed() {
        let config = WatchConfig::of::<Pod>().in_namespaces(["a"]);
        let store = SharedStore::for_namespaces(&config.namespaces);
        let source = Source::new(source().client, config, Arc::new(store));
        tokio::spawn(source.store().clone().write());
        let (a, b): (Scope, Scope) = (Some("a".into()), Some("b".into()));
        let empty = |scope: &Scope| Delta::Replace(scope.clone(), Vec::new(), "1".into());
        source.store().push(Delta::Open(b.clone())).await;
        source.scopes().add(b.clone());
        source.scopes().remove(&b);
        let mut handles = Handles::new();
        assert_eq!(source.update_scopes(&mut handles, Start::First).await, std::slice::from_ref(&a));
        source.store().acknowledged(empty(&a)).await;
        assert!(source.store().is_synced(), "it waits for no list of `b`");
        handles.push((a.clone(), AbortHandle::new_pair().0));
        source.scopes().remove(&a);
        source.scopes().add(a.clone());
        assert_eq!(source.update_scopes(&mut handles, Start::Later).await, std::slice::from_ref(&a));
        source.store().acknowledged(Delta::Bookmark(None, "1".into())).await;
        assert!(handles.is_empty() && !source.store().is_synced());
        source.store().acknowledged(empty(&a)).await;
        assert!(source.store().is_synced(), "its list is applied");
    }

    #[tokio::test]
    async fn watch_continues_behind_unreadable_events() {
        let source = source();
        let _readers = source.view::<Pod>();
        tokio::spawn(source.store().clone().write());
        let mut reflector = Reflector::default();
        let pod = |name: &str, version: u64, spec: &str| {
            let meta = format!(r#"{{"name":"{name}","namespace":"a","uid":"{name}","resourceVersion":"{version}"}}"#);
            format!(r#"{{"metadata":{meta},"spec":{spec}}}"#)
        };
        let objects = vec![source.accept(&pod("x", 4, r#"{"containers":[]}"#)).unwrap()];
        source.perform(&mut reflector, Input::Page { objects, version: "5".into(), token: None }).await;
        source.store().acknowledged(Delta::Bookmark(None, "5".into())).await;
        for (kind, name, version) in [("MODIFIED", "x", 9), ("ADDED", "y", 10), ("DELETED", "x", 11)] {
            let line = format!(r#"{{"type":"{kind}","object":{}}}"#, pod(name, version, "false"));
            let (rest, _goes_on) = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
            assert!(rest.is_none(), "the store has room");
            let next = Request::Watch { version: version.to_string() };
            assert_eq!(*reflector.request(), next, "{kind} {name}");
            source.store().acknowledged(Delta::Bookmark(None, "5".into())).await;
            assert_eq!(source.store().revision(), version, "{kind} {name}");
        }
        assert!(source.store().is_empty());
        assert_eq!(source.num_unreadable(), 1, "`y` is still there");
    }

    fn json(name: &str, uid: &str, version: u64, spec: &str) -> String {
        let meta = format!(r#"{{"name":"{name}","namespace":"a","uid":"{uid}","resourceVersion":"{version}"}}"#);
        format!(r#"{{"metadata":{meta},"spec":{spec}}}"#)
    }

    /// Returns a Pod as the source accepts it.
    fn pod(source: &Source, name: &str, version: u64) -> Arc<Stored> {
        source.accept(&json(name, name, version, r#"{"containers":[]}"#)).unwrap()
    }

    fn last_page(objects: Vec<Arc<Stored>>, version: &str) -> Input {
        Input::Page { objects, version: version.into(), token: None }
    }

    /// Returns a source that reads whole Pods, and a reflector that watches from version 5.
    async fn watching_from_5(objects: impl FnOnce(&Source) -> Vec<Arc<Stored>>) -> (Source, Reflector) {
        let (source, mut reflector) = (source(), Reflector::default());
        let _readers = source.view::<Pod>();
        tokio::spawn(source.store().clone().write());
        let objects = objects(&source);
        source.perform(&mut reflector, last_page(objects, "5")).await;
        source.store().flush().await;
        (source, reflector)
    }

    #[tokio::test]
    async fn unreadable_successor_does_not_keep_its_predecessor() {
        let (source, mut reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
        let list =
            format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#, json("x", "successor", 9, "false"));
        let input = source.read_list(&"list pods".into(), Body::from(list.into_bytes())).await.unwrap();
        source.perform(&mut reflector, input).await;
        source.store().flush().await;
        assert!(source.store().is_empty(), "its predecessor is gone");
    }

    #[tokio::test]
    async fn unreadable_deletion_keeps_a_newer_state() {
        let (source, mut reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
        source.store().acknowledged(Delta::Written(pod(&source, "x", 13))).await;
        // Another client removes the label of the selector at 11, and this process restores it at 13.
        let line = format!(r#"{{"type":"DELETED","object":{}}}"#, json("x", "x", 11, "false"));
        let _applied = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
        source.store().flush().await;
        assert_eq!((source.store().len(), source.store().revision()), (1, 11));
        let line = format!(r#"{{"type":"ADDED","object":{}}}"#, json("y", "y", 12, r#"{"containers":[]}"#));
        let _applied = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
        source.store().flush().await;
        assert_eq!(source.store().len(), 2, "the watch has just reported it");
    }

    /// The one slot of a replica, which it may lose.
    struct OneSlot(AtomicBool);

    impl Share for OneSlot {
        fn has(&self, _key: &ObjectKey) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        fn has_namespace(&self, _namespace: &str) -> bool {
            false
        }

        fn is_empty(&self) -> bool {
            !self.0.load(Ordering::Relaxed)
        }

        fn n_gained(&self) -> u64 {
            1
        }
    }

    fn sharded() -> (Source, Arc<OneSlot>) {
        let (source, slot) = (source(), Arc::new(OneSlot(AtomicBool::new(true))));
        source.select(Filter::new(slot.clone(), vec![BelongsTo::Itself], OvertakenList::Applied));
        (source, slot)
    }

    #[tokio::test]
    async fn list_during_slot_loss_keeps_none_of_them() {
        let (source, slot) = sharded();
        tokio::spawn(source.store().clone().write());
        let mut reflector = Reflector::default();
        source.perform(&mut reflector, Input::Failed(ApiError::refused("list pods", 413, None, "{}"))).await;
        let objects = vec![pod(&source, "x", 4)];
        source.perform(&mut reflector, Input::Page { objects, version: "5".into(), token: Some("more".into()) }).await;
        let objects = vec![pod(&source, "y", 4)];
        slot.0.store(false, Ordering::Relaxed);
        source.drop_lost().await;
        source.perform(&mut reflector, last_page(objects, "5")).await;
        source.store().flush().await;
        assert!(source.store().is_empty());
    }

    #[tokio::test]
    async fn waiting_events_leave_with_their_slot() {
        let (source, slot) = sharded();
        let mut reflector = Reflector::default();
        source.perform(&mut reflector, last_page(vec![pod(&source, "x", 4)], "5")).await;
        tokio::spawn(source.store().clone().write());
        slot.0.store(false, Ordering::Relaxed);
        source.drop_lost().await;
        source.store().flush().await;
        assert!(source.store().is_synced() && source.store().is_empty());
    }
}
