//! `PodResizeValidator`: rejects a resize of a Pod that its node has no room for.
//!
//! Upstream: `Plugin.Validate` in `plugin/pkg/admission/podresize/admission.go`.

use serde_json::{Value, json};

use super::rejection;
use crate::{
    admission::Attributes,
    amounts::{self, Amounts, ResourceMap},
    field_errors::text,
    kinds::core::node,
    quantity::Quantity,
    registry::kind::Subresource,
    status::StatusError,
    store::Store,
};

/// Rejects a resize of a Pod that does not fit on its node. The reason is in `details.causes`. A write that does not
/// change the spec is not checked.
pub(super) fn validate(store: &Store, attributes: &Attributes<'_>, pod: &Value) -> Result<(), StatusError> {
    let is_resize = attributes.info.subresource == Subresource::Resize;
    let Some(old) = attributes.old.as_deref().filter(|_| is_resize) else { return Ok(()) };
    let name = text(&pod["spec"]["nodeName"]);
    if name.is_empty() || old["metadata"]["generation"] == pod["metadata"]["generation"] {
        return Ok(());
    }
    let Some(node) = store.object(&node::KIND, "", name) else {
        return Err(rejection(attributes, &format!("node {name:?} not found")));
    };
    let with_cause = |why: &str, reason: &str| {
        let mut error = rejection(attributes, why);
        error.details["causes"] = json!([{ "reason": reason }]);
        Err(error)
    };
    let system = text(&node["metadata"]["labels"]["kubernetes.io/os"]);
    if !["", "linux"].contains(&system) {
        return with_cause(&format!("pods are resized on linux alone, node {name} is {system}"), "UnsupportedPlatform");
    }
    let mut requests = amounts::pod_amounts(&pod["spec"], ResourceMap::Requests);
    amounts::add(&mut requests, &amounts::read(&pod["spec"]["overhead"]));
    let room = amounts::read(&node["status"]["allocatable"]);
    let amount = |amounts: &Amounts, name: &str| -> Quantity { amounts.get(name).copied().unwrap_or_default() };
    let is_beyond = |name: &&str| amount(&requests, name) > amount(&room, name);
    match ["cpu", "memory"].into_iter().find(is_beyond) {
        None => Ok(()),
        Some(resource) => with_cause(&format!("the node has not enough {resource}"), "NodeCapacity"),
    }
}
