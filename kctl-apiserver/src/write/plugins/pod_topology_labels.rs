//! `PodTopologyLabels`: copies region and zone from the labels of a Node to its Pods.
//!
//! Upstream: `Plugin.Admit` in `plugin/pkg/admission/podtopologylabels/admission.go`. It also changes Bindings, for
//! which `verbs/subresources.rs` uses [`topology`].

use serde_json::{Map, Value};

use super::Mutation;
use crate::{field_errors::text, kinds::core::node, status::StatusError, store::Store};

/// Labels that are copied from a node to its Pods.
const TOPOLOGY: &[&str] = &["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Sets the labels of a new Pod that names a node.
pub(super) fn admit(store: &Store, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    if mutation.creates() {
        for (label, value) in topology(store, text(&mutation.object["spec"]["nodeName"])) {
            mutation.object["metadata"]["labels"][label] = value;
        }
    }
    Ok(())
}

/// Returns the labels that a node gives its Pods. An unknown node gives none. They overwrite labels of the same name in
/// the Pod.
pub(crate) fn topology(store: &Store, node: &str) -> Map<String, Value> {
    let node = store.object(&node::KIND, "", node);
    let labels = node.iter().flat_map(|node| node["metadata"]["labels"].as_object().into_iter().flatten());
    labels
        .filter(|(label, _)| TOPOLOGY.contains(&label.as_str()))
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect()
}
