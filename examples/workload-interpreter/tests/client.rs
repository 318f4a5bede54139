//! Runs the example as a program and calls it as Karmada does. Every operation succeeds, and every error reaches the
//! client.
//!
//! The requests and responses are those that Karmada's own client exchanged with the example. The client here is
//! kctl's, whose requests `kctl-interpreter/tests/webhook_client.rs` compares with Karmada's.

#[expect(dead_code, reason = "other tests of this folder use the rest")]
mod program;

use std::{error::Error, path::Path};

use kctl::{Json, json};
use kctl_interpreter::{
    chain::{Chain, LayerKind},
    operation::{
        AggregateStatus, AggregatedStatusItem, Aggregation, InterpretComponent, InterpretDependency, InterpretHealth,
        InterpretReplica, InterpretStatus, Object, Retain, Retention, ReviseReplica, Revision,
    },
    webhook_client::Webhooks,
};

fn workload() -> Json {
    json!({
        "apiVersion": "workload.example.io/v1alpha1",
        "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default", "generation": 1 },
        "spec": {
            "replicas": 4,
            "unknown": { "kept": [] },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "a",
                    "image": "a",
                    "envFrom": [{ "configMapRef": { "name": "settings" } }],
                    "resources": {},
                }] },
            },
        },
        "status": { "readyReplicas": 4 },
    })
}

/// Returns the workload with another value at a JSON pointer.
fn with(pointer: &str, value: Json) -> Json {
    let mut workload = workload();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    workload.pointer_mut(parent).unwrap()[name] = value;
    workload
}

fn web() -> Object {
    Object(workload())
}

fn status_item(cluster: &str, status: Option<Json>) -> AggregatedStatusItem {
    AggregatedStatusItem { cluster_name: cluster.into(), status, ..AggregatedStatusItem::default() }
}

#[tokio::test]
async fn webhook_client_gets_an_answer_to_every_operation() {
    let _running =
        program::Example::start(Path::new(env!("CARGO_BIN_EXE_workload-interpreter")), "client", &["run"]).await;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stop-client.yaml");
    let configuration = kctl::from_yaml::<Json>(&std::fs::read_to_string(file).unwrap()).unwrap();
    let hooks = Webhooks::new([&configuration], |_namespace: &str, _name: &str| None).unwrap();
    let chain = Chain::default().with(LayerKind::Webhook, hooks);

    assert_eq!(chain.interpret::<InterpretReplica>(web()).await.unwrap().replicas, 4);
    let components = chain.interpret::<InterpretComponent>(web()).await.unwrap().unwrap();
    assert_eq!(components.len(), 1);
    assert_eq!((components[0].name.as_str(), components[0].replicas), ("main", 4));
    for replicas in [2, 4] {
        let revision = Revision { object: workload(), replicas };
        let revised = chain.interpret::<ReviseReplica>(revision).await.unwrap();
        assert_eq!(revised, with("/spec/replicas", json!(replicas)));
    }
    let observed = with("/spec/paused", json!(true));
    let retention = Retention { desired: workload(), observed: observed.clone() };
    assert_eq!(chain.interpret::<Retain>(retention).await.unwrap(), observed);
    let items = vec![
        status_item("a", Some(json!({ "readyReplicas": 1 }))),
        status_item("b", None),
        status_item("c", Some(json!({ "readyReplicas": 2 }))),
    ];
    let aggregation = Aggregation { object: workload(), items };
    let aggregated = chain.interpret::<AggregateStatus>(aggregation).await.unwrap();
    assert_eq!(aggregated, with("/status/readyReplicas", json!(3)));
    assert_eq!(chain.interpret::<InterpretStatus>(web()).await.unwrap(), json!({ "readyReplicas": 4 }));
    assert!(chain.interpret::<InterpretHealth>(web()).await.unwrap());
    let dependencies = chain.interpret::<InterpretDependency>(web()).await.unwrap().unwrap();
    let names: Vec<_> =
        dependencies.iter().map(|on| (on.kind.as_str(), on.namespace.as_str(), on.name.as_str())).collect();
    assert_eq!(names, [("ConfigMap", "default", "settings")]);

    let wrong = Object(with("/spec", json!({ "replicas": "many" })));
    let error = chain.interpret::<InterpretHealth>(wrong).await.unwrap_err();
    let text = error.source().unwrap().to_string();
    assert!(text.contains("webhook call failed, get status code"), "{text}");
}
