//! Owner references: how an object comes under the control of the primary, and which objects a request may touch.
//!
//! One rule holds for `create`, `apply` and `converge`: owner references that the caller gives are kept, and the
//! controller reference to the primary is added. An object has at most one controller, so a given reference with
//! `controller: true` to another object is an error.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{ApiRequest, Env, ReconcileEnv};
use crate::{
    key::ObjectKey,
    object::{Kind, Object, Stored, Uid, is_namespaced},
    source::Source,
    writer::{ApiError, MERGE_PATCH, Operation, Target},
};

/// Returns the given references with the controller reference to the primary. A reference to the primary itself,
/// whatever version or `controller` it has, is replaced; its `blockOwnerDeletion` is kept.
///
/// A kept `blockOwnerDeletion: true` is sent even if no relation declares it: a user may have granted `update` on
/// `…/finalizers` by `rbac(…)`, and only the admission plugin `OwnerReferencesPermissionEnforcement` requires it.
pub(super) fn with_controller(
    given: Vec<OwnerReference>,
    operation: &Operation,
    object: &str,
    env: &Env,
    primary: &Stored,
    kind: &Kind,
) -> Result<Vec<OwnerReference>, ApiError> {
    let (own, mut owners): (Vec<_>, Vec<_>) = given.into_iter().partition(|owner| owner.uid == primary.meta().uid);
    if let Some(other) = owners.iter().find(|owner| owner.controller == Some(true)) {
        return Err(ApiError::SecondController {
            operation: operation.into(),
            object: object.into(),
            controller: other.name.clone(),
            owner: format!("{} {}", env.spec.primary.kind, primary.key()),
        });
    }
    let mut reference = reference(env, primary, kind);
    reference.block_owner_deletion =
        own.iter().find_map(|own| own.block_owner_deletion).or(reference.block_owner_deletion);
    owners.push(reference);
    Ok(owners)
}

fn reference(env: &Env, primary: &Stored, owned_kind: &Kind) -> OwnerReference {
    let (kind, meta) = (&env.spec.primary.kind, primary.meta());
    let blocks =
        env.spec.relations.iter().any(|relation| relation.kind == *owned_kind && relation.block_owner_deletion);
    OwnerReference {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        name: meta.name().to_owned(),
        uid: meta.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: blocks.then_some(true),
    }
}

/// Sets the controller reference of an existing object to the primary.
pub(super) fn adopt_existing<K: Object>(
    env: &Arc<ReconcileEnv>,
    primary: &Arc<Stored>,
    object: &K,
) -> ApiRequest<Arc<K>> {
    let (env, primary, object) = (env.clone(), primary.clone(), object.clone());
    ApiRequest::new(async move {
        let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
        if let Some(other) = controller.filter(|owner| owner.uid != primary.meta().uid) {
            return Err(not_owned("adopt", &object, &env, &primary, Some(&other.name)));
        }
        let namespace = object.meta().namespace.as_deref();
        check_namespace::<K>("adopt", namespace, &object.name_any(), &env, &primary)?;
        let own = reference(&env, &primary, &Kind::of::<K>());
        if object.owner_references().contains(&own) {
            return Ok(Arc::new(object));
        }
        let mut references: Vec<Value> = references_without(&object, &primary.meta().uid);
        references.push(json!(own));
        patch_references(&env, &primary, &object, references).await
    })
}

/// Removes the reference to the primary from an object.
pub(super) fn release<K: Object>(env: &Arc<ReconcileEnv>, primary: &Arc<Stored>, object: &K) -> ApiRequest<Arc<K>> {
    let (env, primary, object) = (env.clone(), primary.clone(), object.clone());
    ApiRequest::new(async move {
        check_owned("release", &object, &env, &primary)?;
        let references = references_without(&object, &primary.meta().uid);
        patch_references(&env, &primary, &object, references).await
    })
}

fn references_without<K: Object>(object: &K, uid: &Uid) -> Vec<Value> {
    let others = object.owner_references().iter().filter(|owner| owner.uid != *uid);
    others.map(|owner| serde_json::to_value(owner).unwrap_or_default()).collect()
}

/// Replaces the owner references by a merge patch. It replaces the list as a whole, hence the precondition on the
/// version.
async fn patch_references<K: Object>(
    env: &ReconcileEnv,
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

/// Puts a new object into the primary's namespace, and adds the controller reference. In a controller ring it also gets
/// the label of this shard.
pub(super) fn adopt<K: Object>(mut object: K, env: &Env, primary: &Stored, source: &Source) -> Result<K, ApiError> {
    let kind = Kind::of::<K>();
    check_namespace::<K>("create", object.meta().namespace.as_deref(), &object.name_any(), env, primary)?;
    if let Some(namespace) = &primary.key().namespace {
        object.meta_mut().namespace = Some(namespace.to_string());
    }
    if let (Some(ring), Some(labels)) = (env.gate.ring(), &mut object.meta_mut().labels) {
        ring.labels().strip_map(labels);
    }
    if let Some(labels) = env.labels_of_owned(source, primary) {
        labels.assign(object.meta_mut().labels.get_or_insert_default());
    }
    let (text, given) = (describe(&object), std::mem::take(object.owner_references_mut()));
    let key = ObjectKey::new(object.meta().namespace.as_deref(), &object.name_any());
    let operation = Operation::on_object("create", &env.spec.primary.cluster, &kind, key);
    let references = with_controller(given, &operation, &text, env, primary, &kind)?;
    *object.owner_references_mut() = references;
    Ok(object)
}

/// Checks the namespace of an object. A namespaced primary owns nothing in other namespaces, a cluster-scoped one owns
/// objects anywhere, and has no namespace to give them.
pub(super) fn check_namespace<K: Object>(
    verb: &str,
    namespace: Option<&str>,
    name: &str,
    env: &Env,
    primary: &Stored,
) -> Result<(), ApiError> {
    let namespace = namespace.filter(|namespace| !namespace.is_empty());
    let (kind, owner) = (Kind::of::<K>(), &env.spec.primary);
    let operation = || Operation::on_object(verb, &owner.cluster, &kind, ObjectKey::new(namespace, name));
    match (namespace, primary.meta().namespace()) {
        (Some(namespace), Some(own)) if namespace != own => {
            Err(ApiError::OtherNamespace { operation: operation(), owner: format!("{} {}", owner.kind, primary.key()) })
        }
        (None, None) if is_namespaced::<K>() => Err(ApiError::Unsendable {
            operation: operation(),
            cause: format!(
                "the object has no metadata.namespace, and the primary {0} is cluster-scoped: set it, or declare the kind \
                 {0} `namespaced`",
                owner.kind
            ),
        }),
        _ => Ok(()),
    }
}

pub(super) fn check_owned<K: Object>(verb: &str, object: &K, env: &Env, primary: &Stored) -> Result<(), ApiError> {
    let controller = object.owner_references().iter().find(|owner| owner.controller == Some(true));
    match controller {
        Some(owner) if owner.uid == primary.meta().uid => Ok(()),
        other => Err(not_owned(verb, object, env, primary, other.map(|owner| owner.name.as_str()))),
    }
}

fn not_owned<K: Object>(verb: &str, object: &K, env: &Env, primary: &Stored, other: Option<&str>) -> ApiError {
    let name = describe(object);
    let key = ObjectKey::new(object.namespace().as_deref(), &object.name_any());
    ApiError::NotControlled {
        operation: Operation::on_object(verb, &env.spec.primary.cluster, &Kind::of::<K>(), key),
        object: match other {
            Some(other) => format!("{name} (controlled by {other})"),
            None => name,
        },
        owner: format!("{} {}", env.spec.primary.kind, primary.key()),
    }
}

/// Returns kind, namespace and name of an object, for errors.
fn describe<K: Object>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", K::kind(&()), object.name_any()),
        None => format!("{} {}", K::kind(&()), object.name_any()),
    }
}
