//! Tests which objects belong to a Deployment or a `ReplicaSet`: orphans that match are adopted, others released.

use kube::api::PropagationPolicy;

use super::*;

#[tokio::test(start_paused = true)]
async fn recreated_deployment_adopts_its_orphaned_set() {
    let world = World::new();
    world.create(2).await;
    world.wait_until_settled().await;
    let names = async || world.pods().await.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let before = names().await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    world.deployments.delete("web", &orphan).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let sets = world.sets.list(&ListParams::default()).await.unwrap().items;
    assert!(sets.len() == 1 && sets[0].owner_references().is_empty(), "{sets:?}");
    world.create(2).await;
    assert_eq!(world.wait_until_settled().await, (2, 2, 2));
    assert_eq!(names().await, before, "the Pods are kept");
    let sets = world.sets.list(&ListParams::default()).await.unwrap().items;
    assert_eq!((sets.len(), sets[0].owner_references()[0].kind.as_str()), (1, "Deployment"));
}

#[tokio::test(start_paused = true)]
async fn relabelled_pod_leaves_its_set_and_returns() {
    let world = World::new();
    create_set(&world.sets).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let name = world.pods().await[0].name_any();
    let relabel = async |app: &str| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "app": app } } }));
        world.pods.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        world.pods().await.len()
    };
    assert_eq!(relabel("quarantine").await, 3, "it is replaced");
    assert!(world.pods.get(&name).await.unwrap().owner_references().is_empty());
    assert_eq!(relabel("web").await, 2, "it is adopted, and one Pod is too many");
    assert_eq!(world.sets.get("web").await.unwrap().status.unwrap().replicas, 2);
}

/// The selector of the set has fewer labels than its template.
#[tokio::test(start_paused = true)]
async fn adopted_pod_may_lack_labels_of_template() {
    let world = World::new();
    let pod = json!({
        "metadata": { "name": "bare", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "nginx:1" }] },
    });
    world.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let set = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web", "tier": "front" } },
                "spec": { "containers": [{ "name": "web", "image": "nginx:1" }] },
            },
        },
    });
    world.sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let status = world.sets.get("web").await.unwrap().status.unwrap();
    assert_eq!((status.replicas, status.fully_labeled_replicas), (2, Some(1)));
}
