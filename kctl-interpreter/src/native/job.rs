//! The rules of `batch/v1 Job`.
//!
//! | operation | answer | in Karmada |
//! |---|---|---|
//! | `InterpretReplica` | the lesser of `spec.parallelism` and `spec.completions` | `replica.go`, `jobReplica` |
//! | `ReviseReplica` | sets `spec.parallelism` if it exists | `revisereplica.go`, `reviseJobReplica` |
//! | `Retain` | selector and template labels of the member cluster | `retain.go`, `retainJobSelectorFields` |
//! | `InterpretStatus` | six fields of the status | `reflectstatus.go`, `reflectJobStatus` |
//! | `AggregateStatus` | sums, conditions and times, see [`aggregate`] | `aggregatestatus.go`, `aggregateJobStatus` |
//! | `InterpretDependency` | references of `spec.template` | `dependencies.go`, `getJobDependencies` |
//!
//! `InterpretHealth` has no rule: Karmada does not interpret the health of a Job.

use serde_json::{Value, json};

use super::{
    Items, NativeError, Result, nested, pod_template,
    workload::{int32, member_statuses},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::{self, Typed, time},
};

/// Returns the number of Pods that the Job can run at once, and the requirements of one.
///
/// The number is `spec.parallelism`, 0 if absent, but not more than `spec.completions`.
pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    let job = Typed::parts_of_object("Job", object, pod_template::NEEDS).map_err(NativeError::object("Job"))?;
    let parallelism = job.number("/spec/parallelism");
    let completions = job.optional_number("/spec/completions").unwrap_or(parallelism);
    // A job never runs more pods than it still needs, however parallel it may be.
    pod_template::replicas(parallelism.min(completions), job.at("/spec/template/spec"))
}

/// Copies `spec.selector.matchLabels` and `spec.template.metadata.labels` from the observed object,
/// where they exist.
///
/// The API server of each cluster generates them from the Job's uid there (`generateSelector` in
/// `pkg/registry/batch/job/strategy.go` of Kubernetes), and both fields are immutable.
pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    for path in [&["spec", "selector", "matchLabels"][..], &["spec", "template", "metadata", "labels"]] {
        if let Some(labels) = nested::string_map(observed, path)? {
            nested::set(&mut desired, path, Value::Object(labels.clone()))?;
        }
    }
    Ok(desired)
}

/// Returns `active`, `succeeded`, `failed`, `conditions`, `startTime` and `completionTime` of the
/// status; `null` for an object without a status.
pub(super) fn status(object: &Value) -> Result<Value> {
    let Some(status) = nested::map(object, &["status"])? else { return Ok(Value::Null) };
    let status =
        Typed::from_object("JobStatus", &Value::Object(status.clone())).map_err(NativeError::object("JobStatus"))?;
    let mut collected = Typed::zero("JobStatus");
    for pointer in ["/active", "/succeeded", "/failed", "/conditions", "/startTime", "/completionTime"] {
        *collected.at_mut(pointer) = status.at(pointer).clone();
    }
    Ok(collected.into_object())
}

/// Returns the objects that the Pod template refers to.
pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("Job", object)
}

/// Returns the object with a status made from the statuses of all clusters (`ParsingJobStatus` in Karmada's
/// `pkg/util/helper/job.go`).
///
/// A Job that is finished already is returned unchanged. Otherwise:
///
/// - `active`, `succeeded` and `failed` are sums.
/// - The condition `Failed` names the clusters in which the Job failed.
/// - The condition `Complete` appears once the Job is complete in every cluster.
///   `SuccessCriteriaMet` is added if every cluster has it.
/// - `startTime` of the object is kept. Without one it becomes the earliest time, once every cluster has started the
///   Job.
/// - `completionTime` becomes the latest time, once every cluster has one.
///
/// New conditions carry the time of the wall clock, so the result is not the same for each call.
pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut job = Typed::from_object("Job", &object).map_err(NativeError::object("Job"))?;
    if finished_condition(job.list("/status/conditions")).is_some() {
        return Ok(object);
    }
    let items = items.unwrap_or_default();
    let status = JobTotals::from_items(items)?.status(items.len(), job.at("/status/startTime").clone());
    if typed::is_same(job.at("/status"), &status) {
        return Ok(object);
    }
    *job.at_mut("/status") = status;
    Ok(job.into_object())
}

/// Sums and counts over the statuses of the member clusters.
#[derive(Default)]
struct JobTotals {
    /// Running Pods.
    active: i64,
    succeeded: i64,
    failed: i64,
    /// Names of the clusters in which the Job failed, in the order of the items.
    failed_clusters: Vec<String>,
    n_complete: usize,
    /// Clusters with a true condition `SuccessCriteriaMet`.
    n_criteria_met: usize,
    /// Clusters with a `startTime`.
    n_started: usize,
    /// Clusters with a `completionTime`.
    n_ended: usize,
    /// The earliest `startTime`; null without any.
    start: Value,
    /// The latest `completionTime`; null without any.
    end: Value,
}

impl JobTotals {
    /// Reads the statuses of all items. An item without a status adds nothing, but counts in the
    /// number of items that [`JobTotals::status`] compares with.
    fn from_items(items: &[crate::operation::AggregatedStatusItem]) -> Result<Self> {
        let mut tally = Self::default();
        for member in member_statuses("JobStatus", items) {
            let (cluster, status) = member?;
            tally.active += status.number("/active");
            tally.succeeded += status.number("/succeeded");
            tally.failed += status.number("/failed");
            let conditions = status.list("/conditions");
            match finished_condition(conditions) {
                Some("Complete") => tally.n_complete += 1,
                Some(_) => tally.failed_clusters.push(cluster.to_owned()),
                None => {}
            }
            tally.n_criteria_met +=
                usize::from(conditions.iter().any(|condition| is_true(condition, "SuccessCriteriaMet")));
            let (start, end) = (status.at("/startTime"), status.at("/completionTime"));
            tally.n_started += usize::from(!start.is_null());
            tally.n_ended += usize::from(!end.is_null());
            if tally.start.is_null() || time::is_before(start, &tally.start) {
                tally.start = start.clone();
            }
            if tally.end.is_null() || time::is_before(&tally.end, end) {
                tally.end = end.clone();
            }
        }
        Ok(tally)
    }

    /// Returns the new status. `n_items` includes clusters that have not reported yet, and `start`
    /// is the `startTime` that the object has.
    fn status(self, n_items: usize, start: Value) -> Value {
        let mut conditions = Vec::new();
        if !self.failed_clusters.is_empty() {
            let message = format!("Job executed failed in member clusters {}", self.failed_clusters.join(","));
            conditions.push(condition("Failed", "JobFailed", &message));
        }
        if self.n_complete == n_items && n_items > 0 {
            conditions.push(condition("Complete", "Completed", "Job completed"));
            if self.n_criteria_met == n_items {
                let message = "All member clusters have met success criteria";
                conditions.push(condition("SuccessCriteriaMet", "CompletionsReached", message));
            }
        }
        let mut status = Typed::zero("JobStatus");
        *status.at_mut("/active") = int32(self.active);
        *status.at_mut("/succeeded") = int32(self.succeeded);
        *status.at_mut("/failed") = int32(self.failed);
        if !conditions.is_empty() {
            *status.at_mut("/conditions") = conditions.into();
        }
        let is_started = start.is_null() && self.n_started == n_items;
        *status.at_mut("/startTime") = if is_started { self.start } else { start };
        if self.n_ended == n_items {
            *status.at_mut("/completionTime") = self.end;
        }
        status.into_value()
    }
}

/// Returns the type of the condition that makes a Job finished: `Complete` or `Failed`, whichever comes first in the
/// list (`GetJobFinishedStatus` in Karmada's `pkg/util/helper/job.go`).
fn finished_condition(conditions: &[Value]) -> Option<&str> {
    let is_end = |condition: &&Value| is_true(condition, "Complete") || is_true(condition, "Failed");
    conditions.iter().find(is_end).and_then(|condition| condition["type"].as_str())
}

/// Returns `true` if the condition has this type and the status `True`.
fn is_true(condition: &Value, r#type: &str) -> bool {
    condition["type"] == r#type && condition["status"] == "True"
}

/// Returns a condition with the status `True`, whose probe and transition times are now.
fn condition(r#type: &str, reason: &str, message: &str) -> Value {
    let now = time::now();
    json!({ "type": r#type, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason, "message": message })
}
