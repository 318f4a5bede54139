//! Invariants 3 and 4: one worker at a time processes a key, no key is lost, and a reconcile gets the object instead of
//! the event.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU32, Ordering},
};

use kctl::{
    kube::{Api, api::DeleteParams},
    prelude::*,
};
use parking_lot::Mutex;

use crate::world::{Log, RETRIES, With, World, advance_seconds, app, text};

/// Takes ten seconds for each object, and logs keys that two workers process.
fn slow(log: &Log) -> App {
    let (log, in_hands) = (log.clone(), Arc::new(Mutex::new(BTreeSet::new())));
    app().configs(move |config, cx| {
        let (log, in_hands) = (log.clone(), in_hands.clone());
        async move {
            if !in_hands.lock().insert(cx.key()) {
                log.add(format!("{} is in two workers", cx.key()));
            }
            log.add(format!("{} {}", config.name_any(), text(&config)));
            advance_seconds(10).await;
            in_hands.lock().remove(&cx.key());
            Ok(Action::await_change())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn changes_during_reconcile_rerun_key_once() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    world.run(slow(&log)).await;
    for version in ["2", "3", "4"] {
        advance_seconds(1).await;
        world.set("a", version).await;
    }
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a 1", "a 4"]);
}

#[tokio::test(start_paused = true)]
async fn keys_reconcile_in_parallel_up_to_concurrency() {
    let (mut world, log) = (World::new(), Log::default());
    for name in ["a", "b", "c", "d", "e"] {
        world.set(name, "1").await;
    }
    world.run(slow(&log)).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a 1", "b 1", "c 1", "d 1"]);
    advance_seconds(10).await;
    assert_eq!(log.take(), ["e 1"]);
}

#[tokio::test(start_paused = true)]
async fn failing_and_panicking_reconciles_lose_no_key() {
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
    advance_seconds(60).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, (0..150).map(|n| format!("config-{n:03}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn object_that_is_gone_is_not_reconciled_again() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    world.run(slow(&log)).await;
    advance_seconds(1).await;
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a 1"]);
}

/// Fails with these errors in order, then succeeds, and checks the number of reconciles.
async fn check_retries(fails: impl Fn(u32) -> Option<kctl::Error> + Send + Sync + 'static, n_runs: u32) {
    let (mut world, runs) = (World::new(), Arc::new(Mutex::new(0)));
    world.set("a", "1").await;
    let counted = runs.clone();
    let app = app().configs(move |_, _| {
        *counted.lock() += 1;
        let result = fails(*counted.lock()).map_or(Ok(Action::await_change()), Err);
        async { result }
    });
    world.run(app).await;
    advance_seconds(20_000).await;
    assert_eq!(*runs.lock(), n_runs);
}

fn conflict() -> kctl::Error {
    let status = r#"{"reason":"Conflict","message":"the object has been modified"}"#;
    ApiError::rejected("update ConfigMap default/a", 409, None, status).into()
}

#[tokio::test(start_paused = true)]
async fn failing_key_runs_once_plus_its_retries() {
    check_retries(|_| Some("no".into()), 1 + RETRIES).await;
}

#[tokio::test(start_paused = true)]
async fn key_that_succeeds_at_last_is_not_dropped() {
    check_retries(|run| (run <= RETRIES).then(|| "no".into()), 1 + RETRIES).await;
}

#[tokio::test(start_paused = true)]
async fn conflicts_do_not_use_up_the_retries() {
    let fails = |run| Some(if run <= RETRIES { conflict() } else { "no".into() });
    check_retries(fails, 1 + 2 * RETRIES).await;
}

#[tokio::test(start_paused = true)]
async fn errors_with_retry_after_count_toward_retries() {
    let fails = |run| {
        let failed = Err::<Action, _>("no").retry_after(Duration::from_secs(1)).unwrap_err();
        (run <= 10 * RETRIES).then_some(failed)
    };
    check_retries(fails, 1 + RETRIES).await;
}

static N_RESYNCED: AtomicU32 = AtomicU32::new(0);

/// Counts its reconciles.
#[controller(resync = "10m")]
async fn resynced(_config: Arc<ConfigMap>, _cx: Context<resynced>) -> Result<Action> {
    N_RESYNCED.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn object_is_reconciled_again_after_each_resync_period() {
    let mut world = World::new();
    world.set("a", "1").await;
    world.run(app().controller::<resynced>()).await;
    advance_seconds(3_700).await;
    assert_eq!(N_RESYNCED.load(Ordering::Relaxed), 7);
}
