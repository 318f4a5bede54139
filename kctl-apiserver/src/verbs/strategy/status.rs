//! What a write through a subresource may change.

use serde_json::Value;

use super::{super::pod_parts, forget, is_part_of_pod, set};
use crate::kinds::Resource;

/// The metadata that clients write.
const ALL: &[&str] = &["ownerReferences", "labels", "annotations", "finalizers"];

/// Nodes come with the status that their kubelet has found.
pub(super) fn keeps_status(resource: &Resource) -> bool {
    resource.custom.is_none() && resource.of.group.is_empty() && resource.of.resource == "nodes"
}

/// Takes what is not written through a subresource from the live object.
pub(in crate::verbs) fn reset(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    let custom = resource.custom.is_some();
    match subresource {
        "status" | "approval" => {
            if custom {
                let managed = new["metadata"].get("managedFields").cloned();
                take_all_but(&["status"], old, new);
                set(&mut new["metadata"], "managedFields", managed);
            } else {
                take_all_but(&["metadata", "status"], old, new);
                for field in kept_of_status(of) {
                    set(&mut new["metadata"], field, old["metadata"].get(*field).cloned());
                }
            }
            if of == ("", "pods") {
                keep_observed(&old["status"], &mut new["status"]);
                // It is the kubelet's promise from the start.
                if new["status"]["qosClass"].as_str().unwrap_or_default().is_empty() {
                    set(&mut new["status"], "qosClass", old["status"].get("qosClass").cloned());
                }
                // A feature that is off by default: `DRANodeAllocatableResources`.
                set(&mut new["status"], "nodeAllocatableResourceClaimStatuses", None);
            }
            if of == ("", "nodes") && old["status"]["config"].is_null() {
                // Nodes are not told their configuration any more.
                forget(new, "status", "config");
            }
        }
        "resize" | "ephemeralcontainers" if is_part_of_pod(resource, subresource) => {
            *new = pod_parts::with_part(subresource, old, new);
        }
        "" if resource.has_status() => set(new, "status", old.get("status").cloned()),
        _ => {}
    }
}

/// Makes all fields but some those of another object. Most are equal already: to see that costs less than to copy them.
fn take_all_but(kept: &[&str], from: &Value, to: &mut Value) {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return };
    let is_kept = |name: &String| kept.contains(&name.as_str());
    to.retain(|name, _| is_kept(name) || from.contains_key(name));
    for (name, value) in from.iter().filter(|(name, _)| !is_kept(name)) {
        if to.get(name) != Some(value) {
            to.insert(name.clone(), value.clone());
        }
    }
}

/// Which generation of a pod was seen stays with those who do not say it (`preserveOldObservedGeneration`).
fn keep_observed(old: &Value, new: &mut Value) {
    const FIELD: &str = "observedGeneration";
    let is_unsaid = |of: &Value| of[FIELD].as_i64().unwrap_or(0) == 0;
    if is_unsaid(new) {
        set(new, FIELD, old.get(FIELD).cloned());
    }
    let mut known: Vec<&Value> = old["conditions"].as_array().into_iter().flatten().collect();
    for condition in new.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(at) = known.iter().position(|one| one["type"] == condition["type"]) else { continue };
        let before = known.remove(at);
        if is_unsaid(condition) {
            set(condition, FIELD, before.get(FIELD).cloned());
        }
    }
}

/// The metadata that a write of a status leaves alone, as the strategies of the kinds say (`statusStrategy.PrepareForUpdate`).
fn kept_of_status(of: (&str, &str)) -> &'static [&'static str] {
    match of {
        ("", "pods") => &["ownerReferences"],
        ("apps", "deployments") => &["labels"],
        (
            "admissionregistration.k8s.io"
            | "apiregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io",
            _,
        )
        | ("networking.k8s.io", "servicecidrs")
        | ("storage.k8s.io", "volumeattachments") => ALL,
        _ => &[],
    }
}

/// The metadata that stays as it is whatever is sent, by the subresource that is written.
pub(in crate::verbs) fn kept_metadata(resource: &Resource, subresource: &str) -> &'static [&'static str] {
    match subresource {
        "status" if resource.custom.is_none() => kept_of_status(super::of(resource)),
        _ if is_part_of_pod(resource, subresource) => ALL,
        _ => &[],
    }
}

/// What is asked for stays, and what was issued is not for those who approve.
pub(super) fn keep_request(subresource: &str, old: &Value, new: &mut Value) {
    set(new, "spec", old.get("spec").cloned());
    if subresource == "approval" {
        set(&mut new["status"], "certificate", old["status"].get("certificate").cloned());
    }
}
