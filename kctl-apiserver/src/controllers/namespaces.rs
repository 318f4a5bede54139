//! The end of a namespace: everything in it goes first.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    kinds::Resource,
    status::GroupResource,
    store::{Key, State},
    verbs::{Grace, Propagation, remove_object, settle},
};

/// Deletes what is left in a namespace, and lets it go once nothing is.
pub(super) fn end(state: &mut State, resource: &Arc<Resource>, key: &Key, namespace: &Arc<Value>) {
    let inside: Vec<GroupResource> = state.tables().map(|(of, _)| of.clone()).collect();
    let left = inside.into_iter().map(|of| empty(state, &of, Some(&key.1))).sum::<usize>();
    if left > 0 || namespace["spec"]["finalizers"].is_null() {
        return;
    }
    let mut new = Value::clone(namespace);
    new["spec"].as_object_mut().map(|spec| spec.remove("finalizers"));
    settle(state, &resource.of, key.clone(), namespace, new);
}

/// Deletes the objects of a resource; returns how many are still there.
pub(super) fn empty(state: &mut State, of: &GroupResource, namespace: Option<&str>) -> usize {
    let Some(resource) = state.registry.any_version(of) else { return 0 };
    if namespace.is_some() && !resource.listed.namespaced {
        return 0;
    }
    let objects: Vec<(Key, Arc<Value>)> =
        state.table(of).values(namespace).map(|(key, object)| (key.clone(), object)).collect();
    for (key, object) in objects {
        if object["metadata"]["deletionTimestamp"].is_null() {
            remove_object(state, &resource, &key, &object, Propagation::Background, Grace::Default);
        }
    }
    state.table(of).range(namespace, None).count()
}
