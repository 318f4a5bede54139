//! Defaults and the strategy of a kind: the fields that a write resets, the generation, and the status.
//!
//! Upstream splits this into defaulting (on decoding) and strategy (`PrepareForCreate`, `PrepareForUpdate`). The kind
//! has functions for both (`Kind` in `registry/kind.rs`), and this file fixes their order.

mod default;
mod generation;
mod restore;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::default::default;
pub(super) use self::default::{default_changed_object, default_new_object};
use self::generation::{changes_generation, counts_generations, has_generation};
pub(super) use self::restore::restore;
use super::{Unpersisted, Write};
use crate::{
    json_path::set,
    metadata::{self, SYSTEM_FIELDS, increment_generation},
    registry::{
        Resource,
        kind::{NewStatus, Subresource},
    },
    request::RequestInfo,
    store::Store,
};

/// The states of a new object from which its field ownership is computed.
pub(super) struct NewObjectStates {
    /// The object before `prepare`: as the client sent it, with the changes of mutating admission.
    pub(super) sent: Value,
    /// The object with defaults, before plugins complete it.
    pub(super) prepared: Value,
}

/// Applies defaults and the strategy of the kind. `None` for an update. An apply with fields that are not persisted
/// increments the generation even if nothing else changed.
pub(super) fn prepare(store: &mut Store, info: &RequestInfo, write: &mut Write) -> Option<NewObjectStates> {
    let sent = write.is_new().then(|| write.object.clone());
    prepare_object(store, info, write.old.as_ref(), &mut write.object);
    if let Some(old) = write.old.as_ref().filter(|_| write.unpersisted == Unpersisted::Counted) {
        increment_generation(&mut write.object, metadata::generation(old));
    }
    sent.map(|sent| NewObjectStates { sent, prepared: write.object.clone() })
}

/// Applies defaults and the strategy to an object that need not be stored.
pub(super) fn prepare_object(store: &mut Store, info: &RequestInfo, old: Option<&Arc<Value>>, object: &mut Value) {
    match old {
        // The strategy runs before the defaults: fields that it resets get defaults too.
        None => {
            in_storage_version(&info.resource, object, |object| prepare_create(store, &info.resource, object));
            default(info, object, None);
            (info.resource.kind.strategy.set_times)(store, None, object);
        }
        Some(old) => prepare_change(store, info, old, object),
    }
}

/// Prepares an updated object. The defaults come before the strategy: values that they fill in do not count as a
/// change. Times are set before the comparison that decides about the generation.
fn prepare_change(store: &Store, info: &RequestInfo, old: &Arc<Value>, new: &mut Value) {
    default(info, new, Some(old));
    let kind = info.resource.kind;
    (kind.metadata.default)(new);
    (kind.strategy.set_times)(store, Some(old), new);
    if info.subresource.is_status() {
        (kind.strategy.set_status_times)(store, old, new);
    }
    if kind.storage.is_some_and(|storage| new["apiVersion"] != storage.api_version) {
        let stored = store.get(&info.resource.id, &info.key()).unwrap_or_else(|| old.clone());
        let prepare = |new: &mut Value| prepare_update(&info.resource, info.subresource, &stored, new);
        return in_storage_version(&info.resource, new, prepare);
    }
    prepare_update(&info.resource, info.subresource, old, new);
    if kind.defaults.again_after_update && info.subresource.is_main() {
        default(info, new, None);
    }
}

/// Changes an object in the version in which the rules of its kind are written. The result has the version of the
/// request.
fn in_storage_version(resource: &Resource, object: &mut Value, change: impl FnOnce(&mut Value)) {
    let Some(storage) = resource.kind.storage else { return change(object) };
    *object = (storage.convert)(storage.api_version, object);
    change(object);
    *object = (storage.convert)(&resource.api_version(), object);
}

/// Runs `PrepareForCreate` of the kind's strategy, and sets the server's metadata. The client's status is dropped for
/// kinds with the subresource `status`. The uid and the time are new.
fn prepare_create(store: &mut Store, resource: &Resource, object: &mut Value) {
    let kind = resource.kind;
    if let Value::Object(map) = object {
        if resource.has_status() && kind.strategy.new_status != NewStatus::AsSent {
            map.remove("status");
        }
        let Some(Value::Object(meta)) = map.get_mut("metadata") else { return };
        meta.retain(|field, _| !SYSTEM_FIELDS.contains(&field.as_str()));
        meta.insert("uid".into(), store.rng.uid().into());
        meta.insert("creationTimestamp".into(), store.clock.seconds().into());
        if has_generation(resource) {
            meta.insert("generation".into(), 1.into());
        }
    }
    if kind.strategy.new_status == NewStatus::Empty {
        object["status"] = json!({});
    }
    (kind.strategy.prepare_create)(store, object);
    (kind.strategy.drop_unstored)(object);
}

/// Runs `PrepareForUpdate`: restores the metadata that only the server sets and the fields that this subresource does
/// not write. Increments the generation if a counted field has changed. The fields are restored first, so that those
/// outside the subresource do not count as changed.
fn prepare_update(resource: &Resource, subresource: Subresource, old: &Value, new: &mut Value) {
    let kind = resource.kind;
    restore(resource, subresource, old, new);
    (kind.strategy.prepare_update)(subresource, old, new);
    for field in SYSTEM_FIELDS.into_iter().chain(["generation"]) {
        set(&mut new["metadata"], field, old["metadata"].get(field).cloned());
    }
    if counts_generations(resource) && changes_generation(resource, subresource, old, new) {
        increment_generation(new, metadata::generation(old));
    }
    // Dropped after the generation was counted: a field that is sent and not stored counts as a change.
    (kind.strategy.drop_unstored)(new);
}
