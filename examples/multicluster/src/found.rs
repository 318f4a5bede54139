//! Kinds that are discovered at run time. A kind is looked up and watched from its first use on.
//!
//! This requires `list` and `watch` on all kinds. The controllers declare these permissions with `rbac(…)`.

use std::{
    collections::BTreeMap,
    task::{Context, Poll},
};

use futures::{Stream, StreamExt, stream, task::AtomicWaker};
use kctl::{
    App,
    app::Env,
    karmada::kind::Gvk,
    kube::{
        Api, Client,
        core::{ApiResource, DynamicObject, GroupVersionKind},
    },
    object::{Kind, Stored},
    prelude::*,
    watches::{Watch, WatchConfig, WatchError, Watches},
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::interpret::Rules;

/// Longest wait for the initial list of a kind.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// A controller that reconciles when objects change whose kinds are discovered at run time.
pub(crate) trait Finds: Reconcile {
    /// The cluster of the objects, or an empty string for the control plane.
    const CLUSTER: &str = "";
    /// Label selector of the watched objects. An empty selector matches all objects.
    const LABELS: &str = "";

    /// Creates the controller with its (initially empty) set of discovered kinds, and the interpreters.
    fn with(kinds: FoundKinds, rules: Rules) -> Self;

    /// Returns the key to queue for an object. It is called with the states before and after a change.
    fn key_of(kind: &Gvk, object: &Stored) -> Option<Key<Self::Primary>>;
}

/// Adds a controller of this sort to an app. A changed object enqueues its key, and changed interpreters enqueue all keys.
pub(crate) fn add<C: Finds>(app: App, rules: &Rules) -> App {
    let kinds = FoundKinds(Arc::new(Shared { cluster: C::CLUSTER, labels: C::LABELS, ..Shared::default() }));
    let (found, rules, changing) = (kinds.clone(), rules.clone(), rules.clone());
    app.controller_with(move |env| {
        kinds.begin(&env);
        let controller = C::with(kinds.clone(), rules.clone());
        async move { Ok(controller) }
    })
    .trigger_on::<C, _, _>(move |_env| {
        let changed = found
            .changes()
            .map(|(kind, change)| change.states().filter_map(|object| C::key_of(&kind, object)).collect::<Vec<_>>());
        let found = found.clone();
        let rules_changed = changing.changes().map(move |()| found.keys::<C>());
        stream::select(changed, rules_changed).flat_map(stream::iter)
    })
}

/// The watched kinds of a cluster, with their objects. Clones share the same state.
#[derive(Clone)]
pub(crate) struct FoundKinds(Arc<Shared>);

/// State that the clones share.
#[derive(Default)]
struct Shared {
    cluster: &'static str,
    labels: &'static str,
    /// Opens watches. `None` before the app starts.
    watches: Mutex<Option<Watches>>,
    /// Open watches, at most one per kind that the cluster serves. A watch is closed when its kind is gone.
    open: Mutex<BTreeMap<Gvk, Watch<Stored>>>,
    /// Wakes the stream of changes when a kind is added.
    waiting: AtomicWaker,
}

impl FoundKinds {
    /// Stores the `Watches` of a starting app, and closes the watches of an earlier start.
    fn begin(&self, env: &Env) {
        *self.0.watches.lock() = Some(env.watches.clone());
        self.0.open.lock().clear();
    }

    /// Returns the kind with its plural once its objects are listed, or `None` if the cluster does not serve the kind.
    ///
    /// # Errors
    /// The cluster does not respond, or the initial list takes longer than [`LIST_TIMEOUT`].
    pub(crate) async fn find(&self, wanted: &Gvk) -> Result<Option<Kind>> {
        if let Some(watch) = self.0.open.lock().get(wanted).filter(|watch| watch.is_synced()) {
            return Ok(Some(watch.config().kind.clone()));
        }
        let watches = self.0.watches.lock().clone().ok_or("the app has not started")?;
        let Gvk { group, version, kind } = wanted;
        let kind = match watches.kind_on(self.0.cluster, &GroupVersionKind::gvk(group, version, kind)).await {
            Err(WatchError::UnknownKind { .. }) => {
                self.0.open.lock().remove(wanted);
                return Ok(None);
            }
            found => found?,
        };
        let config = WatchConfig::new(kind.clone()).on(self.0.cluster).labels(self.0.labels);
        let watch = watches.watch(config.in_namespaces(watches.namespaces())).await?;
        if tokio::time::timeout(LIST_TIMEOUT, watch.wait_until_synced()).await != Ok(true) {
            let why = watch.health().failure.map_or_else(String::new, |failure| format!(": {failure}"));
            return Err(format!("{} are not listed within {LIST_TIMEOUT:?}{why}", kind.resource()).into());
        }
        self.0.open.lock().insert(wanted.clone(), watch);
        self.0.waiting.wake();
        Ok(Some(kind))
    }

    /// Returns an object from the cache, unless it is being deleted.
    ///
    /// # Errors
    /// The same errors as [`find`](Self::find), at the first use of a kind.
    pub(crate) async fn get(&self, kind: &Gvk, namespace: &str, name: &str) -> Result<Option<Value>> {
        self.find(kind).await?;
        let key = Key::<DynamicObject>::namespaced(namespace, name);
        let found = self.0.open.lock().get(kind).and_then(|watch| watch.get(key.object()));
        found.filter(is_alive).map(value).transpose()
    }

    /// Returns the objects of a namespace that are not being deleted, sorted by name. Returns `None` if the cluster
    /// does not serve the kind.
    pub(crate) async fn all(&self, kind: &Gvk, namespace: &str) -> Result<Option<Vec<Value>>> {
        self.find(kind).await?;
        let Some(objects) = self.0.open.lock().get(kind).map(Watch::objects) else { return Ok(None) };
        let own = |object: &Arc<Stored>| object.meta().namespace() == Some(namespace) && is_alive(object);
        objects.into_iter().filter(own).map(value).collect::<Result<_>>().map(Some)
    }

    /// Returns a client for live reads and writes of a kind in a namespace, or `None` if the cluster does not serve the
    /// kind.
    pub(crate) async fn api(&self, client: Client, kind: &Gvk, namespace: &str) -> Result<Option<Api<DynamicObject>>> {
        let Some(Kind { group, version, kind, plural }) = self.find(kind).await? else { return Ok(None) };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind { group, version, kind }, &plural);
        Ok(Some(Api::namespaced_with(client, namespace, &resource)))
    }

    /// Returns the keys of all objects, to enqueue them when interpreters change.
    fn keys<C: Finds>(&self) -> Vec<Key<C::Primary>> {
        let open = self.0.open.lock();
        let keys = open.iter().flat_map(|(kind, watch)| {
            watch.objects().into_iter().filter_map(|object| C::key_of(kind, &object)).collect::<Vec<_>>()
        });
        keys.collect()
    }

    /// Returns the changes of all watched kinds. The stream never ends.
    fn changes(&self) -> impl Stream<Item = (Gvk, Change<Stored>)> + use<> {
        let shared = self.0.clone();
        stream::poll_fn(move |context| shared.poll_change(context).map(Some))
    }
}

impl Shared {
    /// Polls the watches in the order of their kinds, and returns the first change.
    fn poll_change(&self, context: &mut Context<'_>) -> Poll<(Gvk, Change<Stored>)> {
        self.waiting.register(context.waker());
        for (kind, watch) in self.open.lock().iter_mut() {
            if let Poll::Ready(Some(change)) = watch.poll_next_unpin(context) {
                return Poll::Ready((kind.clone(), change));
            }
        }
        Poll::Pending
    }
}

/// Returns `true` if an object is not being deleted.
fn is_alive(object: &Arc<Stored>) -> bool {
    object.meta().deletion_timestamp().is_none()
}

/// Parses a stored object.
fn value(object: Arc<Stored>) -> Result<Value> {
    Ok(serde_json::from_str(&object.json())?)
}
