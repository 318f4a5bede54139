//! Tests of workloads in one embedded server with a simulated kubelet.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

mod ownership;
mod rollouts;
mod watches;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};

use super::*;
use crate::Kubelet;

struct World {
    deployments: Api<Deployment>,
    sets: Api<ReplicaSet>,
    pods: Api<Pod>,
    server: ApiServer,
    workloads: Workloads,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl World {
    /// Starts a server, controllers and a kubelet, which make the Pods of a Deployment ready.
    fn new() -> Self {
        let server = ApiServer::new();
        let client = Client::new(server.service(), "default");
        let workloads = Workloads::for_server(&server);
        Self {
            deployments: Api::default_namespaced(client.clone()),
            sets: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client),
            tasks: vec![
                tokio::spawn(server.controllers()),
                tokio::spawn(Kubelet::for_server(&server).run()),
                tokio::spawn(workloads.clone().run()),
            ],
            server,
            workloads,
        }
    }

    async fn create(&self, replicas: i32) {
        let deployment = json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": "nginx:1" }], "terminationGracePeriodSeconds": 1 },
                },
            },
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        self.deployments.create(&PostParams::default(), &deployment).await.unwrap();
    }

    async fn patch(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.deployments.patch("web", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Returns the replicas, the ready ones and the ones of the newest template, once nothing changes any more.
    async fn wait_until_settled(&self) -> (i32, i32, i32) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(self.workloads.observed_revision() >= self.server.revision_of("", "pods"));
        let deployment = self.deployments.get("web").await.unwrap();
        let status = deployment.status.unwrap();
        assert_eq!(status.observed_generation, deployment.metadata.generation);
        let of = |n: Option<i32>| n.unwrap_or(0);
        (of(status.replicas), of(status.ready_replicas), of(status.updated_replicas))
    }

    async fn pods(&self) -> Vec<Pod> {
        self.pods.list(&ListParams::default()).await.unwrap().items
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test(start_paused = true)]
async fn deployment_gets_its_ready_replicas() {
    let world = World::new();
    world.create(3).await;
    assert_eq!(world.wait_until_settled().await, (3, 3, 3));
    let conditions = json!(world.deployments.get("web").await.unwrap().status.unwrap().conditions);
    for (n, kind) in ["Available", "Progressing"].into_iter().enumerate() {
        assert_eq!((&conditions[n]["type"], &conditions[n]["status"]), (&json!(kind), &json!("True")));
    }
    assert_eq!(conditions.as_array().unwrap().len(), 2);
    for replicas in [5, 0, 2] {
        world.patch(json!({ "replicas": replicas })).await;
        assert_eq!(world.wait_until_settled().await, (replicas, replicas, replicas));
        assert_eq!(i32::try_from(world.pods().await.len()), Ok(replicas));
    }
    let one = world.pods().await[0].name_any();
    world.pods.delete(&one, &DeleteParams::default()).await.unwrap();
    assert_eq!(world.wait_until_settled().await, (2, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn new_template_replaces_pods_once_ready() {
    let world = World::new();
    world.create(2).await;
    world.wait_until_settled().await;
    let image = json!({ "template": { "spec": { "containers": [{ "name": "web", "image": "nginx:2" }] } } });
    world.patch(image).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.pods().await.len(), 3, "the old Pods are kept until a new one is ready, one at a time");
    assert_eq!(world.wait_until_settled().await, (2, 2, 2));
    let images: Vec<_> =
        world.pods().await.iter().map(|pod| pod.spec.clone().unwrap().containers[0].image.clone()).collect();
    assert_eq!(images, [Some("nginx:2".to_owned()), Some("nginx:2".to_owned())]);
    assert_eq!(world.sets.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn settled_deployment_causes_no_writes_and_is_collected() {
    let world = World::new();
    world.create(2).await;
    world.wait_until_settled().await;
    let revision = world.server.revision();
    world.wait_until_settled().await;
    assert_eq!(world.server.revision(), revision);
    world.deployments.delete("web", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.pods().await.is_empty());
    assert!(world.sets.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn revisions_count_templates_and_rollbacks() {
    let world = World::new();
    world.create(1).await;
    world.wait_until_settled().await;
    let image = |image: &str| json!({ "template": { "spec": { "containers": [{ "name": "web", "image": image }] } } });
    let numbers = async || {
        world.wait_until_settled().await;
        let annotation = |annotations: &std::collections::BTreeMap<String, String>, name: &str| {
            annotations.get(&format!("deployment.kubernetes.io/{name}")).cloned().unwrap_or_default()
        };
        let revision = annotation(world.deployments.get("web").await.unwrap().annotations(), "revision");
        let sets = world.sets.list(&ListParams::default()).await.unwrap().items;
        let of = |set: &ReplicaSet| {
            format!(
                "{} {}",
                annotation(set.annotations(), "revision"),
                annotation(set.annotations(), "revision-history")
            )
        };
        let mut revisions: Vec<_> = sets.iter().map(of).collect();
        revisions.sort();
        (revision, revisions)
    };
    assert_eq!(numbers().await, ("1".into(), vec!["1 ".into()]));
    world.patch(image("nginx:2")).await;
    assert_eq!(numbers().await, ("2".into(), vec!["1 ".into(), "2 ".into()]));
    world.patch(image("nginx:1")).await;
    assert_eq!(numbers().await, ("3".into(), vec!["2 ".into(), "3 1".into()]));
    world.patch(image("nginx:2")).await;
    assert_eq!(numbers().await, ("4".into(), vec!["3 1".into(), "4 2".into()]));
}

#[tokio::test(start_paused = true)]
async fn new_template_of_paused_deployment_waits() {
    let world = World::new();
    world.create(1).await;
    world.wait_until_settled().await;
    let image = json!({ "spec": { "containers": [{ "name": "web", "image": "nginx:2" }] } });
    world.patch(json!({ "paused": true, "template": image })).await;
    assert_eq!(world.wait_until_settled().await, (1, 1, 0));
    assert_eq!(world.sets.list(&ListParams::default()).await.unwrap().items.len(), 1);
    world.patch(json!({ "paused": false })).await;
    assert_eq!(world.wait_until_settled().await, (1, 1, 1));
}

/// Creates a `ReplicaSet` with two Pods.
async fn create_set(sets: &Api<ReplicaSet>) {
    let set = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "nginx:1" }] },
            },
        },
    });
    sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rejected_pod_sets_condition_of_deployment() {
    let world = World::new();
    let quotas = Api::<ResourceQuota>::default_namespaced(Client::new(world.server.service(), "default"));
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "1" } } });
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.create(2).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let reason = async || {
        let conditions = json!(world.deployments.get("web").await.unwrap().status.unwrap().conditions);
        let failure = conditions.as_array().unwrap().iter().find(|known| known["type"] == "ReplicaFailure").cloned();
        failure.map(|failure| failure["reason"].clone())
    };
    assert_eq!(reason().await, Some(json!("FailedCreate")));
    quotas.delete("q", &DeleteParams::default()).await.unwrap();
    assert_eq!(world.wait_until_settled().await, (2, 2, 2));
    assert_eq!(reason().await, None);
}

#[tokio::test(start_paused = true)]
async fn rejected_set_is_retried_with_backoff() {
    let world = World::new();
    let quotas = Api::<ResourceQuota>::default_namespaced(Client::new(world.server.service(), "default"));
    let quota = json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": "0" } } });
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    create_set(&world.sets).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let requests = world.server.requests();
    let is_rejected = |request: &&kctl_apiserver::RequestRecord| {
        (request.verb, request.resource.as_str(), request.code) == ("create", "pods", 403)
    };
    let n = requests.iter().filter(is_rejected).count();
    assert!((5..=15).contains(&n), "{n} attempts in a minute");
    quotas.delete("q", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(world.pods().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn rejected_pod_does_not_stop_other_sets() {
    let world = World::new();
    let client = Client::new(world.server.service(), "default");
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "aaa" } })).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let quotas = Api::<ResourceQuota>::namespaced(client.clone(), "aaa");
    let quota = |n_pods: &str| json!({ "metadata": { "name": "q" }, "spec": { "hard": { "pods": n_pods } } });
    let one = serde_json::from_value(quota("1")).unwrap();
    quotas.create(&PostParams::default(), &one).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let limited = Api::<ReplicaSet>::namespaced(client, "aaa");
    create_set(&limited).await;
    create_set(&world.sets).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = async |sets: &Api<ReplicaSet>| sets.get("web").await.unwrap().status.unwrap();
    assert_eq!(status(&world.sets).await.ready_replicas, Some(2));
    let failed = status(&limited).await;
    let condition = json!(failed.conditions.as_ref().unwrap()[0]);
    assert_eq!((failed.ready_replicas, &condition["type"]), (Some(1), &json!("ReplicaFailure")));
    assert_eq!(condition["reason"], "FailedCreate");
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("exceeded quota") && !message.contains("Status {"), "{message}");
    // Retries fail with other Pod names, but write nothing.
    let revision = world.server.revision();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(world.server.revision(), revision);
    assert!(world.workloads.is_settled().await.is_err());
    quotas.patch("q", &PatchParams::default(), &Patch::Merge(quota("2"))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mended = status(&limited).await;
    assert_eq!((mended.ready_replicas, mended.conditions), (Some(2), None));
}
