//! The state of a Job: decides how each of its Pods is counted.
//!
//! A Pod is counted in three steps (`trackJobStatusAndRemoveFinalizers` upstream). Its uid is recorded in
//! `status.uncountedTerminatedPods`, its finalizer is removed, and it is counted once the finalizer is gone. Each step
//! is idempotent, so a crash between two of them counts no Pod twice.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::{
        batch::v1::{Job, JobStatus, UncountedTerminatedPods},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::ResourceExt;

use super::{
    super::{
        is_alive,
        replica_set::{count, is_ready, phase},
    },
    conditions::{self, Progress, Verdict, verdict},
    deadline,
    indexes::{self, Failures},
    is_tracked,
    policies::{self, PodFailure},
};

pub(super) struct JobState<'a> {
    pub(super) job: &'a Job,
    /// Pods that have not ended and are not being deleted. For an indexed Job they are sorted by index, so that the last
    /// ones are deleted if the Job shrinks.
    pub(super) active: Vec<&'a Pod>,
    /// Pods that are being deleted and have not ended.
    terminating: Vec<&'a Pod>,
    /// Pods that have ended or are being deleted, and still have the tracking finalizer.
    pub(super) held: Vec<&'a Pod>,
    /// The status of the Job, with the counts of this pass.
    counted: JobStatus,
    /// Uids of Pods that will be counted once their finalizer is gone.
    noted: UncountedTerminatedPods,
    /// The failures of each index so far.
    pub(super) failures: BTreeMap<i32, Failures>,
    /// The result of the Job, if a Pod has failed it (`podFailurePolicy`).
    failure: Option<Verdict>,
}

impl<'a> JobState<'a> {
    /// Computes the state from the Job and its Pods.
    ///
    /// `pods` are all Pods that the Job controls, in any state.
    pub(super) fn compute(job: &'a Job, pods: &[&'a Pod]) -> Self {
        let has_ended = |pod: &Pod| ["Succeeded", "Failed"].contains(&phase(pod));
        let waits = policies::replaces_only_ended_pods(job);
        let counts_as_ended = |pod: &Pod| has_ended(pod) || (!is_alive(pod) && !waits);
        let mut active_pods: Vec<_> = pods.iter().copied().filter(|pod| is_alive(*pod) && !has_ended(pod)).collect();
        active_pods.sort_by_key(|pod| indexes::index(pod));
        let mut state = Self {
            job,
            active: active_pods,
            terminating: pods.iter().copied().filter(|pod| !is_alive(*pod) && !has_ended(pod)).collect(),
            held: pods.iter().copied().filter(|pod| counts_as_ended(pod) && is_tracked(pod)).collect(),
            counted: job.status.clone().unwrap_or_default(),
            noted: UncountedTerminatedPods::default(),
            failures: BTreeMap::new(),
            failure: None,
        };
        state.forget_surplus_indexes();
        state.count();
        state.record_ended_pods();
        state.count_by_index(pods);
        state
    }

    /// Forgets succeeded indexes that an indexed Job no longer has, since it can shrink (`parseIndexesFromString`).
    fn forget_surplus_indexes(&mut self) {
        let (kept, surplus): (BTreeSet<_>, BTreeSet<_>) =
            self.succeeded_indexes().into_iter().partition(|index| self.has_index(*index));
        if !surplus.is_empty() {
            self.counted.completed_indexes = Some(indexes::write(kept)).filter(|text| !text.is_empty());
        }
    }

    /// Counts the Pods that were recorded earlier and have lost their finalizer.
    ///
    /// A recorded Pod may also have been deleted entirely, which means as well that its finalizer was removed.
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

    /// Records the Pods that have ended. A Pod that another client deleted has failed. If the Job deletes a Pod, it
    /// removes the finalizer first.
    ///
    /// An index is recorded with the Pod, so that both are stored by the same write.
    fn record_ended_pods(&mut self) {
        for pod in self.held.clone() {
            let Some(uid) = pod.uid() else { continue };
            let succeeded = phase(pod) == "Succeeded";
            if !succeeded && !self.note_failure(pod) {
                continue;
            }
            let list = if succeeded { &mut self.noted.succeeded } else { &mut self.noted.failed };
            let list = list.get_or_insert_default();
            if !list.contains(&uid) {
                list.push(uid);
                let is_done = |index: &i32| succeeded && self.is_indexed() && self.has_index(*index);
                if let Some(index) = indexes::index(pod).filter(is_done) {
                    self.counted.completed_indexes =
                        Some(indexes::add_index(self.counted.completed_indexes.as_deref(), index));
                }
            }
        }
    }

    /// Returns `true` if a failed Pod is counted.
    ///
    /// It also records a failed index, and the result of a rule `FailJob`. An ignored failure is not counted, but the
    /// finalizer of its Pod is removed and the Pod is replaced.
    fn note_failure(&mut self, pod: &Pod) -> bool {
        let failure = policies::failure(self.job, pod);
        let limit = self.limit_per_index();
        let is_past = limit.is_some_and(|limit| Failures::before(pod).counted >= limit);
        if let Some(index) = indexes::index(pod).filter(|_| limit.is_some()) {
            let fails = failure == PodFailure::OfIndex || (failure == PodFailure::Counts && is_past);
            if fails && !self.succeeded_indexes().contains(&index) {
                self.counted.failed_indexes = Some(indexes::add_index(self.counted.failed_indexes.as_deref(), index));
            }
        }
        match failure {
            PodFailure::Ignored => return false,
            PodFailure::OfJob(why) => {
                self.failure.get_or_insert_with(|| Verdict::failure("PodFailurePolicy", &why));
            }
            PodFailure::Counts | PodFailure::OfIndex => {}
        }
        true
    }

    /// Counts the failures of each index, which the next Pod of the index carries in annotations.
    ///
    /// Only Jobs with `backoffLimitPerIndex` need them. Failed Pods may be deleted, so the highest count of the
    /// remaining Pods is used.
    fn count_by_index(&mut self, pods: &[&'a Pod]) {
        if self.limit_per_index().is_none() {
            return;
        }
        self.counted.failed_indexes.get_or_insert_default();
        for pod in pods.iter().filter(|pod| phase(pod) == "Failed" || !is_alive(**pod)) {
            let Some(index) = indexes::index(pod) else { continue };
            let mut after = Failures::before(pod);
            if policies::failure(self.job, pod) == PodFailure::Ignored {
                after.ignored += 1;
            } else {
                after.counted += 1;
            }
            let known = self.failures.entry(index).or_default();
            *known = after.max(*known);
        }
    }

    /// Returns the Pods that are being deleted and are replaced only after their end.
    pub(super) fn blocking_pods(&self) -> &[&'a Pod] {
        if policies::replaces_only_ended_pods(self.job) { &self.terminating } else { &[] }
    }

    /// Returns the maximum number of failures of one index (`backoffLimitPerIndex`).
    ///
    /// `None` for a Job that is not indexed: validation rejects the field there.
    pub(super) fn limit_per_index(&self) -> Option<i32> {
        self.job.spec.as_ref()?.backoff_limit_per_index.filter(|_| self.is_indexed())
    }

    /// Returns the indexes that have succeeded.
    pub(super) fn succeeded_indexes(&self) -> BTreeSet<i32> {
        indexes::read(self.counted.completed_indexes.as_deref())
    }

    /// Returns `true` if the Job has this index. A Job without `completions` has all.
    pub(super) fn has_index(&self, index: i32) -> bool {
        self.job.spec.as_ref().and_then(|spec| spec.completions).is_none_or(|completions| index < completions)
    }

    /// Returns the indexes that have failed (`backoffLimitPerIndex`).
    pub(super) fn failed_indexes(&self) -> BTreeSet<i32> {
        indexes::read(self.counted.failed_indexes.as_deref())
    }

    /// Returns `true` for `spec.suspend`.
    pub(super) fn is_suspended(&self) -> bool {
        self.job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true))
    }

    /// Returns `true` for `completionMode: Indexed`.
    pub(super) fn is_indexed(&self) -> bool {
        self.job.spec.as_ref().is_some_and(|spec| spec.completion_mode.as_deref() == Some("Indexed"))
    }

    /// Returns the number of successes, including recorded ones that are not counted yet.
    ///
    /// For an indexed Job it is the number of indexes; two successful Pods of one index count once.
    pub(super) fn n_succeeded(&self) -> usize {
        if self.is_indexed() {
            return self.succeeded_indexes().len();
        }
        all_of(self.counted.succeeded, self.noted.succeeded.as_deref())
    }

    /// Returns the number of failures, including recorded ones that are not counted yet.
    fn n_failed(&self) -> usize {
        all_of(self.counted.failed, self.noted.failed.as_deref())
    }

    /// Returns the number of container restarts of the active Pods.
    ///
    /// With `restartPolicy: OnFailure`, failures are restarts within a Pod, and count towards `backoffLimit` as well.
    fn n_restarts(&self) -> i32 {
        let statuses =
            self.active.iter().flat_map(|pod| pod.status.iter().flat_map(|status| &status.container_statuses));
        statuses.flatten().map(|container| container.restart_count).sum()
    }

    /// Returns the result of the Job so far, if it has one.
    ///
    /// The first that applies decides: a stored result, a rule `FailJob`, the backoff limit, the deadline, indexes, a
    /// success policy and completions. A suspended Job may fail, but not succeed.
    pub(super) fn verdict(&self, now: Timestamp) -> Option<Verdict> {
        let spec = self.job.spec.as_ref()?;
        if let Some(known) = verdict(self.job).or_else(|| self.failure.clone()) {
            return Some(known);
        }
        let limit = spec.backoff_limit.unwrap_or(6);
        let restarts = self.n_restarts();
        if count(self.n_failed()) > limit || (restarts > 0 && restarts >= limit) {
            return Some(Verdict::failure("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        if deadline(self.job).is_some_and(|at| at <= now) {
            return Some(Verdict::failure("DeadlineExceeded", "Job was active longer than specified deadline"));
        }
        if let Some(failed) = self.verdict_of_indexes() {
            return Some(failed);
        }
        if let Some(message) = policies::success(self.job, &self.succeeded_indexes()).filter(|_| !self.is_suspended()) {
            return Some(Verdict::success("SuccessPolicy", &message));
        }
        let is_enough = match spec.completions {
            Some(completions) => count(self.n_succeeded()) >= completions,
            None => self.n_succeeded() > 0 && self.active.is_empty(),
        };
        let succeeded = || Verdict::success("CompletionsReached", "Reached expected number of succeeded pods");
        (is_enough && !self.is_suspended()).then(succeeded)
    }

    /// Returns the failure of the Job if too many indexes have failed, or if some have failed and no other index is
    /// left.
    ///
    /// It is `None` as long as an index can still succeed.
    fn verdict_of_indexes(&self) -> Option<Verdict> {
        let spec = self.job.spec.as_ref()?;
        let (n_failed, n_done) = (count(self.failed_indexes().len()), count(self.succeeded_indexes().len()));
        if spec.max_failed_indexes.is_some_and(|most| n_failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::failure("MaxFailedIndexesExceeded", message));
        }
        let is_all = n_failed > 0 && n_failed + n_done >= spec.completions.unwrap_or(0);
        is_all.then(|| Verdict::failure("FailedIndexes", "Job has failed indexes"))
    }

    /// Returns the new status of the Job.
    ///
    /// A suspended Job has no start time, so that its deadline starts again when it resumes. A Job with a result always
    /// has one.
    pub(super) fn status(&self, now: Timestamp) -> JobStatus {
        let verdict = self.verdict(now);
        let is_over = self.active.is_empty() && self.terminating.is_empty() && self.held.is_empty();
        let progress = match &verdict {
            Some(verdict) if is_over => Progress::Ended(verdict),
            Some(verdict) => Progress::Ending(verdict),
            None if self.is_suspended() => Progress::Suspended,
            None => Progress::Running,
        };
        let mut status = self.counted.clone();
        status.uncounted_terminated_pods = Some(self.noted.clone());
        status.active = Some(count(self.active.len())).filter(|n| *n > 0);
        status.ready = Some(count(self.active.iter().filter(|pod| is_ready(pod)).count()));
        status.terminating = Some(count(self.terminating.len()));
        let before = status.conditions.take().unwrap_or_default();
        status.conditions = Some(conditions::next(before, progress, now));
        status.conditions = status.conditions.filter(|all| !all.is_empty());
        if let Progress::Ended(verdict) = progress
            && verdict.has_succeeded
        {
            status.completion_time = Some(Time(now));
        }
        status.start_time = match progress {
            Progress::Suspended => None,
            Progress::Running | Progress::Ending(_) | Progress::Ended(_) => status.start_time.or(Some(Time(now))),
        };
        status
    }
}

/// Returns the sum of counted and recorded Pods.
fn all_of(counted: Option<i32>, noted: Option<&[String]>) -> usize {
    usize::try_from(counted.unwrap_or(0)).unwrap_or(0) + noted.map_or(0, <[String]>::len)
}
