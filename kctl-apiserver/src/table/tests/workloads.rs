//! Rows of workloads, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn deleted_job_is_terminating() {
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j9", "deletionTimestamp": "2026-11-21T06:15:47Z"}, "spec": {"parallelism": 1,
            "completions": 1, "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"startTime": "2020-01-01T00:00:00Z"}}
        ),
        &json!([
            "j9",
            "Terminating",
            "0/1",
            "6y326d",
            "59s",
            "a,b",
            "img:1,img:2",
            "batch.kubernetes.io/controller-uid=u1"
        ]),
    );
}
