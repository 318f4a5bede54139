//! Throughput and latency of the webhook: an object of 10 KB over HTTPS, on connections that remain
//! open, as Karmada's client keeps them.
//!
//! Client and server share the machine, so that the figures are for both together.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::apps::v1::Deployment;
use kctl_interpreter::{
    function::{FunctionInfo, Rule},
    operation::Operation,
    webhook::{Webhook, WebhookOptions},
};
use kube::{Client, Config, client::Body};
use serde_json::{Value, json};
use tokio::time::Instant;

const N_REQUESTS: usize = 20_000;
/// Requests at a time, each on its own connection.
const N_CLIENTS: usize = 8;

/// A Deployment of 10 KB as JSON.
fn object() -> Value {
    let variable =
        |n: usize| json!({ "name": format!("VARIABLE_{n}"), "value": "a value of some length, as they are" });
    let container = |n: usize| {
        json!({
            "name": format!("container-{n}"),
            "image": "registry.example.com/team/service:1.2.3",
            "env": (0..18).map(variable).collect::<Vec<_>>(),
            "resources": { "requests": { "cpu": "250m", "memory": "256Mi" } },
        })
    };
    let containers: Vec<_> = (0..7).map(container).collect();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": containers } },
        },
    })
}

fn body() -> String {
    let request = json!({
        "uid": "6c4ac0d2-0b5b-4c3a-9c8f-0f2f0e9a9f10", "operation": "ReviseReplica", "replicas": 5,
        "kind": { "group": "apps", "version": "v1", "kind": "Deployment" }, "name": "web", "namespace": "shop", "object": object(),
    });
    let context =
        json!({ "kind": "ResourceInterpreterContext", "apiVersion": "config.karmada.io/v1alpha1", "request": request });
    context.to_string()
}

#[tokio::main]
async fn main() {
    let about = FunctionInfo::new(Operation::ReviseReplica, "revise", file!(), line!());
    let revise = Rule::revise::<Deployment, _, _>(about, |mut object, replicas| async move {
        object.spec.replicas = Some(replicas);
        Ok(object)
    });
    let webhook = Webhook::listen(vec![revise], WebhookOptions::default()).await.expect("a port is free");
    let address = webhook.address();
    let pem = webhook.authority().expect("the certificate is its own").to_owned();
    tokio::spawn(webhook.serve(std::future::pending()));

    let der = STANDARD.decode(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>());
    let body = Arc::new(body());
    println!("a request has {} bytes", body.len());
    let (left, mut tasks) = (Arc::new(AtomicUsize::new(N_REQUESTS)), Vec::new());
    let start = Instant::now();
    for _ in 0..N_CLIENTS {
        let mut config = Config::new(format!("https://{address}").parse().expect("it is a URL"));
        config.root_cert = Some(vec![der.clone().expect("PEM is base64")]);
        config.proxy_url = None;
        let client = Client::try_from(config).expect("the configuration is complete");
        tasks.push(tokio::spawn(ask(client, body.clone(), left.clone())));
    }
    let mut times = Vec::with_capacity(N_REQUESTS);
    for task in tasks {
        times.extend(task.await.expect("a client does not panic"));
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort();
    let at = |percent: usize| times[times.len() * percent / 100 - 1];
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = times.len() as f64 / seconds;
    println!("{rate:.0} requests a second; p50 {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100));
}

/// Asks until nothing is left, and returns how long each answer took.
async fn ask(client: Client, body: Arc<String>, left: Arc<AtomicUsize>) -> Vec<Duration> {
    let mut times = Vec::new();
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let start = Instant::now();
        let request = Request::post("/interpreter-deployment?timeout=3s").header("content-type", "application/json");
        let request = request.body(Body::from(body.as_bytes().to_vec())).expect("the request is whole");
        let response = client.send(request).await.expect("the webhook answers");
        let answer = response.into_body().collect().await.expect("the answer is whole").to_bytes();
        times.push(start.elapsed());
        assert!(answer.windows(7).any(|part| part == b"\"patch\""), "{answer:?}");
    }
    times
}
