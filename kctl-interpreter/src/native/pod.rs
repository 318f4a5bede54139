//! Pods.

use serde_json::Value;

use super::{Items, NativeError, Result, pod_template, workload::members};
use crate::{
    operation::{DependentReference, Replicas},
    typed::{Parts, Typed},
};

fn pod(object: &Value) -> Result<Typed> {
    parts(object, &[])
}

fn parts(object: &Value, parts: Parts) -> Result<Typed> {
    Typed::parts_of_object("Pod", object, parts).map_err(NativeError::object("Pod"))
}

pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas(1, parts(object, pod_template::NEEDS)?.at("/spec"))
}

/// What [`retain`] reads of the observed pod.
const RETAINED: Parts = &[
    ("Pod", &["spec"]),
    ("PodSpec", &["containers", "initContainers", "nodeName", "serviceAccountName", "volumes"]),
    ("Container", &["name", "volumeMounts"]),
];

/// Keeps what the scheduler and admission of the cluster filled in.
pub(super) fn retain(desired: &Value, observed: &Value) -> Result<Value> {
    let (mut desired, observed) = (pod(desired)?, parts(observed, RETAINED)?);
    for pointer in ["/spec/nodeName", "/spec/serviceAccountName", "/spec/volumes"] {
        *desired.at_mut(pointer) = observed.at(pointer).clone();
    }
    for pointer in ["/spec/containers", "/spec/initContainers"] {
        let Some(containers) = desired.at_mut(pointer).as_array_mut() else { continue };
        for container in observed.list(pointer) {
            if let Some(same) = containers.iter_mut().find(|desired| desired["name"] == container["name"]) {
                same["volumeMounts"] = container["volumeMounts"].clone();
            }
        }
    }
    Ok(desired.into_object())
}

/// Takes the worst phase, and joins the states of all containers. A cluster that has not reported counts as pending.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut pod = pod(&object)?;
    let Some(items) = items else { return Ok(pod.into_object()) };
    let mut phases = Vec::new();
    let (mut containers, mut init_containers) = (Vec::new(), Vec::new());
    for member in members("PodStatus", items) {
        let (_cluster, member) = member?;
        phases.push(member.text("/phase").to_owned());
        containers.extend(member.list("/containerStatuses").iter().map(reduced));
        init_containers.extend(member.list("/initContainerStatuses").iter().map(reduced));
    }
    if phases.len() < items.len() {
        phases.push("Pending".to_owned());
    }
    let worst =
        ["Failed", "Pending", "Running", "Succeeded"].into_iter().find(|phase| phases.iter().any(|one| one == phase));
    let mut status = Typed::zero("PodStatus");
    *status.at_mut("/phase") = worst.unwrap_or_default().into();
    *status.at_mut("/containerStatuses") = containers.into();
    if !init_containers.is_empty() {
        *status.at_mut("/initContainerStatuses") = init_containers.into();
    }
    if pod.has("/status", &status) {
        return Ok(object);
    }
    *pod.at_mut("/status") = status.into_value();
    Ok(pod.into_object())
}

/// Returns a container's status with nothing but whether it is ready and what it does.
fn reduced(status: &Value) -> Value {
    let mut reduced = Typed::zero("ContainerStatus");
    for field in ["/ready", "/state"] {
        *reduced.at_mut(field) = status.pointer(field).cloned().unwrap_or_default();
    }
    reduced.into_value()
}

pub(super) fn healthy(object: &Value) -> Result<bool> {
    let pod = parts(object, &[("Pod", &["status"]), ("PodStatus", &["conditions", "phase"])])?;
    let ready = pod.list("/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    Ok(match pod.text("/status/phase") {
        "Succeeded" => true,
        "Running" => ready.is_some_and(|condition| condition["status"] == "True"),
        _ => false,
    })
}

pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let pod = parts(object, pod_template::REFERENCES)?;
    Ok(pod_template::referenced(pod.at("/spec"), pod.text("/metadata/namespace")))
}
