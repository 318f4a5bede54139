//! The objects that a primary owns: a snapshot to read, and the operations to change them.

use std::{
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};

use kube::ResourceExt;
use serde::Serialize;

use super::{
    ApiRequest, DeleteRequest, MayApply, MayCreate, MayDelete, MayEvict, MayPatch, MayPatchStatus, MayScale, MayUpdate,
    Objects, ReconcileEnv,
    apply::{apply_owned, converge},
    owner_references::{adopt, check_owned},
    payload::Payload,
};
use crate::{
    key::ObjectKey,
    object::{Object, Stored},
    source::Source,
    store::decode_checked,
    writer::{ApiError, MERGE_PATCH, Target},
};

/// The objects of kind `K` that the primary of a reconcile owns, from [`cx.owned::<K>()`](super::Context::owned).
///
/// Reading is free: it is a snapshot of the cache. [`converge`](Self::converge) is the operation that most controllers
/// need. The others act on one object; each first checks that the primary controls it.
///
/// `C` is the controller, and `A` the type of its declared verbs: each operation has a bound such as `A: MayDelete<C, K>`.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kctl_runtime::reconcile::{Context, Owns, Result};
/// use serde_json::json;
///
/// /// Owns one ConfigMap per color: creates missing ones, changes those that differ, deletes the others.
/// async fn paint<C: Owns<ConfigMap>>(cx: &Context<C>, colors: &[&str]) -> Result<usize> {
///     let desired = colors.iter().map(|color| json!({ "metadata": { "name": color }, "data": { "color": color } }));
///     let done = cx.owned::<ConfigMap>().converge(desired).await?;
///     Ok(done.deleted.len())
/// }
/// ```
pub struct Owned<C: ?Sized, K, A> {
    env: Arc<ReconcileEnv>,
    primary: Arc<Stored>,
    source: Arc<Source>,
    live: Vec<Arc<K>>,
    terminating: Vec<Arc<K>>,
    verbs: PhantomData<fn() -> (A, *const C)>,
}

impl<C: ?Sized, K, A> std::fmt::Debug for Owned<C, K, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Owned")
            .field("primary", self.primary.key())
            .field("kind", &self.source.config().kind)
            .finish_non_exhaustive()
    }
}

impl<C: ?Sized, K: Object, A> Owned<C, K, A> {
    pub(crate) fn snapshot(env: Arc<ReconcileEnv>, primary: Arc<Stored>) -> Self {
        let source = env.source::<K>();
        let mut objects = source.store().owned_by(&primary.meta().uid);
        objects.retain(|object| object.key().namespace == primary.key().namespace || primary.key().namespace.is_none());
        objects.sort_by(|a, b| {
            let (a, b) = (a.meta(), b.meta());
            (&a.creation_timestamp, a.name()).cmp(&(&b.creation_timestamp, b.name()))
        });
        let (terminating, live): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| object.meta().deletion_timestamp().is_some());
        Self {
            live: live.iter().filter_map(decode_checked).collect(),
            terminating: terminating.iter().filter_map(decode_checked).collect(),
            env,
            primary,
            source,
            verbs: PhantomData,
        }
    }

    /// Returns the number of objects, without those that are being deleted.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Returns `true` if the primary owns no live object of kind `K`.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Returns the object of this name from the cache, or `None` if the primary owns no live object of this name.
    ///
    /// It is in the primary's namespace. A cluster-scoped primary can own objects of one name in several namespaces; the
    /// oldest one is returned then, and [`iter`](Self::iter) finds the others.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kctl_runtime::reconcile::{Context, Owns};
    ///
    /// /// Returns the port in the ConfigMap `settings`.
    /// fn port<C: Owns<ConfigMap>>(cx: &Context<C>) -> Option<u16> {
    ///     let settings = cx.owned::<ConfigMap>().get("settings")?;
    ///     settings.data.as_ref()?.get("port")?.parse().ok()
    /// }
    /// ```
    pub fn get(&self, name: &str) -> Option<Arc<K>> {
        self.live.iter().find(|object| object.meta().name.as_deref() == Some(name)).cloned()
    }

    /// Iterates over the objects, sorted by creation time and name. Objects that are being deleted are not among them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Arc<K>> + ExactSizeIterator + use<C, K, A> {
        self.live.clone().into_iter()
    }

    /// Iterates over the objects that are being deleted: they have a `deletionTimestamp`, and a finalizer or a grace
    /// period keeps them.
    pub fn terminating(&self) -> impl DoubleEndedIterator<Item = Arc<K>> + ExactSizeIterator + use<C, K, A> {
        self.terminating.clone().into_iter()
    }

    /// Creates an object in the primary's namespace, with a controller reference to the primary.
    ///
    /// Append [`or_get`](CreateRequest::or_get) to accept an existing object of this name. Use [`apply`](Self::apply)
    /// if the object may exist and should be changed.
    ///
    /// If the response is lost, the namespace is listed before the function is called again, so the object is not created
    /// twice. That list lacks an object whose create the API server still processes, for example in a slow webhook. With a
    /// `generateName` there may be two objects then; a `name` that is derived from the primary excludes that.
    ///
    /// ```
    /// use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
    /// use kctl_runtime::reconcile::{Context, Creates, Result};
    ///
    /// async fn start<C: Creates<Pod>>(cx: &Context<C>, name: &str) -> Result<()> {
    ///     let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    ///     cx.owned::<Pod>().create(Pod { metadata, ..Pod::default() }).or_get().await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// 409 `AlreadyExists` if an object of this name exists, and an error if the object names another namespace or
    /// controller.
    pub fn create(&self, object: K) -> CreateRequest<K>
    where
        A: MayCreate<C, K>,
    {
        let (env, primary, source) = self.parts();
        CreateRequest::new(env, primary, source, object)
    }

    /// Replaces an object that the primary owns.
    ///
    /// # Errors
    /// A conflict if the object has a `resourceVersion` that is no longer the newest one, and an error if the primary
    /// does not control it.
    pub fn update(&self, object: K) -> ApiRequest<Arc<K>>
    where
        A: MayUpdate<C, K>,
    {
        let (env, primary, source) = self.parts();
        ApiRequest::new(async move {
            check_owned("update", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
            env.writer.update(&target, &object).await
        })
    }

    /// Sends a JSON merge patch of an object that the primary owns: exactly this one, not a later one of its name.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use kctl_runtime::reconcile::{Context, Patches, Result};
    /// use serde_json::json;
    ///
    /// async fn pause<C: Patches<Deployment>>(cx: &Context<C>) -> Result<()> {
    ///     let deployments = cx.owned::<Deployment>();
    ///     for deployment in &deployments {
    ///         deployments.patch(deployment, json!({ "spec": { "paused": true } })).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// A conflict if another object has the name now. An error if the primary does not control the object, and a terminal
    /// one if `patch` or its `metadata` is not a JSON object.
    pub fn patch(&self, object: &K, patch: impl Serialize) -> ApiRequest<Arc<K>>
    where
        A: MayPatch<C, K>,
    {
        let (env, primary, source) = self.parts();
        let (object, patch) = (object.clone(), Payload::serialize(patch));
        ApiRequest::new(async move {
            check_owned("patch", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
            let patch = patch.patch(&target.operation("patch"), &object.uid().unwrap_or_default())?;
            env.writer.patch(&target, "", MERGE_PATCH, &patch).await
        })
    }

    /// Applies an object by [server-side apply](https://kubernetes.io/docs/reference/using-api/server-side-apply/):
    /// creates it, or changes the given fields, and removes those that were given before and are not now. Fields that
    /// another field manager owns are taken over (`force=true`).
    ///
    /// `object` is anything that serializes to the object, or to a part of it with its name. Nothing is sent if this
    /// process has applied the same form before and the cache shows that nothing would change.
    ///
    /// # Errors
    /// A terminal error if the object has no name, or a kind or apiVersion other than `K`'s. An error if it is in
    /// another namespace than the primary or has another controller.
    pub fn apply(&self, object: impl Serialize) -> ApiRequest<Arc<K>>
    where
        A: MayApply<C, K>,
    {
        let (env, primary, source) = self.parts();
        let object = Payload::serialize(object);
        ApiRequest::new(async move {
            let object = object.value(&source.config().operation("apply"))?;
            apply_owned(&env, &primary, &source, object).await
        })
    }

    /// Makes the owned objects equal to the desired ones: applies those that are missing or differ, and deletes those
    /// that are not desired, by uid.
    ///
    /// Every desired object needs a name. Objects are applied in the given order; deletions come last. Nothing is sent
    /// for an object that has all desired fields and was applied by this process in the same form. So the call is cheap
    /// in a reconcile without a difference.
    ///
    /// # Errors
    /// The errors of [`apply`](Self::apply). The first one ends the call; objects before it remain applied, and a retry
    /// continues.
    pub fn converge<T: Serialize>(&self, desired: impl IntoIterator<Item = T>) -> ApiRequest<Converged<K>>
    where
        A: MayApply<C, K> + MayDelete<C, K>,
    {
        let (env, primary, source) = self.parts();
        let desired: Vec<Payload> = desired.into_iter().map(Payload::serialize).collect();
        let live = self.live.clone();
        ApiRequest::new(async move {
            let operation = source.config().operation("apply");
            let desired = desired.into_iter().map(|object| object.value(&operation)).collect::<Result<_, _>>()?;
            converge(&env, &primary, &source, desired, &live).await
        })
    }

    /// Deletes an object that the primary owns: exactly this one, not a later one of its name. Returns `Ok` if it is gone
    /// already.
    ///
    /// Its dependents are deleted in the background; [`foreground`](DeleteRequest::foreground) and
    /// [`orphan`](DeleteRequest::orphan) select another propagation policy.
    ///
    /// # Errors
    /// A conflict if another object has the name now, and an error if the primary does not control the object.
    // rustc shows this line, with its comment, to callers that pass `DeleteParams`.
    #[rustfmt::skip]
    pub fn delete(&self, object: &K) -> DeleteRequest // help: background is the default; append `.foreground()` or `.orphan()`
    where
        A: MayDelete<C, K>,
    {
        let (env, primary, source) = self.parts();
        let meant = object.clone();
        DeleteRequest::new(object.finalizers(), move |policy| {
            ApiRequest::new(async move {
                check_owned("delete", &meant, &env, &primary)?;
                let (name, namespace) = (meant.name_any(), meant.namespace());
                let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
                env.writer.delete(&target, &meant.uid().unwrap_or_default(), policy).await
            })
        })
    }

    /// Sends a JSON merge patch of the status of an object that the primary owns, as [`Objects::patch_status`] does.
    ///
    /// # Errors
    /// An error if the primary does not control the object.
    pub fn patch_status(&self, object: &K, status: impl Serialize) -> ApiRequest<Arc<K>>
    where
        A: MayPatchStatus<C, K>,
    {
        let sent = self.objects().patch_status(object, status);
        self.send_if_owned("patch the status of", object.clone(), sent)
    }

    /// Sets the replicas of an object that the primary owns, through its `scale` subresource.
    ///
    /// # Errors
    /// 404 if the kind has no `scale` subresource, and an error if the primary does not control the object.
    pub fn scale(&self, object: &K, replicas: i32) -> ApiRequest<()>
    where
        A: MayScale<C, K>,
    {
        self.send_if_owned("scale", object.clone(), self.objects().scale(object, replicas))
    }

    /// Requests the eviction of a Pod that the primary owns.
    ///
    /// # Errors
    /// 429 while a `PodDisruptionBudget` does not allow it; the key is retried.
    pub fn evict(&self, object: &K) -> ApiRequest<()>
    where
        A: MayEvict<C, K>,
    {
        self.send_if_owned("evict", object.clone(), self.objects().evict(object))
    }

    fn objects(&self) -> Objects<C, K, A> {
        let (env, primary, source) = self.parts();
        Objects::new(env, primary, source)
    }

    /// Sends a request about an object, if the primary controls it.
    fn send_if_owned<T: Send + 'static>(&self, verb: &'static str, object: K, sent: ApiRequest<T>) -> ApiRequest<T> {
        let (env, primary, _) = self.parts();
        ApiRequest::new(async move {
            check_owned(verb, &object, &env, &primary)?;
            sent.await
        })
    }

    fn parts(&self) -> (Arc<ReconcileEnv>, Arc<Stored>, Arc<Source>) {
        (self.env.clone(), self.primary.clone(), self.source.clone())
    }
}

impl<'a, C: ?Sized, K: Object, A> IntoIterator for &'a Owned<C, K, A> {
    type Item = &'a Arc<K>;
    type IntoIter = std::slice::Iter<'a, Arc<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.live.iter()
    }
}

/// The changes that [`Owned::converge`] made, for events, logs and the status.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Converged<K> {
    /// Objects that were created or changed, as they are now.
    pub applied: Vec<Arc<K>>,
    /// Objects that were deleted, as they were before.
    pub deleted: Vec<Arc<K>>,
    /// Number of objects that were as desired.
    pub n_unchanged: usize,
}

/// A create that is sent when it is awaited, from [`Owned::create`].
#[must_use = "nothing is sent until the request is awaited: append `.await?`"]
pub struct CreateRequest<K> {
    env: Arc<ReconcileEnv>,
    primary: Arc<Stored>,
    source: Arc<Source>,
    /// In the primary's namespace, or in its own if the primary is cluster-scoped.
    key: ObjectKey,
    sent: ApiRequest<Arc<K>>,
}

impl<K> std::fmt::Debug for CreateRequest<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateRequest").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<K: Object> CreateRequest<K> {
    fn new(env: Arc<ReconcileEnv>, primary: Arc<Stored>, source: Arc<Source>, object: K) -> Self {
        let namespace = primary.meta().namespace().or(object.meta().namespace.as_deref());
        let key = ObjectKey::new(namespace, &object.name_any());
        let sent = {
            let (env, primary, source) = (env.clone(), primary.clone(), source.clone());
            ApiRequest::new(async move {
                let object = adopt(object, &env, &primary, &source)?;
                let (name, namespace) = (object.name_any(), object.namespace());
                let target =
                    Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
                env.writer.create(&target, &object).await
            })
        };
        Self { env, primary, source, key, sent }
    }

    /// Returns the existing object of this name instead of an error, if the primary owns it.
    ///
    /// # Errors
    /// An error if the existing object has another controller, or none.
    pub fn or_get(self) -> ApiRequest<Arc<K>> {
        let Self { env, primary, source, key, sent } = self;
        ApiRequest::new(async move {
            match sent.await {
                Err(error) if error.is_already_exists() => {
                    let target = Target {
                        by: primary.key(),
                        source: &source,
                        namespace: key.namespace.as_deref(),
                        name: &key.name,
                    };
                    // If it was deleted in between, `AlreadyExists` is returned, and the next reconcile creates it.
                    let found: Arc<K> = env.writer.find(&target).await?.ok_or(error)?;
                    check_owned("create", found.as_ref(), &env, &primary)?;
                    Ok(found)
                }
                sent => sent,
            }
        })
    }
}

impl<K> Future for CreateRequest<K> {
    type Output = Result<Arc<K>, ApiError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.sent).poll(cx)
    }
}
