//! Invariants 3 and 4: a key is in at most one worker, none is lost, and a reconcile gets the object and not the event.

use std::collections::BTreeSet;

use kctl::{
    kube::{Api, api::DeleteParams},
    prelude::*,
};
use parking_lot::Mutex;

use crate::world::{Log, With, World, app, seconds, text};

/// Takes ten seconds for each object and says so.
fn slow(log: &Log) -> App {
    let (log, in_hands) = (log.clone(), Arc::new(Mutex::new(BTreeSet::new())));
    app().configs(move |config, cx| {
        let (log, in_hands) = (log.clone(), in_hands.clone());
        async move {
            if !in_hands.lock().insert(cx.key()) {
                log.add(format!("{} is in two workers", cx.key()));
            }
            log.add(format!("{} {}", config.name_any(), text(&config)));
            seconds(10).await;
            in_hands.lock().remove(&cx.key());
            Ok(Action::await_change())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn key_is_in_at_most_one_worker_and_runs_once_more_for_all_changes_meanwhile() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    world.run(slow(&log)).await;
    for version in ["2", "3", "4"] {
        seconds(1).await;
        world.set("a", version).await;
    }
    seconds(60).await;
    assert_eq!(log.take(), ["a 1", "a 4"]);
}

#[tokio::test(start_paused = true)]
async fn keys_run_side_by_side_up_to_the_concurrency() {
    let (mut world, log) = (World::new(), Log::default());
    for name in ["a", "b", "c", "d", "e"] {
        world.set(name, "1").await;
    }
    world.run(slow(&log)).await;
    seconds(1).await;
    assert_eq!(log.take(), ["a 1", "b 1", "c 1", "d 1"]);
    seconds(10).await;
    assert_eq!(log.take(), ["e 1"]);
}

#[tokio::test(start_paused = true)]
async fn no_key_is_lost_when_reconciles_fail_and_panic() {
    let (mut world, log) = (World::new(), Log::default());
    let app = app().configs({
        let log = log.clone();
        move |config, cx| {
            let log = log.clone();
            async move {
                match (text(&config).as_str(), cx.attempt()) {
                    ("fails", 0..3) => Err("not yet".into()),
                    ("panics", 0..3) => panic!("not yet"),
                    _ => {
                        log.add(config.name_any());
                        Ok(Action::await_change())
                    }
                }
            }
        }
    });
    world.run(app).await;
    for n in 0..150 {
        world.set(&format!("config-{n:03}"), ["fails", "panics", "works"][n % 3]).await;
    }
    seconds(60).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, (0..150).map(|n| format!("config-{n:03}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn object_that_is_gone_is_not_reconciled_again() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    world.run(slow(&log)).await;
    seconds(1).await;
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    seconds(60).await;
    assert_eq!(log.take(), ["a 1"]);
}
