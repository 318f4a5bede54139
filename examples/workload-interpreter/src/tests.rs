//! Calls the functions through an interpreter chain, as Karmada's controllers would, with objects in wire format.

use kctl::{
    Json, json,
    karmada::{
        chain::{Chain, LayerKind},
        function::Functions,
        operation::{Inputs, Operation},
    },
};

use super::*;

/// Returns a Workload with a field that the type does not declare. The field must survive every change.
fn workload() -> Json {
    json!({
        "apiVersion": "workload.example.io/v1alpha1",
        "kind": "Workload",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "replicas": 3,
            "fromTheFuture": true,
            "template": { "spec": { "containers": [
                { "name": "a", "envFrom": [{ "configMapRef": { "name": "settings" } }], "x": 1 },
                { "name": "b", "envFrom": [{ "configMapRef": { "name": "other" } }] },
            ]}},
        },
    })
}

fn with(mut object: Json, field: &str, value: Json) -> Json {
    let (parent, name) = field.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[name] = value;
    object
}

fn without_replicas() -> Json {
    let mut object = workload();
    object["spec"].as_object_mut().unwrap().remove("replicas");
    object
}

fn ready(replicas: i32) -> Json {
    with(workload(), "/status", json!({ "readyReplicas": replicas, "unknown": 1 }))
}

fn about(object: Json) -> Inputs {
    Inputs { desired: Some(object), ..Inputs::default() }
}

fn items(statuses: Json) -> Vec<AggregatedStatusItem> {
    kctl::from_json(statuses).unwrap()
}

#[tokio::test]
async fn every_operation_answers() {
    let chain = Chain::default().with(LayerKind::Webhook, Functions::new(app().interpreters().to_vec()).unwrap());
    let paused = with(workload(), "/spec/paused", json!(true));
    let aggregated = items(json!([
        { "clusterName": "a", "status": { "readyReplicas": 1 } },
        { "clusterName": "b", "status": { "readyReplicas": 2 } },
        { "clusterName": "c" },
    ]));
    let config_map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "settings" });
    let cases = [
        (Operation::InterpretReplica, about(workload()), json!({ "replica": 3, "requires": null })),
        (Operation::InterpretReplica, about(without_replicas()), json!({ "replica": 1, "requires": null })),
        (
            Operation::InterpretComponent,
            about(workload()),
            json!({ "components": [{ "name": "main", "replicas": 3 }] }),
        ),
        (
            Operation::ReviseReplica,
            Inputs { replicas: Some(8), ..about(workload()) },
            json!({ "revised": with(workload(), "/spec/replicas", json!(8)) }),
        ),
        (
            Operation::Retain,
            Inputs { observed: Some(paused.clone()), ..about(workload()) },
            json!({ "retained": paused }),
        ),
        (
            Operation::Retain,
            Inputs { observed: Some(workload()), ..about(workload()) },
            json!({ "retained": workload() }),
        ),
        (Operation::InterpretStatus, about(ready(2)), json!({ "status": { "readyReplicas": 2 } })),
        (Operation::InterpretStatus, about(workload()), json!({ "status": { "readyReplicas": 0 } })),
        (
            Operation::AggregateStatus,
            Inputs { status_items: Some(aggregated), ..about(ready(1)) },
            json!({ "aggregatedStatus": ready(3) }),
        ),
        (Operation::InterpretDependency, about(workload()), json!({ "dependencies": [config_map] })),
        (Operation::InterpretHealth, about(ready(3)), json!({ "healthy": true })),
        (Operation::InterpretHealth, about(ready(2)), json!({ "healthy": false })),
        (Operation::InterpretHealth, about(workload()), json!({ "healthy": false })),
    ];
    for (operation, inputs, expected) in cases {
        assert_eq!(chain.interpret_dynamic(operation, &inputs).await.unwrap(), expected, "{operation}");
    }
}

#[test]
fn functions_are_still_functions() {
    let mut typed: Workload = kctl::from_json(workload()).unwrap();
    revise(&mut typed, 5).unwrap();
    assert_eq!(replicas(&typed).unwrap().replicas, 5);
}
