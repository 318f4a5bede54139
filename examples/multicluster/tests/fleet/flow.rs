//! Tests the flow from the template to the members, and of the status back to the template.

use kctl::{json, kube::api::ListParams, prelude::*};
use multicluster::{OverridePolicy, PropagationPolicy, ResourceBinding, Work};

use crate::world::Fleet;

fn image(deployment: Option<Deployment>) -> Option<String> {
    deployment.and_then(|found| found.spec.template.spec.and_then(|spec| spec.containers[0].image.clone()))
}

#[tokio::test(start_paused = true)]
async fn ten_replicas_divide_two_to_eight() {
    let fleet = Fleet::with_web().await;
    let binding = fleet.api::<ResourceBinding>().get("deployment-web").await.unwrap();
    let clusters: Vec<_> = binding.spec.clusters.iter().map(|c| (c.name.as_str(), c.replicas)).collect();
    assert_eq!((binding.spec.replicas, clusters), (Some(10), vec![("member1", Some(2)), ("member2", Some(8))]));
    assert_eq!(fleet.health("deployment-web").await, ["Healthy", "Healthy"]);
    let status = fleet.api::<Deployment>().get("web").await.unwrap().status.unwrap();
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    assert_eq!((counts, status.observed_generation), ([Some(10); 3], Some(1)));
    assert!(status.unavailable_replicas.unwrap_or(0) == 0, "{status:?}");
    let policy = fleet.api::<PropagationPolicy>().get("web").await.unwrap();
    assert_eq!(policy.status.unwrap().selected, 2);
    let pods = fleet.api::<Pod>().list(&ListParams::default()).await.unwrap().items;
    assert!(pods.is_empty(), "nothing runs in the control plane");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_in_the_desired_state() {
    let fleet = Fleet::with_web().await;
    fleet.rest().await;
    let revisions = || fleet.servers.iter().map(kctl::apiserver::ApiServer::revision).collect::<Vec<_>>();
    let before = revisions();
    fleet.rest().await;
    assert_eq!(revisions(), before);
}

#[tokio::test(start_paused = true)]
async fn new_weights_and_replicas_are_divided_again() {
    let fleet = Fleet::with_web().await;
    let weights = json!({ "spec": { "placement": { "weights": [
        { "cluster": "member1", "weight": 1 }, { "cluster": "member2", "weight": 1 },
    ] } } });
    fleet.patch::<PropagationPolicy>("web", weights).await;
    fleet.until("half and half", async || fleet.ready("web").await == [Some(5), Some(5)]).await;
    fleet.patch::<Deployment>("web", json!({ "spec": { "replicas": 4 } })).await;
    fleet.until("two each", async || fleet.ready("web").await == [Some(2), Some(2)]).await;
    fleet.until("the template knows", async || fleet.reported_replicas("web").await == Some(4)).await;
    let one = json!({ "spec": { "placement": { "weights": [{ "cluster": "member2", "weight": 1 }] } } });
    fleet.patch::<PropagationPolicy>("web", one).await;
    fleet.until("all on one", async || fleet.ready("web").await == [None, Some(4)]).await;
    fleet
        .until("what it needs left with it", async || fleet.have::<Secret>("web-password").await == [false, true])
        .await;
    fleet.patch::<PropagationPolicy>("web", json!({ "spec": { "placement": { "replicas": "Duplicated" } } })).await;
    fleet.until("all on each", async || fleet.ready("web").await == [Some(4), Some(4)]).await;
    fleet.until("the template counts both", async || fleet.reported_replicas("web").await == Some(8)).await;
}

#[tokio::test(start_paused = true)]
async fn dependencies_follow_a_deployment_and_leave_with_it() {
    let fleet = Fleet::with_web().await;
    fleet.until("settings", async || fleet.have::<ConfigMap>("web-settings").await == [true; 2]).await;
    fleet.until("password", async || fleet.have::<Secret>("web-password").await == [true; 2]).await;
    fleet.patch::<ConfigMap>("web-settings", json!({ "data": { "greeting": "good day", "to": "all" } })).await;
    let greets = async |expected: &str| {
        let found = fleet.both::<ConfigMap>("web-settings").await.map(|found| found.and_then(|config| config.data));
        found.iter().all(|data| data.as_ref().is_some_and(|data| data.get("greeting").is_some_and(|g| g == expected)))
    };
    fleet.until("a change follows", async || greets("good day").await).await;
    fleet.patch::<ConfigMap>("web-settings", json!({ "data": { "to": null } })).await;
    let has_to = async || {
        let found = fleet.both::<ConfigMap>("web-settings").await;
        found.iter().flatten().any(|config| config.data.as_ref().is_some_and(|data| data.contains_key("to")))
    };
    fleet.until("what is dropped is dropped there", async || !has_to().await).await;
    // A second Deployment on one member needs the same Secret.
    fleet
        .apply(
            "apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: worker }\nspec:\n  resourceSelectors: [{ apiVersion: apps/v1, kind: Deployment, name: worker }]\n  propagateDeps: true\n  placement: { clusters: [member1] }",
        )
        .await;
    fleet
        .apply(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: worker }\nspec:\n  replicas: 1\n  selector: { matchLabels: { app: worker } }\n  template:\n    metadata: { labels: { app: worker } }\n    spec:\n      containers: [{ name: worker, image: worker, envFrom: [{ secretRef: { name: web-password } }] }]",
        )
        .await;
    fleet.until("the second one runs", async || fleet.ready("worker").await == [Some(1), None]).await;
    fleet.delete::<Deployment>("web").await;
    fleet.until("the first one is gone", async || fleet.have::<Deployment>("web").await == [false; 2]).await;
    fleet.until("its settings as well", async || fleet.have::<ConfigMap>("web-settings").await == [false; 2]).await;
    let left = async || fleet.have::<Secret>("web-password").await == [true, false];
    fleet.until("the secret is where the second one is", left).await;
}

#[tokio::test(start_paused = true)]
async fn overrides_apply_per_member_and_report_errors() {
    let fleet = Fleet::with_web().await;
    let images = async || fleet.both::<Deployment>("web").await.map(image);
    let (own, mirrored) = (Some("nginx:1".to_owned()), Some("mirror.example.com/nginx:1".to_owned()));
    assert_eq!(images().await, [own.clone(), mirrored.clone()]);
    let rule = |path: &str| json!({ "spec": { "rules": [{ "patch": [{ "op": "replace", "path": path, "value": "nginx:2" }] }] } });
    fleet.patch::<OverridePolicy>("mirror", rule("/metadata/name")).await;
    let message = async || fleet.api::<OverridePolicy>().get("mirror").await.unwrap().status.unwrap().message;
    fleet.until("it says what is wrong", async || message().await.contains("would make another object")).await;
    fleet.rest().await;
    assert_eq!(images().await, [own, mirrored], "existing overrides are kept");
    fleet.patch::<OverridePolicy>("mirror", rule("/spec/template/spec/containers/0/image")).await;
    let second = Some("nginx:2".to_owned());
    fleet.until("both have the image", async || images().await == [second.clone(), second.clone()]).await;
    assert_eq!(message().await, "");
}

#[tokio::test(start_paused = true)]
async fn all_clusters_follow_template_and_policy() {
    let fleet = Fleet::with_web().await;
    fleet.delete::<Deployment>("web").await;
    fleet.until("the deployments are gone", async || fleet.have::<Deployment>("web").await == [false; 2]).await;
    fleet
        .until("the pods are gone", async || {
            let pods = [fleet.on_member::<Pod>(0), fleet.on_member::<Pod>(1)];
            let mut n_pods = 0;
            for pods in pods {
                n_pods += pods.list(&ListParams::default()).await.unwrap().items.len();
            }
            n_pods == 0
        })
        .await;
    assert_eq!(fleet.have::<Service>("web").await, [true; 2]);
    fleet.delete::<PropagationPolicy>("web").await;
    fleet.until("the service is gone", async || fleet.have::<Service>("web").await == [false; 2]).await;
    let left = async || fleet.api::<Work>().list(&ListParams::default()).await.unwrap().items.len();
    fleet.until("no work is left", async || left().await == 0).await;
    assert!(fleet.api::<ResourceBinding>().list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(fleet.api::<Service>().get_opt("web").await.unwrap().is_some(), "templates are the user's");
}

#[tokio::test(start_paused = true)]
async fn missing_namespace_is_created_on_the_member() {
    let fleet = Fleet::with_web().await;
    let shop = "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }";
    fleet.apply(shop).await;
    let space = |client: &kctl::kube::Client| kctl::kube::Api::<ConfigMap>::namespaced(client.clone(), "shop");
    let prices = kctl::from_yaml("{ metadata: { name: prices }, data: { tea: '2' } }").unwrap();
    space(&fleet.home).create(&kctl::kube::api::PostParams::default(), &prices).await.unwrap();
    let policy: PropagationPolicy = kctl::from_yaml(
        "{ metadata: { name: all }, spec: { resourceSelectors: [{ apiVersion: v1, kind: ConfigMap }] } }",
    )
    .unwrap();
    let policies = kctl::kube::Api::<PropagationPolicy>::namespaced(fleet.home.clone(), "shop");
    policies.create(&kctl::kube::api::PostParams::default(), &policy).await.unwrap();
    for member in &fleet.members {
        fleet.until("it is there", async || space(member).get_opt("prices").await.unwrap().is_some()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn restart_on_old_cache_recreates_no_deleted_object() {
    let mut fleet = Fleet::with_web().await;
    let revision = fleet.servers[0].revision();
    fleet.delete::<Deployment>("web").await;
    fleet.until("it is gone", async || fleet.have::<Deployment>("web").await == [false, false]).await;
    fleet.rest().await;
    fleet.restart_on(revision).await;
    assert_eq!(fleet.have::<Deployment>("web").await, [false, false]);
}
