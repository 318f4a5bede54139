//! Runs the bundled customizations against their `cases.yaml`: each operation of each kind.

use std::{collections::BTreeMap, fs, path::Path};

use kctl_interpreter::{
    chain::{Chain, LayerKind},
    kind::Gvk,
    lua::{Limits, Pool},
    operation::{AggregatedStatusItem, Inputs, Operation},
    thirdparty,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    operation: String,
    desired: Option<Value>,
    observed: Option<Value>,
    replicas: Option<i64>,
    status_items: Option<Vec<AggregatedStatusItem>>,
    expected: Value,
}

const KINDS: [&str; 6] = [
    "apps.kruise.io/v1alpha1/CloneSet",
    "argoproj.io/v1alpha1/Rollout",
    "helm.toolkit.fluxcd.io/v2/HelmRelease",
    "kubeflow.org/v1/PyTorchJob",
    "kustomize.toolkit.fluxcd.io/v1/Kustomization",
    "ray.io/v1/RayCluster",
];

fn cases(path: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("thirdparty").join(path);
    serde_saphyr::from_str(&fs::read_to_string(folder.join("cases.yaml")).unwrap()).unwrap()
}

/// Sorts the dependencies, because their order is not specified.
fn sort_dependencies(mut answer: Value) -> Value {
    if let Some(dependencies) = answer["dependencies"].as_array_mut() {
        dependencies.sort_by_key(ToString::to_string);
    }
    answer
}

#[tokio::test]
async fn bundled_kinds_pass_cases_for_every_operation() {
    let chain =
        Chain::default().with(LayerKind::ThirdParty, thirdparty::bundled_customizations(Pool::new(Limits::default())));
    let mut n_cases = BTreeMap::new();
    for path in KINDS {
        for (idx, case) in cases(path).into_iter().enumerate() {
            let operation: Operation = case.operation.parse().unwrap();
            let inputs = Inputs {
                desired: case.desired,
                observed: case.observed,
                replicas: case.replicas,
                status_items: case.status_items,
            };
            assert_eq!(format!("{}/{}", inputs.kind().api_version(), inputs.kind().kind), path, "case {idx}");
            let answer = chain.interpret_dynamic(operation, &inputs).await.unwrap_or_else(|error| {
                panic!("{path}, case {idx}: {error}: {:?}", std::error::Error::source(&error).map(ToString::to_string))
            });
            assert_eq!(sort_dependencies(answer), sort_dependencies(case.expected), "{path}, case {idx}, {operation}");
            *n_cases.entry((path, operation.name())).or_insert(0) += 1;
        }
        let (api_version, kind) = path.rsplit_once('/').unwrap();
        let gvk = Gvk::from_object(&serde_json::json!({ "apiVersion": api_version, "kind": kind }));
        for operation in Operation::ALL.into_iter().filter(|operation| chain.hook_enabled(*operation, &gvk)) {
            let n = n_cases.get(&(path, operation.name())).copied().unwrap_or_default();
            assert!(n >= 2, "{path}: {operation} has {n} cases");
        }
    }
}

/// Karmada passes nil items while no cluster is scheduled, and an item without a status until its cluster reports one.
#[tokio::test]
async fn aggregate_status_accepts_nil_items_and_statuses() {
    let chain =
        Chain::default().with(LayerKind::ThirdParty, thirdparty::bundled_customizations(Pool::new(Limits::default())));
    for path in KINDS {
        let case = cases(path).into_iter().find(|case| case.operation == "AggregateStatus").unwrap();
        let answer = async |status_items: Option<Vec<AggregatedStatusItem>>| {
            let inputs = Inputs { desired: case.desired.clone(), observed: None, replicas: None, status_items };
            chain
                .interpret_dynamic(Operation::AggregateStatus, &inputs)
                .await
                .unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let (nil, empty) = (answer(None).await, answer(Some(Vec::new())).await);
        assert_eq!(nil, empty, "{path}");
        assert_eq!(nil["aggregatedStatus"]["kind"], case.desired.as_ref().unwrap()["kind"]);
        let silent = AggregatedStatusItem { cluster_name: "a".into(), status: None, ..AggregatedStatusItem::default() };
        let silent = answer(Some(vec![silent])).await;
        assert_eq!(silent["aggregatedStatus"]["metadata"], nil["aggregatedStatus"]["metadata"], "{path}");
    }
}

#[tokio::test]
async fn last_layer_without_a_rule_is_an_error() {
    let chain =
        Chain::default().with(LayerKind::Native, thirdparty::bundled_customizations(Pool::new(Limits::default())));
    let widget = serde_json::json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "a" } });
    let inputs = Inputs { desired: Some(widget), ..Inputs::default() };
    let error = chain.interpret_dynamic(Operation::InterpretHealth, &inputs).await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains("interpreter for InterpretHealth of \"example.com/v1, Kind=Widget\" not found"), "{cause}");
}
