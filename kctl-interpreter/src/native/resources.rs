//! The resources that a pod asks for, as schedulers count them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    name,
    quantity::{Format, Quantity},
};

/// What quota puts before the name of a resource; the name must still be a name with it.
const QUOTA_PREFIX: &str = "requests.";

/// Returns what a decoded `PodSpec` asks for: the sum of its containers, at least what each init container needs, and
/// the overhead. Limits stand in for requests that are not there; zeros are left out.
pub(super) fn requested(pod_spec: &Value) -> BTreeMap<String, String> {
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for container in pod_spec["containers"].as_array().into_iter().flatten() {
        for (name, amount) in amounts(&container["resources"]) {
            let total = totals.entry(name).or_default();
            *total = total.saturating_add(amount);
        }
    }
    for container in pod_spec["initContainers"].as_array().into_iter().flatten() {
        for (name, amount) in amounts(&container["resources"]) {
            let total = totals.entry(name).or_default();
            *total = amount.max(*total);
        }
    }
    for (name, quantity) in pod_spec["overhead"].as_object().into_iter().flatten() {
        if let Some(amount) = amount(name, quantity) {
            let total = totals.entry(name).or_default();
            *total = total.saturating_add(amount);
        }
    }
    let positive = totals.into_iter().filter(|(_, total)| *total > 0);
    positive.map(|(name, total)| (name.to_owned(), printed(name, total))).collect()
}

/// Returns the requests of a container, and its limits where there is no request.
fn amounts(resources: &Value) -> BTreeMap<&str, i64> {
    let quantities = |of: &str| resources[of].as_object().into_iter().flat_map(Map::iter);
    let merged = quantities("limits").chain(quantities("requests"));
    let merged: BTreeMap<_, _> = merged.map(|(name, quantity)| (name.as_str(), quantity)).collect();
    merged.into_iter().filter_map(|(name, quantity)| Some((name, amount(name, quantity)?))).collect()
}

/// Returns a quantity in the unit that its resource is counted in; `None` for a resource that schedulers do not know.
fn amount(name: &str, quantity: &Value) -> Option<i64> {
    let quantity: Quantity = quantity.as_str()?.parse().ok()?;
    match name {
        "cpu" => Some(quantity.milli_value()),
        "memory" | "pods" | "ephemeral-storage" => Some(quantity.value()),
        _ => is_scalar(name).then(|| quantity.value()),
    }
}

fn printed(name: &str, total: i64) -> String {
    let quantity = match name {
        "cpu" => Quantity::millis(total, Format::DecimalSi),
        "memory" | "ephemeral-storage" => Quantity::units(total, Format::BinarySi),
        _ if name.starts_with("hugepages-") => Quantity::units(total, Format::BinarySi),
        _ => Quantity::units(total, Format::DecimalSi),
    };
    quantity.to_string()
}

/// Tells whether a resource is extended, huge pages, native with a prefix or an attachable volume
/// (`IsScalarResourceName` in `pkg/scheduler/util` of Kubernetes).
fn is_scalar(name: &str) -> bool {
    let is_native = name.contains("kubernetes.io/");
    is_native || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-") || is_extended(name)
}

fn is_extended(name: &str) -> bool {
    if !name.contains('/') || name.starts_with(QUOTA_PREFIX) {
        return false;
    }
    name::is_qualified(&format!("{QUOTA_PREFIX}{name}"))
}
