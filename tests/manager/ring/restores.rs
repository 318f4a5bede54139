//! The API server is restored from a backup while a shard runs.

use kctl::{
    json,
    kube::{Client, api::PostParams},
    prelude::*,
};
use kctl_tests::{Fault, RequestSummary};

use super::{N_KEYS, RingWorld, sharder::RING};
use crate::lease_candidates::advance_seconds;

/// The versions of the backup are lower than those at which the objects were handed over.
#[tokio::test(start_paused = true)]
async fn objects_handed_over_since_backup_are_reconciled() {
    let (mut world, a) = RingWorld::with_shard(Duration::from_millis(20)).await;
    advance_seconds(5).await;
    let backup = world.server.fork(2);
    for state in 1..=5 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.sharder_task.abort();
    // A second shard joins, as far as the sharder can see.
    let lease = json!({
        "metadata": { "name": "b", "labels": { "alpha.sharding.timebertt.dev/controllerring": RING } },
        "spec": { "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": world.server.now().to_string() },
    });
    world.leases().create(&PostParams::default(), &kctl::from_json(lease).unwrap()).await.unwrap();
    world.sharder.step().await;
    advance_seconds(5).await;
    let n_left = a.n_cached("configmaps");
    assert!(n_left < N_KEYS && a.n_handed_over() == (N_KEYS - n_left) as u64, "{n_left}");
    a.faults.add(Fault::Break, |_: &RequestSummary| true);
    a.faults.cut_watches();
    advance_seconds(1).await;
    a.faults.clear();
    a.faults.restore(&backup);
    (world.client, world.server) = (Client::new(backup.service(), "default"), backup);
    advance_seconds(5).await;
    assert!(a.holds_its_lease());
    assert_eq!(a.n_cached("configmaps"), N_KEYS, "they have its label in the backup");
    world.change(6).await;
    world.wait_until_reconciled_at(6).await;
}
