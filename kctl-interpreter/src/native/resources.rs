//! The resource requests of a Pod, added up as a scheduler counts them.
//!
//! Karmada's source is `AddPodTemplateRequest` of `util.Resource`. CPU is counted in thousandths of
//! a core, everything else in units or bytes.

use std::collections::BTreeMap;

use kctl_apimachinery::validation::is_extended_resource_name;
use serde_json::{Map, Value};

use crate::quantity::{Format, Quantity};

/// Returns the requests of a decoded `PodSpec`, by resource name.
///
/// The requests of containers are added up. Init containers run before them, so each resource is at
/// least the maximum of any init container. The overhead is added last. Resources that schedulers
/// don't count and zero amounts are left out.
pub(super) fn pod_requests(pod_spec: &Value) -> BTreeMap<String, String> {
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for container in pod_spec["containers"].as_array().into_iter().flatten() {
        for (name, amount) in container_requests(&container["resources"]) {
            let total = totals.entry(name).or_default();
            *total = total.saturating_add(amount);
        }
    }
    for container in pod_spec["initContainers"].as_array().into_iter().flatten() {
        for (name, amount) in container_requests(&container["resources"]) {
            let total = totals.entry(name).or_default();
            *total = amount.max(*total);
        }
    }
    for (name, quantity) in pod_spec["overhead"].as_object().into_iter().flatten() {
        if let Some(amount) = resource_value(name, quantity) {
            let total = totals.entry(name).or_default();
            *total = total.saturating_add(amount);
        }
    }
    let positive = totals.into_iter().filter(|(_, total)| *total > 0);
    positive.map(|(name, total)| (name.to_owned(), format_quantity(name, total))).collect()
}

/// Returns the requests of a container, and its limit where a resource has no request.
fn container_requests(resources: &Value) -> BTreeMap<&str, i64> {
    let quantities = |field: &str| resources[field].as_object().into_iter().flat_map(Map::iter);
    let merged = quantities("limits").chain(quantities("requests"));
    let merged: BTreeMap<_, _> = merged.map(|(name, quantity)| (name.as_str(), quantity)).collect();
    merged.into_iter().filter_map(|(name, quantity)| Some((name, resource_value(name, quantity)?))).collect()
}

/// Returns a quantity in the unit of its resource; `None` for a resource that schedulers don't
/// count, or a malformed quantity.
fn resource_value(name: &str, quantity: &Value) -> Option<i64> {
    let quantity: Quantity = quantity.as_str()?.parse().ok()?;
    match name {
        "cpu" => Some(quantity.milli_value()),
        "memory" | "pods" | "ephemeral-storage" => Some(quantity.value()),
        _ => is_scalar(name).then(|| quantity.value()),
    }
}

/// Returns a total as a quantity: memory, ephemeral storage and huge pages with binary suffixes,
/// everything else with decimal ones.
fn format_quantity(name: &str, total: i64) -> String {
    let quantity = match name {
        "cpu" => Quantity::millis(total, Format::DecimalSi),
        "memory" | "ephemeral-storage" => Quantity::units(total, Format::BinarySi),
        _ if name.starts_with("hugepages-") => Quantity::units(total, Format::BinarySi),
        _ => Quantity::units(total, Format::DecimalSi),
    };
    quantity.to_string()
}

/// Returns `true` for an extended resource, huge pages, a name with `kubernetes.io/`, and
/// attachable volumes (`IsScalarResourceName` in `pkg/scheduler/util` of Kubernetes).
fn is_scalar(name: &str) -> bool {
    name.contains("kubernetes.io/")
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
        || is_extended_resource_name(name)
}
