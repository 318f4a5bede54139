//! The selector and the labels of jobs.

use serde_json::{Map, Value, json};

/// The selector and the labels by which a job knows its pods (`generateSelector`).
pub(super) fn select_own_pods(job: &mut Value) {
    job["status"] = json!({});
    let is_own = job["spec"]["manualSelector"] != true;
    if is_own {
        label_own_pods(job);
    }
    label_as_pods(job);
}

/// Gives a job without labels of its own those of its pods (`SetDefaults_Job` of `pkg/apis/batch/v1/defaults.go`).
pub(in crate::verbs) fn label_as_pods(job: &mut Value) {
    let template = job["spec"]["template"]["metadata"].get("labels").cloned().unwrap_or_default();
    let own = &mut job["metadata"]["labels"];
    if own.as_object().is_none_or(Map::is_empty) && !template.is_null() {
        *own = template;
    }
}

fn label_own_pods(job: &mut Value) {
    let (uid, name) = (job["metadata"]["uid"].clone(), job["metadata"]["name"].clone());
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    for (label, value) in labels {
        job["spec"]["template"]["metadata"]["labels"][label] = value.clone();
    }
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid;
}
