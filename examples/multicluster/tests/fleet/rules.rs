//! Tests rules that are added, changed and deleted while the program runs: customizations and webhooks of the control
//! plane.

use kctl::{
    json,
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams},
        core::{ApiResource, DynamicObject, GroupVersionKind},
    },
    prelude::*,
};
use kctl_interpreter::webhook::{Certificate, ClientConfig, Configuration, Webhook, WebhookOptions};
use multicluster::{PropagationPolicy, ResourceBinding};

use crate::{
    kinds::{BINDING, workloads},
    world::{CLUSTERS, Fleet, apply},
};

/// A policy that divides Workloads by weight.
const DIVIDED: &str = "apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: workloads }\nspec:\n  resourceSelectors: [{ apiVersion: workload.example.io/v1alpha1, kind: Workload }]\n  propagateDeps: true\n  placement:\n    replicas: Divided\n    weights: [{ cluster: member1, weight: 1 }, { cluster: member2, weight: 4 }]";

fn customizations(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("config.karmada.io", "v1alpha1", "ResourceInterpreterCustomization");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// Returns a customization that defines how replicas are read (`InterpretReplica`) and written (`ReviseReplica`).
fn customization(name: &str, kind: &GroupVersionKind, replicas: &str) -> String {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": { "name": name },
        "spec": {
            "target": { "apiVersion": kind.api_version(), "kind": kind.kind },
            "customizations": {
                "replicaResource": { "luaScript": format!("function GetReplicas(o) {replicas} end") },
                "replicaRevision": { "luaScript": "function ReviseReplica(o, n) o.spec.replicas = n return o end" },
            },
        },
    })
    .to_string()
}

async fn replicas(client: &Client) -> Option<i64> {
    let found = workloads(client).get_opt("batch").await.unwrap_or_default()?;
    found.data["spec"]["replicas"].as_i64()
}

impl Fleet {
    async fn workload_replicas(&self) -> [Option<i64>; 2] {
        [replicas(&self.members[0]).await, replicas(&self.members[1]).await]
    }
}

/// Checks that a new customization changes the division of existing Workloads.
pub(crate) async fn customization_changes_the_division(fleet: &Fleet) {
    let weights = json!({ "replicas": "Divided", "weights": [{ "cluster": "member1", "weight": 1 }, { "cluster": "member2", "weight": 2 }] });
    fleet.patch::<PropagationPolicy>("workloads", json!({ "spec": { "placement": weights } })).await;
    fleet.rest_while(async || fleet.workload_replicas().await == [Some(3); 2]).await;

    let workload = GroupVersionKind::gvk("workload.example.io", "v1alpha1", "Workload");
    fleet.apply(&customization("workloads", &workload, "return o.spec.replicas, nil")).await;
    fleet.until("three are divided", async || fleet.workload_replicas().await == [Some(1), Some(2)]).await;

    let script = "function GetReplicas(o) return 3 * o.spec.replicas, nil end";
    let other = json!({ "spec": { "customizations": { "replicaResource": { "luaScript": script } } } });
    let rules = customizations(&fleet.home);
    rules.patch("workloads", &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    fleet.until("three times as many are", async || fleet.workload_replicas().await == [Some(3), Some(6)]).await;

    rules.delete("workloads", &DeleteParams::default()).await.unwrap();
    fleet.until("without it none are", async || fleet.workload_replicas().await == [Some(3); 2]).await;
    assert_eq!(fleet.api::<ResourceBinding>().get(BINDING).await.unwrap().spec.replicas, None);
}

impl Fleet {
    /// Checks for two seconds that a state holds.
    async fn rest_while(&self, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..20 {
            assert!(holds().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn applied_customization_changes_the_division_until_deleted() {
    let fleet = Fleet::with_workload().await;
    customization_changes_the_division(&fleet).await;
}

#[tokio::test(start_paused = true)]
async fn failing_rules_of_one_kind_block_no_other() {
    let fleet = Fleet::with_web().await;
    let deployment = GroupVersionKind::gvk("apps", "v1", "Deployment");
    fleet.apply(&customization("broken", &deployment, "return nil")).await;
    fleet.rest().await;
    assert_eq!(fleet.replicas("web").await, [Some(2), Some(8)]);
    let has_settings = async || fleet.have::<ConfigMap>("web-settings").await == [true; 2];
    assert!(has_settings().await, "its dependencies are kept");

    // ConfigMaps come after Deployments in the order of kinds, and are in the same namespace.
    fleet.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: { name: note }\ndata: { text: hello }").await;
    fleet.apply("apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: notes }\nspec: { resourceSelectors: [{ apiVersion: v1, kind: ConfigMap, name: note }] }").await;
    fleet.until("another kind goes out", async || fleet.have::<ConfigMap>("note").await == [true; 2]).await;
    assert!(has_settings().await);

    fleet.patch::<Deployment>("web", json!({ "spec": { "replicas": 20 } })).await;
    fleet.rest().await;
    assert_eq!(fleet.replicas("web").await, [Some(2), Some(8)], "replicas of an unknown number are not divided again");
    customizations(&fleet.home).delete("broken", &DeleteParams::default()).await.unwrap();
    fleet.until("the built-in rule is back", async || fleet.replicas("web").await == [Some(4), Some(16)]).await;
}

/// Starts the webhook of the example, which serves until the test ends, and returns its configuration object.
async fn workload_webhook() -> kctl::Json {
    let rules = workload_interpreter::app().interpreters().to_vec();
    let mut options = WebhookOptions::default();
    options.certificate = Certificate::SelfSigned(vec!["127.0.0.1".into()]);
    let webhook = Webhook::listen(rules.clone(), options).await.unwrap();
    let client = ClientConfig::Url(format!("https://{}", webhook.address()));
    let configuration =
        Configuration { name: "workloads", client, authority: webhook.authority(), timeout_seconds: 10 };
    let object = configuration.object(&rules).unwrap();
    tokio::spawn(webhook.serve(std::future::pending()));
    object
}

/// Runs in real time, because the webhook is called over sockets.
#[tokio::test(flavor = "multi_thread")]
async fn interpreter_webhook_divides_retains_and_aggregates() {
    let fleet = Fleet::new().await;
    let kinds = workload_interpreter::app().kinds();
    for server in std::iter::once(&fleet.home).chain(&fleet.members) {
        for crd in kctl::manifest::definitions(&kinds, kctl::manifest::Descriptions::Own).unwrap() {
            apply(server, &json!(crd).to_string()).await;
        }
    }
    fleet.apply(CLUSTERS).await;
    fleet.apply(&workload_webhook().await.to_string()).await;
    fleet.apply(DIVIDED).await;
    fleet.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: { name: settings }").await;
    let container =
        json!({ "name": "main", "image": "batch:1", "envFrom": [{ "configMapRef": { "name": "settings" } }] });
    let workload = json!({
        "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload", "metadata": { "name": "batch" },
        "spec": { "replicas": 10, "template": { "spec": { "containers": [container] } } },
    });
    let created = async || workloads(&fleet.home).list(&Default::default()).await.is_ok();
    fleet.until("the kind is served", created).await;
    fleet.apply(&workload.to_string()).await;
    fleet.until("ten are divided", async || fleet.workload_replicas().await == [Some(2), Some(8)]).await;
    let settings = async || fleet.have::<ConfigMap>("settings").await == [true; 2];
    fleet.until("what it needs is there", settings).await;

    let pause = Patch::Merge(json!({ "spec": { "paused": true } }));
    workloads(&fleet.members[0]).patch("batch", &PatchParams::default(), &pause).await.unwrap();
    for (member, ready) in fleet.members.iter().zip([2, 8]) {
        let ready = Patch::Merge(json!({ "status": { "readyReplicas": ready } }));
        workloads(member).patch_status("batch", &PatchParams::default(), &ready).await.unwrap();
    }
    let ready_replicas =
        async || workloads(&fleet.home).get("batch").await.unwrap().data["status"]["readyReplicas"].as_i64();
    fleet.until("the template knows", async || ready_replicas().await == Some(10)).await;
    fleet.until("both are healthy", async || fleet.health(BINDING).await == ["Healthy", "Healthy"]).await;

    let more = Patch::Merge(json!({ "spec": { "replicas": 20 } }));
    workloads(&fleet.home).patch("batch", &PatchParams::default(), &more).await.unwrap();
    fleet.until("twenty are", async || fleet.workload_replicas().await == [Some(4), Some(16)]).await;
    fleet.until("fewer are ready", async || fleet.health(BINDING).await == ["Unhealthy", "Unhealthy"]).await;
    let paused = workloads(&fleet.members[0]).get("batch").await.unwrap().data["spec"]["paused"].clone();
    assert_eq!(paused, true, "who pauses it on a member is not overruled");
}
