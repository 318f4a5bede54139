//! A Job: pods until enough of them have succeeded, or too many have failed.
//!
//! Each pod that has ended is counted once, whenever this stops, as the real controller does it (`pkg/controller/job`): its uid is
//! noted in the status, its finalizer is taken away, and only then it is counted. A pass either says something or does
//! something. Left out: pauses between pods that fail.

mod conditions;
mod indexes;
mod policies;
mod state;
#[cfg(test)]
mod tests;

use std::time::Duration;

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

use super::{Lists, Workloads, is_alive, is_controlled, reference, unless_outdated};
use conditions::{ended_at, is_finished};
use state::JobState;

/// Keeps a pod until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Brings a Job one step on. Returns how much it wrote.
pub(super) async fn sync(workloads: &Workloads, job: &Job, lists: &Lists) -> kube::Result<usize> {
    let now = workloads.clock.now();
    let pods: Vec<_> = lists.pods.iter().filter(|pod| is_controlled(*pod, job)).collect();
    if is_finished(job) || !is_alive(job) {
        return end(workloads, job, &pods, now).await;
    }
    let state = JobState::of(job, &pods);
    let status = state.status(now);
    if job.status.as_ref() != Some(&status) {
        return tell(workloads, job, status).await;
    }
    state.act(workloads, now).await
}

/// Lets go of the pods whose Job is gone. Returns how much it wrote.
pub(super) async fn release_orphans(workloads: &Workloads, lists: &Lists) -> kube::Result<usize> {
    let mut n_writes = 0;
    for pod in lists.pods.iter().filter(|pod| is_tracked(pod)) {
        if !lists.jobs.iter().any(|job| is_controlled(pod, job)) {
            release(workloads, pod).await?;
            n_writes += 1;
        }
    }
    Ok(n_writes)
}

/// After which time something is to be done for a Job although nothing changes.
pub(super) fn due(job: &Job, now: Timestamp) -> Option<Duration> {
    let at = if is_finished(job) { expires(job) } else { deadline(job) };
    at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// When a Job that runs has run for too long.
fn deadline(job: &Job) -> Option<Timestamp> {
    let spec = job.spec.as_ref().filter(|spec| spec.suspend != Some(true))?;
    let begun = job.status.as_ref()?.start_time.as_ref()?.0;
    begun.checked_add(SignedDuration::from_secs(spec.active_deadline_seconds?)).ok()
}

/// When a Job that has ended goes.
fn expires(job: &Job) -> Option<Timestamp> {
    let after = job.spec.as_ref()?.ttl_seconds_after_finished?;
    ended_at(job)?.checked_add(SignedDuration::from_secs(after.into())).ok()
}

/// Lets go of the pods of a Job that has ended or is deleted, and of itself when its time is over.
async fn end(workloads: &Workloads, job: &Job, pods: &[&Pod], now: Timestamp) -> kube::Result<usize> {
    let mut n_writes = 0;
    for pod in pods.iter().filter(|pod| is_tracked(pod)) {
        release(workloads, pod).await?;
        n_writes += 1;
    }
    if is_alive(job) && expires(job).is_some_and(|at| at <= now) {
        let exactly = Preconditions { uid: job.uid(), resource_version: None };
        let whole = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
        unless_outdated(jobs(workloads, job).delete(&job.name_any(), &whole.preconditions(exactly)).await)?;
        n_writes += 1;
    }
    Ok(n_writes)
}

impl JobState<'_> {
    /// Does what the status says that there is to do.
    async fn act(&self, workloads: &Workloads, now: Timestamp) -> kube::Result<usize> {
        let mut n_writes = 0;
        for pod in &self.held {
            release(workloads, pod).await?;
            n_writes += 1;
        }
        let verdict = self.verdict(now);
        let wanted = if verdict.is_some() || self.is_suspended() { 0 } else { self.wanted() };
        // Of a Job that has failed, those that run have failed, too: they are counted. Others are let go before.
        let counts = verdict.is_some_and(|verdict| !verdict.has_succeeded);
        for pod in self.active.iter().skip(wanted) {
            n_writes += 1;
            if counts || release(workloads, pod).await? {
                n_writes += delete(workloads, pod).await?;
            }
        }
        let missing = wanted.saturating_sub(self.active.len());
        let mut free = self.free_indexes();
        for _ in 0..missing {
            let index = if self.is_indexed() { Some(free.remove(0)) } else { None };
            let mut pod = new_pod(self.job, index);
            if let (Some(index), Some(_)) = (index, self.limit_per_index()) {
                self.failures.get(&index).copied().unwrap_or_default().say(&mut pod);
            }
            let api = Api::<Pod>::namespaced(workloads.client.clone(), &self.job.namespace().unwrap_or_default());
            unless_outdated(api.create(&PostParams::default(), &pod).await)?;
            n_writes += 1;
        }
        Ok(n_writes)
    }

    /// How many pods there should be at a time.
    fn wanted(&self) -> usize {
        let Some(spec) = &self.job.spec else { return 0 };
        let at_once = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or(0);
        match spec.completions {
            Some(_) if self.is_indexed() => at_once.min(self.active.len() + self.free_indexes().len()),
            Some(completions) => {
                at_once.min(usize::try_from(completions).unwrap_or(0).saturating_sub(self.n_succeeded()))
            }
            // One that has succeeded says that the work is done: the others end, and none is made.
            None if self.n_succeeded() > 0 => self.active.len().min(at_once),
            None => at_once,
        }
    }

    /// The indexes that no pod has, and for which none has succeeded and not too many have failed.
    fn free_indexes(&self) -> Vec<i32> {
        let mut done = self.done();
        done.extend(self.failed_indexes());
        let taken: Vec<_> = self.active.iter().filter_map(|pod| indexes::of(pod)).collect();
        let completions = self.job.spec.as_ref().and_then(|spec| spec.completions).filter(|_| self.is_indexed());
        (0..completions.unwrap_or(0)).filter(|index| !done.contains(index) && !taken.contains(index)).collect()
    }
}

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
        indexes::give(&mut pod, &job.name_any(), index);
    }
    pod
}

/// Lets a pod go. Whether it was the one that is there.
async fn release(workloads: &Workloads, pod: &Pod) -> kube::Result<bool> {
    let rest: Vec<_> = pod.finalizers().iter().filter(|name| *name != TRACKING).collect();
    let version = &pod.metadata.resource_version;
    let patch =
        Patch::Merge(json!({ "metadata": { "uid": pod.uid(), "resourceVersion": version, "finalizers": rest } }));
    let api = Api::<Pod>::namespaced(workloads.client.clone(), &pod.namespace().unwrap_or_default());
    let written = api.patch(&pod.name_any(), &PatchParams::default(), &patch).await;
    let is_current = written.is_ok();
    unless_outdated(written)?;
    Ok(is_current)
}

async fn delete(workloads: &Workloads, pod: &Pod) -> kube::Result<usize> {
    let exactly = Preconditions { uid: pod.uid(), resource_version: None };
    let api = Api::<Pod>::namespaced(workloads.client.clone(), &pod.namespace().unwrap_or_default());
    unless_outdated(api.delete(&pod.name_any(), &DeleteParams::default().preconditions(exactly)).await)?;
    Ok(1)
}

async fn tell(workloads: &Workloads, job: &Job, status: JobStatus) -> kube::Result<usize> {
    let mut new = job.clone();
    new.status = Some(status);
    new.metadata.managed_fields = None;
    unless_outdated(jobs(workloads, job).replace_status(&job.name_any(), &PostParams::default(), &new).await)?;
    Ok(1)
}

fn jobs(workloads: &Workloads, job: &Job) -> Api<Job> {
    Api::namespaced(workloads.client.clone(), &job.namespace().unwrap_or_default())
}
