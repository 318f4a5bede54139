//! Validation of writes to `pods/resize` and `pods/ephemeralcontainers`.
//!
//! Both compare the stored Pod with the one that would be stored, which `parts.rs` has put
//! together.

use serde_json::Value;

use crate::{
    defaulting,
    field_errors::{Errors, text},
    validation::entries,
};

/// Resources that can change while a Pod runs.
const SIZES: [&str; 2] = ["cpu", "memory"];
/// Lists of containers whose resources may change. Ephemeral containers have no resources.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Validates a write to `pods/resize` (`ValidatePodResize`).
///
/// `FieldValueForbidden` for Windows Pods, for changed container lists, for removed requests or limits, and for changes
/// other than `cpu` and `memory`. `FieldValueInvalid` at `spec` if the QoS class would change. Changed container lists end
/// the validation, because the later comparisons pair containers by index.
pub(crate) fn resize(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    if is["os"]["name"] == "windows" {
        // kube-apiserver reports this path, which is not that of a field.
        errors.forbidden("[]", "windows pods cannot be resized");
        return;
    }
    if old["status"]["qosClass"] != defaulting::quality_of_service(&mut is.clone()) {
        let class = text(&new["status"]["qosClass"]).into();
        errors.invalid("spec", &class, "Pod QOS Class may not change as a result of resizing");
    }
    let n_errors = errors.len();
    for list in LISTS {
        same_containers(list, &was[list], &is[list], errors);
    }
    if errors.len() > n_errors {
        return;
    }
    for list in LISTS {
        for ((index, was), (_, is)) in entries(&was[list]).zip(entries(&is[list])) {
            let path = format!("spec.{list}[{index}].resources");
            nothing_removed(&path, "", &was["resources"], &is["resources"], errors);
        }
    }
    nothing_removed("spec.resources", "pod-level ", &was["resources"], &is["resources"], errors);
    if without_sizes(was) != without_sizes(is) {
        errors.forbidden("spec", "only cpu and memory resources are mutable");
    }
}

/// Validates that a resize keeps the number, names and order of the containers.
///
/// If the numbers differ, names are not compared, because each container after the change would differ.
fn same_containers(list: &str, old: &Value, new: &Value, errors: &mut Errors) {
    let path = format!("spec.{list}");
    if entries(old).count() != entries(new).count() {
        errors.forbidden(&path, &format!("{list} may not be added or removed on resize"));
        return;
    }
    for ((index, old), (_, new)) in entries(old).zip(entries(new)) {
        if old["name"] != new["name"] {
            let detail = format!("{list} may not be renamed or reordered on resize");
            errors.forbidden(&format!("{path}[{index}].name"), &detail);
        }
    }
}

/// Validates that a resize removes no `cpu` or `memory` request or limit (`FieldValueForbidden`).
///
/// An amount may be changed, and one may be added. `whose` begins the message.
fn nothing_removed(path: &str, whose: &str, old: &Value, new: &Value, errors: &mut Errors) {
    for part in ["requests", "limits"] {
        if SIZES.iter().any(|size| !old[part][*size].is_null() && new[part][*size].is_null()) {
            errors.forbidden(&format!("{path}.{part}"), &format!("{whose}resource {part} cannot be removed"));
        }
    }
}

/// Returns the spec without the amounts that a resize may change, for comparison.
fn without_sizes(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for list in LISTS {
        spec[list].as_array_mut().into_iter().flatten().for_each(forget_sizes);
    }
    forget_sizes(&mut spec);
    spec
}

/// Removes `cpu` and `memory` from `resources`, and the maps and the field that become empty by it.
///
/// An absent map and an empty one are the same in Go, so they must be equal here.
fn forget_sizes(object: &mut Value) {
    for part in ["requests", "limits"] {
        if let Some(Value::Object(amounts)) = object.get_mut("resources").and_then(|resources| resources.get_mut(part))
        {
            amounts.retain(|name, _| !SIZES.contains(&name.as_str()));
        }
    }
    let Some(Value::Object(resources)) = object.get_mut("resources") else { return };
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    resources.retain(|_, value| !is_empty(value));
    if resources.is_empty()
        && let Some(object) = object.as_object_mut()
    {
        object.remove("resources");
    }
}

/// Validates that a write to `pods/ephemeralcontainers` only adds containers (`FieldValueForbidden` otherwise).
///
/// Upstream: `ValidatePodEphemeralContainersUpdate` in `pkg/apis/core/validation/validation.go`.
pub(crate) fn ephemeral(old: &Value, new: &Value, errors: &mut Errors) {
    let path = "spec.ephemeralContainers";
    let is = &new["spec"]["ephemeralContainers"];
    for (_, existing) in entries(&old["spec"]["ephemeralContainers"]) {
        if !entries(is).any(|(_, container)| container == existing) {
            let name = &existing["name"];
            errors.forbidden(path, &format!("the existing container {name} may not be removed or changed"));
        }
    }
}
