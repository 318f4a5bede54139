//! Jobs.

use serde_json::{Value, json};

use super::{
    Items, NativeError, Result, nested, pod_template,
    workload::{int32, members},
};
use crate::{
    operation::{DependentReference, Replicas},
    typed::{self, Typed, time},
};

pub(super) fn replicas(object: &Value) -> Result<Replicas> {
    let job = Typed::parts_of_object("Job", object, pod_template::NEEDS).map_err(NativeError::object("Job"))?;
    let parallelism = job.number("/spec/parallelism");
    let completions = job.optional_number("/spec/completions").unwrap_or(parallelism);
    // A job never runs more pods than it still needs, however parallel it may be.
    pod_template::replicas(parallelism.min(completions), job.at("/spec/template/spec"))
}

pub(super) fn retain(mut desired: Value, observed: &Value) -> Result<Value> {
    for path in [&["spec", "selector", "matchLabels"][..], &["spec", "template", "metadata", "labels"]] {
        if let Some(labels) = nested::string_map(observed, path)? {
            nested::set(&mut desired, path, Value::Object(labels.clone()))?;
        }
    }
    Ok(desired)
}

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

pub(super) fn dependencies(object: &Value) -> Result<Vec<DependentReference>> {
    pod_template::dependencies_of("Job", object)
}

pub(super) fn aggregate(object: Value, items: Items<'_>) -> Result<Value> {
    let mut job = Typed::from_object("Job", &object).map_err(NativeError::object("Job"))?;
    if finished(job.list("/status/conditions")).is_some() {
        return Ok(object);
    }
    let items = items.unwrap_or_default();
    let status = Tally::of(items)?.status(items.len(), job.at("/status/startTime").clone());
    if typed::is_same(job.at("/status"), &status) {
        return Ok(object);
    }
    *job.at_mut("/status") = status;
    Ok(job.into_object())
}

/// What the clusters reported, counted.
#[derive(Default)]
struct Tally {
    active: i64,
    succeeded: i64,
    failed: i64,
    failed_clusters: Vec<String>,
    n_complete: usize,
    n_criteria_met: usize,
    n_started: usize,
    n_ended: usize,
    start: Value,
    end: Value,
}

impl Tally {
    fn of(items: &[crate::operation::AggregatedStatusItem]) -> Result<Self> {
        let mut tally = Self::default();
        for member in members("JobStatus", items) {
            let (cluster, status) = member?;
            tally.active += status.number("/active");
            tally.succeeded += status.number("/succeeded");
            tally.failed += status.number("/failed");
            let conditions = status.list("/conditions");
            match finished(conditions) {
                Some("Complete") => tally.n_complete += 1,
                Some(_) => tally.failed_clusters.push(cluster.to_owned()),
                None => {}
            }
            tally.n_criteria_met += usize::from(conditions.iter().any(|one| is_true(one, "SuccessCriteriaMet")));
            let (start, end) = (status.at("/startTime"), status.at("/completionTime"));
            tally.n_started += usize::from(!start.is_null());
            tally.n_ended += usize::from(!end.is_null());
            if tally.start.is_null() || time::before(start, &tally.start) {
                tally.start = start.clone();
            }
            if tally.end.is_null() || time::before(&tally.end, end) {
                tally.end = end.clone();
            }
        }
        Ok(tally)
    }

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

/// Returns the type of the condition by which a job is finished.
fn finished(conditions: &[Value]) -> Option<&str> {
    let is_end = |one: &&Value| is_true(one, "Complete") || is_true(one, "Failed");
    conditions.iter().find(is_end).and_then(|one| one["type"].as_str())
}

fn is_true(condition: &Value, r#type: &str) -> bool {
    condition["type"] == r#type && condition["status"] == "True"
}

fn condition(r#type: &str, reason: &str, message: &str) -> Value {
    let now = time::now();
    json!({ "type": r#type, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason, "message": message })
}
