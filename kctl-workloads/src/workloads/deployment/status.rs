//! The status of a Deployment: counts and conditions.
//!
//! Upstream: `pkg/controller/deployment/progress.go` and `util/deployment_util.go`.
//!
//! | condition | status and reason |
//! |---|---|
//! | `Available` | `True` while at most `maxUnavailable` Pods are missing |
//! | `Progressing` | `True`: `NewReplicaSetCreated`, `ReplicaSetUpdated`, `NewReplicaSetAvailable` |
//! | `Progressing` | `False`: `ProgressDeadlineExceeded` |
//! | `Progressing` | `Unknown`: `DeploymentPaused`, `DeploymentResumed` |
//! | `ReplicaFailure` | `True` while a set has it, with the reason of that set |

use std::time::Duration;

use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetStatus},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::{Api, ResourceExt, api::PostParams};

use super::{
    super::{
        ignore_outdated,
        optional::{self, string},
        replica_set::{self, REPLICA_FAILURE},
    },
    Rollout, revisions,
};

/// The condition for enough available Pods.
const AVAILABLE: &str = "Available";
/// The condition for the progress of a rollout.
const PROGRESSING: &str = "Progressing";
/// The reason of `Progressing` for a complete rollout. No further progress is expected.
const COMPLETE: &str = "NewReplicaSetAvailable";
/// The reason of `Progressing` after `progressDeadlineSeconds` without progress.
const TIMED_OUT: &str = "ProgressDeadlineExceeded";

/// A status under construction.
///
/// Built at the start of a pass, completed during it and written at its end.
pub(super) struct StatusUpdate<'a> {
    rollout: &'a Rollout<'a>,
    /// The time of the pass; all conditions that change in it get this time.
    now: Time,
    before: DeploymentStatus,
    new: DeploymentStatus,
    /// `true` if this pass created the current set.
    has_created: bool,
}

impl<'a> StatusUpdate<'a> {
    /// Counts Pods, and copies the conditions of the stored status.
    pub(super) fn new(rollout: &'a Rollout<'a>, now: Time) -> Self {
        let before = rollout.deployment.status.clone().unwrap_or_default();
        let mut new = calculate_status(rollout);
        new.conditions.clone_from(&before.conditions);
        Self { rollout, now, before, new, has_created: false }
    }

    fn deployment(&self) -> &Deployment {
        self.rollout.deployment
    }

    /// Sets `Progressing` for a paused or resumed Deployment (`checkPausedConditions`).
    ///
    /// A Deployment without a progress deadline has no such condition. A rollout that has timed out keeps its condition
    /// while paused.
    pub(super) fn pause(&mut self) {
        let reason = progress_condition(&self.before).and_then(|known| known.reason.as_deref());
        let is_paused = optional::deployment(self.deployment()).paused == Some(true);
        match (is_paused, reason) {
            _ if deadline(self.deployment()).is_none() => {}
            (true, Some(TIMED_OUT | "DeploymentPaused")) => {}
            (true, _) => self.set(PROGRESSING, "Unknown", "DeploymentPaused", "Deployment is paused".into()),
            (false, Some("DeploymentPaused")) => {
                self.set(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed".into());
            }
            (false, _) => {}
        }
    }

    /// Sets `Progressing` for a new set.
    ///
    /// The deadline starts at this time.
    pub(super) fn record_new_set(&mut self, name: &str) {
        self.has_created = true;
        if deadline(self.deployment()).is_some() {
            self.set(PROGRESSING, "True", "NewReplicaSetCreated", format!("Created new replica set {name:?}"));
        }
    }

    /// Returns `true` if all Pods exist and are of the present template (`DeploymentComplete`).
    ///
    /// Running Pods of old sets make `replicas` larger than desired.
    pub(super) fn is_complete(&self) -> bool {
        let wanted = self.rollout.bounds.replicas;
        let has = |n: Option<i32>| n.unwrap_or(0) == wanted;
        has(self.new.replicas) && has(self.new.updated_replicas) && has(self.new.available_replicas)
    }

    /// Writes the status and the revision of the Deployment, if they differ. Returns the number of writes.
    ///
    /// Status and annotation are written in one request: the API server accepts annotations of a Deployment in a write
    /// of its status.
    pub(super) async fn write(&mut self) -> kube::Result<usize> {
        self.set_available();
        self.set_progressing();
        self.set_replica_failure();
        let (rollout, deployment) = (self.rollout, self.rollout.deployment);
        let mut changed = deployment.clone();
        if rollout.current.is_some() || self.has_created {
            let revision = revisions::current(rollout.current, &rollout.old).to_string();
            changed.annotations_mut().insert(revisions::REVISION.into(), revision);
        }
        changed.status = Some(self.new.clone());
        if changed == *deployment {
            return Ok(0);
        }
        changed.metadata.managed_fields = None;
        let namespace = deployment.namespace().unwrap_or_default();
        let api = Api::<Deployment>::namespaced(rollout.workloads.client.clone(), &namespace);
        ignore_outdated(api.replace_status(&deployment.name_any(), &PostParams::default(), &changed).await)?;
        Ok(1)
    }

    fn set_available(&mut self) {
        let bounds = &self.rollout.bounds;
        if self.new.available_replicas.unwrap_or(0) >= bounds.replicas - bounds.unavailable {
            let message = "Deployment has minimum availability.";
            self.set(AVAILABLE, "True", "MinimumReplicasAvailable", message.into());
        } else {
            let message = "Deployment does not have minimum availability.";
            self.set(AVAILABLE, "False", "MinimumReplicasUnavailable", message.into());
        }
    }

    /// Sets the condition `Progressing` (`syncRolloutStatus` upstream).
    ///
    /// A complete rollout remains complete until there are Pods of another template: Pods that fail later do not belong
    /// to the rollout. Progress keeps `lastTransitionTime` and renews `lastUpdateTime`, from which the deadline counts.
    fn set_progressing(&mut self) {
        let Some(deadline) = deadline(self.deployment()) else {
            self.remove(PROGRESSING);
            return;
        };
        let is_paused = optional::deployment(self.deployment()).paused == Some(true);
        let was_complete = progress_condition(&self.new).is_some_and(|known| known.reason.as_deref() == Some(COMPLETE));
        if is_paused || self.has_created || (was_complete && self.new.replicas == self.new.updated_replicas) {
            return;
        }
        let Some(set) = self.rollout.current.map(ResourceExt::name_any) else { return };
        if self.is_complete() {
            let message = format!("ReplicaSet {set:?} has successfully progressed.");
            self.set(PROGRESSING, "True", COMPLETE, message);
        } else if self.has_progressed() {
            let since = progress_condition(&self.new).filter(|known| string(&known.status) == Some("True"));
            let since = since.and_then(|known| known.last_transition_time.clone());
            // It is then added again at the end of the list, as upstream does.
            self.remove(PROGRESSING);
            self.set(PROGRESSING, "True", "ReplicaSetUpdated", format!("ReplicaSet {set:?} is progressing."));
            if let (Some(since), Some(now)) = (since, self.new.conditions.iter_mut().flatten().last()) {
                now.last_transition_time = Some(since);
            }
        } else if is_overdue(&self.new, deadline, self.now.0) {
            self.set(PROGRESSING, "False", TIMED_OUT, format!("ReplicaSet {set:?} has timed out progressing."));
        }
    }

    /// Returns `true` if there are more Pods of the new template or fewer of the old ones than before
    /// (`DeploymentProgressing`).
    fn has_progressed(&self) -> bool {
        let [before, new] = [&self.before, &self.new].map(|status| {
            let of = |n: Option<i32>| n.unwrap_or(0);
            let updated = of(status.updated_replicas);
            let n_old = of(status.replicas) - updated;
            [updated, -n_old, of(status.ready_replicas), of(status.available_replicas)]
        });
        before.iter().zip(new).any(|(before, new)| new > *before)
    }

    /// Copies `ReplicaFailure` of a set, of the current one first (`getReplicaFailures`). A paused Deployment keeps it.
    fn set_replica_failure(&mut self) {
        if optional::deployment(self.deployment()).paused == Some(true) {
            return;
        }
        let rollout = self.rollout;
        let failure = rollout.sets().find_map(replica_set::failure);
        match failure {
            Some(failure) => {
                let (reason, message) = (failure.reason.clone().unwrap_or_default(), failure.message.clone());
                self.set(REPLICA_FAILURE, "True", &reason, message.unwrap_or_default());
            }
            None => self.remove(REPLICA_FAILURE),
        }
    }

    /// Removes a condition.
    fn remove(&mut self, kind: &str) {
        if let Some(all) = &mut self.new.conditions {
            all.retain(|known| string(&known.type_) != Some(kind));
        }
    }

    /// Sets a condition. An unchanged one keeps its times; a changed one moves to the end (`SetDeploymentCondition`).
    ///
    /// `lastTransitionTime` changes only with the status; a new reason alone keeps it.
    fn set(&mut self, kind: &str, status: &str, reason: &str, message: String) {
        let all = self.new.conditions.get_or_insert_default();
        let at = all.iter().position(|known| string(&known.type_) == Some(kind));
        let known = at.map(|at| &all[at]).filter(|known| string(&known.status) == Some(status));
        if known.is_some_and(|known| known.reason.as_deref() == Some(reason)) {
            return;
        }
        let since = known.and_then(|known| known.last_transition_time.clone()).unwrap_or_else(|| self.now.clone());
        all.retain(|known| string(&known.type_) != Some(kind));
        all.push(DeploymentCondition {
            type_: <_>::from(kind.to_owned()),
            status: <_>::from(status.to_owned()),
            reason: Some(reason.into()),
            message: Some(message),
            last_transition_time: Some(since),
            last_update_time: Some(self.now.clone()),
        });
    }
}

/// Returns the counts (`calculateStatus`).
///
/// Unavailable Pods are desired Pods that are not available. Counts are sums over the statuses of the sets, so they lag
/// behind the Pods by a pass.
fn calculate_status(rollout: &Rollout<'_>) -> DeploymentStatus {
    let status = |set: &ReplicaSet| set.status.clone().unwrap_or_default();
    let sum = |of: fn(&ReplicaSetStatus) -> Option<i32>| rollout.sets().filter_map(|set| of(&status(set))).sum::<i32>();
    let some = |n: i32| (n > 0).then_some(n);
    let available = sum(|status| status.available_replicas);
    let known = rollout.deployment.status.clone();
    DeploymentStatus {
        observed_generation: rollout.deployment.metadata.generation,
        replicas: some(sum(|status| Some(status.replicas))),
        updated_replicas: some(rollout.current.map_or(0, |set| status(set).replicas)),
        ready_replicas: some(sum(|status| status.ready_replicas)),
        available_replicas: some(available),
        unavailable_replicas: some(rollout.n_desired() - available),
        terminating_replicas: replica_set::terminating_replicas(
            sum(|status| status.terminating_replicas),
            known.as_ref().map(|known| (known.observed_generation, known.terminating_replicas)),
        ),
        ..known.unwrap_or_default()
    }
}

fn progress_condition(status: &DeploymentStatus) -> Option<&DeploymentCondition> {
    status.conditions.iter().flatten().find(|known| string(&known.type_) == Some(PROGRESSING))
}

/// Returns `progressDeadlineSeconds`; `None` for `MaxInt32`, which means no deadline.
///
/// The API server sets 600 seconds by default.
fn deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds = optional::deployment(deployment).progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Returns the time at which progress is overdue, or `None` if no progress is expected.
///
/// The deadline counts from the last update of the condition.
fn progress_deadline(status: &DeploymentStatus, deadline: Duration) -> Option<Timestamp> {
    let known = progress_condition(status)?;
    let is_over = [COMPLETE, TIMED_OUT].contains(&known.reason.as_deref().unwrap_or_default());
    let since = known.last_update_time.as_ref().filter(|_| !is_over)?;
    since.0.checked_add(deadline).ok()
}

/// Returns `true` if progress is overdue (`DeploymentTimedOut`).
fn is_overdue(status: &DeploymentStatus, deadline: Duration, now: Timestamp) -> bool {
    progress_deadline(status, deadline).is_some_and(|end| end < now)
}

/// Returns the time until progress is overdue, or `None` if no progress is expected.
///
/// The caller sleeps until then, because no change announces that a deadline has passed.
pub(in crate::workloads) fn time_until_deadline(deployment: &Deployment, now: Timestamp) -> Option<Duration> {
    if optional::deployment(deployment).paused == Some(true) {
        return None;
    }
    let end = progress_deadline(deployment.status.as_ref()?, deadline(deployment)?)?;
    // Times in objects are whole seconds, so the deadline has passed only after its last second.
    let wait = Duration::try_from(end.duration_since(now)).unwrap_or_default();
    Some(wait + Duration::from_secs(1))
}
