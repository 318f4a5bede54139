//! Invariant 8 and informer identity: a list makes up for missed events, and informers with the same identity list
//! once.

use kctl::{
    key::ObjectKey,
    kube::api::{DeleteParams, Patch, PatchParams, PostParams},
    manager::View,
    prelude::*,
};
use kctl_runtime::source::Source;
use kctl_tests::Fault;

use crate::world::{Log, With, World, advance_seconds, app, pod};

pub(crate) fn source_of(view: &View, plural: &str) -> Arc<Source> {
    view.sources().iter().find(|source| source.config().kind.plural == plural).unwrap().clone()
}

fn three_controllers() -> App {
    app()
        .configs(|_, _| async { Ok(Action::await_change()) })
        .secrets(|_, _| async { Ok(Action::await_change()) })
        .services(|_, _| async { Ok(Action::await_change()) })
}

#[tokio::test(start_paused = true)]
async fn controllers_share_one_list_and_watch_per_kind() {
    let mut world = World::new();
    world.run(three_controllers()).await;
    advance_seconds(60).await;
    for resource in ["pods", "configmaps", "secrets", "services"] {
        let counted = (world.n_requests("list", resource), world.n_requests("watch", resource));
        assert_eq!(counted, (1, 1), "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_that_streams_its_state_is_never_listed() {
    let mut world = World::new();
    world.set("a", "1").await;
    let view = world.run_streaming(three_controllers()).await;
    advance_seconds(60).await;
    assert!(view.is_idle());
    for resource in ["pods", "configmaps", "secrets", "services"] {
        let counted = (world.n_requests("list", resource), world.n_requests("watch", resource));
        assert_eq!(counted, (0, 1), "{resource}");
    }
    world.faults.cut_watches();
    world.server.compact();
    world.set("b", "2").await;
    advance_seconds(60).await;
    assert_eq!(source_of(&view, "configmaps").store().len(), 2);
    assert_eq!(world.n_requests("list", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn ended_watch_resumes_without_a_list() {
    let mut world = World::new();
    world.run(three_controllers()).await;
    advance_seconds(60).await;
    world.faults.cut_watches();
    advance_seconds(60).await;
    assert_eq!((world.n_requests("list", "pods"), world.n_requests("watch", "pods")), (1, 2));
}

/// Logs the changes that a subscriber of the Pods' store receives.
async fn listen(view: &View, log: &Log) {
    let log = log.clone();
    let handler = move |change: &Change<kctl::object::Stored>, _origin| {
        let last = change.latest().meta();
        let word = match change {
            Change::Added(_) => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted { .. } => "deleted",
        };
        log.add(format!("{word} {} {}", last.name(), last.labels.get("color").unwrap_or_default()));
    };
    source_of(view, "pods").store().subscribe(Arc::new(handler)).await.wait_until_delivered().await;
}

#[tokio::test(start_paused = true)]
async fn relist_reports_deletes_with_last_known_state() {
    let (mut world, log) = (World::new(), Log::default());
    for name in ["a", "b", "c"] {
        world.pods().create(&PostParams::default(), &pod(name)).await.unwrap();
    }
    let view = world.run(three_controllers()).await;
    listen(&view, &log).await;
    let red = Patch::Merge(kctl::json!({ "metadata": { "labels": { "color": "red" } } }));
    world.pods().patch("b", &PatchParams::default(), &red).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), ["added a ", "added b ", "added c ", "updated b red"]);

    world.stop_reads("pods");
    let blue = Patch::Merge(kctl::json!({ "metadata": { "labels": { "color": "blue" } } }));
    world.pods().patch("b", &PatchParams::default(), &blue).await.unwrap();
    world.pods().delete("b", &DeleteParams::default()).await.unwrap();
    world.pods().delete("c", &DeleteParams::default()).await.unwrap();
    world.pods().create(&PostParams::default(), &pod("c")).await.unwrap();
    world.server.compact();
    advance_seconds(10).await;
    assert!(log.take().is_empty());
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(log.take(), ["deleted b red", "deleted c ", "added c "], "blue was never known");
}

#[tokio::test(start_paused = true)]
async fn missed_delete_of_owned_object_reconciles_owner() {
    let mut world = World::new();
    world.set("a", "1").await;
    let app = app().configs(|_, cx| async move {
        let pods = cx.owned::<Pod>();
        if pods.is_empty() {
            pods.create(pod_with_generated_name()).await?;
        }
        Ok(Action::await_change())
    });
    let view = world.run(app).await;
    advance_seconds(1).await;
    let first = world.pod_names().await;
    world.stop_reads("pods");
    world.pods().delete(&first[0], &DeleteParams::default()).await.unwrap();
    world.server.compact();
    advance_seconds(10).await;
    assert_eq!(world.pod_names().await.len(), 0);
    world.faults.clear();
    advance_seconds(60).await;
    let second = world.pod_names().await;
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
    let key = ObjectKey::new(Some("default"), &second[0]);
    assert!(source_of(&view, "pods").store().get(&key).is_some());
}

fn pod_with_generated_name() -> Pod {
    let mut pod = pod("");
    pod.metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
    pod
}

#[tokio::test(start_paused = true)]
async fn temporarily_rejected_list_is_retried() {
    let (mut world, log) = (World::new(), Log::default());
    let view = world.run(three_controllers()).await;
    listen(&view, &log).await;
    world.faults.add(Fault::Reject(500), |request| request.reads("pods"));
    world.faults.cut_watches();
    world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
    advance_seconds(120).await;
    assert!(log.take().is_empty());
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(log.take(), ["added a "]);
}
