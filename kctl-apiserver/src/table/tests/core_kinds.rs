//! Rows of the core group, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn a_config_map_counts_both_kinds_of_keys() {
    check(
        ("", "ConfigMap"),
        &json!({"metadata": {"name": "cm1"}, "data": {"a": "1"}, "binaryData": {"b": "aGk="}}),
        &json!(["cm1", 2, "59s"]),
    );
    check(("", "ConfigMap"), &json!({"metadata": {"name": "cm2"}}), &json!(["cm2", 0, "59s"]));
}

#[test]
fn a_service_account_shows_its_age() {
    check(
        ("", "ServiceAccount"),
        &json!({"metadata": {"name": "sa1"}, "secrets": [{"name": "a"}]}),
        &json!(["sa1", "59s"]),
    );
}

#[test]
fn a_limit_range_shows_when_it_was_created() {
    check(("", "LimitRange"), &json!({"metadata": {"name": "lr1"}}), &json!(["lr1", "2026-11-21T06:15:47Z"]));
}

#[test]
fn a_node_shows_its_roles_and_its_conditions() {
    check(
        ("", "Node"),
        &json!(
            {"metadata": {"name": "table-n1", "labels": {"kubernetes.io/role": "old",
            "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/worker": ""}},
            "spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP",
            "address": "1.1.1.1"}, {"type": "InternalIP", "address": "10.0.0.9"}],
            "nodeInfo": {"kernelVersion": "kernelVersion1", "osImage": "osImage1",
            "containerRuntimeVersion": "containerRuntimeVersion1", "kubeletVersion": "kubeletVersion1",
            "architecture": "architecture1"}}}
        ),
        &json!([
            "table-n1",
            "Ready,SchedulingDisabled",
            "control-plane,old,worker",
            "59s",
            "kubeletVersion1",
            "10.0.0.1",
            "1.1.1.1",
            "osImage1",
            "kernelVersion1 (architecture1)",
            "containerRuntimeVersion1"
        ]),
    );
}

#[test]
fn a_namespace_shows_its_phase() {
    check(
        ("", "Namespace"),
        &json!({"metadata": {"name": "table"}, "status": {"phase": "Active"}}),
        &json!(["table", "Active", "59s"]),
    );
    check(
        ("", "Namespace"),
        &json!({"metadata": {"name": "table-ns1"}, "status": {"phase": "Active"}}),
        &json!(["table-ns1", "Active", "59s"]),
    );
    check(
        ("", "Namespace"),
        &json!(
            {"metadata": {"name": "term", "deletionTimestamp": "2026-11-21T06:02:20Z"},
            "status": {"phase": "Terminating"}}
        ),
        &json!(["term", "Terminating", "59s"]),
    );
}

#[test]
fn event_takes_its_times_from_where_they_are() {
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "e1"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "reason": "R", "message": " two words \n", "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2021-01-01T00:00:00Z", "count": 3,
            "type": "Normal", "eventTime": null, "reportingComponent": "", "reportingInstance": ""}
        ),
        &json!(["5y325d", "Normal", "R", "pod/p", "", "kubelet, n1", "two words", "6y326d", 3, "e1"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "e2"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p",
            "fieldPath": "spec.containers{a}"}, "reason": "R", "message": "m", "source": {}, "firstTimestamp": null,
            "lastTimestamp": null, "type": "Warning", "eventTime": null, "reportingComponent": "",
            "reportingInstance": ""}
        ),
        &json!(["<unknown>", "Warning", "R", "pod/p", "spec.containers{a}", "", "m", "<unknown>", 1, "e2"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "e3"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "reason": "R", "message": "m", "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "type": "Normal", "eventTime": "2020-01-01T00:00:00.000000Z", "reportingComponent": "ctl",
            "reportingInstance": "ctl-1"}
        ),
        &json!(["6y326d", "Normal", "R", "pod/p", "", "ctl, ctl-1", "m", "6y326d", 1, "e3"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "e4"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "reason": "R", "message": "m", "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "type": "Normal", "eventTime": "2020-01-01T00:00:00.000000Z", "series": {"count": 7,
            "lastObservedTime": "2022-01-01T00:00:00.000000Z"}, "reportingComponent": "ctl",
            "reportingInstance": "ctl-1"}
        ),
        &json!(["4y325d", "Normal", "R", "pod/p", "", "ctl, ctl-1", "m", "6y326d", 7, "e4"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "e5"}, "involvedObject": {"namespace": "table", "name": "p"},
            "source": {"component": "k"}, "firstTimestamp": null, "lastTimestamp": null, "type": "Normal",
            "eventTime": null, "reportingComponent": "", "reportingInstance": ""}
        ),
        &json!(["<unknown>", "Normal", "", "/p", "", "k", "", "<unknown>", 1, "e5"]),
    );
}

#[test]
fn event_takes_its_source_from_where_it_is() {
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "f1"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "source": {"component": "k"}, "firstTimestamp": null, "lastTimestamp": null, "type": "Normal",
            "eventTime": null, "reportingComponent": "k", "reportingInstance": ""}
        ),
        &json!(["<unknown>", "Normal", "", "pod/p", "", "k", "", "<unknown>", 1, "f1"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "f2"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "source": {"host": "h"}, "firstTimestamp": null, "lastTimestamp": null, "type": "Normal",
            "eventTime": null, "reportingComponent": "q", "reportingInstance": "z"}
        ),
        &json!(["<unknown>", "Normal", "", "pod/p", "", "q, h", "", "<unknown>", 1, "f2"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "f3"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "reason": "x", "source": {"component": "k"}, "firstTimestamp": "2021-01-01T00:00:00Z",
            "lastTimestamp": "2022-01-01T00:00:00Z", "count": 4, "type": "Normal",
            "eventTime": "2020-01-01T00:00:00.000000Z", "series": {"count": 9,
            "lastObservedTime": "2023-01-01T00:00:00.000000Z"}, "reportingComponent": "ctl",
            "reportingInstance": "ctl-1"}
        ),
        &json!(["3y325d", "Normal", "x", "pod/p", "", "k, ctl-1", "", "5y325d", 9, "f3"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "f4"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "source": {}, "firstTimestamp": "2021-01-01T00:00:00Z", "lastTimestamp": null, "count": 2,
            "type": "Normal", "eventTime": null, "reportingComponent": "", "reportingInstance": ""}
        ),
        &json!(["5y325d", "Normal", "", "pod/p", "", "", "", "5y325d", 2, "f4"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "f5"}, "involvedObject": {"kind": "HorizontalPodAutoscaler", "namespace": "table",
            "name": "p", "apiVersion": "autoscaling/v2"}, "message": "  a\nb  ", "source": {},
            "firstTimestamp": null, "lastTimestamp": null, "type": "Normal", "eventTime": null,
            "reportingComponent": "", "reportingInstance": ""}
        ),
        &json!(["<unknown>", "Normal", "", "horizontalpodautoscaler/p", "", "", "a\nb", "<unknown>", 1, "f5"]),
    );
    check(
        ("", "Event"),
        &json!(
            {"metadata": {"name": "f6"}, "involvedObject": {"kind": "Pod", "namespace": "table", "name": "p"},
            "source": {}, "firstTimestamp": null, "lastTimestamp": null, "type": "Normal", "eventTime": null,
            "reportingComponent": "onlyc", "reportingInstance": ""}
        ),
        &json!(["<unknown>", "Normal", "", "pod/p", "", "onlyc", "", "<unknown>", 1, "f6"]),
    );
}
