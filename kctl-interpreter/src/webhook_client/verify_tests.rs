//! Tests of the checks: each message of Karmada, and the answers that pass.

use serde_json::json;

use super::*;

const PATCH: &str = "W10=";

fn response(fields: &Value) -> Value {
    let mut response = json!({ "uid": "u", "successful": true });
    response.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "response": response })
}

#[test]
fn protocol_violations_are_rejected_in_karmadas_words() {
    use Operation::{InterpretDependency, InterpretHealth, InterpretReplica, InterpretStatus, ReviseReplica};
    let wrong_kind = json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1" });
    let cases = [
        (InterpretHealth, json!({}), "webhook response was absent"),
        (InterpretHealth, json!({ "response": { "uid": "x" } }), "expected response.uid \"u\", got \"x\""),
        (InterpretHealth, json!({ "response": {} }), "expected response.uid \"u\", got \"\""),
        (
            InterpretHealth,
            response(&json!({ "successful": false })),
            "webhook require response.status when response.successful is false",
        ),
        (
            InterpretHealth,
            response(&json!({ "successful": false, "status": { "message": "no", "code": 409 } })),
            "webhook call failed, get status code: 409, msg: no",
        ),
        (InterpretHealth, response(&json!({})), "webhook returned nil response.healthy"),
        (InterpretHealth, response(&json!({ "Healthy": true })), "webhook returned nil response.healthy"),
        (InterpretReplica, response(&json!({})), "webhook returned nil response.replicas"),
        (InterpretStatus, response(&json!({ "rawStatus": null })), "webhook returned nil response.rawStatus"),
        (ReviseReplica, response(&json!({ "patch": PATCH })), "webhook returned nil response.patchType"),
        (ReviseReplica, response(&json!({ "patchType": "JSONPatch" })), "webhook returned empty response.patch"),
        (
            ReviseReplica,
            response(&json!({ "patchType": "MergePatch", "patch": PATCH })),
            "webhook returned invalid response.patchType of \"MergePatch\"",
        ),
        (ReviseReplica, response(&json!({ "patch": "?" })), "response.patch is not base64"),
        (
            InterpretDependency,
            response(&json!({ "dependencies": [{ "kind": "Secret", "name": "a" }] })),
            "dependencies[0].apiVersion: Invalid value: \"\": missing required apiVersion",
        ),
        (
            InterpretDependency,
            response(
                &json!({ "dependencies": [{ "apiVersion": "v1", "kind": "Secret", "labelSelector": "app=web" }] }),
            ),
            "dependencies[0].labelSelector: Invalid value: \"app=web\"",
        ),
        (InterpretReplica, response(&json!({ "replicas": 4.0 })), "the answer is not a ResourceInterpreterContext: "),
        (InterpretReplica, response(&json!({ "replicas": "4" })), "the answer is not a ResourceInterpreterContext: "),
        (
            InterpretReplica,
            response(&json!({ "replicas": 1_u64 << 40 })),
            "the answer is not a ResourceInterpreterContext: ",
        ),
        (
            InterpretReplica,
            response(&json!({ "replicas": 1, "replicaRequirements": { "resourceRequest": { "cpu": "x" } } })),
            "\"x\" is not a quantity",
        ),
        (InterpretHealth, wrong_kind, "no kind \"AdmissionReview\" is registered for version \"admission.k8s.io/v1\""),
        (InterpretHealth, json!("text"), "the answer is not a ResourceInterpreterContext in JSON or YAML"),
    ];
    for (operation, body, expected) in cases {
        let error = verify("u", operation, body.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{body}: {error}");
    }
}

#[test]
fn webhook_responses_are_converted_for_every_operation() {
    use Operation::{
        InterpretComponent, InterpretDependency, InterpretHealth, InterpretReplica, InterpretStatus, Retain,
    };
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "name": "a" });
    let whole = |answer: Value| WebhookReply::Whole(answer);
    let cases = [
        (InterpretReplica, json!({ "replicas": -1 }), whole(json!({ "replica": -1, "requires": null }))),
        (
            InterpretReplica,
            json!({ "replicas": 2, "replicaRequirements": { "resourceRequest": { "cpu": "1.5", "memory": "1024Mi" } } }),
            whole(json!({ "replica": 2, "requires": { "resourceRequest": { "cpu": "1500m", "memory": "1Gi" } } })),
        ),
        (
            InterpretComponent,
            json!({ "components": [{ "name": "a", "replicas": 1, "new": 1 }] }),
            whole(json!({ "components": [{ "name": "a", "replicas": 1 }] })),
        ),
        (InterpretComponent, json!({}), whole(json!({ "components": null }))),
        (InterpretDependency, json!({ "dependencies": [secret] }), whole(json!({ "dependencies": [secret] }))),
        (
            InterpretDependency,
            json!({ "dependencies": [{ "apiVersion": "v1", "kind": "A", "labelSelector": { "matchLabels": {}, "new": 1 } }] }),
            whole(json!({ "dependencies": [{ "apiVersion": "v1", "kind": "A", "labelSelector": {} }] })),
        ),
        (InterpretDependency, json!({}), whole(json!({ "dependencies": null }))),
        (InterpretStatus, json!({ "rawStatus": [1] }), whole(json!({ "status": [1] }))),
        (InterpretHealth, json!({ "healthy": false }), whole(json!({ "healthy": false }))),
        (Retain, json!({ "patch": PATCH, "patchType": "JSONPatch" }), WebhookReply::Patch(b"[]".to_vec())),
        (Retain, json!({}), WebhookReply::Patch(Vec::new())),
    ];
    for (operation, fields, expected) in cases {
        let body = response(&fields).to_string();
        assert_eq!(verify("u", operation, body.as_bytes()).ok(), Some(expected), "{body}");
    }
}

#[test]
fn answer_may_be_yaml_with_or_without_kind() {
    let cases = [
        "response: {uid: u, successful: true, healthy: true}\n",
        "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterContext\nresponse:\n  uid: u\n  successful: true\n  healthy: true\n",
        "{\"kind\":\"ResourceInterpreterContext\",\"response\":{\"uid\":\"u\",\"successful\":true,\"healthy\":true,\"new\":1}}",
        "\n {\"response\":{\"uid\":\"u\",\"successful\":true,\"healthy\":true}}\n",
    ];
    for body in cases {
        let answer = verify("u", Operation::InterpretHealth, body.as_bytes());
        assert_eq!(answer.ok(), Some(WebhookReply::Whole(json!({ "healthy": true }))), "{body}");
    }
}

#[test]
fn null_counts_as_absent() {
    use Operation::{InterpretComponent, InterpretDependency, InterpretHealth};
    let reference =
        json!({ "apiVersion": "v1", "kind": "Secret", "namespace": null, "name": "a", "labelSelector": null });
    let status = json!({ "message": null, "code": null });
    let cases = [
        (InterpretHealth, json!({ "healthy": true, "status": status }), json!({ "healthy": true })),
        (
            InterpretComponent,
            json!({ "components": [{ "name": "a", "replicas": null }] }),
            json!({ "components": [{ "name": "a", "replicas": 0 }] }),
        ),
        (
            InterpretDependency,
            json!({ "dependencies": [reference] }),
            json!({ "dependencies": [{ "apiVersion": "v1", "kind": "Secret", "name": "a" }] }),
        ),
    ];
    for (operation, fields, expected) in cases {
        let mut body = response(&fields);
        (body["apiVersion"], body["kind"]) = (Value::Null, Value::Null);
        let answer = verify("u", operation, body.to_string().as_bytes());
        assert_eq!(answer.ok(), Some(WebhookReply::Whole(expected)), "{body}");
    }
    let failed = json!({ "response": { "uid": "u", "successful": null, "status": status } });
    let error = verify("u", InterpretHealth, failed.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "webhook call failed, get status code: 0, msg: ");
}
