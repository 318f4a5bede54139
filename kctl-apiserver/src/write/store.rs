//! The last step: converts an object to its storage version, and commits it together with the usage of quotas.
//!
//! Upstream: `Create` and `Update` of `Store` in `k8s.io/apiserver/pkg/registry/generic/registry/store.go`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Unpersisted, Write, quotas::ChargedQuotas, sizes};
use crate::{
    controllers::definitions,
    conversion, crd,
    deletion::is_being_deleted,
    go,
    kinds::apiextensions::custom_resource_definition::DEFINITIONS,
    lifecycle,
    request::{RequestInfo, Verb},
    state::State,
    status::StatusError,
    store::{Key, Store},
};

/// Stores an object, unless the request is a dry run. Returns it in the version of the request. The conversion to the
/// storage version comes before all writes, because a conversion webhook may have to be called first. Quotas are
/// charged immediately before the commit: no step in between can fail. After the commit of a CRD, its names are
/// accepted in the same request.
///
/// # Errors
/// `AlreadyExists` if the name is taken, 500 if the object is too large for etcd, 400 if it is too deep, and errors of
/// the conversion.
pub(super) fn store(
    state: &mut State,
    info: &RequestInfo,
    key: &Key,
    mut write: Write,
    charges: ChargedQuotas,
) -> Result<Arc<Value>, StatusError> {
    normalize(info, &mut write.object);
    if write.is_new() {
        check_new(&state.store, info, key, &write.object)?;
    }
    let mut converted = conversion::convert_for_storage(state, info, write.object)?;
    sizes::check_depth(&converted.stored)?;
    if info.dry_run() {
        return Ok(dry_run_response(write.old.as_deref(), converted.into_object()));
    }
    sizes::check(&state.store, info, key, &converted.stored)?;
    charges.write(&mut state.store);
    let stored = std::mem::take(&mut converted.stored);
    let written = commit(&mut state.store, info, key, write.old, stored, write.unpersisted);
    if info.resource.id == *DEFINITIONS {
        // As upstream, the response to a new CRD has no accepted names yet; the next request finds the CRD served.
        definitions::name(&mut state.store, key);
    }
    Ok(converted.into_response_object(written))
}

/// Normalizes a custom object to the form in which it is read from etcd: numbers as Go's JSON writes them, and without
/// nulls that an apply has left. Upstream decodes the response of etcd, so a client already sees the object in this
/// form in the response.
fn normalize(info: &RequestInfo, object: &mut Value) {
    let list = info.resource.kind.strategy.null_when_empty.and_then(|list| object.pointer_mut(list));
    if let Some(list) = list.filter(|list| **list == json!([])) {
        *list = Value::Null;
    }
    if let (Some(_), Some(schema)) = (&info.resource.custom, info.resource.schema()) {
        go::whole_numbers(object);
        if info.applies() {
            crd::default(schema, object);
        }
    }
}

/// Checks that a new object has no `resourceVersion` and that its name is free. An object that is being deleted still
/// occupies its name.
fn check_new(store: &Store, info: &RequestInfo, key: &Key, object: &Value) -> Result<(), StatusError> {
    // The storage checks the version, and a dry run does not reach it.
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let has_version = version.parse::<u64>().is_ok_and(|version| version > 0);
    if has_version && info.verb == Verb::Create && !info.dry_run() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(StatusError::server_error(message));
    }
    let resource = &info.resource.id;
    let Some(existing) = store.get(resource, key) else { return Ok(()) };
    let mut error = StatusError::already_exists(resource, &key.1);
    if is_being_deleted(&existing) {
        error.message += "; it is being deleted: wait until its finalizers are removed";
    }
    let is_generated = object["metadata"]["generateName"].as_str().is_some_and(|base| !base.is_empty());
    Err(if is_generated { error.for_generated_name() } else { error })
}

/// Returns the response to a dry run: an update shows the version of the stored object. A new object has no version in
/// a dry run.
fn dry_run_response(old: Option<&Value>, unstored: Arc<Value>) -> Arc<Value> {
    let Some(old) = old else { return unstored };
    let mut object = Arc::unwrap_or_clone(unstored);
    object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    object.into()
}

/// Writes the object to the store. An update that changes nothing writes nothing and keeps the version, unless
/// unpersisted fields count as a change: an object that is marked is always written.
fn commit(
    store: &mut Store,
    info: &RequestInfo,
    key: &Key,
    old: Option<Arc<Value>>,
    object: Value,
    unpersisted: Unpersisted,
) -> Arc<Value> {
    let resource = &info.resource.id;
    let has_unread_fields = unpersisted != Unpersisted::Nothing;
    let written = match old {
        None => store.put(resource, key.clone(), object),
        Some(old) => {
            let before = store.get(resource, key).unwrap_or(old);
            if has_unread_fields {
                // A marked object is always written. The write drops the mark.
                store.mark_unread_fields(resource, key);
            }
            lifecycle::update(store, resource, key, &before, object)
        }
    };
    if has_unread_fields {
        store.mark_unread_fields(resource, key);
    }
    written
}
