//! Webhook tests that recorded responses cannot cover: TLS, and concurrent writes during a webhook call.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use kctl_apiserver::ApiServer;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::hook::Hook;

async fn send_json(server: &ApiServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let response = server.service().oneshot(request.body(Full::new(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn configure(server: &ApiServer, kind: &str, client_config: Value, operations: &[&str]) {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{}s", kind.to_lowercase());
    let rule =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"] });
    let webhook = json!({ "name": "a.example.com", "clientConfig": client_config, "rules": [rule], "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 5 });
    let body = json!({ "metadata": { "name": "a" }, "webhooks": [webhook] });
    assert_eq!(send_json(server, "POST", &path, &body).await.0, 201);
}

#[tokio::test]
async fn webhook_call_verifies_the_server_certificate() {
    let (url, trusted) = Hook::default().serve().await;
    let (_, other) = Hook::default().serve().await;
    for (bundle, expected) in [(trusted, 403), (other, 500)] {
        let server = ApiServer::on_system_time();
        let config = json!({ "url": format!("{url}/deny-forbidden"), "caBundle": bundle });
        configure(&server, "ValidatingWebhookConfiguration", config, &["CREATE"]).await;
        let (code, response) = send_json(&server, "POST", CONFIG_MAPS, &json!({ "metadata": { "name": "a" } })).await;
        assert_eq!(code, expected, "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_write_repeats_the_webhook_call() {
    let server = ApiServer::new();
    let (n_calls, inner) = (Arc::new(AtomicUsize::new(0)), server.clone());
    let counted = n_calls.clone();
    server.serve_webhook("hook.example.com", move |request: Request<Bytes>| {
        let (server, n_calls) = (inner.clone(), counted.clone());
        async move {
            // Another client writes during the first call. If the server held a lock during calls, this request would
            // deadlock.
            if n_calls.fetch_add(1, Ordering::SeqCst) == 0 {
                let written =
                    send_json(&server, "PATCH", &format!("{CONFIG_MAPS}/a"), &json!({ "data": { "other": "x" } }))
                        .await;
                assert_eq!(written.0, 200, "{}", written.1);
            }
            let review: Value = serde_json::from_slice(request.body()).unwrap();
            let response = json!({ "uid": review["request"]["uid"], "allowed": true });
            let response =
                json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response });
            Response::new(response.to_string().into())
        }
    });
    assert_eq!(send_json(&server, "POST", CONFIG_MAPS, &json!({ "metadata": { "name": "a" } })).await.0, 201);
    configure(&server, "ValidatingWebhookConfiguration", json!({ "url": "https://hook.example.com" }), &["UPDATE"])
        .await;
    let (code, response) =
        send_json(&server, "PATCH", &format!("{CONFIG_MAPS}/a"), &json!({ "data": { "mine": "y" } })).await;
    assert_eq!((code, &response["data"]), (200, &json!({ "mine": "y", "other": "x" })));
    // Three calls: for the first patch, for the concurrent patch, and for the first patch again after the conflict.
    assert_eq!(n_calls.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn webhook_sees_the_stored_name_uid_and_time() {
    let server = ApiServer::new();
    let seen = Arc::new(parking_lot::Mutex::new(Value::Null));
    let keep = seen.clone();
    server.serve_webhook("webhook.default.svc", move |request: Request<Bytes>| {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        *keep.lock() = review["request"]["object"]["metadata"].clone();
        let response = json!({ "uid": review["request"]["uid"], "allowed": true });
        let response = json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response });
        async move {
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            Response::new(response.to_string().into())
        }
    });
    let config = json!({ "service": { "namespace": "default", "name": "webhook" } });
    configure(&server, "ValidatingWebhookConfiguration", config, &["CREATE"]).await;
    let (code, response) =
        send_json(&server, "POST", CONFIG_MAPS, &json!({ "metadata": { "generateName": "a-" } })).await;
    assert_eq!(code, 201, "{response}");
    for field in ["name", "uid", "creationTimestamp"] {
        assert_eq!(response["metadata"][field], seen.lock()[field], "{field}");
    }
}
