//! Tests conversion of autoscalers from one version to the other, and back.

use serde_json::{Value, json};

use super::*;

fn of_second(spec: &Value, status: &Value) -> Value {
    json!({ "apiVersion": V2, "kind": "HorizontalPodAutoscaler", "metadata": { "name": "a" }, "spec": spec,
        "status": status })
}

#[test]
fn round_trip_through_version_1_changes_nothing() {
    let amount = |kind: &str, field: &str, amount: Value| json!({ "type": kind, field: amount });
    let metric = json!({ "name": "m" });
    let service = json!({ "kind": "Service", "name": "s", "apiVersion": "v1" });
    let cases = [
        json!({ "type": "Resource", "resource": { "name": "cpu", "target": amount("Utilization", "averageUtilization", 3.into()) } }),
        json!({ "type": "Resource", "resource": { "name": "cpu", "target": amount("AverageValue", "averageValue", "3".into()) } }),
        json!({ "type": "Pods", "pods": { "metric": metric, "target": amount("AverageValue", "averageValue", "3".into()) } }),
        json!({ "type": "External", "external": { "metric": metric, "target": amount("Value", "value", "3".into()) } }),
        json!({ "type": "External", "external": { "metric": metric, "target": amount("AverageValue", "averageValue", "3".into()) } }),
        json!({ "type": "Object", "object": { "metric": metric, "describedObject": service, "target": amount("Value", "value", "3k".into()) } }),
        json!({ "type": "Object", "object": { "metric": metric, "describedObject": service, "target": amount("AverageValue", "averageValue", "3k".into()) } }),
        json!({ "type": "ContainerResource", "containerResource": { "container": "c", "name": "cpu",
            "target": amount("Utilization", "averageUtilization", 3.into()) } }),
    ];
    for metric in cases {
        let object = of_second(&json!({ "maxReplicas": 3, "metrics": [metric] }), &json!({ "currentMetrics": null }));
        let first = convert(V1, &object);
        assert_eq!(first["apiVersion"], V1);
        assert!(first["spec"].get("metrics").is_none(), "{first}");
        assert_eq!(convert(V2, &first), object, "{first}");
    }
}

#[test]
fn invalid_annotation_is_ignored() {
    let metrics = |text: &str| {
        let object = json!({ "apiVersion": V1, "kind": "HorizontalPodAutoscaler",
            "metadata": { "annotations": { METRICS: text } }, "spec": {} });
        let second = convert(V2, &object);
        assert!(second["metadata"].get("annotations").is_none(), "{second}");
        second["spec"]["metrics"].clone()
    };
    let default = json!([cpu("target", json!({ "type": "Utilization", "averageUtilization": UTILIZATION }))]);
    for text in [
        "",
        "{}",
        "[]",
        r#"[{"type":7}]"#,
        r#"[{"type":"Pods","pods":[]}]"#,
        r#"[{"type":"Pods","pods":{"targetAverageValue":"much"}}]"#,
    ] {
        assert_eq!(metrics(text), default, "{text}");
    }
    let read = json!([{ "type": "Pods", "pods": { "metric": { "name": "" },
        "target": { "type": "AverageValue", "averageValue": "1500m" } } }]);
    assert_eq!(metrics(r#"[{"type":"Pods","pods":{"targetAverageValue":1.5}}]"#), read);
}
