//! Implements the algorithm of the ReplicaSet controller (`pkg/controller/replicaset/replica_set.go`).
//!
//! A reconcile adopts and releases pods, creates or deletes up to [`BURST_MAX`] of them, and writes the status.
//!
//! The ReplicaSet controller keeps *expectations*, because its cache lags behind its writes. They are not needed here,
//! because a write is in the cache when the call returns.

use futures::future::join_all;
use kctl::{
    kube::core::{Selector, SelectorExt},
    prelude::*,
};

use crate::{
    kinds::{PodSet, PodSetStatus},
    pods::{is_active, is_ready, least_useful_first},
};

/// Maximum number of pods that one reconcile creates or deletes (`BurstReplicas`). The next reconcile handles the rest.
const BURST_MAX: usize = 500;

/// Keeps `spec.replicas` pods that match `spec.selector`.
///
/// In addition to the owner of a pod, `map = adopters` enqueues the sets that may adopt an orphan, and the index finds
/// orphans without reading all pods of the namespace (`OrphanPodIndexKeyForNamespace` of
/// `pkg/controller/controller_utils.go`).
#[controller(owns = Pod(create, delete, patch, map = adopters, index = orphans), primary(get), concurrency = 4)]
pub async fn podset(set: Arc<PodSet>, cx: Context<podset>) -> Result<Action> {
    let selector = selector_of(&set)?;
    let Some(pods) = claim(&set, &selector, &cx).await? else { return Ok(Action::await_change()) };
    let wanted = usize::try_from(set.spec.replicas).unwrap_or(0);
    let (reason, scaled) = if pods.len() < wanted {
        ("FailedCreate", create(&set, &cx, (wanted - pods.len()).min(BURST_MAX)).await)
    } else {
        ("FailedDelete", delete(&cx, pods, wanted).await)
    };
    // The cache already contains our own writes, so the status counts them.
    let now: Vec<_> = cx.owned::<Pod>().iter().filter(|pod| is_active(pod)).collect();
    let conditions = cx.conditions();
    // Messages have the random name of a pod. So a retry keeps the first one, and does not write the status again.
    let is_known = conditions.get("ReplicaFailure").is_some_and(|known| known.reason == reason);
    let conditions = match &scaled {
        Ok(()) => conditions.without("ReplicaFailure"),
        Err(_) if is_known => conditions,
        Err(error) => conditions.with("ReplicaFailure", true, reason, error.to_string()),
    };
    cx.patch_status(PodSetStatus {
        replicas: count(now.len()),
        ready_replicas: count(now.iter().filter(|pod| is_ready(pod)).count()),
        observed_generation: set.metadata.generation.unwrap_or_default(),
        selector: selector.to_string(),
        conditions: conditions.into_vec()?,
    })
    .await?;
    scaled?;
    Ok(Action::await_change())
}

/// Converts a count for a status field.
fn count(pods: usize) -> i32 {
    pods.try_into().unwrap_or(i32::MAX)
}

/// Parses the selector.
///
/// # Errors
/// The selector is invalid, selects all pods, or does not match the template. These errors are terminal, because only a
/// change of the spec can fix them.
fn selector_of(set: &PodSet) -> Result<Selector> {
    let selector: Selector = set.spec.selector.clone().try_into().context("spec.selector").terminal()?;
    if selector.selects_all() {
        return Err("spec.selector is empty: it would match every pod").terminal();
    }
    let labels = set.spec.template.metadata.iter().flat_map(|meta| meta.labels.clone()).flatten().collect();
    if !selector.matches(&labels) {
        return Err("spec.selector does not match the labels of spec.template: no pod would ever be counted")
            .terminal();
    }
    Ok(selector)
}

/// Returns `true` if no controller owns the pod.
fn is_orphan(pod: &Pod) -> bool {
    !pod.owner_references().iter().any(|owner| owner.controller == Some(true))
}

/// Indexes orphans by namespace. Other pods are not in the index.
fn orphans(pod: &Pod) -> Vec<String> {
    is_orphan(pod).then(|| pod.namespace()).flatten().into_iter().collect()
}

/// Returns the sets that may adopt a pod without a controller: those whose selector matches the pod.
fn adopters(pod: &Pod, sets: &Store<PodSet>) -> Vec<Key<PodSet>> {
    if !is_orphan(pod) {
        return Vec::new();
    }
    let namespace = pod.namespace().unwrap_or_default();
    let matching = sets.in_namespace(&namespace).filter(|set| selector_of(set).is_ok_and(|s| s.matches(pod.labels())));
    matching.map(|set| Key::from_object(set.as_ref())).collect()
}

/// Returns the active pods of the set, after adopting matching orphans and releasing pods that no longer match
/// (`ClaimPods` of `controller_ref_manager.go`). Returns `None` if orphans match, but the set is being deleted or no
/// longer exists: the cache will show that.
async fn claim(set: &PodSet, selector: &Selector, cx: &Context<podset>) -> Result<Option<Vec<Arc<Pod>>>> {
    let namespace = set.namespace().unwrap_or_default();
    // Both are read before the first request: during it, an owned pod can become an orphan, which would count twice.
    let (mut pods, released): (Vec<_>, Vec<_>) =
        cx.owned::<Pod>().iter().partition(|pod| selector.matches(pod.labels()));
    let matching: Vec<_> = cx
        .store::<Pod>()
        .by_index(orphans, &namespace)
        .filter(|pod| is_active(pod) && selector.matches(pod.labels()))
        .collect();
    for pod in released {
        cx.release(pod.as_ref()).await?;
    }
    if !matching.is_empty() {
        // The cache may not show the deletion of the set yet, and garbage collection would delete adopted pods with
        // their owner.
        let fresh = cx.get().await?;
        if fresh.metadata.uid != set.metadata.uid || fresh.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        for pod in matching {
            pods.push(cx.adopt(pod.as_ref()).await?);
        }
    }
    pods.retain(|pod| is_active(pod));
    Ok(Some(pods))
}

/// Creates pods in batches of doubling size, so that a set whose pods are rejected does not send thousands of requests
/// (`slowStartBatch`).
async fn create(set: &PodSet, cx: &Context<podset>, mut missing: usize) -> Result<()> {
    let pods = cx.owned::<Pod>();
    let mut batch = 1;
    while missing > 0 {
        let n = batch.min(missing);
        let created = join_all((0..n).map(|_| pods.create(new_pod(set)).into_future())).await;
        for result in created {
            result?;
        }
        missing -= n;
        batch *= 2;
    }
    Ok(())
}

/// Returns a pod from the template, with a generated name.
fn new_pod(set: &PodSet) -> Pod {
    let mut metadata = set.spec.template.metadata.clone().unwrap_or_default();
    metadata.name = None;
    metadata.generate_name = Some(format!("{}-", set.name_any()));
    Pod { metadata, spec: set.spec.template.spec.clone(), ..Pod::default() }
}

/// Deletes surplus pods, the least useful ones first.
async fn delete(cx: &Context<podset>, mut active: Vec<Arc<Pod>>, wanted: usize) -> Result<()> {
    least_useful_first(&mut active);
    let surplus = (active.len() - wanted).min(BURST_MAX);
    let pods = cx.owned::<Pod>();
    let deleted = join_all(active[..surplus].iter().map(|pod| pods.delete(pod.as_ref()).into_future())).await;
    for result in deleted {
        result?;
    }
    Ok(())
}
