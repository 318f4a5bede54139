//! Invariants 5 and 7: workers wait for all caches of their controller, and for no other caches.

use std::sync::OnceLock;

use kctl::{kube::api::PostParams, manager::View, prelude::*};
use kctl_tests::Fault;

use crate::world::{Log, With, World, advance_seconds, app, pod};

#[tokio::test(start_paused = true)]
async fn worker_starts_only_after_all_caches_sync() {
    let mut world = World::new();
    world.set("a", "1").await;
    for name in ["x", "y", "z"] {
        world.pods().create(&PostParams::default(), &pod(name)).await.unwrap();
    }
    world.faults.add(Fault::Delay(Duration::from_secs(10)), |request| request.reads("pods") && !request.is_watch);
    let log = Log::default();
    let app = app().configs({
        let log = log.clone();
        move |config, cx| {
            log.add(format!("{} sees {} pods", config.name_any(), cx.store::<Pod>().len()));
            async { Ok(Action::await_change()) }
        }
    });
    world.run(app).await;
    advance_seconds(9).await;
    assert!(log.take().is_empty());
    advance_seconds(2).await;
    assert_eq!(log.take(), ["a sees 3 pods"]);
}

#[tokio::test(start_paused = true)]
async fn first_worker_starts_after_all_initial_objects() {
    let mut world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        world.create_service(name).await;
    }
    let (log, view) = (Log::default(), Arc::new(OnceLock::<View>::new()));
    let app = app().services({
        let (log, view) = (log.clone(), view.clone());
        move |_service, _cx| {
            log.add(format!("{} wait", view.get().unwrap().controllers()[0].1.len()));
            async { Ok(Action::await_change()) }
        }
    });
    assert!(view.set(world.run(app).await).is_ok());
    advance_seconds(1).await;
    assert_eq!(log.take(), ["4 wait", "3 wait", "2 wait", "1 wait", "0 wait"]);
}

/// Checks the manager's log and behaviour while lists and watches of Pods are rejected, and after they are allowed
/// again.
async fn check_rejected_pods(code: u16) {
    let mut world = World::new();
    world.set("a", "1").await;
    world.create_secret("b").await;
    world.create_service("c").await;
    world.faults.add(Fault::Reject(code), |request| request.reads("pods"));
    let log = Log::default();
    let done = |log: &Log| {
        let log = log.clone();
        move |what: String| {
            log.add(what);
            async { Ok(Action::await_change()) }
        }
    };
    let (configs, secrets, services) = (done(&log), done(&log), done(&log));
    let app = app()
        .configs(move |config, _| configs(format!("config {}", config.name_any())))
        .secrets(move |secret, _| secrets(format!("secret {}", secret.name_any())))
        .services(move |service, _| services(format!("service {}", service.name_any())));
    let view = world.run(app).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["service c"], "the only one that does not declare pods");
    assert!(!view.is_idle());
    let failing: Vec<_> = view.sources().iter().filter_map(|source| source.health().failure).collect();
    assert_eq!(failing.len(), 1);
    assert_eq!(failing[0].code(), Some(code));
    assert!(failing[0].to_string().starts_with("list pods: "), "{}", failing[0]);

    world.faults.clear();
    advance_seconds(60).await;
    let mut lines = log.take();
    lines.sort();
    assert_eq!(lines, ["config a", "secret b"]);
    assert!(view.is_idle());
    assert!(view.sources().iter().all(|source| source.health().failure.is_none()));
}

#[tokio::test(start_paused = true)]
async fn forbidden_kind_holds_back_only_its_controllers() {
    check_rejected_pods(403).await;
}

#[tokio::test(start_paused = true)]
async fn missing_kind_holds_back_only_its_controllers() {
    check_rejected_pods(404).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_fails_later_stops_no_worker() {
    let mut world = World::new();
    world.create_secret("b").await;
    let log = Log::default();
    let app = app().secrets({
        let log = log.clone();
        move |secret, _| {
            log.add(secret.name_any());
            async { Ok(Action::await_change()) }
        }
    });
    let view = world.run(app).await;
    advance_seconds(1).await;
    world.faults.add(Fault::Reject(403), |request| request.reads("pods"));
    world.faults.cut_watches();
    advance_seconds(60).await;
    world.create_secret("c").await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["b", "c"]);
    let failing = view.sources().iter().filter(|source| source.health().failure.is_some()).count();
    assert_eq!(failing, 1, "but it shows");
}
