//! Keys that were handed over and have come back: tasks of the earlier tenure write nothing, and objects are applied again.

use kctl::{
    json,
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    prelude::*,
};
use kctl_tests::Faults;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{N_KEYS, RingWorld, config, sharder::DRAIN_LABEL};
use crate::{
    lease_candidates::advance_seconds,
    replicas::{Replica, state_of},
    shard_tenures::{Spawning, Tasks},
};

/// The key whose reconcile takes long.
const BUSY: &str = "config-0";

#[tokio::test(start_paused = true)]
async fn spawned_task_writes_nothing_once_its_key_moved() {
    let world = RingWorld::new(Duration::ZERO).await;
    let (release, may_write) = watch::channel(false);
    let tasks = Arc::<Mutex<Tasks>>::default();
    let start = async |shard: &'static str| {
        let (may_write, tasks, faults) = (may_write.clone(), tasks.clone(), Faults::default());
        let app = App::new("podset").controller_with(move |_env| {
            std::future::ready(Ok(Spawning { may_write: may_write.clone(), tasks: tasks.clone() }))
        });
        let client = faults.client(&world.server);
        let manager = app.manager_in_ring(client.clone(), client, config(shard, 1)).await.unwrap();
        let server = world.server.clone();
        Replica::start(manager.clock(Arc::new(move || server.now())), faults)
    };
    let a = start("a").await;
    advance_seconds(5).await;
    assert_eq!(tasks.lock().spawned.len(), N_KEYS);
    let b = start("b").await;
    advance_seconds(5).await;
    let moved = b.cached_names("configmaps");
    assert!(!moved.is_empty() && moved.len() < N_KEYS, "{moved:?}");
    assert_eq!(a.n_handed_over(), moved.len() as u64);
    b.stop().await.unwrap();
    advance_seconds(5).await;
    assert_eq!(a.n_cached("configmaps"), N_KEYS);
    release.send_replace(true);
    advance_seconds(1).await;
    tasks.lock().check_denied(&moved);
}

/// Applies a Secret with one field. The reconcile of the key `busy` takes long once it has changed.
#[controller(owns = Secret(apply), name = "applying")]
async fn applying(config: Arc<ConfigMap>, cx: Context<applying>) -> Result<Action> {
    let name = config.name_any();
    if name == BUSY && state_of(&config) > 0 {
        advance_seconds(30).await;
    }
    cx.owned::<Secret>().apply(json!({ "metadata": { "name": name }, "data": { "a": "MQ==" } })).await?;
    Ok(Action::await_change())
}

/// Has nothing to do, and so is free to hand keys over.
#[controller(name = "idle")]
async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    Ok(Action::await_change())
}

/// The key `config-1` is handed over and comes back while the only worker of `applying` is busy with another key.
#[tokio::test(start_paused = true)]
async fn controller_that_missed_a_move_applies_again() {
    let world = RingWorld::new(Duration::ZERO).await;
    let app = App::new("podset").controller::<applying>().controller::<idle>();
    let manager = app.manager_in_ring(world.client.clone(), world.client.clone(), config("a", 1)).await.unwrap();
    let server = world.server.clone();
    let a = Replica::start(manager.clock(Arc::new(move || server.now())), Faults::default());
    advance_seconds(5).await;
    let secrets = Api::<Secret>::default_namespaced(world.client.clone());
    let fields = async || {
        let data = secrets.get("config-1").await.unwrap().data.unwrap_or_default();
        data.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(fields().await, ["a"]);
    world.change_one(BUSY, 1).await;
    advance_seconds(1).await;
    let drain = Patch::Merge(json!({ "metadata": { "labels": { DRAIN_LABEL: "true" } } }));
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.patch("config-1", &PatchParams::default(), &drain).await.unwrap();
    advance_seconds(1).await;
    assert_eq!((a.n_handed_over(), world.shard_by_object("configmaps")["config-1"].as_str()), (1, "a"));
    // Another shard had it in between, and runs another version of the program.
    let before = secrets.get("config-1").await.unwrap();
    let manager = before.managed_fields().iter().find(|entry| entry.operation.as_deref() == Some("Apply"));
    let manager = manager.and_then(|entry| entry.manager.clone()).unwrap();
    let mut applied = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "config-1" }, "data": { "a": "MQ==", "b": "Mg==" },
    });
    applied["metadata"]["ownerReferences"] = json!(before.owner_references());
    secrets.patch("config-1", &PatchParams::apply(&manager).force(), &Patch::Apply(applied)).await.unwrap();
    advance_seconds(1).await;
    assert_eq!(fields().await, ["a", "b"], "the worker is busy");
    advance_seconds(40).await;
    assert_eq!(fields().await, ["a"]);
}
