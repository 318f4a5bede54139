//! Leases that expire, are lost or are deleted: each slot has one owner at a time.

use std::collections::BTreeSet;

use kctl::{key::ObjectKey, kube::api::DeleteParams, manager::ManagerError, prelude::*};
use kctl_runtime::worker::Outcome;
use kctl_tests::{Fault, Faults, RequestSummary};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::{N_KEYS, N_SLOTS, ShardWorld, shards};
use crate::{lease_candidates::advance_seconds, replicas::change_config};

#[tokio::test(start_paused = true)]
async fn one_shard_leads_and_another_succeeds_it() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    assert!(a.leads() != b.leads());
    let (leader, other) = if a.leads() { (a, b) } else { (b, a) };
    leader.stop().await.unwrap();
    advance_seconds(1).await;
    assert!(other.leads());
}

#[tokio::test(start_paused = true)]
async fn replica_without_lease_permission_is_not_ready() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    assert!(a.ready().is_ok() && b.ready().is_ok());
    b.faults.add(Fault::Reject(403), |request: &RequestSummary| request.path.contains("-seat-"));
    advance_seconds(5).await;
    let rejected = b.ready().unwrap_err();
    assert!(
        rejected.starts_with("get the lease default/podset-seat-1") && rejected.ends_with("is rejected"),
        "{rejected}"
    );
    let faults = Faults::default();
    faults.add(Fault::Reject(403), |request: &RequestSummary| {
        request.path.ends_with("/leases") && request.method == "GET"
    });
    let c = world.start_on("c", faults, |manager, client| manager.shard(client, shards("c", N_SLOTS)).unwrap()).await;
    advance_seconds(5).await;
    let rejected = c.ready().unwrap_err();
    assert!(rejected.starts_with("list leases") && rejected.ends_with("is rejected"), "{rejected}");
}

#[tokio::test(start_paused = true)]
async fn slots_return_after_a_minute_without_api_server() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    for replica in [&a, &b] {
        replica.faults.add(Fault::Break, |_: &RequestSummary| true);
    }
    world.change(1).await;
    advance_seconds(60).await;
    for lost in [a, b] {
        assert!(matches!(lost.running.await.unwrap(), Err(ManagerError::LeaseLost(_))));
    }
    // New processes start, as after a restart by the kubelet.
    let (a, b) = (world.start("a2").await, world.start("b2").await);
    let took = world.wait_until_reconciled_at(1).await;
    // The Leases of the former processes have to expire first.
    assert!(took > Duration::from_secs(12) && took < Duration::from_secs(20), "{took:?}");
    assert_eq!(a.n_owned() + b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn crashed_replicas_keys_run_within_lease_and_second() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    assert!(a.n_owned() > 0 && b.n_owned() > 0);
    a.crash().await;
    world.change(1).await;
    let took = world.wait_until_reconciled_at(1).await;
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(16), "{took:?}");
    assert_eq!(b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// The other replica reads the Leases of these slots every 2 to 4.4 s, and watches them.
#[tokio::test(start_paused = true)]
async fn awaited_slots_of_crashed_replica_run_within_lease() {
    for crash_after in [2, 3, 4, 5, 6] {
        let mut world = ShardWorld::new(Duration::from_secs(8)).await;
        let a = world.start("a").await;
        advance_seconds(100).await;
        world.takes = Duration::from_millis(20);
        let moved = slots_that_join_moves(&world).await;
        // Reconciles run for slots that are to move.
        let shards = a.view.shards().unwrap();
        for name in (0..N_KEYS).map(|number| format!("config-{number}")) {
            let slot = shards.explain(&ObjectKey::new(Some("default"), &name)).slot;
            if moved.contains(&slot) {
                change_config(&world.contest.client, &name, 1).await;
            }
        }
        sleep(Duration::from_millis(50)).await;
        let b = world.start("b").await;
        advance_seconds(crash_after).await;
        assert!(b.n_owned() < moved.len(), "{} of the slots have moved", b.n_owned());
        a.crash().await;
        world.change(1).await;
        let took = world.wait_until_reconciled_at(1).await;
        assert!(took < Duration::from_secs(16), "crashed {crash_after} s after the start of the other: {took:?}");
        world.check_nothing_ran_twice();
    }
}

/// Returns the slots that a second replica takes. It has stopped again, and the first one has reconciled all keys.
async fn slots_that_join_moves(world: &ShardWorld) -> BTreeSet<u32> {
    let b = world.start("b").await;
    advance_seconds(20).await;
    let slots = b.view.shards().unwrap().slots();
    let moved = slots.into_iter().filter(|slot| slot.state == "owned").map(|slot| slot.slot).collect();
    b.stop().await.unwrap();
    advance_seconds(100).await;
    moved
}

#[tokio::test(start_paused = true)]
async fn replica_that_loses_its_leases_writes_nothing_more() {
    let world = ShardWorld::new(Duration::from_secs(8)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    let lost = tokio::time::timeout(Duration::from_secs(15), a.running).await.expect("it ends by itself");
    let error = lost.unwrap().unwrap_err().to_string();
    assert!(error.contains("lost its Lease: the lease default/podset") && !error.contains("leader"), "{error}");
    world.change(1).await;
    advance_seconds(300).await;
    assert_eq!(world.reconciled_at(1), (N_KEYS, ["b"].into()));
    assert_eq!(b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// The key's next owner does the work, so the rejected write is logged at debug level and counted as a conflict.
#[tokio::test(start_paused = true)]
async fn write_under_a_lost_slot_counts_as_conflict() {
    let world = ShardWorld::new(Duration::from_secs(3)).await;
    let not_sent = Arc::<Mutex<Vec<Outcome>>>::default();
    let noted = not_sent.clone();
    let a = world.start_by("a", move |manager, client| {
        let manager = manager.shard(client, shards("a", N_SLOTS)).unwrap();
        manager.on_end(Arc::new(move |report| {
            if matches!(&report.outcome, Outcome::Failed { text, .. } if text.contains("not sent")) {
                noted.lock().push(report.outcome.clone());
            }
        }))
    });
    let a = a.await;
    let _b = world.start("b").await;
    advance_seconds(3).await;
    // The Lease with the settings expires before the Leases of the slots.
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.ends_with("/leases/podset"));
    for state in 1..20 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    let not_sent = not_sent.lock();
    assert!(!not_sent.is_empty());
    assert!(not_sent.iter().all(|outcome| matches!(outcome, Outcome::Failed { conflict: true, .. })), "{not_sent:?}");
}

#[tokio::test(start_paused = true)]
async fn slot_with_a_deleted_lease_keeps_one_owner() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(10).await;
    let before = world.leases().await;
    for slot in 0..N_SLOTS {
        world.contest.leases().delete(&format!("podset-slot-{slot}"), &DeleteParams::default()).await.unwrap();
    }
    for state in 1..=10 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(10).await;
    assert_eq!(world.leases().await, before);
    assert_eq!(a.n_owned() + b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// The owner can't reach its Leases, so it does not recreate them. It works until its write permit ends.
#[tokio::test(start_paused = true)]
async fn new_replica_waits_before_taking_deleted_lease() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    advance_seconds(10).await;
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    for slot in 0..N_SLOTS {
        world.contest.leases().delete(&format!("podset-slot-{slot}"), &DeleteParams::default()).await.unwrap();
    }
    let b = world.start("b").await;
    for state in 1..=14 {
        world.change(state).await;
        advance_seconds(1).await;
        assert_eq!(b.n_owned(), 0, "{state} s after the deletion");
    }
    let owners: BTreeSet<_> = b.view.shards().unwrap().slots().into_iter().map(|slot| slot.owner).collect();
    assert_eq!(owners, ["(unknown: the Lease is missing)".to_owned()].into());
    advance_seconds(2).await;
    assert_eq!(b.n_owned(), 8);
    let took = world.wait_until_reconciled_at(14).await;
    assert!(took < Duration::from_secs(4), "{took:?}");
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn owner_recreates_a_deleted_lease_before_others_start() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    advance_seconds(10).await;
    for slot in 0..N_SLOTS {
        world.contest.leases().delete(&format!("podset-slot-{slot}"), &DeleteParams::default()).await.unwrap();
    }
    let b = world.start("b").await;
    world.change(1).await;
    advance_seconds(4).await;
    assert_eq!(
        (a.n_owned(), b.n_owned()),
        (4, 4),
        "a Lease that is missing is created, also by an owner that hands it over"
    );
    world.wait_until_reconciled_at(1).await;
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}
