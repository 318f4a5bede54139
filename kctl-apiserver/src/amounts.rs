//! Sums the resources that Pods request: reads their containers and returns sums by resource.
//!
//! Upstream: `k8s.io/component-helpers/resource/helpers.go`, and its copy in the admission plugin `LimitRanger`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity;
pub(crate) use crate::quantity::Quantity;

/// Quantities by the names of their resources.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Resources that `spec.resources` of a Pod may set (pod-level resources), besides huge pages.
const STANDARD_POD_RESOURCES: &[&str] = &["cpu", "memory"];
/// The prefix of the resources of huge pages; the page size follows, such as `hugepages-2Mi`.
pub(crate) const PAGES: &str = "hugepages-";

/// The two maps of `resources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceMap {
    Requests,
    Limits,
}

impl ResourceMap {
    /// Returns the name of the field.
    fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }

    /// Returns the amounts of a container, or of a Pod with pod-level resources.
    pub(crate) fn amounts(self, asks: &Value) -> Amounts {
        read(&asks["resources"][self.name()])
    }
}

/// Parses a map of quantities. Entries that are not quantities are left out.
pub(crate) fn read(map: &Value) -> Amounts {
    let pairs = map.as_object().into_iter().flatten();
    pairs.filter_map(|(name, amount)| Some((name.clone(), quantity::parse(amount.as_str()?)?))).collect()
}

/// Returns the amounts of a Pod: the sum of its containers, or the maximum of its init containers if that is higher
/// (`PodRequests`).
pub(crate) fn aggregate_containers(spec: &Value, side: ResourceMap) -> Amounts {
    let mut sum = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut sum, &side.amounts(container));
    }
    // A sidecar (restartable init container) keeps running: everything after it needs its resources as well.
    let (mut staying, mut greatest) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let mut own = side.amounts(container);
        if container["restartPolicy"] == "Always" {
            add(&mut sum, &own);
            add(&mut staying, &own);
            own = staying.clone();
        } else {
            add(&mut own, &staying);
        }
        raise_to_maximum(&mut greatest, &own);
    }
    raise_to_maximum(&mut sum, &greatest);
    sum
}

/// Returns the amounts of a Pod. Pod-level resources replace the sums of the containers.
pub(crate) fn pod_amounts(spec: &Value, side: ResourceMap) -> Amounts {
    let mut sum = aggregate_containers(spec, side);
    let whole = side.amounts(spec).into_iter();
    sum.extend(whole.filter(|(name, _)| is_standard_pod_resource(name)));
    sum
}

/// Returns `true` if a Pod may have pod-level resources of this name.
pub(crate) fn is_standard_pod_resource(name: &str) -> bool {
    STANDARD_POD_RESOURCES.contains(&name) || is_pages(name)
}

/// Returns `true` for huge pages, which can't be overcommitted.
pub(crate) fn is_pages(name: &str) -> bool {
    name.starts_with(PAGES)
}

/// Adds amounts to a sum.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        sum.entry(name.clone()).and_modify(|total| *total = total.plus(*amount)).or_insert(*amount);
    }
}

/// Raises amounts to the maximum of both maps.
fn raise_to_maximum(highest: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if highest.get(name).is_none_or(|highest| amount > highest) {
            highest.insert(name.clone(), *amount);
        }
    }
}

/// Iterates over a list field of the spec.
fn list<'a>(spec: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    spec[name].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(cpu: &str) -> Value {
        json!({ "resources": { "requests": { "cpu": cpu } } })
    }

    #[track_caller]
    fn check(spec: &Value, expected: &str) {
        assert_eq!(aggregate_containers(spec, ResourceMap::Requests)["cpu"].to_string(), expected);
    }

    #[test]
    fn pod_requests_are_containers_or_init_maximum() {
        let two = [container("1"), container("500m")];
        check(&json!({ "containers": two }), "1500m");
        check(&json!({ "containers": two, "initContainers": [container("1"), container("2")] }), "2");
        let mut staying = container("1");
        staying["restartPolicy"] = "Always".into();
        check(&json!({ "containers": two, "initContainers": [staying.clone()] }), "2500m");
        check(&json!({ "containers": two, "initContainers": [staying.clone(), container("2")] }), "3");
        check(&json!({ "containers": two, "initContainers": [container("2"), staying] }), "2500m");
    }

    #[test]
    fn pod_level_resources_replace_container_sums() {
        let spec = json!({ "containers": [container("1")], "resources": { "requests": { "cpu": "3", "other": "1" } } });
        let whole = pod_amounts(&spec, ResourceMap::Requests);
        assert_eq!(whole["cpu"].to_string(), "3");
        assert!(!whole.contains_key("other"));
    }
}
