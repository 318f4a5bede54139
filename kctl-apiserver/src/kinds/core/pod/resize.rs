//! Validation of writes to `pods/resize` and `pods/ephemeralcontainers`.
//!
//! Both compare the stored Pod with the one that would be stored, which `parts.rs` has put together.

use std::collections::HashSet;

use serde_json::Value;

use crate::{
    defaulting,
    field::Field,
    field_errors::Errors,
    json_path::{entries, set},
};

/// Resources that can change while a Pod runs.
const SIZES: [&str; 2] = ["cpu", "memory"];
/// Lists of containers whose resources may change. Ephemeral containers have no resources.
const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Validates a write to `pods/resize`: the whole new Pod, then the change (`ValidatePodResize`). `FieldValueForbidden`
/// for Windows Pods, for changed container lists, for removed requests or limits, and for changes other than `cpu` and
/// `memory`. `FieldValueInvalid` at `spec` if the QoS class would change. Nothing else is reported for a Windows Pod.
/// Changed container lists end the validation, because the later comparisons pair containers by index.
pub(crate) fn validate_resize(old: &Value, new: &Value, errors: &mut Errors) {
    let was = &old["spec"];
    if new["spec"]["os"]["name"] == "windows" {
        // kube-apiserver reports this path, which is not the path of a field.
        errors.forbidden("[]", "windows pods cannot be resized");
        return;
    }
    crate::validation::pod::pod(new, errors);
    let spec = Field::new(&new["spec"], "spec", errors);
    let class = spec.with(&new["status"]["qosClass"]);
    let keeps_class = old["status"]["qosClass"] == defaulting::quality_of_service(&mut spec.value().clone());
    class.invalid_if(!keeps_class, "Pod QOS Class may not change as a result of resizing");
    if !spec.is_valid_by(|| LISTS.iter().for_each(|list| validate_same_containers(list, &was[list], &spec.at(list)))) {
        return;
    }
    for list in LISTS {
        for ((_, was), is) in entries(&was[list]).zip(spec.at(list).items()) {
            forbid_removal(&was["resources"], &is.at("resources"));
        }
    }
    forbid_removal(&was["resources"], &spec.at("resources"));
    let changes_more = without_sizes(was) != without_sizes(&spec);
    spec.forbidden_if(changes_more, "only cpu and memory resources are mutable");
}

/// Validates that a resize keeps the number, names and order of the containers. If the numbers differ, names are not
/// compared, because each container after the change would differ.
fn validate_same_containers(list: &str, old: &Value, new: &Field<'_>) {
    if entries(old).count() != entries(new).count() {
        return new.forbidden(format_args!("{list} may not be added or removed on resize"));
    }
    for ((_, old), new) in entries(old).zip(new.items()) {
        let is_other = old["name"] != new["name"];
        new.at("name").forbidden_if(is_other, format_args!("{list} may not be renamed or reordered on resize"));
    }
}

/// Validates that a resize removes no `cpu` or `memory` request or limit (`FieldValueForbidden`). An amount may be
/// changed, and one may be added.
fn forbid_removal(old: &Value, resources: &Field<'_>) {
    for name in ["requests", "limits"] {
        let part = resources.at(name);
        let is_removed = SIZES.iter().any(|size| !old[name][*size].is_null() && part[*size].is_null());
        part.forbidden_if(is_removed, format_args!("resource {name} cannot be removed"));
    }
}

/// Returns the spec without the amounts that a resize may change, for comparison.
fn without_sizes(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for list in LISTS {
        spec[list].as_array_mut().into_iter().flatten().for_each(remove_resizable_resources);
    }
    remove_resizable_resources(&mut spec);
    spec
}

/// Removes `cpu` and `memory` from `resources`, and the maps and the field that become empty by it. An absent map and
/// an empty one are the same in Go, so they must be equal here.
fn remove_resizable_resources(object: &mut Value) {
    let Some(Value::Object(resources)) = object.get_mut("resources") else { return };
    for part in ["requests", "limits"] {
        if let Some(Value::Object(amounts)) = resources.get_mut(part) {
            amounts.retain(|name, _| !SIZES.contains(&name.as_str()));
        }
    }
    resources.retain(|_, value| value.as_object().is_none_or(|fields| !fields.is_empty()));
    if resources.is_empty() {
        set(object, "resources", None);
    }
}

/// Validates a write to `pods/ephemeralcontainers`: the whole new Pod, then that containers are only added
/// (`FieldValueForbidden` otherwise). Upstream: `ValidatePodEphemeralContainersUpdate` in
/// `pkg/apis/core/validation/validation.go`.
pub(crate) fn validate_ephemeral_containers(old: &Value, new: &Value, errors: &mut Errors) {
    crate::validation::pod::pod(new, errors);
    let containers = Field::new(&new["spec"]["ephemeralContainers"], "spec.ephemeralContainers", errors);
    let sent: HashSet<&Value> = entries(&containers).map(|(_, container)| container).collect();
    for (_, existing) in entries(&old["spec"]["ephemeralContainers"]) {
        let is_kept = sent.contains(existing);
        let name = &existing["name"];
        containers.forbidden_if(!is_kept, format_args!("the existing container {name} may not be removed or changed"));
    }
}
