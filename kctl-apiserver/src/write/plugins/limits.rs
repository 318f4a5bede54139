//! The admission plugin `LimitRanger`: sets default requests and limits, and rejects Pods and claims outside the
//! bounds.
//!
//! Upstream: `plugin/pkg/admission/limitranger/admission.go`.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    amounts::{self, Amounts, Side},
    field_errors::text,
    quantity::Quantity,
    state::State,
    status::StatusError,
    write::plugins::Forbid,
};

/// The annotation of a Pod that lists the defaults that were set.
///
/// It shows users why their Pod has resources that they did not request.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Returns the `LimitRanges` of a namespace, by name.
///
/// Defaults of a range that comes later do not override those of an earlier one.
fn ranges(state: &State, namespace: &str) -> Vec<Arc<Value>> {
    state.objects_of(&crate::kinds::core::limit_range::KIND, Some(namespace)).collect()
}

/// Returns the limits of a range for a type, such as `Container`.
///
/// A range may have several items of one type.
fn limits<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    range["spec"]["limits"].as_array().into_iter().flatten().filter(move |limit| limit["type"] == kind)
}

/// Sets the default requests and limits of a Pod's containers.
///
/// Defaults change the quality of service, so the class is computed again if the Pod has one.
pub(super) fn fill(state: &State, namespace: &str, pod: &mut Value) {
    for range in ranges(state, namespace) {
        let messages: Vec<String> = [("containers", "container"), ("initContainers", "init container")]
            .into_iter()
            .flat_map(|(list, what)| {
                let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
                containers
                    .into_iter()
                    .flatten()
                    .flat_map(|container| fill_one(&range, container, what))
                    .collect::<Vec<_>>()
            })
            .collect();
        if !messages.is_empty() {
            pod["metadata"]["annotations"][ANNOTATION] =
                format!("LimitRanger plugin set: {}", messages.join("; ")).into();
        }
    }
    if pod["status"]["qosClass"].is_string() {
        pod["status"]["qosClass"] = crate::defaulting::quality_of_service(&mut pod["spec"]).into();
    }
}

/// Sets the defaults of one container. Returns the names of the set defaults, for the annotation.
///
/// `default` becomes limits, `defaultRequest` requests. Amounts that are present stay. An empty map is removed again.
fn fill_one(range: &Value, container: &mut Value, what: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for (from, to, shown) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
        let mut names = BTreeSet::new();
        // The last of several limits is used.
        let defaults: serde_json::Map<String, Value> = limits(range, "Container")
            .filter_map(|limit| limit[from].as_object())
            .flat_map(|amounts| amounts.iter().map(|(name, amount)| (name.clone(), amount.clone())))
            .collect();
        for (name, amount) in defaults {
            if container["resources"][to][&name].is_null() {
                container["resources"][to][&name] = amount;
                names.insert(name);
            }
        }
        if !names.is_empty() {
            let names: Vec<String> = names.into_iter().collect();
            messages.push(format!("{} {shown} for {what} {}", names.join(", "), text(&container["name"])));
        }
        if container["resources"][to].is_null()
            && let Some(resources) = container["resources"].as_object_mut()
        {
            resources.remove(to);
        }
    }
    messages
}

/// Rejects a Pod outside a limit of its namespace.
///
/// The first range with errors ends the check. `Pod` limits compare sums of all containers.
pub(super) fn check_pod(state: &State, forbid: &Forbid<'_>, namespace: &str, pod: &Value) -> Result<(), StatusError> {
    let of_pod = |side| amounts::of_whole_pod(&pod["spec"], side);
    for range in ranges(state, namespace) {
        let mut errors = Vec::new();
        let mut compare = |kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts| {
            errors.extend(beyond(kind, limit, requests, limits));
            errors.extend(beyond_ratio(kind, limit, requests, limits));
        };
        for limit in limits(&range, "Container") {
            let lists = ["containers", "initContainers"].into_iter();
            for container in lists.flat_map(|list| pod["spec"][list].as_array().into_iter().flatten()) {
                compare("container", limit, &Side::Requests.amounts(container), &Side::Limits.amounts(container));
            }
        }
        for limit in limits(&range, "Pod") {
            compare("pod", limit, &of_pod(Side::Requests), &of_pod(Side::Limits));
        }
        forbid.reject_all(&errors)?;
    }
    Ok(())
}

/// Rejects a `PersistentVolumeClaim` whose request is outside a limit of its namespace.
///
/// Only the storage request is compared; limits of a claim are compared as requests.
pub(super) fn check_claim(
    state: &State,
    forbid: &Forbid<'_>,
    namespace: &str,
    claim: &Value,
) -> Result<(), StatusError> {
    let requests = Side::Requests.amounts(&claim["spec"]);
    for range in ranges(state, namespace) {
        let limits = limits(&range, "PersistentVolumeClaim");
        let errors: Vec<String> = limits.flat_map(|limit| beyond("claim", limit, &requests, &requests)).collect();
        forbid.reject_all(&errors)?;
    }
    Ok(())
}

/// Compares amounts with the bounds of a `LimitRange` item. A resource with a minimum must have a request, one with a
/// maximum a limit.
///
/// Amounts at the bound are allowed.
fn beyond(kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut errors = Vec::new();
    for (name, least) in amounts::read(&limit["min"]) {
        let is_small = |amounts: &Amounts| amounts.get(&name).is_some_and(|amount| *amount < least);
        if !requests.contains_key(&name) || is_small(requests) || is_small(limits) {
            errors.push(format!("each {kind} must request at least {least} of {name}"));
        }
    }
    for (name, most) in amounts::read(&limit["max"]) {
        let is_large = |amounts: &Amounts| amounts.get(&name).is_some_and(|amount| *amount > most);
        if !limits.contains_key(&name) || is_large(limits) || is_large(requests) {
            errors.push(format!("each {kind} must be limited to at most {most} of {name}"));
        }
    }
    errors
}

/// Compares the ratio of limit to request with `maxLimitRequestRatio`. A resource with a ratio must have both amounts.
///
/// A ratio is in thousandths, like amounts.
fn beyond_ratio(kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let of_limit = amounts::read(&limit["maxLimitRequestRatio"]).into_iter();
    let wrong = of_limit.filter(|(name, most)| {
        let amount = |amounts: &Amounts| amounts.get(name).map_or(0, |amount| amount.in_steps(3));
        let (request, limit) = (amount(requests), amount(limits));
        #[expect(clippy::cast_precision_loss, reason = "kube-apiserver divides floating point numbers")]
        let (ratio, most) = (limit as f64 / request as f64, most.in_steps(3) as f64);
        request == 0 || limit == 0 || ratio * 1000.0 > most
    });
    let why = |(name, most)| format!("the limit of {name} must be at most {most} times the request of each {kind}");
    wrong.map(why).collect()
}

/// Rejects a resize of a Pod that does not fit on its node (`PodResizeValidator`).
///
/// The reason is in `details.causes`. A write that does not change the spec is not checked.
pub(super) fn check_resize(state: &State, forbid: &Forbid<'_>, old: &Value, pod: &Value) -> Result<(), StatusError> {
    let name = text(&pod["spec"]["nodeName"]);
    if name.is_empty() || old["metadata"]["generation"] == pod["metadata"]["generation"] {
        return Ok(());
    }
    let Some(node) = state.object(&crate::kinds::core::node::KIND, "", name) else {
        return forbid.reject(&format!("node {name:?} not found"));
    };
    let with_cause = |why: &str, reason: &str| {
        let mut error = forbid.error(why);
        error.details["causes"] = json!([{ "reason": reason }]);
        Err(error)
    };
    let system = text(&node["metadata"]["labels"]["kubernetes.io/os"]);
    if !["", "linux"].contains(&system) {
        return with_cause(&format!("pods are resized on linux alone, node {name} is {system}"), "UnsupportedPlatform");
    }
    let mut requests = amounts::of_whole_pod(&pod["spec"], Side::Requests);
    amounts::add(&mut requests, &amounts::read(&pod["spec"]["overhead"]));
    let room = amounts::read(&node["status"]["allocatable"]);
    let amount = |amounts: &Amounts, name: &str| -> Quantity { amounts.get(name).copied().unwrap_or_default() };
    let is_beyond = |name: &&str| amount(&requests, name) > amount(&room, name);
    match ["cpu", "memory"].into_iter().find(is_beyond) {
        None => Ok(()),
        Some(resource) => with_cause(&format!("the node has not enough {resource}"), "NodeCapacity"),
    }
}
