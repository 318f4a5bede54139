//! Writes through `resize` and `ephemeralcontainers`: the old Pod with one part of the new one.
//!
//! A client sends the whole Pod. Fields outside of the part are ignored, not rejected.

use serde_json::{Value, json};

use super::{resize, resources};
use crate::{
    field_errors::text,
    json_path::{by_name, set},
    registry::kind::{Kind, OwnedState, Part, Subresource},
};

/// The subresources for a part of the spec. A write keeps the metadata. The client owns the fields that it has sent,
/// even if they are not stored.
pub(super) const PARTS: &[Part] = &[
    Part {
        subresource: Subresource::Resize,
        kept_metadata: Kind::CLIENT_METADATA,
        owned_state: OwnedState::Sent,
        with: with_resources,
        validate: resize::validate_resize,
    },
    Part {
        subresource: Subresource::EphemeralContainers,
        kept_metadata: Kind::CLIENT_METADATA,
        owned_state: OwnedState::Sent,
        with: with_ephemeral_containers,
        validate: resize::validate_ephemeral_containers,
    },
];

/// Returns the old Pod with `spec.ephemeralContainers` and the managed fields of the new one.
fn with_ephemeral_containers(old: &Value, new: &Value) -> Value {
    let mut pod = with_managed_fields(old, new);
    set(&mut pod["spec"], "ephemeralContainers", new["spec"].get("ephemeralContainers").cloned());
    pod
}

/// Returns the old Pod with the fields that `resize` writes: `resources` and `resizePolicy` of containers and init
/// containers, `spec.resources`, and the managed fields.
fn with_resources(old: &Value, new: &Value) -> Value {
    let mut pod = with_managed_fields(old, new);
    let (was, sent) = (&old["spec"], &new["spec"]);
    let n_of = |spec: &Value, list: &str| spec[list].as_array().map_or(0, Vec::len);
    if ["containers", "initContainers"].iter().any(|list| n_of(was, list) != n_of(sent, list)) {
        // Validation rejects a changed number of containers. It computes the QoS class from the containers as sent, so
        // the status gets the class of the new Pod.
        let class = new["status"].get("qosClass").cloned();
        set(&mut pod["status"], "qosClass", class);
    }
    let spec = &mut pod["spec"];
    for list in ["containers", "initContainers"] {
        let sent = sent.get(list).map(|sent| resize_containers(&was[list], sent));
        set(spec, list, sent);
    }
    // Older clients drop the Pod-level resources.
    let sent_resources = sent.get("resources").filter(|resources| !resources.is_null());
    set(spec, "resources", sent_resources.or_else(|| was.get("resources")).cloned());
    resources::complete(spec);
    pod
}

/// Returns the old Pod with the managed fields of the new one.
fn with_managed_fields(old: &Value, new: &Value) -> Value {
    let mut pod = old.clone();
    set(&mut pod["metadata"], "managedFields", new["metadata"].get("managedFields").cloned());
    pod
}

/// Returns the old containers with the resources that were sent. Unknown containers are kept as sent, so that
/// validation reports them. Containers are paired by name. The order is the client's, so that validation sees a changed
/// order, too.
fn resize_containers(old: &Value, sent: &Value) -> Value {
    let old = by_name(old);
    let resized_container = |sent: &Value| {
        let Some(&existing) = old.get(text(&sent["name"])) else { return sent.clone() };
        let mut container = existing.clone();
        for field in ["resources", "resizePolicy"] {
            set(&mut container, field, sent.get(field).cloned());
        }
        container
    };
    sent.as_array().map_or_else(|| json!([]), |sent| sent.iter().map(resized_container).collect())
}
