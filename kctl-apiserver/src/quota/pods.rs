//! What pods use of a quota.
//!
//! Behaviour: `k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::admit::{
    amounts::{self, Amounts, Quantity, Side},
    rules::COUNTED_OF_PODS,
};

/// What each container has to say where it is counted.
const REQUIRED: &[&str] = &["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const PAGES: &str = "hugepages-";

pub(super) fn counts(name: &str) -> bool {
    let plain = name.strip_prefix("requests.").unwrap_or(name);
    COUNTED_OF_PODS.contains(&name) || plain.starts_with(PAGES) || (plain != name && is_extended(plain))
}

/// Resources that neither Kubernetes nor a quota has named.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

pub(super) fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// The amounts by the names that quotas have for them.
fn named(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut named = Amounts::from([("pods".to_owned(), Quantity::count(1))]);
    for (name, amount) in requests {
        let is_plain = ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) || name.starts_with(PAGES);
        if is_plain {
            named.insert(name.clone(), *amount);
        }
        if is_plain || is_extended(name) {
            named.insert(format!("requests.{name}"), *amount);
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = limits.get(name) {
            named.insert(format!("limits.{name}"), *amount);
        }
    }
    named
}

pub(super) fn usage(spec: &Value) -> Amounts {
    let overhead = amounts::read(&spec["overhead"]);
    let mut requests = amounts::of_whole_pod(spec, Side::Requests);
    amounts::add(&mut requests, &overhead);
    let mut limits = amounts::of_whole_pod(spec, Side::Limits);
    let limited: Amounts = overhead.into_iter().filter(|(name, _)| limits.contains_key(name)).collect();
    amounts::add(&mut limits, &limited);
    named(&requests, &limits)
}

/// What containers do not say, unless the pod does for all of them.
pub(super) fn missing(counted: &BTreeSet<&str>, spec: &Value) -> Option<String> {
    let is_of_pods = |name: &String| ["cpu", "memory"].contains(&name.as_str()) || name.starts_with(PAGES);
    if [Side::Requests, Side::Limits].iter().any(|side| side.of(spec).keys().any(is_of_pods)) {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let said = named(&Side::Requests.of(container), &Side::Limits.of(container));
            let unsaid = counted.iter().filter(|name| REQUIRED.contains(name) && !said.contains_key(**name));
            for name in unsaid {
                missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    let told = missing.iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.iter().copied().collect();
        format!("{name} for: {}", containers.join(","))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("must specify {}", told.join("; ")))
}
