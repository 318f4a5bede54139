//! Reasons of reconciles, as they appear in logs, and external triggers.

use kctl::{app::TRIGGERS_WAITING_MAX, prelude::*};

use crate::world::{Configs, Log, With, World, advance_seconds, app};

/// Returns a function that logs each reconcile with its reason.
fn logging(log: &Log) -> impl Fn(&str, String) + Clone + Send + Sync + 'static {
    let log = log.clone();
    move |name: &str, reason: String| log.add(format!("{name}: {reason}"))
}

#[tokio::test(start_paused = true)]
async fn reason_names_everything_that_queued_the_key() {
    let mut world = World::new();
    world.set("a", "1").await;
    let log = Log::default();
    let note = logging(&log);
    let app = app().configs(move |config, cx| {
        note(&config.name_any(), cx.reason().to_string());
        let (first, failing) = (cx.reason().is_initial(), cx.attempt() == 0 && !cx.reason().is_initial());
        async move {
            if first {
                return Ok(Action::requeue(Duration::from_secs(10)));
            }
            if cx.reason().is_requeue() {
                cx.owned::<Pod>().create(crate::world::pod("made")).await?;
            }
            if failing && cx.reason().is_triggered() {
                return Err("as asked".into());
            }
            Ok(Action::await_change())
        }
    });
    let triggers = app.triggers();
    world.run(app).await;
    advance_seconds(5).await;
    assert_eq!(log.take(), ["a: initial list"]);
    advance_seconds(10).await;
    // The controller's own write comes back as a change of an owned object. Then the Pod starts.
    let seen = log.take();
    assert_eq!(seen[0], "a: requeue");
    assert!(seen[1..].iter().all(|line| line == "a: Pod changed"), "{seen:?}");
    triggers.trigger::<Configs>(&Key::namespaced("default", "a")).unwrap();
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: trigger", "a: retry"]);
    world.set("a", "2").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: ConfigMap changed"]);
}

#[tokio::test(start_paused = true)]
async fn reason_after_a_conflict_is_not_a_requeue() {
    let mut world = World::new();
    world.set("a", "1").await;
    let log = Log::default();
    let note = logging(&log);
    let app = app().configs(move |config, cx| {
        note(&config.name_any(), cx.reason().to_string());
        let (is_first, is_conflict) = (cx.reason().is_initial(), cx.reason().is_conflict());
        async move {
            if is_first {
                let status = r#"{"reason":"Conflict","message":"the object has been modified"}"#;
                return Err(ApiError::rejected("update ConfigMap default/a", 409, None, status).into());
            }
            assert!(is_conflict);
            Ok(Action::await_change())
        }
    });
    world.run(app).await;
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a: initial list", "a: conflict"]);
}

#[tokio::test(start_paused = true)]
async fn keys_triggered_before_the_start_wait_for_it() {
    let mut world = World::new();
    world.set("a", "1").await;
    let log = Log::default();
    let note = logging(&log);
    let app = app().configs(move |config, cx| {
        note(&config.name_any(), cx.reason().to_string());
        async { Ok(Action::await_change()) }
    });
    for name in ["a", "missing"] {
        app.trigger::<Configs>(&Key::namespaced("default", name)).unwrap();
    }
    world.run(app).await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["a: initial list, trigger"], "nothing is reconciled that is not there");
}

#[tokio::test(start_paused = true)]
async fn trigger_on_reconciles_each_streamed_key() {
    let mut world = World::new();
    world.set("a", "1").await;
    let log = Log::default();
    let note = logging(&log);
    let app = app()
        .configs(move |config, cx| {
            note(&config.name_any(), cx.reason().to_string());
            async { Ok(Action::await_change()) }
        })
        .trigger_on::<Configs, _, _>(|_env| {
            futures::stream::unfold(0, |n| async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                (n < 2).then(|| (Key::namespaced("default", "a"), n + 1))
            })
        });
    world.run(app).await;
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a: initial list", "a: trigger", "a: trigger"]);
}

#[tokio::test(start_paused = true)]
async fn triggers_during_reconcile_collapse_into_one_rerun() {
    let mut world = World::new();
    world.set("a", "1").await;
    let log = Log::default();
    let note = logging(&log);
    let app = app().configs(move |config, cx| {
        note(&config.name_any(), cx.reason().to_string());
        async {
            advance_seconds(10).await;
            Ok(Action::await_change())
        }
    });
    let triggers = app.triggers();
    let view = world.run(app).await;
    advance_seconds(5).await;
    for n in 0..2 * TRIGGERS_WAITING_MAX {
        triggers.trigger::<Configs>(&Key::namespaced("default", "a")).unwrap();
        triggers.trigger::<Configs>(&Key::namespaced("default", &format!("missing-{n}"))).unwrap();
    }
    assert_eq!(view.controllers()[0].1.stats().depth, 0, "`a` is in a worker's hands, and nothing else is there");
    advance_seconds(60).await;
    assert_eq!(log.take(), ["a: initial list", "a: trigger"]);
}

#[tokio::test(start_paused = true)]
async fn excess_triggers_are_rejected_until_the_first_list() {
    let mut world = World::new();
    world.set("last", "1").await;
    world.stop_reads("configmaps");
    let log = Log::default();
    let note = logging(&log);
    let app = app().configs(move |config, cx| {
        note(&config.name_any(), cx.reason().to_string());
        async { Ok(Action::await_change()) }
    });
    let triggers = app.triggers();
    let trigger = |name: &str| triggers.trigger::<Configs>(&Key::namespaced("default", name));
    let view = world.run(app).await;
    advance_seconds(1).await;
    for n in 1..TRIGGERS_WAITING_MAX {
        trigger(&n.to_string()).unwrap();
    }
    trigger("last").unwrap();
    trigger("last").unwrap();
    let error = trigger("one-more").unwrap_err().to_string();
    let expected = "default/one-more is not enqueued: 10000 other keys wait for the first list of their kind; trigger it again later";
    assert_eq!(error, expected);
    world.faults.clear();
    advance_seconds(120).await;
    assert_eq!(log.take(), ["last: initial list, trigger"]);
    assert_eq!(view.controllers()[0].1.len(), 0);
    trigger("one-more").unwrap();
}

#[test]
fn waiting_key_is_accepted_again_at_the_bound() {
    let app = app().configs(|_config, _cx| async { Ok(Action::await_change()) });
    let trigger = |name: &str| app.trigger::<Configs>(&Key::namespaced("default", name));
    for n in 0..TRIGGERS_WAITING_MAX {
        trigger(&n.to_string()).unwrap();
    }
    trigger("0").unwrap();
    let error = trigger("one-more").unwrap_err().to_string();
    assert!(error.starts_with("default/one-more of `configmap` is not enqueued: 10000 other keys wait"), "{error}");
}

#[test]
fn unknown_controller_cannot_be_triggered() {
    let error = app().trigger::<Configs>(&Key::namespaced("default", "a")).unwrap_err();
    assert_eq!(error.to_string(), "the app has no controller `configmap`: add it by `App::controller` first");
}
