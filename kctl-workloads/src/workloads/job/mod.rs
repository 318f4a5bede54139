//! Syncs a Job: runs Pods until enough of them have succeeded, or too many have failed.
//!
//! Like the job controller (`pkg/controller/job`), it counts each ended Pod exactly once, even if this process stops.
//! First the Pod's uid is added to `status.uncountedTerminatedPods`. Then its finalizer is removed, and only then it is
//! counted. A pass either writes the status or changes Pods. Backoff between failed Pods is not simulated.
//!
//! | case | result |
//! |---|---|
//! | `completions` Pods, or indexes, have succeeded | `Complete`, reason `CompletionsReached` |
//! | a rule of `successPolicy` is met | `Complete`, reason `SuccessPolicy` |
//! | more than `backoffLimit` Pods have failed | `Failed`, reason `BackoffLimitExceeded` |
//! | `activeDeadlineSeconds` are over | `Failed`, reason `DeadlineExceeded` |
//! | a rule `FailJob` matches | `Failed`, reason `PodFailurePolicy` |
//! | more than `maxFailedIndexes` have failed | `Failed`, reason `MaxFailedIndexesExceeded` |
//! | no index is left and some have failed | `Failed`, reason `FailedIndexes` |
//!
//! `SuccessCriteriaMet` or `FailureTarget` is set at once. `Complete` or `Failed` follows when all
//! Pods have ended and are counted.

mod conditions;
mod indexes;
mod policies;
mod state;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::{
    api::{
        batch::v1::{Job, JobStatus},
        core::v1::Pod,
    },
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use serde_json::json;

use super::{Lists, Workloads, ignore_outdated, is_alive, is_controlled, reference};
use conditions::{ended_at, is_finished};
use state::JobState;

/// The finalizer that keeps a Pod until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Performs one step of a Job. Returns the number of writes.
///
/// The status is compared first. If it differs, only the status is written in this pass. So no Pod is changed on the
/// basis of counts that are not stored yet.
pub(super) async fn sync(workloads: &Workloads, job: &Job, lists: &Lists) -> kube::Result<usize> {
    let now = workloads.clock.now();
    let pods: Vec<_> = lists.pods.iter().filter(|pod| is_controlled(*pod, job)).collect();
    if is_finished(job) || !is_alive(job) {
        return end(workloads, job, &pods, now).await;
    }
    let state = JobState::compute(job, &pods);
    let status = state.status(now);
    if job.status.as_ref() != Some(&status) {
        return update_status(workloads, job, status).await;
    }
    state.sync_pods(workloads, now).await
}

/// Iterates over the Pods that have the finalizer, but whose Job no longer exists.
pub(super) fn orphans(lists: &Lists) -> impl Iterator<Item = &Pod> {
    let has_job = move |pod: &Pod| lists.jobs.iter().any(|job| is_controlled(pod, job));
    lists.pods.iter().filter(move |pod| is_tracked(pod) && !has_job(pod))
}

/// Returns the time until the Job's deadline or expiry, which no change announces.
pub(super) fn time_until_deadline(job: &Job, now: Timestamp) -> Option<Duration> {
    let at = if is_finished(job) { expiry(job) } else { deadline(job) };
    at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// Returns the time at which a running Job exceeds `activeDeadlineSeconds`.
fn deadline(job: &Job) -> Option<Timestamp> {
    let spec = job.spec.as_ref().filter(|spec| spec.suspend != Some(true))?;
    let begun = job.status.as_ref()?.start_time.as_ref()?.0;
    begun.checked_add(SignedDuration::from_secs(spec.active_deadline_seconds?)).ok()
}

/// Returns the time at which a finished Job is deleted (`ttlSecondsAfterFinished`).
fn expiry(job: &Job) -> Option<Timestamp> {
    let after = job.spec.as_ref()?.ttl_seconds_after_finished?;
    ended_at(job)?.checked_add(SignedDuration::from_secs(after.into())).ok()
}

/// Releases the Pods of a Job that is finished or deleted, and deletes the Job when it expires.
async fn end(workloads: &Workloads, job: &Job, pods: &[&Pod], now: Timestamp) -> kube::Result<usize> {
    let mut n_writes = 0;
    for pod in pods.iter().filter(|pod| is_tracked(pod)) {
        release(workloads, pod).await?;
        n_writes += 1;
    }
    if is_alive(job) && expiry(job).is_some_and(|at| at <= now) {
        let exactly = Preconditions { uid: job.uid(), resource_version: None };
        let whole = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
        ignore_outdated(jobs(workloads, job).delete(&job.name_any(), &whole.preconditions(exactly)).await)?;
        n_writes += 1;
    }
    Ok(n_writes)
}

impl JobState<'_> {
    /// Deletes and creates Pods as the status demands.
    async fn sync_pods(&self, workloads: &Workloads, now: Timestamp) -> kube::Result<usize> {
        let mut n_writes = 0;
        for pod in &self.held {
            release(workloads, pod).await?;
            n_writes += 1;
        }
        let verdict = self.verdict(now);
        let wanted = if verdict.is_some() || self.is_suspended() { 0 } else { self.pods_to_run() };
        // The running Pods of a failed Job count as failed. Ended Pods are released first.
        let counts = verdict.is_some_and(|verdict| !verdict.has_succeeded);
        for pod in self.active.iter().skip(wanted) {
            n_writes += 1;
            if counts || release(workloads, pod).await? {
                n_writes += delete(workloads, pod).await?;
            }
        }
        let missing = wanted.saturating_sub(self.active.len() + self.blocking_pods().len());
        // `pods_to_run` counts free indexes, so an indexed Job has one for each missing Pod.
        let mut free = self.free_indexes().into_iter();
        for _ in 0..missing {
            let index = if self.is_indexed() { free.next() } else { None };
            debug_assert_eq!(index.is_some(), self.is_indexed(), "validation requires `completions` of an indexed Job");
            let mut pod = new_pod(self.job, index);
            if let (Some(index), Some(_)) = (index, self.limit_per_index()) {
                self.failures.get(&index).copied().unwrap_or_default().write_annotations(&mut pod);
            }
            let api = Api::<Pod>::namespaced(workloads.client.clone(), &self.job.namespace().unwrap_or_default());
            ignore_outdated(api.create(&PostParams::default(), &pod).await)?;
            n_writes += 1;
        }
        Ok(n_writes)
    }

    /// Returns the number of Pods that should run.
    fn pods_to_run(&self) -> usize {
        let Some(spec) = &self.job.spec else { return 0 };
        let at_once = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or(0);
        match spec.completions {
            Some(_) if self.is_indexed() => {
                let indexes = self.active.iter().filter_map(|pod| indexes::index(pod));
                at_once.min(indexes.filter(|index| self.has_index(*index)).count() + self.free_indexes().len())
            }
            Some(completions) => {
                at_once.min(usize::try_from(completions).unwrap_or(0).saturating_sub(self.n_succeeded()))
            }
            // After the first success of a Job without `completions`, no Pod is created, and the running Pods end by
            // themselves.
            None if self.n_succeeded() > 0 => self.active.len().min(at_once),
            None => at_once,
        }
    }

    /// Returns the indexes without a Pod that have neither succeeded nor failed too often.
    fn free_indexes(&self) -> Vec<i32> {
        let mut done = self.succeeded_indexes();
        done.extend(self.failed_indexes());
        let pods = self.active.iter().chain(self.blocking_pods());
        let taken: BTreeSet<_> = pods.filter_map(|pod| indexes::index(pod)).collect();
        let completions = self.job.spec.as_ref().and_then(|spec| spec.completions).filter(|_| self.is_indexed());
        (0..completions.unwrap_or(0)).filter(|index| !done.contains(index) && !taken.contains(index)).collect()
    }
}

/// Returns `true` if the Pod is not counted yet.
fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|name| name == TRACKING)
}

fn new_pod(job: &Job, index: Option<i32>) -> Pod {
    let template = job.spec.clone().unwrap_or_default().template;
    let metadata = template.metadata.unwrap_or_default();
    let mut pod = Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", job.name_any())),
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: Some(vec![TRACKING.into()]),
            owner_references: Some(vec![reference(job)]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    };
    if let Some(index) = index {
        indexes::set_index(&mut pod, &job.name_any(), index);
    }
    pod
}

/// Removes the finalizer of a Pod. Returns `false` if another Pod has the same name.
pub(super) async fn release(workloads: &Workloads, pod: &Pod) -> kube::Result<bool> {
    let rest: Vec<_> = pod.finalizers().iter().filter(|name| *name != TRACKING).collect();
    let version = &pod.metadata.resource_version;
    let patch =
        Patch::Merge(json!({ "metadata": { "uid": pod.uid(), "resourceVersion": version, "finalizers": rest } }));
    let api = Api::<Pod>::namespaced(workloads.client.clone(), &pod.namespace().unwrap_or_default());
    let written = api.patch(&pod.name_any(), &PatchParams::default(), &patch).await;
    let is_current = written.is_ok();
    ignore_outdated(written)?;
    Ok(is_current)
}

/// Deletes a Pod. The uid is a precondition, so that a new Pod of the same name is not deleted.
async fn delete(workloads: &Workloads, pod: &Pod) -> kube::Result<usize> {
    let exactly = Preconditions { uid: pod.uid(), resource_version: None };
    let api = Api::<Pod>::namespaced(workloads.client.clone(), &pod.namespace().unwrap_or_default());
    ignore_outdated(api.delete(&pod.name_any(), &DeleteParams::default().preconditions(exactly)).await)?;
    Ok(1)
}

async fn update_status(workloads: &Workloads, job: &Job, status: JobStatus) -> kube::Result<usize> {
    let mut new = job.clone();
    new.status = Some(status);
    new.metadata.managed_fields = None;
    ignore_outdated(jobs(workloads, job).replace_status(&job.name_any(), &PostParams::default(), &new).await)?;
    Ok(1)
}

fn jobs(workloads: &Workloads, job: &Job) -> Api<Job> {
    Api::namespaced(workloads.client.clone(), &job.namespace().unwrap_or_default())
}
