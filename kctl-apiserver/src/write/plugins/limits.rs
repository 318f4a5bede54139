//! The admission plugin `LimitRanger`: sets default requests and limits, and rejects Pods and claims outside the
//! bounds.
//!
//! Upstream: `plugin/pkg/admission/limitranger/admission.go`.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    amounts::{self, Amounts, Side},
    quantity::Quantity,
    state::State,
    status::StatusError,
    write::plugins::{Forbid, text},
};

/// The annotation of a Pod that lists what was set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Returns the `LimitRanges` of a namespace, by name.
fn ranges(state: &State, namespace: &str) -> Vec<Arc<Value>> {
    state.objects(&crate::kinds::core::limit_range::KIND.group_resource(), Some(namespace)).collect()
}

/// Returns the limits of a range for a type, such as `Container`.
fn limits<'a>(range: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    range["spec"]["limits"].as_array().into_iter().flatten().filter(move |limit| limit["type"] == kind)
}

/// Sets the default requests and limits of a Pod's containers.
pub(super) fn fill(state: &State, namespace: &str, pod: &mut Value) {
    for range in ranges(state, namespace) {
        let said: Vec<String> = [("containers", "container"), ("initContainers", "init container")]
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
        if !said.is_empty() {
            pod["metadata"]["annotations"][ANNOTATION] = format!("LimitRanger plugin set: {}", said.join("; ")).into();
        }
    }
    if pod["status"]["qosClass"].is_string() {
        pod["status"]["qosClass"] = crate::defaulting::quality_of_service(&mut pod["spec"]).into();
    }
}

/// Sets the defaults of one container. Returns what was set, for the annotation.
fn fill_one(range: &Value, container: &mut Value, what: &str) -> Vec<String> {
    let mut said = Vec::new();
    for (from, to, shown) in [("defaultRequest", "requests", "request"), ("default", "limits", "limit")] {
        let mut names = BTreeSet::new();
        // The last of several limits wins.
        let wanted: serde_json::Map<String, Value> = limits(range, "Container")
            .filter_map(|limit| limit[from].as_object())
            .flat_map(|amounts| amounts.iter().map(|(name, amount)| (name.clone(), amount.clone())))
            .collect();
        for (name, amount) in wanted {
            if container["resources"][to][&name].is_null() {
                container["resources"][to][&name] = amount;
                names.insert(name);
            }
        }
        if !names.is_empty() {
            let names: Vec<String> = names.into_iter().collect();
            said.push(format!("{} {shown} for {what} {}", names.join(", "), text(&container["name"])));
        }
        if container["resources"][to].is_null()
            && let Some(resources) = container["resources"].as_object_mut()
        {
            resources.remove(to);
        }
    }
    said
}

/// Rejects a Pod outside a limit of its namespace.
pub(super) fn check_pod(state: &State, forbid: &Forbid<'_>, namespace: &str, pod: &Value) -> Result<(), StatusError> {
    for range in ranges(state, namespace) {
        let mut errors = Vec::new();
        let list = range["spec"]["limits"].as_array().into_iter().flatten();
        for limit in list {
            let kind = text(&limit["type"]);
            if kind == "Container" {
                for list in ["containers", "initContainers"] {
                    for container in pod["spec"][list].as_array().into_iter().flatten() {
                        let (requests, limits) = (Side::Requests.of(container), Side::Limits.of(container));
                        errors.extend(beyond(kind, limit, &requests, &limits));
                    }
                }
            }
            if kind == "Pod" {
                let of_pod = |side| amounts::of_whole_pod(&pod["spec"], side);
                errors.extend(beyond(kind, limit, &of_pod(Side::Requests), &of_pod(Side::Limits)));
            }
        }
        forbid.reject_all(&errors)?;
    }
    Ok(())
}

/// Rejects a `PersistentVolumeClaim` whose request is outside a limit of its namespace.
pub(super) fn check_claim(
    state: &State,
    forbid: &Forbid<'_>,
    namespace: &str,
    claim: &Value,
) -> Result<(), StatusError> {
    let requests = Side::Requests.of(&claim["spec"]);
    for range in ranges(state, namespace) {
        let mut errors = Vec::new();
        for limit in limits(&range, "PersistentVolumeClaim") {
            let kind = "PersistentVolumeClaim";
            for (name, least) in amounts::read(&limit["min"]) {
                errors.extend(too_small(kind, &name, least, &requests, &Amounts::new()));
            }
            for (name, most) in amounts::read(&limit["max"]) {
                let said = format!("maximum {name} usage per {kind} is {most}");
                match requests.get(&name) {
                    None => errors.push(format!("{said}.  No request is specified")),
                    Some(asked) if asked.thousandths() > most.thousandths() => {
                        errors.push(format!("{said}, but request is {asked}"));
                    }
                    Some(_) => {}
                }
            }
        }
        forbid.reject_all(&errors)?;
    }
    Ok(())
}

/// Returns the messages of all violations of one limit.
fn beyond(kind: &str, limit: &Value, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut errors = Vec::new();
    for (name, least) in amounts::read(&limit["min"]) {
        errors.extend(too_small(kind, &name, least, requests, limits));
    }
    for (name, most) in amounts::read(&limit["max"]) {
        errors.extend(too_large(kind, &name, most, requests, limits));
    }
    for (name, most) in amounts::read(&limit["maxLimitRequestRatio"]) {
        errors.extend(too_far(kind, &name, most, requests, limits));
    }
    errors
}

/// Checks `min`.
fn too_small(kind: &str, name: &str, least: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let said = format!("minimum {name} usage per {kind} is {least}");
    let is_small = |amount: &&Quantity| amount.thousandths() < least.thousandths();
    let Some(asked) = requests.get(name) else { return Some(format!("{said}.  No request is specified")) };
    if is_small(&asked) {
        return Some(format!("{said}, but request is {asked}"));
    }
    limits.get(name).filter(is_small).map(|limit| format!("{said}, but limit is {limit}"))
}

/// Checks `max`.
fn too_large(kind: &str, name: &str, most: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let said = format!("maximum {name} usage per {kind} is {most}");
    let is_large = |amount: &&Quantity| amount.thousandths() > most.thousandths();
    let Some(limit) = limits.get(name) else { return Some(format!("{said}.  No limit is specified")) };
    if is_large(&limit) {
        return Some(format!("{said}, but limit is {limit}"));
    }
    requests.get(name).filter(is_large).map(|asked| format!("{said}, but request is {asked}"))
}

/// Checks `maxLimitRequestRatio`.
fn too_far(kind: &str, name: &str, most: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let said = format!("{name} max limit to request ratio per {kind} is {most}");
    let amount = |of: &Amounts| of.get(name).map(|amount| amount.thousandths()).filter(|amount| *amount != 0);
    let Some(asked) = amount(requests) else {
        return Some(format!("{said}, but no request is specified or request is 0"));
    };
    let Some(limit) = amount(limits) else {
        return Some(format!("{said}, but no limit is specified or limit is 0"));
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "the real server divides floating point numbers, and shows six places"
    )]
    let (ratio, most) = (limit as f64 / asked as f64, most.thousandths() as f64);
    (ratio * 1000.0 > most).then(|| format!("{said}, but provided ratio is {ratio:.6}"))
}

/// Rejects a resize of a Pod that does not fit on its node (`PodResizeValidator`).
pub(super) fn check_resize(state: &State, forbid: &Forbid<'_>, old: &Value, pod: &Value) -> Result<(), StatusError> {
    let name = text(&pod["spec"]["nodeName"]);
    if name.is_empty() || old["metadata"]["generation"] == pod["metadata"]["generation"] {
        return Ok(());
    }
    let Some(node) = state.get(&crate::kinds::core::node::KIND.group_resource(), &(String::new(), name.to_owned()))
    else {
        return forbid.reject(&format!("node {name:?} not found"));
    };
    let with_cause = |why: &str, reason: &str| {
        let mut error = forbid.error(why);
        error.details["causes"] = json!([{ "reason": reason }]);
        Err(error)
    };
    let system = text(&node["metadata"]["labels"]["kubernetes.io/os"]);
    if !["", "linux"].contains(&system) {
        let why = format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return with_cause(&why, "UnsupportedPlatform");
    }
    let mut requests = amounts::of_whole_pod(&pod["spec"], Side::Requests);
    amounts::add(&mut requests, &amounts::read(&pod["spec"]["overhead"]));
    let room = amounts::read(&node["status"]["allocatable"]);
    let amount = |of: &Amounts, name: &str| of.get(name).copied().unwrap_or(Quantity::ZERO);
    let told = ["cpu", "memory"].into_iter().filter_map(|name| {
        let (asked, room) = (amount(&requests, name), amount(&room, name));
        let shown = |amount: Quantity| if name == "cpu" { amount.thousandths() } else { amount.units() };
        (asked.thousandths() > room.thousandths())
            .then(|| format!("{name}, requested: {}, allocatable: {}", shown(asked), shown(room)))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return Ok(());
    }
    with_cause(&format!("node didn't have enough allocatable resources: {}", told.join("; ")), "NodeCapacity")
}
