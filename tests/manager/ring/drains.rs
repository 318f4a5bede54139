//! Objects move to another shard by drains: after their reconciles, and with the writes of these.

use std::collections::BTreeSet;

use kctl::{json, kube::api::PostParams, prelude::*};
use kctl_runtime::manager::metrics::Format;
use kctl_tests::{Fault, RequestSummary};

use super::{
    N_KEYS, RingWorld,
    sharder::{self, DRAIN_LABEL, RING},
};
use crate::lease_candidates::advance_seconds;

#[tokio::test(start_paused = true)]
async fn shard_that_joins_gets_its_part_by_drains() {
    let (world, a) = RingWorld::with_shard(Duration::from_millis(20)).await;
    assert_eq!((a.n_cached("configmaps"), a.n_cached("secrets")), (N_KEYS, N_KEYS));
    assert_eq!(a.ready_in_ring(), Ok("shard a of the ring podset".into()));
    let b = world.start("b").await;
    advance_seconds(5).await;
    let (of_a, of_b) = (a.n_cached("configmaps"), b.n_cached("configmaps"));
    assert!(of_a > 0 && of_b > 0 && of_a + of_b == N_KEYS, "{of_a} and {of_b}");
    assert_eq!((a.n_handed_over(), b.n_handed_over()), (of_b as u64, 0));
    let text = a.metrics.text(Format::Prometheus);
    assert!(text.contains(&format!("kctl_ring_handed_over_total{{}} {of_b}\n")), "{text}");
    assert_eq!((a.n_cached("secrets"), b.n_cached("secrets")), (of_a, of_b));
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    assert_eq!(world.reconciled_at(1).1, ["a", "b"].into());
    assert_eq!(world.shard_by_object("configmaps"), world.shard_by_object("secrets"));
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_never_owns_sharding_labels() {
    let (world, _a) = RingWorld::with_shard(Duration::from_millis(20)).await;
    let _b = world.start("b").await;
    advance_seconds(5).await;
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    for secret in world.server.objects("", "secrets") {
        let managers = secret["metadata"]["managedFields"].as_array().unwrap();
        let applied: Vec<_> = managers.iter().filter(|manager| manager["operation"] == "Apply").collect();
        assert_eq!(applied.len(), 1, "{secret}");
        assert!(!applied[0]["fieldsV1"].to_string().contains("sharding.timebertt.dev"), "{}", applied[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn drained_key_is_handed_over_after_its_reconcile() {
    let (world, a) = RingWorld::with_shard(Duration::from_secs(8)).await;
    // Wait for the reconciles that the written Secrets trigger.
    advance_seconds(100).await;
    world.sharder_task.abort();
    let moves: BTreeSet<String> =
        (0..N_KEYS).map(|number| format!("config-{number}")).filter(|name| moves_to_b(name)).collect();
    let busy: BTreeSet<String> = moves.iter().take(3).cloned().collect();
    for name in &busy {
        world.change_one(name, 1).await;
    }
    let b = world.start("b").await;
    advance_seconds(2).await;
    world.sharder.step().await;
    advance_seconds(2).await;
    let assigned_to_b = || {
        let assigned = world.shard_by_object("configmaps").into_iter();
        assigned.filter(|(_, shard)| shard == "b").map(|(name, _)| name).collect::<BTreeSet<_>>()
    };
    assert_eq!(assigned_to_b(), moves.difference(&busy).cloned().collect(), "idle keys are handed over at once");
    assert_eq!((drained_objects(&world), a.n_handed_over()), (busy, (moves.len() - 3) as u64));
    advance_seconds(5).await;
    assert_eq!(assigned_to_b(), moves);
    advance_seconds(60).await;
    assert_eq!(world.reconciled_at(1), (3, ["b"].into()), "the next shard reconciles them once more");
    world.check_nothing_ran_twice();
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn change_during_a_drain_is_reconciled_again() {
    let (world, _a) = RingWorld::with_shard(Duration::from_secs(8)).await;
    advance_seconds(100).await;
    world.sharder_task.abort();
    let name = (0..N_KEYS).map(|number| format!("config-{number}")).find(|name| moves_to_b(name)).unwrap();
    world.change_one(&name, 1).await;
    // This shard joins, and leaves again before an object is assigned to it.
    let lease = json!({
        "metadata": { "name": "b", "labels": { "alpha.sharding.timebertt.dev/controllerring": RING } },
        "spec": { "holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": world.server.now().to_string() },
    });
    world.leases().create(&PostParams::default(), &kctl::from_json(lease).unwrap()).await.unwrap();
    advance_seconds(1).await;
    world.sharder.step().await;
    world.change_lease("b", json!({ "holderIdentity": "" })).await;
    world.change_one(&name, 2).await;
    assert!(drained_objects(&world).contains(&name));
    advance_seconds(30).await;
    assert_eq!(world.shard_by_object("configmaps")[&name], "a");
    assert_eq!(world.reconciled_at(2), (1, ["a"].into()));
    world.check_nothing_ran_twice();
}

/// Returns `true` if the sharder moves an object to `b` when `b` joins `a`.
fn moves_to_b(name: &str) -> bool {
    let shards = ["a", "b"].map(ToOwned::to_owned);
    sharder::highest_weight_shard(&format!("/ConfigMap/default/{name}"), &shards).as_deref() == Some("b")
}

/// Returns the objects with the drain label.
fn drained_objects(world: &RingWorld) -> BTreeSet<String> {
    let objects = world.server.objects("", "configmaps");
    let drained = objects.iter().filter(|object| !object["metadata"]["labels"][DRAIN_LABEL].is_null());
    drained.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn hand_over_waits_for_all_controllers_of_kind() {
    let mut world = RingWorld::new(Duration::from_millis(20)).await;
    world.slow = Some(Duration::from_secs(10));
    let a = world.start("a").await;
    world.wait_until_reconciled_at(0).await;
    let _b = world.start("b").await;
    advance_seconds(5).await;
    assert!(!drained_objects(&world).is_empty());
    assert_eq!(a.n_handed_over(), 0, "the second controller still runs");
    advance_seconds(20).await;
    assert!(a.n_handed_over() > 0 && drained_objects(&world).is_empty());
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn unanswered_write_delays_the_hand_over() {
    let (world, a) = RingWorld::with_shard(Duration::from_millis(20)).await;
    // The response to the last write of each key is lost.
    a.faults.add(Fault::LoseResponse, |request: &RequestSummary| {
        request.path.contains("/secrets") && request.method == "PATCH"
    });
    world.change(1).await;
    advance_seconds(1).await;
    a.faults.clear();
    let _b = world.start("b").await;
    advance_seconds(3).await;
    assert!(!drained_objects(&world).is_empty());
    assert_eq!(a.n_handed_over(), 0, "its writes may still be in flight");
    advance_seconds(15).await;
    assert!(a.n_handed_over() > 0 && drained_objects(&world).is_empty());
    world.wait_until_reconciled_at(1).await;
    world.check_nothing_ran_twice();
}
