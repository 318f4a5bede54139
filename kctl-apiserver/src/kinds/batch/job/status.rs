//! Validation of `Job` statuses: the fields that a controller may write, and the transitions between two statuses.
//!
//! Most rules run only if the fields that they validate have changed. `State` is one status, and `Write` compares two.
//! A rule that is limited to changes lets a controller write a status that was stored by an older version and that
//! would not be valid today.
//! Behaviour: `ValidateJobStatusUpdate` in `pkg/apis/batch/validation/validation.go` with the options of
//! `pkg/registry/batch/job/strategy.go`.

use std::collections::BTreeSet;

use kctl_apimachinery::time;
use serde_json::Value;

use super::indexes::{RULE, intervals, strict_interval};
use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
};

/// The rule for the terminal conditions.
const CONDITIONS: &str = "Complete=True needs SuccessCriteriaMet=True and excludes Failed=True and FailureTarget=True; \
                          Failed=True needs FailureTarget=True and excludes SuccessCriteriaMet=True; none of them may be \
                          taken back, and SuccessCriteriaMet=True cannot follow Complete=True";

/// The status of a Job and the spec that it is validated against.
struct State<'a> {
    /// The spec of the same object. A write of the status does not change it.
    spec: &'a Value,
    status: &'a Value,
}

impl<'a> State<'a> {
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

    /// Returns `true` if the Job has completed or failed. `SuccessCriteriaMet` and `FailureTarget` only announce it.
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

/// A write of a status.
struct Write<'a> {
    /// The stored Job.
    was: State<'a>,
    /// The Job as it is being written.
    now: State<'a>,
    /// The status as it is being written.
    status: Field<'a>,
}

impl Write<'_> {
    /// Returns `true` if a field is changed; absent and present differ even if the value is 0.
    fn changes(&self, field: &str) -> bool {
        self.was.status[field] != self.now.status[field]
    }

    /// Returns `true` if a count is changed; an absent one equals 0.
    fn changes_number(&self, field: &str) -> bool {
        self.was.number(field) != self.now.number(field)
    }

    /// Returns `true` if a condition becomes `True` or is no longer `True`.
    fn changes_condition(&self, kind: &str) -> bool {
        self.was.is(kind) != self.now.is(kind)
    }

    /// Returns `true` if the Job finishes with this write, or is no longer finished.
    fn finishes(&self) -> bool {
        self.was.is_finished() != self.now.is_finished()
    }
}

/// Validates a new Job status against the stored one (`ValidateJobStatusUpdate`).
pub(crate) fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    let status = Field::new(&new["status"], "status", errors);
    let write = Write { was: State::new(old), now: State::new(new), status };
    validate_uncounted_pods(&write.status.at("uncountedTerminatedPods"));
    validate_conditions(&write);
    validate_times(&write);
    validate_finished(&write);
    validate_indexes(&write);
    validate_counts(&write);
}

/// Validates the UIDs of terminated Pods that are not yet counted: not empty, and unique across both lists. The
/// controller removes a UID when it has added the Pod to `succeeded` or `failed` and removed its finalizer.
fn validate_uncounted_pods(pods: &Field<'_>) {
    let mut seen = BTreeSet::new();
    for uid in ["succeeded", "failed"].iter().flat_map(|list| pods.at(list).items()) {
        uid.invalid_if(uid.is_empty(), "must not be empty");
        uid.duplicate_if(!uid.is_empty() && !seen.insert(uid.text()));
    }
}

/// Validates the terminal conditions by the rule [`CONDITIONS`]. With a `successPolicy`, a Job completes only by
/// meeting it. Upstream limits the rules about two conditions to writes that change one of them, apart from those about
/// `SuccessCriteriaMet`.
fn validate_conditions(write: &Write<'_>) {
    let (was, now) = (&write.was, &write.now);
    let is_changed = |kinds: &[&str]| kinds.iter().any(|kind| write.changes_condition(kind));
    let [complete, failed, target, met] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|kind| now.is(kind));
    let is_reset =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].iter().any(|kind| was.is(kind) && !now.is(kind));
    let is_wrong = is_reset
        || (complete && failed && is_changed(&["Complete", "Failed"]))
        || (complete && target && is_changed(&["Complete", "FailureTarget"]))
        || (failed && !target && (is_changed(&["Failed"]) || write.changes("failedIndexes")))
        || (complete && !met && is_changed(&["Complete", "SuccessCriteriaMet"]))
        || (complete && !met && !now.spec["successPolicy"].is_null())
        || (met && (failed || target))
        || (met && was.is("Complete") && !was.is("SuccessCriteriaMet"));
    write.status.at("conditions").invalid_if(is_wrong, CONDITIONS);
}

/// Validates `completionTime` and `startTime`. A completion time needs `Complete=True`, and is not before the start
/// time, in whole seconds. The start time may change while the Job is suspended or when it resumes. Each rule runs only
/// if the write changes one of the fields that it validates.
fn validate_times(write: &Write<'_>) {
    let (was, now) = (&write.was, &write.now);
    let (started, ended) = (write.status.at("startTime"), write.status.at("completionTime"));
    let (is_complete, is_changed) = (now.is("Complete"), write.changes("completionTime"));
    let is_validated = is_changed || write.changes_condition("Complete");
    ended.required_if(is_validated && is_complete && ended.is_null());
    let seconds = |value: &Value| time::parse(text(value)).map(jiff::Timestamp::as_second);
    let is_earlier = seconds(&ended).zip(seconds(&started)).is_some_and(|(ended, started)| ended < started);
    let is_wrong = (is_validated && !is_complete && !ended.is_null())
        || (is_earlier && (is_changed || write.changes("startTime")))
        || (is_changed && ended.is_string() && was.status["completionTime"].is_string());
    ended.invalid_if(is_wrong, "needs Complete=True, is equal to or after `startTime`, and is immutable");
    let may_change = now.spec["suspend"] == true || (was.is("Suspended") && now.has("Suspended", "False"));
    let is_wrong = was.status["startTime"].is_string() && write.changes("startTime") && !may_change;
    started.invalid_if(is_wrong, "is immutable once set, unless the Job is suspended or resumes");
}

/// Validates that a finished Job has a start time, and no active, terminating or uncounted Pods. `startTime` may be
/// absent if the Job never ran: it is suspended and has `completions: 0`.
fn validate_finished(write: &Write<'_>) {
    if !write.now.is_finished() {
        return;
    }
    let is_changed = |field: &str| write.finishes() || write.changes(field);
    let [active, terminating, started, uncounted] =
        ["active", "terminating", "startTime", "uncountedTerminatedPods"].map(|name| write.status.at(name));
    let is_validated = write.finishes() || write.changes_number("active");
    active.invalid_if(is_validated && active.as_i64() > Some(0), "must be 0 for a finished Job");
    terminating.invalid_if(is_changed("terminating") && terminating.as_i64() > Some(0), "must be 0 for a finished Job");
    let never_runs = write.now.spec["suspend"] == true && write.now.spec["completions"] == 0;
    started.required_if(is_changed("startTime") && started.is_null() && !never_runs);
    let is_counted = uncounted.at("failed").is_empty() && uncounted.at("succeeded").is_empty();
    uncounted.invalid_if(is_changed("uncountedTerminatedPods") && !is_counted, "must be empty for a finished Job");
}

/// Validates `completedIndexes` and `failedIndexes`, lists such as `1,3-5,7` that may not overlap. `failedIndexes`
/// needs `backoffLimitPerIndex`, even if the list is empty.
fn validate_indexes(write: &Write<'_>) {
    let (completed, failed) = (write.status.at("completedIndexes"), write.status.at("failedIndexes"));
    let (completed_changed, failed_changed) = (write.changes("completedIndexes"), write.changes("failedIndexes"));
    let completions = write.now.spec["completions"].as_i64();
    let is_malformed = |list: &Field<'_>| {
        completions.is_some_and(|all| intervals(list.text(), |part| strict_interval(part, all)).is_none())
    };
    let is_misplaced = !completed.is_empty() && !write.now.is_indexed();
    let is_wrong = completed_changed && (is_malformed(&completed) || is_misplaced);
    completed.invalid_if(is_wrong, format_args!("needs completion mode Indexed, and {RULE}"));
    let backs_off = write.now.spec["backoffLimitPerIndex"].is_i64();
    let is_wrong = if backs_off { is_malformed(&failed) } else { failed.is_string() };
    let is_common = failed.is_string()
        && completions.is_some_and(|completions| overlap(completed.text(), failed.text(), completions));
    failed.invalid_if(
        (failed_changed && is_wrong) || ((completed_changed || failed_changed) && is_common),
        format_args!("needs `backoffLimitPerIndex`, excludes `completedIndexes`, and {RULE}"),
    );
}

/// Returns `true` if an index is in both lists. Ranges that do not parse are skipped: other rules report them.
fn overlap(completed: &str, failed: &str, completions: i64) -> bool {
    let ranges = |(list, indexes): (usize, &str)| -> Vec<(i64, i64, usize)> {
        let parsed = indexes.split(',').filter_map(|part| strict_interval(part, completions));
        parsed.map(|(first, last)| (first, last, list)).collect()
    };
    let mut all: Vec<_> = [completed, failed].into_iter().enumerate().flat_map(ranges).collect();
    all.sort_unstable();
    // The greatest index of each list so far. A range that begins after it has no index in common.
    let mut greatest = [-1, -1];
    all.into_iter().any(|(first, last, list)| {
        greatest[list] = last.max(greatest[list]);
        greatest[1 - list] >= first
    })
}

/// Validates that counts are not negative, that `ready` is at most `active`, and that finished Pods are not taken back.
/// `succeeded` may decrease for an indexed Job whose `parallelism` equals its `completions`, because such a Job can be
/// scaled down.
fn validate_counts(write: &Write<'_>) {
    let (was, now) = (&write.was, &write.now);
    let numbers = ["active", "succeeded", "failed", "ready", "terminating"];
    write.status.check_children(&numbers, Field::not_negative);
    let ready = write.status.at("ready");
    let is_validated = write.changes("ready") || write.changes_number("active");
    ready.invalid_if(is_validated && ready.as_i64() > Some(now.number("active")), "must be at most `active`");
    let is_elastic = now.is_indexed() && now.spec["completions"] == now.spec["parallelism"];
    for (field, may_decrease) in [("failed", false), ("succeeded", is_elastic)] {
        let is_less = now.number(field) < was.number(field);
        write.status.at(field).invalid_if(is_less && !may_decrease, "must not decrease");
    }
}

#[cfg(test)]
mod tests {
    use super::overlap;

    /// Takes minutes if each range is compared with all ranges of the other list.
    #[test]
    fn index_of_both_lists_is_found() {
        for (completed, failed, expected) in [
            ("", "", false),
            ("1,3-5,7", "2,6", false),
            ("1,3-5,7", "5", true),
            ("0-9", "4,6-7", true),
            ("7,1-2", "8,2-3", true),
            ("x,4-4,1", "4", false),
        ] {
            assert_eq!(overlap(completed, failed, 10), expected, "{completed} {failed}");
            assert_eq!(overlap(failed, completed, 10), expected, "{failed} {completed}");
        }
        let every_second =
            |start: usize| (start..400_000).step_by(2).map(|index| index.to_string()).collect::<Vec<_>>().join(",");
        assert!(!overlap(&every_second(0), &every_second(1), 400_000));
    }
}
