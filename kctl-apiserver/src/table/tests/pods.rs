//! Rows of Pods, as kube-apiserver returned them.

use serde_json::{Value, json};

use super::check;

/// Checks the cells of a pod without its name and its age.
pub(super) fn check_pod(spec: &Value, status: &Value, cells: &Value) {
    check_object(&json!({"metadata": {"name": "a"}, "spec": spec, "status": status}), cells);
}

fn check_deleted(spec: &Value, status: &Value, cells: &Value) {
    let metadata = json!({"name": "a", "deletionTimestamp": super::CREATED});
    check_object(&json!({"metadata": metadata, "spec": spec, "status": status}), cells);
}

fn check_object(object: &Value, cells: &Value) {
    let cell = |idx: usize| cells[idx].clone();
    let cells = json!(["a", cell(0), cell(1), cell(2), "59s", cell(3), cell(4), cell(5), cell(6)]);
    check(("", "Pod"), object, &cells);
}

#[test]
fn a_pod_that_waits_shows_its_phase() {
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Pending"}),
        &json!(["0/1", "Pending", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        &json!({"phase": "Pending"}),
        &json!(["0/2", "Pending", "0", "<none>", "<none>", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Pending", "containerStatuses": [{"name": "a", "state": {"waiting": {}}}]}),
        &json!(["0/1", "Pending", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn a_running_pod_counts_its_ready_containers() {
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "podIPs": [{"ip": "10.0.0.1"}], "containerStatuses": [{"name": "a", "state": {"running": {}},
            "ready": true}]}
        ),
        &json!(["1/1", "Running", "0", "10.0.0.1", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}, "ready": true},
            {"name": "b", "state": {"running": {}}}]}
        ),
        &json!(["1/2", "Running", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "X"}},
            "ready": true}]}
        ),
        &json!(["0/1", "X", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "podIPs": [{"ip": "10.0.0.9"}], "containerStatuses": [{"name": "a",
            "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}, "ready": true,
            "restartCount": 2}]}
        ),
        &json!(["1/1", "Running", "2", "10.0.0.9", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn restarts_show_the_time_of_the_last_one() {
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}],
            "containerStatuses": [{"name": "a", "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2020-01-01T00:00:00Z"}},
            "ready": true, "restartCount": 3}, {"name": "b", "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2021-01-01T00:00:00Z"}},
            "ready": true, "restartCount": 2}]}
        ),
        &json!(["2/2", "Running", "5 (5y325d ago)", "10.0.0.2", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!(
            {"initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Pending", "initContainerStatuses": [{"name": "i1", "state": {"terminated": {"exitCode": 0,
            "finishedAt": "2020-01-01T00:00:00Z"}}, "lastState": {"terminated": {"exitCode": 1,
            "finishedAt": "2020-01-01T00:00:00Z"}}, "restartCount": 1}, {"name": "i2", "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2022-01-01T00:00:00Z"}}, "restartCount": 2}]}
        ),
        &json!(["0/1", "Init:1/2", "3 (4y325d ago)", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn the_reason_of_the_first_waiting_container_wins() {
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1,
            "finishedAt": "2020-01-01T00:00:00Z"}}, "restartCount": 5}]}
        ),
        &json!(["0/1", "CrashLoopBackOff", "5 (6y326d ago)", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "First"}}},
            {"name": "b", "state": {"waiting": {"reason": "Second"}}}]}
        ),
        &json!(["0/2", "First", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0,
            "reason": "Completed", "finishedAt": "2020-01-01T00:00:00Z"}}}, {"name": "b",
            "state": {"waiting": {"reason": "Err"}}}]}
        ),
        &json!(["0/2", "Completed", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}, "ready": true},
            {"name": "b", "state": {"waiting": {"reason": "Err"}}}]}
        ),
        &json!(["1/2", "Err", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn ended_container_shows_reason_exit_code_or_signal() {
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Failed", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0,
            "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["0/1", "ExitCode:0", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn ended_pod_shows_completed_phase_or_reason() {
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Succeeded", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0,
            "reason": "Completed", "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["0/1", "Completed", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Succeeded"}),
        &json!(["0/1", "Succeeded", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]}
        ),
        &json!(["0/1", "Succeeded", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Failed", "reason": "Evicted"}),
        &json!(["0/1", "Evicted", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Unknown", "reason": "NodeLost"}),
        &json!(["0/1", "NodeLost", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn partly_completed_pod_is_running_if_ready() {
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "a", "state": {"running": {}}, "ready": true}, {"name": "b",
            "state": {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["1/2", "Running", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_pod(
        &json!({"containers": [{"name": "a"}, {"name": "b"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"running": {}}, "ready": true},
            {"name": "b", "state": {"terminated": {"exitCode": 0, "reason": "Completed",
            "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["1/2", "NotReady", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn pod_in_deletion_is_terminating_unless_it_ended() {
    check_deleted(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!(
            {"phase": "Succeeded", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0,
            "reason": "Completed", "finishedAt": "2020-01-01T00:00:00Z"}}}]}
        ),
        &json!(["0/1", "Completed", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_deleted(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Failed"}),
        &json!(["0/1", "Failed", "0", "<none>", "node1", "<none>", "<none>"]),
    );
    check_deleted(
        &json!(
            {"initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}], "nodeName": "node1"}
        ),
        &json!(
            {"phase": "Pending", "initContainerStatuses": [{"name": "i1", "state": {"running": {}}},
            {"name": "i2"}]}
        ),
        &json!(["0/1", "Terminating", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}

#[test]
fn terminating_pod_on_a_lost_node_is_unknown() {
    check_deleted(
        &json!({"containers": [{"name": "a"}], "nodeName": "node1"}),
        &json!({"phase": "Running", "reason": "NodeLost"}),
        &json!(["0/1", "Unknown", "0", "<none>", "node1", "<none>", "<none>"]),
    );
}
