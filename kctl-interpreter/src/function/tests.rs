//! Tests of functions that are registered without the macro: their inputs and answers.

use std::error::Error as _;

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::*;
use crate::{
    chain::{Chain, LayerKind},
    operation::{
        AggregateStatus, AggregatedStatusItem, Aggregation, InterpretHealth, InterpretReplica, Object, Retain,
        Retention, ReviseReplica, Revision,
    },
};

fn about(operation: Operation, name: &'static str) -> FunctionInfo {
    FunctionInfo::new(operation, name, "src/main.rs", 7)
}

fn rules() -> Vec<Rule> {
    vec![
        Rule::read::<Deployment, _, _>(about(Operation::InterpretReplica, "replicas"), |object| async move {
            IntoReplicas::into_result(object.spec.replicas.unwrap_or(1))
        }),
        Rule::revise::<Deployment, _, _>(
            about(Operation::ReviseReplica, "revise"),
            |mut object, replicas| async move {
                object.spec.replicas = Some(replicas);
                Ok(object)
            },
        ),
        Rule::retain::<Deployment, _, _>(about(Operation::Retain, "retain"), |mut object, observed| async move {
            object.spec.paused = observed.spec.paused;
            Ok(object)
        }),
        Rule::aggregate::<Deployment, ClusterStatus<i32>, _, _>(
            about(Operation::AggregateStatus, "aggregate"),
            |mut object, items| async move {
                let sum = items.iter().filter_map(|item| item.status).sum();
                object.status.get_or_insert_default().ready_replicas = Some(sum);
                Ok(object)
            },
        ),
        Rule::read::<Deployment, _, _>(about(Operation::InterpretHealth, "health"), |_object| async move {
            Err("the database is down".into())
        }),
    ]
}

fn chain() -> Chain {
    Chain::native().with(LayerKind::Webhook, Functions::new(rules()).unwrap())
}

fn deployment(spec: &Value) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "d" }, "spec": spec })
}

fn item(cluster: &str, status: Value) -> AggregatedStatusItem {
    AggregatedStatusItem { cluster_name: cluster.into(), status: Some(status), ..AggregatedStatusItem::default() }
}

const SPEC: &str = r#"{"selector":{},"replicas":2,"fromTheFuture":{"a":1},
    "template":{"spec":{"containers":[{"name":"c","x":1}]}}}"#;

#[tokio::test]
async fn functions_answer_before_the_built_in_rules_do() {
    let spec = json!({ "selector": {}, "template": {} });
    let answer = chain().interpret::<InterpretReplica>(Object(deployment(&spec))).await.unwrap();
    assert_eq!(answer.replicas, 1, "the built-in rule says 0 for an absent field");
}

#[tokio::test]
async fn changed_object_keeps_fields_unknown_to_its_type() {
    let mut spec: Value = serde_json::from_str(SPEC).unwrap();
    let object = deployment(&spec);
    let revised = chain().interpret::<ReviseReplica>(Revision { object: object.clone(), replicas: 5 }).await.unwrap();
    spec["replicas"] = json!(5);
    assert_eq!(revised, deployment(&spec));

    let mut observed = object.clone();
    observed["spec"]["paused"] = json!(true);
    let retained = chain().interpret::<Retain>(Retention { desired: revised, observed }).await.unwrap();
    spec["paused"] = json!(true);
    assert_eq!(retained, deployment(&spec));

    let items = vec![item("a", json!(2)), item("b", json!(3))];
    let aggregated = chain().interpret::<AggregateStatus>(Aggregation { object, items }).await.unwrap();
    assert_eq!(aggregated["status"], json!({ "readyReplicas": 5 }));
}

#[tokio::test]
async fn inputs_of_the_wrong_type_are_named() {
    let wrong = deployment(&json!({ "replicas": "two" }));
    let object = deployment(&serde_json::from_str(SPEC).unwrap());
    let cases = [
        (
            Operation::InterpretReplica,
            Inputs::from(Object(wrong)),
            "InterpretReplica of Deployment d/web: the object can't be read as `Deployment`",
        ),
        (
            Operation::ReviseReplica,
            Inputs::from(Object(object.clone())),
            "ReviseReplica of Deployment d/web: the number of replicas is missing",
        ),
        (
            Operation::ReviseReplica,
            Inputs::from(Revision { object: object.clone(), replicas: 1 << 40 }),
            "ReviseReplica of Deployment d/web: the number of replicas can't be read as `i32`",
        ),
        (
            Operation::Retain,
            Inputs::from(Object(object.clone())),
            "Retain of Deployment d/web: the observed object is missing",
        ),
        (
            Operation::AggregateStatus,
            Inputs::from(Aggregation { object, items: vec![item("member1", json!("three"))] }),
            "AggregateStatus of Deployment d/web: the status item of cluster \"member1\" can't be read as `ClusterStatus<i32>`",
        ),
        (
            Operation::InterpretReplica,
            Inputs::from(Object(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": "none" }))),
            "InterpretReplica of an object without kind or name: the object can't be read as `Deployment`",
        ),
    ];
    for (operation, inputs, expected) in cases {
        let error = chain().interpret_dynamic(operation, &inputs).await.unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), expected);
    }
}

#[tokio::test]
async fn function_error_is_the_layer_error() {
    let object = deployment(&serde_json::from_str(SPEC).unwrap());
    let error = chain().interpret::<InterpretHealth>(Object(object)).await.unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "the database is down");
}

#[test]
fn two_functions_for_one_operation_are_rejected() {
    let mut rules = rules();
    rules.push(rules[1].clone());
    let error = Functions::new(rules).err().unwrap().to_string();
    assert_eq!(
        error,
        "ReviseReplica of \"apps/v1, Kind=Deployment\" has two functions: `revise` (src/main.rs:7) and `revise` \
         (src/main.rs:7); remove one of them\ncode: K0070"
    );
}
