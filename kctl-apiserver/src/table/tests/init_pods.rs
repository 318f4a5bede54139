//! Rows of Pods with init containers and sidecars, as kube-apiserver returned them.

use serde_json::json;

use super::pods::check_pod;

#[test]
fn running_pod_ignores_init_container_restarts() {
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{"name": "i1", "state": {"terminated": {"exitCode": 0,
            "finishedAt": "2020-01-01T00:00:00Z"}}}, {"name": "i2", "state": {"terminated": {"exitCode": 0,
            "finishedAt": "2020-01-01T00:00:00Z"}}, "restartCount": 2}], "containerStatuses": [{"name": "a",
            "state": {"running": {}}, "ready": true}]}
        ),
        &json!(["1/1", "Running", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{"name": "i1", "state": {"waiting": {"reason": "Odd"}}}, {"name": "i2"}],
            "containerStatuses": [{"name": "a", "state": {"running": {}}, "ready": true}]}
        ),
        &json!(["1/1", "Init:Odd", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn a_sidecar_counts_as_a_container() {
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{"name": "i1", "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}}, "ready": true,
            "restartCount": 4, "started": true}, {"name": "i2", "state": {"terminated": {"exitCode": 0,
            "finishedAt": "2020-01-01T00:00:00Z"}}, "restartCount": 1}], "containerStatuses": [{"name": "a",
            "state": {"running": {}}, "ready": true}]}
        ),
        &json!(["2/2", "Running", "4 (6y326d ago)", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{"name": "i1", "state": {"running": {}}, "started": true}, {"name": "i2",
            "state": {"terminated": {"exitCode": 0, "finishedAt": "2020-01-01T00:00:00Z"}}}],
            "containerStatuses": [{"name": "a", "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2022-01-01T00:00:00Z"}}, "ready": true,
            "restartCount": 1}]}
        ),
        &json!(["1/2", "Running", "1 (4y325d ago)", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Succeeded", "conditions": [{"type": "Initialized", "status": "True"}], "reason": "Foo",
            "initContainerStatuses": [{"name": "i1", "state": {"terminated": {"exitCode": 0, "reason": "Completed",
            "finishedAt": "2020-01-01T00:00:00Z"}}}, {"name": "i2", "state": {"terminated": {"exitCode": 0,
            "reason": "Completed", "finishedAt": "2020-01-01T00:00:00Z"}}}], "containerStatuses": [{"name": "a",
            "state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["0/2", "Completed", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn unstarted_sidecar_keeps_pod_status_in_init() {
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Pending", "initContainerStatuses": [{"name": "i1", "state": {"running": {}}, "ready": true,
            "started": true}, {"name": "i2", "state": {"running": {}}}], "containerStatuses": [{"name": "a",
            "state": {"waiting": {"reason": "PodInitializing"}}}]}
        ),
        &json!(["1/2", "Init:1/2", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Pending", "initContainerStatuses": [{"name": "i1", "state": {"running": {}}}, {"name": "i2",
            "state": {"waiting": {"reason": "PodInitializing"}}}], "containerStatuses": [{"name": "a",
            "state": {"waiting": {"reason": "PodInitializing"}}}]}
        ),
        &json!(["0/2", "Init:0/2", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Succeeded", "initContainerStatuses": [{"name": "i1",
            "state": {"terminated": {"exitCode": 137, "reason": "Error", "finishedAt": "2020-01-01T00:00:00Z"}}},
            {"name": "i2", "state": {"terminated": {"exitCode": 0, "finishedAt": "2020-01-01T00:00:00Z"}}}],
            "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed",
            "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["0/2", "Init:Error", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1", "restartPolicy": "Always"}, {"name": "i2"}],
            "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{"name": "i1", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}}, "restartCount": 2},
            {"name": "i2", "state": {"terminated": {"exitCode": 0, "finishedAt": "2020-01-01T00:00:00Z"}}}],
            "containerStatuses": [{"name": "a", "state": {"running": {}}, "ready": true}]}
        ),
        &json!(["1/2", "Init:CrashLoopBackOff", "2 (6y326d ago)", "<none>", "node1", "<none>", "<none>"]),
    );
}
