//! The rows of workloads: `apps`, `batch` and replication controllers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{age, human, since_text, time_of};
use super::fields::{at, int, is_deleting, is_true, list, name, text, text_or};
use super::labels::{NONE, labels, query, selector};

/// Returns the names and the images of the containers of a pod template.
pub(crate) fn containers(template: &Value) -> [Value; 2] {
    ["/name", "/image"].map(|pointer| {
        let parts: Vec<_> =
            list(template, "/spec/containers").iter().map(|container| text(container, pointer)).collect();
        json!(parts.join(","))
    })
}

pub(crate) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![
        json!(name(object)),
        json!(ready_of_desired(object)),
        json!(int(object, "/status/updatedReplicas")),
        json!(int(object, "/status/availableReplicas")),
        json!(age(object, now)),
        names,
        images,
        json!(query(at(object, "/spec/selector"))),
    ]
}

pub(crate) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, &selector(at(object, "/spec/selector")))
}

pub(crate) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, &labels(at(object, "/spec/selector")))
}

fn replicas(object: &Value, now: Timestamp, selector: &str) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![
        json!(name(object)),
        json!(desired(object)),
        json!(int(object, "/status/replicas")),
        json!(int(object, "/status/readyReplicas")),
        json!(age(object, now)),
        names,
        images,
        json!(selector),
    ]
}

pub(crate) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![json!(name(object)), json!(ready_of_desired(object)), json!(age(object, now)), names, images]
}

pub(crate) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![
        json!(name(object)),
        json!(int(object, "/status/desiredNumberScheduled")),
        json!(int(object, "/status/currentNumberScheduled")),
        json!(int(object, "/status/numberReady")),
        json!(int(object, "/status/updatedNumberScheduled")),
        json!(int(object, "/status/numberAvailable")),
        json!(labels(at(object, "/spec/template/spec/nodeSelector"))),
        json!(age(object, now)),
        names,
        images,
        json!(selector(at(object, "/spec/selector"))),
    ]
}

pub(crate) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owners = list(object, "/metadata/ownerReferences");
    let controller = owners.iter().find(|owner| at(owner, "/controller").as_bool() == Some(true));
    let controller = controller.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = text(owner, "/kind").to_lowercase();
            let of_group = text(owner, "/apiVersion").split_once('/').map(|(group, _)| format!(".{group}"));
            format!("{kind}{}/{}", of_group.unwrap_or_default(), text(owner, "/name"))
        },
    );
    vec![json!(name(object)), json!(controller), json!(int(object, "/revision")), json!(age(object, now))]
}

pub(crate) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/template"));
    vec![
        json!(name(object)),
        json!(job_status(object)),
        json!(completions(object)),
        json!(job_duration(object, now)),
        json!(age(object, now)),
        names,
        images,
        json!(selector(at(object, "/spec/selector"))),
    ]
}

fn job_status(object: &Value) -> &'static str {
    let first_true = |kinds: &[&'static str]| kinds.iter().copied().find(|kind| is_true(object, kind));
    if let Some(end) = first_true(&["Complete", "Failed"]) {
        return end;
    }
    if is_deleting(object) {
        return "Terminating";
    }
    first_true(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]).unwrap_or("Running")
}

fn completions(object: &Value) -> String {
    let succeeded = int(object, "/status/succeeded");
    match (at(object, "/spec/completions").as_i64(), int(object, "/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(object: &Value, now: Timestamp) -> String {
    let Some(start) = time_of(text(object, "/status/startTime")) else {
        return String::new();
    };
    let end = time_of(text(object, "/status/completionTime")).unwrap_or(now);
    human(end.as_second().saturating_sub(start.as_second()))
}

pub(crate) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, "/spec/jobTemplate/spec/template"));
    let last = match text(object, "/status/lastScheduleTime") {
        "" => NONE.to_owned(),
        last => since_text(last, now),
    };
    let suspend = match at(object, "/spec/suspend").as_bool() {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    };
    vec![
        json!(name(object)),
        json!(text(object, "/spec/schedule")),
        json!(text_or(object, "/spec/timeZone", NONE)),
        json!(suspend),
        json!(list(object, "/status/active").len()),
        json!(last),
        json!(age(object, now)),
        names,
        images,
        json!(selector(at(object, "/spec/jobTemplate/spec/selector"))),
    ]
}

fn ready_of_desired(object: &Value) -> String {
    format!("{}/{}", int(object, "/status/readyReplicas"), desired(object))
}

/// The default of every kind with replicas is one.
fn desired(object: &Value) -> i64 {
    at(object, "/spec/replicas").as_i64().unwrap_or(1)
}
