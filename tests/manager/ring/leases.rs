//! The Lease of a shard decides where its objects are: it crashes, stops, loses the Lease, or meets a namesake.

use kctl::{json, manager::ManagerError, prelude::*};

use super::{
    N_KEYS, RingWorld,
    sharder::{RING, STATE_LABEL, TAKEN},
};
use crate::lease_candidates::advance_seconds;

#[tokio::test(start_paused = true)]
async fn shard_lease_keeps_the_sharders_label() {
    let world = RingWorld::new(Duration::from_millis(20)).await;
    let _a = world.start("a").await;
    advance_seconds(30).await;
    let lease = world.lease("a").await;
    assert_eq!(lease.labels()["alpha.sharding.timebertt.dev/controllerring"], RING);
    assert_eq!(lease.labels()[STATE_LABEL], "ready");
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn crashed_shards_keys_move_with_its_taken_lease() {
    let (world, a, _b) = RingWorld::with_two_shards(Duration::from_millis(20)).await;
    a.crash().await;
    world.change(1).await;
    let took = world.wait_until_reconciled_at(1).await;
    assert!(took > Duration::from_secs(25) && took < Duration::from_secs(33), "{took:?}");
    assert_eq!((world.holder("a").await.as_str(), world.reconciled_at(1).1), (TAKEN, ["b"].into()));
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn stopped_shard_keys_move_within_a_second() {
    let (world, a, _b) = RingWorld::with_two_shards(Duration::from_millis(20)).await;
    world.change(1).await;
    a.stop().await.unwrap();
    assert_eq!(world.holder("a").await, "", "it has released its Lease");
    let took = world.wait_until_reconciled_at(1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn shard_whose_lease_was_taken_ends() {
    let (world, a) = RingWorld::with_shard(Duration::from_secs(1)).await;
    world.sharder_task.abort();
    world.change_lease("a", json!({ "holderIdentity": TAKEN })).await;
    let lost = tokio::time::timeout(Duration::from_secs(3), a.running).await.expect("it ends by itself");
    let Err(ManagerError::LeaseLost(why)) = lost.unwrap() else { panic!("it continues") };
    assert_eq!(why, "the lease default/a is held by shardlease-controller");
    let before = world.server.revision();
    world.change(1).await;
    advance_seconds(60).await;
    assert_eq!(world.server.revision(), before + N_KEYS as u64, "it wrote after that");
}

#[tokio::test(start_paused = true)]
async fn same_named_shards_never_reconcile_concurrently() {
    let (world, a) = RingWorld::with_shard(Duration::from_millis(200)).await;
    let namesake = world.start_as("namesake", "a", 2).await;
    for state in 1..=30 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    assert!(a.holds_its_lease() && !namesake.holds_its_lease());
    let waits = namesake.ready_in_ring().unwrap_err();
    assert!(waits.starts_with("another process holds the Lease of shard a"), "{waits}");
    a.crash().await;
    world.change(31).await;
    let took = world.wait_until_reconciled_at(31).await;
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(25), "{took:?}");
    assert!(namesake.holds_its_lease() && namesake.ready_in_ring().is_ok());
    world.check_nothing_ran_twice();
}
