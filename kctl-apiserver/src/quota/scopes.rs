//! Which objects a quota is about, by its scopes.

use serde_json::Value;

use super::{pods, usage::Counter};
use crate::admit::defaults::quality_of_service;

/// Whether all scopes of a quota are about an object. What is neither a pod nor a claim is in no scope.
pub(super) fn fit(quota: &Value, counter: &Counter, object: &Value) -> bool {
    let items = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
    let plain = items(&quota["spec"]["scopes"]);
    let selected = items(&quota["spec"]["scopeSelector"]["matchExpressions"]);
    let fits = |scope: &Value, operator: &str, values: &Value| {
        let scope = scope.as_str().unwrap_or_default();
        if counter.is_of("pods") {
            pod_fits(object, scope, operator, values)
        } else {
            counter.is_of("persistentvolumeclaims")
                && scope == "VolumeAttributesClass"
                && selects(&classes(object), operator, values)
        }
    };
    plain.iter().all(|scope| fits(scope, "Exists", &Value::Null))
        && selected
            .iter()
            .all(|one| fits(&one["scopeName"], one["operator"].as_str().unwrap_or_default(), &one["values"]))
}

fn pod_fits(pod: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    match scope {
        "Terminating" => pods::has_deadline(pod),
        "NotTerminating" => !pods::has_deadline(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "CrossNamespacePodAffinity" => looks_elsewhere(pod),
        "PriorityClass" => {
            let class = pod["spec"]["priorityClassName"].as_str().filter(|class| !class.is_empty());
            selects(&class.into_iter().collect::<Vec<_>>(), operator, values)
        }
        _ => false,
    }
}

/// Whether one of the names is selected, or that there is none.
fn selects(names: &[&str], operator: &str, values: &Value) -> bool {
    let is_listed = |name: &&str| values.as_array().is_some_and(|values| values.iter().any(|value| value == name));
    match operator {
        "In" => names.iter().any(is_listed),
        "NotIn" => names.is_empty() || !names.iter().all(is_listed),
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        _ => false,
    }
}

fn classes(claim: &Value) -> Vec<&str> {
    let places = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    let named = places.iter().filter_map(|place| claim.pointer(place)?.as_str());
    named.filter(|name| !name.is_empty()).collect()
}

fn is_best_effort(pod: &Value) -> bool {
    let known = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    known.unwrap_or_else(|| quality_of_service(&mut pod["spec"].clone())) == "BestEffort"
}

/// Whether a pod has to be near pods of other namespaces, or away from them.
fn looks_elsewhere(pod: &Value) -> bool {
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
