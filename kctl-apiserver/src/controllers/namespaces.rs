//! Deletion of a namespace: all objects in it are deleted first, Pods before everything else.
//!
//! Upstream: `namespaced_resources_deleter.go` and `status_condition_utils.go` of `pkg/controller/namespace/deletion`.
//!
//! The deletion is reported in the conditions of the namespace, which `kubectl describe namespace` shows:
//!
//! | condition | `True` if |
//! |---|---|
//! | `NamespaceContentRemaining` | objects are left after all Pods are gone |
//! | `NamespaceFinalizersRemaining` | such objects have finalizers |
//! | three about failures | never: discovery and deletion cannot fail here |
//!
//! While Pods remain, all conditions are `False`: upstream returns before it counts what remains.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    conditions::report,
    deletion::{Grace, Propagation, is_being_deleted},
    kinds::core::pod,
    lifecycle::{self, Writer},
    registry::{Resource, kind::Subresource},
    status::GroupResource,
    store::{Key, Store},
};

/// The finalizer in `spec.finalizers` that holds a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

/// The conditions of a namespace in which nothing remains: type, reason and message. The status is `False`.
const CONDITIONS: [[&str; 3]; 5] = [
    ["NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"],
    ["NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"],
    [
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ],
    ["NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"],
    ["NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"],
];

/// Objects that still exist after their deletion, because of finalizers or grace periods.
#[derive(Default)]
pub(super) struct RemainingObjects {
    /// The resources of these objects.
    resources: BTreeSet<GroupResource>,
    /// The finalizers of these objects.
    finalizers: BTreeSet<String>,
}

impl RemainingObjects {
    /// Returns `true` if nothing remains.
    pub(super) fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Adds an object.
    fn add(&mut self, resource: &GroupResource, object: &Value) {
        self.resources.insert(resource.clone());
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        self.finalizers.extend(finalizers.filter_map(Value::as_str).map(str::to_owned));
    }

    /// Returns the conditions of the namespace's status: type, status, reason and message of each.
    fn conditions(&self) -> [[String; 4]; 5] {
        let mut all = CONDITIONS.map(|[r#type, reason, message]| [r#type, "False", reason, message].map(str::to_owned));
        let resources: Vec<_> = self.resources.iter().map(ToString::to_string).collect();
        if !resources.is_empty() {
            let message = format!("objects remain of: {}", resources.join(", "));
            all[3][1..].clone_from_slice(&["True".to_owned(), "SomeResourcesRemain".to_owned(), message]);
        }
        if !self.finalizers.is_empty() {
            let finalizers: Vec<_> = self.finalizers.iter().map(String::as_str).collect();
            let message = format!("objects remain with finalizers: {}", finalizers.join(", "));
            all[4][1..].clone_from_slice(&["True".to_owned(), "SomeFinalizersRemain".to_owned(), message]);
        }
        all
    }
}

/// Deletes the objects of a namespace, reports the remaining ones in its status, and removes the finalizer once the
/// namespace is empty. Runs again whenever an object of the namespace is removed. Objects with finalizers are marked as
/// deleted once, and then only reported. Pods come first, because their containers may still use a `ConfigMap` or the
/// account's token while they terminate.
pub(super) fn end(store: &mut Store, resource: &GroupResource, key: &Key) {
    let has_finalizers =
        |namespace: &Arc<Value>| namespace["spec"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let Some(namespace) = store.get(resource, key).filter(has_finalizers) else { return };
    let pods = pod::KIND.group_resource();
    let mut remaining = RemainingObjects::default();
    delete_objects(store, &pods, Some(&key.1), &mut remaining);
    let has_pods = !remaining.is_empty();
    if has_pods {
        // Nothing else is deleted yet: the Pods may need it to terminate. Upstream reports nothing either
        // (`deleteAllContent`).
        remaining = RemainingObjects::default();
    } else {
        let inside: Vec<GroupResource> = store.tables().map(|(resource, _)| resource.clone()).collect();
        for resource in inside {
            delete_objects(store, &resource, Some(&key.1), &mut remaining);
        }
    }
    let (mut new, now) = (Value::clone(&namespace), store.clock.seconds());
    for condition in remaining.conditions() {
        let [r#type, status, reason, message] = &condition;
        report(&mut new, &now, [r#type, status, reason, message]);
    }
    Writer::for_manager(Subresource::Status).write(store, resource, key, &namespace, new);
    if !has_pods && remaining.is_empty() {
        finalize(store, resource, key);
    }
}

/// Removes this controller's finalizer. The remaining ones are written sorted, as by `finalizeNamespace` of
/// `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`. Finalizers of other controllers keep the
/// namespace. The API server removes an object without finalizers itself.
fn finalize(store: &mut Store, resource: &GroupResource, key: &Key) {
    let Some(namespace) = store.get(resource, key) else { return };
    let finalizers = namespace["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let others: BTreeSet<&str> = finalizers.filter(|name| *name != FINALIZER).collect();
    let mut new = Value::clone(&namespace);
    new["spec"] = if others.is_empty() { json!({}) } else { json!({ "finalizers": others }) };
    Writer::for_manager(Subresource::Finalize).write(store, resource, key, &namespace, new);
}

/// Deletes the objects of a resource, and collects those that still exist. With `namespace: None`, all objects of the
/// resource are deleted. A cluster-scoped resource has no objects in a namespace.
pub(super) fn delete_objects(
    store: &mut Store,
    group_resource: &GroupResource,
    namespace: Option<&str>,
    remaining: &mut RemainingObjects,
) {
    let Some(resource) = store.registry.any_version(group_resource) else { return };
    delete_objects_of(store, &resource, namespace, remaining);
}

/// Deletes objects like [`delete_objects`], of a resource that need not be served.
pub(super) fn delete_objects_of(
    store: &mut Store,
    resource: &Resource,
    namespace: Option<&str>,
    remaining: &mut RemainingObjects,
) {
    if namespace.is_some() && !resource.listed.namespaced {
        return;
    }
    let objects: Vec<(Key, Arc<Value>)> =
        store.table(&resource.id).values(namespace).map(|(key, object)| (key.clone(), object)).collect();
    for (key, object) in objects {
        if !is_being_deleted(&object) {
            lifecycle::delete(store, resource, &key, &object, Propagation::Background, Grace::Default);
        }
        if let Some(object) = store.get(&resource.id, &key) {
            remaining.add(&resource.id, &object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_remaining_resources_and_finalizers() {
        let mut remaining = RemainingObjects::default();
        assert!(remaining.conditions().iter().all(|[_, status, ..]| status == "False"));
        remaining.add(&GroupResource::new("apps", "deployments"), &json!({ "metadata": {} }));
        remaining.add(&GroupResource::new("", "secrets"), &json!({ "metadata": { "finalizers": ["a.b/c"] } }));
        remaining.add(&GroupResource::new("", "secrets"), &json!({ "metadata": { "finalizers": ["a.b/c"] } }));
        let [.., resources, finalizers] = remaining.conditions();
        let [_, status, reason, message] = resources;
        assert_eq!((status.as_str(), reason.as_str()), ("True", "SomeResourcesRemain"));
        assert!(message.contains("secrets, deployments.apps"), "{message}");
        let [_, status, reason, message] = finalizers;
        assert_eq!((status.as_str(), reason.as_str()), ("True", "SomeFinalizersRemain"));
        assert!(message.ends_with(": a.b/c"), "{message}");
    }
}
