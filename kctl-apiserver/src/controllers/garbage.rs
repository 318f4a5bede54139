//! Garbage collection by owner references (`garbagecollector.go` of `pkg/controller/garbagecollector`).
//!
//! The graph of owners (`store/owners.rs`) decides which objects are checked. This module decides about one of them.
//! kube-controller-manager reads owners through the API with a cache that may lag. Here the state is always the newest
//! one.
//!
//! | propagation | finalizer | dependents |
//! |---|---|---|
//! | `Background` | none | deleted after the owner |
//! | `Foreground` | `foregroundDeletion` | those with `blockOwnerDeletion` are deleted before the owner |
//! | `Orphan` | `orphan` | kept, without the reference |

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;

use crate::{
    deletion::{FOREGROUND, Grace, ORPHAN, Propagation, is_being_deleted},
    json_path::{at_mut, set},
    lifecycle::{self, Writer},
    registry::{Resource, kind::Subresource},
    status::GroupResource,
    store::{Key, Store, has_finalizer, is_blocked_by},
};

/// Writes as kube-controller-manager, which the garbage collector is a part of.
const WRITER: Writer = Writer::for_manager(Subresource::Main);

/// Processes one object. It is collected if its owners are gone. If it is being deleted with a finalizer of the garbage
/// collector, its dependents are orphaned or waited for.
pub(super) fn sync(store: &mut Store, resource: &Arc<Resource>, key: &Key, object: &Arc<Value>) {
    if !is_being_deleted(object) {
        collect(store, resource, key, object);
    } else if has_finalizer(object, ORPHAN) {
        orphan(store, &resource.id, key, object);
    } else if has_finalizer(object, FOREGROUND) {
        await_dependents(store, &resource.id, key, object);
    }
}

/// The state of an owner reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    /// The owner exists.
    Solid,
    /// The owner is in foreground deletion.
    Waiting,
    /// The owner does not exist.
    Dangling,
}

/// The reason why the state of a reference is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownOwner {
    /// The kind of the owner is not served, or cannot be read.
    Kind,
    /// The reference of a cluster-scoped object names a namespaced kind, and no namespace.
    Namespace,
}

/// Returns the state of an owner reference: the owner exists if its kind, name and uid match (`isDangling`).
/// `namespace` is the dependent's: an owner is in the same namespace or cluster-scoped.
fn owner_state(store: &Store, reference: &Value, namespace: &str) -> Result<OwnerState, UnknownOwner> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let find_kind = |kind: &str| store.registry.find_kind(text("apiVersion"), kind);
    // A reference to the kind of a list, such as `PodList`, names no object.
    let find_list_kind = || text("kind").strip_suffix("List").and_then(find_kind);
    let (resource, is_list) = find_kind(text("kind"))
        .map(|resource| (resource, false))
        .or_else(|| find_list_kind().map(|resource| (resource, true)))
        .filter(|(resource, _)| resource.allows("", "get"))
        .ok_or(UnknownOwner::Kind)?;
    let owner_namespace = match (resource.listed.namespaced, namespace) {
        (true, "") => return Err(UnknownOwner::Namespace),
        (true, namespace) => namespace.to_owned(),
        (false, _) => String::new(),
    };
    let owner = store.get(&resource.id, &(owner_namespace, text("name").to_owned()));
    let Some(owner) = owner.filter(|owner| !is_list && owner["metadata"]["uid"] == reference["uid"]) else {
        return Ok(OwnerState::Dangling);
    };
    let is_waiting = has_finalizer(&owner, FOREGROUND) && is_being_deleted(&owner);
    Ok(if is_waiting { OwnerState::Waiting } else { OwnerState::Solid })
}

/// Returns the owner references.
fn references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Deletes an object whose owners are all gone, and otherwise removes references to owners that are gone
/// (`attemptToDeleteItem`).
///
/// - One owner exists: the references to all others are removed.
/// - An owner is in foreground deletion and the object has dependents: the object is deleted in the foreground, too.
/// - Otherwise the object is deleted by the finalizer that it has, or in the background.
fn collect(store: &mut Store, resource: &Arc<Resource>, key: &Key, object: &Arc<Value>) {
    let references = references(object);
    if references.is_empty() {
        return;
    }
    let states: Result<Vec<OwnerState>, UnknownOwner> =
        references.iter().map(|reference| owner_state(store, reference, &key.0)).collect();
    let states = match states {
        Ok(states) => states,
        Err(UnknownOwner::Kind) => return store.owners().mark_absent_owner((resource.id.clone(), key.clone())),
        Err(UnknownOwner::Namespace) => return,
    };
    if states.contains(&OwnerState::Solid) {
        let others = references.iter().zip(&states).filter(|(_, state)| **state != OwnerState::Solid);
        let uids: HashSet<&str> = others.filter_map(|(reference, _)| reference["uid"].as_str()).collect();
        return release(store, &resource.id, key, &uids);
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let dependents = store.dependents(uid);
    let propagation = if states.contains(&OwnerState::Waiting) && !dependents.is_empty() {
        if dependents.iter().any(|(group_resource, dependent_key)| waits(store, group_resource, dependent_key)) {
            // Both are in foreground deletion and block each other: unblocking breaks the cycle.
            clear_block_owner_deletion(store, &resource.id, key);
        }
        Propagation::Foreground
    } else if has_finalizer(object, ORPHAN) {
        Propagation::Orphan
    } else if has_finalizer(object, FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    if let Some(object) = store.get(&resource.id, key) {
        lifecycle::delete(store, resource, key, &object, propagation, Grace::Default);
    }
}

/// Returns `true` if an object is in foreground deletion.
fn waits(store: &Store, resource: &GroupResource, key: &Key) -> bool {
    let object = store.get(resource, key);
    object.is_some_and(|object| object["metadata"]["uid"].as_str().is_some_and(|uid| store.waits_for_dependents(uid)))
}

/// Sets `blockOwnerDeletion: false` in all references of an object. Without it, two objects that own each other would
/// wait for each other forever.
fn clear_block_owner_deletion(store: &mut Store, resource: &GroupResource, key: &Key) {
    WRITER.edit(store, resource, key, |object| {
        let references = object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten();
        for reference in references.filter(|reference| reference["blockOwnerDeletion"] == true) {
            reference["blockOwnerDeletion"] = false.into();
        }
    });
}

/// Removes the references to an object from its dependents, and then its finalizer. Dependents are written first: if
/// the process stopped in between, the finalizer would still exist.
fn orphan(store: &mut Store, resource: &GroupResource, key: &Key, object: &Arc<Value>) {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    for (resource, dependent_key) in store.dependents(uid) {
        release(store, &resource, &dependent_key, &HashSet::from([uid]));
    }
    drop_finalizer(store, resource, key, ORPHAN);
}

/// Removes the finalizer of an object that no dependent blocks any more. Otherwise queues the blocking dependents, once
/// (`processDeletingDependentsItem`).
fn await_dependents(store: &mut Store, resource: &GroupResource, key: &Key, object: &Arc<Value>) {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    if !store.owners().is_blocked(uid) {
        return drop_finalizer(store, resource, key, FOREGROUND);
    }
    if !store.owners().take_unseen(uid) {
        return;
    }
    let mut blocking = store.dependents(uid);
    blocking.retain(|(resource, dependent_key)| {
        let dependent = store.get(resource, dependent_key);
        dependent.is_some_and(|found| references(&found).iter().any(|reference| is_blocked_by(reference, uid)))
    });
    for (resource, dependent_key) in blocking {
        if !waits(store, &resource, &dependent_key) {
            store.owners().enqueue((resource, dependent_key));
        }
    }
}

/// Removes the references to these owners.
fn release(store: &mut Store, resource: &GroupResource, key: &Key, uids: &HashSet<&str>) {
    if uids.is_empty() {
        return;
    }
    let is_kept = |reference: &Value| reference["uid"].as_str().is_none_or(|uid| !uids.contains(uid));
    WRITER.edit(store, resource, key, |object| retain(object, "ownerReferences", is_kept));
}

/// Removes a finalizer from a stored object.
fn drop_finalizer(store: &mut Store, resource: &GroupResource, key: &Key, name: &str) {
    WRITER.edit(store, resource, key, |object| remove_finalizer(object, name));
}

/// Removes a finalizer from a value.
pub(super) fn remove_finalizer(object: &mut Value, name: &str) {
    retain(object, "finalizers", |finalizer| finalizer != name);
}

/// Keeps some items of a list in the metadata. A list that has lost all items is absent, rather than empty.
fn retain(object: &mut Value, field: &str, is_kept: impl Fn(&Value) -> bool) {
    let Some(items) = at_mut(object, ["metadata", field]).and_then(Value::as_array_mut) else { return };
    items.retain(is_kept);
    if items.is_empty() {
        set(&mut object["metadata"], field, None);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;

    const OWNER: &str = "owner";
    const N_DEPENDENTS: usize = 10;

    fn configs() -> GroupResource {
        GroupResource::new("", "configmaps")
    }

    fn secrets() -> GroupResource {
        GroupResource::new("", "secrets")
    }

    fn key(name: &str) -> Key {
        ("default".to_owned(), name.to_owned())
    }

    /// Returns a dependent that blocks the owner, and that a finalizer holds.
    fn dependent(name: &str) -> Value {
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": OWNER, "uid": OWNER, "blockOwnerDeletion": true,
        });
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": name, "namespace": "default", "uid": name, "finalizers": ["example.com/held"],
            "ownerReferences": [reference],
        } })
    }

    /// Returns a store with an owner in foreground deletion, and its dependents by number.
    fn foreground_deletion() -> Store {
        let mut store = Store::new(crate::kinds::built_in(), Clock::System, 0);
        let mut owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": OWNER, "namespace": "default", "uid": OWNER, "finalizers": [FOREGROUND],
        } });
        store.put(&configs(), key(OWNER), owner.clone());
        for n in 0..N_DEPENDENTS {
            store.put(&secrets(), key(&n.to_string()), dependent(&n.to_string()));
        }
        owner["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        store.put(&configs(), key(OWNER), owner);
        store
    }

    /// Runs the collector until its queue is empty. Returns the number of objects that were in the queue.
    fn collect_all(store: &mut Store) -> usize {
        let mut n_taken = 0;
        while let Some((group_resource, key)) = store.owners().next_suspect() {
            n_taken += 1;
            let Some(object) = store.get(&group_resource, &key) else { continue };
            let resource = store.registry.any_version(&group_resource).unwrap();
            sync(store, &resource, &key, &object);
        }
        n_taken
    }

    fn is_deleted(store: &Store, name: &str) -> bool {
        store.get(&secrets(), &key(name)).is_none_or(|object| is_being_deleted(&object))
    }

    /// Takes quadratic time if each removed dependent queues all others.
    #[test]
    fn owner_is_checked_after_its_last_dependent() {
        let mut store = foreground_deletion();
        collect_all(&mut store);
        for n in 0..N_DEPENDENTS {
            assert!(is_deleted(&store, &n.to_string()), "{n}");
        }
        for n in 1..N_DEPENDENTS {
            store.remove(&secrets(), &key(&n.to_string()));
            // The namespace and the CRD of the removed object.
            assert_eq!(collect_all(&mut store), 2, "{n}");
            assert!(store.get(&configs(), &key(OWNER)).is_some(), "{n}");
        }
        store.remove(&secrets(), &key("0"));
        collect_all(&mut store);
        assert!(store.get(&configs(), &key(OWNER)).is_none());
    }

    #[test]
    fn late_dependent_is_deleted_before_its_owner() {
        let mut store = foreground_deletion();
        collect_all(&mut store);
        store.put(&secrets(), key("late"), dependent("late"));
        collect_all(&mut store);
        assert!(!is_deleted(&store, "late"), "the owner is checked when another dependent is gone");
        store.remove(&secrets(), &key("0"));
        collect_all(&mut store);
        assert!(is_deleted(&store, "late") && store.get(&configs(), &key(OWNER)).is_some());
        for name in (1..N_DEPENDENTS).map(|n| n.to_string()).chain(["late".to_owned()]) {
            store.remove(&secrets(), &key(&name));
        }
        collect_all(&mut store);
        assert!(store.get(&configs(), &key(OWNER)).is_none());
    }

    #[test]
    fn released_dependent_no_longer_blocks_its_owner() {
        let mut store = foreground_deletion();
        collect_all(&mut store);
        for n in 0..N_DEPENDENTS {
            let mut object = dependent(&n.to_string());
            object["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into();
            store.put(&secrets(), key(&n.to_string()), object);
        }
        collect_all(&mut store);
        assert!(store.get(&configs(), &key(OWNER)).is_none());
    }
}
