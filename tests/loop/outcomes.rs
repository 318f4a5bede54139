//! The fate of a key after its reconcile: growing backoff, waits that an error or an action names, panics, and durations
//! beyond the clock's range. `own_writes_backoff.rs` has exhausted retries.

use kctl::prelude::*;
use tokio::time::Instant;

use crate::world::{Log, With, World, advance_seconds, app, text};

/// Runs a controller that returns `result` for each string and attempt. Logs milliseconds, attempts and strings.
async fn run(result: impl Fn(&str, u32) -> Result<Action> + Send + Sync + 'static) -> (World, Log) {
    let (mut world, log, begin) = (World::new(), Log::default(), Instant::now());
    world.set("a", "1").await;
    let app = app().configs({
        let log = log.clone();
        move |config, cx| {
            log.add(format!("{} ms, attempt {}, {}", begin.elapsed().as_millis(), cx.attempt(), text(&config)));
            let result = result(&text(&config), cx.attempt());
            async { result }
        }
    });
    world.run(app).await;
    (world, log)
}

#[tokio::test(start_paused = true)]
async fn backoff_grows_and_restarts_after_a_success() {
    let (world, log) = run(|_, attempt| if attempt < 4 { Err("no".into()) } else { Ok(Action::await_change()) }).await;
    advance_seconds(1).await;
    let waits = ["0 ms, attempt 0", "5 ms, attempt 1", "15 ms, attempt 2", "35 ms, attempt 3", "75 ms, attempt 4"];
    assert_eq!(log.take(), waits.map(|line| format!("{line}, 1")));
    world.set("a", "2").await;
    advance_seconds(1).await;
    let later = [1000, 1005, 1015, 1035, 1075];
    assert_eq!(log.take(), [0, 1, 2, 3, 4].map(|n| format!("{} ms, attempt {n}, 2", later[n])));
}

#[tokio::test(start_paused = true)]
async fn terminal_error_is_retried_only_after_change() {
    let (world, log) = run(|text, _| match text {
        "1" => Err::<Action, _>("no").terminal(),
        _ => Err::<Action, _>("no").terminal().context("while it tried"),
    })
    .await;
    advance_seconds(3600).await;
    assert_eq!(log.take(), ["0 ms, attempt 0, 1"]);
    world.set("a", "wrapped").await;
    advance_seconds(3600).await;
    assert_eq!(log.take(), ["3600000 ms, attempt 0, wrapped"]);
}

#[tokio::test(start_paused = true)]
async fn requested_wait_of_an_error_replaces_its_backoff() {
    let (_world, log) = run(|_, attempt| match attempt {
        0 => Err::<Action, _>("no").retry_after(Duration::from_secs(7)),
        1 => Err("no".into()),
        _ => Ok(Action::await_change()),
    })
    .await;
    advance_seconds(60).await;
    assert_eq!(log.take(), ["0 ms, attempt 0, 1", "7000 ms, attempt 1, 1", "7010 ms, attempt 2, 1"]);
}

#[tokio::test(start_paused = true)]
async fn requeue_resets_failures_and_yields_to_a_change() {
    let (world, log) =
        run(|_, attempt| if attempt < 1 { Err("no".into()) } else { Ok(Action::requeue(Duration::from_secs(60))) })
            .await;
    advance_seconds(30).await;
    assert_eq!(log.take(), ["0 ms, attempt 0, 1", "5 ms, attempt 1, 1"]);
    world.set("a", "2").await;
    advance_seconds(40).await;
    assert_eq!(log.take(), ["30000 ms, attempt 0, 2", "30005 ms, attempt 1, 2"], "the requeue is dropped");
    advance_seconds(21).await;
    assert_eq!(log.take()[0], "90005 ms, attempt 0, 2");
}

#[tokio::test(start_paused = true)]
async fn huge_requeue_delay_neither_panics_nor_blocks_changes() {
    for wait in [Duration::from_secs(10 * 365 * 86_400), Duration::MAX] {
        let (world, log) = run(move |_, _| Ok(Action::requeue(wait))).await;
        advance_seconds(86_400).await;
        world.set("a", "2").await;
        advance_seconds(86_400).await;
        assert_eq!(log.take(), ["0 ms, attempt 0, 1", "86400000 ms, attempt 0, 2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_one_key_stops_no_other() {
    let (world, log) = run(|text, _| {
        assert_ne!(text, "panics", "planted");
        Ok(Action::await_change())
    })
    .await;
    world.set("b", "panics").await;
    for n in 0..3 {
        advance_seconds(1).await;
        world.set("a", &format!("late {n}")).await;
    }
    advance_seconds(1).await;
    let calm: Vec<_> = log.take().into_iter().filter(|line| !line.ends_with("panics")).collect();
    assert_eq!(calm.len(), 4, "{calm:?}");
}

#[tokio::test(start_paused = true)]
async fn controller_added_twice_is_rejected() {
    let twice = app().configs(|_, _| async { Ok(Action::await_change()) });
    let twice = twice.configs(|_, _| async { Ok(Action::await_change()) });
    let world = World::new();
    let error = twice.manager(world.client.clone()).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.starts_with("the controller `configmap` (") && error.contains("world.rs"), "{error}");
    assert!(error.ends_with("is added twice; remove one of the two calls"), "{error}");
}

#[controller(name = "twin")]
async fn first_twin(_config: Arc<ConfigMap>, _cx: Context<first_twin>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(name = "twin")]
async fn second_twin(_config: Arc<ConfigMap>, _cx: Context<second_twin>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Another name of a kind: the attribute can't see through it, and the app can.
type SecretAgain = Secret;

#[controller(name = "two relations", owns = Secret, reads = SecretAgain(live(cluster)))]
async fn two_relations(_config: Arc<ConfigMap>, _cx: Context<two_relations>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(name = "no namespace", namespaces = none())]
async fn no_namespace(_config: Arc<ConfigMap>, _cx: Context<no_namespace>) -> Result<Action> {
    Ok(Action::await_change())
}

fn none() -> Vec<String> {
    Vec::new()
}

#[controller(name = "no time", resync = Duration::ZERO)]
async fn no_time(_config: Arc<ConfigMap>, _cx: Context<no_time>) -> Result<Action> {
    Ok(Action::await_change())
}

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Plain",
    namespaced,
    status = "PlainStatus",
    status_subresource = false
)]
pub(crate) struct PlainSpec {
    pub host: String,
}

#[schema]
pub(crate) struct PlainStatus {
    pub ready: bool,
}

#[controller]
async fn plain(_plain: Arc<Plain>, _cx: Context<plain>) -> Result<Action> {
    Ok(Action::await_change())
}

#[controller(primary(read_only))]
async fn plain_reader(_plain: Arc<Plain>, _cx: Context<plain_reader>) -> Result<Action> {
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn contradictions_in_expressions_are_rejected() {
    let app = || App::new("contradictions");
    for (app, problem) in [
        (app().controller::<first_twin>().controller::<second_twin>(), "two controllers are named `twin`: "),
        (app().controller::<two_relations>(), "Secret is declared twice: `owns = Secret` and `reads = "),
        (app().controller::<no_namespace>(), "`namespaces` is empty, which would be all namespaces\nhelp: "),
        (
            app().controller::<plain>(),
            "`cx.patch_status` has no subresource: `Plain` says `status_subresource = false`",
        ),
        (app().controller::<no_time>(), "`resync` is zero\nhelp: "),
    ] {
        let client = World::new().client.clone();
        let error = app.manager(client).await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(problem) && error.contains("outcomes.rs:"), "{error}");
    }
    let reader = app().controller::<plain_reader>();
    assert!(!reader.specs()[0].has_status);
    reader.manager(World::new().client.clone()).await.expect("it does not write the status");
}
