//! Syncs a `ReplicaSet`: creates and deletes Pods until there are `spec.replicas` of them
//! (`pkg/controller/replicaset`).
//!
//! Pods that have ended do not count, so they are replaced. They are not deleted here.

use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, PostParams, Preconditions},
};

use super::{
    Lists, Workloads, controlled_objects, ignore_outdated, is_alive, is_controlled, optional, ownership, reference,
};
use crate::errors::describe;

/// The condition for a Pod that could not be created or deleted.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Creates missing Pods, deletes surplus ones, and updates the status. Returns the number of writes. A pass that adopts
/// or releases Pods does nothing else.
///
/// The status is written even if a Pod was rejected, and has a condition with the error then (`syncReplicaSet`).
pub(super) async fn sync(workloads: &Workloads, set: &ReplicaSet, lists: &Lists) -> kube::Result<usize> {
    let n_claimed = ownership::claim(workloads, set, &optional::replica_set(set).selector, &lists.pods).await?;
    if n_claimed > 0 {
        return Ok(n_claimed);
    }
    let mut pods = controlled_objects(set, &lists.pods);
    pods.retain(|pod| !["Succeeded", "Failed"].contains(&phase(pod)));
    let managed = manage_pods(workloads, set, &mut pods).await;
    let status = ReplicaSetStatus {
        conditions: conditions(set, pods.len(), managed.as_ref().err(), Time(workloads.clock.now())),
        ..calculate_status(set, &pods, count_ending(set, &lists.pods))
    };
    let n_status_writes = update_status(workloads, set, status).await?;
    Ok(managed? + n_status_writes)
}

/// Creates missing Pods and deletes surplus ones, which it removes from `pods`. Returns the number of writes.
///
/// The order of deletion is: Pods that are not ready, then newer ones before older ones, then by
/// name, so that a seed gives one order. A deleted Pod's uid is a precondition, so that a new Pod
/// of the same name is left alone.
async fn manage_pods(workloads: &Workloads, set: &ReplicaSet, pods: &mut Vec<&Pod>) -> kube::Result<usize> {
    let desired = desired_replicas(set);
    let api = Api::<Pod>::namespaced(workloads.client.clone(), &set.namespace().unwrap_or_default());
    let mut n_writes = 0;
    for _ in pods.len()..desired {
        ignore_outdated(api.create(&PostParams::default(), &new_pod(set)).await)?;
        n_writes += 1;
    }
    // Pods that are not ready are deleted first (`getPodsToDelete`): they are last in this order.
    pods.sort_by_key(|pod| {
        std::cmp::Reverse((is_ready(pod), std::cmp::Reverse(pod.creation_timestamp()), pod.name_any()))
    });
    while pods.len() > desired {
        let Some(pod) = pods.last() else { break };
        let exactly = Preconditions { uid: pod.uid(), resource_version: None };
        ignore_outdated(api.delete(&pod.name_any(), &DeleteParams::default().preconditions(exactly)).await)?;
        pods.pop();
        n_writes += 1;
    }
    Ok(n_writes)
}

/// Returns `spec.replicas`; 1 by default.
///
/// A negative number, which validation rejects, counts as 0.
pub(super) fn desired_replicas(set: &ReplicaSet) -> usize {
    let replicas = optional::replica_set(set).replicas.unwrap_or(1);
    usize::try_from(replicas).unwrap_or(0)
}

/// Returns the phase of a Pod.
///
/// A Pod without a status has the empty phase; the API server sets `Pending` on creation.
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Returns `true` if the Pod has the condition `Ready`.
///
/// Readiness is what the simulated kubelet reports. A Pod that has ended is not ready.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns a Pod of the template.
///
/// The name is generated from the set's. Labels and annotations come from the template.
fn new_pod(set: &ReplicaSet) -> Pod {
    let template = optional::replica_set(set).template.clone().unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", set.name_any())),
            labels: metadata.labels,
            annotations: metadata.annotations,
            owner_references: Some(vec![reference(set)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }
}

/// Returns the number of Pods that are being deleted and have not ended.
///
/// They still use resources of their node, but do not count as replicas.
fn count_ending(set: &ReplicaSet, pods: &[Pod]) -> i32 {
    let is_ending =
        |pod: &&Pod| !is_alive(*pod) && is_controlled(*pod, set) && !["Succeeded", "Failed"].contains(&phase(pod));
    count(pods.iter().filter(is_ending).count())
}

/// Returns the status without its conditions.
///
/// Ready and available Pods are the same: `minReadySeconds` is not simulated. An adopted Pod may lack labels of the
/// template, and is not fully labeled then. Zero counts are left out, as Go does with `omitempty`.
fn calculate_status(set: &ReplicaSet, pods: &[&Pod], n_ending: i32) -> ReplicaSetStatus {
    let n_ready = count(pods.iter().filter(|pod| is_ready(pod)).count());
    let template = optional::replica_set(set).template.as_ref().and_then(|template| template.metadata.as_ref());
    let labels = template.and_then(|metadata| metadata.labels.as_ref());
    let is_fully_labeled =
        |pod: &Pod| labels.into_iter().flatten().all(|(name, value)| pod.labels().get(name) == Some(value));
    let some = |n: i32| (n > 0).then_some(n);
    ReplicaSetStatus {
        replicas: count(pods.len()),
        fully_labeled_replicas: some(count(pods.iter().filter(|pod| is_fully_labeled(pod)).count())),
        ready_replicas: some(n_ready),
        available_replicas: some(n_ready),
        terminating_replicas: terminating_replicas(
            n_ending,
            set.status.as_ref().map(|known| (known.observed_generation, known.terminating_replicas)),
        ),
        observed_generation: set.metadata.generation,
        ..ReplicaSetStatus::default()
    }
}

/// Returns the conditions of the status, with `ReplicaFailure` only if a Pod was rejected (`calculateStatus`).
///
/// A condition that exists keeps its message: each message has the random name of another Pod.
fn conditions(
    set: &ReplicaSet,
    n_pods: usize,
    error: Option<&kube::Error>,
    now: Time,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut all = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    match error {
        None => all.retain(|known| !is_failure(known)),
        Some(_) if failure(set).is_some() => {}
        Some(error) => all.push(ReplicaSetCondition {
            type_: <_>::from(REPLICA_FAILURE.to_owned()),
            status: <_>::from("True".to_owned()),
            reason: Some(if n_pods < desired_replicas(set) { "FailedCreate" } else { "FailedDelete" }.into()),
            message: Some(describe(error)),
            last_transition_time: Some(now),
        }),
    }
    Some(all).filter(|all| !all.is_empty())
}

/// Returns the condition for a Pod that could not be created or deleted.
pub(super) fn failure(set: &ReplicaSet) -> Option<&ReplicaSetCondition> {
    set.status.as_ref()?.conditions.iter().flatten().find(|known| is_failure(known))
}

fn is_failure(condition: &ReplicaSetCondition) -> bool {
    optional::string(&condition.type_) == Some(REPLICA_FAILURE)
}

/// Writes the status if it differs. Returns the number of writes.
async fn update_status(workloads: &Workloads, set: &ReplicaSet, status: ReplicaSetStatus) -> kube::Result<usize> {
    if set.status.as_ref() == Some(&status) {
        return Ok(0);
    }
    let mut new = set.clone();
    new.status = Some(status);
    new.metadata.managed_fields = None;
    let api = Api::<ReplicaSet>::namespaced(workloads.client.clone(), &set.namespace().unwrap_or_default());
    ignore_outdated(api.replace_status(&set.name_any(), &PostParams::default(), &new).await)?;
    Ok(1)
}

/// Returns `status.terminatingReplicas`, or `None` for a server that drops the field, as before 1.35. `known` contains
/// the observed generation, and the number that the server stored with it.
pub(super) fn terminating_replicas(n: i32, known: Option<(Option<i64>, Option<i32>)>) -> Option<i32> {
    let is_dropped = matches!(known, Some((Some(_), None)));
    (n > 0 || !is_dropped).then_some(n)
}

/// Converts a count to the integer type of the API.
pub(super) fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
