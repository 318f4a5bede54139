//! What may not change of a volume (`ValidatePersistentVolumeUpdate` of `pkg/apis/core/validation/validation.go`).

use serde_json::Value;

use super::{super::storage, Errors, entries, keeps};

/// Labels of nodes that have other names since they are no longer of a beta.
const RENAMED: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];

pub(crate) fn stays(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    if storage::SOURCES.iter().any(|source| was[*source] != is[*source]) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden("spec.persistentvolumesource", detail);
    }
    keeps("volumeMode", &was["volumeMode"], &is["volumeMode"], errors);
    if !was["nodeAffinity"].is_null() && !is_renamed(&was["nodeAffinity"], &is["nodeAffinity"]) {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.invalid("nodeAffinity", &is["nodeAffinity"], detail);
    }
    let class = "volumeAttributesClassName";
    if !was[class].is_null() && is[class].is_null() {
        errors.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
    }
}

/// Whether nothing but the names of labels is new, and these only where they were of a beta.
fn is_renamed(was: &Value, is: &Value) -> bool {
    let (mut was, mut is) = (was.clone(), is.clone());
    let terms = |affinity: &Value| entries(&affinity["required"]["nodeSelectorTerms"]).count();
    if terms(&was) != terms(&is) {
        return false;
    }
    for index in 0..terms(&is) {
        let term = format!("/required/nodeSelectorTerms/{index}/matchExpressions");
        let (Some(before), Some(after)) = (was.pointer_mut(&term), is.pointer_mut(&term)) else { continue };
        let both = before.as_array_mut().into_iter().flatten().zip(after.as_array_mut().into_iter().flatten());
        for (before, after) in both {
            if RENAMED.iter().any(|(beta, name)| before["key"] == *beta && after["key"] == *name) {
                before["key"] = after["key"].clone();
            }
        }
    }
    was == is
}
