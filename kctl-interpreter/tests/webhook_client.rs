//! The webhook layer: calls to our own webhook, and to servers that violate the protocol.

mod deployments;

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kctl_interpreter::{
    chain::{Chain, ChainError, Layer, LayerKind},
    kind::Gvk,
    operation::{
        AggregateStatus, AggregatedStatusItem, Aggregation, InterpretComponent, InterpretDependency, InterpretHealth,
        InterpretReplica, InterpretStatus, Object, Operation, Retain, Retention, ReviseReplica, Revision,
    },
    webhook::{Certificate, ClientConfig, Configuration, Webhook, WebhookOptions},
    webhook_client::Webhooks,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedSender, unbounded_channel},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer},
};

use deployments::{dependency, rules};

fn object(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "d" },
        "spec": { "replicas": 2, "unknown": [{}] },
    })
}

fn no_services(_namespace: &str, _name: &str) -> Option<Value> {
    None
}

/// Starts our own webhook, which serves until the test ends. Returns its configuration.
async fn webhook(client: impl FnOnce(&Webhook) -> ClientConfig, names: &[&str]) -> Value {
    let mut options = WebhookOptions::default();
    options.certificate = Certificate::SelfSigned(names.iter().map(|name| (*name).to_owned()).collect());
    let webhook = Webhook::listen(rules(), options).await.unwrap();
    let client = client(&webhook);
    let configuration = Configuration { name: "ours", client, authority: webhook.authority(), timeout_seconds: 3 };
    let object = configuration.object(&rules()).unwrap();
    tokio::spawn(webhook.serve(std::future::pending()));
    object
}

fn url(webhook: &Webhook) -> ClientConfig {
    ClientConfig::Url(format!("https://{}", webhook.address()))
}

#[tokio::test]
async fn every_operation_round_trips_typed_through_a_webhook() {
    let configuration = webhook(url, &["127.0.0.1"]).await;
    let chain = Chain::default().with(LayerKind::Webhook, Webhooks::new([&configuration], no_services).unwrap());
    let web = || Object(object("web"));
    let mut revised = object("web");
    revised["spec"]["replicas"] = json!(5);
    let mut observed = object("web");
    observed["spec"]["paused"] = json!(true);
    let mut ready = object("web");
    ready["status"] = json!({ "readyReplicas": 3 });

    let replicas = chain.interpret::<InterpretReplica>(web()).await.unwrap();
    let requested = replicas.requirements.map(|requirements| requirements.resource_request["cpu"].clone());
    assert_eq!((replicas.replicas, requested.as_deref()), (2, Some("100m")));
    let components = chain.interpret::<InterpretComponent>(web()).await.unwrap().unwrap();
    assert_eq!((components[0].name.as_str(), components[0].replicas), ("main", 2));
    let input = Revision { object: object("web"), replicas: 5 };
    assert_eq!(chain.interpret::<ReviseReplica>(input).await.unwrap(), revised);
    let input = Retention { desired: object("web"), observed: observed.clone() };
    assert_eq!(chain.interpret::<Retain>(input).await.unwrap(), observed);
    let input = Retention { desired: object("web"), observed: object("web") };
    assert_eq!(chain.interpret::<Retain>(input).await.unwrap(), object("web"), "no patch means no change");
    let item = |n: Option<i32>| AggregatedStatusItem { status: n.map(Value::from), ..AggregatedStatusItem::default() };
    let input = Aggregation { object: object("web"), items: vec![item(Some(1)), item(None), item(Some(2))] };
    assert_eq!(chain.interpret::<AggregateStatus>(input).await.unwrap(), ready);
    assert_eq!(chain.interpret::<InterpretStatus>(Object(ready)).await.unwrap(), json!(3));
    assert_eq!(chain.interpret::<InterpretDependency>(web()).await.unwrap(), Some(vec![dependency("web")]));
    assert!(chain.interpret::<InterpretHealth>(web()).await.unwrap());

    let error = chain.interpret::<InterpretHealth>(Object(object("fails"))).await.unwrap_err();
    let expected = "Internal error occurred: failed calling webhook \"ours/deployment.apps\": webhook call failed, get status \
                    code: 500, msg: the database is down";
    assert_eq!(error.source().unwrap().to_string(), expected);
}

#[tokio::test]
async fn service_address_is_dialed_and_its_name_verified() {
    let of = |name: &'static str| {
        move |webhook: &Webhook| ClientConfig::Service {
            namespace: "system".into(),
            name: name.into(),
            port: webhook.address().port(),
        }
    };
    let local = |_namespace: &str, name: &str| match name {
        "hooks" | "others" => Some(json!({ "spec": { "type": "ExternalName", "externalName": "127.0.0.1" } })),
        _ => Some(json!({ "spec": { "type": "ClusterIP", "clusterIP": "None" } })),
    };
    let cases = [
        ("hooks", Ok(true)),
        // The certificate is for another host name.
        ("others", Err("failed to call webhook: Post \"https://others.system.svc:")),
        ("headless", Err("failed to call webhook: cannot route to service with ClusterIP \"None\"")),
    ];
    for (name, expected) in cases {
        let configuration = webhook(of(name), &["hooks.system.svc"]).await;
        let chain = Chain::default().with(LayerKind::Webhook, Webhooks::new([&configuration], local).unwrap());
        match (chain.interpret::<InterpretHealth>(Object(object("web"))).await, expected) {
            (Ok(healthy), Ok(expected)) => assert_eq!(healthy, expected),
            (Err(error), Err(expected)) => {
                let text = error.source().unwrap().to_string();
                assert!(text.contains(expected), "{name}: {text}");
            }
            (answer, expected) => panic!("{name}: {answer:?}, not {expected:?}"),
        }
    }
}

/// The reaction of a hostile server to each connection.
#[derive(Clone)]
enum Deed {
    /// Writes this response, with `UID` replaced by the uid of the request.
    Respond(String),
    /// Writes the head and then an endless body.
    Flood,
    /// Writes the head and a part of the body, and then stalls.
    Stall,
    /// Never responds.
    Wait,
    /// Writes the next of these responses to each connection, and repeats the last one. Sends a line for each request to
    /// the channel: its first line, its content type or `-`, and whether a body follows.
    Each(Vec<String>, UnboundedSender<String>),
    /// Closes the connection without a response.
    HangUp,
}

/// Returns `true` if the request is complete. A request with a body is complete at the end of the body.
fn is_request(read: &[u8]) -> bool {
    read.ends_with(b"}\n") || read.starts_with(b"GET ") && read.ends_with(b"\r\n\r\n")
}

/// Starts a hostile server. Returns its port and its CA certificate in base64.
async fn hostile(deed: Deed) -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let authority = STANDARD.encode(made.cert.pem());
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut n_answered = 0;
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut read = vec![0; 64 << 10];
            let mut n_read = 0;
            while !is_request(&read[..n_read]) {
                match stream.read(&mut read[n_read..]).await {
                    Ok(n) if n > 0 => n_read += n,
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&read[..n_read]).into_owned();
            let uid = request.split("\"uid\":\"").nth(1).and_then(|rest| rest.split('"').next());
            // A placeholder of the same length, because the request has no uid.
            let uid = uid.unwrap_or("00000000-0000-0000-0000-000000000000");
            let written = match &deed {
                Deed::Respond(answer) => stream.write_all(answer.replace("UID", uid).as_bytes()).await,
                Deed::Flood => {
                    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
                    let mut written = stream.write_all(head.as_bytes()).await;
                    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
                    while written.is_ok() {
                        written = stream.write_all(chunk.as_bytes()).await;
                    }
                    written
                }
                Deed::Stall => {
                    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"response\":";
                    let _written = stream.write_all(head.as_bytes()).await;
                    std::future::pending().await
                }
                Deed::Each(answers, requests) => {
                    let lines: Vec<&str> = request.lines().collect();
                    let kind = lines.iter().find(|line| line.starts_with("content-type")).map_or("-", |line| line);
                    let _sent = requests.send(format!("{} {kind} {}", lines[0], request.ends_with("}\n")));
                    let answer = &answers[n_answered.min(answers.len() - 1)];
                    n_answered += 1;
                    stream.write_all(answer.replace("UID", uid).as_bytes()).await
                }
                Deed::Wait => {
                    std::future::pending::<()>().await;
                    Ok(())
                }
                Deed::HangUp => Ok(()),
            };
            drop(written);
            drop(stream.shutdown().await);
        }
    });
    (port, authority)
}

fn configuration(name: &str, client: &Value, operations: &[&str], timeout: u32) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": { "name": name },
        "webhooks": [{
            "name": "w.example.com", "clientConfig": client, "timeoutSeconds": timeout,
            "rules": [{ "operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"] }],
            "interpreterContextVersions": ["v1alpha1"],
        }],
    })
}

async fn call_webhook(configuration: &Value, operation: Operation) -> Result<Value, String> {
    let chain = Chain::default().with(LayerKind::Webhook, Webhooks::new([configuration], no_services).unwrap());
    let input = Revision { object: object("web"), replicas: 5 };
    let answered =
        tokio::time::timeout(Duration::from_secs(20), chain.interpret_dynamic(operation, &input.into())).await;
    answered.expect("no server holds a call back for longer than its timeout").map_err(|error| match error {
        ChainError::LayerFailed { source, .. } => source.to_string(),
        other => other.to_string(),
    })
}

fn http(status: &str, headers: &str, body: &str) -> Deed {
    Deed::Respond(format!(
        "HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len() + body.matches("UID").count() * (36 - "UID".len())
    ))
}

/// Checks that a call to each of these servers fails with its expected error.
async fn each_is_one_error(cases: impl IntoIterator<Item = (Deed, &'static str)>) {
    let call = "Internal error occurred: failed calling webhook \"hostile/w.example.com\": ";
    for (deed, expected) in cases {
        // A flood is read up to the size limit, which takes longer than a second on a loaded machine.
        let timeout = if matches!(deed, Deed::Flood) { 15 } else { 1 };
        let (port, authority) = hostile(deed).await;
        let client = json!({ "url": format!("https://127.0.0.1:{port}/hook"), "caBundle": authority });
        let configuration = configuration("hostile", &client, &["*"], timeout);
        let error = call_webhook(&configuration, Operation::ReviseReplica).await.unwrap_err();
        let expected = expected.replace("PORT", &port.to_string());
        assert!(error.contains(&expected), "{expected}: {error}");
        assert!(error.starts_with(call) || error.starts_with("replace operation"), "{error}");
    }
}

#[tokio::test]
async fn each_server_fault_returns_error_with_reason() {
    let ok = |body: &str| http("200 OK", "content-type: application/json\r\n", body);
    let patch = STANDARD.encode(r#"[{"op":"replace","path":"/a/b","value":1}]"#);
    let cases = [
        (
            ok(r#"{"response":{"uid":"other","successful":true}}"#),
            "received invalid webhook response: expected response.uid \"",
        ),
        (
            ok(&format!(
                r#"{{"response":{{"uid":"UID","successful":true,"patch":"{patch}","patchType":"JSONPatch"}}}}"#
            )),
            "replace operation on \"/a/b\": path is invalid",
        ),
        (
            ok(r#"{"response":{"uid":"UID","successful":true,"patchType":"JSONPatch"}}"#),
            "received invalid webhook response: webhook returned empty response.patch",
        ),
        (ok("<html>"), "failed to call webhook: the answer is not a ResourceInterpreterContext in JSON or YAML"),
        (ok("{"), "failed to call webhook: the answer is not a ResourceInterpreterContext: EOF"),
        (http("204 No Content", "", ""), "failed to call webhook: the webhook answered 204 No Content without a body"),
        (http("200 OK", "", ""), "failed to call webhook: the webhook answered 200 OK without a body"),
        (
            http("500 Internal Server Error", "", "out of order"),
            "failed to call webhook: the webhook answered 500 Internal Server Error: \"out of order\"",
        ),
        (http("404 Not Found", "", ""), "failed to call webhook: the webhook answered 404 Not Found without a body"),
        (Deed::Flood, "the response has more than 8388608 bytes"),
        (Deed::Wait, "?timeout=1s\": context deadline exceeded"),
        (Deed::HangUp, "/hook?timeout=1s\": "),
        (Deed::Respond("SSH-2.0\r\n".into()), "/hook?timeout=1s\": "),
    ];
    each_is_one_error(cases).await;
}

#[tokio::test]
async fn rejected_responses_are_described_in_the_error() {
    let cases = [
        (
            http("307 Temporary Redirect", "location: http://127.0.0.1/hook\r\n", ""),
            "failed to call webhook: Post \"http://127.0.0.1/hook\": the webhook redirects to http, where anybody on the way reads",
        ),
        (
            http("308 Permanent Redirect", "location: /hook\r\n", ""),
            "failed to call webhook: Post \"https://127.0.0.1:PORT/hook\": stopped after 10 redirects",
        ),
        (http("302 Found", "", "elsewhere"), "failed to call webhook: the webhook answered 302 Found: \"elsewhere\""),
        (
            http("200 OK", "content-type: application/\r\n", "{}"),
            "failed to call webhook: the webhook answered 200 OK with the invalid media type \"application/\"",
        ),
        (
            http("429 Too Many Requests", "retry-after: 60\r\n", ""),
            "failed to call webhook: Post \"https://127.0.0.1:PORT/hook?timeout=1s\": context deadline exceeded",
        ),
        (
            Deed::Respond("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".into()),
            "failed to call webhook: failed to read the response: ",
        ),
        (Deed::Stall, "failed to call webhook: failed to read the response: context deadline exceeded"),
    ];
    each_is_one_error(cases).await;
}

/// Calls a server that answers with these responses in order. Returns the result and the requests that it received.
async fn call_with_responses(answers: &[Deed]) -> (Result<Value, String>, Vec<String>) {
    let (sender, mut received_lines) = unbounded_channel();
    let answers = answers.iter().map(|deed| if let Deed::Respond(text) = deed { text.clone() } else { String::new() });
    let (port, authority) = hostile(Deed::Each(answers.collect(), sender)).await;
    let client = json!({ "url": format!("https://127.0.0.1:{port}/hook"), "caBundle": authority });
    let answer = call_webhook(&configuration("moves", &client, &["*"], 15), Operation::InterpretHealth).await;
    let mut lines = Vec::new();
    while let Ok(line) = received_lines.try_recv() {
        lines.push(line);
    }
    (answer, lines)
}

fn healthy() -> Deed {
    http("200 OK", "content-type: text/html\r\n", r#"{"response":{"uid":"UID","successful":true,"healthy":true}}"#)
}

/// The expected results were measured with `k8s.io/apiserver/pkg/util/webhook` 0.36.3. Karmada's client uses the same
/// client-go.
#[tokio::test]
async fn redirects_and_retry_after_match_client_go() {
    let post = |path: &str| format!("POST {path} HTTP/1.1 content-type: application/json true");
    let first = post("/hook?timeout=15s");
    for (status, location) in [("307 Temporary Redirect", "/new?a=b"), ("308 Permanent Redirect", "new?a=b")] {
        let moved = http(status, &format!("location: {location}\r\n"), "");
        let (answer, lines) = call_with_responses(&[moved, healthy()]).await;
        assert_eq!(answer.unwrap(), json!({ "healthy": true }));
        assert_eq!(lines, [first.clone(), post("/new?a=b")]);
    }
    for status in ["301 Moved Permanently", "302 Found", "303 See Other"] {
        let (answer, lines) = call_with_responses(&[http(status, "location: /new\r\n", ""), healthy()]).await;
        // The redirected request is a GET without a body, so the server does not know the uid.
        let error = answer.unwrap_err();
        assert!(error.contains("received invalid webhook response: expected response.uid "), "{error}");
        assert_eq!(lines, [first.clone(), "GET /new HTTP/1.1 - false".into()]);
    }
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let (answer, lines) = call_with_responses(&[http(status, "retry-after: 0\r\n", "later"), healthy()]).await;
        assert_eq!(answer.unwrap(), json!({ "healthy": true }));
        assert_eq!(lines, [first.clone(), first.clone()]);
    }
    let (answer, lines) = call_with_responses(&[http("503 Service Unavailable", "retry-after: 0\r\n", "never")]).await;
    let error = answer.unwrap_err();
    assert!(error.ends_with("the webhook answered 503 Service Unavailable: \"never\""), "{error}");
    assert_eq!(lines.len(), 11, "once, and ten times more");
    let (answer, lines) = call_with_responses(&[http("503 Service Unavailable", "", "now"), healthy()]).await;
    assert!(answer.is_err() && lines.len() == 1, "without `retry-after` there is one request: {lines:?}");
}

#[tokio::test]
async fn only_the_configured_authority_is_trusted() {
    let (port, authority) = hostile(http("200 OK", "", "{}")).await;
    let other = STANDARD.encode(rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem());
    let url = format!("https://127.0.0.1:{port}/hook");
    let by_name = format!("https://localhost:{port}/hook");
    let cases = [
        (json!({ "url": url, "caBundle": other }), "invalid peer certificate: "),
        (json!({ "url": url }), "invalid peer certificate: UnknownIssuer"),
        (json!({ "url": by_name, "caBundle": authority }), "certificate not valid for name \"localhost\""),
        (json!({ "url": url, "caBundle": "?" }), "could not get REST client: caBundle: it is not base64"),
        (
            json!({ "url": url, "caBundle": STANDARD.encode("text") }),
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block",
        ),
        (json!({ "url": "http://127.0.0.1:1/hook", "caBundle": authority }), "must begin with https:// and a host"),
        (json!({}), "could not get REST client: webhook configuration must have either service or URL"),
        (json!({ "url": "https://127.0.0.1:1/hook", "caBundle": authority }), "Connection refused"),
    ];
    for (client, expected) in cases {
        let error = call_webhook(&configuration("a", &client, &["*"], 3), Operation::ReviseReplica).await.unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn first_matching_webhook_is_called_except_for_prune() {
    let healthy = |yes: bool| {
        let body = format!(r#"{{"response":{{"uid":"UID","successful":true,"healthy":{yes}}}}}"#);
        http("200 OK", "", &body)
    };
    let mut configurations = Vec::new();
    for (name, operations, deed) in
        [("b", ["*"], healthy(false)), ("a", ["InterpretHealth"], healthy(true)), ("0", ["Retain"], Deed::HangUp)]
    {
        let (port, authority) = hostile(deed).await;
        let client = json!({ "url": format!("https://127.0.0.1:{port}/"), "caBundle": authority });
        configurations.push(configuration(name, &client, &operations, 3));
    }
    let hooks = Webhooks::new(&configurations, no_services).unwrap();
    let chain = Chain::native().with(LayerKind::Webhook, hooks);
    assert!(chain.interpret::<InterpretHealth>(Object(object("web"))).await.unwrap());
    let pruned = chain.interpret_dynamic(Operation::Prune, &Object(object("web")).into()).await.unwrap();
    assert_eq!(pruned, json!({ "pruned": object("web") }));
}

/// Starts a TCP proxy to a webhook. Returns its port and the counter of its connections.
async fn counting(to: &str) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, n_connections, to) = (listener.local_addr().unwrap().port(), Arc::default(), to.to_owned());
    let count: Arc<AtomicUsize> = Arc::clone(&n_connections);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let mut webhook = TcpStream::connect(&to).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut socket, &mut webhook).await });
        }
    });
    (port, n_connections)
}

#[tokio::test]
async fn only_an_address_change_costs_a_new_connection() {
    let mut ours = webhook(url, &["127.0.0.1"]).await;
    let address = ours["webhooks"][0]["clientConfig"]["url"].as_str().unwrap().trim_start_matches("https://");
    let (host, path) = address.split_once('/').unwrap();
    let (port, n_connections) = counting(host).await;
    ours["webhooks"][0]["clientConfig"]["url"] = json!(format!("https://127.0.0.1:{port}/{path}"));
    let changed = |field: &str, to: Value| {
        let mut ours = ours.clone();
        ours["webhooks"][0][field] = to;
        ours
    };
    let mut other = changed("rules", json!([]));
    other["metadata"]["name"] = json!("other");
    let rules = json!([{ "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"] }]);
    let broken = json!({ "metadata": { "name": "broken" } });
    let cases = [
        ("the first call", vec![ours.clone()], 0, 1),
        ("another configuration", vec![ours.clone(), other.clone()], 0, 1),
        ("one that is broken", vec![ours.clone(), broken], 1, 1),
        ("other rules", vec![changed("rules", rules)], 0, 1),
        ("another timeout, which is in the address", vec![changed("timeoutSeconds", json!(9))], 0, 2),
        ("as it was", vec![ours.clone()], 0, 3),
    ];
    let mut hooks = Arc::new(Webhooks::new([], no_services).unwrap());
    for (case, configurations, n_malformed, expected) in cases {
        let (followed, malformed) = hooks.followed_by(&configurations);
        assert_eq!(malformed.len(), n_malformed, "{case}");
        hooks = Arc::new(followed);
        for _ in 0..3 {
            let inputs = Object(object("web")).into();
            assert!(hooks.handles(Operation::InterpretHealth, &kind()), "{case}");
            hooks.interpret(Operation::InterpretHealth, &inputs).await.unwrap();
        }
        assert_eq!(n_connections.load(Ordering::Relaxed), expected, "{case}");
    }
}

fn kind() -> Gvk {
    Gvk { group: "apps".into(), version: "v1".into(), kind: "Deployment".into() }
}
