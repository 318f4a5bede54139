//! Kinds that a controller does not own: reads without the cache, and the declared writes.

use std::{marker::PhantomData, sync::Arc};

use k8s_openapi::{
    api::authentication::v1::{TokenRequestSpec, TokenRequestStatus},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ApiRequest, DeleteRequest, MayApply, MayBind, MayCreate, MayDelete, MayDeleteCollection, MayEvict, MayPatch,
    MayPatchStatus, MayScale, MayToken, MayUpdate, ReconcileEnv, apply::apply_other, payload::Payload,
};
use crate::{
    declaration::{RelationKind, RelationSpec},
    key::ObjectKey,
    object::{Kind, Object, Readable, Stored},
    source::Source,
    writer::{ApiError, MERGE_PATCH, Operation, Target, Writer},
};

/// Reads of the kind `K` from the API server, from [`cx.live::<K>()`](super::Context::live): always the newest state,
/// one request each.
///
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use kctl_runtime::reconcile::{Context, ReadsLive, Result};
///
/// /// Returns the password, which no cache should hold.
/// async fn password<C: ReadsLive<Secret>>(cx: &Context<C>) -> Result<Option<Vec<u8>>> {
///     let secret = cx.live::<Secret>().get_opt("database").await?;
///     Ok(secret.and_then(|secret| Some(secret.data.as_ref()?.get("password")?.0.clone())))
/// }
/// ```
pub struct Live<K> {
    env: Arc<ReconcileEnv>,
    primary: Arc<Stored>,
    /// The cluster that `cx.cluster` names.
    cluster: Option<&'static str>,
    kind: PhantomData<fn() -> K>,
}

impl<K> std::fmt::Debug for Live<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("primary", self.primary.key())
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

impl<K: Object> Live<K> {
    pub(crate) fn new(env: Arc<ReconcileEnv>, primary: Arc<Stored>, cluster: Option<&'static str>) -> Self {
        Self { env, primary, cluster, kind: PhantomData }
    }

    /// Returns the object of that name in the namespace of the primary, or the cluster-scoped object of that name.
    ///
    /// # Errors
    /// 404 if the object does not exist: [`is_not_found`](ApiError::is_not_found).
    pub fn get(&self, name: &str) -> ApiRequest<Arc<K>> {
        self.get_in(self.primary.meta().namespace(), name)
    }

    /// Returns the same as [`get`](Self::get), or `None` if the object does not exist.
    ///
    /// # Errors
    /// The errors of the API server, for example if it does not serve the kind.
    pub fn get_opt(&self, name: &str) -> ApiRequest<Option<Arc<K>>> {
        let found = self.get(name);
        ApiRequest::new(async move {
            match found.await {
                Err(error) if error.is_object_missing() => Ok(None),
                found => found.map(Some),
            }
        })
    }

    /// Returns the object of that name in another namespace: `reads = K(live(cluster))`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kctl_runtime::reconcile::{Context, ReadsLive, Result};
    ///
    /// async fn cluster_info<C: ReadsLive<ConfigMap>>(cx: &Context<C>) -> Result<bool> {
    ///     let info = cx.live::<ConfigMap>().get_in(Some("kube-public"), "cluster-info").await?;
    ///     Ok(info.data.is_some())
    /// }
    /// ```
    ///
    /// # Errors
    /// With `live` alone, an error that names the missing declaration.
    pub fn get_in(&self, namespace: Option<&str>, name: &str) -> ApiRequest<Arc<K>> {
        let kind = Kind::of::<K>();
        let is_live =
            |relation: &&RelationSpec| matches!(relation.declared_as, RelationKind::Live | RelationKind::LiveCluster);
        let mut live = self.env.spec.relations.iter().filter(is_live);
        let relation = live.find(|relation| relation.is_reached_by(&kind, self.cluster));
        let everywhere = relation.is_some_and(|relation| relation.declared_as == RelationKind::LiveCluster);
        let namespaced = relation.is_none_or(|relation| relation.namespaced);
        let own = self.primary.meta().namespace();
        let foreign = namespaced && !everywhere && namespace != own;
        let namespace = namespace.filter(|_| namespaced).map(str::to_owned);
        let (env, key) = (self.env.clone(), ObjectKey::new(namespace.as_deref(), name));
        let cluster = relation.map_or(String::new(), |relation| relation.cluster.clone());
        ApiRequest::new(async move {
            if foreign {
                return Err(ApiError::Undeclared {
                    operation: Operation::on_object("get", &cluster, &kind, key),
                    declaration: format!("reads = {}(live(cluster))", kind.kind),
                });
            }
            let client = env.client(&cluster);
            env.writer.get(client, &cluster, &kind, &key).await
        })
    }
}

/// Writes to objects of kind `K` that the controller does not own, with the verbs that it declares for them: from
/// [`cx.objects::<K>()`](super::Context::objects).
///
/// No controller reference is added. Each write names the `uid` of the object that was read, so it never changes a
/// later object of the same name. In patches of the status and the scale of a custom resource, API servers ignore the
/// `uid`.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use kctl_runtime::reconcile::{Context, MayPatch, Reads, Result, Writes};
/// use serde_json::json;
///
/// /// Keeps new pods away from a node.
/// async fn cordon<C>(cx: &Context<C>, node: &Node) -> Result<()>
/// where
///     C: Reads<Node> + Writes<Node, Verbs: MayPatch<C, Node>>,
/// {
///     cx.objects::<Node>().patch(node, json!({ "spec": { "unschedulable": true } })).await?;
///     Ok(())
/// }
/// ```
pub struct Objects<C: ?Sized, K, A> {
    env: Arc<ReconcileEnv>,
    primary: Arc<Stored>,
    source: Arc<Source>,
    kind: PhantomData<fn() -> K>,
    verbs: PhantomData<fn() -> (A, *const C)>,
}

impl<C: ?Sized, K, A> std::fmt::Debug for Objects<C, K, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects")
            .field("primary", self.primary.key())
            .field("kind", &self.source.config().kind)
            .finish_non_exhaustive()
    }
}

/// The target of a request, and the primary on whose behalf it is sent.
struct RequestTarget {
    by: ObjectKey,
    source: Arc<Source>,
    meta: ObjectMeta,
}

impl RequestTarget {
    fn target(&self) -> Target<'_> {
        let ObjectMeta { namespace, name, .. } = &self.meta;
        let name = name.as_deref().unwrap_or_default();
        Target { by: &self.by, source: &self.source, namespace: namespace.as_deref(), name }
    }

    fn uid(&self) -> &str {
        self.meta.uid.as_deref().unwrap_or_default()
    }
}

impl<C: ?Sized, K, A> Objects<C, K, A> {
    pub(crate) fn new(env: Arc<ReconcileEnv>, primary: Arc<Stored>, source: Arc<Source>) -> Self {
        Self { env, primary, source, kind: PhantomData, verbs: PhantomData }
    }

    fn parts(&self) -> (Arc<ReconcileEnv>, Arc<Stored>, Arc<Source>) {
        (self.env.clone(), self.primary.clone(), self.source.clone())
    }
}

impl<C: ?Sized, K: Readable, A> Objects<C, K, A> {
    fn request<T: Send + 'static, F, Fut>(&self, meta: ObjectMeta, perform: F) -> ApiRequest<T>
    where
        F: FnOnce(Writer, RequestTarget) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let object = RequestTarget { by: self.primary.key().clone(), source: self.source.clone(), meta };
        ApiRequest::new(perform(self.env.writer.clone(), object))
    }

    /// Creates an object, with the namespace and the owner references that it names.
    ///
    /// After a lost response, a `generateName` may lead to two objects in a rare case, as for
    /// [`Owned::create`](crate::reconcile::Owned::create).
    ///
    /// # Errors
    /// 409 `AlreadyExists` if an object of this name exists.
    pub fn create(&self, object: &K) -> ApiRequest<Arc<K>>
    where
        A: MayCreate<C, K>,
        K: Object,
    {
        let whole = object.clone();
        self.request(object.meta().clone(), async move |writer, object| writer.create(&object.target(), &whole).await)
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// A conflict if the object has changed since it was read.
    pub fn update(&self, object: &K) -> ApiRequest<Arc<K>>
    where
        A: MayUpdate<C, K>,
        K: Object,
    {
        let whole = object.clone();
        self.request(object.meta().clone(), async move |writer, object| writer.update(&object.target(), &whole).await)
    }

    /// Applies an object by server-side apply. It is created, or the given fields are changed. Fields that this app
    /// gave before and does not give now are removed. Fields that another field manager owns are taken over.
    ///
    /// `object` is anything that serializes to the object, or to a part of it with its name and, for a namespaced kind,
    /// its namespace. Owner references are sent as they are given.
    ///
    /// Nothing is sent if this process has applied the same form before and the cache shows that nothing would change,
    /// so it can be called in each reconcile. If the cache keeps only a part of each object (`metadata`, `as = View`),
    /// each call is sent.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kctl_runtime::reconcile::{Context, MayApply, Reads, Result, Writes};
    /// use serde_json::json;
    ///
    /// /// Publishes the address in a namespace that the primary is not in.
    /// async fn publish<C>(cx: &Context<C>, address: &str) -> Result<()>
    /// where
    ///     C: Reads<ConfigMap> + Writes<ConfigMap, Verbs: MayApply<C, ConfigMap>>,
    /// {
    ///     let published = json!({
    ///         "metadata": { "name": "address", "namespace": "public" },
    ///         "data": { "address": address },
    ///     });
    ///     cx.objects::<ConfigMap>().apply(published).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// A terminal error if the object has no name, no namespace although its kind is namespaced, or a kind or apiVersion
    /// other than `K`'s.
    pub fn apply(&self, object: impl Serialize) -> ApiRequest<Arc<K>>
    where
        A: MayApply<C, K>,
        K: Object,
    {
        let (env, primary, source) = self.parts();
        let object = Payload::serialize(object);
        ApiRequest::new(async move {
            let object = object.value(&source.config().operation("apply"))?;
            apply_other(&env, &primary, &source, object).await
        })
    }

    /// Sends a JSON merge patch of exactly this object, not of a later one of its name.
    ///
    /// # Errors
    /// A conflict if another object has the name now, and a terminal error if `patch` or its `metadata` is not a JSON
    /// object.
    pub fn patch(&self, object: &K, patch: impl Serialize) -> ApiRequest<Arc<K>>
    where
        A: MayPatch<C, K>,
    {
        let patch = Payload::serialize(patch);
        self.request(object.meta().clone(), async move |writer, object| {
            let target = object.target();
            let patch = patch.patch(&target.operation("patch"), object.uid())?;
            writer.patch(&target, "", MERGE_PATCH, &patch).await
        })
    }

    /// Sends a JSON merge patch of the status of this object.
    ///
    /// API servers compare the uid for built-in kinds alone. For a custom resource the patch may change the status of a later
    /// object of the same name.
    ///
    /// # Errors
    /// A conflict if another object of a built-in kind has the name now.
    pub fn patch_status(&self, object: &K, status: impl Serialize) -> ApiRequest<Arc<K>>
    where
        A: MayPatchStatus<C, K>,
    {
        let status = Payload::serialize(status);
        self.request(object.meta().clone(), async move |writer, object| {
            let target = object.target();
            let status = status.value(&target.operation("patch"))?;
            let patch = json!({ "metadata": { "uid": object.uid() }, "status": status });
            writer.patch(&target, "/status", MERGE_PATCH, &patch).await
        })
    }

    /// Deletes exactly this object. Returns `Ok` if it is gone already. Its dependents are deleted in the background;
    /// [`foreground`](DeleteRequest::foreground) and [`orphan`](DeleteRequest::orphan) select another propagation
    /// policy.
    ///
    /// # Errors
    /// A conflict if another object has the name now.
    // rustc shows this line, with its comment, to callers that pass `DeleteParams`.
    #[rustfmt::skip]
    pub fn delete(&self, object: &K) -> DeleteRequest // help: background is the default; append `.foreground()` or `.orphan()`
    where
        A: MayDelete<C, K>,
    {
        let (writer, meta) = (self.env.writer.clone(), object.meta().clone());
        let finalizers = meta.finalizers.clone().unwrap_or_default();
        let object = RequestTarget { by: self.primary.key().clone(), source: self.source.clone(), meta };
        DeleteRequest::new(&finalizers, move |policy| {
            ApiRequest::new(async move { writer.delete(&object.target(), object.uid(), policy).await })
        })
    }

    /// Deletes all objects of a namespace that match a label selector, in one request.
    ///
    /// Their dependents are deleted in the background, even if the foreground deletion of the object has begun;
    /// [`foreground`](DeleteRequest::foreground) and [`orphan`](DeleteRequest::orphan) select another propagation
    /// policy.
    #[rustfmt::skip]
    pub fn delete_collection(&self, namespace: Option<&str>, labels: &str) -> DeleteRequest // append `.foreground()` or `.orphan()`
    where
        A: MayDeleteCollection<C, K>,
    {
        let (writer, labels) = (self.env.writer.clone(), labels.to_owned());
        let meta = ObjectMeta { namespace: namespace.map(str::to_owned), ..ObjectMeta::default() };
        let object = RequestTarget { by: self.primary.key().clone(), source: self.source.clone(), meta };
        DeleteRequest::new(&[], move |policy| {
            ApiRequest::new(async move { writer.delete_collection(&object.target(), &labels, policy).await })
        })
    }

    /// Sets the replicas of an object through its `scale` subresource.
    ///
    /// # Errors
    /// 404 if the kind has no `scale` subresource.
    pub fn scale(&self, object: &K, replicas: i32) -> ApiRequest<()>
    where
        A: MayScale<C, K>,
    {
        self.request(object.meta().clone(), async move |writer, object| {
            writer.scale(&object.target(), object.uid(), replicas).await
        })
    }

    /// Requests the eviction of a Pod.
    ///
    /// # Errors
    /// 429 while a `PodDisruptionBudget` does not allow it.
    pub fn evict(&self, object: &K) -> ApiRequest<()>
    where
        A: MayEvict<C, K>,
    {
        self.subresource(object, "eviction", |object| {
            json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": { "name": object.meta().name, "namespace": object.meta().namespace },
                "deleteOptions": { "preconditions": { "uid": object.meta().uid } },
            })
        })
    }

    /// Assigns a Pod to a Node through its `binding` subresource, as a scheduler does.
    pub fn bind(&self, object: &K, node: &str) -> ApiRequest<()>
    where
        A: MayBind<C, K>,
    {
        let node = node.to_owned();
        self.subresource(object, "binding", move |object| {
            json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": { "name": object.meta().name, "namespace": object.meta().namespace, "uid": object.meta().uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": node },
            })
        })
    }

    /// Requests a token of a `ServiceAccount` (`TokenRequest`). The token is returned, and stored nowhere.
    ///
    /// ```
    /// use k8s_openapi::api::{authentication::v1::TokenRequestSpec, core::v1::ServiceAccount};
    /// # use kctl_runtime::reconcile::{Controller, MayToken, Objects, Result};
    ///
    /// async fn token_of<C: Controller, A: MayToken<C, ServiceAccount>>(
    ///     accounts: &Objects<C, ServiceAccount, A>,
    ///     account: &ServiceAccount,
    /// ) -> Result<Option<String>> {
    ///     let spec = TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() };
    ///     Ok(accounts.token(account, spec).await?.token)
    /// }
    /// ```
    pub fn token(&self, object: &K, spec: TokenRequestSpec) -> ApiRequest<TokenRequestStatus>
    where
        A: MayToken<C, K>,
    {
        self.request(object.meta().clone(), async move |writer, object| {
            let request = json!({
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                // The uid is a precondition: no token is issued for a successor of the same name.
                "metadata": { "uid": object.meta.uid },
                "spec": spec,
            });
            let response = writer.token(&object.target(), &request).await?;
            serde_json::from_value(response["status"].clone()).map_err(|error| ApiError::Unreadable {
                operation: object.target().operation("create token of"),
                cause: error.to_string(),
            })
        })
    }

    fn subresource(&self, object: &K, name: &'static str, body: impl FnOnce(&K) -> Value) -> ApiRequest<()> {
        let body = body(object);
        self.request(object.meta().clone(), async move |writer, object| {
            writer.post(&object.target(), name, object.uid(), &body).await
        })
    }
}
