//! The context of a reconcile: reads of the caches, and the operations that the controller declares.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    ops::Deref,
    sync::{Arc, OnceLock, atomic::AtomicU32},
};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    ApiRequest, Applied, Caches, Cluster, Conditions, Controller, Declares, DeleteRequest, Events, HasRules, HasStatus,
    Live, MayDeletePrimary, MayGetPrimary, MayPatch, MayPatchPrimary, MayScalePrimary, NoopWrites, Objects, OnCluster,
    Owned, ReadsLive, ReconcileReason, TimedRuns, UsedCaches, WritableBy, Writes,
    merge_patch::{has_same_lists, merge_patch, replaces_list},
    payload::Payload,
};
use crate::{
    clock::Clock,
    declaration::{ControllerSpec, RelationSpec},
    key::{Key, ObjectKey},
    object::{Kind, Object, Readable, Stored, Version},
    shard::{Gate, RingLabels},
    source::Source,
    store::{Part, Store},
    trace::Traces,
    writer::{ApiError, EventType, MERGE_PATCH, Recorder, Target, Writer},
};

/// A controller with its caches, its writer and its clock.
pub(crate) struct Env {
    pub(crate) spec: ControllerSpec,
    pub(crate) primary: Arc<Source>,
    pub(crate) sources: Vec<(RelationSpec, Arc<Source>)>,
    /// The caches that a reconcile has used, in the same order.
    pub(crate) used: UsedCaches,
    pub(crate) writer: Writer,
    /// The clients for `rbac(…)` by cluster and slot, with the number of the newest tenure that used one. A newer tenure
    /// replaces it.
    pub(crate) raw: Mutex<BTreeMap<(String, u32), (u64, Client)>>,
    pub(crate) recorder: Recorder,
    /// Number of failures in a row at which an event with the error is recorded on the object; 0 means never.
    pub(crate) warn_after_failures: Arc<AtomicU32>,
    pub(crate) traces: Arc<RwLock<Traces>>,
    /// The forms in which `apply` and `converge` last applied each object.
    pub(crate) applied: Applied,
    /// The client of the default cluster, also if the primary is on another cluster.
    pub(crate) default_client: Client,
    /// The other clusters by name.
    pub(crate) clusters: BTreeMap<String, Client>,
    /// Status patches that changed nothing.
    pub(crate) noop_writes: NoopWrites,
    /// The clock for times in objects, which a simulation replaces.
    pub(crate) clock: Clock,
    /// Becomes `true` when the manager stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// The slots of a sharded program that this controller works on.
    pub(crate) gate: Gate,
    /// The runs of the controller's functions. Empty without a `timeout`.
    pub(crate) timed_runs: TimedRuns,
}

impl Env {
    /// Returns the client of a cluster; the default one has an empty name. `Manager::add` has checked that it exists.
    pub(crate) fn client(&self, cluster: &str) -> &Client {
        self.clusters.get(cluster).unwrap_or(&self.default_client)
    }

    /// Returns the source of a cached kind that is declared without a cluster type.
    pub(crate) fn source<K: Readable>(&self) -> Arc<Source> {
        self.source_on::<K>(None)
    }

    /// Returns the source of a kind, on the cluster that `cx.cluster` names or on the default one.
    ///
    /// # Panics
    /// If the kind has no cache. The permission types guarantee that it has one.
    pub(crate) fn source_on<K: Readable>(&self, cluster: Option<&str>) -> Arc<Source> {
        let kind = Kind::of::<K>();
        if let Some(index) = self.sources.iter().position(|(relation, _)| relation.is_reached_by(&kind, cluster)) {
            self.used.mark(index);
            return self.sources[index].1.clone();
        }
        assert!(
            cluster.is_none() && kind == self.spec.primary.kind,
            "{} has no cache of {kind}: its declaration and its permissions differ",
            self.spec.name
        );
        self.primary.clone()
    }
}

impl Env {
    /// Iterates over the caches that must be complete before the controller works.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &Arc<Source>> {
        std::iter::once(&self.primary).chain(self.sources.iter().map(|(_, source)| source))
    }

    /// Returns `true` if all caches are complete: no kind is missing, and no namespace is being added.
    pub(crate) fn is_complete(&self) -> bool {
        self.caches().all(|source| source.store().is_synced())
    }

    /// Waits until all caches are as new as the moment when the process became the leader.
    pub(crate) async fn make_current(&self) {
        futures::future::join_all(self.caches().map(|source| source.catch_up_once())).await;
    }

    /// Waits until all caches are as new as the moment at which the last of `n_begun` tenures began.
    pub(crate) async fn compare_since(&self, n_begun: u64) {
        futures::future::join_all(self.caches().map(|source| source.compare_since(n_begun))).await;
    }

    /// Removes the labels of the controller ring from an object to apply: only the sharder may set them.
    pub(crate) fn strip_ring_labels(&self, object: &mut Value) {
        if let (Some(ring), Some(metadata)) = (self.gate.ring(), object.get_mut("metadata")) {
            ring.labels().strip(metadata);
        }
    }

    /// Returns the labels of the controller ring if the owned objects of a primary need the label of this shard. The
    /// watch delivers them only with that label, and the webhook that sets it may not have answered.
    ///
    /// Returns `None` while the sharder moves the primary: the webhook assigns new objects to the next shard.
    pub(super) fn labels_of_owned(&self, source: &Source, primary: &Stored) -> Option<&RingLabels> {
        let labels = self.gate.ring()?.labels();
        let is_selected = matches!(source.part(), Some(Part::Children));
        let stays = || self.primary.newest(primary.key()).is_some_and(|newest| labels.keeps(&newest));
        (is_selected && stays()).then_some(labels)
    }

    /// Returns once all caches are complete.
    pub(crate) async fn complete(&self) {
        while !self.is_complete() {
            for source in self.caches() {
                source.store().wait_until_synced().await;
            }
        }
    }

    /// Returns `true` if the error says that the primary itself is gone. The cache will follow in a moment.
    ///
    /// A 404 that names no object does not count: the kind may have no subresource `status`, and will not get one. For a custom
    /// resource without it the 404 names the object, as [`is_on_subresource`](crate::transport::Operation::is_on_subresource) says.
    pub(crate) fn is_gone(&self, error: &ApiError, key: &ObjectKey) -> bool {
        let primary = &self.spec.primary;
        error.is_object_missing() && error.operation().is_on(&primary.cluster, &primary.kind, key)
    }
}

/// The controller as one reconcile sees it. Its writer sends nothing after the end of the tenure in which the reconcile
/// began.
///
/// A task that the reconcile has spawned may outlive that tenure. Its reads may be older than the writes of another
/// replica, even if this replica owns the slot again.
pub(crate) struct ReconcileEnv {
    env: Arc<Env>,
    pub(crate) writer: Writer,
    /// The clients for `rbac(…)` that the reconcile has used, by cluster. In a controller ring, primaries of a slot have
    /// different tenures, so the clients of `env` rarely fit.
    raw: Mutex<BTreeMap<String, Client>>,
}

impl Deref for ReconcileEnv {
    type Target = Env;

    fn deref(&self) -> &Env {
        &self.env
    }
}

impl ReconcileEnv {
    pub(crate) fn new(env: &Arc<Env>, tenure: u64) -> Arc<Self> {
        Arc::new(Self { env: env.clone(), writer: env.writer.in_tenure(tenure), raw: Mutex::default() })
    }

    /// Returns the client of a cluster for operations beyond the API of this module, with the permit of this key.
    pub(crate) fn raw(&self, cluster: &str, key: &ObjectKey) -> Client {
        self.raw.lock().entry(cluster.to_owned()).or_insert_with(|| self.shared_raw(cluster, key)).clone()
    }

    /// Returns the client of the slot in this tenure, or creates one.
    fn shared_raw(&self, cluster: &str, key: &ObjectKey) -> Client {
        let tenure = self.writer.tenure();
        let create = || self.writer.raw(self.client(cluster), key);
        if self.gate.ring().is_some() {
            return create();
        }
        let mut raw = self.env.raw.lock();
        let (newest, client) =
            raw.entry((cluster.to_owned(), self.gate.slot(key))).or_insert_with(|| (tenure, create()));
        if *newest < tenure {
            (*newest, *client) = (tenure, create());
        }
        if *newest == tenure { client.clone() } else { create() }
    }
}

/// One reconcile of the controller `C`: the key, the caches, and the operations that the declaration allows. It is
/// cheap to clone.
///
/// A reconcile function names its controller: `cx: Context<my_controller>`. A helper function names only what it needs,
/// and can be called by each controller that declares that:
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kctl_runtime::reconcile::{Context, Deletes, Reads, Result};
///
/// /// Deletes the pods beyond the first `n`, unless a ConfigMap says not to.
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

impl<C: ?Sized> std::fmt::Debug for Context<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("primary", self.inner.primary.key()).finish_non_exhaustive()
    }
}

struct Inner {
    env: Arc<ReconcileEnv>,
    primary: Arc<Stored>,
    attempt: u32,
    tags: u32,
    /// The status in the API server as far as this reconcile knows it. Patches are computed against it. Empty until it is
    /// used, because most reconciles of a settled object do not use it, and it is parsed from the whole object.
    status: OnceLock<Mutex<KnownStatus>>,
}

#[derive(Clone)]
struct KnownStatus {
    /// As it was read, or as the last patch set it.
    value: Value,
    /// As the API server has stored it in this version. `None` if the cache did not have the version.
    stored: Option<Value>,
    /// The version of the object that had this status.
    resource_version: String,
}

impl KnownStatus {
    /// Reads the status of a cached object. Its other fields are skipped.
    fn of(object: &Stored) -> Self {
        #[derive(Deserialize, Default)]
        struct WithStatus {
            #[serde(default)]
            status: Value,
        }
        let WithStatus { status } = serde_json::from_str(&object.json()).unwrap_or_default();
        let resource_version = object.meta().resource_version.to_string();
        Self { value: status.clone(), stored: Some(status), resource_version }
    }
}

impl<C: ?Sized> Clone for Context<C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), controller: PhantomData }
    }
}

impl<C: Controller> Context<C> {
    pub(crate) fn new(env: Arc<ReconcileEnv>, primary: Arc<Stored>, attempt: u32, tags: u32) -> Self {
        let inner = Inner { env, primary, attempt, tags, status: OnceLock::new() };
        Self { inner: Arc::new(inner), controller: PhantomData }
    }
}

/// Bounds are on the methods, so that the compiler names the one that a helper function lacks.
impl<C> Context<C> {
    /// Returns namespace and name of the primary, which also identify it in the queue.
    pub fn key(&self) -> Key<C::Primary>
    where
        C: Controller,
    {
        self.inner.primary.key().clone().into()
    }

    /// Returns the number of failures of this key before this reconcile. It is 0 in the first reconcile, and again after a
    /// success, a change of the object's spec or data, or a failure that gave the key up. A change of labels or annotations
    /// keeps it, and so do conflicts, which count only if they name a wait. Use it for logs and waits, not for decisions.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// Returns everything that enqueued the key since its last reconcile. Use it for logs, not for decisions.
    pub fn reason(&self) -> ReconcileReason {
        ReconcileReason { env: self.inner.env.env.clone(), tags: self.inner.tags }
    }

    /// Returns the objects of kind `K` whose controller reference names the primary, with the operations to change
    /// them: `owns = K`.
    ///
    /// It is a snapshot, sorted by creation time and name; objects that are being deleted are in
    /// [`terminating`](Owned::terminating). It does not change later; a new call sees this process's own writes.
    pub fn owned<K: Object>(&self) -> Owned<C, K, <C as Declares<K>>::Verbs>
    where
        C: Declares<K>,
    {
        Owned::snapshot(self.inner.env.clone(), self.inner.primary.clone())
    }

    /// Returns the writes to a kind that the controller declares without owning it, with the declared verbs:
    /// `reads = Node(patch)`.
    pub fn objects<K: Readable>(&self) -> Objects<C, K, <C as Writes<K>>::Verbs>
    where
        C: Writes<K>,
    {
        Objects::new(self.inner.env.clone(), self.inner.primary.clone(), self.inner.env.source::<K>())
    }

    /// Returns the reads of the kind `K` from the API server, without the cache: `reads = K(live)`.
    ///
    /// Use it for decisions that an outdated state would make wrong, and for Secrets that no cache should hold.
    pub fn live<K: Object>(&self) -> Live<K>
    where
        C: ReadsLive<K>,
    {
        Live::new(self.inner.env.clone(), self.inner.primary.clone(), None)
    }

    /// Returns a kube client for operations beyond this API, within the rules of `rbac(…)`: kinds that are named at run
    /// time, subresources, access reviews.
    ///
    /// Like rules without `on`, it is for the cluster of the primary. [`OnCluster::client`] returns the client of another
    /// one.
    ///
    /// Its writes check the write permit like all others. They are not in the cache when they return, so a cached
    /// object is better written by [`owned`](Self::owned) or [`objects`](Self::objects). The guide on permissions has
    /// an example.
    pub fn client(&self) -> Client
    where
        C: HasRules,
    {
        self.inner.env.raw(&self.inner.env.spec.primary.cluster, self.inner.primary.key())
    }

    /// Returns the operations that the controller declares on another cluster with `on = M`. [`OnCluster`] has an
    /// example.
    pub fn cluster<M: Cluster>(&self, _name: M) -> OnCluster<C, M>
    where
        C: Controller,
    {
        OnCluster::new(self.inner.env.clone(), self.inner.primary.clone())
    }

    /// Sets the controller reference of an existing object to the primary. `owns = K(patch)`.
    ///
    /// # Errors
    /// A conflict if the object has changed since it was read, and an error if it has another controller or is in
    /// another namespace than the primary.
    pub fn adopt<K: Object>(&self, object: &K) -> ApiRequest<Arc<K>>
    where
        C: Declares<K>,
        <C as Declares<K>>::Verbs: MayPatch<C, K>,
    {
        super::owner_references::adopt_existing(&self.inner.env, &self.inner.primary, object)
    }

    /// Removes the reference to the primary from an object that it controls. `owns = K(patch)`.
    ///
    /// # Errors
    /// A conflict if the object has changed since it was read, and an error if the primary does not control it.
    pub fn release<K: Object>(&self, object: &K) -> ApiRequest<Arc<K>>
    where
        C: Declares<K>,
        <C as Declares<K>>::Verbs: MayPatch<C, K>,
    {
        super::owner_references::release(&self.inner.env, &self.inner.primary, object)
    }

    /// Sends a JSON merge patch ([RFC 7386](https://www.rfc-editor.org/rfc/rfc7386)) of the primary: exactly this
    /// object, not a later one of its name. `primary(patch)`.
    ///
    /// ```
    /// use kctl_runtime::reconcile::{Context, Controller, MayPatchPrimary, Result};
    /// use serde_json::json;
    ///
    /// async fn mark_as_seen<C>(cx: &Context<C>) -> Result<()>
    /// where
    ///     C: Controller<Verbs: MayPatchPrimary<C, <C as Controller>::Primary>>,
    /// {
    ///     cx.patch(json!({ "metadata": { "annotations": { "example.com/seen": "true" } } })).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of the API server, and a terminal error if `patch` or its `metadata` is not a JSON object.
    pub fn patch(&self, patch: impl Serialize) -> ApiRequest<Arc<C::Primary>>
    where
        C: Controller,
        C::Verbs: MayPatchPrimary<C, C::Primary>,
    {
        let (inner, patch) = (self.inner.clone(), Payload::serialize(patch));
        ApiRequest::new(async move {
            let target = inner.target();
            let patch = patch.patch(&target.operation("patch"), &inner.primary.meta().uid.to_string())?;
            inner.env.writer.patch(&target, "", MERGE_PATCH, &patch).await
        })
    }

    /// Returns the primary as the API server has it now, without the cache: for decisions that an outdated state would
    /// make wrong. `primary(get)`.
    ///
    /// # Errors
    /// 404 if the object is gone: [`is_not_found`](ApiError::is_not_found).
    pub fn get(&self) -> ApiRequest<Arc<C::Primary>>
    where
        C: Controller,
        C::Verbs: MayGetPrimary<C, C::Primary>,
    {
        let inner = self.inner.clone();
        ApiRequest::new(async move {
            let (primary, client) = (&inner.env.spec.primary, inner.env.primary.client());
            inner.env.writer.get(client, &primary.cluster, &primary.kind, inner.primary.key()).await
        })
    }

    /// Deletes the primary: exactly this object, not a later one of its name. `primary(delete)`. Returns `Ok` if it is gone
    /// already.
    ///
    /// Its dependents are deleted in the background; [`foreground`](DeleteRequest::foreground) and
    /// [`orphan`](DeleteRequest::orphan) select another propagation policy.
    ///
    /// # Errors
    /// A conflict if another object has the name now.
    // rustc shows this line, with its comment, to callers that pass `DeleteParams`.
    #[rustfmt::skip]
    pub fn delete(&self) -> DeleteRequest // help: background is the default; append `.foreground()` or `.orphan()`
    where
        C: Controller,
        C::Verbs: MayDeletePrimary<C, C::Primary>,
    {
        let inner = self.inner.clone();
        let finalizers = inner.primary.meta().finalizers().to_vec();
        DeleteRequest::new(&finalizers, move |policy| {
            ApiRequest::new(async move {
                let uid = inner.primary.meta().uid.to_string();
                inner.env.writer.delete(&inner.target(), &uid, policy).await
            })
        })
    }

    /// Sets the replicas of the primary through its `scale` subresource. `primary(scale)`.
    ///
    /// # Errors
    /// 404 if the kind has no `scale` subresource.
    pub fn scale(&self, replicas: i32) -> ApiRequest<()>
    where
        C: Controller,
        C::Verbs: MayScalePrimary<C, C::Primary>,
    {
        let inner = self.inner.clone();
        ApiRequest::new(async move {
            let uid = inner.primary.meta().uid.to_string();
            inner.env.writer.scale(&inner.target(), &uid, replicas).await
        })
    }

    /// Records an Event on the primary, which `kubectl describe` and `kubectl events` show.
    ///
    /// `reason` is one word in `CamelCase`, `note` is for people. The event is sent in the background. When
    /// [`EVENTS_MAX`](crate::writer::EVENTS_MAX) events wait, the newest ones are dropped.
    ///
    /// ```
    /// use kctl_runtime::{writer::EventType, reconcile::{Context, Controller}};
    ///
    /// fn report<C: Controller>(cx: &Context<C>, n: usize) {
    ///     cx.event(EventType::Normal, "Scaled", format!("scaled to {n} pods"));
    /// }
    /// ```
    pub fn event(&self, kind: EventType, reason: &str, note: impl Into<String>) {
        self.events().record(kind, reason, note);
    }

    /// Returns a builder of Events on the primary, for those with a related object or an action.
    pub fn events(&self) -> Events {
        Events::new(self.inner.env.env.clone(), self.inner.primary.clone())
    }

    /// Returns the current time: of the machine, or the simulated one in tests, which also jumps.
    ///
    /// Use it instead of `Timestamp::now()` for everything that depends on time, such as a TTL or an expiring
    /// certificate, so that it can be simulated. [`Action::requeue`](crate::reconcile::Action::requeue) asks for
    /// another reconcile at the right moment.
    ///
    /// ```
    /// use std::time::Duration;
    /// use k8s_openapi::jiff::Timestamp;
    /// use kctl_runtime::reconcile::{Action, Context, Controller};
    ///
    /// /// Waits until `expiry`; returns `None` once it has passed.
    /// fn wait_until<C: Controller>(cx: &Context<C>, expiry: Timestamp) -> Option<Action> {
    ///     let rest = Duration::try_from(expiry.duration_since(cx.now())).ok()?;
    ///     (!rest.is_zero()).then(|| Action::requeue(rest))
    /// }
    /// ```
    pub fn now(&self) -> Timestamp {
        (self.inner.env.clock)()
    }

    /// Returns the conditions of the primary's status, to be changed and put into the new status. See [`Conditions`].
    ///
    /// ```
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    /// use kctl_runtime::reconcile::{Context, Controller, Result};
    ///
    /// fn ready<C: Controller>(cx: &Context<C>, n: usize, wanted: usize) -> Result<Vec<Condition>> {
    ///     let message = format!("{n} of {wanted} pods are ready");
    ///     let reason = if n == wanted { "AllReady" } else { "Progressing" };
    ///     Ok(cx.conditions().with("Ready", n == wanted, reason, message).into_vec()?)
    /// }
    /// ```
    pub fn conditions(&self) -> Conditions {
        let existing = self.inner.status().lock().value.get("conditions").cloned().unwrap_or_default();
        Conditions::new(existing, self.inner.primary.meta().generation(), self.now())
    }

    /// Returns when the manager stops. Reconciles that wait for something else should stop waiting then.
    ///
    /// ```
    /// use kctl_runtime::reconcile::{Context, Controller, Result};
    ///
    /// async fn wait<C: Controller>(cx: &Context<C>, upload: impl Future<Output = Result<()>>) -> Result<()> {
    ///     tokio::select! {
    ///         done = upload => done,
    ///         () = cx.cancelled() => Err("the manager stops; the upload continues after the restart".into()),
    ///     }
    /// }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn cancelled(&self) {
        let mut stopping = self.inner.env.stopping.clone();
        // Fails only if the manager was dropped, which stops the program too.
        let _gone = stopping.wait_for(|stopping| *stopping).await;
    }

    /// Returns the cached objects of the kind `K`.
    ///
    /// In a sharded program and in a controller ring, the cache of the primaries or of an owned kind may have only the
    /// objects of this replica. A read beyond them panics, which fails the reconcile and not the program.
    /// [`Manager::cache_whole`](crate::manager::Manager::cache_whole) makes each replica cache all objects of a kind.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use kctl_runtime::reconcile::{Context, Reads};
    ///
    /// fn schedulable<C: Reads<Node>>(cx: &Context<C>) -> usize {
    ///     let nodes = cx.store::<Node>();
    ///     nodes.iter().filter(|node| !node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)).count()
    /// }
    /// ```
    pub fn store<K: Readable>(&self) -> Store<K>
    where
        C: Caches<K>,
    {
        let source = self.inner.env.source::<K>();
        Store::new(source.store().clone()).of_part(source.part())
    }

    /// Returns `true` if the API server serves the kind `K`. `false` is possible only for a relation with `optional`:
    /// its cache is empty then, and writes of the kind fail. The controller reconciles all its objects when that
    /// changes.
    pub fn is_served<K: Readable>(&self) -> bool
    where
        C: Caches<K>,
    {
        self.inner.env.source::<K>().store().is_served()
    }

    /// Writes the status of the primary, with a JSON merge patch from the current status to `status`.
    ///
    /// Sends nothing if they are equal, or if an identical patch of the last ten minutes left the object unchanged. Fields
    /// that `status` leaves out are removed. A primary of a built-in kind needs `primary(status)`.
    ///
    /// The patch names the uid of the primary, which API servers compare for built-in kinds alone. If a custom resource was
    /// deleted and created again during the reconcile, a patch without a list changes the status of the new object, until
    /// that is reconciled.
    ///
    /// # Errors
    /// Lists, such as the conditions, are replaced as a whole. A patch that changes a list therefore has a
    /// `resourceVersion` precondition, and fails with a conflict if the object was written in between. The newer state
    /// is then reconciled.
    pub fn patch_status<S: Serialize + Send + 'static, From>(&self, status: S) -> ApiRequest<()>
    where
        C: Controller,
        C::Primary: HasStatus<From, Status = S>,
        From: WritableBy<C>,
    {
        let inner = self.inner.clone();
        ApiRequest::new(async move {
            let new = Payload::serialize(&status).value(&inner.target().operation("patch"))?;
            let KnownStatus { value: old, resource_version, .. } = inner.status().lock().clone();
            let Some(change) = merge_patch(&old, &new) else { return Ok(()) };
            let (meta, key, noop_writes) = (inner.primary.meta(), inner.primary.key(), &inner.env.noop_writes);
            if noop_writes.contains(key, &old, &new) {
                return Ok(());
            }
            let mut patch = json!({"metadata": {"uid": meta.uid}, "status": change});
            // A merge patch replaces whole lists: without the precondition it would drop items that other clients added.
            if replaces_list(&old, &change) {
                patch["metadata"]["resourceVersion"] = resource_version.into();
            }
            let written: Arc<C::Primary> =
                inner.env.writer.patch(&inner.target(), "/status", MERGE_PATCH, &patch).await?;
            let after = kube::Resource::meta(&*written).resource_version.clone().unwrap_or_default();
            if after == meta.resource_version {
                noop_writes.record(key, &old, &new);
            }
            inner.record_status(new, after, &patch);
            Ok(())
        })
    }
}

impl Inner {
    fn status(&self) -> &Mutex<KnownStatus> {
        self.status.get_or_init(|| Mutex::new(KnownStatus::of(&self.primary)))
    }

    /// Records a status that this patch has set, and the version of the object since then.
    ///
    /// Before or after a patch without a precondition, another client may have changed a list. Then the earlier version is
    /// kept, so that a later patch of a list meets a conflict and does not undo that change.
    fn record_status(&self, value: Value, version: String, patch: &Value) {
        let newest = self.env.primary.store().get(self.primary.key());
        let is_replaced = newest.as_ref().and_then(|newest| newest.meta().revision()) > version.parse().ok();
        let written_version = Version::from(&*version);
        let written = newest.filter(|newest| newest.meta().resource_version == written_version);
        let stored = written.and_then(|written| KnownStatus::of(&written).stored);
        let mut known = self.status().lock();
        known.value = value;
        let is_changed = match (&known.stored, &stored) {
            (Some(before), Some(after)) => !has_same_lists(before, after),
            _ => is_replaced,
        };
        if patch["metadata"]["resourceVersion"].is_null() && is_changed {
            return;
        }
        known.stored = stored;
        known.resource_version = version;
    }

    fn target(&self) -> Target<'_> {
        let meta = self.primary.meta();
        Target { by: self.primary.key(), source: &self.env.primary, namespace: meta.namespace(), name: meta.name() }
    }
}
