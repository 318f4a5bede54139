//! Leases that other clients have written, and slow requests about Leases.

use kctl::{
    Json,
    kube::api::{Patch, PatchParams, PostParams},
    prelude::*,
};
use kctl_runtime::manager::shards::LABEL;
use kctl_tests::{Fault, RequestSummary};
use serde_json::json;

use super::{N_SLOTS, ShardWorld};
use crate::{lease_candidates::advance_seconds, replicas::Replica};

/// Returns how many slots each replica has gained so far.
fn gained(replicas: [&Replica; 2]) -> [u64; 2] {
    replicas.map(|replica| replica.view.shards().unwrap().n_gained())
}

/// Creates a Lease with the label of the app.
async fn create(world: &ShardWorld, name: &str, annotations: Json, spec: Json) {
    let metadata = json!({ "name": name, "labels": { LABEL: "podset" }, "annotations": annotations });
    let lease = kctl::from_json(json!({ "metadata": metadata, "spec": spec })).unwrap();
    world.contest.leases().create(&PostParams::default(), &lease).await.unwrap();
}

/// A seat whose holder does not exist, a slot without a record, and Leases of neither.
#[tokio::test(start_paused = true)]
async fn garbled_leases_delay_slots_by_one_duration() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let held = || json!({ "holderIdentity": "gone", "leaseDurationSeconds": 15 });
    create(&world, "podset-seat-5", json!({ "kctl.dev/live-seats": "9,x" }), held()).await;
    create(&world, "podset-slot-3", json!({ "kctl.dev/process": "garbled" }), json!({})).await;
    for name in ["podset-seat-x", "podset-slot-900", "other"] {
        create(&world, name, json!({}), held()).await;
    }
    let a = world.start("a").await;
    advance_seconds(14).await;
    assert_eq!(a.n_owned(), 0, "a Lease with a holder may be of an owner");
    advance_seconds(11).await;
    assert_eq!((a.n_owned(), a.ready().is_ok()), (8, true));
    let leases = world.leases().await;
    assert_eq!((&*leases["podset-seat-5"], &*leases["podset-slot-3"], &*leases["other"]), ("", "a", "gone"));
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    world.check_nothing_ran_twice();
}

/// The replicas watch the Leases by this label, so they see a deletion.
#[tokio::test(start_paused = true)]
async fn owners_restore_removed_labels_of_leases() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(10).await;
    let (before, n_gained) = (world.leases().await, gained([&a, &b]));
    let slots = (0..N_SLOTS).map(|slot| format!("podset-slot-{slot}"));
    let names: Vec<_> = slots.chain((0..2).map(|seat| format!("podset-seat-{seat}"))).collect();
    for name in &names {
        let unlabelled = Patch::Merge(json!({ "metadata": { "labels": { LABEL: null } } }));
        world.contest.leases().patch(name, &PatchParams::default(), &unlabelled).await.unwrap();
    }
    for state in 1..=5 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(5).await;
    for name in &names {
        let lease = world.contest.leases().get(name).await.unwrap();
        assert_eq!(lease.labels().get(LABEL).map(String::as_str), Some("podset"), "{name}");
    }
    assert_eq!((world.leases().await, gained([&a, &b])), (before, n_gained));
    world.check_nothing_ran_twice();
}

/// The owner does not reach the Leases of its slots, so it cannot restore them, and works until it loses them.
#[tokio::test(start_paused = true)]
async fn slots_without_holder_wait_for_their_owner() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(10).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("-slot-"));
    for (name, holder) in world.leases().await {
        if name.contains("-slot-") && holder == "a" {
            let removed = Patch::Merge(json!({ "spec": { "holderIdentity": "" } }));
            world.contest.leases().patch(&name, &PatchParams::default(), &removed).await.unwrap();
        }
    }
    for state in 1..=14 {
        world.change(state).await;
        advance_seconds(1).await;
        assert_eq!(b.n_owned(), 4, "the owner may be at work: {state} s after the edit");
    }
    advance_seconds(8).await;
    assert_eq!((a.n_owned(), b.n_owned()), (0, 8));
    world.wait_until_reconciled_at(14).await;
    world.check_nothing_ran_twice();
}

/// The owner does not notice the edit, and a replica starts after it.
#[tokio::test(start_paused = true)]
async fn new_replica_waits_before_taking_edited_lease() {
    for edit in [json!({ "holderIdentity": "" }), json!({ "leaseDurationSeconds": 1 })] {
        let world = ShardWorld::new(Duration::from_millis(200)).await;
        let a = world.start("a").await;
        advance_seconds(10).await;
        a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
        for slot in 0..N_SLOTS {
            let edited = Patch::Merge(json!({ "spec": edit }));
            let name = format!("podset-slot-{slot}");
            world.contest.leases().patch(&name, &PatchParams::default(), &edited).await.unwrap();
        }
        let b = world.start("b").await;
        for state in 1..=14 {
            world.change(state).await;
            advance_seconds(1).await;
            assert_eq!(b.n_owned(), 0, "{state} s after the edit {edit}");
        }
        advance_seconds(8).await;
        assert_eq!(b.n_owned(), 8, "{edit}");
        world.wait_until_reconciled_at(14).await;
        world.check_nothing_ran_twice();
    }
}

/// The owner restores the duration at its next renewal, and crashes later.
#[tokio::test(start_paused = true)]
async fn restored_duration_does_not_delay_takeover() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(10).await;
    for slot in 0..N_SLOTS {
        let longer = Patch::Merge(json!({ "spec": { "leaseDurationSeconds": 100_000 } }));
        let name = format!("podset-slot-{slot}");
        world.contest.leases().patch(&name, &PatchParams::default(), &longer).await.unwrap();
    }
    advance_seconds(5).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    a.crash().await;
    advance_seconds(19).await;
    assert_eq!(b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// A write needs 9.55 s of the Leases, and waits for their renewal.
#[tokio::test(start_paused = true)]
async fn slow_renewals_keep_slots_with_their_owners() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(5).await;
    let (before, n_gained) = (world.leases().await, gained([&a, &b]));
    for replica in [&a, &b] {
        replica.faults.add(Fault::DelayResponse(Duration::from_secs(2)), |request: &RequestSummary| {
            request.path.contains("/leases") && !request.is_watch
        });
    }
    for state in 1..=30 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(30).await;
    assert_eq!((world.leases().await, gained([&a, &b])), (before, n_gained));
    assert_eq!(world.seen.lock().failed, []);
    world.check_nothing_ran_twice();
}
