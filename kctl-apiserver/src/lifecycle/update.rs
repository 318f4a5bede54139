//! Writes changed objects: skips writes that change nothing, and removes an object that loses its last finalizer.
//!
//! These two rules make a controller loop end. A reconcile that computes the stored state writes nothing and wakes no
//! watch. The owner of the last finalizer needs no second request to delete. Behaviour: `Update` of
//! `k8s.io/apiserver/pkg/registry/generic/registry/store.go`.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    kinds,
    status::GroupResource,
    store::{Key, Store},
};

/// Replaces `old` by `new`. Returns the stored object: `old` if nothing changes, or the last state if the object is
/// removed. A write that changes nothing gets no new revision and causes no event, as in `GuaranteedUpdate` of
/// `k8s.io/apiserver/pkg/storage/etcd3/store.go`. Times in `managedFields` do not count as a change. An object that is
/// being deleted and loses its last finalizer is removed instead of written (`deleteWithoutFinalizers` of
/// `k8s.io/apiserver/pkg/registry/generic/registry/store.go`).
pub(crate) fn update(
    store: &mut Store,
    resource: &GroupResource,
    key: &Key,
    old: &Arc<Value>,
    new: Value,
) -> Arc<Value> {
    let new = with_version_of(old, new);
    if is_deletion_complete(resource, &new) {
        return remove(store, resource, key, new);
    }
    // An object that is read differently than it was written is always written: its CRD has changed, or it was sent
    // with fields that reads drop.
    let is_as_written = store.get_stored(resource, key).is_none_or(|stored| stored.is_as_written());
    if is_as_written && is_same_object(old, &new) {
        return old.clone();
    }
    store.put(resource, key.clone(), new)
}

/// Returns an object with the `resourceVersion` of the stored one, so that both can be compared. `resourceVersion` is
/// assigned when an object is stored; the one that a client sent was compared earlier.
fn with_version_of(old: &Value, mut new: Value) -> Value {
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    new
}

/// Returns `true` if an object is being deleted and nothing holds it any longer. A Namespace has finalizers in its
/// spec, too.
fn is_deletion_complete(resource: &GroupResource, object: &Value) -> bool {
    let meta = &object["metadata"];
    let has_finalizers = meta["finalizers"].as_array().is_some_and(|all| !all.is_empty())
        || kinds::find(resource).is_some_and(|kind| (kind.delete.has_own_finalizers)(object));
    let has_no_grace = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    meta["deletionTimestamp"].is_string() && has_no_grace && !has_finalizers
}

/// Removes an object. `last` is the response to the client. Unlike the response to a delete, it has the resource
/// version of the state before the removal.
fn remove(store: &mut Store, resource: &GroupResource, key: &Key, last: Value) -> Arc<Value> {
    store.remove(resource, key);
    last.into()
}

/// Returns `true` if two states differ at most in the times of their `managedFields`. A write may renew a time and
/// change nothing else in the stored object; it is skipped.
fn is_same_object(old: &Value, new: &Value) -> bool {
    fields_equal(old, new, |name, old, new| old == new || (name == "metadata" && fields_equal(old, new, is_same_field)))
}

/// Returns `true` if two metadata fields are equal, without the times of `managedFields`.
fn is_same_field(name: &str, old: &Value, new: &Value) -> bool {
    let (Value::Array(before), Value::Array(after), "managedFields") = (old, new, name) else { return old == new };
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| fields_without_time(before).eq(fields_without_time(after)))
}

/// Iterates over the fields of a `managedFields` entry, without its time.
fn fields_without_time(entry: &Value) -> impl Iterator<Item = (&String, &Value)> {
    entry.as_object().into_iter().flatten().filter(|(name, _)| *name != "time")
}

/// Returns `true` if two objects have the same fields and `is_equal` holds for each pair of values.
fn fields_equal(old: &Value, new: &Value, is_equal: impl Fn(&str, &Value, &Value) -> bool) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    old.len() == new.len() && old.iter().all(|(name, old)| new.get(name).is_some_and(|new| is_equal(name, old, new)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_times_of_managers_may_differ() {
        let object = |data: &str, manager: &str, time: Value| {
            json!({ "data": { "a": data }, "metadata": { "name": "x", "managedFields": [
                { "manager": manager, "time": time, "fieldsV1": { "f:data": {} } },
            ] } })
        };
        let old = object("1", "a", json!("2026-01-01T00:00:00Z"));
        for (new, expected) in [
            (old.clone(), true),
            (object("1", "a", json!("2026-01-01T00:00:01Z")), true),
            (object("1", "a", Value::Null), true),
            (object("2", "a", json!("2026-01-01T00:00:00Z")), false),
            (object("1", "b", json!("2026-01-01T00:00:00Z")), false),
            (json!({ "data": { "a": "1" }, "metadata": { "name": "x" } }), false),
            (json!({ "data": { "a": "1" }, "metadata": { "name": "x", "managedFields": [] } }), false),
        ] {
            assert_eq!(is_same_object(&old, &new), expected, "{new}");
        }
    }
}
