//! The API server is restored from a backup while replicas run: their Leases have older records and versions.

use kctl::{
    apiserver::ApiServer,
    kube::Client,
    manager::{Manager, ManagerError},
    prelude::*,
};
use kctl_tests::{Fault, RequestSummary};

use super::{ShardWorld, shards};
use crate::{
    lease_candidates::{Contest, advance_seconds},
    replicas::{Replica, change_config},
};

/// Replaces the API server by a backup of it, after an outage of a second.
async fn restore(world: &mut ShardWorld, backup: ApiServer, replicas: &[&Replica]) {
    for replica in replicas {
        replica.faults.add(Fault::Break, |_: &RequestSummary| true);
        replica.faults.cut_watches();
    }
    advance_seconds(1).await;
    for replica in replicas {
        replica.faults.clear();
        replica.faults.restore(&backup);
    }
    world.contest = Contest { client: Client::new(backup.service(), "default"), server: backup };
}

/// In the backup, the first replica has all slots, and the second one has not started yet.
#[tokio::test(start_paused = true)]
async fn replica_missing_in_backup_gets_slots_back() {
    let mut world = ShardWorld::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    advance_seconds(10).await;
    let backup = world.contest.server.fork(2);
    let b = world.start("b").await;
    advance_seconds(20).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    let before = world.leases().await;
    restore(&mut world, backup, &[&a, &b]).await;
    assert_ne!(world.leases().await, before);
    for state in 1..=30 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(30).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    assert_eq!(world.leases().await, before);
    world.check_nothing_ran_twice();
}

/// In the backup, the first replica has all slots, and the seat of the second one is free. So the first one wants the slots of
/// the second one at once, and finds its name in their Leases. The second one does not reach the Leases, and continues.
#[tokio::test(start_paused = true)]
async fn owner_before_restore_continues_alone() {
    let mut world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, former) = (world.start("a").await, world.start("former").await);
    advance_seconds(5).await;
    former.stop().await.unwrap();
    advance_seconds(5).await;
    let backup = world.contest.server.fork(2);
    world.takes = Duration::from_secs(8);
    let b = world.start("b").await;
    advance_seconds(100).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    for name in b.cached_names("configmaps") {
        change_config(&world.contest.client, &name, 1).await;
    }
    restore(&mut world, backup, &[&a, &b]).await;
    b.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    assert_eq!(world.leases().await.values().filter(|holder| *holder == "a").count(), 9, "all slots and a seat");
    advance_seconds(14).await;
    assert_eq!(a.n_owned(), 4, "the other replica may be at work");
    assert!(matches!(b.running.await.unwrap(), Err(ManagerError::LeaseLost(_))));
    advance_seconds(10).await;
    assert_eq!(a.n_owned(), 8);
    world.change(2).await;
    world.wait_until_reconciled_at(2).await;
    world.check_nothing_ran_twice();
}

/// In the backup no replica runs, and all Leases are released. So the first one finds the slots of the second one free. The second
/// one does not reach the Leases, and works on.
#[tokio::test(start_paused = true)]
async fn slots_released_in_backup_keep_their_owner() {
    let mut world = ShardWorld::new(Duration::from_millis(20)).await;
    let former = world.start("former").await;
    advance_seconds(5).await;
    former.stop().await.unwrap();
    let leases = world.leases().await;
    assert!(leases.iter().all(|(name, holder)| holder.is_empty() || name == "podset"), "{leases:?}");
    let backup = world.contest.server.fork(2);
    let a = world.start("a").await;
    world.takes = Duration::from_secs(8);
    let b = world.start("b").await;
    advance_seconds(100).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    for name in b.cached_names("configmaps") {
        change_config(&world.contest.client, &name, 1).await;
    }
    restore(&mut world, backup, &[&a, &b]).await;
    b.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    advance_seconds(14).await;
    assert_eq!(a.n_owned(), 4, "the other replica may be at work");
    assert!(matches!(b.running.await.unwrap(), Err(ManagerError::LeaseLost(_))));
    advance_seconds(10).await;
    assert_eq!(a.n_owned(), 8);
    world.change(2).await;
    world.wait_until_reconciled_at(2).await;
    world.check_nothing_ran_twice();
}

/// The replica of the backup ran with four slots, and has stopped since.
#[tokio::test(start_paused = true)]
async fn replicas_end_when_backup_has_other_settings() {
    let mut world = ShardWorld::new(Duration::from_millis(20)).await;
    let four = |manager: Manager, client| manager.shard(client, shards("former", 4)).unwrap();
    let former = world.start_by("former", four).await;
    advance_seconds(10).await;
    former.stop().await.unwrap();
    let backup = world.contest.server.fork(2);
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(30).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    restore(&mut world, backup, &[&a, &b]).await;
    for ended in [a, b] {
        assert!(matches!(ended.running.await.unwrap(), Err(ManagerError::LeaseLost(_))));
    }
    let (a, b) = (world.start("a2").await, world.start("b2").await);
    world.change(1).await;
    let took = world.wait_until_reconciled_at(1).await;
    assert!(took > Duration::from_secs(12) && took < Duration::from_secs(20), "{took:?}");
    assert_eq!(a.n_owned() + b.n_owned(), 8);
    world.check_nothing_ran_twice();
}

/// In the backup, 16 slots are divided and released. Their settings hold the Lease of the settings, so a replica that waits
/// with these settings finds their name there. The owner of the eight present slots does not reach the Leases, and continues.
#[tokio::test(start_paused = true)]
async fn replica_with_backups_settings_waits_for_present_owner() {
    let mut world = ShardWorld::new(Duration::from_millis(20)).await;
    let sixteen = |manager: Manager, client| manager.shard(client, shards("former", 16)).unwrap();
    let former = world.start_by("former", sixteen).await;
    advance_seconds(10).await;
    former.stop().await.unwrap();
    let backup = world.contest.server.fork(2);
    world.takes = Duration::from_secs(8);
    let a = world.start("a").await;
    advance_seconds(100).await;
    world.takes = Duration::from_millis(20);
    let sixteen = |manager: Manager, client| manager.shard(client, shards("b", 16)).unwrap();
    let b = world.start_by("b", sixteen).await;
    advance_seconds(10).await;
    assert_eq!((a.n_owned(), b.n_owned()), (8, 0));
    world.change(1).await;
    restore(&mut world, backup, &[&a, &b]).await;
    a.faults.add(Fault::Break, |request: &RequestSummary| request.path.contains("/leases"));
    advance_seconds(12).await;
    assert_eq!(b.n_owned(), 0, "the other replica may be at work");
    assert!(matches!(a.running.await.unwrap(), Err(ManagerError::LeaseLost(_))));
    advance_seconds(20).await;
    assert_eq!(b.n_owned(), 16);
    world.change(2).await;
    world.wait_until_reconciled_at(2).await;
    world.check_nothing_ran_twice();
}
