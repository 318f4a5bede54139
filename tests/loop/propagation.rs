//! Deletion of dependents. API servers orphan the dependents of Jobs by default, so kctl always sends a
//! `propagationPolicy`.

use kctl::{
    k8s::api::batch::v1::Job,
    kube::{
        Api,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
};

use crate::{
    deployments_controller::controlled_by,
    world::{World, advance_seconds, app, pod, text},
};

/// Owns Jobs, and performs the action that its `ConfigMap` names.
#[controller(owns = Job)]
async fn owner(config: Arc<ConfigMap>, cx: Context<owner>) -> Result<Action> {
    let jobs = cx.owned::<Job>();
    let text = text(&config);
    if text == "create" {
        jobs.create(job("work")).or_get().await?;
    }
    if text == "converge" {
        jobs.converge::<kctl::Json>([]).await?;
    }
    for job in &jobs {
        match text.as_str() {
            "delete" => jobs.delete(job).await?,
            "background" => jobs.delete(job).background().await?,
            "foreground" => jobs.delete(job).foreground().await?,
            "orphan" => jobs.delete(job).orphan().await?,
            _ => {}
        }
    }
    Ok(Action::await_change())
}

/// Deletes Jobs that it does not own, in the way that the Secret's name says.
#[controller(reads = Job(delete, deletecollection))]
async fn stranger(secret: Arc<Secret>, cx: Context<stranger>) -> Result<Action> {
    let (jobs, way) = (cx.objects::<Job>(), secret.name_any());
    let everything = || jobs.delete_collection(Some("default"), "");
    match way.as_str() {
        "collection" => everything().await?,
        "collection-foreground" => everything().foreground().await?,
        "collection-orphan" => everything().orphan().await?,
        _ => {}
    }
    for job in cx.store::<Job>().iter() {
        match way.as_str() {
            "delete" => jobs.delete(&job).await?,
            "foreground" => jobs.delete(&job).foreground().await?,
            "orphan" => jobs.delete(&job).orphan().await?,
            _ => {}
        }
    }
    Ok(Action::await_change())
}

/// Deletes its primary, in the way that a label says.
#[controller(primary(delete))]
async fn primary(job: Arc<Job>, cx: Context<primary>) -> Result<Action> {
    match job.labels().get("way").map_or("", String::as_str) {
        "delete" => cx.delete().await?,
        "foreground" => cx.delete().foreground().await?,
        "orphan" => cx.delete().orphan().await?,
        _ => {}
    }
    Ok(Action::await_change())
}

fn job(name: &str) -> Job {
    kctl::from_json(kctl::json!({
        "metadata": { "name": name },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "a", "image": "a" }] } } },
    }))
    .unwrap()
}

fn jobs(world: &World) -> Api<Job> {
    Api::default_namespaced(world.client.clone())
}

/// Creates a Pod of the Job with a finalizer, so that the order of their deletion is visible.
async fn add_pod(world: &World) {
    let mut pod = pod("work-pod");
    let mut reference = controlled_by(&jobs(world).get("work").await.unwrap());
    reference.block_owner_deletion = Some(true);
    pod.metadata.owner_references = Some(vec![reference]);
    pod.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    world.pods().create(&PostParams::default(), &pod).await.unwrap();
}

/// Returns the state of Job and Pod after ten seconds.
async fn state_after_wait(world: &World) -> String {
    advance_seconds(10).await;
    let pod = world.pods().get("work-pod").await.unwrap();
    let (job, deleted) = (jobs(world).get_opt("work").await.unwrap(), pod.metadata.deletion_timestamp.is_some());
    let job = match job.map(|job| job.metadata.deletion_timestamp.is_some()) {
        None => "job gone",
        Some(true) => "job waits",
        Some(false) => "job there",
    };
    let pod = match (deleted, pod.owner_references().is_empty()) {
        (true, _) => "pod deleted",
        (false, true) => "pod orphaned",
        (false, false) => "pod owned",
    };
    format!("{job}, {pod}")
}

const BACKGROUND: &str = "job gone, pod deleted";
const FOREGROUND: &str = "job waits, pod deleted";
const ORPHAN: &str = "job gone, pod orphaned";

#[tokio::test(start_paused = true)]
async fn owned_job_is_deleted_with_pods_by_default() {
    let ways = [("delete", BACKGROUND), ("converge", BACKGROUND), ("background", BACKGROUND)];
    for (way, expected) in ways.into_iter().chain([("foreground", FOREGROUND), ("orphan", ORPHAN)]) {
        let mut world = World::new();
        world.run_cluster();
        world.set("a", "create").await;
        world.run(app().controller::<owner>()).await;
        advance_seconds(5).await;
        add_pod(&world).await;
        world.set("a", way).await;
        assert_eq!(state_after_wait(&world).await, expected, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn foreign_job_is_deleted_with_pods_by_default() {
    let one = [("delete", BACKGROUND), ("foreground", FOREGROUND), ("orphan", ORPHAN)];
    let all = [("collection", BACKGROUND), ("collection-foreground", FOREGROUND), ("collection-orphan", ORPHAN)];
    for (way, expected) in one.into_iter().chain(all) {
        let mut world = World::new();
        world.run_cluster();
        jobs(&world).create(&PostParams::default(), &job("work")).await.unwrap();
        add_pod(&world).await;
        world.create_secret(way).await;
        world.run(app().controller::<stranger>()).await;
        assert_eq!(state_after_wait(&world).await, expected, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn primary_job_is_deleted_with_pods_by_default() {
    for (way, expected) in [("delete", BACKGROUND), ("foreground", FOREGROUND), ("orphan", ORPHAN)] {
        let mut world = World::new();
        world.run_cluster();
        jobs(&world).create(&PostParams::default(), &job("work")).await.unwrap();
        add_pod(&world).await;
        world.run(app().controller::<primary>()).await;
        advance_seconds(5).await;
        let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "way": way } } }));
        jobs(&world).patch("work", &PatchParams::default(), &label).await.unwrap();
        assert_eq!(state_after_wait(&world).await, expected, "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_is_not_turned_into_background() {
    for way in ["delete", "converge"] {
        let mut world = World::new();
        world.run_cluster();
        world.set("a", "create").await;
        world.run(app().controller::<owner>()).await;
        advance_seconds(5).await;
        add_pod(&world).await;
        // The state after `kubectl delete --cascade=foreground`, whose deletion the cache has not seen yet.
        let held = Patch::Merge(kctl::json!({ "metadata": { "finalizers": ["foregroundDeletion"] } }));
        jobs(&world).patch("work", &PatchParams::default(), &held).await.unwrap();
        world.set("a", way).await;
        assert_eq!(state_after_wait(&world).await, FOREGROUND, "{way}");
    }
}
