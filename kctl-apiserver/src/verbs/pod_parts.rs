//! What is written of a pod through `resize` and `ephemeralcontainers`: the old pod with one part of the new one.

use serde_json::{Value, json};

/// The old pod with what the subresource is for.
pub(super) fn with_part(subresource: &str, old: &Value, new: &Value) -> Value {
    let mut pod = old.clone();
    super::strategy::set(&mut pod["metadata"], "managedFields", new["metadata"].get("managedFields").cloned());
    let (was, sent) = (&old["spec"], &new["spec"]);
    let spec = &mut pod["spec"];
    if subresource == "ephemeralcontainers" {
        super::strategy::set(spec, "ephemeralContainers", sent.get("ephemeralContainers").cloned());
        return pod;
    }
    let n_of = |spec: &Value, list: &str| spec[list].as_array().map_or(0, Vec::len);
    if ["containers", "initContainers"].iter().any(|list| n_of(was, list) != n_of(sent, list)) {
        // Such a pod is judged as it was sent.
        let class = new["status"].get("qosClass").cloned();
        super::strategy::set(&mut pod["status"], "qosClass", class);
    }
    let spec = &mut pod["spec"];
    for list in ["containers", "initContainers"] {
        let sent = sent.get(list).map(|sent| resized(&was[list], sent));
        super::strategy::set(spec, list, sent);
    }
    super::strategy::set(spec, "resources", sent.get("resources").cloned());
    pod
}

/// The containers that are there with the sizes that were sent. Others stay as they were sent, to be refused by name.
fn resized(old: &Value, sent: &Value) -> Value {
    let old = old.as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |sent: &Value| {
        let Some(known) = old.iter().find(|known| known["name"] == sent["name"]) else { return sent.clone() };
        let mut container = known.clone();
        for field in ["resources", "resizePolicy"] {
            super::strategy::set(&mut container, field, sent.get(field).cloned());
        }
        container
    };
    sent.as_array().map_or_else(|| json!([]), |sent| sent.iter().map(one).collect())
}
