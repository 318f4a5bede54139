//! Replicas with other settings wait until the Lease with the settings has no holder.

use kctl::{manager::Manager, prelude::*};
use tokio::time::sleep;

use super::{N_SLOTS, ShardWorld, shards};
use crate::{
    lease_candidates::{advance_seconds, config},
    replicas::Replica,
};

#[tokio::test(start_paused = true)]
async fn one_replica_renews_settings_lease_without_conflicts() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let replicas = [world.start("a").await, world.start("b").await, world.start("c").await];
    advance_seconds(10).await;
    let before = world.contest.server.requests().len();
    advance_seconds(60).await;
    assert!(replicas.iter().all(|replica| replica.ready().is_ok()));
    let requests = world.contest.server.requests().split_off(before);
    let about = requests.iter().filter(|request| request.resource == "leases" && request.name == "podset");
    let (reads, writes): (Vec<_>, Vec<_>) = about.partition(|request| request.verb == "get");
    assert!((28..=31).contains(&writes.len()), "{} writes by three replicas", writes.len());
    assert!(writes.iter().all(|request| request.code == 200));
    assert!((85..=95).contains(&reads.len()), "{} reads", reads.len());
}

#[tokio::test(start_paused = true)]
async fn added_slots_are_taken_once_settings_lease_expires() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let four = |manager: Manager, client| manager.shard(client, shards("a", 4)).unwrap();
    let a = world.start_by("a", four).await;
    advance_seconds(10).await;
    a.stop().await.unwrap();
    let b = world.start("b").await;
    advance_seconds(14).await;
    assert_eq!(b.n_owned(), 0, "the settings of 4 slots are held for 15 s");
    advance_seconds(6).await;
    assert_eq!(b.n_owned(), 8, "no Lease of the slots 4 to 7 was there, and nothing waits for them");
}

/// Each reads the Lease of the settings every 2 to 4.4 s, and counts its validity from another time.
#[tokio::test(start_paused = true)]
async fn replicas_with_new_settings_begin_together() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let four = |manager: Manager, client| manager.shard(client, shards("a", 4)).unwrap();
    let a = world.start_by("a", four).await;
    advance_seconds(10).await;
    a.stop().await.unwrap();
    let mut replicas = Vec::new();
    for name in ["b", "c", "d"] {
        replicas.push(world.start(name).await);
        sleep(Duration::from_millis(300)).await;
    }
    advance_seconds(13).await;
    assert_eq!(replicas.iter().map(Replica::n_owned).sum::<usize>(), 0, "the old settings are held for 15 s");
    advance_seconds(3).await;
    assert_eq!(replicas.iter().map(Replica::n_owned).sum::<usize>(), 8);
    let n_gained = replicas.iter().map(|replica| replica.view.shards().unwrap().n_gained());
    assert_eq!(n_gained.sum::<u64>(), 8, "no slot has moved");
}

#[tokio::test(start_paused = true)]
async fn replica_with_another_number_of_slots_is_rejected() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    advance_seconds(3).await;
    let other = |manager: Manager, client| manager.shard(client, shards("b", 4)).unwrap();
    let b = world.start_by("b", other).await;
    advance_seconds(60).await;
    assert_eq!((a.n_owned(), b.n_owned()), (8, 0));
    let text = "other replicas run as `shards-8-by-object-v2` and this one as `shards-4-by-object-v2`: use the same --shards in all";
    assert_eq!(b.ready().unwrap_err(), text);
    assert_eq!((a.metric("kctl_slots_rejected"), b.metric("kctl_slots_rejected")), (0, 1));
    let view = b.view.shards().unwrap();
    let owners = view.slots().into_iter().map(|slot| slot.owner);
    assert_eq!(owners.collect::<Vec<_>>(), [""; 4], "the Leases are of other slots");
    assert!(view.slots().iter().all(|slot| slot.moves.is_none()));
    assert_eq!(view.explain(&"default/web".parse().unwrap()).owner, "");
    a.stop().await.unwrap();
    advance_seconds(20).await;
    assert_eq!((b.n_owned(), b.ready().is_ok()), (4, true));
    world.check_nothing_ran_twice();
}

/// With common slots, no replica would reconcile the objects of a slot whose owner does not watch their namespace.
#[tokio::test(start_paused = true)]
async fn replica_with_other_namespaces_is_rejected() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let limited = |identity| shards(identity, N_SLOTS).in_namespaces(["default".to_owned()]);
    let a = world.start_by("a", |manager, client| manager.shard(client, limited("a")).unwrap()).await;
    let b = world.start_by("b", |manager, client| manager.shard(client, limited("b")).unwrap()).await;
    advance_seconds(3).await;
    let c = world.start("c").await;
    advance_seconds(60).await;
    assert_eq!((a.n_owned() + b.n_owned(), c.n_owned()), (8, 0));
    let rejected = c.ready().unwrap_err();
    let text = "other replicas run as `shards-8-by-object-v2-in-default` and this one as `shards-8-by-object-v2`: use the same \
                --namespace in all";
    assert_eq!(rejected, text);
    let reason = |key: &str| a.view.shards().unwrap().explain(&key.parse().unwrap()).reason;
    assert!(reason("blog/web").contains("namespace blog is not watched here: --namespace"), "{}", reason("blog/web"));
    assert!(!reason("default/web").contains("not watched"), "{}", reason("default/web"));
}

#[tokio::test(start_paused = true)]
async fn sharded_replica_waits_until_elected_leader_stops() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let leader = world.start_by("a", |manager, _client| manager.elect(config("a")).unwrap()).await;
    world.wait_until_reconciled_at(0).await;
    let b = world.start("b").await;
    advance_seconds(30).await;
    assert_eq!(b.n_owned(), 0);
    let text = "another replica (a) runs with --leader-elect: stop all replicas, then start them with one mode";
    assert_eq!(b.ready().unwrap_err(), text);
    leader.stop.send(()).unwrap();
    leader.running.await.unwrap().unwrap();
    advance_seconds(1).await;
    assert_eq!(b.n_owned(), 8);
}
