//! Performs what the reflector asks for: requests to the API server, waits, deltas to the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::Arc,
    time::Duration,
};

use futures::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use http_body_util::BodyExt;
use kube::Client;
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{Notify, OnceCell, watch},
    time::Instant,
};

use super::{
    Identity, PAGE_LEN,
    lines::Lines,
    reflector::{Effect, Input, Reflector, Request, STREAM_SILENCE_MAX},
    spread::Spread,
};
use crate::{
    effect::{ApiError, transport},
    object::{DecodeError, Kind, Object, Stored},
    store::{Delta, Scope, SharedStore, Store},
};

/// Shortest life that is asked of a watch; the longest is twice that, as client-go does. The server ends it, not the client.
const WATCH_LIFE_MIN: Duration = Duration::from_secs(300);
/// The scopes that are reflected, with what ends each.
type Handles = BTreeMap<Scope, AbortHandle>;

/// What every watch asks for.
const WATCH: &str = "watch=true&allowWatchBookmarks=true";
/// Silence that is longer than the asked life of a watch by so much means that the connection is dead.
const WATCH_GRACE: Duration = Duration::from_secs(5);

/// The same failure is said once in this time.
const REPORT_AGAIN: Duration = Duration::from_secs(60);

/// Checks that an object fits a type which will read it.
pub type Check = Arc<dyn Fn(&Stored) -> Result<(), DecodeError> + Send + Sync>;

/// The check that an object can be decoded as `K`.
pub(crate) fn fits<K: Object>() -> Check {
    Arc::new(|object| object.decode::<K>().map(|_fits| ()))
}

/// How a source is doing; the last failure stays until the next success.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// What fails now, with the verb and the resource.
    pub failure: Option<ApiError>,
    /// Objects that could not be decoded since the start.
    pub undecodable: u64,
}

/// One list and one watch into one store.
pub struct Source {
    client: Client,
    identity: Identity,
    /// What is listed and watched: the namespaces of the identity, until somebody changes them.
    scopes: watch::Sender<BTreeSet<Scope>>,
    store: Arc<SharedStore>,
    checks: RwLock<Vec<Check>>,
    health: RwLock<Health>,
    /// Ends the present watch: somebody has seen that the kind is gone.
    doubted: Notify,
    /// Set once the store has been compared with the newest state.
    pub(super) compared: OnceCell<()>,
    /// The failure that was last reported, and when.
    reported: Mutex<Option<(String, Instant)>>,
}

#[derive(Deserialize)]
struct ListPage<'a> {
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: Option<String>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// A bookmark: an object with nothing but a version, and perhaps the mark that the initial state is whole.
#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

impl Bookmark {
    fn read(json: &str) -> Option<Input> {
        let BookmarkMeta { resource_version, annotations } = serde_json::from_str::<Self>(json).ok()?.metadata;
        let ends = annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true");
        Some(if ends { Input::Synced(resource_version) } else { Input::Bookmark(resource_version) })
    }
}

impl Source {
    /// A source that has not started.
    pub fn new(client: Client, identity: Identity, store: Arc<SharedStore>) -> Self {
        let namespaces = identity.namespaces.iter().map(|namespace| Some(namespace.as_str().into()));
        let scopes = if identity.namespaces.is_empty() { BTreeSet::from([None]) } else { namespaces.collect() };
        Self {
            client,
            identity,
            scopes: watch::Sender::new(scopes),
            store,
            checks: RwLock::default(),
            health: RwLock::default(),
            doubted: Notify::new(),
            compared: OnceCell::new(),
            reported: Mutex::default(),
        }
    }

    /// Asks the server anew whether it has the kind, by beginning the watch again.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_waiters();
    }

    /// Objects that fail the check are reported and not stored: their last good state stays.
    pub fn add_check(&self, check: Check) {
        self.checks.write().push(check);
    }

    /// The store that it fills, as objects of a type: from now on objects that do not fit the type are reported and not
    /// stored. Call it before [`run`](Self::run).
    ///
    /// ```
    /// # use kube::Client;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::{object::Kind, source::{Identity, Source}, store::Store};
    ///
    /// async fn print_pods(client: Client) {
    ///     let source = Arc::new(Source::new(client, Identity::all(Kind::of::<Pod>()), Arc::default()));
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
    pub fn view<K: Object>(&self) -> Store<K> {
        debug_assert_eq!(self.identity.kind, Kind::of::<K>(), "a source delivers objects of its kind alone");
        self.add_check(fits::<K>());
        Store::new(self.store.clone())
    }

    /// How it is doing.
    pub fn health(&self) -> Health {
        self.health.read().clone()
    }

    /// What it lists and watches.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The store that it fills.
    pub fn store(&self) -> &Arc<SharedStore> {
        &self.store
    }

    /// Accepts bytes from the API server as an object of this source's kind.
    ///
    /// # Errors
    /// When it does not fit a type that reads this store.
    pub fn accept(&self, json: &str) -> Result<Arc<Stored>, DecodeError> {
        let object = Stored::accept(&self.identity.kind, json)?;
        for check in self.checks.read().iter() {
            check(&object)?;
        }
        Ok(Arc::new(object))
    }

    /// Lists and watches for ever.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watch; the store keeps what it has.
    pub async fn run(&self) {
        let mut wanted = self.scopes.subscribe();
        let (mut running, mut handles) = (FuturesUnordered::new(), Handles::new());
        loop {
            let scopes = wanted.borrow_and_update().clone();
            let (stay, go): (Handles, Handles) = handles.into_iter().partition(|(scope, _)| scopes.contains(scope));
            handles = stay;
            for (scope, handle) in go {
                // After this nothing of it comes any more.
                handle.abort();
                self.store.push(Delta::Close(scope)).await;
            }
            for scope in scopes {
                handles.entry(scope.clone()).or_insert_with(|| {
                    let (reflect, handle) = abortable(self.reflect(scope));
                    running.push(reflect);
                    handle
                });
            }
            let changed = async {
                if wanted.changed().await.is_err() {
                    pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = async { while running.next().await.is_some() {} pending().await } => {}
            }
        }
    }

    /// The namespaces that are listed and watched now; none is all.
    pub fn namespaces(&self) -> Vec<String> {
        self.scopes.borrow().iter().flatten().map(ToString::to_string).collect()
    }

    pub(super) fn scopes(&self) -> BTreeSet<Scope> {
        self.scopes.borrow().clone()
    }

    /// Whether it lists and watches a scope now.
    pub(crate) fn has(&self, scope: &Scope) -> bool {
        self.scopes.borrow().contains(scope)
    }

    /// Lists and watches a scope from now on.
    pub(crate) fn begin(&self, scope: Scope) {
        self.scopes.send_if_modified(|scopes| scopes.insert(scope));
    }

    /// Lists and watches a scope no longer; its objects leave the store.
    pub(crate) fn end(&self, scope: &Scope) {
        self.scopes.send_if_modified(|scopes| scopes.remove(scope));
    }

    async fn reflect(&self, scope: Scope) {
        let mut reflector = Reflector::of(scope.clone());
        let mut spread = Spread::of((&self.identity, &scope));
        loop {
            let request = reflector.request().clone();
            let wait = match request {
                Request::List { version, token } => self.list(&mut reflector, &scope, version, token).await,
                Request::Stream => {
                    let query =
                        format!("{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=");
                    self.watch(&mut reflector, &scope, &query, spread.life(WATCH_LIFE_MIN)).await
                }
                Request::Probe => self.probe(&mut reflector, &scope).await,
                Request::Watch { version } => {
                    let query = format!("{WATCH}&resourceVersion={version}");
                    self.watch(&mut reflector, &scope, &query, spread.life(WATCH_LIFE_MIN)).await
                }
            };
            if let Some(wait) = wait {
                tokio::time::sleep(spread.wait(wait)).await;
            }
        }
    }

    async fn list(
        &self,
        reflector: &mut Reflector,
        scope: &Scope,
        version: Option<String>,
        token: Option<String>,
    ) -> Option<Duration> {
        let input = self.ask_page(scope, version, token).await;
        self.perform(reflector, input).await
    }

    /// Asks for a page.
    pub(super) async fn ask_page(&self, scope: &Scope, version: Option<String>, token: Option<String>) -> Input {
        let mut query = format!("limit={PAGE_LEN}");
        if let Some(token) = token {
            query += &format!("&continue={}", transport::escape(&token));
        }
        if let Some(version) = version {
            query += &format!("&resourceVersion={version}&resourceVersionMatch=NotOlderThan");
        }
        let operation = format!("list {}", self.identity.kind.plural);
        match transport::get(&self.client, &operation, &self.path(scope, &query)).await {
            Ok(body) => self.read_page(&operation, &body),
            Err(error) => Input::Failed(error),
        }
    }

    async fn probe(&self, reflector: &mut Reflector, scope: &Scope) -> Option<Duration> {
        let operation = format!("list {}", self.identity.kind.plural);
        let input = match transport::get(&self.client, &operation, &self.path(scope, "limit=1")).await {
            Ok(body) => self.read_page(&operation, &body),
            Err(error) => Input::Failed(error),
        };
        self.perform(reflector, input).await
    }

    fn read_page(&self, operation: &str, body: &str) -> Input {
        match serde_json::from_str::<ListPage<'_>>(body) {
            Ok(page) => Input::Page {
                objects: page.items.iter().filter_map(|item| self.accept_or_last(item.get())).collect(),
                version: page.metadata.resource_version,
                token: page.metadata.token,
            },
            Err(error) => Input::Failed(ApiError::Unreadable { operation: operation.into(), cause: error.to_string() }),
        }
    }

    /// Items of lists of built-in kinds carry no kind and apiVersion; readers of the JSON expect them.
    fn accept_typed(&self, json: &str) -> Option<Arc<Stored>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head<'a> {
            #[serde(borrow)]
            api_version: Option<&'a RawValue>,
        }
        let bare = serde_json::from_str::<Head<'_>>(json).is_ok_and(|head| head.api_version.is_none());
        let typed = json.trim_start().strip_prefix('{').filter(|_| bare).map(|rest| {
            let Kind { kind, .. } = &self.identity.kind;
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            format!(r#"{{"apiVersion":"{}","kind":"{kind}"{comma}{rest}"#, self.identity.kind.api_version())
        });
        self.accept_or_report(typed.as_deref().unwrap_or(json))
    }

    /// The last state of an object as handlers can read it: the last good one where the last one cannot be read.
    fn readable(&self, last: Stored) -> Arc<Stored> {
        let fits = self.checks.read().iter().all(|check| check(&last).is_ok());
        let known = self.store.get(last.key()).filter(|known| !fits && known.meta().uid == last.meta().uid);
        known.unwrap_or_else(|| Arc::new(last))
    }

    /// An object of a whole state: in the place of one that cannot be read stands its last good state, or it would seem to
    /// be gone.
    fn accept_or_last(&self, json: &str) -> Option<Arc<Stored>> {
        self.accept_typed(json).or_else(|| {
            let unread = Stored::accept(&self.identity.kind, json).ok()?;
            self.store.get(unread.key())
        })
    }

    fn accept_or_report(&self, json: &str) -> Option<Arc<Stored>> {
        match self.accept(json) {
            Ok(object) => Some(object),
            Err(error) => {
                self.health.write().undecodable += 1;
                tracing::error!(%error, cause = %error.source, "object left out of the cache: its last good state stays");
                None
            }
        }
    }

    async fn watch(&self, reflector: &mut Reflector, scope: &Scope, query: &str, life: Duration) -> Option<Duration> {
        let query = format!("{query}&timeoutSeconds={}", life.as_secs());
        let operation = format!("watch {}", self.identity.kind.plural);
        let opened = Instant::now();
        let mut chunks = match transport::open(&self.client, &operation, &self.path(scope, &query)).await {
            Ok(body) => Box::pin(body.into_data_stream()),
            Err(error) => return self.perform(reflector, Input::Failed(error)).await,
        };
        self.report_success();
        let (mut lines, mut any) = (Lines::default(), false);
        loop {
            let streams = *reflector.request() == Request::Stream;
            let silence = if streams { STREAM_SILENCE_MAX } else { life + WATCH_GRACE };
            let chunk = tokio::select! {
                biased;
                chunk = tokio::time::timeout(silence, chunks.next()) => chunk,
                () = self.doubted.notified() => break,
            };
            let Ok(Some(Ok(chunk))) = chunk else { break };
            lines.push(&chunk);
            while let Some(line) = lines.next() {
                any = true;
                match self.read_event(&operation, line) {
                    Ok(Some(input)) => {
                        // The state that it began with is not to be taken in.
                        if let Some(wait) = self.perform(reflector, input).await {
                            return Some(wait);
                        }
                    }
                    Ok(None) => {}
                    Err(error) => {
                        let lasted = opened.elapsed();
                        return self.perform(reflector, Input::Broken { error, lasted }).await;
                    }
                }
            }
            if lines.is_too_long() {
                break;
            }
        }
        let lasted = opened.elapsed();
        self.perform(reflector, Input::Closed { lasted, any }).await
    }

    /// What a line of a watch says, if it says anything, or why the watch is over.
    fn read_event(&self, operation: &str, line: &[u8]) -> Result<Option<Input>, ApiError> {
        let event: Event<'_> = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) if line.trim_ascii().is_empty() => return Ok(None),
            Err(error) => {
                return Err(ApiError::Unreadable { operation: operation.into(), cause: error.to_string() });
            }
        };
        let json = event.object.get();
        Ok(match event.kind {
            "ADDED" | "MODIFIED" => self.accept_or_last(json).map(Input::Applied),
            // Which object is gone stands in its metadata: the rest may be unreadable.
            "DELETED" => match Stored::accept(&self.identity.kind, json) {
                Ok(object) => Some(Input::Deleted(self.readable(object))),
                Err(_) => self.accept_or_report(json).map(Input::Deleted),
            },
            "BOOKMARK" => Bookmark::read(json),
            "ERROR" => return Err(ApiError::refused(operation, 500, None, json)),
            other => {
                tracing::warn!(event = other, "unknown kind of watch event left out");
                None
            }
        })
    }

    async fn perform(&self, reflector: &mut Reflector, input: Input) -> Option<Duration> {
        if let Input::Failed(error) | Input::Broken { error, .. } = &input {
            if !error.is_expired() {
                self.report(error);
            }
        } else if matches!(input, Input::Page { .. }) {
            self.report_success();
        }
        let mut wait = None;
        for effect in reflector.on(input) {
            match effect {
                Effect::Emit(delta) => {
                    if let Delta::Restore(_, objects, version) = &delta {
                        let (kind, n_objects) = (&self.identity.kind.plural, objects.len());
                        tracing::warn!(
                            kind,
                            version,
                            n_objects,
                            "the API server's state went back: what is cached follows it"
                        );
                    }
                    self.store.push(delta).await;
                }
                Effect::Wait(duration) => wait = Some(duration),
                Effect::Next => {}
            }
        }
        wait
    }

    /// A failure that goes on is said again from time to time, not at each try.
    pub(super) fn report(&self, error: &ApiError) {
        let text = format!("{error}{}", self.advice(error));
        self.health.write().failure = Some(error.clone());
        let mut reported = self.reported.lock();
        if reported.as_ref().is_some_and(|(said, when)| *said == text && when.elapsed() < REPORT_AGAIN) {
            return;
        }
        tracing::warn!("{text}; the cache is not kept up to date until this works again");
        *reported = Some((text, Instant::now()));
    }

    fn report_success(&self) {
        self.health.write().failure = None;
        if self.reported.lock().take().is_some() {
            tracing::info!("watch {}: works again", self.identity.kind.plural);
        }
    }

    /// What a person can do about a failure.
    fn advice(&self, error: &ApiError) -> String {
        let kind = &self.identity.kind;
        match error.code() {
            // Both what an unknown group answers and what an unknown resource of a known one does.
            Some(404) => format!(
                "; the API server has no {}.{}: install its definition (`cargo run -- generate-crds | kubectl apply -f -`)",
                kind.plural,
                kind.api_version()
            ),
            Some(403) => "; apply the role (`cargo run -- generate-rbac | kubectl apply -f -`)".into(),
            Some(401) => "; the credentials of the kubeconfig are not accepted".into(),
            _ => String::new(),
        }
    }

    /// The client of its cluster.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Lists what is in a namespace and takes it in as if this process had written it: afterwards the cache has all that
    /// any earlier write has left there, also one whose outcome is not known.
    pub(crate) async fn refresh(&self, namespace: Option<&str>) -> Result<(), ApiError> {
        let (scope, mut token) = (namespace.map(Arc::from), None);
        loop {
            match self.ask_page(&scope, None, token).await {
                Input::Page { objects, token: next, .. } => {
                    for object in objects {
                        self.store.acknowledged(Delta::Written(object)).await;
                    }
                    token = next.filter(|next| !next.is_empty());
                }
                Input::Failed(error) => return Err(error),
                _ => return Ok(()),
            }
            if token.is_none() {
                return Ok(());
            }
        }
    }

    pub(super) fn path(&self, scope: &Scope, query: &str) -> String {
        let identity = &self.identity;
        let mut path = format!("{}?{query}", identity.kind.path(scope.as_deref()));
        for (name, selector) in [("labelSelector", &identity.labels), ("fieldSelector", &identity.fields)] {
            if !selector.is_empty() {
                path += &format!("&{name}={}", transport::escape(selector));
            }
        }
        path
    }
}
