//! Selectors of pods that are made of their own labels.

use serde_json::{Value, json};

/// Labels that a pod shares with those that it is compared with are written into the selectors, with their values
/// (`applyMatchLabelKeysAndMismatchLabelKeys`).
pub(super) fn select_by_own_labels(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let spec = &mut pod["spec"];
    let mut each = |pointer: &str, part: &str| {
        for term in spec.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(term) = term.pointer_mut(part) {
                add_requirements(term, &labels);
            }
        }
    };
    each("/topologySpreadConstraints", "");
    for kind in ["podAffinity", "podAntiAffinity"] {
        each(&format!("/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution"), "");
        each(&format!("/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution"), "/podAffinityTerm");
    }
}

fn add_requirements(term: &mut Value, labels: &Value) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.get(field).and_then(Value::as_array).cloned().into_iter().flatten() {
            let Some(value) = key.as_str().and_then(|key| labels[key].as_str()) else { continue };
            if !term.get("labelSelector").is_some_and(Value::is_object) {
                continue;
            }
            let requirement = json!({ "key": key, "operator": operator, "values": [value] });
            match &mut term["labelSelector"]["matchExpressions"] {
                Value::Array(list) => list.push(requirement),
                none => *none = json!([requirement]),
            }
        }
    }
}
