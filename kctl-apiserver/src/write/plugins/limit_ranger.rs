//! `LimitRanger`: sets default requests and limits, and rejects Pods and claims outside the bounds of a `LimitRange`.
//!
//! Upstream: `LimitRanger.Admit` and `Validate` in `plugin/pkg/admission/limitranger/admission.go`.
//! `SupportsAttributes` and `runLimitFunc` select the requests.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{Mutation, rejection};
use crate::{
    admission::Attributes,
    amounts::{self, Amounts, ResourceMap},
    deletion::is_being_deleted,
    field_errors::text,
    kinds::core::{limit_range, persistent_volume_claim, pod},
    registry::kind::Subresource,
    request::Operation,
    status::StatusError,
    store::Store,
};

/// The annotation of a Pod that lists the defaults that were set. It shows users why their Pod has resources that they
/// did not request.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Sets the defaults of a new or resized Pod. A Pod that is being deleted gets no limits.
pub(super) fn admit(store: &Store, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    if mutation.creates() || mutation.updates(Subresource::Resize).is_some_and(|old| !is_being_deleted(old)) {
        set_defaults(store, &mutation.info.namespace, mutation.object);
    }
    Ok(())
}

/// Checks new and resized Pods. A Pod that is being deleted is not checked.
pub(super) fn validate_pod(store: &Store, attributes: &Attributes<'_>, pod: &Value) -> Result<(), StatusError> {
    let write = (attributes.operation, attributes.info.subresource);
    let is_checked = matches!(write, (Operation::Create, Subresource::Main) | (Operation::Update, Subresource::Resize));
    if !is_checked || attributes.old.as_deref().is_some_and(is_being_deleted) {
        return Ok(());
    }
    check_pod(store, attributes, pod)
}

/// Checks `PersistentVolumeClaims`. A claim that is being deleted is not checked. An update is checked, since it may
/// increase the request.
pub(super) fn validate_claim(store: &Store, attributes: &Attributes<'_>, claim: &Value) -> Result<(), StatusError> {
    let is_whole = attributes.info.subresource.is_main();
    if !is_whole || attributes.old.as_deref().is_some_and(is_being_deleted) {
        return Ok(());
    }
    check_claim(store, attributes, claim)
}

/// Returns the `LimitRanges` of a namespace, by name. Defaults of a range that comes later do not override the defaults
/// of an earlier range.
fn ranges(store: &Store, namespace: &str) -> Vec<Arc<Value>> {
    store.objects_of(&limit_range::KIND, Some(namespace)).collect()
}

/// Returns the limits of a range for a type, such as `Container`. A range may have several items of one type.
fn limits<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    range["spec"]["limits"].as_array().into_iter().flatten().filter(move |limit| limit["type"] == kind)
}

/// Sets the default requests and limits of a Pod's containers. Defaults change the quality of service, so the class is
/// computed again if the Pod has one.
fn set_defaults(store: &Store, namespace: &str, pod: &mut Value) {
    for range in ranges(store, namespace) {
        let mut messages = Vec::new();
        for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            messages.extend(containers.flat_map(|container| set_container_defaults(&range, container, what)));
        }
        if !messages.is_empty() {
            let set = format!("LimitRanger plugin set: {}", messages.join("; "));
            pod["metadata"]["annotations"][ANNOTATION] = set.into();
        }
    }
    if pod["status"]["qosClass"].is_string() {
        pod["status"]["qosClass"] = crate::defaulting::quality_of_service(&mut pod["spec"]).into();
    }
}

/// Sets the defaults of one container. Returns the names of the set defaults, for the annotation. `default` becomes
/// limits, `defaultRequest` requests. Amounts that are present are kept.
fn set_container_defaults(range: &Value, container: &mut Value, what: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for (from, to, label) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
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
            messages.push(format!("{} {label} for {what} {}", names.join(", "), text(&container["name"])));
        }
        if container["resources"][to].is_null()
            && let Some(resources) = container["resources"].as_object_mut()
        {
            resources.remove(to);
        }
    }
    messages
}

/// Rejects a Pod outside a limit of its namespace. The first range with errors ends the check. `Pod` limits compare
/// sums of all containers.
fn check_pod(store: &Store, attributes: &Attributes<'_>, pod: &Value) -> Result<(), StatusError> {
    let pod_amounts = |side| amounts::pod_amounts(&pod["spec"], side);
    for range in ranges(store, &attributes.info.namespace) {
        let mut errors = Vec::new();
        let mut compare = |kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts| {
            errors.extend(bound_errors(kind, limit, requests, limits));
            errors.extend(ratio_errors(kind, limit, requests, limits));
        };
        for limit in limits(&range, "Container") {
            let lists = ["containers", "initContainers"].into_iter();
            for container in lists.flat_map(|list| pod["spec"][list].as_array().into_iter().flatten()) {
                compare(
                    "container",
                    limit,
                    &ResourceMap::Requests.amounts(container),
                    &ResourceMap::Limits.amounts(container),
                );
            }
        }
        for limit in limits(&range, pod::KIND.kind) {
            compare("pod", limit, &pod_amounts(ResourceMap::Requests), &pod_amounts(ResourceMap::Limits));
        }
        reject_if_any(attributes, &errors)?;
    }
    Ok(())
}

/// Rejects a `PersistentVolumeClaim` whose requests are outside a limit of its namespace. The claim's own limits are
/// ignored: its requests are compared with the minimum and with the maximum.
fn check_claim(store: &Store, attributes: &Attributes<'_>, claim: &Value) -> Result<(), StatusError> {
    let requests = ResourceMap::Requests.amounts(&claim["spec"]);
    for range in ranges(store, &attributes.info.namespace) {
        let limits = limits(&range, persistent_volume_claim::KIND.kind);
        let errors: Vec<String> = limits.flat_map(|limit| bound_errors("claim", limit, &requests, &requests)).collect();
        reject_if_any(attributes, &errors)?;
    }
    Ok(())
}

/// Rejects the object if there are errors. The error of the request contains all of them.
fn reject_if_any(attributes: &Attributes<'_>, errors: &[String]) -> Result<(), StatusError> {
    if errors.is_empty() { Ok(()) } else { Err(rejection(attributes, &errors.join(", "))) }
}

/// Compares amounts with the bounds of a `LimitRange` item. A resource with a minimum must have a request, one with a
/// maximum a limit. Amounts at the bound are allowed.
fn bound_errors(kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
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
/// A ratio is in thousandths, like amounts.
fn ratio_errors(kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let ratios = amounts::read(&limit["maxLimitRequestRatio"]).into_iter();
    let wrong = ratios.filter(|(name, most)| {
        let amount = |amounts: &Amounts| amounts.get(name).map_or(0, |amount| amount.in_steps(3));
        let (request, limit) = (amount(requests), amount(limits));
        #[expect(clippy::cast_precision_loss, reason = "kube-apiserver divides floating point numbers")]
        let (ratio, most) = (limit as f64 / request as f64, most.in_steps(3) as f64);
        request == 0 || limit == 0 || ratio * 1000.0 > most
    });
    let why = |(name, most)| format!("the limit of {name} must be at most {most} times the request of each {kind}");
    wrong.map(why).collect()
}
