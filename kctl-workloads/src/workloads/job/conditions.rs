//! The conditions of a Job.
//!
//! Upstream: `pkg/controller/job/job_controller.go`. A result is announced first, and becomes final when no Pods are
//! left:
//!
//! | result | announced by | final |
//! |---|---|---|
//! | success | `SuccessCriteriaMet` | `Complete` |
//! | failure | `FailureTarget` | `Failed` |

use k8s_openapi::{
    api::batch::v1::{Job, JobCondition},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

/// The result of a Job. The Job ends when its last Pod has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// `true` for a success.
    pub(super) has_succeeded: bool,
    /// The reason of both conditions, in `CamelCase`.
    reason: String,
    message: String,
}

impl Verdict {
    /// Creates the result of a successful Job.
    ///
    /// The reason is `CompletionsReached` or `SuccessPolicy`.
    pub(super) fn success(reason: &str, message: &str) -> Self {
        Self { has_succeeded: true, reason: reason.into(), message: message.into() }
    }

    /// Creates the result of a failed Job.
    ///
    /// The reason names the limit that was exceeded or the rule that matched.
    pub(super) fn failure(reason: &str, message: &str) -> Self {
        Self { has_succeeded: false, reason: reason.into(), message: message.into() }
    }

    /// Returns the condition that is set at once, and the one that is set when all Pods have ended.
    fn kinds(&self) -> (&'static str, &'static str) {
        if self.has_succeeded { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") }
    }

    /// Returns a condition of this result.
    fn condition(&self, kind: &'static str) -> NewCondition<'_> {
        NewCondition { kind, status: "True", reason: &self.reason, message: &self.message }
    }
}

/// A condition that a Job gets.
#[derive(Clone, Copy)]
struct NewCondition<'a> {
    /// The type, such as `Suspended`.
    kind: &'a str,
    /// `True` or `False`.
    status: &'a str,
    /// The reason, in `CamelCase`.
    reason: &'a str,
    message: &'a str,
}

/// The condition of a suspended Job.
const SUSPENDED: NewCondition<'static> =
    NewCondition { kind: "Suspended", status: "True", reason: "JobSuspended", message: "Job suspended" };
/// The condition of a Job that was suspended and runs again.
const RESUMED: NewCondition<'static> =
    NewCondition { kind: "Suspended", status: "False", reason: "JobResumed", message: "Job resumed" };

/// The state that the conditions of a Job show.
#[derive(Clone, Copy, Debug)]
pub(super) enum Progress<'a> {
    /// The Job creates Pods.
    Running,
    /// The Job has no Pods until it is resumed (`spec.suspend`).
    Suspended,
    /// The result is known, while Pods are running, terminating or uncounted.
    Ending(&'a Verdict),
    /// The result is final.
    Ended(&'a Verdict),
}

/// Returns a condition with the status `True`.
fn is_true<'a>(all: &'a [JobCondition], kind: &str) -> Option<&'a JobCondition> {
    all.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

fn job_conditions(job: &Job) -> &[JobCondition] {
    job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

/// Returns `true` if the Job is `Complete` or `Failed`.
pub(super) fn is_finished(job: &Job) -> bool {
    ended_at(job).is_some()
}

/// Returns the time at which the Job finished.
///
/// A condition without a time, which another client may have written, counts as very old.
pub(super) fn ended_at(job: &Job) -> Option<Timestamp> {
    let ended = is_true(job_conditions(job), "Complete").or_else(|| is_true(job_conditions(job), "Failed"))?;
    Some(ended.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

/// Returns the result that the conditions of a Job record.
///
/// A result is final: Pods that end after it do not change it.
pub(super) fn verdict(job: &Job) -> Option<Verdict> {
    let reason_and_message = |kind: &str| {
        let known = is_true(job_conditions(job), kind)?;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Some((text(&known.reason), text(&known.message)))
    };
    if let Some((reason, message)) = reason_and_message("SuccessCriteriaMet") {
        return Some(Verdict::success(&reason, &message));
    }
    reason_and_message("FailureTarget").map(|(reason, message)| Verdict::failure(&reason, &message))
}

/// Returns the conditions after this pass.
///
/// A Job with a result is neither suspended nor resumed. A Job that was never suspended has no condition `Suspended`.
pub(super) fn next(mut all: Vec<JobCondition>, progress: Progress<'_>, now: Timestamp) -> Vec<JobCondition> {
    match progress {
        Progress::Running if is_true(&all, "Suspended").is_none() => {}
        Progress::Running => set(&mut all, RESUMED, now),
        Progress::Suspended => set(&mut all, SUSPENDED, now),
        Progress::Ending(verdict) => set(&mut all, verdict.condition(verdict.kinds().0), now),
        Progress::Ended(verdict) => {
            let (announced, last) = verdict.kinds();
            set(&mut all, verdict.condition(announced), now);
            set(&mut all, verdict.condition(last), now);
        }
    }
    all
}

/// Sets a condition. One that has this status already keeps its times, and its reason even if the new reason differs.
fn set(all: &mut Vec<JobCondition>, new: NewCondition<'_>, now: Timestamp) {
    let NewCondition { kind, status, reason, message } = new;
    if all.iter().any(|known| known.type_ == kind && known.status == status) {
        return;
    }
    all.retain(|known| known.type_ != kind);
    all.push(JobCondition {
        type_: kind.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    });
}
