//! Validation of `Job` statuses: the fields that a controller may write, and the transitions between two statuses.
//!
//! Behaviour: `ValidateJobStatusUpdate` in `pkg/apis/batch/validation/validation.go` with the options of
//! `pkg/registry/batch/job/strategy.go`. Most rules run only if the fields that they validate have changed.
//!
//! `State` is one status, and `Changed` compares two. A rule that is limited to changes lets a
//! controller write a status that was stored by an older version and that would not be valid today.
//!
//! | field | rule |
//! |---|---|
//! | counts | not negative; `failed` and `succeeded` do not decrease |
//! | `ready` | at most `active` |
//! | `startTime` | required when the Job finishes; then immutable, unless the Job is suspended or resumes |
//! | `completionTime` | exactly with `Complete=True`, not before `startTime`, immutable |
//! | `uncountedTerminatedPods` | unique UIDs; empty when the Job finishes |
//! | `completedIndexes`, `failedIndexes` | increasing, below `completions`, without overlap |
//! | `Complete`, `Failed`, `FailureTarget`, `SuccessCriteriaMet` | never taken back |

use serde_json::Value;

use super::indexes::{RULE, intervals, strict_interval};
use crate::{
    field_errors::{Errors, text},
    validation::entries,
};

/// Path of errors about conditions: the list, without the index of a condition.
const CONDITIONS: &str = "status.conditions";

/// The status of a Job and the spec that it is validated against.
struct State<'a> {
    /// The spec of the same object. A write of the status does not change it.
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> State<'a> {
    /// Borrows spec and status of a Job.
    fn new(job: &'a Value) -> Self {
        Self { spec: &job["spec"], status: &job["status"] }
    }

    /// Returns `true` if a condition of this type has the wanted status.
    fn has(&self, kind: &str, wanted: &str) -> bool {
        entries(&self.status["conditions"])
            .any(|(_, condition)| condition["type"] == kind && condition["status"] == wanted)
    }

    /// Returns `true` if the condition of this type is `True`.
    fn is(&self, kind: &str) -> bool {
        self.has(kind, "True")
    }

    /// Returns `true` if the Job has completed or failed. `SuccessCriteriaMet` and `FailureTarget`
    /// only announce it.
    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    /// Returns a count of the status; an absent one is 0.
    fn number(&self, field: &str) -> i64 {
        self.status[field].as_i64().unwrap_or(0)
    }

    /// Returns `true` if each completion has an index (`completionMode: Indexed`).
    fn is_indexed(&self) -> bool {
        self.spec["completionMode"] == "Indexed"
    }
}

/// The Job before and after the write of its status.
struct Changed<'a> {
    /// The stored Job.
    was: &'a State<'a>,
    /// The Job as it is being written.
    now: &'a State<'a>,
}

impl Changed<'_> {
    /// Returns `true` if a field was changed; absent and present differ even if the value is 0.
    fn field(&self, field: &str) -> bool {
        self.was.status[field] != self.now.status[field]
    }

    /// Returns `true` if a count was changed; an absent one equals 0.
    fn number(&self, field: &str) -> bool {
        self.was.number(field) != self.now.number(field)
    }

    /// Returns `true` if a condition has become `True` or is no longer `True`.
    fn condition(&self, kind: &str) -> bool {
        self.was.is(kind) != self.now.is(kind)
    }

    /// Returns `true` if the Job has finished with this write, or is no longer finished.
    fn finished(&self) -> bool {
        self.was.is_finished() != self.now.is_finished()
    }
}

/// Validates a new Job status against the stored one (`ValidateJobStatusUpdate`).
pub(crate) fn status(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, now) = (State::new(old), State::new(new));
    let changed = Changed { was: &was, now: &now };
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        errors.not_negative(&format!("status.{field}"), &now.status[field]);
    }
    uncounted(&now, errors);
    ends(&now, &changed, errors);
    finished(&now, &changed, errors);
    indexes(&now, &changed, errors);
    counts(&now, &changed, errors);
    successes(&now, errors);
    transitions(&was, &now, errors);
}

/// Validates the UIDs of terminated Pods that are not yet counted: not empty, and unique across both lists.
///
/// The controller removes a UID when it has added the Pod to `succeeded` or `failed` and removed
/// its finalizer.
fn uncounted(now: &State<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for list in ["succeeded", "failed"] {
        for (index, uid) in entries(&now.status["uncountedTerminatedPods"][list]) {
            let (path, uid) = (format!("status.uncountedTerminatedPods.{list}[{index}]"), text(uid));
            if uid.is_empty() {
                errors.invalid(&path, &uid.into(), "must not be empty");
            } else if seen.contains(&uid) {
                errors.duplicate(&path);
            } else {
                seen.push(uid);
            }
        }
    }
}

/// Validates the terminal conditions with `startTime` and `completionTime`.
///
/// `Complete` excludes `Failed` and `FailureTarget`. It needs `SuccessCriteriaMet` and a completion time; `Failed` needs
/// `FailureTarget`.
///
/// A completion time needs `Complete=True`, and is not before the start time, in whole seconds.
/// Each rule runs only if the write changes one of the fields that it validates.
fn ends(now: &State<'_>, changed: &Changed<'_>, errors: &mut Errors) {
    let (complete, failed) = (changed.condition("Complete"), changed.condition("Failed"));
    let mut refuse = |is_asked: bool, is_wrong: bool, detail: &str| {
        if is_asked && is_wrong {
            errors.invalid_as_such(CONDITIONS, detail);
        }
    };
    let is_complete = now.is("Complete");
    let both = is_complete && now.is("Failed");
    refuse(complete || failed, both, "cannot set Complete=True and Failed=true conditions");
    let both = is_complete && now.is("FailureTarget");
    let is_asked = complete || changed.condition("FailureTarget");
    refuse(is_asked, both, "cannot set Complete=True and FailureTarget=true conditions");
    let (started, ended) = (&now.status["startTime"], &now.status["completionTime"]);
    if complete || changed.field("completionTime") {
        if !ended.is_null() && !is_complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            errors.invalid("status.completionTime", ended, detail);
        }
        if ended.is_null() && is_complete {
            errors.required("status.completionTime", "completionTime is required for Complete jobs");
        }
    }
    let time = |time: &Value| text(time).parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second);
    let is_earlier = time(ended).zip(time(started)).is_some_and(|(ended, started)| ended < started);
    if (changed.field("startTime") || changed.field("completionTime")) && is_earlier {
        errors.invalid("status.completionTime", ended, "must be equal to or after `startTime`");
    }
    let mut refuse = |is_asked: bool, is_wrong: bool, detail: &str| {
        if is_asked && is_wrong {
            errors.invalid_as_such(CONDITIONS, detail);
        }
    };
    let is_asked = failed || changed.field("failedIndexes");
    let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
    refuse(is_asked, now.is("Failed") && !now.is("FailureTarget"), detail);
    let is_asked = complete || changed.condition("SuccessCriteriaMet");
    let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
    refuse(is_asked, is_complete && !now.is("SuccessCriteriaMet"), detail);
}

/// Validates that a finished Job has a start time, and neither active nor uncounted Pods.
///
/// `startTime` may be absent if the Job never ran: it is suspended and has `completions: 0`.
fn finished(now: &State<'_>, changed: &Changed<'_>, errors: &mut Errors) {
    if !now.is_finished() {
        return;
    }
    let (just, active) = (changed.finished(), now.number("active"));
    if (just || changed.number("active")) && active > 0 {
        errors.invalid("status.active", &active.into(), "active>0 is invalid for finished job");
    }
    let never_runs = now.spec["suspend"] == true && now.spec["completions"] == 0;
    if (just || changed.field("startTime")) && now.status["startTime"].is_null() && !never_runs {
        errors.required("status.startTime", "startTime is required for finished job");
    }
    let uncounted = &now.status["uncountedTerminatedPods"];
    let n_uncounted = entries(&uncounted["failed"]).count() + entries(&uncounted["succeeded"]).count();
    if (just || changed.field("uncountedTerminatedPods")) && n_uncounted > 0 {
        errors.invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job");
    }
}

/// Validates `completedIndexes` and `failedIndexes`, lists such as `1,3-5,7` that may not overlap.
///
/// - `completedIndexes` needs completion mode `Indexed`.
/// - `failedIndexes` needs `backoffLimitPerIndex`, even if the list is empty.
/// - Indexes are below `completions` and increase.
fn indexes(now: &State<'_>, changed: &Changed<'_>, errors: &mut Errors) {
    let (completed, failed) = (&now.status["completedIndexes"], &now.status["failedIndexes"]);
    let (completed_changed, failed_changed) = (changed.field("completedIndexes"), changed.field("failedIndexes"));
    let completions = now.spec["completions"].as_i64();
    let backs_off = now.spec["backoffLimitPerIndex"].is_i64();
    for (name, indexes, is_asked) in
        [("completedIndexes", completed, completed_changed), ("failedIndexes", failed, failed_changed && backs_off)]
    {
        if let (true, Some(completions)) = (is_asked, completions)
            && intervals(text(indexes), |part| strict_interval(part, completions)).is_none()
        {
            errors.invalid(&format!("status.{name}"), indexes, RULE);
        }
    }
    if completed_changed && !text(completed).is_empty() && !now.is_indexed() {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid("status.completedIndexes", completed, detail);
    }
    if failed_changed && failed.is_string() && !backs_off {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid("status.failedIndexes", failed, detail);
    }
    if (completed_changed || failed_changed)
        && let (Some(completions), true) = (completions, failed.is_string())
        && overlap(text(completed), text(failed), completions)
    {
        errors.invalid("status.failedIndexes", failed, "must not have indexes of `completedIndexes`");
    }
}

/// Returns `true` if an index is in both lists. Ranges that do not parse are skipped: other rules report them.
fn overlap(completed: &str, failed: &str, completions: i64) -> bool {
    let intervals = |indexes: &str| -> Vec<(i64, i64)> {
        indexes.split(',').filter_map(|part| strict_interval(part, completions)).collect()
    };
    let failed = intervals(failed);
    intervals(completed).iter().any(|(from, to)| failed.iter().any(|(first, last)| from <= last && first <= to))
}

/// Validates that a finished Job has no terminating Pods, and that ready Pods are at most the active ones.
fn counts(now: &State<'_>, changed: &Changed<'_>, errors: &mut Errors) {
    let terminating = &now.status["terminating"];
    let is_asked = changed.finished() || changed.field("terminating");
    if is_asked && terminating.as_i64().is_some_and(|count| count > 0) && now.is_finished() {
        errors.invalid("status.terminating", terminating, "terminating>0 is invalid for finished job");
    }
    let ready = &now.status["ready"];
    let is_asked = changed.field("ready") || changed.number("active");
    if is_asked && ready.as_i64().is_some_and(|count| count > now.number("active")) {
        errors.invalid("status.ready", ready, "cannot set more ready pods than active");
    }
}

/// Validates `SuccessCriteriaMet`, which excludes the conditions of a failure.
///
/// With a `successPolicy`, a Job completes only by meeting it.
fn successes(now: &State<'_>, errors: &mut Errors) {
    let is_met = now.is("SuccessCriteriaMet");
    for (kind, detail) in [
        ("Failed", "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        ("FailureTarget", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"),
    ] {
        if is_met && now.is(kind) {
            errors.invalid_as_such(CONDITIONS, detail);
        }
    }
    if !now.spec["successPolicy"].is_null() && !is_met && now.is("Complete") {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        errors.invalid_as_such(CONDITIONS, detail);
    }
}

/// Validates that terminal conditions, counters and times are not taken back.
///
/// A count may decrease in one case: `succeeded` of an indexed Job whose `parallelism` equals its
/// `completions`, because such a Job can be scaled down. The start time may change while the Job is
/// suspended or when it resumes.
fn transitions(was: &State<'_>, now: &State<'_>, errors: &mut Errors) {
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if was.is(kind) && !now.is(kind) {
            errors.invalid_as_such(CONDITIONS, &format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    // An indexed Job whose `parallelism` equals its `completions` can be scaled down.
    let is_elastic = now.is_indexed() && now.spec["completions"] == now.spec["parallelism"];
    for (field, is_asked) in [("failed", true), ("succeeded", !is_elastic)] {
        let count = now.number(field);
        if is_asked && count < was.number(field) {
            errors.invalid(&format!("status.{field}"), &count.into(), &format!("cannot decrease the {field} counter"));
        }
    }
    let (before, ended) = (&was.status["completionTime"], &now.status["completionTime"]);
    if before.is_string() && ended.is_string() && before != ended {
        errors.invalid("status.completionTime", ended, "field is immutable");
    }
    let (before, started) = (&was.status["startTime"], &now.status["startTime"]);
    let resumes = was.is("Suspended") && now.has("Suspended", "False");
    if before.is_string() && before != started && !resumes && now.spec["suspend"] != true {
        errors.invalid("status.startTime", started, "field is immutable for unsuspended job once set");
    }
    let (met, is_met) = (was.is("SuccessCriteriaMet"), now.is("SuccessCriteriaMet"));
    if met && !is_met {
        errors.invalid_as_such(CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if was.is("Complete") && !met && is_met {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        errors.invalid_as_such(CONDITIONS, detail);
    }
}
