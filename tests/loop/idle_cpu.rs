//! An idle program costs no CPU. The tests count wake-ups of the runtime with simulated time, so that the machine's
//! load does not matter.

use std::{collections::BTreeMap, future::Future};

use kctl::prelude::*;
use tokio::{runtime, time::Duration};

use crate::world::{Log, With, World, advance_seconds, app, pod};

/// Length of the measurement, in which nothing changes.
const HOUR: Duration = Duration::from_secs(3600);
/// Number of the app's watches: its primaries and the objects that they own.
const N_WATCHES: u64 = 2;
/// Maximum number of watch requests. A watch lasts at least five minutes, as in client-go.
const N_WATCHES_MAX: u64 = N_WATCHES * 12;
/// Maximum number of wake-ups: one bookmark per minute and watch, and each new watch. Each passes through the
/// connection, the source and the store.
const N_WAKES_MAX: u64 = (N_WATCHES * 60 + N_WATCHES_MAX) * 6;

/// Runs a test in a runtime with simulated time, and passes the runtime's handle.
fn in_runtime<Fut: Future<Output = ()>>(test: impl FnOnce(runtime::Handle) -> Fut) {
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test(runtime.handle().clone()));
}

/// Returns the number of wake-ups of the runtime in a quiet hour.
async fn count_wake_ups(handle: &runtime::Handle) -> u64 {
    let before = handle.metrics().worker_park_count(0);
    tokio::time::sleep(HOUR).await;
    handle.metrics().worker_park_count(0) - before
}

/// Returns the wake-ups and the requests of an idle app with `n_objects` primaries, in one hour.
async fn measure_idle_hour(handle: &runtime::Handle, n_objects: u32) -> (u64, BTreeMap<&'static str, u64>) {
    let (mut world, log) = (World::new(), Log::default());
    let reconciled = log.clone();
    let app = app().configs(move |config, cx| {
        reconciled.add(config.name_any());
        async move {
            if cx.owned::<Pod>().is_empty() {
                cx.owned::<Pod>().create(pod(&config.name_any())).await?;
            }
            Ok(Action::await_change())
        }
    });
    let view = world.run(app).await;
    for n in 0..n_objects {
        world.set(&format!("config-{n}"), "text").await;
    }
    advance_seconds(60).await;
    assert!(view.is_idle() && log.take().len() >= n_objects as usize, "{:?}", view.unfinished_work());
    let n_before = world.server.requests().len();
    let woken = count_wake_ups(handle).await;
    assert_eq!(log.take(), [""; 0], "nothing is reconciled");
    let mut requests = BTreeMap::new();
    for request in world.server.requests().split_off(n_before) {
        *requests.entry(request.verb).or_default() += 1;
    }
    world.stop().await;
    (woken, requests)
}

#[test]
fn idle_controllers_wake_only_for_watches() {
    in_runtime(|handle| async move {
        let (woken, requests) = measure_idle_hour(&handle, 50).await;
        assert_eq!(requests.keys().copied().collect::<Vec<_>>(), ["watch"], "{requests:?}");
        assert!(requests["watch"] <= N_WATCHES_MAX, "{requests:?}");
        assert!(woken <= N_WAKES_MAX, "woken {woken} times in an hour: something looks around by itself");
    });
}

#[test]
fn idle_cost_is_independent_of_the_object_count() {
    in_runtime(|handle| async move {
        let ((few, _), (many, _)) = (measure_idle_hour(&handle, 2).await, measure_idle_hour(&handle, 200).await);
        // Watches end at random times, so the number of new watches in an hour varies.
        assert!(many.abs_diff(few) <= 4 * 12, "woken {few} and {many} times in an hour");
    });
}
