//! Tasks that reconciles have spawned: they write nothing after their key was handed over, even if it has come back.

use kctl::prelude::*;
use kctl_tests::Faults;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{N_KEYS, World, config};
use crate::{
    contest::seconds,
    replicas::Replica,
    shard_tenures::{Spawning, Tasks},
};

#[tokio::test(start_paused = true)]
async fn spawned_task_writes_nothing_once_its_key_moved() {
    let world = World::new(Duration::ZERO).await;
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
    seconds(5).await;
    assert_eq!(tasks.lock().spawned.len(), N_KEYS);
    let b = start("b").await;
    seconds(5).await;
    let moved = b.cached("configmaps");
    assert!(!moved.is_empty() && moved.len() < N_KEYS, "{moved:?}");
    assert_eq!(a.n_handed_over(), moved.len() as u64);
    b.stop().await.unwrap();
    seconds(5).await;
    assert_eq!(a.n_cached("configmaps"), N_KEYS);
    release.send_replace(true);
    seconds(1).await;
    tasks.lock().check_denied(&moved);
}
