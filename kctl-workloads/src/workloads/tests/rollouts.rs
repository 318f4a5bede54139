//! Tests rollouts from one template to another, with the steps that the deployment controller of Kubernetes 1.36 takes.

use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::*;

const REVISION: &str = "deployment.kubernetes.io/revision";

fn image(image: &str) -> Value {
    json!({ "template": { "spec": { "containers": [{ "name": "web", "image": image }] } } })
}

/// Returns the template with Pods that do not become ready for a long time.
fn slow() -> Value {
    json!({ "template": { "metadata": { "annotations": { "kubelet.kctl.dev/stage": "slow" } } } })
}

impl World {
    /// Returns the revision, the earlier revisions and the replicas of each set, by revision.
    async fn revisions(&self) -> Vec<(String, Option<String>, i32)> {
        let sets = self.sets.list(&ListParams::default()).await.unwrap().items;
        let of = |set: &ReplicaSet| {
            let annotation = |name: &str| set.annotations().get(name).cloned();
            let before = annotation("deployment.kubernetes.io/revision-history");
            // The optional fields of the types differ between versions of Kubernetes.
            let replicas = json!(set)["spec"]["replicas"].as_i64().unwrap_or(1);
            (annotation(REVISION).unwrap_or_default(), before, i32::try_from(replicas).unwrap())
        };
        let mut revisions: Vec<_> = sets.iter().map(of).collect();
        revisions.sort();
        revisions
    }

    /// Returns status and reason of the condition `Progressing`.
    async fn progress(&self) -> (String, String) {
        let status = self.deployments.get("web").await.unwrap().status.unwrap_or_default();
        let conditions = json!(status.conditions);
        let known = conditions.as_array().unwrap().iter().find(|known| known["type"] == "Progressing").unwrap();
        let text = |field: &str| known[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"))
    }
}

fn at(revision: &str, before: Option<&str>, replicas: i32) -> (String, Option<String>, i32) {
    (revision.to_owned(), before.map(str::to_owned), replicas)
}

fn progressing(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn rollback_gets_new_revision_and_history_is_limited() {
    let world = World::new();
    world.create(2).await;
    world.patch(json!({ "revisionHistoryLimit": 2 })).await;
    for tag in ["nginx:1", "nginx:2", "nginx:1", "nginx:2", "nginx:3"] {
        world.patch(image(tag)).await;
        assert_eq!(world.wait_until_settled().await, (2, 2, 2));
    }
    assert_eq!(world.revisions().await, [at("3", Some("1"), 0), at("4", Some("2"), 0), at("5", None, 2)]);
    assert_eq!(world.deployments.get("web").await.unwrap().annotations()[REVISION], "5");
    world.patch(image("nginx:4")).await;
    world.wait_until_settled().await;
    assert_eq!(world.revisions().await, [at("4", Some("2"), 0), at("5", None, 0), at("6", None, 2)]);
}

#[tokio::test(start_paused = true)]
async fn replica_set_copies_annotations_of_its_deployment() {
    let world = World::new();
    world.create(4).await;
    world.wait_until_settled().await;
    let note = Patch::Merge(json!({ "metadata": { "annotations": { "kubernetes.io/change-cause": "why" } } }));
    world.deployments.patch("web", &PatchParams::default(), &note).await.unwrap();
    world.wait_until_settled().await;
    let set = world.sets.list(&ListParams::default()).await.unwrap().items.remove(0);
    let annotation = |name: &str| set.annotations().get(name).map(String::as_str);
    assert_eq!(annotation("kubernetes.io/change-cause"), Some("why"));
    assert_eq!(annotation("deployment.kubernetes.io/desired-replicas"), Some("4"));
    assert_eq!(annotation("deployment.kubernetes.io/max-replicas"), Some("5"));
}

#[tokio::test(start_paused = true)]
async fn recreate_ends_old_pods_before_new_ones() {
    let world = World::new();
    world.create(3).await;
    world.patch(json!({ "strategy": { "type": "Recreate", "rollingUpdate": null } })).await;
    world.wait_until_settled().await;
    world.patch(image("nginx:2")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let pods = world.pods().await;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod.metadata.deletion_timestamp.is_some()), "they end, and none has come");
    assert_eq!(world.sets.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert_eq!(world.wait_until_settled().await, (3, 3, 3));
}

#[tokio::test(start_paused = true)]
async fn stuck_rollout_is_reported_and_keeps_availability() {
    let world = World::new();
    world.create(5).await;
    let rolling = json!({ "maxSurge": 0, "maxUnavailable": 2 });
    world.patch(json!({ "progressDeadlineSeconds": 6, "strategy": { "rollingUpdate": rolling } })).await;
    assert_eq!(world.wait_until_settled().await, (5, 5, 5));
    world.patch(slow()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.progress().await, progressing("True", "ReplicaSetUpdated"));
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(world.progress().await, progressing("False", "ProgressDeadlineExceeded"));
    assert_eq!(world.revisions().await, [at("1", None, 3), at("2", None, 2)]);
    // All sets share the additional Pods.
    world.patch(json!({ "replicas": 8 })).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.revisions().await, [at("1", None, 5), at("2", None, 3)]);
    world.patch(json!({ "template": { "metadata": { "annotations": null } } })).await;
    assert_eq!(world.wait_until_settled().await, (8, 8, 8));
    assert_eq!(world.progress().await, progressing("True", "NewReplicaSetAvailable"));
}

#[tokio::test(start_paused = true)]
async fn paused_deployment_does_not_roll_out() {
    let world = World::new();
    world.create(2).await;
    world.wait_until_settled().await;
    world.patch(json!({ "paused": true })).await;
    world.patch(image("nginx:2")).await;
    world.patch(json!({ "replicas": 3 })).await;
    assert_eq!(world.wait_until_settled().await, (3, 3, 0));
    assert_eq!(world.progress().await, progressing("Unknown", "DeploymentPaused"));
    assert_eq!(world.revisions().await, [at("1", None, 3)]);
    world.patch(json!({ "paused": false })).await;
    assert_eq!(world.wait_until_settled().await, (3, 3, 3));
    assert_eq!(world.progress().await, progressing("True", "NewReplicaSetAvailable"));
    assert_eq!(world.revisions().await, [at("1", None, 0), at("2", None, 3)]);
}
