//! Slots move between replicas that start and stop.

use kctl::{manager::Manager, prelude::*};
use kctl_tests::{Fault, RequestSummary};
use tokio::time::{Instant, sleep};

use super::{N_KEYS, N_SLOTS, ShardWorld, shards};
use crate::{lease_candidates::advance_seconds, replicas::Replica};

#[tokio::test(start_paused = true)]
async fn replicas_share_keys_and_slots_move_on_join() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    world.wait_until_reconciled_at(0).await;
    assert_eq!((a.n_owned(), a.ready()), (8, Ok("owns 8 of 8 slots, in seat 0".into())));
    let b = world.start("b").await;
    advance_seconds(2).await;
    assert!(b.n_owned() > 0 && a.n_owned() + b.n_owned() == 8, "{} and {}", a.n_owned(), b.n_owned());
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    assert_eq!(world.reconciled_at(1).1, ["a", "b"].into());
    let c = world.start("c").await;
    advance_seconds(2).await;
    assert_eq!(a.n_owned() + b.n_owned() + c.n_owned(), 8);
    world.change(2).await;
    world.wait_until_reconciled_at(2).await;
    world.check_nothing_ran_twice();
    assert_eq!(world.seen.lock().failed, []);
}

#[tokio::test(start_paused = true)]
async fn metrics_sum_up_to_all_slots() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let replicas = [world.start("a").await, world.start("b").await, world.start("c").await];
    advance_seconds(5).await;
    let sum = |metric: &str| replicas.iter().map(|replica| replica.metric(metric)).sum::<usize>();
    assert_eq!((sum("kctl_slots"), sum("kctl_slots_owned")), (3 * 8, 8));
    assert!(sum("kctl_slots_gained_total") >= 8, "those that moved were gained more than once");
}

#[tokio::test(start_paused = true)]
async fn replicas_starting_together_take_only_their_shares() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let before = world.contest.server.requests().len();
    let (a, b, c) = (world.start("a").await, world.start("b").await, world.start("c").await);
    sleep(Duration::from_millis(1500)).await;
    let mut owned = [&a, &b, &c].map(Replica::n_owned);
    owned.sort_unstable();
    assert_eq!(owned, [2, 3, 3]);
    let gained = [&a, &b, &c].map(|replica| replica.metric("kctl_slots_gained_total"));
    assert_eq!(gained.iter().sum::<usize>(), 8, "no slot has moved");
    let requests = world.contest.server.requests().split_off(before);
    let lists = requests.iter().filter(|request| request.resource == "configmaps" && request.verb == "list");
    assert_eq!(lists.count(), 6, "each replica lists one item for its watch, and all of them once for its slots");
    world.wait_until_reconciled_at(0).await;
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn stopped_replica_keys_move_within_a_second() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    assert!(a.n_owned() > 0 && b.n_owned() > 0);
    world.change(1).await;
    a.stop().await.unwrap();
    let took = world.wait_until_reconciled_at(1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.check_nothing_ran_twice();
    assert_eq!(world.leases().await["podset-seat-0"], "", "its seat is free for the next replica");
}

/// A write without a response may still arrive, so the next owner waits for it. The other slots are worked on.
#[tokio::test(start_paused = true)]
async fn unanswered_write_delays_hand_over_of_slot() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    world.wait_until_reconciled_at(0).await;
    a.faults.add(Fault::LoseResponse, |request: &RequestSummary| {
        request.path.contains("/secrets") && request.method == "PATCH"
    });
    world.change(1).await;
    advance_seconds(1).await;
    a.faults.clear();
    let b = world.start("b").await;
    advance_seconds(3).await;
    world.change(2).await;
    advance_seconds(1).await;
    assert_eq!(b.n_owned(), 0, "writes of all slots may still be in flight");
    let n_reconciled = world.reconciled_at(2).0;
    assert!(n_reconciled > 0 && n_reconciled < N_KEYS, "{n_reconciled} of {N_KEYS} keys are in slots that do not move");
    advance_seconds(10).await;
    assert!(b.n_owned() > 0 && a.n_owned() + b.n_owned() == 8, "{} and {}", a.n_owned(), b.n_owned());
    world.wait_until_reconciled_at(2).await;
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn slow_reconciles_are_cut_off_at_hand_over() {
    let world = ShardWorld::new(Duration::from_secs(60)).await;
    let limited = |name: &'static str| {
        move |manager: Manager, client| {
            manager.graceful_timeout(Some(Duration::from_secs(2))).shard(client, shards(name, N_SLOTS)).unwrap()
        }
    };
    let a = world.start_by("a", limited("a")).await;
    advance_seconds(3).await;
    let (b, start) = (world.start_by("b", limited("b")).await, Instant::now());
    while b.n_owned() < 4 {
        sleep(Duration::from_millis(100)).await;
    }
    let took = start.elapsed();
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(5), "reconciles of 60 s end after {took:?}");
    advance_seconds(1).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    world.check_nothing_ran_twice();
}

/// A stop that polls without waiting would hold up the simulated time, and this test would not end.
#[tokio::test(start_paused = true)]
async fn replica_that_waits_for_other_seats_stops() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!((world.leases().await["podset-seat-0"].as_str(), a.n_owned()), ("a", 0), "it asks for no slot yet");
    a.faults.add(Fault::Delay(Duration::from_secs(2)), |request: &RequestSummary| request.path.contains("-seat-"));
    a.stop().await.unwrap();
    assert_eq!(world.leases().await["podset-seat-0"], "");
}

#[tokio::test(start_paused = true)]
async fn replica_taking_released_seat_takes_its_slots() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(3).await;
    let before = b.n_owned();
    a.stop().await.unwrap();
    let c = world.start("c").await;
    advance_seconds(3).await;
    assert_eq!((b.n_owned(), c.n_owned()), (before, 8 - before));
    assert_eq!(world.leases().await["podset-seat-0"], "c");
}

#[tokio::test(start_paused = true)]
async fn replica_beyond_the_slots_is_ready_and_waits() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let one =
        |identity: &'static str| move |manager: Manager, client| manager.shard(client, shards(identity, 1)).unwrap();
    let a = world.start_by("a", one("a")).await;
    advance_seconds(1).await;
    let b = world.start_by("b", one("b")).await;
    advance_seconds(10).await;
    assert_eq!((a.n_owned(), b.n_owned()), (1, 0));
    assert_eq!(b.ready(), Ok("owns 0 of 1 slots, without a seat".into()));
    a.stop().await.unwrap();
    advance_seconds(2).await;
    assert_eq!(b.n_owned(), 1);
}

/// A replica acquires and releases 16 Leases at a time.
#[tokio::test(start_paused = true)]
async fn many_slots_move_with_joins_and_stops() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let start = async |replica: &'static str| {
        world.start_by(replica, |manager: Manager, client| manager.shard(client, shards(replica, 64)).unwrap()).await
    };
    let a = start("a").await;
    advance_seconds(3).await;
    assert_eq!(a.n_owned(), 64);
    let b = start("b").await;
    advance_seconds(5).await;
    assert_eq!((a.n_owned(), b.n_owned()), (32, 32));
    a.stop().await.unwrap();
    advance_seconds(3).await;
    assert_eq!(b.n_owned(), 64, "the Leases are released");
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    world.check_nothing_ran_twice();
    b.stop().await.unwrap();
    let leases = world.leases().await;
    let held: Vec<_> = leases.iter().filter(|(name, holder)| name.contains("-slot-") && !holder.is_empty()).collect();
    assert!(held.is_empty(), "{held:?}");
}
