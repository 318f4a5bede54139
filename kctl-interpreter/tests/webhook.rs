//! The webhook as Karmada calls it: HTTPS on loopback, with every field of the responses compared.

mod deployments;

use std::{collections::BTreeMap, fs, future::Future, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::apps::v1::Deployment;
use kctl_interpreter::{
    function::{Interpreted, IntoComponents, IntoReplicas, Rule},
    kind::Gvk,
    operation::{Component, Operation, ReplicaRequirements, Replicas},
    webhook::{Certificate, ClientConfig, Configuration, Metrics, Webhook, WebhookOptions},
};
use kube::{Client, Config, client::Body};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use deployments::{RELEASED, about, rules};

/// A running webhook, and a client that trusts it.
struct World {
    client: Client,
    metrics: Metrics,
    stop: oneshot::Sender<()>,
    served: tokio::task::JoinHandle<()>,
}

impl World {
    async fn start(options: WebhookOptions) -> Self {
        Self::with_rules(rules(), options).await
    }

    async fn with_rules(rules: Vec<Rule>, options: WebhookOptions) -> Self {
        let webhook = Webhook::listen(rules, options).await.unwrap();
        let mut config = Config::new(format!("https://{}", webhook.address()).parse().unwrap());
        let authority = webhook.authority().unwrap();
        config.root_cert = Some(pem_to_der(authority));
        config.proxy_url = None;
        let metrics = webhook.metrics();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = webhook.serve(async { drop(stopped.await) });
        let served = tokio::spawn(async { serve.await.unwrap() });
        Self { client: Client::try_from(config).unwrap(), metrics, stop, served }
    }

    async fn send(&self, request: Request<Vec<u8>>) -> (u16, String, Value) {
        let response: Response<_> = self.client.send(request.map(Body::from)).await.unwrap();
        let status = response.status().as_u16();
        let content = response.headers().get("content-type").map(|value| value.to_str().unwrap().to_owned());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        let json = serde_json::from_slice(&body).unwrap_or(Value::String(text));
        (status, content.unwrap_or_default(), json)
    }

    fn ask(&self, body: &Value) -> impl Future<Output = (u16, String, Value)> {
        self.send(request("/interpreter-deployment?timeout=3s", "application/json", body.to_string()))
    }
}

fn pem_to_der(pem: &str) -> Vec<Vec<u8>> {
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    vec![STANDARD.decode(base64).unwrap()]
}

fn request(path: &str, content_type: &str, body: String) -> Request<Vec<u8>> {
    let request = Request::post(path).header("content-type", content_type).header("accept", "application/json, */*");
    request.body(body.into_bytes()).unwrap()
}

fn object(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "d" }, "spec": spec })
}

/// Returns a request as Karmada writes it, which always has `replicas`.
fn context(operation: &str, object: &Value, more: &Value) -> Value {
    let mut request = json!({
        "uid": "6c4ac0d2-0b5b-4c3a-9c8f-0f2f0e9a9f10",
        "kind": { "group": "apps", "version": "v1", "kind": "Deployment" },
        "name": object["metadata"]["name"],
        "namespace": "d",
        "operation": operation,
        "object": object,
        "replicas": 0,
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        request[field] = value.clone();
    }
    json!({ "kind": "ResourceInterpreterContext", "apiVersion": "config.karmada.io/v1alpha1", "request": request })
}

/// Returns the whole response, with the patch as JSON instead of base64.
fn response_of(fields: &Value) -> Value {
    let mut response =
        json!({ "uid": "6c4ac0d2-0b5b-4c3a-9c8f-0f2f0e9a9f10", "successful": true, "status": { "code": 200 } });
    for (field, value) in fields.as_object().into_iter().flatten() {
        response[field] = value.clone();
    }
    json!({ "kind": "ResourceInterpreterContext", "apiVersion": "config.karmada.io/v1alpha1", "response": response })
}

fn with_plain_patch(mut answer: Value) -> Value {
    if let Some(patch) = answer["response"]["patch"].as_str() {
        answer["response"]["patch"] = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
    }
    answer
}

#[tokio::test]
async fn every_operation_is_answered_as_karmada_expects_it() {
    let spec = json!({ "replicas": 2, "unknown": { "a": 1 }, "template": { "x": 1 } });
    let web = object("web", &spec);
    let mut ready = web.clone();
    ready["status"] = json!({ "readyReplicas": 2, "unknown": 1 });
    let mut observed = web.clone();
    observed["spec"]["paused"] = json!(true);
    let items = json!([{ "clusterName": "a", "status": 1 }, { "clusterName": "b", "applied": true }]);
    let patch = |patch: Value| json!({ "patchType": "JSONPatch", "patch": patch });
    let replace = |path: &str, value: Value| json!([{ "op": "replace", "path": path, "value": value }]);
    let add = |path: &str, value: Value| json!([{ "op": "add", "path": path, "value": value }]);
    let requirements = json!({ "resourceRequest": { "cpu": "100m" } });
    let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "d", "name": "web" });
    let cases = [
        ("InterpretReplica", &web, json!({}), json!({ "replicas": 2, "replicaRequirements": requirements })),
        ("InterpretComponent", &web, json!({}), json!({ "components": [{ "name": "main", "replicas": 2 }] })),
        ("ReviseReplica", &web, json!({ "replicas": 5 }), patch(replace("/spec/replicas", json!(5)))),
        ("ReviseReplica", &web, json!({ "replicas": 2 }), json!({})),
        ("Retain", &web, json!({ "observedObject": observed }), patch(add("/spec/paused", json!(true)))),
        ("Retain", &web, json!({ "observedObject": web }), json!({})),
        (
            "AggregateStatus",
            &web,
            json!({ "aggregatedStatus": items }),
            patch(add("/status", json!({ "readyReplicas": 1 }))),
        ),
        (
            "AggregateStatus",
            &ready,
            json!({ "aggregatedStatus": items }),
            patch(replace("/status/readyReplicas", json!(1))),
        ),
        ("AggregateStatus", &ready, json!({}), patch(replace("/status/readyReplicas", json!(0)))),
        ("InterpretStatus", &ready, json!({}), json!({ "rawStatus": 2 })),
        ("InterpretStatus", &web, json!({}), json!({ "rawStatus": {} })),
        ("InterpretDependency", &web, json!({}), json!({ "dependencies": [reference] })),
        ("InterpretDependency", &object("free", &spec), json!({}), json!({})),
        ("InterpretHealth", &web, json!({}), json!({ "healthy": true })),
    ];
    let world = World::start(WebhookOptions::default()).await;
    for (operation, object, more, expected) in cases {
        let (status, content, answer) = world.ask(&context(operation, object, &more)).await;
        assert_eq!((status, content.as_str()), (200, "application/json"), "{operation}");
        assert_eq!(with_plain_patch(answer), response_of(&expected), "{operation}");
    }
}

#[tokio::test]
async fn every_failure_is_answered_200_with_the_uid() {
    let web = object("web", &json!({}));
    let mut other = context("InterpretHealth", &web, &json!({}));
    other["request"]["kind"]["kind"] = json!("StatefulSet");
    let mut without_object = context("InterpretHealth", &web, &json!({}));
    without_object["request"]["object"] = Value::Null;
    let named = |name: &str| context("InterpretHealth", &object(name, &json!({})), &json!({}));
    let cases = [
        (context("Scale", &web, &json!({})), 400, "wrong request operation type: Scale"),
        (context("Prune", &web, &json!({})), 400, "no function for Prune of \"apps/v1, Kind=Deployment\""),
        (other, 400, "no function for InterpretHealth of \"apps/v1, Kind=StatefulSet\""),
        (without_object, 400, "there is no content to decode: no object"),
        (context("Retain", &web, &json!({})), 400, "Retain of Deployment d/web: the observed object is missing"),
        (context("ReviseReplica", &web, &json!({ "replicas": "4" })), 400, "invalid type: string \"4\", expected i32"),
        (
            context("InterpretHealth", &object("web", &json!({ "replicas": "x" })), &json!({})),
            400,
            "the object can't be read as `Deployment`: invalid type: string \"x\"",
        ),
        (named("fails"), 500, "the database is down"),
        (
            named("panics"),
            500,
            "panic in `function` (src/main.rs:7), InterpretHealth of Deployment d/panics: the roof fell in",
        ),
        (context("InterpretStatus", &object("odd", &json!({})), &json!({})), 500, "key must be a string"),
    ];
    let world = World::start(WebhookOptions::default()).await;
    for (body, code, message) in cases {
        let (status, _content, answer) = world.ask(&body).await;
        let response = &answer["response"];
        assert_eq!((status, &response["successful"]), (200, &json!(false)), "{message}");
        assert_eq!(
            (&response["uid"], &response["status"]["code"]),
            (&body["request"]["uid"], &json!(code)),
            "{response}"
        );
        assert!(response["status"]["message"].as_str().unwrap().contains(message), "{message}: {response}");
    }
    assert_eq!(world.ask(&named("web")).await.2["response"]["healthy"], true, "it continues after a panic");
}

#[tokio::test]
async fn quantities_are_canonical_and_invalid_ones_fail() {
    let requirements = |memory: &str| {
        let resource_request = [("memory".to_owned(), memory.to_owned())].into();
        ReplicaRequirements { resource_request, ..ReplicaRequirements::default() }
    };
    let memory_of = |object: &Deployment| object.metadata.name.clone().unwrap_or_default();
    let rules = vec![
        Rule::read::<Deployment, _, _>(about(Operation::InterpretReplica), move |object| async move {
            Replicas { replicas: 1, requirements: Some(requirements(&memory_of(&object))) }.into_result()
        }),
        Rule::read::<Deployment, _, _>(about(Operation::InterpretComponent), move |object| async move {
            let replica_requirements = Some(requirements(&memory_of(&object)));
            vec![Component { name: "main".into(), replicas: 1, replica_requirements }].into_result()
        }),
    ];
    let world = World::with_rules(rules, WebhookOptions::default()).await;
    for (operation, pointer) in [
        ("InterpretReplica", "/response/replicaRequirements/resourceRequest/memory"),
        ("InterpretComponent", "/response/components/0/replicaRequirements/resourceRequest/memory"),
    ] {
        let (_, _, answer) = world.ask(&context(operation, &object("1024Mi", &json!({})), &json!({}))).await;
        assert_eq!(answer.pointer(pointer), Some(&json!("1Gi")), "{answer}");
        let (_, _, answer) = world.ask(&context(operation, &object("half", &json!({})), &json!({}))).await;
        let response = &answer["response"];
        assert_eq!((&response["successful"], &response["status"]["code"]), (&json!(false), &json!(500)), "{response}");
        let message = response["status"]["message"].as_str().unwrap();
        assert!(message.starts_with("invalid answer of `function` (src/main.rs:7), Interpret"), "{message}");
        assert!(message.contains("\"half\" is not a quantity"), "{message}");
    }
}

/// A kind whose objects cannot all be serialized: the keys of a JSON object are strings.
#[derive(Serialize, Deserialize)]
struct Zoned {
    #[serde(default)]
    by_zone: BTreeMap<(i32, i32), i32>,
}

impl Interpreted for Zoned {
    fn gvk() -> Gvk {
        Gvk { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() }
    }
}

#[tokio::test]
async fn unserializable_change_is_the_programs_failure() {
    let revise = Rule::revise(about(Operation::ReviseReplica), |mut object: Zoned, replicas| async move {
        object.by_zone.insert((0, 1), replicas);
        Ok(object)
    });
    let world = World::with_rules(vec![revise], WebhookOptions::default()).await;
    let (_, _, answer) = world.ask(&context("ReviseReplica", &object("web", &json!({})), &json!({}))).await;
    let message = "ReviseReplica of Deployment d/web: the changed object can't be written: key must be a string";
    assert_eq!(answer["response"]["status"], json!({ "code": 500, "message": message }));
}

#[tokio::test]
async fn malformed_requests_are_rejected_with_a_message() {
    let json = "application/json";
    let web = context("InterpretHealth", &object("web", &json!({})), &json!({})).to_string();
    let uid = "6c4ac0d2-0b5b-4c3a-9c8f-0f2f0e9a9f10";
    let cases = [
        (request("/interpreter-deployment", "", web.clone()), uid, "contentType=, expected application/json"),
        (
            request("/interpreter-deployment", "text/plain", web),
            uid,
            "contentType=text/plain, expected application/json",
        ),
        (request("/interpreter-deployment", json, String::new()), "", "there is no content to decode"),
        (request("/interpreter-deployment", json, "{}".into()), "", "there is no content to decode"),
        (request("/interpreter-deployment", json, "{".into()), "", "can't be decoded as a ResourceInterpreterContext"),
        (request("/interpreter-deployment", json, "{\"request\":[]}".into()), "", "invalid type: sequence"),
    ];
    let world = World::start(WebhookOptions::default()).await;
    for (request, uid, message) in cases {
        let (status, _content, answer) = world.send(request).await;
        let response = &answer["response"];
        assert_eq!(
            (status, &response["uid"], &response["status"]["code"]),
            (200, &json!(uid), &json!(400)),
            "{message}"
        );
        assert!(response["status"]["message"].as_str().unwrap().contains(message), "{message}: {response}");
    }
    let (_status, _content, answer) = world.send(request("/interpreter-deployment", json, "- 1".into())).await;
    let message = answer["response"]["status"]["message"].as_str().unwrap();
    assert!(message.ends_with("line 1 column 1: expected mapping start"), "one line, without a picture: {message:?}");
    let (status, _content, text) = world.send(request("/interpreter-pod", json, "{}".into())).await;
    assert_eq!((status, text), (404, json!("no webhook here: the paths are /interpreter-deployment\n")));
    let (status, _content, text) = world.send(Request::get("/readyz").body(Vec::new()).unwrap()).await;
    assert_eq!((status, text), (200, json!("ok")));
}

#[tokio::test]
async fn body_over_limit_returns_code_413_with_uid() {
    let context = context("InterpretHealth", &object("web", &json!({})), &json!({}));
    let (body, uid) = (context.to_string(), &context["request"]["uid"]);
    let mut options = WebhookOptions::default();
    options.body_len_max = body.len();
    let world = World::start(options).await;
    let path = "/interpreter-deployment";
    let (_, _, answer) = world.send(request(path, "application/json; charset=utf-8", body.clone())).await;
    assert_eq!(answer["response"]["healthy"], true);
    for over in [1, 4 << 20] {
        let longer = body.clone() + &" ".repeat(over);
        let (status, _, answer) = world.send(request(path, "application/json", longer)).await;
        let message = format!("the request has more than {} bytes: the webhook reads no larger ones", body.len());
        assert_eq!(status, 200);
        assert_eq!(answer["response"]["status"], json!({ "code": 413, "message": message }));
        assert_eq!(&answer["response"]["uid"], uid, "Karmada reports a missing uid instead of the message");
    }
}

/// Waits until the webhook runs `n` functions.
async fn until_running(metrics: &Metrics, n: usize) {
    let running = async {
        while metrics.n_running() != n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), running).await.expect("the functions run");
}

#[tokio::test]
async fn slow_function_ends_at_the_request_timeout() {
    let world = World::start(WebhookOptions::default()).await;
    let body = context("InterpretHealth", &object("waits", &json!({})), &json!({})).to_string();
    let (_, _, answer) = world.send(request("/interpreter-deployment?timeout=1s", "application/json", body)).await;
    assert_eq!(answer["response"]["uid"], "6c4ac0d2-0b5b-4c3a-9c8f-0f2f0e9a9f10");
    let message =
        "no response within 1s: `function` (src/main.rs:7) for InterpretHealth of Deployment d/waits takes longer";
    assert_eq!(answer["response"]["status"], json!({ "code": 504, "message": message }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocking_functions_time_out_and_delay_no_request() {
    let mut options = WebhookOptions::default();
    options.concurrency_max = 4;
    let world = World::start(options).await;
    // Releases blocked functions after five minutes. Otherwise a test in which all threads are blocked would never fail.
    std::thread::spawn(|| {
        std::thread::park_timeout(Duration::from_secs(300));
        RELEASED.set(())
    });
    let named = |name: &str| context("InterpretHealth", &object(name, &json!({})), &json!({}));
    let ask = |name: &str, within: &str| {
        let path = format!("/interpreter-deployment?timeout={within}");
        world.send(request(&path, "application/json", named(name).to_string()))
    };
    let in_flight = || {
        let (mut registry, mut text) = (Registry::default(), String::new());
        world.metrics.register(&mut registry);
        encode(&mut text, &registry).unwrap();
        let line = text.lines().find(|line| line.starts_with("kctl_webhook_requests_in_flight{")).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let blocked = async { tokio::join!(ask("blocks", "2s"), ask("blocks", "2s"), ask("blocks", "2s")) };
    let meanwhile = async {
        until_running(&world.metrics, 3).await;
        (ask("web", "10s").await, world.send(Request::get("/readyz").body(Vec::new()).unwrap()).await)
    };
    let ((first, second, third), (web, ready)) = tokio::join!(blocked, meanwhile);
    for (_, _, answer) in [first, second, third] {
        let status = &answer["response"]["status"];
        assert_eq!(status["code"], 504);
        let message = status["message"].as_str().unwrap();
        assert!(
            message.starts_with("no response within 2s: `function` (src/main.rs:7) for InterpretHealth"),
            "{message}"
        );
    }
    assert_eq!((&web.2["response"]["healthy"], ready.0), (&json!(true), 200));
    // The functions still run and count towards the limit. A function that blocks forever takes up a slot, but no
    // further memory.
    assert_eq!((in_flight().as_str(), world.metrics.n_running()), ("3", 3));
    let _fourth = ask("blocks", "1s").await;
    let (_, _, answer) = ask("web", "1s").await;
    let message = "no response within 1s: 4 others run, which is the limit";
    assert_eq!(answer["response"]["status"], json!({ "code": 504, "message": message }));
    RELEASED.set(()).expect("answers, although more threads are blocked than there are");
    let (_, _, answer) = ask("web", "10s").await;
    assert_eq!(answer["response"]["healthy"], true, "they have ended");
}

#[tokio::test]
async fn request_may_be_yaml_as_for_karmadas_server() {
    let world = World::start(WebhookOptions::default()).await;
    let yaml = "request:\n  uid: u\n  operation: InterpretHealth\n  kind: {group: apps, version: v1, kind: Deployment}\n  \
                object: {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {}}\n";
    let (_, _, answer) = world.send(request("/interpreter-deployment", "application/json", yaml.into())).await;
    assert_eq!((&answer["response"]["uid"], &answer["response"]["healthy"]), (&json!("u"), &json!(true)), "{answer}");
}

#[tokio::test]
async fn metrics_labels_come_from_functions_not_clients() {
    let world = World::start(WebhookOptions::default()).await;
    let named = |name: &str| context("InterpretHealth", &object(name, &json!({})), &json!({}));
    let late = request("/interpreter-deployment?timeout=1s", "application/json", named("waits").to_string());
    let naps = named("naps");
    let text = || {
        let mut registry = Registry::default();
        world.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    let of = "kind=\"apps/v1, Kind=Deployment\",operation=\"InterpretHealth\"";
    let (_, running) = tokio::join!(world.ask(&naps), async {
        until_running(&world.metrics, 1).await;
        text()
    });
    let in_flight = format!("kctl_webhook_requests_in_flight{{{of}}} ");
    assert!(running.contains(&format!("{in_flight}1\n")), "{running}");
    world.ask(&named("web")).await;
    world.ask(&named("fails")).await;
    world.send(late).await;
    world.ask(&context("Evil", &object("web", &json!({})), &json!({}))).await;
    world.send(request("/interpreter-deployment", "text/plain", String::new())).await;
    let text = text();
    for line in [
        &format!("kctl_webhook_requests_total{{{of},code=\"200\"}} 2\n"),
        &format!("kctl_webhook_requests_total{{{of},code=\"500\"}} 1\n"),
        &format!("kctl_webhook_requests_total{{{of},code=\"504\"}} 1\n"),
        "kctl_webhook_requests_total{kind=\"\",operation=\"\",code=\"400\"} 2\n",
        &format!("kctl_webhook_request_seconds_count{{{of}}} 4\n"),
        &format!("{in_flight}0\n"),
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert!(!text.contains("Evil"), "{text}");
}

#[tokio::test]
async fn requests_over_concurrency_limit_are_queued() {
    let mut options = WebhookOptions::default();
    options.concurrency_max = 1;
    let world = World::start(options).await;
    let naps = context("InterpretHealth", &object("naps", &json!({})), &json!({}));
    let started = tokio::time::Instant::now();
    let (first, second) = tokio::join!(world.ask(&naps), world.ask(&naps));
    assert_eq!((&first.2["response"]["healthy"], &second.2["response"]["healthy"]), (&json!(true), &json!(true)));
    assert!(started.elapsed() >= Duration::from_millis(600), "{:?}", started.elapsed());
}

#[tokio::test]
async fn request_that_waited_too_long_is_counted() {
    let mut options = WebhookOptions::default();
    options.concurrency_max = 1;
    let world = World::start(options).await;
    let waits = context("InterpretHealth", &object("waits", &json!({})), &json!({})).to_string();
    let send = |within: &str| {
        let path = format!("/interpreter-deployment?timeout={within}");
        world.send(request(&path, "application/json", waits.clone()))
    };
    let (_, (_, _, answer)) = tokio::join!(send("3s"), async {
        until_running(&world.metrics, 1).await;
        send("1s").await
    });
    assert_eq!(answer["response"]["uid"], "6c4ac0d2-0b5b-4c3a-9c8f-0f2f0e9a9f10");
    let message = "no response within 1s: 1 others run, which is the limit";
    assert_eq!(answer["response"]["status"], json!({ "code": 504, "message": message }));
    let (mut registry, mut text) = (Registry::default(), String::new());
    world.metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    let line = "kctl_webhook_requests_total{kind=\"\",operation=\"\",code=\"504\"} 1\n";
    assert!(text.contains(line), "{line}{text}");
}

#[tokio::test]
async fn running_requests_finish_after_a_stop() {
    let world = World::start(WebhookOptions::default()).await;
    let naps = context("InterpretHealth", &object("naps", &json!({})), &json!({}));
    let (client, stop, served) = (world.client.clone(), world.stop, world.served);
    let rest = World { client, metrics: world.metrics, stop: oneshot::channel().0, served: tokio::spawn(async {}) };
    let (answer, ()) = tokio::join!(rest.ask(&naps), async {
        until_running(&rest.metrics, 1).await;
        stop.send(()).unwrap();
    });
    assert_eq!(answer.2["response"]["healthy"], true);
    served.await.unwrap();
    assert!(rest.client.send(request("/readyz", "", String::new()).map(Body::from)).await.is_err());
}

#[tokio::test]
async fn certificate_files_are_used_and_broken_ones_named() {
    let folder = std::env::temp_dir().join(format!("kctl-webhook-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let options = || {
        let mut options = WebhookOptions::default();
        options.certificate = Certificate::in_folder(&folder);
        options
    };
    let error = Webhook::listen(rules(), options()).await.err().unwrap().to_string();
    assert!(error.starts_with("certificate file ") && error.ends_with("tls.crt can't be read"), "{error}");

    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    fs::write(folder.join("ca.crt"), made.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), "no key").unwrap();
    let error = Webhook::listen(rules(), options()).await.err().unwrap().to_string();
    assert!(error.contains("is not a certificate in PEM with its key in"), "{error}");

    fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let world = World::start(options()).await;
    let web = context("InterpretHealth", &object("web", &json!({})), &json!({}));
    assert_eq!(world.ask(&web).await.2["response"]["healthy"], true);
    fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn webhook_configuration_fits_the_functions() {
    let client = ClientConfig::Url("https://127.0.0.1:9443".into());
    let configuration = Configuration { name: "app", client, authority: Some("PEM"), timeout_seconds: 10 };
    let object = configuration.object(&rules()).unwrap();
    let operations = [
        "InterpretReplica",
        "InterpretComponent",
        "ReviseReplica",
        "Retain",
        "InterpretStatus",
        "AggregateStatus",
        "InterpretDependency",
        "InterpretHealth",
    ];
    assert_eq!(
        object,
        json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": { "name": "app" },
            "webhooks": [{
                "name": "deployment.apps",
                "clientConfig": { "url": "https://127.0.0.1:9443/interpreter-deployment", "caBundle": STANDARD.encode("PEM") },
                "rules": [{
                    "operations": operations, "apiGroups": ["apps"], "apiVersions": ["v1"], "kinds": ["Deployment"],
                }],
                "timeoutSeconds": 10,
                "interpreterContextVersions": ["v1alpha1"],
            }],
        })
    );
    let service = ClientConfig::Service { namespace: "n".into(), name: "Not_A_Name".into(), port: 0 };
    let wrong = Configuration { name: "app", client: service, authority: None, timeout_seconds: 31 };
    assert_eq!(wrong.object(&rules()).unwrap_err().problems.len(), 2, "the port and the timeout");
}

#[tokio::test]
async fn function_for_prune_is_not_served() {
    let prune = Rule::change::<Deployment, _, _>(about(Operation::Prune), |object| async move { Ok(object) });
    let error = Webhook::listen(vec![prune], WebhookOptions::default()).await.err().unwrap().to_string();
    assert!(
        error.starts_with("`function` (src/main.rs:7) can't be served: Karmada asks no webhook for Prune"),
        "{error}"
    );
}
