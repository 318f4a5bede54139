//! Objects that do not fit their type are reported, and the cache keeps their last good state.

use std::borrow::Cow;

use kctl::{
    kube::{
        Resource,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    object::Kind,
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::source::{DecodeCheck, Source};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::world::{World, advance_seconds, pod};

/// A Pod type that can't represent Pods with the label `broken`.
#[derive(Deserialize)]
#[serde(try_from = "Pod")]
struct Sound(Pod);

impl TryFrom<Pod> for Sound {
    type Error = &'static str;

    fn try_from(pod: Pod) -> Result<Self, Self::Error> {
        if pod.labels().contains_key("broken") { Err("it is broken") } else { Ok(Self(pod)) }
    }
}

impl Resource for Sound {
    type DynamicType = ();
    type Scope = <Pod as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// Starts a source that can't decode Pods with the label `broken`. Its cached Pod then gets that label.
async fn start() -> (World, Arc<Source>, JoinSet<()>) {
    let world = World::new();
    let client = world.faults.client(&world.server);
    let source = Arc::new(Source::new(client, WatchConfig::new(Kind::of::<Pod>()), Arc::default()));
    source.add_check(DecodeCheck::fits::<Sound>());
    let mut tasks = JoinSet::new();
    tasks.spawn(source.store().clone().write());
    let running = source.clone();
    tasks.spawn(async move { running.run().await });
    world.pods().create(&PostParams::default(), &pod("a")).await.unwrap();
    advance_seconds(1).await;
    let labels = Patch::Merge(kctl::json!({ "metadata": { "labels": { "broken": "yes" } } }));
    world.pods().patch("a", &PatchParams::default(), &labels).await.unwrap();
    advance_seconds(1).await;
    (world, source, tasks)
}

#[tokio::test(start_paused = true)]
async fn last_good_state_is_kept_and_reported() {
    let (_world, source, _tasks) = start().await;
    assert_eq!(source.store().len(), 1);
    assert!(source.store().all()[0].meta().labels.is_empty());
    assert_eq!(source.health().undecodable, 1);
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_that_is_deleted_leaves_the_cache() {
    let (world, source, _tasks) = start().await;
    world.pods().delete("a", &DeleteParams::default()).await.unwrap();
    advance_seconds(60).await;
    assert_eq!(source.store().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn last_good_state_survives_the_next_list() {
    let (world, source, _tasks) = start().await;
    world.stop_reads("pods");
    // Makes the watch lag behind the compaction.
    world.pods().create(&PostParams::default(), &pod("b")).await.unwrap();
    world.server.compact();
    world.faults.clear();
    advance_seconds(60).await;
    let mut names: Vec<_> = source.store().all().iter().map(|object| object.meta().name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}
