//! Rows of autoscalers, as kube-apiserver returned them.

use serde_json::json;

use super::check;

#[test]
fn an_autoscaler_shows_usage_of_its_target() {
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h2"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 2, "maxReplicas": 5, "metrics": [{"type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue",
            "averageValue": "1Gi"}}}, {"type": "Pods", "pods": {"metric": {"name": "q"},
            "target": {"type": "AverageValue", "averageValue": "1500m"}}}]}}
        ),
        &json!(["h2", "Deployment/d", "cpu: <unknown>/50%, memory: <unknown>/1Gi + 1 more...", "2", 5, 0, "59s"]),
    );
}

#[test]
fn averages_say_so_where_there_are_values_too() {
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h4"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Pods",
            "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1500m"}}},
            {"type": "Object", "object": {"describedObject": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "target": {"type": "Value", "value": "2k"}, "metric": {"name": "q"}}}]},
            "status": {"currentReplicas": 2, "currentMetrics": [{"type": "Pods", "pods": {"metric": {"name": "q"},
            "current": {"averageValue": "700m"}}}, {"type": "Object", "object": {"metric": {"name": "q"},
            "current": {"value": "100"}, "describedObject": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}}}]}}
        ),
        &json!(["h4", "Deployment/d", "700m/1500m, 100/2k", "1", 5, 2, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h5"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Object",
            "object": {"describedObject": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "target": {"type": "AverageValue", "averageValue": "3"}, "metric": {"name": "q"}}}, {"type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]},
            "status": {"currentReplicas": 2, "currentMetrics": [{"type": "Object",
            "object": {"metric": {"name": "q"}, "current": {"value": "1", "averageValue": "1"},
            "describedObject": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}, {"type": "External",
            "external": {"metric": {"name": "q"}, "current": {"averageValue": "2"}}}]}}
        ),
        &json!(["h5", "Deployment/d", "1/3 (avg), 2/10 (avg)", "1", 5, 2, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h6"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Object",
            "object": {"describedObject": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "target": {"type": "AverageValue", "averageValue": "3"}, "metric": {"name": "q"}}}, {"type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "10"}}}]}}
        ),
        &json!(["h6", "Deployment/d", "<unknown>/3 (avg), <unknown>/10", "1", 5, 0, "59s"]),
    );
}

#[test]
fn metrics_of_containers_show_as_those_of_pods() {
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h7"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "10"}}},
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "target": {"type": "Utilization",
            "averageUtilization": 60}, "container": "a"}}]}, "status": {"currentReplicas": 2,
            "currentMetrics": [{"type": "External", "external": {"metric": {"name": "q"},
            "current": {"value": "4"}}}, {"type": "ContainerResource", "containerResource": {"name": "cpu",
            "current": {"averageValue": "1", "averageUtilization": 70}, "container": "a"}}]}}
        ),
        &json!(["h7", "Deployment/d", "4/10, cpu: 70%/60%", "1", 5, 2, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h8"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "target": {"type": "AverageValue",
            "averageValue": "100m"}, "container": "a"}}]}, "status": {"currentReplicas": 2,
            "currentMetrics": [{"type": "External", "external": {"metric": {"name": "q"},
            "current": {"value": "4"}}}, {"type": "ContainerResource", "containerResource": {"name": "cpu",
            "current": {"averageValue": "50m"}, "container": "a"}}]}}
        ),
        &json!(["h8", "Deployment/d", "<unknown>/10 (avg), cpu: 50m/100m", "1", 5, 2, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "h9"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "ContainerResource",
            "containerResource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60},
            "container": "a"}}, {"type": "ContainerResource", "containerResource": {"name": "cpu",
            "target": {"type": "AverageValue", "averageValue": "100m"}, "container": "a"}}]}}
        ),
        &json!(["h9", "Deployment/d", "cpu: <unknown>/60%, cpu: <unknown>/100m", "1", 5, 0, "59s"]),
    );
}

#[test]
fn autoscaler_shows_two_targets_and_how_many_more() {
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "ha"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Pods",
            "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1500m"}}},
            {"type": "Object", "object": {"describedObject": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "target": {"type": "Value", "value": "2k"}, "metric": {"name": "q"}}},
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value",
            "value": "10"}}}]}}
        ),
        &json!(["ha", "Deployment/d", "<unknown>/1500m, <unknown>/2k + 1 more...", "1", 5, 0, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "hb"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Object",
            "object": {"describedObject": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "target": {"type": "Value", "value": "2k"}, "metric": {"name": "q"}}}, {"type": "External",
            "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "10"}}}]}}
        ),
        &json!(["hb", "Deployment/d", "<unknown>/2k, <unknown>/10 (avg)", "1", 5, 0, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "hc"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue",
            "averageValue": "1Gi"}}}, {"type": "Pods", "pods": {"metric": {"name": "q"},
            "target": {"type": "AverageValue", "averageValue": "1500m"}}}, {"type": "Object",
            "object": {"describedObject": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "target": {"type": "Value", "value": "2k"}, "metric": {"name": "q"}}}]},
            "status": {"currentReplicas": 2}}
        ),
        &json!(["hc", "Deployment/d", "cpu: <unknown>/50%, memory: <unknown>/1Gi + 2 more...", "1", 5, 2, "59s"]),
    );
    check(
        ("autoscaling", "HorizontalPodAutoscaler"),
        &json!(
            {"metadata": {"name": "hd"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d",
            "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]}}
        ),
        &json!(["hd", "Deployment/d", "cpu: <unknown>/80%", "1", 5, 0, "59s"]),
    );
}
