//! A Job: pods until enough of them have succeeded, or too many have failed.
//!
//! Each pod that has ended is counted once, whenever this stops, as the real controller does it (`pkg/controller/job`): its uid is
//! noted in the status, its finalizer is taken away, and only then it is counted. A pass either says something or does
//! something. Left out: pauses between pods that fail, `podFailurePolicy`, `successPolicy` and `backoffLimitPerIndex`.

mod conditions;
mod indexes;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::{
    api::{
        batch::v1::{Job, JobStatus, UncountedTerminatedPods},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use serde_json::json;

use super::{
    Lists, Workloads, is_alive, is_controlled, reference,
    replica_set::{count, is_ready, phase},
    unless_outdated,
};
use conditions::{Verdict, ended_at, is_finished, verdict};

/// Keeps a pod until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Brings a Job one step on. Returns how much it wrote.
pub(super) async fn sync(workloads: &Workloads, job: &Job, lists: &Lists) -> kube::Result<usize> {
    let now = workloads.clock.now();
    let pods: Vec<_> = lists.pods.iter().filter(|pod| is_controlled(*pod, job)).collect();
    if is_finished(job) || !is_alive(job) {
        return end(workloads, job, &pods, now).await;
    }
    let state = State::of(job, &pods);
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
            n_writes += release(workloads, pod).await?;
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
        n_writes += release(workloads, pod).await?;
    }
    if is_alive(job) && expires(job).is_some_and(|at| at <= now) {
        let exactly = Preconditions { uid: job.uid(), resource_version: None };
        let whole = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
        unless_outdated(jobs(workloads, job).delete(&job.name_any(), &whole.preconditions(exactly)).await)?;
        n_writes += 1;
    }
    Ok(n_writes)
}

/// A Job with its pods.
struct State<'a> {
    job: &'a Job,
    /// Those that neither have ended nor are about to.
    active: Vec<&'a Pod>,
    /// Those that are deleted and still there.
    n_going: usize,
    /// Those that have ended, or are deleted, and are not yet let go.
    held: Vec<&'a Pod>,
    /// What was counted, and what is noted to be counted.
    counted: JobStatus,
    noted: UncountedTerminatedPods,
}

impl<'a> State<'a> {
    fn of(job: &'a Job, pods: &[&'a Pod]) -> Self {
        let has_ended = |pod: &Pod| ["Succeeded", "Failed"].contains(&phase(pod));
        let mut state = Self {
            job,
            active: pods.iter().copied().filter(|pod| is_alive(*pod) && !has_ended(pod)).collect(),
            n_going: pods.iter().filter(|pod| !is_alive(**pod) && !has_ended(pod)).count(),
            held: pods.iter().copied().filter(|pod| (!is_alive(*pod) || has_ended(pod)) && is_tracked(pod)).collect(),
            counted: job.status.clone().unwrap_or_default(),
            noted: UncountedTerminatedPods::default(),
        };
        state.count();
        state.note();
        state
    }

    /// Whoever was noted and is let go counts.
    fn count(&mut self) {
        let known = self.counted.uncounted_terminated_pods.take().unwrap_or_default();
        let held: Vec<_> = self.held.iter().filter_map(|pod| pod.uid()).collect();
        let split = |uids: Option<Vec<String>>| {
            let (still, gone): (Vec<_>, Vec<_>) =
                uids.unwrap_or_default().into_iter().partition(|uid| held.contains(uid));
            (Some(still).filter(|still| !still.is_empty()), gone.len())
        };
        let ((succeeded, n_succeeded), (failed, n_failed)) = (split(known.succeeded), split(known.failed));
        let plus = |known: Option<i32>, n: usize| Some(known.unwrap_or(0) + count(n)).filter(|n| *n > 0);
        self.counted.succeeded = plus(self.counted.succeeded, n_succeeded);
        self.counted.failed = plus(self.counted.failed, n_failed);
        self.noted = UncountedTerminatedPods { succeeded, failed };
    }

    /// Whoever has ended is noted. What others have deleted has failed; what the Job deletes is let go before.
    fn note(&mut self) {
        for pod in &self.held {
            let Some(uid) = pod.uid() else { continue };
            let succeeded = phase(pod) == "Succeeded";
            let list = if succeeded { &mut self.noted.succeeded } else { &mut self.noted.failed };
            let list = list.get_or_insert_default();
            if !list.contains(&uid) {
                list.push(uid);
                if let Some(index) = indexes::of(pod).filter(|_| succeeded && self.is_indexed()) {
                    self.counted.completed_indexes =
                        Some(indexes::with(self.counted.completed_indexes.as_deref(), index));
                }
            }
        }
    }

    fn is_suspended(&self) -> bool {
        self.job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true))
    }

    fn is_indexed(&self) -> bool {
        self.job.spec.as_ref().is_some_and(|spec| spec.completion_mode.as_deref() == Some("Indexed"))
    }

    fn n_succeeded(&self) -> usize {
        if self.is_indexed() {
            return indexes::read(self.counted.completed_indexes.as_deref()).len();
        }
        all_of(self.counted.succeeded, self.noted.succeeded.as_deref())
    }

    fn n_failed(&self) -> usize {
        all_of(self.counted.failed, self.noted.failed.as_deref())
    }

    /// Times that containers were started again in pods that are left to do so.
    fn n_restarts(&self) -> i32 {
        let statuses =
            self.active.iter().flat_map(|pod| pod.status.iter().flat_map(|status| &status.container_statuses));
        statuses.flatten().map(|container| container.restart_count).sum()
    }

    /// What has become of the Job by now, if anything.
    fn verdict(&self, now: Timestamp) -> Option<Verdict> {
        let spec = self.job.spec.as_ref()?;
        if let Some(known) = verdict(self.job) {
            return Some(known);
        }
        let limit = spec.backoff_limit.unwrap_or(6);
        let restarts = self.n_restarts();
        if count(self.n_failed()) > limit || (restarts > 0 && restarts >= limit) {
            return Some(Verdict::PastBackoffLimit);
        }
        if deadline(self.job).is_some_and(|at| at <= now) {
            return Some(Verdict::PastDeadline);
        }
        let is_enough = match spec.completions {
            Some(completions) => count(self.n_succeeded()) >= completions,
            None => self.n_succeeded() > 0 && self.active.is_empty(),
        };
        (is_enough && !self.is_suspended()).then_some(Verdict::Succeeded)
    }

    /// What is to be said of the Job.
    fn status(&self, now: Timestamp) -> JobStatus {
        let verdict = self.verdict(now);
        let is_over = self.active.is_empty() && self.n_going == 0 && self.held.is_empty();
        let mut status = self.counted.clone();
        status.uncounted_terminated_pods = Some(self.noted.clone());
        status.active = Some(count(self.active.len())).filter(|n| *n > 0);
        status.ready = Some(count(self.active.iter().filter(|pod| is_ready(pod)).count()));
        status.terminating = Some(count(self.n_going));
        let before = status.conditions.take().unwrap_or_default();
        status.conditions = Some(conditions::next(before, verdict, is_over, self.is_suspended(), now));
        status.conditions = status.conditions.filter(|all| !all.is_empty());
        match verdict {
            Some(Verdict::Succeeded) if is_over => status.completion_time = Some(Time(now)),
            None if self.is_suspended() => status.start_time = None,
            _ => status.start_time = status.start_time.or(Some(Time(now))),
        }
        if verdict.is_some() {
            status.start_time = status.start_time.or(Some(Time(now)));
        }
        status
    }

    /// Does what the status says that there is to do.
    async fn act(&self, workloads: &Workloads, now: Timestamp) -> kube::Result<usize> {
        let mut n_writes = 0;
        for pod in &self.held {
            n_writes += release(workloads, pod).await?;
        }
        let wanted = if self.verdict(now).is_some() || self.is_suspended() { 0 } else { self.wanted() };
        for pod in self.active.iter().skip(wanted) {
            n_writes += release(workloads, pod).await? + delete(workloads, pod).await?;
        }
        let missing = wanted.saturating_sub(self.active.len());
        let mut free = self.free_indexes();
        for _ in 0..missing {
            let index = if self.is_indexed() { Some(free.remove(0)) } else { None };
            let api = Api::<Pod>::namespaced(workloads.client.clone(), &self.job.namespace().unwrap_or_default());
            unless_outdated(api.create(&PostParams::default(), &new_pod(self.job, index)).await)?;
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

    /// The indexes that no pod has, and for which none has succeeded.
    fn free_indexes(&self) -> Vec<i32> {
        let done = indexes::read(self.counted.completed_indexes.as_deref());
        let taken: Vec<_> = self.active.iter().filter_map(|pod| indexes::of(pod)).collect();
        let completions = self.job.spec.as_ref().and_then(|spec| spec.completions).filter(|_| self.is_indexed());
        (0..completions.unwrap_or(0)).filter(|index| !done.contains(index) && !taken.contains(index)).collect()
    }
}

fn all_of(counted: Option<i32>, noted: Option<&[String]>) -> usize {
    usize::try_from(counted.unwrap_or(0)).unwrap_or(0) + noted.map_or(0, <[String]>::len)
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

/// Lets a pod go.
async fn release(workloads: &Workloads, pod: &Pod) -> kube::Result<usize> {
    let rest: Vec<_> = pod.finalizers().iter().filter(|name| *name != TRACKING).collect();
    let version = &pod.metadata.resource_version;
    let patch =
        Patch::Merge(json!({ "metadata": { "uid": pod.uid(), "resourceVersion": version, "finalizers": rest } }));
    let api = Api::<Pod>::namespaced(workloads.client.clone(), &pod.namespace().unwrap_or_default());
    unless_outdated(api.patch(&pod.name_any(), &PatchParams::default(), &patch).await)?;
    Ok(1)
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
