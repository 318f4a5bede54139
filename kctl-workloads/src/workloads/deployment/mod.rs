//! Syncs a Deployment: a `ReplicaSet` for its template grows as the sets of older templates shrink.
//!
//! The steps and the messages come from the deployment controller (`pkg/controller/deployment`).
//!
//! A pass performs one step: it grows the current set or shrinks old ones, and the next change causes the next step.
//! All state is in the objects, so a restarted process continues where it stopped.
//!
//! | annotation or label | on | meaning |
//! |---|---|---|
//! | `pod-template-hash` | set, Pods | the template |
//! | `deployment.kubernetes.io/revision` | Deployment, sets | order of the templates |
//! | `deployment.kubernetes.io/desired-replicas` | sets | size of the Deployment when the set was scaled |
//! | `deployment.kubernetes.io/max-replicas` | sets | the same with the surge |

mod bounds;
mod revisions;
mod scaling;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec},
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, Time},
};
use kctl_apimachinery::fnv::hash64a;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{
    Lists, Workloads, controlled_objects, ignore_outdated, is_controlled, optional, ownership, reference, replica_set,
};
pub(super) use status::time_until_deadline;
use {bounds::Bounds, status::StatusUpdate};

/// The label with the hash of the Pod template.
///
/// It is in the selector of the set, so that sets of one Deployment never select each other's Pods.
const HASH: &str = "pod-template-hash";
/// The characters of a hash. Vowels are left out, so that a hash contains no words (`rand.SafeEncodeString`).
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const HASH_LEN: usize = 10;

/// A Deployment and its `ReplicaSets`.
///
/// Built for one pass from lists that may be slightly outdated. A write to an object that has been deleted or replaced
/// since is skipped.
struct Rollout<'a> {
    workloads: &'a Workloads,
    deployment: &'a Deployment,
    /// The set of the present template.
    current: Option<&'a ReplicaSet>,
    /// The sets of other templates. Invariant: the oldest first, by creation and name, so that each pass scales the same
    /// ones.
    old: Vec<&'a ReplicaSet>,
    bounds: Bounds,
}

/// Creates the set of the template, scales the sets by one step, and updates the status. Returns the number of writes.
///
/// A set belongs to the present template if its label has the hash of the template. Templates are not compared, because
/// the API server may have added defaults.
pub(super) async fn sync(workloads: &Workloads, deployment: &Deployment, lists: &Lists) -> kube::Result<usize> {
    let n_claimed =
        ownership::claim(workloads, deployment, &optional::deployment(deployment).selector, &lists.sets).await?;
    if n_claimed > 0 {
        return Ok(n_claimed);
    }
    let hash = hash(&optional::deployment(deployment).template);
    let sets = controlled_objects(deployment, &lists.sets);
    let (current, mut old): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.labels().get(HASH) == Some(&hash));
    old.sort_by_key(|set| (set.creation_timestamp(), set.name_any()));
    let bounds = Bounds::from_deployment(deployment);
    let rollout = Rollout { workloads, deployment, current: current.first().copied(), old, bounds };
    rollout.sync(&hash, &lists.pods).await
}

impl<'a> Rollout<'a> {
    /// Performs one step of the rollout. Returns the number of writes.
    ///
    /// A paused or resized Deployment only scales its sets in proportion. Otherwise the sets are rolled by one step.
    /// The status is written last, and old sets are deleted once the rollout is complete.
    async fn sync(&self, hash: &str, pods: &[Pod]) -> kube::Result<usize> {
        debug_assert!(
            self.old.is_sorted_by_key(|set| (set.creation_timestamp(), set.name_any())),
            "`sync` sorts them, because the lists are in no order"
        );
        let mut status_update = StatusUpdate::new(self, Time(self.workloads.clock.now()));
        status_update.pause();
        let is_paused = optional::deployment(self.deployment).paused == Some(true);
        let n_writes = match self.current {
            Some(current) => {
                let n_named = self.name_revision(current).await?;
                let n_resized = if is_paused || self.is_resized() { self.resize().await? } else { 0 };
                let rolls = !is_paused && n_resized == 0;
                n_named + n_resized + if rolls { self.roll(current, pods).await? } else { 0 }
            }
            None if is_paused => self.resize().await?,
            // `Recreate`: Pods of two templates never run at the same time.
            None if self.bounds.recreates && self.has_old_pods(pods) => self.scale_down_old().await?,
            None => {
                let set = self.new_set(hash);
                status_update.record_new_set(&set.name_any());
                ignore_outdated(self.api().create(&PostParams::default(), &set).await)?;
                1
            }
        };
        let n_status_writes = status_update.write().await?;
        let n_forgotten = if status_update.is_complete() { self.forget_oldest().await? } else { 0 };
        Ok(n_writes + n_status_writes + n_forgotten)
    }

    /// Returns a client for the sets.
    ///
    /// All sets are in the namespace of the Deployment.
    fn api(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.workloads.client.clone(), &self.deployment.namespace().unwrap_or_default())
    }

    /// Iterates over all sets, the current one first.
    fn sets(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.current.into_iter().chain(self.old.iter().copied())
    }

    /// Returns the sum of `spec.replicas` of all sets.
    ///
    /// It is the desired number of Pods, not the number of existing Pods.
    fn n_desired(&self) -> i32 {
        self.sets().map(replicas).sum()
    }

    /// Returns the number of available Pods.
    fn n_available(&self) -> i32 {
        self.sets().map(available).sum()
    }

    /// Performs one step: scales the current set up, or old ones down.
    ///
    /// With `Recreate`, the current set grows only after all old Pods have ended.
    async fn roll(&self, current: &ReplicaSet, pods: &[Pod]) -> kube::Result<usize> {
        if self.bounds.recreates {
            let n_ended = self.scale_down_old().await?;
            if n_ended > 0 || self.has_old_pods(pods) {
                return Ok(n_ended);
            }
        }
        let n_scaled =
            self.scale(current, self.bounds.replicas_of_current(replicas(current), self.n_desired())).await?;
        if n_scaled > 0 { Ok(n_scaled) } else { self.shrink_old(current).await }
    }

    /// Scales old sets down, as long as enough Pods remain available.
    ///
    /// Pods of the current set that are not available yet reduce the number that can be removed, so old Pods are kept
    /// in their place.
    ///
    /// - First, unavailable Pods of old sets are removed, oldest set first.
    /// - Then available ones, as long as `replicas - unavailable` of all sets remain.
    async fn shrink_old(&self, current: &ReplicaSet) -> kube::Result<usize> {
        let least = self.bounds.replicas - self.bounds.unavailable;
        let missing = replicas(current) - available(current);
        let mut may_go = self.n_desired() - least - missing;
        if may_go <= 0 {
            return Ok(0);
        }
        // Unavailable Pods first: removing them costs no availability (`cleanupUnhealthyReplicas`).
        let mut left: Vec<_> = self.old.iter().map(|set| (*set, replicas(set))).collect();
        for (set, left) in &mut left {
            let broken = (*left - available(set)).clamp(0, may_go);
            *left -= broken;
            may_go -= broken;
        }
        let mut may_go = self.n_available() - least;
        for (set, left) in &mut left {
            let healthy = available(set).min(*left).clamp(0, may_go.max(0));
            *left -= healthy;
            may_go -= healthy;
        }
        let mut n_writes = 0;
        for (set, left) in left {
            n_writes += self.scale(set, left).await?;
        }
        Ok(n_writes)
    }

    async fn scale_down_old(&self) -> kube::Result<usize> {
        let mut n_writes = 0;
        for set in &self.old {
            n_writes += self.scale(set, 0).await?;
        }
        Ok(n_writes)
    }

    /// Returns `true` if a Pod of an old template has not ended.
    ///
    /// A Pod that is being deleted counts until it has ended, even if its set has no replicas.
    fn has_old_pods(&self, pods: &[Pod]) -> bool {
        pods.iter().any(|pod| {
            !["Succeeded", "Failed"].contains(&replica_set::phase(pod))
                && self.old.iter().any(|set| is_controlled(pod, *set))
        })
    }

    /// Scales a set, unless it already has these replicas.
    async fn scale(&self, set: &ReplicaSet, to: i32) -> kube::Result<usize> {
        if replicas(set) == to { Ok(0) } else { self.write_scale(set, to).await }
    }

    /// Writes the replicas of a set, with the annotations for the present size of the Deployment.
    ///
    /// The annotations distinguish a later resize from a rollout: see `is_resized`.
    async fn write_scale(&self, set: &ReplicaSet, to: i32) -> kube::Result<usize> {
        let annotations = self.bounds.annotations();
        self.patch(set, json!({ "metadata": { "annotations": annotations }, "spec": { "replicas": to } })).await?;
        Ok(1)
    }

    /// Patches a set. The uid in the patch prevents a write to a new set of the same name.
    async fn patch(&self, set: &ReplicaSet, mut patch: serde_json::Value) -> kube::Result<()> {
        patch["metadata"]["uid"] = set.uid().into();
        ignore_outdated(self.api().patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Gives the current set the newest revision.
    ///
    /// It also copies annotations of the Deployment to the set, for `kubectl rollout history`.
    async fn name_revision(&self, current: &ReplicaSet) -> kube::Result<usize> {
        let annotations = revisions::annotations(self.deployment, Some(current), &self.old);
        let is_annotated = annotations.iter().all(|(name, value)| current.annotations().get(name) == Some(value));
        if is_annotated {
            return Ok(0);
        }
        self.patch(current, json!({ "metadata": { "annotations": annotations } })).await?;
        Ok(1)
    }

    /// Deletes the oldest sets beyond `revisionHistoryLimit`.
    ///
    /// A set that still has Pods is kept. Without a limit nothing is deleted; the API server sets
    /// 10 by default.
    async fn forget_oldest(&self) -> kube::Result<usize> {
        let Some(limit) = optional::deployment(self.deployment).revision_history_limit else { return Ok(0) };
        let surplus = self.old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let mut by_revision = self.old.clone();
        by_revision.sort_by_key(|set| revisions::revision_of(*set));
        let mut n_writes = 0;
        for set in by_revision.into_iter().take(surplus).filter(|set| is_over(set)) {
            let exactly = Preconditions { uid: set.uid(), resource_version: None };
            let params = DeleteParams::background().preconditions(exactly);
            ignore_outdated(self.api().delete(&set.name_any(), &params).await)?;
            n_writes += 1;
        }
        Ok(n_writes)
    }

    /// Returns a set for the present template.
    ///
    /// Its replicas are those that the bounds allow at present: 0 if old sets have used up the surge.
    fn new_set(&self, hash: &str) -> ReplicaSet {
        let spec = optional::deployment(self.deployment).clone();
        let with_hash = |labels: Option<BTreeMap<String, String>>| {
            let mut labels = labels.unwrap_or_default();
            labels.insert(HASH.into(), hash.into());
            Some(labels)
        };
        let mut template = spec.template;
        let metadata = template.metadata.get_or_insert_default();
        metadata.labels = with_hash(metadata.labels.take());
        let mut annotations = revisions::annotations(self.deployment, None, &self.old);
        annotations.extend(self.bounds.annotations());
        ReplicaSet {
            metadata: ObjectMeta {
                name: Some(format!("{}-{hash}", self.deployment.name_any())),
                labels: metadata.labels.clone(),
                annotations: Some(annotations),
                owner_references: Some(vec![reference(self.deployment)]),
                ..ObjectMeta::default()
            },
            spec: optional::into_field(ReplicaSetSpec {
                replicas: Some(self.bounds.replicas_of_current(0, self.n_desired())),
                min_ready_seconds: spec.min_ready_seconds,
                selector: LabelSelector { match_labels: with_hash(spec.selector.match_labels), ..spec.selector },
                template: Some(template),
            }),
            status: None,
        }
    }
}

/// Returns `spec.replicas`; 1 by default.
fn replicas(set: &ReplicaSet) -> i32 {
    optional::replica_set(set).replicas.unwrap_or(1)
}

fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// Returns `true` if a set has no Pods and its controller has observed `spec.replicas: 0`.
///
/// `observedGeneration` is compared because a set that was just scaled to 0 has Pods that its status does not show yet.
fn is_over(set: &ReplicaSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    replicas(set) == 0 && status.replicas == 0 && status.observed_generation >= set.metadata.generation
}

/// Returns a hash of a Pod template. It differs from the deployment controller's, and is the same in every run.
///
/// A template with another order of fields has the same hash, because it is serialized from a typed
/// value.
fn hash(template: &PodTemplateSpec) -> String {
    let mut hash = hash64a(&serde_json::to_string(template).unwrap_or_default());
    let letter = || {
        let at = usize::try_from(hash % LETTERS.len() as u64).unwrap_or(0);
        hash /= LETTERS.len() as u64;
        char::from(LETTERS[at])
    };
    std::iter::repeat_with(letter).take(HASH_LEN).collect()
}
