//! What a reconcile is given beside its object: reads of the cache and the operations that the controller declared.

use std::{
    collections::{BTreeMap, HashMap},
    marker::PhantomData,
    sync::Arc,
};

use kube::Client;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::{
    Caches, Conditions, Controller, Declares, HasStatus, Live, MayDeletePrimary, MayGetPrimary, MayPatch,
    MayPatchPrimary, MayScalePrimary, Objects, Owned, ReadsLive, Reason, Request, WritableBy, Writes,
};
use crate::{
    effect::{ApiError, EventType, MERGE_PATCH, Recorder, Target, Writer},
    key::{Key, ObjectKey},
    manager::Clock,
    object::{Kind, Object, Stored},
    source::Source,
    spec::{ControllerSpec, RelationSpec},
    store::Store,
};

/// A controller with its caches.
pub(crate) struct Env {
    pub(crate) spec: ControllerSpec,
    pub(crate) primary: Arc<Source>,
    pub(crate) sources: Vec<(RelationSpec, Arc<Source>)>,
    pub(crate) writer: Writer,
    pub(crate) recorder: Recorder,
    /// What was last applied by `converge`, by uid: a hash of it.
    pub(crate) applied: Mutex<HashMap<String, u64>>,
    /// The other clusters by name.
    pub(crate) clusters: BTreeMap<String, Client>,
    /// Kinds that a key wrote without knowing whether it took effect.
    pub(crate) uncertain: Mutex<HashMap<ObjectKey, Vec<Arc<Source>>>>,
    /// The time that is written into objects.
    pub(crate) clock: Clock,
    /// Becomes true when the manager stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Env {
    /// The client of a cluster; `App` has checked that it is there.
    pub(crate) fn client(&self, cluster: &str) -> &Client {
        self.clusters.get(cluster).unwrap_or_else(|| self.primary.client())
    }

    /// The source of a cached kind. The permission types guarantee that it was declared.
    pub(crate) fn source<K: Object>(&self) -> Arc<Source> {
        let kind = Kind::of::<K>();
        let mut declared = self.sources.iter().filter(|(relation, _)| relation.kind == kind);
        match declared.next() {
            Some((_, source)) => source.clone(),
            None => self.primary.clone(),
        }
    }
}

impl Env {
    fn caches(&self) -> impl Iterator<Item = &Arc<Source>> {
        std::iter::once(&self.primary).chain(self.sources.iter().map(|(_, source)| source))
    }

    /// Whether all caches have what they should: none lost its kind, or is about to get another namespace.
    pub(crate) fn is_complete(&self) -> bool {
        self.caches().all(|source| source.store().is_synced())
    }

    /// Returns once all caches have everything that was there when the process began to lead.
    pub(crate) async fn make_current(&self) {
        futures::future::join_all(self.caches().map(|source| source.make_current())).await;
    }

    /// Returns once all caches have what they should.
    pub(crate) async fn complete(&self) {
        while !self.is_complete() {
            for source in self.caches() {
                source.store().wait_until_synced().await;
            }
        }
    }

    /// Remembers a write of a key whose outcome is not known.
    pub(crate) fn note<T>(
        &self,
        primary: &Stored,
        source: &Arc<Source>,
        written: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if written.as_ref().is_err_and(ApiError::is_unknown_outcome) {
            let mut uncertain = self.uncertain.lock();
            let sources = uncertain.entry(primary.key().clone()).or_default();
            if !sources.iter().any(|known| Arc::ptr_eq(known, source)) {
                sources.push(source.clone());
            }
        }
        written
    }

    /// Brings the cache past every write of a key whose outcome is not known: only then is it reconciled again.
    pub(crate) async fn make_certain(&self, key: &ObjectKey) -> Result<(), ApiError> {
        let sources = self.uncertain.lock().get(key).cloned().unwrap_or_default();
        for source in sources {
            source.refresh(key.namespace.as_deref()).await?;
        }
        self.uncertain.lock().remove(key);
        Ok(())
    }

    /// Whether an error says that the primary itself is gone: the cache will say so in a moment.
    pub(crate) fn is_gone(&self, error: &ApiError, key: &ObjectKey) -> bool {
        let primary = format!(" {} {key}", self.spec.primary.kind);
        error.is_not_found() && error.operation().ends_with(&primary)
    }
}

/// One reconcile of the controller `C`: its object, the cache, and what it may do. A reconcile function names its controller; a
/// helper function names what it needs, and can be called by each controller that declares that:
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kctl_runtime::reconcile::{Context, Deletes, Reads, Result};
///
/// /// Deletes the pods beyond the first `n`, unless a config map says not to.
/// async fn shrink<C: Deletes<Pod> + Reads<ConfigMap>>(cx: &Context<C>, n: usize) -> Result<()> {
///     if cx.store::<ConfigMap>().iter().any(|config| config.metadata.name.as_deref() == Some("keep")) {
///         return Ok(());
///     }
///     let pods = cx.owned::<Pod>();
///     for pod in pods.iter().skip(n) {
///         pods.delete(&pod).await?;
///     }
///     Ok(())
/// }
/// ```
pub struct Context<C: ?Sized> {
    inner: Arc<Inner>,
    controller: PhantomData<fn() -> C>,
}

struct Inner {
    env: Arc<Env>,
    primary: Arc<Stored>,
    attempt: u32,
    tags: u32,
    /// The status as the API server has it, as far as this reconcile knows: patches are made against it.
    status: Mutex<Value>,
}

impl<C: ?Sized> Clone for Context<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), controller: PhantomData }
    }
}

impl<C: Controller> Context<C> {
    pub(crate) fn new(env: Arc<Env>, primary: Arc<Stored>, attempt: u32, tags: u32) -> Self {
        let object: Value = serde_json::from_str(primary.json()).unwrap_or_default();
        let status = Mutex::new(object.get("status").cloned().unwrap_or_default());
        Self { inner: Arc::new(Inner { env, primary, attempt, tags, status }), controller: PhantomData }
    }

    /// The key of the object.
    pub fn key(&self) -> Key<C::Primary> {
        self.inner.primary.key().clone().into()
    }

    /// Failures of this key in a row before this reconcile. For logs and waits, never for decisions.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// Everything that queued the key since its last reconcile. For logs, never for decisions.
    pub fn reason(&self) -> Reason {
        Reason { env: self.inner.env.clone(), tags: self.inner.tags }
    }

    /// The objects of kind `K` whose controller reference names the primary: a snapshot in order of creation, then of name,
    /// without those that are being deleted. It never changes under the caller; a later call sees this process's own writes.
    pub fn owned<K: Object>(&self) -> Owned<C, K, <C as Declares<K>>::Grant>
    where
        C: Declares<K>,
    {
        Owned::snapshot(self.inner.env.clone(), self.inner.primary.clone())
    }

    /// Objects of a kind that the controller declares without owning it, to be changed with the verbs that it declares:
    /// `reads = Node(patch)`.
    pub fn objects<K: Object>(&self) -> Objects<C, K, <C as Writes<K>>::Grant>
    where
        C: Writes<K>,
    {
        Objects::new(self.inner.env.clone(), self.inner.primary.clone())
    }

    /// Reads of the kind `K` from the API server, past the cache: `reads = K(live)`.
    pub fn live<K: Object>(&self) -> Live<K>
    where
        C: ReadsLive<K>,
    {
        Live::new(self.inner.env.clone(), self.inner.primary.clone())
    }

    /// Puts an object under the control of the primary: sets its controller reference. It is refused when the object has
    /// changed since it was read, or has a controller.
    pub fn adopt<K: Object>(&self, object: &K) -> Request<Arc<K>>
    where
        C: Declares<K>,
        <C as Declares<K>>::Grant: MayPatch<C, K>,
    {
        super::owned::adopt_existing(&self.inner.env, &self.inner.primary, object)
    }

    /// Takes the reference to the primary away from an object. It is refused when the object has changed since it was read.
    pub fn release<K: Object>(&self, object: &K) -> Request<Arc<K>>
    where
        C: Declares<K>,
        <C as Declares<K>>::Grant: MayPatch<C, K>,
    {
        super::owned::release(&self.inner.env, &self.inner.primary, object)
    }

    /// Sends a JSON merge patch of the primary: exactly this object, not a later one of its name. `primary(patch)`.
    pub fn patch(&self, patch: impl Serialize) -> Request<Arc<C::Primary>>
    where
        C::Grant: MayPatchPrimary<C, C::Primary>,
    {
        let (inner, patch) = (self.inner.clone(), serde_json::to_value(patch).unwrap_or_default());
        Request::new(async move {
            let mut patch = patch;
            patch["metadata"]["uid"] = inner.primary.meta().uid.clone().into();
            inner.env.writer.patch(&inner.target(), "", MERGE_PATCH, &patch).await
        })
    }

    /// The primary as the API server has it now, past the cache: for decisions that a stale state would make wrong.
    /// `primary(get)`.
    pub fn get(&self) -> Request<Arc<C::Primary>>
    where
        C::Grant: MayGetPrimary<C, C::Primary>,
    {
        let inner = self.inner.clone();
        Request::new(async move {
            let meta = inner.primary.meta();
            inner
                .env
                .writer
                .get(inner.env.primary.client(), &inner.env.spec.primary.kind, meta.namespace.as_deref(), &meta.name)
                .await
        })
    }

    /// Deletes the primary: exactly this object. `primary(delete)`.
    pub fn delete(&self) -> Request<()>
    where
        C::Grant: MayDeletePrimary<C, C::Primary>,
    {
        let inner = self.inner.clone();
        Request::new(async move { inner.env.writer.delete(&inner.target(), &inner.primary.meta().uid).await })
    }

    /// Sets the replicas of the primary through its scale subresource. `primary(scale)`.
    pub fn scale(&self, replicas: i32) -> Request<()>
    where
        C::Grant: MayScalePrimary<C, C::Primary>,
    {
        let inner = self.inner.clone();
        Request::new(async move { inner.env.writer.scale(&inner.target(), replicas).await })
    }

    /// Tells people what happened to the primary: `kubectl describe` and `kubectl events` show it. It is sent in the
    /// background; when too many wait, the newest are dropped.
    pub fn event(&self, kind: EventType, reason: &str, note: impl Into<String>) {
        self.inner.env.recorder.record(&self.inner.env.spec, &self.inner.primary, kind, reason, note.into());
    }

    /// The conditions of the primary's status, to be changed and put into the new status.
    pub fn conditions(&self) -> Conditions {
        let known = self.inner.status.lock().get("conditions").cloned().unwrap_or_default();
        Conditions::new(known, self.inner.primary.meta().generation, (self.inner.env.clock)())
    }

    /// Returns when the manager stops: for reconciles that wait for something.
    pub async fn cancelled(&self) {
        let mut stopping = self.inner.env.stopping.clone();
        // A manager that is gone has stopped.
        let _gone = stopping.wait_for(|stopping| *stopping).await;
    }

    /// All cached objects of the kind `K`.
    pub fn store<K: Object>(&self) -> Store<K>
    where
        C: Caches<K>,
    {
        Store::new(self.inner.env.source::<K>().store().clone())
    }

    /// Sets the status of the primary: sends a JSON merge patch from the status that this reconcile was given to `status`,
    /// and nothing when they are equal. Fields that `status` leaves out are removed. For a primary of a built-in
    /// kind: `primary(status)`.
    pub fn patch_status<S: Serialize + Send + 'static, From>(&self, status: S) -> Request<()>
    where
        C::Primary: HasStatus<From, Status = S>,
        From: WritableBy<C>,
    {
        let inner = self.inner.clone();
        Request::new(async move {
            let new = serde_json::to_value(&status).unwrap_or_default();
            let Some(change) = merge_patch(&inner.status.lock().clone(), &new) else { return Ok(()) };
            let meta = inner.primary.meta();
            let patch = json!({"metadata": {"uid": meta.uid}, "status": change});
            let _written: Arc<C::Primary> =
                inner.env.writer.patch(&inner.target(), "/status", MERGE_PATCH, &patch).await?;
            *inner.status.lock() = new;
            Ok(())
        })
    }
}

impl Inner {
    fn target(&self) -> Target<'_> {
        let meta = self.primary.meta();
        Target { source: &self.env.primary, namespace: meta.namespace.as_deref(), name: &meta.name }
    }
}

/// The merge patch (RFC 7386) that turns `old` into `new`, or nothing when they are equal.
pub(crate) fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        // In a merge patch null removes, so a null is what is not there.
        let before = old.get(name).unwrap_or(&Value::Null);
        if let Some(change) = merge_patch(before, value) {
            patch.insert(name.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: Value, new: &Value, expected: Option<Value>) {
        assert_eq!(merge_patch(&old, new), expected);
        let mut patched = old;
        if let Some(patch) = expected {
            apply(&mut patched, &patch);
            assert_eq!(&patched, new);
        }
    }

    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(changes) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (name, change) in changes {
            if change.is_null() {
                target.as_object_mut().unwrap().remove(name);
            } else {
                apply(target.as_object_mut().unwrap().entry(name.clone()).or_insert(Value::Null), change);
            }
        }
    }

    #[test]
    fn equal_statuses_send_nothing() {
        check(json!({"ready": 1}), &json!({"ready": 1}), None);
    }

    #[test]
    fn removed_fields_become_null() {
        check(
            json!({"a": 1, "b": {"c": 2, "d": 3}}),
            &json!({"b": {"c": 4}}),
            Some(json!({"a": null, "b": {"c": 4, "d": null}})),
        );
    }

    #[test]
    fn first_status_is_sent_whole() {
        check(Value::Null, &json!({"ready": 0}), Some(json!({"ready": 0})));
    }
}
