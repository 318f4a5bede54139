//! Values of a chart, as Helm renders them. Each value changes an object.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use kctl::{Json, json};

use super::{Helm, RELEASE};
use crate::{
    build::{programs, run},
    files::objects,
};

/// Values, and the field that they change.
struct Case {
    /// Values without which the others have no effect.
    before: &'static str,
    /// The values, as `--set` takes them.
    set: &'static str,
    /// The kind of the changed objects.
    kind: &'static str,
    /// JSON pointer of the changed field.
    field: &'static str,
    /// The different contents of the field, in the order of the objects. Objects without the field are left out.
    expected: Json,
}

/// Creates a case whose values need no others.
fn case(set: &'static str, kind: &'static str, field: &'static str, expected: Json) -> Case {
    Case { before: "", set, kind, field, expected }
}

impl Case {
    /// Sets other values first. Without them, the values of this case have no effect.
    fn after(self, before: &'static str) -> Self {
        Self { before, ..self }
    }
}

/// Returns the cases for the Deployment, its `ServiceAccount` and its name.
fn pod_cases() -> Vec<Case> {
    let account = "serviceAccount.create=false,serviceAccount.name=ours";
    let labels = json!([{ "app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/name": "shop" }]);
    let env_from = json!([[{ "secretRef": { "name": "ours" } }]]);
    let digest = json!(["example.com/website@sha256:0123"]);
    vec![
        case("image.digest=sha256:0123", "Deployment", "/spec/template/spec/containers/0/image", digest),
        case(
            "image.pullPolicy=Always",
            "Deployment",
            "/spec/template/spec/containers/0/imagePullPolicy",
            json!(["Always"]),
        ),
        case("extraEnvFrom[0].secretRef.name=ours", "Deployment", "/spec/template/spec/containers/0/envFrom", env_from),
        case(
            "terminationGracePeriodSeconds=60",
            "Deployment",
            "/spec/template/spec/terminationGracePeriodSeconds",
            json!([60]),
        ),
        case(account, "ServiceAccount", "/metadata/name", json!([])),
        case(account, "Deployment", "/spec/template/spec/serviceAccountName", json!(["ours"])),
        case(account, "RoleBinding", "/subjects/0/name", json!(["ours"])),
        case(account, "ClusterRoleBinding", "/subjects/0/name", json!(["ours"])),
        case("nameOverride=shop", "Deployment", "/metadata/name", json!(["web-shop"])),
        case("nameOverride=shop", "Deployment", "/spec/selector/matchLabels", labels.clone()),
        case("nameOverride=shop", "Deployment", "/spec/template/metadata/labels", labels.clone()),
        case("nameOverride=shop", "Service", "/spec/selector", labels),
    ]
}

/// Returns the cases for objects that a value leaves out, and for certificates.
fn object_cases() -> Vec<Case> {
    let issuer = "certManager.issuerRef.kind=ClusterIssuer,certManager.issuerRef.name=ours";
    let issuer_ref = json!([{ "kind": "ClusterIssuer", "name": "ours" }]);
    let mut cases = vec![
        case("crds.enabled=false", "CustomResourceDefinition", "/metadata/name", json!([])),
        case("podDisruptionBudget.enabled=false", "PodDisruptionBudget", "/metadata/name", json!([])),
        case(issuer, "Certificate", "/spec/issuerRef", issuer_ref).after("certManager.enabled=true"),
        case(issuer, "Issuer", "/metadata/name", json!([])).after("certManager.enabled=true"),
    ];
    let kinds = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    cases.extend(kinds.map(|kind| case("rbac.create=false", kind, "/metadata/name", json!([]))));
    cases
}

/// Returns the cases for the `NetworkPolicy`.
fn policy_cases() -> Vec<Case> {
    let port = |name: &str| json!({ "ports": [{ "port": name, "protocol": "TCP" }] });
    let ingress = json!([[port("probes"), port("metrics"), port("webhook")]]);
    let peers = json!([[{ "ipBlock": { "cidr": "192.0.2.0/24" } }]]);
    let (metrics, webhook) = (
        "networkPolicy.metricsFrom[0].ipBlock.cidr=192.0.2.0/24",
        "networkPolicy.webhookFrom[0].ipBlock.cidr=192.0.2.0/24",
    );
    let (egress, rules) = ("networkPolicy.egress[0].ports[0].port=443", json!([[{ "ports": [{ "port": 443 }] }]]));
    let enabled = "networkPolicy.enabled=true";
    vec![
        case(enabled, "NetworkPolicy", "/spec/ingress", ingress),
        case(metrics, "NetworkPolicy", "/spec/ingress/1/from", peers.clone()).after(enabled),
        case(webhook, "NetworkPolicy", "/spec/ingress/2/from", peers).after(enabled),
        case(egress, "NetworkPolicy", "/spec/policyTypes", json!([["Ingress", "Egress"]])).after(enabled),
        case(egress, "NetworkPolicy", "/spec/egress", rules).after(enabled),
    ]
}

/// Returns the cases for the objects that read the metrics.
fn monitoring_cases() -> Vec<Case> {
    let (monitor, rule, dashboard) = (
        "metrics.serviceMonitor.enabled=true",
        "metrics.prometheusRule.enabled=true",
        "metrics.dashboard.enabled=true",
    );
    let label = "/metadata/labels/team";
    vec![
        case("metrics.serviceMonitor.labels.team=ours", "ServiceMonitor", label, json!(["ours"])).after(monitor),
        case("metrics.serviceMonitor.interval=30s", "ServiceMonitor", "/spec/endpoints/0/interval", json!(["30s"]))
            .after(monitor),
        case("metrics.prometheusRule.labels.team=ours", "PrometheusRule", label, json!(["ours"])).after(rule),
        case("metrics.dashboard.labels.team=ours", "ConfigMap", label, json!(["ours"])).after(dashboard),
    ]
}

/// Renders a chart. Checks that each document is an object with a kind and a name.
async fn render(helm: &Helm, chart: &Path, set: &str) -> Vec<Json> {
    let option = if set.is_empty() { String::new() } else { format!("--set {set}") };
    let mut rendered = objects(&helm.run(&format!("template {RELEASE} {} {option}", chart.display())).await);
    rendered.retain(|object| !object.is_null());
    for object in &rendered {
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            assert!(object.pointer(field).is_some_and(Json::is_string), "{set}: {field} of {object}");
        }
    }
    rendered
}

/// Returns the different contents of a field in the objects of a kind.
fn contents(rendered: &[Json], kind: &str, field: &str) -> Json {
    let of_kind = rendered.iter().filter(|object| object["kind"] == kind);
    let mut found: Vec<Json> = of_kind.filter_map(|object| object.pointer(field).cloned()).collect();
    found.dedup();
    found.into()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn each_value_changes_its_objects() {
    let helm = Helm::new("shop");
    let chart = helm.chart("website", "--leader-elect --metrics");
    let cases = [pod_cases(), object_cases(), policy_cases(), monitoring_cases()];
    for Case { before, set, kind, field, expected } in cases.into_iter().flatten() {
        let unset = render(&helm, &chart, before).await;
        assert_ne!(contents(&unset, kind, field), expected, "{set} has no effect on {kind} {field}");
        let both = if before.is_empty() { set.to_owned() } else { format!("{before},{set}") };
        let rendered = render(&helm, &chart, &both).await;
        assert_eq!(contents(&rendered, kind, field), expected, "{both}: {kind} {field}");
    }
}

/// Generates the chart of an app with `App::sharded`.
fn sharded_chart(helm: &Helm) -> PathBuf {
    let chart = helm.files.join("rolling");
    let mut generate = Command::new(programs().join("examples/deploy-replica"));
    generate.env("SHARDED", "").args(["generate-manifests", "--image", "example.com/rolling:1", "--helm"]);
    run(generate.arg(&chart));
    chart
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Helm: cargo xtask helm"]
async fn values_turn_shards_of_the_app_off() {
    let helm = Helm::new("shop");
    let chart = sharded_chart(&helm);
    let id = "--leader-election-id=web-rolling";
    for (set, expected) in [
        ("", json!(["--shards=8", id])),
        ("shards=4", json!(["--shards=4", id])),
        ("shards=0,leaderElection.enabled=true", json!(["--leader-elect", id])),
        ("shards=0,replicaCount=1", json!(["--shards=0"])),
    ] {
        let rendered = render(&helm, &chart, set).await;
        let deployment = rendered.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().iter();
        let found: Vec<_> =
            args.filter_map(Json::as_str).filter(|arg| arg.contains("shards") || arg.contains("lead")).collect();
        assert_eq!(json!(found), expected, "{set}");
    }
}
