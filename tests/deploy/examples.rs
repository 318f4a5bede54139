//! Each example works when it runs with its generated manifests.

use std::collections::BTreeSet;

use kctl::{Json, json};

use crate::{
    cluster::{Cluster, until},
    files::{Folder, objects},
    program::{DeployOptions, Program, free_port},
};

const PODSET: &str = include_str!("../../examples/podset/web.yaml");
const QUICKSTART: &str = include_str!("../../examples/quickstart/web.yaml");
const RESTARTER: &str = include_str!("../../examples/config-restarter/web.yaml");
const WEBSITES: &str = include_str!("../../examples/website/website.yaml");
/// Path of the certificate in the container of an interpreter.
const CERTIFICATES: &str = "/var/run/webhook-tls";
const WEBHOOK_PORT: u64 = 9443;
/// Slots and sets of two replicas.
const N_SLOTS: u32 = 4;
const N_SETS: usize = 8;

/// Returns the objects of an example in this namespace, with a grace period of one second for their Pods.
pub(crate) fn of_namespace(yaml: &str, namespace: &str) -> Vec<Json> {
    let mut all = objects(yaml);
    for object in &mut all {
        object["metadata"]["namespace"] = namespace.into();
        if let Some(pod) = object.pointer_mut("/spec/template/spec") {
            pod["terminationGracePeriodSeconds"] = json!(1);
        }
    }
    all
}

/// Returns the UIDs of Pods that are not being deleted.
async fn pods(cluster: &Cluster, namespace: &str) -> BTreeSet<String> {
    let pods = cluster.list("v1", "Pod", namespace).await.into_iter();
    let live = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    live.map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
}

/// Creates, scales down and deletes a set that reports its ready Pods in this status field.
async fn check_set_lifecycle(cluster: &Cluster, program: &str, yaml: &str, field: &str) {
    let program = Program::deploy(cluster, program, DeployOptions::default()).await;
    let namespace = program.namespace().to_owned();
    let set = &of_namespace(yaml, &namespace).remove(0);
    let namespace = namespace.as_str();
    let has = |replicas: usize| async move {
        let status = cluster.get(set, namespace).await.unwrap()["status"].take();
        status[field] == json!(replicas) && pods(cluster, namespace).await.len() == replicas
    };
    cluster.apply_soon(set, namespace).await;
    until("three pods are ready", || has(3)).await;
    let mut smaller = set.clone();
    smaller["spec"]["replicas"] = json!(1);
    cluster.apply(&smaller, namespace).await;
    until("one pod is left", || has(1)).await;
    cluster.delete(set, namespace).await;
    until("the pods go with their set", || async { pods(cluster, namespace).await.is_empty() }).await;
    program.assert_never_forbidden().await;
}

/// Two replicas share the sets. When one of them stops, the other one reconciles them all.
async fn replicas_share_sets(cluster: &Cluster) {
    let options = DeployOptions { shards: Some(N_SLOTS), ..DeployOptions::default() };
    let first = Program::deploy(cluster, "podset", options).await;
    let second = first.replica("podset").await;
    let namespace = second.namespace().to_owned();
    let namespace = namespace.as_str();
    let n_owners = |n: usize| async move { owners(cluster, namespace).await.is_some_and(|owners| owners.len() == n) };
    until("each replica owns slots", || n_owners(2)).await;
    let mut sets: Vec<Json> = (0..N_SETS)
        .map(|n| {
            let (mut set, name) = (of_namespace(PODSET, namespace).remove(0), json!(format!("web-{n}")));
            for path in ["/metadata/name", "/spec/selector/matchLabels/app", "/spec/template/metadata/labels/app"] {
                *set.pointer_mut(path).unwrap() = name.clone();
            }
            set["spec"]["replicas"] = json!(1);
            set
        })
        .collect();
    for set in &sets {
        cluster.apply_soon(set, namespace).await;
    }
    until("each set has its pod", || async { pods(cluster, namespace).await.len() == N_SETS }).await;
    let stopped = first.stop().await;
    until("one replica owns all slots", || n_owners(1)).await;
    for set in &mut sets {
        set["spec"]["replicas"] = json!(2);
        cluster.apply(set, namespace).await;
    }
    until("each set has two pods", || async { pods(cluster, namespace).await.len() == 2 * N_SETS }).await;
    for set in &sets {
        cluster.delete(set, namespace).await;
    }
    until("the pods go with their sets", || async { pods(cluster, namespace).await.is_empty() }).await;
    drop(stopped);
    second.assert_never_forbidden().await;
}

/// Returns the owners of slots, or `None` while a slot has no owner.
async fn owners(cluster: &Cluster, namespace: &str) -> Option<BTreeSet<String>> {
    let leases = cluster.list("coordination.k8s.io/v1", "Lease", namespace).await;
    let is_slot = |lease: &&Json| lease["metadata"]["name"].as_str().unwrap().contains("-slot-");
    let holders = leases.iter().filter(is_slot).filter_map(|lease| lease["spec"]["holderIdentity"].as_str());
    let holders: Vec<_> = holders.filter(|holder| !holder.is_empty()).map(str::to_owned).collect();
    (holders.len() == N_SLOTS as usize).then(|| holders.into_iter().collect())
}

async fn check_restarts(cluster: &Cluster) {
    let program = Program::deploy(cluster, "config-restarter", DeployOptions::default()).await;
    let namespace = program.namespace();
    let web = of_namespace(RESTARTER, namespace);
    let [config, policy] = web.as_slice() else { panic!("{web:?}") };
    let rolled = |updated: usize| async move {
        let status = cluster.get(policy, namespace).await.unwrap()["status"].take();
        status["ready"] == json!(updated) && status["updated"] == json!(updated) && status["replicas"] == json!(updated)
    };
    for object in &web {
        cluster.apply_soon(object, namespace).await;
    }
    until("three pods are ready", || rolled(3)).await;
    let before = pods(cluster, namespace).await;
    let mut changed = config.clone();
    changed["data"]["GREETING"] = json!("good bye");
    cluster.apply(&changed, namespace).await;
    until("every Pod was replaced", || async {
        before.is_disjoint(&pods(cluster, namespace).await) && rolled(3).await
    })
    .await;
    let metrics = program.metrics().await;
    let own = metrics.lines().find_map(|line| line.strip_prefix("config_restarter_pods_replaced_total "));
    assert!(
        own.is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n >= 3)),
        "the example's own metric: {own:?}\n{metrics}"
    );
    cluster.delete(policy, namespace).await;
    let is_gone = || async { cluster.get(policy, namespace).await.is_none() };
    until("the policy is gone once its finalizer is removed", is_gone).await;
    program.assert_never_forbidden().await;
}

async fn check_interpreter(cluster: &Cluster) {
    let files = Folder::new();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(files.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(files.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let mounts = [(CERTIFICATES.to_owned(), files.to_path_buf())].into();
    let options = DeployOptions { mounts, ..DeployOptions::default() };
    let program = Program::deploy(cluster, "workload-interpreter", options).await;
    let workload = json!({
        "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload", "metadata": { "name": "web" },
        "spec": { "replicas": 3, "template": { "spec": { "containers": [{ "name": "web", "image": "nginx" }] } } },
    });
    cluster.apply_soon(&workload, program.namespace()).await;
    let stored = cluster.get(&workload, program.namespace()).await.unwrap();
    let context = json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext",
        "request": {
            "uid": "1", "operation": "InterpretReplica", "name": "web", "object": stored,
            "kind": { "group": "workload.example.io", "version": "v1alpha1", "kind": "Workload" },
        },
    });
    let response: Json = program.post(WEBHOOK_PORT, "/interpreter-workload", &context).await;
    assert_eq!(response["response"]["replicas"], json!(3), "{response}");
    program.assert_never_forbidden().await;
}

/// The program creates its certificate and configures its webhooks. The API server then calls them for defaulting,
/// validation and conversion.
async fn check_websites(cluster: &Cluster) {
    let port = free_port();
    // The API server runs outside of the cluster, so it can't reach the program through a Service.
    let generate = vec!["--webhook-url".into(), format!("https://127.0.0.1:{port}")];
    let ports = [(WEBHOOK_PORT, port)].into();
    let options = DeployOptions { generate, ports, ..DeployOptions::default() };
    let program = Program::deploy(cluster, "website", options).await;
    let namespace = program.namespace();
    let [old, new] = <[Json; 2]>::try_from(of_namespace(WEBSITES, namespace)).unwrap();
    until("the API server trusts the webhooks", || async { cluster.try_apply(&new, namespace).await.is_ok() }).await;
    cluster.apply(&old, namespace).await;
    let reported_hosts = async |site: &Json| cluster.get(site, namespace).await.unwrap()["status"]["hosts"].take();
    let both_report = || async { (reported_hosts(&old).await, reported_hosts(&new).await) == (json!(1), json!(2)) };
    until("both Websites report their hosts", both_report).await;
    let spec = cluster.get(&old, namespace).await.unwrap()["spec"].take();
    assert_eq!(spec, json!({ "host": "old.example.com", "replicas": 2 }));
    let as_new = json!({ "apiVersion": new["apiVersion"], "kind": "Website", "metadata": { "name": "old" } });
    assert_eq!(cluster.get(&as_new, namespace).await.unwrap()["spec"]["hosts"], json!(["old.example.com"]));
    let config = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "new" } });
    let hosts = cluster.get(&config, namespace).await.unwrap()["data"]["hosts"].take();
    assert_eq!(hosts, json!("new.example.com\nwww.new.example.com"));
    let mut without = new.clone();
    without["spec"]["hosts"] = json!([]);
    let rejected = cluster.try_apply(&without, namespace).await.unwrap_err().to_string();
    assert!(rejected.contains("spec.hosts: Required value: no one could reach it"), "{rejected}");
    cluster.delete(&old, namespace).await;
    cluster.delete(&new, namespace).await;
    program.assert_never_forbidden().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quickstart_keeps_pods_on_the_embedded_server() {
    check_set_lifecycle(&Cluster::embedded().await, "quickstart", QUICKSTART, "ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podset_keeps_pods_on_the_embedded_server() {
    check_set_lifecycle(&Cluster::embedded().await, "podset", PODSET, "readyReplicas").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_share_sets_on_the_embedded_server() {
    replicas_share_sets(&Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn config_restarter_restarts_pods_on_the_embedded_server() {
    check_restarts(&Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_interpreter_answers_on_the_embedded_server() {
    check_interpreter(&Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn website_defaults_validates_and_converts_on_embedded_server() {
    check_websites(&Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs KUBECONFIG: cargo xtask deployed"]
async fn every_example_works_on_a_real_server() {
    let cluster = Cluster::from_env("KUBECONFIG").await;
    check_set_lifecycle(&cluster, "quickstart", QUICKSTART, "ready").await;
    check_set_lifecycle(&cluster, "podset", PODSET, "readyReplicas").await;
    replicas_share_sets(&cluster).await;
    check_restarts(&cluster).await;
    check_interpreter(&cluster).await;
    check_websites(&cluster).await;
}
