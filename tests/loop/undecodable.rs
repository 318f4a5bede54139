//! Objects that do not fit their type: reported, and the last good state stays. Where that is not so yet, the test says it.

use kctl::{
    kube::api::{DeleteParams, Patch, PatchParams, PostParams},
    object::{Kind, Stored},
    prelude::*,
    source::{Identity, Source},
};
use tokio::task::JoinSet;

use crate::world::{World, pod, seconds};

/// A source to which pods with the label `broken` are undecodable, and a pod that is cached and then breaks.
async fn start() -> (World, Arc<Source>, JoinSet<()>) {
    let world = World::new();
    let client = world.faults.client(&world.server);
    let source = Arc::new(Source::new(client, Identity::all(Kind::of::<Pod>()), Arc::default()));
    source.add_check(Arc::new(|object: &Stored| {
        let is_broken = object.meta().labels.get("broken").is_some();
        if is_broken { Stored::accept(&Kind::of::<Pod>(), "{").map(drop) } else { Ok(()) }
    }));
    let mut tasks = JoinSet::new();
    tasks.spawn(source.store().clone().write());
    let running = source.clone();
    tasks.spawn(async move { running.run().await });
    world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
    seconds(1).await;
    let labels = Patch::Merge(kctl::json!({ "metadata": { "labels": { "broken": "yes" } } }));
    world.pods().patch("a", &PatchParams::default(), &labels).await.unwrap();
    seconds(1).await;
    (world, source, tasks)
}

#[tokio::test(start_paused = true)]
async fn last_good_state_stays_and_is_reported() {
    let (_world, source, _tasks) = start().await;
    assert_eq!(source.store().len(), 1);
    assert!(source.store().all()[0].meta().labels.is_empty());
    assert_eq!(source.health().undecodable, 1);
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_that_is_deleted_leaves_the_cache() {
    let (world, source, _tasks) = start().await;
    world.pods().delete("a", &DeleteParams::default()).await.unwrap();
    seconds(60).await;
    assert_eq!(source.store().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn last_good_state_survives_the_next_list() {
    let (world, source, _tasks) = start().await;
    world.deafen("pods");
    // The watch has to lag behind the compaction.
    world.pods().create(&PostParams::default(), &pod("b")).await.unwrap();
    world.server.compact();
    world.faults.clear();
    seconds(60).await;
    let mut names: Vec<_> = source.store().all().iter().map(|object| object.meta().name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}
