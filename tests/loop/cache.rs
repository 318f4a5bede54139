//! Invariants 6 and 11: the cache never goes back in time, has the process's own writes at once, and never holds
//! managedFields.

use kctl::{
    kube::api::{DeleteParams, Patch, PatchParams, PostParams},
    manager::View,
    prelude::*,
};
use kctl_tests::Fault;

use crate::{
    watch::source_of,
    world::{Log, With, World, advance_seconds, app, pod, text},
};

/// Brings the number of Pods to the number in `text`. Logs how many Pods the reconcile sees before and after.
fn counting(log: &Log) -> App {
    let log = log.clone();
    app().configs(move |config, cx| {
        let log = log.clone();
        async move {
            let wanted: usize = text(&config).parse()?;
            let pods = cx.owned::<Pod>();
            for n in pods.len()..wanted {
                pods.create(pod(&format!("{}-{n}", config.name_any()))).await?;
            }
            for pod in pods.iter().skip(wanted) {
                pods.delete(&pod).await?;
            }
            log.add(format!("{} {} {}", pods.len(), cx.owned::<Pod>().len(), cx.store::<Pod>().len()));
            Ok(Action::await_change())
        }
    })
}

async fn start(log: &Log) -> (World, View) {
    let mut world = World::new();
    let view = world.run(counting(log)).await;
    advance_seconds(1).await;
    (world, view)
}

#[tokio::test(start_paused = true)]
async fn reconcile_and_its_successor_read_their_own_writes() {
    let log = Log::default();
    let (world, _view) = start(&log).await;
    world.stop_reads("pods");
    world.set("a", "3").await;
    advance_seconds(5).await;
    world.set("a", "03").await;
    advance_seconds(5).await;
    assert_eq!(log.take().last().unwrap(), "3 3 3");
    assert_eq!(world.n_requests("create", "pods"), 3, "none is created twice, although no watch has reported them");
    world.set("a", "1").await;
    advance_seconds(5).await;
    world.set("a", "01").await;
    advance_seconds(5).await;
    assert_eq!(log.take().last().unwrap(), "1 1 1");
    assert_eq!(world.n_requests("delete", "pods"), 2);
}

#[tokio::test(start_paused = true)]
async fn cache_is_current_only_after_its_late_events() {
    let (world, view) = start(&Log::default()).await;
    let pods = source_of(&view, "pods");
    let is_current = async || pods.is_current().await.unwrap();
    let made = world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
    advance_seconds(1).await;
    assert!(is_current().await, "its watch has brought it");
    world.faults.add(Fault::Break, |request| request.is_watch && request.reads("pods"));
    world.faults.cut_watches();
    advance_seconds(1).await;
    let label = kctl::json!({ "metadata": { "labels": { "color": "red" } } });
    world.pods().patch("a", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    assert!(!is_current().await, "a change is on its way");
    world.pods().delete(&made.name_any(), &DeleteParams::default()).await.unwrap();
    assert!(!is_current().await, "its end is on its way");
    world.faults.clear();
    world.faults.cut_watches();
    advance_seconds(60).await;
    assert!(is_current().await && pods.store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn snapshot_does_not_change_under_the_caller() {
    let log = Log::default();
    let (world, _view) = start(&log).await;
    world.set("a", "2").await;
    advance_seconds(5).await;
    assert_eq!(log.take()[0], "0 2 2");
}

#[tokio::test(start_paused = true)]
async fn late_watch_events_do_not_revert_own_delete() {
    let log = Log::default();
    let (world, view) = start(&log).await;
    world.stop_reads("pods");
    world.set("a", "2").await;
    advance_seconds(5).await;
    world.set("a", "0").await;
    advance_seconds(5).await;
    let seen = Log::default();
    let adds = seen.clone();
    let handler = move |change: &Change<_>, _| adds.add(if matches!(change, Change::Added(_)) { "added" } else { "" });
    source_of(&view, "pods").store().subscribe(Arc::new(handler)).await.wait_until_delivered().await;
    world.faults.clear();
    advance_seconds(60).await;
    world.set("a", "00").await;
    advance_seconds(5).await;
    assert_eq!(log.take().last().unwrap(), "0 0 0");
    assert_eq!(seen.take(), [""; 0], "the watch that comes back reports two creations and two deletions");
}

#[tokio::test(start_paused = true)]
async fn older_list_does_not_revert_an_own_write() {
    let log = Log::default();
    let (world, _view) = start(&log).await;
    // The server answers the next list at once, but the response arrives 50 seconds later.
    world
        .faults
        .add(Fault::DelayResponse(Duration::from_secs(50)), |request| request.reads("pods") && !request.is_watch);
    world.faults.add(Fault::Reject(410), |request| request.reads("pods"));
    world.faults.cut_watches();
    advance_seconds(5).await;
    assert_eq!(world.n_requests("list", "pods"), 2);
    world.set("a", "2").await;
    advance_seconds(5).await;
    world.faults.clear();
    advance_seconds(60).await;
    world.set("a", "02").await;
    advance_seconds(5).await;
    let lines = log.take();
    assert_eq!((lines[0].as_str(), lines.last().unwrap().as_str()), ("0 2 2", "2 2 2"));
    assert_eq!(world.n_requests("create", "pods"), 2);
}

#[tokio::test(start_paused = true)]
async fn create_with_lost_response_happens_once_without_watch() {
    let mut world = World::new();
    let app = app().configs(move |_, cx| async move {
        let pods = cx.owned::<Pod>();
        if pods.is_empty() {
            let mut pod = pod("");
            pod.metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
            pods.create(pod).await?;
        }
        Ok(Action::await_change())
    });
    world.run(app).await;
    advance_seconds(1).await;
    world.stop_reads("pods");
    world.faults.add(Fault::LoseResponse, |request| request.method == "POST" && request.path.ends_with("/pods"));
    world.set("a", "").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(world.pod_names().await.len(), 1);
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(world.pod_names().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cached_objects_never_hold_managed_fields() {
    let log = Log::default();
    let (world, view) = start(&log).await;
    let n_managed = |view: &View| {
        let sources = view.sources().iter();
        let objects: Vec<_> = sources.flat_map(|source| source.store().all()).collect();
        (objects.len(), objects.iter().filter(|object| object.json().contains("managedFields")).count())
    };
    // Objects come from responses to own writes and from watches, and later from lists.
    world.stop_reads("pods");
    world.set("a", "2").await;
    advance_seconds(5).await;
    assert_eq!(n_managed(&view), (3, 0));
    world.server.compact();
    world.faults.clear();
    advance_seconds(60).await;
    assert_eq!(n_managed(&view), (3, 0));
    let stored = world.server.object("", "pods", "default", "a-0").unwrap();
    assert!(stored.pointer("/metadata/managedFields").is_some(), "the server does have them");
}

#[tokio::test(start_paused = true)]
async fn one_minute_outage_neither_loses_nor_repeats_changes() {
    let mut world = World::new();
    let app = app().configs(|config, cx| async move {
        let wanted: usize = text(&config).parse()?;
        for _ in cx.owned::<Pod>().len()..wanted {
            cx.owned::<Pod>()
                .create(Pod {
                    metadata: ObjectMeta { name: None, generate_name: Some("p-".into()), ..ObjectMeta::default() },
                    ..pod("p")
                })
                .await?;
        }
        Ok(Action::await_change())
    });
    world.set("a", "1").await;
    world.set("b", "1").await;
    world.run(app).await;
    advance_seconds(10).await;
    assert_eq!(world.pod_names().await.len(), 2);
    // The server executes creates, but their responses are lost.
    world.faults.add(Fault::LoseResponse, |request| request.method == http::Method::POST);
    world.set("a", "3").await;
    advance_seconds(1).await;
    world.faults.clear();
    world.faults.add(Fault::Break, |_| true);
    world.faults.cut_watches();
    advance_seconds(60).await;
    // Changes during the outage are seen afterwards.
    world.set("b", "2").await;
    world.faults.clear();
    advance_seconds(120).await;
    assert_eq!(world.pod_names().await.len(), 5, "{:?}", world.pod_names().await);
}
