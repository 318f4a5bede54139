//! What the conditions of a Job say of it.

use k8s_openapi::{
    api::batch::v1::{Job, JobCondition},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

/// What has become of a Job. It ends when its last pod has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Succeeded,
    PastBackoffLimit,
    PastDeadline,
}

impl Verdict {
    /// Reason and message, as the real controller has them.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Succeeded => ("CompletionsReached", "Reached expected number of succeeded pods"),
            Self::PastBackoffLimit => ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            Self::PastDeadline => ("DeadlineExceeded", "Job was active longer than specified deadline"),
        }
    }

    /// The condition that says it at once, and the one that says it in the end.
    fn kinds(self) -> (&'static str, &'static str) {
        match self {
            Self::Succeeded => ("SuccessCriteriaMet", "Complete"),
            Self::PastBackoffLimit | Self::PastDeadline => ("FailureTarget", "Failed"),
        }
    }
}

fn is_true<'a>(all: &'a [JobCondition], kind: &str) -> Option<&'a JobCondition> {
    all.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

fn of(job: &Job) -> &[JobCondition] {
    job.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

pub(super) fn is_finished(job: &Job) -> bool {
    ended_at(job).is_some()
}

/// When it ended.
pub(super) fn ended_at(job: &Job) -> Option<Timestamp> {
    let ended = is_true(of(job), "Complete").or_else(|| is_true(of(job), "Failed"))?;
    Some(ended.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

/// What was said to become of it.
pub(super) fn verdict(job: &Job) -> Option<Verdict> {
    if is_true(of(job), "SuccessCriteriaMet").is_some() {
        return Some(Verdict::Succeeded);
    }
    let failed = is_true(of(job), "FailureTarget")?;
    let is_late = failed.reason.as_deref() == Some(Verdict::PastDeadline.texts().0);
    Some(if is_late { Verdict::PastDeadline } else { Verdict::PastBackoffLimit })
}

/// The conditions after those that were there.
pub(super) fn next(
    mut all: Vec<JobCondition>,
    verdict: Option<Verdict>,
    is_over: bool,
    is_suspended: bool,
    now: Timestamp,
) -> Vec<JobCondition> {
    if let Some(verdict) = verdict {
        let ((first, last), texts) = (verdict.kinds(), verdict.texts());
        set(&mut all, (first, "True"), texts, now);
        if is_over {
            set(&mut all, (last, "True"), texts, now);
        }
    } else if is_suspended {
        set(&mut all, ("Suspended", "True"), ("JobSuspended", "Job suspended"), now);
    } else if is_true(&all, "Suspended").is_some() {
        set(&mut all, ("Suspended", "False"), ("JobResumed", "Job resumed"), now);
    }
    all
}

/// Says something; what is said already keeps its times.
fn set(all: &mut Vec<JobCondition>, (kind, status): (&str, &str), (reason, message): (&str, &str), now: Timestamp) {
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
