//! Rows of workloads, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn a_deployment_shows_ready_of_desired() {
    check(
        ("apps", "Deployment"),
        &json!(
            {"metadata": {"name": "d1"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "x", "b": "c"},
            "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "u",
            "operator": "NotIn", "values": ["a"]}, {"key": "v", "operator": "Exists"}, {"key": "w",
            "operator": "DoesNotExist"}]}, "template": {"metadata": {"labels": {"app": "x", "b": "c", "t": "a",
            "u": "z", "v": "1"}}, "spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}], "nodeSelector": {"a": "b", "disk": "ssd"}}}}, "status": {"replicas": 3,
            "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 1}}
        ),
        &json!(["d1", "2/3", 3, 1, "59s", "a,b", "img:1,img:2", "app=x,b=c,t in (a,b),u notin (a),v,!w"]),
    );
    check(
        ("apps", "Deployment"),
        &json!(
            {"metadata": {"name": "d2"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a",
            "image": "img:1"}, {"name": "b", "image": "img:2"}]}}}}
        ),
        &json!(["d2", "0/1", 0, 0, "59s", "a,b", "img:1,img:2", "app=x"]),
    );
}

#[test]
fn a_replica_set_shows_numbers() {
    check(
        ("apps", "ReplicaSet"),
        &json!(
            {"metadata": {"name": "r1"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "x", "b": "c"},
            "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "u",
            "operator": "NotIn", "values": ["a"]}, {"key": "v", "operator": "Exists"}, {"key": "w",
            "operator": "DoesNotExist"}]}, "template": {"metadata": {"labels": {"app": "x", "b": "c", "t": "a",
            "u": "z", "v": "1"}}, "spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}], "nodeSelector": {"a": "b", "disk": "ssd"}}}}, "status": {"replicas": 3,
            "readyReplicas": 2, "availableReplicas": 1}}
        ),
        &json!(["r1", 3, 3, 2, "59s", "a,b", "img:1,img:2", "app=x,b=c,t in (a,b),u notin (a),v,!w"]),
    );
    check(
        ("apps", "ReplicaSet"),
        &json!(
            {"metadata": {"name": "r2"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a",
            "image": "img:1"}, {"name": "b", "image": "img:2"}]}}}, "status": {"replicas": 0}}
        ),
        &json!(["r2", 1, 0, 0, "59s", "a,b", "img:1,img:2", "app=x"]),
    );
}

#[test]
fn a_stateful_set_has_no_selector() {
    check(
        ("apps", "StatefulSet"),
        &json!(
            {"metadata": {"name": "s1"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "x", "b": "c"},
            "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "u",
            "operator": "NotIn", "values": ["a"]}, {"key": "v", "operator": "Exists"}, {"key": "w",
            "operator": "DoesNotExist"}]}, "template": {"metadata": {"labels": {"app": "x", "b": "c", "t": "a",
            "u": "z", "v": "1"}}, "spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}], "nodeSelector": {"a": "b", "disk": "ssd"}}}}, "status": {"replicas": 3,
            "readyReplicas": 2, "availableReplicas": 1}}
        ),
        &json!(["s1", "2/3", "59s", "a,b", "img:1,img:2"]),
    );
}

#[test]
fn a_daemon_set_shows_its_node_selector() {
    check(
        ("apps", "DaemonSet"),
        &json!(
            {"metadata": {"name": "ds1"}, "spec": {"selector": {"matchLabels": {"app": "x", "b": "c"},
            "matchExpressions": [{"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "u",
            "operator": "NotIn", "values": ["a"]}, {"key": "v", "operator": "Exists"}, {"key": "w",
            "operator": "DoesNotExist"}]}, "template": {"metadata": {"labels": {"app": "x", "b": "c", "t": "a",
            "u": "z", "v": "1"}}, "spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}], "nodeSelector": {"a": "b", "disk": "ssd"}}}},
            "status": {"currentNumberScheduled": 4, "numberMisscheduled": 0, "desiredNumberScheduled": 5,
            "numberReady": 3, "updatedNumberScheduled": 2, "numberAvailable": 1}}
        ),
        &json!([
            "ds1",
            5,
            4,
            3,
            2,
            1,
            "a=b,disk=ssd",
            "59s",
            "a,b",
            "img:1,img:2",
            "app=x,b=c,t in (a,b),u notin (a),v,!w"
        ]),
    );
    check(
        ("apps", "DaemonSet"),
        &json!(
            {"metadata": {"name": "ds2"}, "spec": {"selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a",
            "image": "img:1"}, {"name": "b", "image": "img:2"}]}}}, "status": {"currentNumberScheduled": 0,
            "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}}
        ),
        &json!(["ds2", 0, 0, 0, 0, 0, "<none>", "59s", "a,b", "img:1,img:2", "app=x"]),
    );
}

#[test]
fn a_controller_revision_shows_its_controller() {
    check(
        ("apps", "ControllerRevision"),
        &json!({"metadata": {"name": "cr1"}, "revision": 4}),
        &json!(["cr1", "<none>", 4, "59s"]),
    );
}

#[test]
fn a_replication_controller_shows_its_labels() {
    check(
        ("", "ReplicationController"),
        &json!(
            {"metadata": {"name": "rc1"}, "spec": {"replicas": 2, "selector": {"app": "x"},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a",
            "image": "img:1"}, {"name": "b", "image": "img:2"}]}}}, "status": {"replicas": 2, "readyReplicas": 1}}
        ),
        &json!(["rc1", 2, 2, 1, "59s", "a,b", "img:1,img:2", "app=x"]),
    );
}

#[test]
fn a_pod_template_has_no_age() {
    check(
        ("", "PodTemplate"),
        &json!(
            {"metadata": {"name": "pt1"}, "template": {"metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b", "image": "img:2"}]}}}
        ),
        &json!(["pt1", "a,b", "img:1,img:2", "app=x"]),
    );
}

#[test]
fn a_job_shows_its_completions_and_its_duration() {
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j1"}, "spec": {"parallelism": 1, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}}
        ),
        &json!(["j1", "Running", "0/1", "", "59s", "a,b", "img:1,img:2", "batch.kubernetes.io/controller-uid=u1"]),
    );
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j2"}, "spec": {"parallelism": 2, "completions": 3,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"startTime": "2020-01-01T00:00:00Z", "active": 2, "succeeded": 1}}
        ),
        &json!([
            "j2",
            "Running",
            "1/3",
            "6y326d",
            "59s",
            "a,b",
            "img:1,img:2",
            "batch.kubernetes.io/controller-uid=u1"
        ]),
    );
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j3"}, "spec": {"parallelism": 4,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"succeeded": 1}}
        ),
        &json!(["j3", "Running", "1/1 of 4", "", "59s", "a,b", "img:1,img:2", "batch.kubernetes.io/controller-uid=u1"]),
    );
}

#[test]
fn an_ended_job_shows_how_it_ended() {
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j4"}, "spec": {"parallelism": 1, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"},
            {"type": "Complete", "status": "True"}], "startTime": "2020-01-01T00:00:00Z",
            "completionTime": "2020-01-01T01:02:03Z", "succeeded": 1}}
        ),
        &json!(["j4", "Complete", "1/1", "62m", "59s", "a,b", "img:1,img:2", "batch.kubernetes.io/controller-uid=u1"]),
    );
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j5"}, "spec": {"parallelism": 1, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"conditions": [{"type": "FailureTarget", "status": "True"},
            {"type": "Failed", "status": "True"}], "startTime": "2020-01-01T00:00:00Z", "failed": 1}}
        ),
        &json!(["j5", "Failed", "0/1", "6y326d", "59s", "a,b", "img:1,img:2", "batch.kubernetes.io/controller-uid=u1"]),
    );
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j6"}, "spec": {"parallelism": 1, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}
        ),
        &json!(["j6", "Suspended", "0/1", "", "59s", "a,b", "img:1,img:2", "batch.kubernetes.io/controller-uid=u1"]),
    );
}

#[test]
fn a_job_about_to_end_shows_why() {
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j7"}, "spec": {"parallelism": 1, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"conditions": [{"type": "FailureTarget", "status": "True"}],
            "startTime": "2020-01-01T00:00:00Z"}}
        ),
        &json!([
            "j7",
            "FailureTarget",
            "0/1",
            "6y326d",
            "59s",
            "a,b",
            "img:1,img:2",
            "batch.kubernetes.io/controller-uid=u1"
        ]),
    );
    check(
        ("batch", "Job"),
        &json!(
            {"metadata": {"name": "j8"}, "spec": {"parallelism": 1, "completions": 1,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u1"}},
            "template": {"spec": {"containers": [{"name": "a", "image": "img:1"}, {"name": "b",
            "image": "img:2"}]}}}, "status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}],
            "startTime": "2020-01-01T00:00:00Z"}}
        ),
        &json!([
            "j8",
            "SuccessCriteriaMet",
            "0/1",
            "6y326d",
            "59s",
            "a,b",
            "img:1,img:2",
            "batch.kubernetes.io/controller-uid=u1"
        ]),
    );
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

#[test]
fn a_cron_job_shows_suspend_as_text() {
    check(
        ("batch", "CronJob"),
        &json!(
            {"metadata": {"name": "c1"}, "spec": {"schedule": "* * * * *", "suspend": false,
            "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "img:1"},
            {"name": "b", "image": "img:2"}]}}}}}}
        ),
        &json!(["c1", "* * * * *", "<none>", "False", 0, "<none>", "59s", "a,b", "img:1,img:2", "<none>"]),
    );
    check(
        ("batch", "CronJob"),
        &json!(
            {"metadata": {"name": "c2"}, "spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC", "suspend": true,
            "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "img:1"},
            {"name": "b", "image": "img:2"}]}}}}}, "status": {"active": [{"name": "x"}],
            "lastScheduleTime": "2020-01-01T00:00:00Z"}}
        ),
        &json!(["c2", "* * * * *", "Etc/UTC", "True", 1, "6y326d", "59s", "a,b", "img:1,img:2", "<none>"]),
    );
}
