//! Server-side apply of one owned object, of one other object, and of all owned objects (`converge`).
//!
//! Each sends nothing if nothing would change. For that, this process remembers the last form that it applied of each
//! object. Server-side apply removes fields that were given before, so "the object has all fields" is not enough.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    Converged, Env, ReconcileEnv,
    applied::{AppliedState, LeftState, hash_of},
    owner_references::{check_namespace, with_controller},
};
use crate::{
    key::ObjectKey,
    object::{Kind, Object, Stored, Uid, is_namespaced},
    source::{Source, WatchConfig},
    store::decode_checked,
    writer::{APPLY_PATCH, ApiError, MERGE_PATCH, Operation, Propagation, Target},
};

/// A desired object with its key and the hash of its form.
struct Desired {
    key: ObjectKey,
    object: Value,
    hash: u64,
}

impl Desired {
    /// Adds kind and namespace, and removes the status, which is another request.
    fn new(kind: &Kind, key: ObjectKey, mut object: Value) -> Self {
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.clone().into();
        if let Some(namespace) = &key.namespace {
            object["metadata"]["namespace"] = (**namespace).into();
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let hash = hash_of(&object);
        Self { key, object, hash }
    }

    /// Returns the desired form of an owned object: in the primary's namespace, with the controller reference.
    fn for_owned<K: Object>(env: &Env, primary: &Stored, source: &Source, mut object: Value) -> Result<Self, ApiError> {
        let kind = &source.config().kind;
        let name = name_of(source, &object)?;
        let key = key_of(primary, &object);
        let operation = Operation::on_object("apply", &env.spec.primary.cluster, kind, key.clone());
        check_kind("owned", &object, kind, &operation)?;
        check_namespace::<K>("apply", object["metadata"]["namespace"].as_str(), &name, env, primary)?;
        let given = given_references(&object, &operation)?;
        let references = with_controller(given, &operation, &format!("{kind} {key}"), env, primary, kind)?;
        object["metadata"]["ownerReferences"] = json!(references);
        env.strip_ring_labels(&mut object);
        Ok(Self::new(kind, key, object))
    }

    /// Returns the desired form of an object that the primary does not own, with the namespace and owners that it
    /// names.
    fn other<K: Object>(source: &Source, object: Value) -> Result<Self, ApiError> {
        let WatchConfig { cluster, kind, .. } = source.config();
        let name = name_of(source, &object)?;
        let namespace = object["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let key = ObjectKey::new(namespace, &name);
        let operation = Operation::on_object("apply", cluster, kind, key.clone());
        check_kind("objects", &object, kind, &operation)?;
        if is_namespaced::<K>() && namespace.is_none() {
            return Err(ApiError::Unsendable {
                operation,
                cause: "the object has no metadata.namespace: set it, since only owned objects get the primary's"
                    .into(),
            });
        }
        Ok(Self::new(kind, key, object))
    }
}

fn name_of(source: &Source, object: &Value) -> Result<String, ApiError> {
    match object["metadata"]["name"].as_str() {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(ApiError::Unsendable {
            operation: source.config().operation("apply"),
            cause: "the object has no metadata.name: server-side apply needs one".into(),
        }),
    }
}

/// Rejects an object of another kind. Without this check it would become an object of the handle's kind, because the
/// request carries the kind and apiVersion of the handle.
fn check_kind(handle: &str, object: &Value, kind: &Kind, operation: &Operation) -> Result<(), ApiError> {
    let given = |field: &str| object[field].as_str().filter(|given| !given.is_empty());
    let (name, api_version) = (kind.kind.as_str(), kind.api_version());
    let (given_name, given_version) = (given("kind").unwrap_or(name), given("apiVersion"));
    if given_name == name && given_version.is_none_or(|given| given == api_version) {
        return Ok(());
    }
    let version = given_version.map_or(String::new(), |given| format!(" ({given})"));
    let remedy = if given_name == name {
        format!("set apiVersion to {api_version}, or leave it out")
    } else {
        format!("declare and use `cx.{handle}::<{given_name}>()`")
    };
    Err(ApiError::Unsendable {
        operation: operation.into(),
        cause: format!(
            "the object has kind {given_name}{version}, and this handle is for {name} ({api_version}): {remedy}"
        ),
    })
}

fn given_references(object: &Value, operation: &Operation) -> Result<Vec<OwnerReference>, ApiError> {
    match &object["metadata"]["ownerReferences"] {
        Value::Null => Ok(Vec::new()),
        given => serde_json::from_value(given.clone()).map_err(|error| ApiError::Unsendable {
            operation: operation.clone(),
            cause: format!("metadata.ownerReferences is not a list of owner references: {error}"),
        }),
    }
}

/// Returns the key of a desired object: in the primary's namespace, or in its own if the primary is cluster-scoped.
fn key_of(primary: &Stored, object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str();
    let namespace = primary.meta().namespace().or_else(|| text("namespace"));
    ObjectKey::new(namespace, text("name").unwrap_or_default())
}

pub(super) async fn apply_owned<K: Object>(
    env: &ReconcileEnv,
    primary: &Stored,
    source: &Arc<Source>,
    object: Value,
) -> Result<Arc<K>, ApiError> {
    let desired = Desired::for_owned::<K>(env, primary, source, object)?;
    let applied = Apply { env, primary, source }.apply_one(desired).await?;
    env.applied.record_one(primary.key(), env.writer.tenure(), source.config(), applied.uid, applied.state);
    Ok(applied.object)
}

/// Applies one object that the primary does not own.
pub(super) async fn apply_other<K: Object>(
    env: &ReconcileEnv,
    primary: &Stored,
    source: &Arc<Source>,
    object: Value,
) -> Result<Arc<K>, ApiError> {
    let mut object = object;
    env.strip_ring_labels(&mut object);
    let desired = Desired::other::<K>(source, object)?;
    let apply = Apply { env, primary, source };
    // A cache with a field mask has no whole `K` to return, so the object is applied.
    let unchanged = if source.is_whole() { apply.cached_if_unchanged(&desired) } else { None };
    let applied = match unchanged {
        Some(unchanged) => unchanged,
        None => apply.send(desired).await?,
    };
    env.applied.record_one(primary.key(), env.writer.tenure(), source.config(), applied.uid, applied.state);
    Ok(applied.object)
}

/// Applies all desired objects, and deletes the others of `live`.
pub(super) async fn converge<K: Object>(
    env: &ReconcileEnv,
    primary: &Stored,
    source: &Arc<Source>,
    desired: Vec<Value>,
    live: &[Arc<K>],
) -> Result<Converged<K>, ApiError> {
    let mut result = Converged { applied: Vec::new(), deleted: Vec::new(), n_unchanged: 0 };
    let keys: HashSet<ObjectKey> = desired.iter().map(|object| key_of(primary, object)).collect();
    let (apply, mut states) = (Apply { env, primary, source }, HashMap::new());
    for object in desired {
        let applied = apply.apply_one(Desired::for_owned::<K>(env, primary, source, object)?).await?;
        states.insert(applied.uid, applied.state);
        if applied.is_changed {
            result.applied.push(applied.object);
        } else {
            result.n_unchanged += 1;
        }
    }
    env.applied.record(primary.key(), env.writer.tenure(), source.config(), states);
    for object in live {
        let (name, namespace) = (object.name_any(), object.namespace());
        if keys.contains(&ObjectKey::new(namespace.as_deref(), &name)) {
            continue;
        }
        let uid = object.uid().unwrap_or_default();
        let target = Target { by: primary.key(), source, namespace: namespace.as_deref(), name: &name };
        env.writer.delete(&target, &uid, Propagation::by_default(object.finalizers())).await?;
        result.deleted.push(object.clone());
    }
    Ok(result)
}

struct Apply<'a> {
    env: &'a ReconcileEnv,
    primary: &'a Stored,
    source: &'a Arc<Source>,
}

/// An object after its apply, or after the decision that no apply is necessary.
struct Done<K> {
    object: Arc<K>,
    uid: Uid,
    state: AppliedState,
    is_changed: bool,
}

impl Apply<'_> {
    async fn apply_one<K: Object>(&self, mut desired: Desired) -> Result<Done<K>, ApiError> {
        let cached = self.source.store().get(&desired.key);
        if let Some(cached) = &cached {
            let WatchConfig { cluster, kind, .. } = self.source.config();
            let controller = cached.meta().controller();
            if let Some(other) = controller.filter(|owner| owner.uid != self.primary.meta().uid) {
                return Err(ApiError::NotControlled {
                    operation: Operation::on_object("apply", cluster, kind, desired.key.clone()),
                    object: format!("{kind} {} (controlled by {})", desired.key, other.name),
                    owner: format!("{} {}", self.env.spec.primary.kind, self.primary.key()),
                });
            }
        }
        if let Some(unchanged) = self.cached_if_unchanged(&desired) {
            return Ok(unchanged);
        }
        // The uid makes sure that the known object is changed. Without a known object, or if it is being deleted, the
        // apply may create a new one.
        let live = cached.filter(|cached| cached.meta().deletion_timestamp().is_none());
        if let Some(cached) = live.filter(|_| desired.object["metadata"]["uid"].is_null()) {
            desired.object["metadata"]["uid"] = cached.meta().uid.to_string().into();
        }
        self.send(desired).await
    }

    /// Returns the cached object if an apply would change nothing. This process last applied it in this form and tenure, and
    /// either it has all desired fields, or only its status has changed since. A cache that is not kept up to date
    /// proves nothing.
    fn cached_if_unchanged<K: Object>(&self, desired: &Desired) -> Option<Done<K>> {
        let (source, by) = (self.source, self.primary.key());
        if source.store().blocks_writes(desired.key.namespace.as_deref()) {
            return None;
        }
        let cached = source.store().get(&desired.key)?;
        let uid = cached.meta().uid.clone();
        let last = self.env.applied.last(by, self.env.writer.tenure(), source.config(), &uid);
        let state = last.filter(|state| state.desired == desired.hash)?;
        let stored: Value = serde_json::from_str(&cached.json()).unwrap_or_default();
        let is_as_left = state.left.is_some_and(|left| left.still_holds(self.hash_of_state(stored.clone())));
        if !is_as_left && !has_all(stored, desired.object.clone()) {
            return None;
        }
        Some(Done { object: decode_checked(&cached)?, uid, state, is_changed: false })
    }

    async fn send<K: Object>(&self, desired: Desired) -> Result<Done<K>, ApiError> {
        let Desired { key, object, hash } = desired;
        let store = self.source.store();
        let (by, namespace) = (self.primary.key(), key.namespace.as_deref());
        let cached = store.get(&key);
        if let Some(cached) = &cached {
            // The result of this apply may be lost, or an error of a later one may end the reconcile before it is recorded.
            // With the earlier form on record, an apply of that form would keep the fields that this one adds.
            self.env.applied.forget_one(by, self.source.config(), &cached.meta().uid);
        }
        let before = cached.map(|cached| cached.meta().resource_version.to_string());
        let target = Target { by, source: self.source, namespace, name: &key.name };
        let applied = self.env.writer.patch(&target, "", APPLY_PATCH, &object).await?;
        let applied: Arc<K> = self.assign(&target, applied).await?;
        let version = applied.resource_version();
        let left = store.get(&key).filter(|cached| Some(cached.meta().resource_version.to_string()) == version);
        let left = left.map(|cached| {
            let state = serde_json::from_str(&cached.json()).unwrap_or_default();
            LeftState::new(self.hash_of_state(state))
        });
        let uid = applied.uid().unwrap_or_default().as_str().into();
        Ok(Done { object: applied, uid, state: AppliedState { desired: hash, left }, is_changed: before != version })
    }

    /// Adds the label of this shard to an applied object that the webhook of the controller ring has not assigned.
    ///
    /// It is a separate patch: an applied label would be set back by each apply after the sharder has moved the object.
    async fn assign<K: Object>(&self, target: &Target<'_>, applied: Arc<K>) -> Result<Arc<K>, ApiError> {
        let Some(ring) = self.env.labels_of_owned(self.source, self.primary) else { return Ok(applied) };
        let is_controller =
            |owner: &OwnerReference| owner.controller == Some(true) && owner.uid == self.primary.meta().uid;
        if ring.are_assigned(applied.labels()) || !applied.owner_references().iter().any(is_controller) {
            return Ok(applied);
        }
        let (uid, resource_version) = (applied.meta().uid.as_deref(), applied.meta().resource_version.as_deref());
        let patch = ring.assign_patch(uid, resource_version);
        self.env.writer.patch(target, "", MERGE_PATCH, &patch).await
    }

    /// Returns a hash of everything that an apply can change. If the cache keeps only a part of each object, the
    /// version is included, because other changes do not show.
    fn hash_of_state(&self, mut object: Value) -> u64 {
        if let Some(metadata) = object["metadata"].as_object_mut().filter(|_| self.source.is_whole()) {
            metadata.retain(|name, _| !["resourceVersion", "generation", "managedFields"].contains(&name.as_str()));
        }
        if let Some(fields) = object.as_object_mut().filter(|_| self.source.is_whole()) {
            fields.remove("status");
        }
        hash_of(&object)
    }
}

/// Returns `true` if the object has all that is desired. It may have more, from defaults and other writers.
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

/// Compares whole objects like [`contains`]. Owner references are compared by uid, because other writers may have added
/// theirs.
fn has_all(mut object: Value, mut desired: Value) -> bool {
    let take = |object: &mut Value| {
        let references = object["metadata"].as_object_mut().and_then(|metadata| metadata.remove("ownerReferences"));
        references.and_then(|references| references.as_array().cloned()).unwrap_or_default()
    };
    let (live, desired_owners) = (take(&mut object), take(&mut desired));
    let is_known =
        |desired: &Value| live.iter().any(|owner| owner["uid"] == desired["uid"] && contains(owner, desired));
    desired_owners.iter().all(is_known) && contains(&object, &desired)
}
