//! The row of a Job in a table.
//!
//! Upstream: `printJob` in `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    registry::kind::Cell,
    table::{
        age::{human, time_of},
        fields::{int, is_deleting, is_true, text, value_at},
    },
};

/// The cells of a Job.
pub(crate) const CELLS: [Cell; 8] = [
    Cell::Name,
    Cell::Computed(|job, _| status(job).into()),
    Cell::Computed(|job, _| completions(job).into()),
    Cell::Computed(|job, now| duration(job, now).into()),
    Cell::Age,
    Cell::Containers("/spec/template"),
    Cell::Images("/spec/template"),
    Cell::Labels("/spec/selector"),
];

/// Returns the column Status: the end of the Job, `Terminating`, the most recent intent, or `Running`. `Complete` and
/// `Failed` come before `Terminating`, so a finished Job that is being deleted keeps its result.
fn status(object: &Value) -> &'static str {
    let first_true = |kinds: &[&'static str]| kinds.iter().copied().find(|kind| is_true(object, kind));
    if let Some(end) = first_true(&["Complete", "Failed"]) {
        return end;
    }
    if is_deleting(object) {
        return "Terminating";
    }
    first_true(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running")
}

/// Returns the succeeded and the wanted completions, as `2/5`. Without `completions`, one success completes the Job:
/// the cell is `0/1`, or `0/1 of 3` if three Pods run in parallel.
fn completions(object: &Value) -> String {
    let succeeded = int(object, "/status/succeeded");
    match (value_at(object, "/spec/completions").as_i64(), int(object, "/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// Returns the time from start to completion, or to now. A Job that has not started has an empty cell.
fn duration(object: &Value, now: Timestamp) -> String {
    let Some(start) = time_of(text(object, "/status/startTime")) else { return String::new() };
    let end = time_of(text(object, "/status/completionTime")).unwrap_or(now);
    human(end.as_second().saturating_sub(start.as_second()))
}
