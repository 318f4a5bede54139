//! Costs of a script: one call on an object of 5 KB, and the compilation that the pool saves.
//!
//! `cargo bench -p kctl-interpreter --all-features --bench lua`, 2026-11-23, two cores that others
//! used as well, lowest medians of three runs: `InterpretHealth` 23 µs, `InterpretStatus` 25 µs,
//! `AggregateStatus` 77 µs, `ReviseReplica` 78 µs, `InterpretReplica` 89 µs, `Retain` 93 µs,
//! `InterpretDependency` 97 µs; a sixth more with the allocator of the system (`benches/README.md`
//! of the workspace). Most of it is the way of the object into Lua (20 µs) and back (60 µs). A `..`
//! of strings costs 0.2 µs, one with a fraction 0.9 µs.

use divan::{Bencher, black_box};
use kctl_interpreter::lua::{Limits, Pool, Script, ScriptInputs};
use serde_json::{Value, json};

/// As in programs that mostly interpret.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

/// A workload as clusters have it: 5 KB as JSON.
fn object() -> Value {
    let container = |n: usize| {
        json!({
            "name": format!("container-{n}"),
            "image": "registry.example.com/team/service:1.2.3",
            "envFrom": [{"configMapRef": {"name": format!("settings-{n}")}}],
            "env": (0..8).map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value of some length"})).collect::<Vec<_>>(),
            "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        })
    };
    let labels: Value = (0..20).map(|n| (format!("example.io/label-{n}"), json!("value"))).collect();
    json!({
        "apiVersion": "example.io/v1",
        "kind": "Widget",
        "metadata": {"name": "demo", "namespace": "prod", "labels": labels, "generation": 3},
        "spec": {"replicas": 3, "template": {"spec": {"containers": (0..5).map(container).collect::<Vec<_>>()}}},
        "status": {"observedGeneration": 3, "readyReplicas": 3, "replicas": 3},
    })
}

const CASES: [(&str, &str, &str); 7] = [
    (
        "InterpretHealth",
        "InterpretHealth",
        "function InterpretHealth(o) return o.status.readyReplicas == o.spec.replicas end",
    ),
    (
        "InterpretStatus",
        "ReflectStatus",
        "function ReflectStatus(o) return {replicas = o.status.replicas, ready = o.status.readyReplicas} end",
    ),
    (
        "InterpretReplica",
        "GetReplicas",
        "local kube = require('kube')
         function GetReplicas(o) return o.spec.replicas, kube.accuratePodRequirements(o.spec.template) end",
    ),
    ("ReviseReplica", "ReviseReplica", "function ReviseReplica(o, n) o.spec.replicas = n return o end"),
    ("Retain", "Retain", "function Retain(d, o) d.spec.replicas = o.spec.replicas return d end"),
    (
        "AggregateStatus",
        "AggregateStatus",
        "function AggregateStatus(o, items)
           local ready = 0
           for i = 1, #items do ready = ready + items[i].status.readyReplicas end
           o.status.readyReplicas = ready
           return o
         end",
    ),
    (
        "InterpretDependency",
        "GetDependencies",
        "local kube = require('kube')
         function GetDependencies(o) return kube.getPodDependencies(o.spec.template, o.metadata.namespace) end",
    ),
];

#[divan::bench(args = CASES.map(|case| case.0))]
fn call(bencher: Bencher<'_, '_>, operation: &str) {
    let (_, function, source) = CASES.into_iter().find(|case| case.0 == operation).expect("the case is in the list");
    let (object, pool) = (object(), Pool::new(Limits::default()));
    let script = Script::compile(source, function).expect("the source is Lua");
    let items = json!([{"clusterName": "a", "status": {"readyReplicas": 1}}, {"clusterName": "b", "status": {"readyReplicas": 2}}]);
    let observed = Some(&object).filter(|_| operation == "Retain");
    let inputs = ScriptInputs { desired: Some(&object), observed, status_items: Some(&items), replicas: Some(5) };
    bencher.bench_local(|| pool.interpret(operation, &script, black_box(&inputs)).expect("the script answers"));
}

#[divan::bench]
fn compile() -> Script {
    Script::compile(CASES[0].2, CASES[0].1).expect("the source is Lua")
}

/// Measures `..`: a thousand of them in a call on a small object, of strings and of numbers with
/// their digits. The type of an operand is only known at run time, so each goes through a function.
#[divan::bench(args = ["text", "number", "none"])]
fn concatenation(bencher: Bencher<'_, '_>, operand: &str) {
    let joined = match operand {
        "text" => "s = name .. '-' .. name",
        "number" => "s = i .. '-' .. i / 3",
        _ => "s = name",
    };
    let source = format!(
        "function ReflectStatus(o) local s, name = '', o.metadata.name for i = 1, 500 do {joined} end return {{s = s}} end"
    );
    let (object, pool) = (json!({"kind": "Widget", "metadata": {"name": "demo"}}), Pool::new(Limits::default()));
    let script = Script::compile(&source, "ReflectStatus").expect("the source is Lua");
    let inputs = ScriptInputs { observed: Some(&object), ..ScriptInputs::default() };
    bencher.bench_local(|| pool.interpret("InterpretStatus", &script, black_box(&inputs)).expect("the script answers"));
}

/// Measures the first call of a script: a state with its library, built for one call. The pool
/// saves that.
#[divan::bench]
fn first_call(bencher: Bencher<'_, '_>) {
    let (operation, function, source) = CASES[0];
    let (object, script) = (object(), Script::compile(source, function).expect("the source is Lua"));
    let inputs = ScriptInputs { observed: Some(&object), ..ScriptInputs::default() };
    bencher.bench_local(|| Pool::new(Limits::default()).interpret(operation, &script, black_box(&inputs)));
}
