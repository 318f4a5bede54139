//! Costs of a native rule on an object of 5 KB. Rules for Pods and sums of statuses convert to Go's
//! types and back.
//!
//! `cargo bench -p kctl-interpreter --all-features --bench native`, 2026-11-22, two cores that
//! others used as well (load 10), medians of three runs: `ReviseReplica` 0.5 µs, `Retain` of a
//! Deployment 5 µs and of a Pod 63 µs, `InterpretStatus` 7 µs, `InterpretHealth` 13 µs,
//! `InterpretReplica` 17 µs, `InterpretDependency` 20 µs, `AggregateStatus` 55 µs.

use divan::{Bencher, black_box};
use kctl_interpreter::{
    native,
    operation::{AggregatedStatusItem, Inputs, Operation},
};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// A Deployment or a Pod of 5 KB as JSON.
fn object(kind: &str) -> Value {
    let container = |n: usize| {
        json!({
            "name": format!("container-{n}"),
            "image": "registry.example.com/team/service:1.2.3",
            "env": (0..8).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value of some length"})).collect::<Vec<_>>(),
            "envFrom": [{ "configMapRef": { "name": format!("settings-{n}") } }],
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        })
    };
    let labels: Value = (0..20).map(|n| (format!("example.io/label-{n}"), json!("value"))).collect();
    let annotations = json!({ "resourcetemplate.karmada.io/generation": "3" });
    let metadata =
        json!({ "name": "web", "namespace": "shop", "labels": labels, "annotations": annotations, "generation": 3 });
    let pod = json!({ "containers": (0..5).map(container).collect::<Vec<_>>() });
    match kind {
        "Pod" => json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": pod }),
        _ => json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": metadata,
            "spec": { "replicas": 3, "template": { "spec": pod } },
            "status": { "observedGeneration": 3, "readyReplicas": 3, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3 },
        }),
    }
}

const CASES: [(&str, Operation); 9] = [
    ("Deployment", Operation::InterpretReplica),
    ("Deployment", Operation::ReviseReplica),
    ("Deployment", Operation::InterpretStatus),
    ("Deployment", Operation::InterpretHealth),
    ("Deployment", Operation::InterpretDependency),
    ("Deployment", Operation::AggregateStatus),
    ("Deployment", Operation::Retain),
    ("Pod", Operation::InterpretDependency),
    ("Pod", Operation::Retain),
];

#[divan::bench(args = CASES.map(|(kind, operation)| format!("{operation} of a {kind}")))]
fn call(bencher: Bencher<'_, '_>, case: &str) {
    let named = |(kind, operation): &(&str, Operation)| format!("{operation} of a {kind}") == case;
    let (kind, operation) = CASES.into_iter().find(named).expect("the case is in the list");
    let object = object(kind);
    let observed = Some(object.clone()).filter(|_| operation == Operation::Retain);
    let status_items = Some(vec![item("member1"), item("member2")]);
    let inputs = Inputs { desired: Some(object), observed, replicas: Some(5), status_items };
    // As the chain calls them: the object is not needed any more.
    let given = bencher.with_inputs(|| inputs.clone());
    given.bench_local_values(|inputs| {
        native::interpret_owned(operation, black_box(inputs)).expect("an object of its kind")
    });
}

fn item(cluster: &str) -> AggregatedStatusItem {
    let status = json!({ "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "generation": 3,
        "resourceTemplateGeneration": 3, "observedGeneration": 3 });
    AggregatedStatusItem { cluster_name: cluster.into(), status: Some(status), ..AggregatedStatusItem::default() }
}
