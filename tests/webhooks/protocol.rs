//! Bodies of webhook requests and responses, without an API server.

use axum::{
    Router,
    body::Body,
    http::{Request, header},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt, Full};
use kctl::{Json, json, prelude::*};
use kctl_runtime::manager::metrics::prometheus_client::{encoding::text::encode, registry::Registry};
use kctl_webhook::Metrics;
use parking_lot::Mutex;
use tower::ServiceExt;

use crate::kinds;

const DEFAULTS: &str = "/mutate-hooks-example-com-v1-site";
pub(crate) const RULES: &str = "/validate-hooks-example-com-v1-site";

#[admission(validate)]
fn panics(pod: &Pod) -> Result<()> {
    panic!("{} is too much", pod.name_any())
}

#[admission(mutate)]
async fn hangs(_pod: &mut Pod) {
    std::future::pending::<()>().await;
}

#[admission(mutate, failure_policy = Ignore)]
async fn hangs_optionally(_secret: &mut Secret) {
    std::future::pending::<()>().await;
}

fn router(metrics: &Metrics) -> Router {
    kinds::app().admission::<(panics, hangs, hangs_optionally)>().webhook_routes(metrics).unwrap().router
}

/// Sends a request and returns `response` of the body. The HTTP status must always be 200.
pub(crate) async fn send_review(router: &Router, path: &str, media: &str, body: impl Into<Body>) -> Json {
    let request = Request::post(path).header(header::CONTENT_TYPE, media).body(body.into()).unwrap();
    let (head, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    let bytes = body.collect().await.unwrap().to_bytes();
    serde_json::from_slice::<Json>(&bytes).unwrap()["response"].clone()
}

pub(crate) fn review(operation: &str, object: &Json, old: &Json) -> String {
    let one = if object.is_null() { old } else { object };
    let (group, version) = one["apiVersion"].as_str().unwrap().split_once('/').unwrap_or(("", "v1"));
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u1", "kind": { "group": group, "version": version, "kind": one["kind"] },
        "name": "web", "namespace": "default", "operation": operation, "userInfo": { "username": "me" },
        "object": object, "oldObject": old, "dryRun": false,
    } })
    .to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "callers make it in place")]
pub(crate) fn site(spec: Json) -> Json {
    json!({ "apiVersion": "hooks.example.com/v1", "kind": "Site", "metadata": { "name": "web" }, "spec": spec })
}

fn patch(response: &Json) -> Json {
    let Some(patch) = response["patch"].as_str() else { return Json::Null };
    serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap()
}

#[tokio::test]
async fn admission_patch_contains_only_changed_fields() {
    let router = router(&Metrics::default());
    let replicas = |op: &str| json!([{ "op": op, "path": "/spec/replicas", "value": 1 }]);
    let cases = [
        ("a default", "CREATE", json!({ "hosts": [], "new": { "a": null } }), replicas("add")),
        ("a null", "CREATE", json!({ "hosts": [], "replicas": 0, "quantity": "1000m" }), replicas("replace")),
        ("no change", "UPDATE", json!({ "hosts": [], "replicas": 2, "unknown": [1, null] }), Json::Null),
    ];
    for (case, operation, spec, expected) in cases {
        let body = review(operation, &site(spec), &Json::Null);
        let response = send_review(&router, DEFAULTS, "application/json", body).await;
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u1"), &json!(true)), "{case}");
        assert_eq!(patch(&response), expected, "{case}");
        assert_eq!(response["patchType"].is_null(), expected.is_null(), "{case}");
    }
    // A DELETE has no object to mutate, and the invalid old object is not decoded.
    let body = review("DELETE", &Json::Null, &site(json!({ "hosts": [] })));
    let response = send_review(&router, DEFAULTS, "application/json", body).await;
    assert_eq!((&response["allowed"], patch(&response)), (&json!(true), Json::Null));
}

#[tokio::test(start_paused = true)]
async fn each_failure_is_a_response_with_the_reason() {
    let router = router(&Metrics::default());
    let good = review("CREATE", &site(json!({ "hosts": ["a"] })), &Json::Null);
    let pod =
        review("CREATE", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } }), &Json::Null);
    let json_type = "application/json";
    let cases = [
        (RULES, json_type, good.clone(), 200, ""),
        (RULES, "application/json; charset=utf-8", good.clone(), 200, ""),
        (RULES, "application/yaml", good.clone(), 400, "contentType=application/yaml, expected application/json"),
        (RULES, json_type, String::new(), 400, "request body is empty"),
        (RULES, json_type, "{".into(), 400, "no AdmissionReview: EOF while parsing an object at line 1 column 1"),
        (
            RULES,
            json_type,
            "{}".into(),
            400,
            "neither apiVersion nor kind: expected admission.k8s.io/v1 AdmissionReview",
        ),
        (RULES, json_type, good.replace("CREATE", "PATCH"), 400, "Site default/web: there is no operation \"PATCH\""),
        (
            RULES,
            json_type,
            pod.clone(),
            400,
            "Pod default/web: v1, Kind=Pod at the path of hooks.example.com/v1, Kind=Site",
        ),
        (RULES, json_type, good.replace("[\"a\"]", "7"), 400, "Site default/web: the object can't be read as `Site`: "),
        (RULES, json_type, " ".repeat((7 << 20) + 1), 413, "the request has more than 7340032 bytes"),
        (
            "/validate--v1-pod",
            json_type,
            pod.clone(),
            500,
            "Pod default/web: panic in `panics` (tests/webhooks/protocol.rs:",
        ),
        (
            "/mutate--v1-pod?timeout=2s",
            json_type,
            pod,
            504,
            "no response within 2s: `hangs` (tests/webhooks/protocol.rs:",
        ),
    ];
    for (path, media, body, code, text) in cases {
        let response = send_review(&router, path, media, body).await;
        let message = response["status"]["message"].as_str().unwrap_or_default();
        assert_eq!(
            (&response["status"]["code"], &response["allowed"]),
            (&json!(code), &json!(code == 200)),
            "{response}"
        );
        assert!(message.starts_with(text), "{message}");
    }
}

/// An API server drops a response without the uid of its review, and reports the missing uid instead of the error.
#[tokio::test]
async fn unread_review_is_answered_with_its_uid() {
    let router = router(&Metrics::default());
    let good = review("CREATE", &site(json!({ "hosts": ["a"] })), &Json::Null);
    let uid = serde_json::from_str::<Json>(&good).unwrap()["request"]["uid"].take();
    assert!(uid.as_str().is_some_and(|uid| !uid.is_empty()), "{good}");
    let too_long = good.clone() + &" ".repeat(7 << 20);
    let cut_off = good[..good.len() - 1].to_owned();
    let json_type = "application/json";
    for (media, body, code) in [(json_type, too_long, 413), (json_type, cut_off, 400), ("text/plain", good, 400)] {
        let response = send_review(&router, RULES, media, body).await;
        assert_eq!((&response["status"]["code"], &response["uid"]), (&json!(code), &uid), "{response}");
    }
}

/// The last byte of the review never arrives.
#[tokio::test(start_paused = true)]
async fn late_review_body_is_reported_with_its_uid() {
    let mut review = review("CREATE", &site(json!({ "hosts": ["a"] })), &Json::Null);
    review.pop();
    let body = Body::new(Full::from(review).with_trailers(std::future::pending()));
    let response =
        send_review(&router(&Metrics::default()), &format!("{RULES}?timeout=2s"), "application/json", body).await;
    assert_eq!((&response["uid"], &response["status"]["code"]), (&json!("u1"), &json!(504)), "{response}");
    assert_eq!(response["status"]["message"], "no response within 2s: the rest of the request did not come");
}

#[tokio::test]
async fn metrics_follow_controller_runtime_and_count_panics() {
    let metrics = Metrics::default();
    let router = router(&metrics);
    let pod =
        review("CREATE", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } }), &Json::Null);
    send_review(&router, "/validate--v1-pod", "application/json", pod).await;
    send_review(&router, RULES, "application/json", review("CREATE", &site(json!({ "hosts": ["a"] })), &Json::Null))
        .await;
    let (mut registry, mut text) = (Registry::default(), String::new());
    metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    for line in [
        "controller_runtime_webhook_requests_total{webhook=\"/validate--v1-pod\",code=\"500\"} 1",
        "controller_runtime_webhook_requests_total{webhook=\"/validate-hooks-example-com-v1-site\",code=\"200\"} 1",
        "controller_runtime_webhook_latency_seconds_count{webhook=\"/validate--v1-pod\"} 1",
        "controller_runtime_webhook_requests_in_flight{webhook=\"/validate--v1-pod\"} 0",
        "controller_runtime_webhook_panics_total 1",
        "controller_runtime_conversion_webhook_panics_total 0",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
}

pub(crate) fn conversion(desired: &str, objects: &Json) -> String {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u1", "desiredAPIVersion": desired, "objects": objects } })
    .to_string()
}

#[tokio::test]
async fn conversion_via_hub_version_preserves_metadata() {
    let router = router(&Metrics::default());
    let metadata = json!({ "name": "web", "uid": "x", "managedFields": [{ "manager": "me" }], "unknown": 1 });
    let alpha = json!({ "apiVersion": "hooks.example.com/v1alpha1", "kind": "Site", "metadata": metadata,
        "spec": { "host": "a", "size": 2 } });
    let stable = json!({ "apiVersion": "hooks.example.com/v1", "kind": "Site", "metadata": metadata,
        "spec": { "hosts": ["a"], "replicas": 2 } });
    for (desired, from, to) in [("v1", &alpha, &stable), ("v1alpha1", &stable, &alpha), ("v1", &stable, &stable)] {
        let body = conversion(&format!("hooks.example.com/{desired}"), &json!([from]));
        let response = send_review(&router, "/convert", "application/json", body).await;
        assert_eq!(response, json!({ "uid": "u1", "convertedObjects": [to], "result": { "status": "Success" } }));
    }
}

/// Go writes a nil slice as null.
#[tokio::test]
async fn null_list_of_objects_converts_nothing() {
    let body = conversion("hooks.example.com/v1", &Json::Null);
    let response = send_review(&router(&Metrics::default()), "/convert", "application/json", body).await;
    assert_eq!(response, json!({ "uid": "u1", "convertedObjects": [], "result": { "status": "Success" } }));
}

#[tokio::test]
async fn failed_conversion_keeps_uid_and_names_object() {
    let router = router(&Metrics::default());
    let of = |version: &str, spec: Json| {
        json!({ "apiVersion": format!("hooks.example.com/{version}"), "kind": "Site",
            "metadata": { "name": "web", "namespace": "here" }, "spec": spec })
    };
    let cases = [
        ("v2", of("v1", json!({ "hosts": [] })), "v1 → hooks.example.com/v2: there is no conversion"),
        ("v1", of("v0", json!({})), "v0 → hooks.example.com/v1: there is no conversion"),
        ("v1alpha1", of("v1", json!({ "hosts": [] })), "v1 → hooks.example.com/v1alpha1: spec.hosts is empty"),
        (
            "v1",
            of("v1alpha1", json!({})),
            "v1alpha1 → hooks.example.com/v1: can't be read as v1alpha1: missing field `host`",
        ),
    ];
    for (desired, object, text) in cases {
        let body = conversion(&format!("hooks.example.com/{desired}"), &json!([object]));
        let response = send_review(&router, "/convert", "application/json", body).await;
        assert_eq!((&response["uid"], &response["result"]["status"]), (&json!("u1"), &json!("Failure")));
        let message = response["result"]["message"].as_str().unwrap();
        assert_eq!(message, format!("Site here/web, hooks.example.com/{text}"));
    }
    let mut without_metadata = of("v1alpha1", json!({ "host": "a" }));
    without_metadata["metadata"] = "web".into();
    for (objects, message) in [
        (json!([1]), "objects[0] is not an object"),
        (json!([without_metadata]), "objects[0].metadata is not an object"),
    ] {
        let body = conversion("hooks.example.com/v1", &objects);
        let response = send_review(&router, "/convert", "application/json", body).await;
        assert_eq!((&response["uid"], &response["result"]["message"]), (&json!("u1"), &json!(message)));
    }
}

/// The logged lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns a review that creates the Pod `default/web`.
fn pod_review() -> String {
    review("CREATE", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } }), &Json::Null)
}

#[tokio::test(start_paused = true)]
async fn slow_function_is_named_before_the_client_stops() {
    let router = router(&Metrics::default());
    for seconds in [1, 5, 10, 30] {
        let path = format!("/mutate--v1-pod?timeout={seconds}s");
        let response = send_review(&router, &path, "application/json", pod_review());
        let response = tokio::time::timeout(Duration::from_millis(seconds * 1_000 - 50), response).await;
        let response = response.expect("a response that the client still reads");
        let message = response["status"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("no response within {seconds}s: `hangs` (")), "{message}");
    }
}

/// The API server continues at its timeout. An earlier error would reject the request.
#[tokio::test(start_paused = true)]
async fn ignored_function_gets_the_whole_timeout() {
    let router = router(&Metrics::default());
    let body =
        review("CREATE", &json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "web" } }), &Json::Null);
    let response = send_review(&router, "/mutate--v1-secret?timeout=10s", "application/json", body);
    assert!(tokio::time::timeout(Duration::from_millis(9_990), response).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn function_of_a_closed_request_is_logged() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let _logged = tracing::subscriber::set_default(log);
    tracing::callsite::rebuild_interest_cache();
    let router = router(&Metrics::default());
    let response = send_review(&router, "/mutate--v1-pod?timeout=10s", "application/json", pod_review());
    assert!(tokio::time::timeout(Duration::from_secs(1), response).await.is_err());
    let logged = String::from_utf8(lines.0.lock().clone()).unwrap();
    let expected =
        ["request ended without a response", "while `hangs` (tests/webhooks/protocol.rs:", "for Pod default/web ran"];
    assert!(expected.iter().all(|text| logged.contains(text)), "{logged}");
}

#[tokio::test]
async fn panic_is_logged_with_its_object() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let _logged = tracing::subscriber::set_default(log);
    tracing::callsite::rebuild_interest_cache();
    send_review(&router(&Metrics::default()), "/validate--v1-pod", "application/json", pod_review()).await;
    let logged = String::from_utf8(lines.0.lock().clone()).unwrap();
    assert!(logged.contains("panic in `panics` (") && logged.contains("object=\"Pod default/web\""), "{logged}");
}

#[tokio::test]
async fn value_of_unreadable_object_is_not_logged() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let _logged = tracing::subscriber::set_default(log);
    tracing::callsite::rebuild_interest_cache();
    let router = router(&Metrics::default());
    let object = json!({ "apiVersion": "hooks.example.com/v1alpha1", "kind": "Site",
        "metadata": { "name": "web", "namespace": "here" }, "spec": { "host": "a", "size": "s3cret" } });
    let response =
        send_review(&router, "/convert", "application/json", conversion("hooks.example.com/v1", &json!([object])))
            .await;
    let message = response["result"]["message"].as_str().unwrap();
    assert!(message.contains("invalid type: string \"s3cret\""), "the API server gets the reason: {message}");
    let logged = String::from_utf8(lines.0.lock().clone()).unwrap();
    assert!(logged.contains("Site here/web") && logged.contains("can't be read as v1alpha1"), "{logged}");
    assert!(!logged.contains("s3cret"), "{logged}");
}
