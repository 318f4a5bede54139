//! The rules of `v1 Pod`. `InterpretStatus` returns the whole status.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretReplica` | 1, and the requirements of `spec` | `replica.go`, `podReplica` |
//! | `Retain` | fields that scheduler and admission set | `retain.go`, `retainPodFields` |
//! | `AggregateStatus` | one phase, and the states of all containers | `aggregatestatus.go`, `aggregatePodStatus` |
//! | `InterpretHealth` | see [`is_healthy`] | `healthy.go`, `interpretPodHealth` |
//! | `InterpretDependency` | references of `spec` | `dependencies.go`, `getPodDependencies` |

use serde_json::Value;

use super::{Items, NativeError, Result, pod_template, workload::member_statuses};
use crate::{
    operation::{DependentReference, Replicas},
    typed::{Parts, Typed},
};

/// Converts an object to the Go type `Pod`, with all of its fields.
fn pod(object: &Value) -> Result<Typed> {
    parts(object, &[])
}

/// Converts an object to the Go type `Pod`, and keeps only some of its fields. All fields are
/// checked.
fn parts(object: &Value, parts: Parts) -> Result<Typed> {
    Typed::parts_of_object("Pod", object, parts).map_err(NativeError::object("Pod"))
}

pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    pod_template::replicas(1, parts(object, pod_template::NEEDS)?.at("/spec"))
}

/// The fields of the observed Pod that [`retain`] reads.
const RETAINED: Parts = &[
    ("Pod", &["spec"]),
    ("PodSpec", &["containers", "initContainers", "nodeName", "serviceAccountName", "volumes"]),
    ("Container", &["name", "volumeMounts"]),
];

/// Copies `spec.nodeName`, `spec.serviceAccountName` and `spec.volumes` from the observed Pod, and
/// the `volumeMounts` of containers and init containers with the same name.
///
/// The scheduler sets the node, and the admission plugin `ServiceAccount` adds a volume with a
/// token and its mounts. The answer is written from the Go type, so it has `status: {}` and empty
/// `resources` that the input may lack.
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

/// Replaces the status with one phase and the states of the containers of all clusters.
///
/// The worst phase counts, in the order `Failed`, `Pending`, `Running`, `Succeeded`. A cluster that
/// has not reported counts as `Pending`. Statuses of containers and init containers are
/// concatenated, reduced to `ready` and `state`.
///
/// Without a list of items the Pod keeps its status. With an empty list the phase and the
/// containers are empty.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let pod = pod(&object)?;
    let Some(items) = items else { return Ok(pod.into_object()) };
    let mut phases = Vec::new();
    let (mut containers, mut init_containers) = (Vec::new(), Vec::new());
    for member in member_statuses("PodStatus", items) {
        let (_cluster, member) = member?;
        phases.push(member.text("/phase").to_owned());
        containers.extend(member.list("/containerStatuses").iter().map(ready_and_state));
        init_containers.extend(member.list("/initContainerStatuses").iter().map(ready_and_state));
    }
    if phases.len() < items.len() {
        phases.push("Pending".to_owned());
    }
    let worst = ["Failed", "Pending", "Running", "Succeeded"]
        .into_iter()
        .find(|phase| phases.iter().any(|present| present == phase));
    let mut status = Typed::zero("PodStatus");
    *status.at_mut("/phase") = worst.unwrap_or_default().into();
    *status.at_mut("/containerStatuses") = containers.into();
    if !init_containers.is_empty() {
        *status.at_mut("/initContainerStatuses") = init_containers.into();
    }
    Ok(pod.with_status(status, object))
}

/// Returns a `ContainerStatus` with only `ready` and `state` of the given one; the other fields
/// have their zero values.
fn ready_and_state(status: &Value) -> Value {
    let mut reduced = Typed::zero("ContainerStatus");
    for field in ["/ready", "/state"] {
        *reduced.at_mut(field) = status.pointer(field).cloned().unwrap_or_default();
    }
    reduced.into_value()
}

/// Returns `true` if the phase is `Succeeded`, or if it is `Running` and the condition `Ready` is
/// `True`.
pub(super) fn is_healthy(object: &Value) -> Result<bool> {
    let pod = parts(object, &[("Pod", &["status"]), ("PodStatus", &["conditions", "phase"])])?;
    let ready = pod.list("/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    Ok(match pod.text("/status/phase") {
        "Succeeded" => true,
        "Running" => ready.is_some_and(|condition| condition["status"] == "True"),
        _ => false,
    })
}

/// Returns the objects that the Pod refers to, in its namespace.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    let pod = parts(object, pod_template::REFERENCES)?;
    Ok(pod_template::dependencies_of_pod_spec(pod.at("/spec"), pod.text("/metadata/namespace")))
}
