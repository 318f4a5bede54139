//! Tests the division of replicas, and the messages if it is impossible.

use kctl::{
    json,
    k8s::api::core::v1::Event,
    kube::{
        Api,
        api::{ListParams, Patch, PatchParams},
    },
    prelude::*,
};
use multicluster::{MemberCluster, OverridePolicy, PropagationPolicy, ResourceBinding};

use crate::world::{CLUSTERS, Fleet};

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: app }\nspec:\n  replicas: 8\n  selector: { matchLabels: { app: app } }\n  template:\n    metadata: { labels: { app: app } }\n    spec: { containers: [{ name: app, image: app }] }";

impl Fleet {
    /// Creates two members with room for three and nine replicas, and a Deployment with eight replicas.
    async fn with_room(divided_by: &str) -> Self {
        let fleet = Self::new().await;
        fleet.apply(CLUSTERS).await;
        fleet.capacity("member1", 3).await;
        fleet.capacity("member2", 9).await;
        fleet
            .until("they are there", async || fleet.is_ready("member1").await && fleet.is_ready("member2").await)
            .await;
        fleet.apply(&format!("apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: {{ name: app }}\nspec:\n  resourceSelectors: [{{ apiVersion: apps/v1, kind: Deployment }}]\n  placement: {{ replicas: Divided, dividedBy: {divided_by} }}")).await;
        fleet.apply(DEPLOYMENT).await;
        fleet
    }

    async fn capacity(&self, cluster: &str, capacity: i32) {
        let patch = Patch::Merge(json!({ "spec": { "capacity": capacity } }));
        Api::<MemberCluster>::all(self.home.clone()).patch(cluster, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn scale(&self, replicas: i32) {
        self.patch::<Deployment>("app", json!({ "spec": { "replicas": replicas } })).await;
    }

    async fn until_replicas(&self, expected: [Option<i32>; 2]) {
        self.until(&format!("{expected:?}"), async || self.replicas("app").await == expected).await;
        self.rest().await;
        assert_eq!(self.replicas("app").await, expected, "it does not change any more");
    }

    /// Returns the messages of the events about an object with this reason.
    async fn notes(&self, name: &str, reason: &str) -> Vec<String> {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let about = events.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(name));
        about.filter(|event| event.reason.as_deref() == Some(reason)).filter_map(|event| event.message).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn division_by_room_is_proportional_and_stable() {
    let fleet = Fleet::with_room("Room").await;
    fleet.until_replicas([Some(2), Some(6)]).await;
    fleet.scale(9).await;
    fleet.until_replicas([Some(2), Some(7)]).await;
    fleet.scale(12).await;
    fleet.until_replicas([Some(3), Some(9)]).await;
    fleet.scale(13).await;
    fleet.rest().await;
    assert_eq!(fleet.replicas("app").await, [Some(3), Some(9)], "there is no room for one more");
    let failed = fleet.notes("deployment-app", "NotScheduled").await;
    assert!(failed.iter().any(|note| note.contains("available replicas 0 are not enough")), "{failed:?}");
    fleet.capacity("member1", 10).await;
    fleet.until_replicas([Some(4), Some(9)]).await;
    fleet.scale(0).await;
    fleet.until_replicas([Some(0), Some(0)]).await;
    fleet.scale(4).await;
    fleet.until_replicas([Some(2), Some(2)]).await;
}

#[tokio::test(start_paused = true)]
async fn few_clusters_are_filled_one_after_the_other() {
    let fleet = Fleet::with_room("FewClusters").await;
    fleet.until_replicas([None, Some(8)]).await;
    fleet.scale(12).await;
    fleet.until_replicas([Some(3), Some(9)]).await;
}

#[tokio::test(start_paused = true)]
async fn capacity_of_one_binding_is_unavailable_to_others() {
    let fleet = Fleet::with_room("Room").await;
    fleet.until_replicas([Some(2), Some(6)]).await;
    fleet.apply(&DEPLOYMENT.replace("name: app }", "name: other }").replace("replicas: 8", "replicas: 5")).await;
    fleet.rest().await;
    assert_eq!(fleet.replicas("other").await, [None, None], "of twelve eight are taken");
    fleet.scale(2).await;
    let goes = async || fleet.replicas("other").await.iter().flatten().sum::<i32>() == 5;
    fleet.until("what is given back is found", goes).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_clusters_are_reported_in_the_policy() {
    let fleet = Fleet::with_web().await;
    let placement = json!({ "clusters": ["edge"], "weights": [{ "cluster": "moon", "weight": 1 }] });
    fleet.patch::<PropagationPolicy>("web", json!({ "spec": { "placement": placement } })).await;
    let message =
        async || fleet.api::<PropagationPolicy>().get("web").await.unwrap().status.unwrap_or_default().message;
    let both = "there is no Cluster edge: create it, or name another cluster; there is no Cluster moon: create it, or name another cluster";
    fleet.until("the policy says it", async || message().await == both).await;
    fleet.until("it is nowhere", async || fleet.replicas("web").await == [None, None]).await;
    fleet.rest().await;
    let nowhere = "no registered cluster matches the placement";
    assert_eq!(fleet.notes("deployment-web", "NotScheduled").await, [nowhere]);
    assert_eq!(fleet.notes("service-web", "Scheduled").await.last().unwrap(), "member1, member2");
    assert_eq!(fleet.notes("deployment-web", "Scheduled").await.last().unwrap(), "member1: 2, member2: 8");

    let rules = json!([{ "clusters": ["moon"], "patch": [] }]);
    fleet.patch::<OverridePolicy>("mirror", json!({ "spec": { "rules": rules } })).await;
    let message =
        async || fleet.api::<OverridePolicy>().get("mirror").await.unwrap().status.unwrap_or_default().message;
    let moon = "there is no Cluster moon: create it, or name another cluster";
    fleet.until("so does the other one", async || message().await == moon).await;
    fleet.apply(&CLUSTERS.split("\n---\n").next().unwrap().replace("member1", "moon")).await;
    fleet.until("it is there now", async || message().await.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn health_of_unapplied_objects_is_unknown() {
    let fleet = Fleet::with_web().await;
    let rules =
        json!([{ "clusters": ["member2"], "patch": [{ "op": "replace", "path": "/spec/replicas", "value": "many" }] }]);
    fleet.patch::<OverridePolicy>("mirror", json!({ "spec": { "rules": rules } })).await;
    fleet.until("it is unknown", async || fleet.health("deployment-web").await == ["Healthy", "Unknown"]).await;
    let status = fleet.api::<ResourceBinding>().get("deployment-web").await.unwrap().status.unwrap();
    let second = json!(status.aggregated_status[1]);
    assert_eq!((&second["applied"], second.get("status")), (&json!(false), None));
    assert!(second["appliedMessage"].as_str().unwrap().contains("spec.replicas"), "{second}");
    fleet.until("the template counts the others", async || fleet.reported_replicas("web").await == Some(2)).await;
}
