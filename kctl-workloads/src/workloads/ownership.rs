//! Adopts objects that match the selector of an owner and have no controller, and releases those that no longer match.
//!
//! Upstream: `pkg/controller/controller_ref_manager.go`. A Deployment that was deleted with `--cascade=orphan` and is
//! created again gets its `ReplicaSets` back. A Pod whose labels are changed leaves its `ReplicaSet`, which replaces it.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::{NamespaceResourceScope, Selector, SelectorExt},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Workloads, ignore_outdated, is_alive, is_controlled, reference};

/// Adopts and releases objects of the owner's namespace. Returns the number of writes, whose changes cause the next pass.
///
/// An empty selector, which validation rejects, selects nothing.
pub(super) async fn claim<O, K>(
    workloads: &Workloads,
    owner: &O,
    selector: &LabelSelector,
    all: &[K],
) -> kube::Result<usize>
where
    O: Resource<DynamicType = ()>,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let selector = Selector::try_from(selector.clone()).ok().filter(|selector| !selector.selects_all());
    let (Some(selector), Some(namespace)) = (selector, owner.namespace()) else { return Ok(0) };
    let mut n_writes = 0;
    for object in all {
        if object.namespace().as_deref() != Some(namespace.as_str()) {
            continue;
        }
        let is_selected = selector.matches(object.labels());
        let mut references = object.owner_references().to_vec();
        if is_controlled(object, owner) && !is_selected {
            references.retain(|known| Some(&known.uid) != owner.meta().uid.as_ref());
        } else if is_selected && is_alive(object) && references.iter().all(|known| known.controller != Some(true)) {
            references.push(reference(owner));
        } else {
            continue;
        }
        let version = &object.meta().resource_version;
        let metadata = json!({ "uid": object.uid(), "resourceVersion": version, "ownerReferences": references });
        let api = Api::<K>::namespaced(workloads.client.clone(), &namespace);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        ignore_outdated(api.patch(&object.name_any(), &PatchParams::default(), &patch).await)?;
        n_writes += 1;
    }
    Ok(n_writes)
}
