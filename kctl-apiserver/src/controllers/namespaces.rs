//! The end of a namespace: everything in it goes first, pods before all else.
//!
//! Upstream: `namespaced_resources_deleter.go` and `status_condition_utils.go` of `pkg/controller/namespace/deletion`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};

use crate::{
    crd,
    deletion::{Grace, Propagation},
    kinds::{
        self,
        core::{event, pod},
    },
    lifecycle::{self, Writer},
    status::GroupResource,
    store::{Key, Store},
};

/// By which a namespace is held until it is empty.
const FINALIZER: &str = "kubernetes";

/// What is still there of what has been deleted.
#[derive(Default)]
pub(super) struct Left {
    by_resource: BTreeMap<GroupResource, usize>,
    by_finalizer: BTreeMap<String, usize>,
}

impl Left {
    pub(super) fn is_empty(&self) -> bool {
        self.by_resource.is_empty()
    }

    /// Events are told of by both groups that have them.
    fn add(&mut self, of: &GroupResource, object: &Value) {
        self.add_once(of, object);
        if event::KIND.is_of(of) {
            self.add_once(&kinds::events::event::KIND.group_resource(), object);
        }
    }

    fn add_once(&mut self, of: &GroupResource, object: &Value) {
        *self.by_resource.entry(of.clone()).or_default() += 1;
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        for finalizer in finalizers.filter_map(Value::as_str) {
            *self.by_finalizer.entry(finalizer.into()).or_default() += 1;
        }
    }

    /// What the status of the namespace says of it: type, status, reason and message of each condition.
    fn conditions(&self) -> [[String; 4]; 5] {
        let told = |r#type: &str, reason: &str, message: &str| [r#type, "False", reason, message].map(str::to_owned);
        let mut all = [
            told("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
            told(
                "NamespaceDeletionGroupVersionParsingFailure",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            told(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            told("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
            told(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
        ];
        let mut remain = |index: usize, reason: &str, start: &str, mut parts: Vec<String>| {
            parts.sort();
            if !parts.is_empty() {
                let message = format!("{start} remaining: {}", parts.join(", "));
                all[index][1..].clone_from_slice(&["True".to_owned(), reason.to_owned(), message]);
            }
        };
        let resources = self.by_resource.iter();
        let resources = resources.map(|(of, n)| format!("{}.{} has {n} resource instances", of.resource, of.group));
        remain(3, "SomeResourcesRemain", "Some resources are", resources.collect());
        let finalizers = self.by_finalizer.iter().map(|(name, n)| format!("{name} in {n} resource instances"));
        remain(4, "SomeFinalizersRemain", "Some content in the namespace has finalizers", finalizers.collect());
        all
    }
}

/// Deletes what is left in a namespace, says so in its status, and lets it go once nothing is.
pub(super) fn end(store: &mut Store, of: &GroupResource, key: &Key) {
    let is_held =
        |namespace: &Arc<Value>| namespace["spec"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let Some(namespace) = store.get(of, key).filter(is_held) else { return };
    let pods = pod::KIND.group_resource();
    let mut left = Left::default();
    empty(store, &pods, Some(&key.1), &mut left);
    let has_pods = !left.is_empty();
    if has_pods {
        // Nothing is told of pods, and all else stays as long as they need it.
        left = Left::default();
    } else {
        let inside: Vec<GroupResource> = store.tables().map(|(of, _)| of.clone()).collect();
        for of in inside {
            empty(store, &of, Some(&key.1), &mut left);
        }
    }
    let (mut new, now) = (Value::clone(&namespace), store.clock.seconds());
    for condition in left.conditions() {
        let [r#type, status, reason, message] = &condition;
        crd::set_condition(&mut new, &now, [r#type, status, reason, message]);
    }
    Writer::of_manager("status").write(store, of, key, &namespace, new);
    if !has_pods && left.is_empty() {
        finalize(store, of, key);
    }
}

/// Takes this controller's finalizer away; those of others are in order after that.
fn finalize(store: &mut Store, of: &GroupResource, key: &Key) {
    let Some(namespace) = store.get(of, key) else { return };
    let finalizers = namespace["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let others: BTreeSet<&str> = finalizers.filter(|name| *name != FINALIZER).collect();
    let mut new = Value::clone(&namespace);
    new["spec"] = if others.is_empty() { json!({}) } else { json!({ "finalizers": others }) };
    Writer::of_manager("finalize").write(store, of, key, &namespace, new);
}

/// Deletes the objects of a resource, and counts those that are still there.
pub(super) fn empty(store: &mut Store, of: &GroupResource, namespace: Option<&str>, left: &mut Left) {
    let Some(resource) = store.registry.any_version(of) else { return };
    if namespace.is_some() && !resource.listed.namespaced {
        return;
    }
    let objects: Vec<(Key, Arc<Value>)> =
        store.table(of).values(namespace).map(|(key, object)| (key.clone(), object)).collect();
    for (key, object) in objects {
        if object["metadata"]["deletionTimestamp"].is_null() {
            lifecycle::delete(store, &resource, &key, &object, Propagation::Background, Grace::Default);
        }
        if let Some(object) = store.get(of, &key) {
            left.add(of, &object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_left_are_counted_in_both_of_their_groups() {
        let mut left = Left::default();
        left.add(&GroupResource::new("", "events"), &json!({ "metadata": { "finalizers": ["a.b/c"] } }));
        let [.., remaining, finalizers] = left.conditions();
        let told = "Some resources are remaining: events. has 1 resource instances, events.events.k8s.io has 1 resource instances";
        assert_eq!(remaining[3], told);
        let told = "Some content in the namespace has finalizers remaining: a.b/c in 2 resource instances";
        assert_eq!(finalizers[3], told);
    }
}
