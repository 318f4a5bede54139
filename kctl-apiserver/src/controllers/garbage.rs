//! Garbage collection by owner references (`pkg/controller/garbagecollector`).

use std::sync::Arc;

use serde_json::Value;

use super::{Shared, definitions, namespaces, quotas, roles};
use crate::{
    kinds::Resource,
    status::GroupResource,
    store::{Key, State},
    verbs::{FOREGROUND, Grace, ORPHAN, Propagation, remove_object, settle},
};

/// Looks at what changed, one object at a time.
pub(crate) struct Garbage {
    state: Shared,
}

impl Garbage {
    pub(crate) fn new(state: Shared) -> Self {
        Self { state }
    }

    pub(super) fn state(&self) -> &Shared {
        &self.state
    }

    /// Looks at one object; false when nothing is left.
    pub(super) fn step(&self) -> bool {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.roles_changed) {
            roles::aggregate(&mut state);
            return true;
        }
        if let Some(group) = state.names_freed.pop_first() {
            definitions::name_again(&mut state, &group.into());
            return true;
        }
        if let Some(namespace) = state.quotas_touched.pop_first() {
            quotas::recount(&mut state, &namespace);
            return true;
        }
        let Some((of, key)) = state.owners().next_suspect() else { return false };
        let Some(object) = state.get(&of, &key) else { return true };
        let Some(resource) = state.registry.any_version(&of) else { return true };
        if object["metadata"]["deletionTimestamp"].is_string() {
            match of.resource.as_str() {
                "namespaces" => namespaces::end(&mut state, &resource, &key, &object),
                _ => finalize(&mut state, &resource, &key, &object),
            }
        } else {
            collect(&mut state, &resource, &key, &object);
        }
        true
    }
}

/// Deletes an object whose owners are all gone, and drops references to some that are.
fn collect(state: &mut State, resource: &Arc<Resource>, key: &Key, object: &Arc<Value>) {
    let references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    if references.is_empty() {
        return;
    }
    let owner = |reference: &Value| -> Option<Arc<Value>> {
        let uid = reference["uid"].as_str()?;
        let (of, place) = state.by_uid(uid)?;
        let found = state.get(&of, &place)?;
        // A reference across namespaces is to nothing.
        let reachable = place.0.is_empty() || place.0 == key.0;
        (reachable && found["metadata"]["name"] == reference["name"]).then_some(found)
    };
    let (mut alive, mut waiting, mut gone) = (Vec::new(), Vec::new(), 0);
    for reference in &references {
        match owner(reference) {
            Some(owner) if has_finalizer(&owner, FOREGROUND) && owner["metadata"]["deletionTimestamp"].is_string() => {
                waiting.push(reference.clone());
            }
            Some(_) => alive.push(reference.clone()),
            None => gone += 1,
        }
    }
    if alive.is_empty() {
        let propagation = if waiting.is_empty() { Propagation::Background } else { Propagation::Foreground };
        let has_dependents = !state.dependents(object["metadata"]["uid"].as_str().unwrap_or_default()).is_empty();
        let propagation = if has_dependents { propagation } else { Propagation::Background };
        remove_object(state, resource, key, object, propagation, Grace::Default);
    } else if gone > 0 || !waiting.is_empty() {
        let mut new = Value::clone(object);
        new["metadata"]["ownerReferences"] = alive.into();
        settle(state, &resource.of, key.clone(), object, new);
    }
}

fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.iter().any(|known| known == name))
}

/// Deals with the dependents of an object that waits for it.
fn finalize(state: &mut State, resource: &Arc<Resource>, key: &Key, object: &Arc<Value>) {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let dependents = state.dependents(uid);
    if has_finalizer(object, ORPHAN) {
        for (of, place) in dependents {
            release(state, &of, &place, uid);
        }
        drop_finalizer(state, &resource.of, key, object, ORPHAN);
    } else if has_finalizer(object, FOREGROUND) {
        for (of, place) in dependents {
            let (Some(dependent), Some(resource)) = (state.get(&of, &place), state.registry.any_version(&of)) else {
                continue;
            };
            if dependent["metadata"]["deletionTimestamp"].is_null() {
                collect(state, &resource, &place, &dependent);
            }
        }
        let still =
            state.dependents(uid).iter().any(|(of, place)| state.get(of, place).is_some_and(|left| blocks(&left, uid)));
        if !still {
            drop_finalizer(state, &resource.of, key, object, FOREGROUND);
        }
    } else if resource.of.resource == "customresourcedefinitions" {
        definitions::end(state, resource, key, object);
    }
}

fn blocks(dependent: &Value, uid: &str) -> bool {
    let references = dependent["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().any(|reference| reference["uid"] == uid && reference["blockOwnerDeletion"] == true)
}

/// Takes the reference to an owner away.
fn release(state: &mut State, of: &GroupResource, key: &Key, uid: &str) {
    let Some(object) = state.get(of, key) else { return };
    let mut new = Value::clone(&object);
    if let Some(references) = new["metadata"]["ownerReferences"].as_array_mut() {
        references.retain(|reference| reference["uid"] != uid);
        if references.is_empty() {
            new["metadata"].as_object_mut().map(|meta| meta.remove("ownerReferences"));
        }
    }
    settle(state, of, key.clone(), &object, new);
}

pub(super) fn drop_finalizer(state: &mut State, of: &GroupResource, key: &Key, object: &Arc<Value>, name: &str) {
    let mut new = Value::clone(object);
    if let Some(finalizers) = new["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != name);
        if finalizers.is_empty() {
            new["metadata"].as_object_mut().map(|meta| meta.remove("finalizers"));
        }
    }
    settle(state, of, key.clone(), object, new);
}
