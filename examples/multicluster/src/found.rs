//! Kinds that are found at run time: one is looked up and watched from the first time that it is asked for.

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
    watches::{Identity, Watch, WatchError, Watches},
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::interpret::Rules;

/// Longest wait for the first list of a kind.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// A controller that is run when objects change whose kinds it finds at run time.
pub(crate) trait Finds: Reconcile {
    /// Where they are; empty is the control plane.
    const CLUSTER: &str = "";
    /// Which of them: a label selector.
    const LABELS: &str = "";

    /// The controller with the kinds that it will find, and how they are understood.
    fn with(kinds: FoundKinds, rules: Rules) -> Self;

    /// What is to be looked at when an object is, or was, like this.
    fn key_of(kind: &Gvk, object: &Stored) -> Option<Key<Self::Primary>>;
}

/// Adds such a controller to an app. It looks again at what has changed, and at everything when the rules have.
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
        let understood_anew = changing.changes().map(move |()| found.keys::<C>());
        stream::select(changed, understood_anew).flat_map(stream::iter)
    })
}

/// The kinds of a cluster that were asked for, with their objects. Clones are the same.
#[derive(Clone)]
pub(crate) struct FoundKinds(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cluster: &'static str,
    labels: &'static str,
    /// What the app that runs may watch.
    watches: Mutex<Option<Watches>>,
    /// Each stays open until the cluster has the kind no longer: as many as there are kinds.
    open: Mutex<BTreeMap<Gvk, Watch<Stored>>>,
    /// Waits for changes, also of kinds that are found later.
    waiting: AtomicWaker,
}

impl FoundKinds {
    fn begin(&self, env: &Env) {
        *self.0.watches.lock() = Some(env.watches.clone());
        self.0.open.lock().clear();
    }

    /// The kind as the cluster names it, once its objects are known; nothing when the cluster does not have it.
    pub(crate) async fn find(&self, wanted: &Gvk) -> Result<Option<Kind>> {
        if let Some(watch) = self.0.open.lock().get(wanted).filter(|watch| watch.is_synced()) {
            return Ok(Some(watch.identity().kind.clone()));
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
        let identity = Identity::all(kind.clone()).on(self.0.cluster).labels(self.0.labels);
        let watch = watches.watch(identity.in_namespaces(watches.namespaces())).await?;
        if tokio::time::timeout(LISTED_WITHIN, watch.synced()).await != Ok(true) {
            let why = watch.health().failure.map_or_else(String::new, |failure| format!(": {failure}"));
            return Err(format!("{} are not listed within {LISTED_WITHIN:?}{why}", kind.resource()).into());
        }
        self.0.open.lock().insert(wanted.clone(), watch);
        self.0.waiting.wake();
        Ok(Some(kind))
    }

    /// One object that is not being deleted.
    pub(crate) async fn get(&self, kind: &Gvk, namespace: &str, name: &str) -> Result<Option<Value>> {
        self.find(kind).await?;
        let key = Key::<DynamicObject>::namespaced(namespace, name);
        let found = self.0.open.lock().get(kind).and_then(|watch| watch.get(key.object()));
        found.filter(is_alive).map(value).transpose()
    }

    /// The objects of a namespace that are not being deleted, by name; nothing when the cluster does not have the kind.
    pub(crate) async fn all(&self, kind: &Gvk, namespace: &str) -> Result<Option<Vec<Value>>> {
        self.find(kind).await?;
        let Some(objects) = self.0.open.lock().get(kind).map(Watch::objects) else { return Ok(None) };
        let own = |object: &Arc<Stored>| object.meta().namespace() == Some(namespace) && is_alive(object);
        objects.into_iter().filter(own).map(value).collect::<Result<_>>().map(Some)
    }

    /// Reads and writes the objects of a kind in a namespace, past what is watched.
    pub(crate) async fn api(&self, client: Client, kind: &Gvk, namespace: &str) -> Result<Option<Api<DynamicObject>>> {
        let Some(Kind { group, version, kind, plural }) = self.find(kind).await? else { return Ok(None) };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind { group, version, kind }, &plural);
        Ok(Some(Api::namespaced_with(client, namespace, &resource)))
    }

    /// What is to be looked at when nothing is known of any object any more.
    fn keys<C: Finds>(&self) -> Vec<Key<C::Primary>> {
        let open = self.0.open.lock();
        let keys = open.iter().flat_map(|(kind, watch)| {
            watch.objects().into_iter().filter_map(|object| C::key_of(kind, &object)).collect::<Vec<_>>()
        });
        keys.collect()
    }

    /// Each change of an object, with its kind.
    fn changes(&self) -> impl Stream<Item = (Gvk, Change<Stored>)> + use<> {
        let shared = self.0.clone();
        stream::poll_fn(move |context| shared.poll_change(context).map(Some))
    }
}

impl Shared {
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

fn is_alive(object: &Arc<Stored>) -> bool {
    object.meta().deletion_timestamp().is_none()
}

fn value(object: Arc<Stored>) -> Result<Value> {
    Ok(serde_json::from_str(&object.json())?)
}
