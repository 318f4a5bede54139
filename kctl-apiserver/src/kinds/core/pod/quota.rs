//! Usage of quotas by Pods.
//!
//! Behaviour: `k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go`.
//!
//! A terminated Pod uses no quota. A Pod without a required amount is rejected with 403 by the quota that counts the
//! amount.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kctl_apimachinery::time;
use serde_json::Value;

use crate::{
    amounts::{self, Amounts, ResourceMap, is_pages, is_standard_pod_resource},
    defaulting::quality_of_service,
    field_errors::text,
    json_path::{by_name, entries},
    kinds::core::{is_selected, resource_quota::validation::counts_pods},
    quantity,
    validation::resources::is_native,
};

/// Amounts that each container has to state if a quota counts them.
const REQUIRED: &[&str] = &["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// Returns `true` for quota names that Pods use: the fixed ones, huge pages, and requests of extended resources. A limit
/// of an extended resource always equals the request, so only requests are counted.
pub(super) fn counts(name: &str) -> bool {
    let plain = name.strip_prefix("requests.").unwrap_or(name);
    counts_pods(name) || is_pages(plain) || (plain != name && !is_native(plain))
}

/// Returns `true` if the Pod has `activeDeadlineSeconds`, which decides between `Terminating` and `NotTerminating`.
/// Upstream: `IsTerminating`. The scope is about Pods that end by design, not about Pods that are being deleted.
pub(super) fn has_deadline(pod: &Value) -> bool {
    pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0)
}

/// Returns the amounts by the names that quotas have for them. `cpu` and `requests.cpu` are two names of one amount; a
/// quota may have either.
fn amounts_by_quota_name(requests: &Amounts, limits: &Amounts) -> Amounts {
    let is_standard = |name: &str| ["cpu", "memory", "ephemeral-storage"].contains(&name);
    let mut named = Amounts::from([("pods".to_owned(), quantity::count(1))]);
    for (name, amount) in requests {
        let is_plain = is_standard(name) || is_pages(name);
        if is_plain {
            named.insert(name.clone(), *amount);
        }
        if is_plain || !is_native(name) {
            named.insert(format!("requests.{name}"), *amount);
        }
    }
    let limited = limits.iter().filter(|(name, _)| is_standard(name));
    named.extend(limited.map(|(name, amount)| (format!("limits.{name}"), *amount)));
    named
}

/// Returns the requests and limits of the whole Pod with its overhead, and 1 for `pods`. The overhead adds to a limit
/// only if the containers have one. `amounts::pod_amounts` also counts init containers and pod-level resources. Unlike
/// upstream (`UseStatusResources`), resources in the status do not count: no kubelet runs here.
pub(super) fn usage(spec: &Value) -> Amounts {
    let overhead = amounts::read(&spec["overhead"]);
    let mut requests = amounts::pod_amounts(spec, ResourceMap::Requests);
    amounts::add(&mut requests, &overhead);
    let mut limits = amounts::pod_amounts(spec, ResourceMap::Limits);
    let limited: Amounts = overhead.into_iter().filter(|(name, _)| limits.contains_key(name)).collect();
    amounts::add(&mut limits, &limited);
    amounts_by_quota_name(&requests, &limits)
}

/// Returns an error if a container does not state an amount that the quota counts, unless the Pod states it for all.
/// `counted` are the names in the quota.
pub(super) fn missing_amount_error(counted: &BTreeSet<&str>, spec: &Value) -> Option<String> {
    if [ResourceMap::Requests, ResourceMap::Limits]
        .iter()
        .any(|side| side.amounts(spec).keys().any(|name| is_standard_pod_resource(name)))
    {
        return None;
    }
    let lists = ["containers", "initContainers"].into_iter();
    let mut containers = lists.flat_map(|list| spec[list].as_array().into_iter().flatten());
    containers.find_map(|container| {
        let stated =
            amounts_by_quota_name(&ResourceMap::Requests.amounts(container), &ResourceMap::Limits.amounts(container));
        let missing = counted.iter().find(|name| REQUIRED.contains(name) && !stated.contains_key(**name))?;
        Some(format!("container {} must specify {missing}", container["name"]))
    })
}

/// Returns `true` if a Pod has terminated, or should have by now (`QuotaV1Pod`). A deleted Pod no longer counts once
/// its grace period has passed twice: the deletion time already includes it once.
pub(crate) fn is_spent(pod: &Value, now: Timestamp) -> bool {
    if ["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default()) {
        return true;
    }
    let meta = &pod["metadata"];
    let due = meta["deletionTimestamp"].as_str().and_then(time::parse);
    let (Some(due), Some(grace)) = (due, meta["deletionGracePeriodSeconds"].as_i64()) else { return false };
    now.duration_since(due) > jiff::SignedDuration::from_secs(grace)
}

/// Returns `true` if a Pod may use less quota than before: its deadline has changed, a resize has taken effect, or it
/// has terminated.
pub(super) fn frees_usage(old: Option<&Value>, new: &Value, now: Timestamp) -> bool {
    old.is_some_and(|old| {
        old["spec"]["activeDeadlineSeconds"] != new["spec"]["activeDeadlineSeconds"]
            || has_resized_container(old, new)
            || (!is_spent(old, now) && is_spent(new, now))
    })
}

/// Returns `true` if the status reports other resources of a container than before (`hasResourcesChanged`). A kubelet
/// writes them when a resize has taken effect.
fn has_resized_container(old: &Value, new: &Value) -> bool {
    ["containerStatuses", "initContainerStatuses"].iter().any(|list| {
        let reported = by_name(&new["status"][*list]);
        entries(&old["status"][*list]).any(|(_, was)| {
            let is = reported.get(text(&was["name"]));
            is.is_some_and(|is| is["resources"] != was["resources"])
        })
    })
}

/// Returns `true` if a Pod is in the scope. A scope without operator and values, from `spec.scopes`, has the operator
/// `Exists`.
pub(super) fn is_in_scope(pod: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    match scope {
        "Terminating" => has_deadline(pod),
        "NotTerminating" => !has_deadline(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "CrossNamespacePodAffinity" => has_cross_namespace_affinity(pod),
        "PriorityClass" => {
            let class = pod["spec"]["priorityClassName"].as_str().filter(|class| !class.is_empty());
            is_selected(&class.into_iter().collect::<Vec<_>>(), operator, values)
        }
        _ => false,
    }
}

/// Returns `true` for QoS class `BestEffort`: the class in the status, or else the class computed from the spec.
fn is_best_effort(pod: &Value) -> bool {
    let recorded = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    recorded.unwrap_or_else(|| quality_of_service(&mut pod["spec"].clone())) == "BestEffort"
}

/// Returns `true` if a term of affinity is about Pods of other namespaces. Either names of namespaces or a namespace
/// selector is enough, even an empty one: it selects all namespaces.
fn has_cross_namespace_affinity(pod: &Value) -> bool {
    let elsewhere = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|all| !all.is_empty()) || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &pod["spec"]["affinity"][*kind];
        let required = affinity["requiredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        let preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        required.chain(preferred.map(|weighted| &weighted["podAffinityTerm"])).any(elsewhere)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resize_that_took_effect_frees_usage() {
        let pod = |cpu: &str| {
            let resources = json!({ "requests": { "cpu": cpu } });
            json!({ "spec": {}, "status": { "containerStatuses": [{ "name": "c", "resources": resources }] } })
        };
        for (cpu, expected) in [("1", false), ("500m", true)] {
            assert_eq!(frees_usage(Some(&pod("1")), &pod(cpu), Timestamp::UNIX_EPOCH), expected, "{cpu}");
        }
    }
}
