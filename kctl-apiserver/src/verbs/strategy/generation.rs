//! What counts as a generation of an object.

use serde_json::Value;

use super::of;
use crate::kinds::Resource;

/// Built-in resources whose `metadata.generation` counts changes, as the real server was seen to do it.
const COUNTED: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
];

/// Of these, either the first generation has no number or it stays the only one.
const UNNUMBERED: &[(&str, &str)] = &[("storage.k8s.io", "csidrivers")];

const UNCOUNTED: &[(&str, &str)] = &[("scheduling.k8s.io", "priorityclasses")];

/// Whether a new object has a generation.
pub(super) fn has_generation(resource: &Resource) -> bool {
    resource.custom.is_some() || COUNTED.contains(&of(resource))
}

pub(in crate::verbs) fn counts_generations(resource: &Resource) -> bool {
    let of = of(resource);
    UNNUMBERED.contains(&of) || (has_generation(resource) && !UNCOUNTED.contains(&of))
}

pub(super) fn changes_generation(resource: &Resource, old: &Value, new: &Value) -> bool {
    let ignored =
        |key: &str| key == "metadata" || (key == "status" && (resource.custom.is_none() || resource.has_status()));
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return false };
    old.iter().any(|(key, value)| !ignored(key) && new.get(key) != Some(value))
        || new.keys().any(|key| !ignored(key) && !old.contains_key(key))
}
