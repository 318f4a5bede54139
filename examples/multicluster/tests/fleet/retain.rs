//! Tests that fields which members set are retained.

use kctl::{
    json,
    kube::api::{Patch, PatchParams, PostParams},
    prelude::*,
};
use multicluster::Work;

use crate::world::Fleet;

async fn scale(fleet: &Fleet, replicas: i32) {
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    fleet.on_member::<Deployment>(0).patch("web", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn policy_sets_replicas_unless_an_autoscaler_does() {
    let fleet = Fleet::with_web().await;
    scale(&fleet, 6).await;
    fleet.until("it is set back", async || fleet.replicas("web").await[0] == Some(2)).await;
    let label = json!({ "metadata": { "labels": { "resourcetemplate.karmada.io/retain-replicas": "true" } } });
    fleet.patch::<Deployment>("web", label).await;
    let labelled = async || {
        let there = fleet.on_member::<Deployment>(0).get("web").await.unwrap();
        there.labels().contains_key("resourcetemplate.karmada.io/retain-replicas")
    };
    fleet.until("the label is there", labelled).await;
    scale(&fleet, 6).await;
    fleet.rest().await;
    assert_eq!(fleet.replicas("web").await, [Some(6), Some(8)]);
    fleet.until("the template counts them", async || fleet.reported_replicas("web").await == Some(14)).await;
}

#[tokio::test(start_paused = true)]
async fn service_addresses_and_pod_nodes_survive_template_changes() {
    let fleet = Fleet::with_web().await;
    fleet.apply("apiVersion: v1\nkind: Pod\nmetadata: { name: job, labels: { team: a } }\nspec: { containers: [{ name: job, image: job }] }").await;
    fleet
        .apply("apiVersion: fleet.example.com/v1alpha1\nkind: PropagationPolicy\nmetadata: { name: job }\nspec: { resourceSelectors: [{ apiVersion: v1, kind: Pod, labels: { team: a } }] }")
        .await;
    let nodes = async || {
        let pods = fleet.both::<Pod>("job").await;
        pods.map(|pod| pod.and_then(|pod| pod.spec).and_then(|spec| spec.node_name))
    };
    fleet.until("the pods have nodes", async || nodes().await.iter().all(Option::is_some)).await;
    let addresses = async || {
        let services = fleet.both::<Service>("web").await;
        services.map(|service| service.and_then(|service| service.spec).and_then(|spec| spec.cluster_ip))
    };
    let before = (nodes().await, addresses().await);
    assert!(before.1.iter().all(Option::is_some), "{before:?}");
    let label = json!({ "metadata": { "labels": { "changed": "yes" } } });
    fleet.patch::<Service>("web", label.clone()).await;
    fleet.patch::<Pod>("job", label).await;
    let changed = async || {
        let services = fleet.both::<Service>("web").await.map(|found| found.unwrap().labels().contains_key("changed"));
        let pods = fleet.both::<Pod>("job").await.map(|found| found.unwrap().labels().contains_key("changed"));
        [services, pods].concat().iter().all(|has| *has)
    };
    fleet.until("the change is there", changed).await;
    assert_eq!((nodes().await, addresses().await), before);
}

#[tokio::test(start_paused = true)]
async fn foreign_fields_are_kept_and_changed_fields_reverted() {
    let fleet = Fleet::with_web().await;
    let there = fleet.on_member::<ConfigMap>(0);
    let drift =
        Patch::Merge(json!({ "metadata": { "labels": { "own": "label" } }, "data": { "greeting": "drifted" } }));
    there.patch("web-settings", &PatchParams::default(), &drift).await.unwrap();
    let greeting = async || there.get("web-settings").await.unwrap().data.unwrap()["greeting"].clone();
    fleet.until("it is set back", async || greeting().await == "hello").await;
    let labels = async || there.get("web-settings").await.unwrap().labels().clone();
    assert_eq!(labels().await.get("own").map(String::as_str), Some("label"));
    fleet.patch::<ConfigMap>("web-settings", json!({ "metadata": { "labels": { "new": "yes" } } })).await;
    fleet.until("a new label follows", async || labels().await.contains_key("new")).await;
    fleet.patch::<ConfigMap>("web-settings", json!({ "metadata": { "labels": { "new": null } } })).await;
    fleet.until("a removed label as well", async || !labels().await.contains_key("new")).await;
    assert_eq!(labels().await.get("own").map(String::as_str), Some("label"));
    let delete = kctl::kube::api::DeleteParams::default();
    there.delete("web-settings", &delete).await.unwrap();
    fleet.until("it is made again", async || there.get_opt("web-settings").await.unwrap().is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn existing_member_object_is_untouched_and_reported() {
    let fleet = Fleet::new().await;
    let theirs: Service = kctl::from_yaml("{ metadata: { name: web }, spec: { ports: [{ port: 1 }] } }").unwrap();
    fleet.on_member::<Service>(0).create(&PostParams::default(), &theirs).await.unwrap();
    fleet.apply(crate::world::FLEET).await;
    fleet.until("the rest is done", async || fleet.ready("web").await == [Some(2), Some(8)]).await;
    let applied_message = async || {
        let work = fleet.api::<Work>().get("service-web-member1").await.unwrap();
        work.status.map(|status| status.applied_message).unwrap_or_default()
    };
    fleet.until("the work says so", async || applied_message().await.contains("already exists")).await;
    let ports = fleet.on_member::<Service>(0).get("web").await.unwrap().spec.unwrap().ports.unwrap();
    assert_eq!(ports[0].port, 1);
    assert_eq!(fleet.have::<Service>("web").await, [true; 2]);
}
