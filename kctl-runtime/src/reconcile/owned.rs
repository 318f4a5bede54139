//! The objects that a primary owns: a snapshot to read and the operations to change them.

use std::{
    collections::HashMap,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Env, MayApply, MayCreate, MayDelete, MayEvict, MayPatch, MayPatchStatus, MayScale, MayUpdate, Objects, Request,
    applied::hash_of, given::Given,
};
use crate::{
    effect::{APPLY_PATCH, ApiError, MERGE_PATCH, Target},
    key::ObjectKey,
    object::{Kind, Object, Stored, Uid},
    source::Source,
    store::view,
};

/// The objects of kind `K` that the primary of a reconcile owns, from `cx.owned::<K>()`.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kctl_runtime::reconcile::{Context, Owns, Result};
/// use serde_json::json;
///
/// /// One config map a color: creates what lacks, changes what differs, deletes what is no longer wanted.
/// async fn paint<C: Owns<ConfigMap>>(cx: &Context<C>, colors: &[&str]) -> Result<usize> {
///     let desired = colors.iter().map(|color| json!({ "metadata": { "name": color }, "data": { "color": color } }));
///     let done = cx.owned::<ConfigMap>().converge(desired).await?;
///     Ok(done.deleted.len())
/// }
/// ```
pub struct Owned<C: ?Sized, K, A> {
    env: Arc<Env>,
    primary: Arc<Stored>,
    source: Arc<Source>,
    live: Vec<Arc<K>>,
    terminating: Vec<Arc<K>>,
    grant: PhantomData<fn() -> (A, *const C)>,
}

impl<C: ?Sized, K, A> Owned<C, K, A> {
    pub(super) fn with_grant<B>(self) -> Owned<C, K, B> {
        let Self { env, primary, source, live, terminating, grant: _ } = self;
        Owned { env, primary, source, live, terminating, grant: PhantomData }
    }
}

impl<C: ?Sized, K: Object, A> Owned<C, K, A> {
    pub(crate) fn snapshot(env: Arc<Env>, primary: Arc<Stored>) -> Self {
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
            live: live.iter().filter_map(view).collect(),
            terminating: terminating.iter().filter_map(view).collect(),
            env,
            primary,
            source,
            grant: PhantomData,
        }
    }

    /// How many there are, without those that are being deleted.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// In order of creation, then of name.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Arc<K>> + ExactSizeIterator + use<C, K, A> {
        self.live.clone().into_iter()
    }

    /// Those that are being deleted.
    pub fn terminating(&self) -> impl DoubleEndedIterator<Item = Arc<K>> + ExactSizeIterator + use<C, K, A> {
        self.terminating.clone().into_iter()
    }

    /// Creates an object in the primary's namespace, with a controller reference to the primary. An object of that name that
    /// exists is an error, unless `.or_get()` is asked for; so is an object that names another namespace.
    pub fn create(&self, object: K) -> CreateRequest<K>
    where
        A: MayCreate<C, K>,
    {
        let (env, primary, source) = self.parts();
        CreateRequest::new(env, primary, source, object)
    }

    /// Replaces an object of the primary.
    pub fn update(&self, object: K) -> Request<Arc<K>>
    where
        A: MayUpdate<C, K>,
    {
        let (env, primary, source) = self.parts();
        Request::new(async move {
            check_owned("update", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
            env.writer.update(&target, &object).await
        })
    }

    /// Sends a JSON merge patch of an object of the primary: exactly this one, not a later one of its name.
    pub fn patch(&self, object: &K, patch: impl Serialize) -> Request<Arc<K>>
    where
        A: MayPatch<C, K>,
    {
        let (env, primary, source) = self.parts();
        let (object, patch) = (object.clone(), Given::of(patch));
        Request::new(async move {
            check_owned("patch", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
            let patch = patch.patch(&target.operation("patch"), &object.uid().unwrap_or_default())?;
            env.writer.patch(&target, "", MERGE_PATCH, &patch).await
        })
    }

    /// Applies an object by server-side apply: creates it, or changes the fields that are given and takes back those that
    /// were given before and are not now. Anything that serialises to the object, or to a part of it with its name.
    pub fn apply(&self, object: impl Serialize) -> Request<Arc<K>>
    where
        A: MayApply<C, K>,
    {
        let (env, primary, source) = self.parts();
        let object = Given::of(object);
        Request::new(async move {
            let object = object.value(&format!("apply {}", source.identity().kind))?;
            apply(&env, &primary, &source, object).await
        })
    }

    /// Brings what the primary owns to what is desired: applies what differs, and deletes what is not desired any more,
    /// by uid. Every desired object needs a name.
    ///
    /// Nothing is sent for an object that has all desired fields and was applied by this process in the same form.
    pub fn converge<T: Serialize>(&self, desired: impl IntoIterator<Item = T>) -> Request<Converged<K>>
    where
        A: MayApply<C, K> + MayDelete<C, K>,
    {
        let (env, primary, source) = self.parts();
        let desired: Vec<Given> = desired.into_iter().map(Given::of).collect();
        let live = self.live.clone();
        Request::new(async move {
            let operation = format!("apply {}", source.identity().kind);
            let desired = desired.into_iter().map(|object| object.value(&operation)).collect::<Result<_, _>>()?;
            converge(&env, &primary, &source, desired, &live).await
        })
    }

    /// Deletes an object of the primary: exactly this one, not a later one of its name.
    pub fn delete(&self, object: &K) -> Request<()>
    where
        A: MayDelete<C, K>,
    {
        let (env, primary, source) = self.parts();
        let object = object.clone();
        Request::new(async move {
            check_owned("delete", &object, &env, &primary)?;
            let (name, namespace) = (object.name_any(), object.namespace());
            let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
            env.writer.delete(&target, &object.uid().unwrap_or_default()).await
        })
    }

    /// Sends a JSON merge patch of the status of an object of the primary.
    pub fn patch_status(&self, object: &K, status: impl Serialize) -> Request<Arc<K>>
    where
        A: MayPatchStatus<C, K>,
    {
        let sent = self.objects().patch_status(object, status);
        self.checked("patch the status of", object.clone(), sent)
    }

    /// Sets the replicas of an object of the primary through its scale subresource.
    pub fn scale(&self, object: &K, replicas: i32) -> Request<()>
    where
        A: MayScale<C, K>,
    {
        self.checked("scale", object.clone(), self.objects().scale(object, replicas))
    }

    /// Asks for the eviction of a pod of the primary: a disruption budget may refuse it with 429.
    pub fn evict(&self, object: &K) -> Request<()>
    where
        A: MayEvict<C, K>,
    {
        self.checked("evict", object.clone(), self.objects().evict(object))
    }

    fn objects(&self) -> Objects<C, K, A> {
        let (env, primary, source) = self.parts();
        Objects::new(env, primary, source)
    }

    /// Sends a request about an object if it is one of the primary.
    fn checked<T: Send + 'static>(&self, verb: &'static str, object: K, sent: Request<T>) -> Request<T> {
        let (env, primary, _) = self.parts();
        Request::new(async move {
            check_owned(verb, &object, &env, &primary)?;
            sent.await
        })
    }

    fn parts(&self) -> (Arc<Env>, Arc<Stored>, Arc<Source>) {
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

/// What `converge` did.
#[derive(Debug, Clone)]
pub struct Converged<K> {
    /// Objects that were created or changed, as they are now.
    pub applied: Vec<Arc<K>>,
    /// Objects that were deleted, as they were.
    pub deleted: Vec<Arc<K>>,
    /// How many were as desired.
    pub n_unchanged: usize,
}

/// A create that is sent when it is awaited.
#[must_use = "nothing is sent until the request is awaited"]
pub struct CreateRequest<K> {
    env: Arc<Env>,
    primary: Arc<Stored>,
    source: Arc<Source>,
    name: String,
    sent: Request<Arc<K>>,
}

impl<K: Object> CreateRequest<K> {
    fn new(env: Arc<Env>, primary: Arc<Stored>, source: Arc<Source>, object: K) -> Self {
        let name = object.name_any();
        let sent = {
            let (env, primary, source) = (env.clone(), primary.clone(), source.clone());
            Request::new(async move {
                let object = adopt(object, &env, &primary)?;
                let (name, namespace) = (object.name_any(), object.namespace());
                let target =
                    Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
                env.writer.create(&target, &object).await
            })
        };
        Self { env, primary, source, name, sent }
    }

    /// Takes the object that exists under the name, when it is the primary's; another one is a terminal error.
    pub fn or_get(self) -> Request<Arc<K>> {
        let Self { env, primary, source, name, sent } = self;
        Request::new(async move {
            match sent.await {
                Err(error) if error.is_already_exists() => {
                    let target = Target {
                        by: primary.key(),
                        source: &source,
                        namespace: primary.key().namespace.as_deref(),
                        name: &name,
                    };
                    // It may have gone in between: then the first answer stands, and the next try creates it.
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

/// The controller reference of objects of a kind to the primary.
fn reference(env: &Env, primary: &Stored, of: &Kind) -> OwnerReference {
    let (kind, meta) = (&env.spec.primary.kind, primary.meta());
    let blocks = env.spec.relations.iter().any(|relation| relation.kind == *of && relation.block_owner_deletion);
    OwnerReference {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        name: meta.name().to_owned(),
        uid: meta.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: blocks.then_some(true),
    }
}

async fn apply<K: Object>(
    env: &Env,
    primary: &Stored,
    source: &Arc<Source>,
    mut object: Value,
) -> Result<Arc<K>, ApiError> {
    let kind = &source.identity().kind;
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(ApiError::Unsendable {
            operation: format!("apply {kind}"),
            cause: "the object has no metadata.name: server-side apply needs one".into(),
        });
    }
    check_place("apply", kind, object["metadata"]["namespace"].as_str(), &name, env, primary)?;
    let key = place_of(primary, &object);
    let namespace = key.namespace.clone();
    let known = source.store().get(&key);
    if let Some(known) = &known {
        let controller = known.meta().controller();
        if let Some(other) = controller.filter(|owner| owner.uid != primary.meta().uid) {
            return Err(ApiError::Foreign {
                operation: format!("apply {kind} {key}"),
                object: format!("{kind} {key} (controlled by {})", other.name),
                owner: format!("{} {}", env.spec.primary.kind, primary.key()),
            });
        }
    }
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
    if let Some(namespace) = &namespace {
        object["metadata"]["namespace"] = (**namespace).into();
    }
    object["metadata"]["ownerReferences"] = json!([reference(env, primary, kind)]);
    // Exactly the object that is known. Where none is known, or its end has begun, a new one of the name is wanted as well.
    let live = known.filter(|known| known.meta().deletion_timestamp().is_none());
    if let Some(known) = live.filter(|_| object["metadata"]["uid"].is_null()) {
        object["metadata"]["uid"] = known.meta().uid.to_string().into();
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let target = Target { by: primary.key(), source, namespace: namespace.as_deref(), name: &name };
    env.writer.patch(&target, "", APPLY_PATCH, &object).await
}

/// Where an object is to be: in the primary's namespace; a primary without one has objects in any.
fn place_of(primary: &Stored, object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str();
    let namespace = primary.meta().namespace().or_else(|| text("namespace"));
    ObjectKey::new(namespace, text("name").unwrap_or_default())
}

async fn converge<K: Object>(
    env: &Env,
    primary: &Stored,
    source: &Arc<Source>,
    desired: Vec<Value>,
    live: &[Arc<K>],
) -> Result<Converged<K>, ApiError> {
    let mut result = Converged { applied: Vec::new(), deleted: Vec::new(), n_unchanged: 0 };
    let places: Vec<ObjectKey> = desired.iter().map(|object| place_of(primary, object)).collect();
    let (by, kind, mut as_desired) = (primary.key(), &source.identity().kind, HashMap::new());
    for (object, key) in desired.into_iter().zip(&places) {
        let known = source.store().get(key);
        let hash = hash_of(&object);
        if let Some(known) = &known {
            let uid = &known.meta().uid;
            let stored: Value = serde_json::from_str(&known.json()).unwrap_or_default();
            if env.applied.is_known(by, kind, uid, hash) && contains(&stored, &object) {
                as_desired.insert(uid.clone(), hash);
                result.n_unchanged += 1;
                continue;
            }
        }
        let before = known.as_ref().map(|known| known.meta().resource_version.to_string());
        let applied: Arc<K> = apply(env, primary, source, object).await?;
        as_desired.insert(applied.uid().unwrap_or_default().as_str().into(), hash);
        if before == applied.resource_version() {
            result.n_unchanged += 1;
        } else {
            result.applied.push(applied);
        }
    }
    env.applied.learn(by, kind, as_desired);
    for object in live {
        let (name, namespace) = (object.name_any(), object.namespace());
        if places.contains(&ObjectKey::new(namespace.as_deref(), &name)) {
            continue;
        }
        let uid = object.uid().unwrap_or_default();
        let target = Target { by: primary.key(), source, namespace: namespace.as_deref(), name: &name };
        env.writer.delete(&target, &uid).await?;
        result.deleted.push(object.clone());
    }
    Ok(result)
}

/// Whether an object has all that is desired: it may have more, by defaults and by other writers.
fn contains(object: &Value, desired: &Value) -> bool {
    match (object, desired) {
        (_, Value::Null) => true,
        (Value::Object(object), Value::Object(desired)) => {
            desired.iter().all(|(name, desired)| contains(object.get(name).unwrap_or(&Value::Null), desired))
        }
        (Value::Array(object), Value::Array(desired)) => {
            object.len() == desired.len()
                && object.iter().zip(desired).all(|(object, desired)| contains(object, desired))
        }
        (Value::Null, Value::Object(desired)) => desired.is_empty(),
        (Value::Null, Value::Array(desired)) => desired.is_empty(),
        (object, desired) => object == desired,
    }
}

/// Sets the controller reference of an object that exists.
pub(super) fn adopt_existing<K: Object>(env: &Arc<Env>, primary: &Arc<Stored>, object: &K) -> Request<Arc<K>> {
    let (env, primary, object) = (env.clone(), primary.clone(), object.clone());
    Request::new(async move {
        let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
        if let Some(other) = controller.filter(|owner| owner.uid != primary.meta().uid) {
            return Err(foreign("adopt", &object, &env, &primary, Some(&other.name)));
        }
        let namespace = object.meta().namespace.as_deref();
        check_place("adopt", &Kind::of::<K>(), namespace, &object.name_any(), &env, &primary)?;
        let mut references: Vec<Value> = references_but(&object, &primary.meta().uid);
        references.push(json!(reference(&env, &primary, &Kind::of::<K>())));
        patch_references(&env, &primary, &object, references).await
    })
}

/// Takes the reference to the primary away.
pub(super) fn release<K: Object>(env: &Arc<Env>, primary: &Arc<Stored>, object: &K) -> Request<Arc<K>> {
    let (env, primary, object) = (env.clone(), primary.clone(), object.clone());
    Request::new(async move {
        check_owned("release", &object, &env, &primary)?;
        let references = references_but(&object, &primary.meta().uid);
        patch_references(&env, &primary, &object, references).await
    })
}

fn references_but<K: Object>(object: &K, uid: &Uid) -> Vec<Value> {
    let others = object.owner_references().iter().filter(|owner| owner.uid != *uid);
    others.map(|owner| serde_json::to_value(owner).unwrap_or_default()).collect()
}

/// A list in a merge patch is replaced as a whole, hence the precondition on its version.
async fn patch_references<K: Object>(
    env: &Env,
    primary: &Stored,
    object: &K,
    references: Vec<Value>,
) -> Result<Arc<K>, ApiError> {
    let source = env.source::<K>();
    let (name, namespace) = (object.name_any(), object.namespace());
    let references = if references.is_empty() { Value::Null } else { references.into() };
    let patch = json!({ "metadata": {
        "uid": object.uid(),
        "resourceVersion": object.resource_version(),
        "ownerReferences": references,
    } });
    let target = Target { by: primary.key(), source: &source, namespace: namespace.as_deref(), name: &name };
    env.writer.patch(&target, "", MERGE_PATCH, &patch).await
}

/// Puts a new object into the primary's namespace and under its control.
fn adopt<K: Object>(mut object: K, env: &Env, primary: &Stored) -> Result<K, ApiError> {
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    if let Some(other) = controller.filter(|owner| owner.uid != primary.meta().uid) {
        return Err(foreign("create", &object, env, primary, Some(&other.name)));
    }
    check_place("create", &Kind::of::<K>(), object.meta().namespace.as_deref(), &object.name_any(), env, primary)?;
    if let Some(namespace) = &primary.key().namespace {
        object.meta_mut().namespace = Some(namespace.to_string());
    }
    let references = object.owner_references_mut();
    references.retain(|owner| owner.uid != primary.meta().uid);
    references.push(reference(env, primary, &Kind::of::<K>()));
    Ok(object)
}

/// A primary in a namespace owns nothing elsewhere; one without a namespace owns objects anywhere.
fn check_place(
    verb: &str,
    of: &Kind,
    namespace: Option<&str>,
    name: &str,
    env: &Env,
    primary: &Stored,
) -> Result<(), ApiError> {
    match (namespace.filter(|namespace| !namespace.is_empty()), primary.meta().namespace()) {
        (Some(namespace), Some(own)) if namespace != own => Err(ApiError::Elsewhere {
            operation: format!("{verb} {} {namespace}/{name}", of.kind),
            owner: format!("{} {}", env.spec.primary.kind, primary.key()),
        }),
        _ => Ok(()),
    }
}

fn check_owned<K: Object>(verb: &str, object: &K, env: &Env, primary: &Stored) -> Result<(), ApiError> {
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    match controller {
        Some(owner) if owner.uid == primary.meta().uid => Ok(()),
        other => Err(foreign(verb, object, env, primary, other.map(|owner| owner.name.as_str()))),
    }
}

fn foreign<K: Object>(verb: &str, object: &K, env: &Env, primary: &Stored, other: Option<&str>) -> ApiError {
    let name = match object.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", K::kind(&()), object.name_any()),
        None => format!("{} {}", K::kind(&()), object.name_any()),
    };
    ApiError::Foreign {
        operation: format!("{verb} {name}"),
        object: match other {
            Some(other) => format!("{name} (controlled by {other})"),
            None => name,
        },
        owner: format!("{} {}", env.spec.primary.kind, primary.key()),
    }
}
