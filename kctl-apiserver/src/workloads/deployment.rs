//! A Deployment: a `ReplicaSet` for its template; those of older templates go once the new pods are ready.

mod revision;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, Time},
};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
};

use super::{Lists, Workloads, controlled, reference, replica_set, unless_outdated};

/// The label that tells the pods of one template from those of another.
const HASH: &str = "pod-template-hash";
/// Letters without vowels, as the real controller has them: no name is a word.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const HASH_LEN: usize = 10;

/// Makes the set of the template, scales the others down once it is ready, says what there is. Returns how much it wrote.
pub(super) async fn sync(workloads: &Workloads, deployment: &Deployment, lists: &Lists) -> kube::Result<usize> {
    let spec = &deployment.spec;
    let replicas = spec.replicas.unwrap_or(1);
    let hash = hash(&spec.template);
    let sets = controlled(deployment, &lists.sets);
    let (current, old): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.labels().get(HASH) == Some(&hash));
    let is_paused = spec.paused == Some(true);
    let mut n_writes = 0;
    let revision = revision::due(current.first().copied(), &old);
    let Some(current) = current.first() else {
        if is_paused {
            return tell(workloads, deployment, None, &old).await;
        }
        let api = Api::<ReplicaSet>::namespaced(workloads.client.clone(), &deployment.namespace().unwrap_or_default());
        let mut set = new_set(deployment, &hash, replicas);
        set.metadata.annotations = Some(revision::annotations(deployment, &set, revision));
        unless_outdated(api.create(&PostParams::default(), &set).await)?;
        return Ok(1);
    };
    let n_told = revision::tell(workloads, deployment, current, revision).await?;
    if n_told > 0 {
        // What is to be written next is about objects that are others now.
        return Ok(n_told);
    }
    if !is_paused {
        n_writes += replica_set::scale(workloads, current, replicas).await?;
        if of(current).ready >= replicas {
            for set in &old {
                n_writes += replica_set::scale(workloads, set, 0).await?;
            }
        }
    }
    Ok(n_writes + tell(workloads, deployment, Some(current), &old).await?)
}

/// A name for a template: other templates have other ones.
fn hash(template: &PodTemplateSpec) -> String {
    // FNV-1a: the same in every run.
    let bytes = serde_json::to_vec(template).unwrap_or_default();
    let mut hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let letter = || {
        let at = usize::try_from(hash % LETTERS.len() as u64).unwrap_or(0);
        hash /= LETTERS.len() as u64;
        char::from(LETTERS[at])
    };
    std::iter::repeat_with(letter).take(HASH_LEN).collect()
}

fn new_set(deployment: &Deployment, hash: &str, replicas: i32) -> ReplicaSet {
    let spec = deployment.spec.clone();
    let with_hash = |labels: Option<BTreeMap<String, String>>| {
        let mut labels = labels.unwrap_or_default();
        labels.insert(HASH.into(), hash.into());
        Some(labels)
    };
    let mut template = spec.template;
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels = with_hash(metadata.labels.take());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.name_any())),
            labels: metadata.labels.clone(),
            owner_references: Some(vec![reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector: LabelSelector { match_labels: with_hash(spec.selector.match_labels), ..spec.selector },
            template: Some(template),
        },
        status: None,
    }
}

/// Pods of a set.
struct Counts {
    all: i32,
    ready: i32,
    available: i32,
}

/// What a set says; a status about an older spec counts as well.
fn of(set: &ReplicaSet) -> Counts {
    let status = set.status.clone().unwrap_or_default();
    Counts {
        all: status.replicas,
        ready: status.ready_replicas.unwrap_or(0),
        available: status.available_replicas.unwrap_or(0),
    }
}

async fn tell(
    workloads: &Workloads,
    deployment: &Deployment,
    current: Option<&ReplicaSet>,
    old: &[&ReplicaSet],
) -> kube::Result<usize> {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    let counts: Vec<_> = current.into_iter().chain(old.iter().copied()).map(of).collect();
    let updated = current.map_or(Counts { all: 0, ready: 0, available: 0 }, of);
    let (all, ready) = (counts.iter().map(|set| set.all).sum(), counts.iter().map(|set| set.ready).sum());
    let available = counts.iter().map(|set| set.available).sum();
    let some = |n: i32| (n > 0).then_some(n);
    let known = deployment.status.clone().unwrap_or_default();
    let mut new = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(all),
        updated_replicas: some(updated.all),
        ready_replicas: some(ready),
        available_replicas: some(available),
        unavailable_replicas: some(replicas.max(all) - available),
        ..known.clone()
    };
    let complete = updated.available >= replicas && all == updated.all;
    let told = [
        if available >= replicas {
            ("Available", "True", "MinimumReplicasAvailable")
        } else {
            ("Available", "False", "MinimumReplicasUnavailable")
        },
        ("Progressing", "True", if complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" }),
    ];
    let now = Time(workloads.clock.now());
    let before = known.conditions.unwrap_or_default();
    new.conditions = Some(told.into_iter().map(|told| condition(told, &before, &now)).collect());
    if deployment.status.as_ref() == Some(&new) {
        return Ok(0);
    }
    let mut changed = deployment.clone();
    changed.status = Some(new);
    changed.metadata.managed_fields = None;
    let api = Api::<Deployment>::namespaced(workloads.client.clone(), &deployment.namespace().unwrap_or_default());
    unless_outdated(api.replace_status(&deployment.name_any(), &PostParams::default(), &changed).await)?;
    Ok(1)
}

/// A condition with the times of the one that was there, where it says the same.
fn condition(told: (&str, &str, &str), before: &[DeploymentCondition], now: &Time) -> DeploymentCondition {
    let (kind, status, reason) = told;
    let same =
        before.iter().find(|known| known.type_.as_deref() == Some(kind) && known.status.as_deref() == Some(status));
    if let Some(same) = same.filter(|same| same.reason.as_deref() == Some(reason)) {
        return same.clone();
    }
    let since = same.and_then(|same| same.last_transition_time.clone());
    DeploymentCondition {
        type_: Some(kind.into()),
        status: Some(status.into()),
        reason: Some(reason.into()),
        message: Some("simulated".into()),
        last_transition_time: since.or_else(|| Some(now.clone())),
        last_update_time: Some(now.clone()),
    }
}
