//! Backoff of a failing key: some events end its wait, and others do not.

use std::sync::atomic::{AtomicUsize, Ordering};

use kctl::{
    kube::api::{DeleteParams, Patch, PatchParams},
    prelude::*,
};

use kctl_tests::Fault;

use crate::{
    deployments_controller::{controlled_by, deployments},
    world::{Log, World, advance_seconds, app, pod},
};

/// Runs a failing reconcile for a minute, makes a change, and compares the attempts in the second after it.
async fn check(change: impl AsyncFn(&World), expected: &[&str]) {
    let (mut world, log) = (World::new(), Log::default());
    let deployment = world.create_deployment("web").await;
    world.create_pod_of("web-0", &[controlled_by(&deployment)]).await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            log.add(cx.attempt().to_string());
            async { Err("no".into()) }
        }
    });
    world.run(app).await;
    advance_seconds(60).await;
    // Attempts run at 0, 5, 15, 35 ms and so on. The next one is due after 82 s.
    assert_eq!(log.take().len(), 14);
    change(&world).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), expected);
}

/// One attempt after 14 failures. The next one waits for its full backoff.
const ONE: [&str; 1] = ["14"];
/// The attempts of a key whose failures were reset.
const ANEW: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

#[tokio::test(start_paused = true)]
async fn status_of_a_failing_primary_keeps_its_backoff() {
    let change = async |world: &World| {
        let status = Patch::Merge(kctl::json!({ "status": { "replicas": 7 } }));
        world.deployments().patch_status("web", &PatchParams::default(), &status).await.unwrap();
    };
    check(change, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn owned_change_keeps_backoff_of_failing_primary() {
    let label = async |world: &World| {
        let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "color": "red" } } }));
        world.pods().patch("web-0", &PatchParams::default(), &label).await.unwrap();
    };
    check(label, &[]).await;
    let delete = async |world: &World| {
        world.pods().delete("web-0", &DeleteParams::default()).await.unwrap();
    };
    check(delete, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn spec_change_of_failing_primary_resets_backoff() {
    let change = async |world: &World| world.patch_deployment("web", kctl::json!({ "spec": { "replicas": 7 } })).await;
    check(change, &ANEW).await;
}

#[tokio::test(start_paused = true)]
async fn metadata_change_retries_failing_primary_once() {
    let poke = kctl::json!({ "metadata": { "annotations": { "poke": "now" } } });
    check(async |world: &World| world.patch_deployment("web", poke.clone()).await, &ONE).await;
}

#[tokio::test(start_paused = true)]
async fn watched_change_retries_failing_key_once_immediately() {
    check(async |world: &World| world.set("any", "web").await, &ONE).await;
    check(async |world: &World| world.set("any", "other").await, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn failing_key_that_writes_its_status_backs_off() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            log.add("run");
            async move {
                let replicas = i32::try_from(cx.attempt())?;
                let status =
                    kctl::k8s::api::apps::v1::DeploymentStatus { replicas: Some(replicas), ..Default::default() };
                cx.patch_status(status).await?;
                Err("no".into())
            }
        }
    });
    world.run(app).await;
    advance_seconds(60).await;
    assert_eq!(log.take().len(), 14, "the same as without the writes");
}

#[tokio::test(start_paused = true)]
async fn event_during_a_wait_is_a_later_reason() {
    let (mut world, log) = (World::new(), Log::default());
    let deployment = world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            log.add(cx.reason().to_string());
            async { Err("no".into()) }
        }
    });
    world.run(app).await;
    advance_seconds(60).await;
    log.take();
    world.create_pod_of("web-0", &[controlled_by(&deployment)]).await;
    advance_seconds(60).await;
    assert_eq!(log.take(), ["Pod changed, retry"]);
}

static N_ATTEMPTS: AtomicUsize = AtomicUsize::new(0);

/// Always fails.
#[controller(backoff("10s", max = "1000s"), resync = "1s")]
async fn failing(_config: Arc<ConfigMap>, _cx: Context<failing>) -> Result<Action> {
    N_ATTEMPTS.fetch_add(1, Ordering::Relaxed);
    Err("no".into())
}

#[tokio::test(start_paused = true)]
async fn resync_keeps_the_backoff_of_a_failing_key() {
    let mut world = World::new();
    world.set("a", "1").await;
    world.run(app().controller::<failing>()).await;
    // Attempts run at 0, 10, 30, 70, 150 and 310 seconds, regardless of the resyncs in between.
    for (n_attempts, wait) in [(1, 9), (2, 20), (3, 40), (4, 80), (5, 160)] {
        advance_seconds(wait).await;
        assert_eq!(N_ATTEMPTS.load(Ordering::Relaxed), n_attempts);
    }
}

static N_GIVEN_UP: AtomicUsize = AtomicUsize::new(0);

/// Always fails, and is given up each time.
#[controller(retries = 0, resync = "1h")]
async fn hopeless(_config: Arc<ConfigMap>, _cx: Context<hopeless>) -> Result<Action> {
    N_GIVEN_UP.fetch_add(1, Ordering::Relaxed);
    Err("no".into())
}

#[tokio::test(start_paused = true)]
async fn resync_runs_key_that_was_given_up() {
    let mut world = World::new();
    world.set("a", "1").await;
    world.run(app().controller::<hopeless>()).await;
    advance_seconds(3_500).await;
    assert_eq!(N_GIVEN_UP.load(Ordering::Relaxed), 1);
    advance_seconds(7_200).await;
    assert_eq!(N_GIVEN_UP.load(Ordering::Relaxed), 3, "after 3,600 and 7,200 s");
}

#[tokio::test(start_paused = true)]
async fn retry_after_429_delays_key_without_blocking_worker() {
    let (mut world, log) = (World::new(), Log::default());
    world.create_deployment("web").await;
    let app = deployments(app(), {
        let log = log.clone();
        move |_, cx| {
            let log = log.clone();
            async move {
                if !cx.owned::<Pod>().is_empty() {
                    return Ok(Action::await_change());
                }
                let rejected = cx.owned::<Pod>().create(pod("a")).await;
                log.add(rejected.as_ref().err().map(ToString::to_string).unwrap_or_default());
                rejected?;
                Ok(Action::await_change())
            }
        }
    });
    world.faults.add(Fault::RejectFor(429, 300), |request| request.method == "POST" && request.path.ends_with("/pods"));
    world.run(app).await;
    advance_seconds(1).await;
    let log_lines = log.take();
    assert!(
        log_lines.len() == 1 && log_lines[0].ends_with("POST /api/v1/namespaces/default/pods is rejected"),
        "{log_lines:?}"
    );
    world.faults.clear();
    // A wait of more than a minute counts as a minute, so that one response can't freeze the key for a day.
    advance_seconds(58).await;
    assert_eq!(log.take(), [""; 0]);
    advance_seconds(2).await;
    assert_eq!(log.take(), [""]);
}
