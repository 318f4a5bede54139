//! Replicas that cannot list a kind: those with complete caches keep the slots.

use kctl::{manager::Manager, prelude::*};
use kctl_tests::{Fault, Faults, RequestSummary};

use super::{N_SLOTS, ShardWorld, shards};
use crate::{lease_candidates::advance_seconds, replicas::Replica};

/// Returns faults of a program whose version lacks the permission to list Secrets.
fn without_permission() -> Faults {
    let faults = Faults::default();
    let reads = |request: &RequestSummary| request.method == "GET" && request.path.contains("/secrets");
    faults.add(Fault::Reject(403), reads);
    faults
}

impl ShardWorld {
    async fn start_without_permission(&self, replica: &'static str) -> Replica {
        let set_up = |manager: Manager, client| manager.shard(client, shards(replica, N_SLOTS)).unwrap();
        self.start_on(replica, without_permission(), set_up).await
    }

    async fn seat_note(&self, seat: u32) -> String {
        let lease = self.contest.leases().get(&format!("podset-seat-{seat}")).await.unwrap();
        lease.annotations().get("kctl.dev/live-seats").cloned().unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn replica_without_permission_gets_no_slot() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(5).await;
    let c = world.start_without_permission("c").await;
    advance_seconds(60).await;
    assert_eq!(c.view.shards().unwrap().seat(), Some(2));
    assert_eq!((a.n_owned(), b.n_owned(), c.n_owned()), (4, 4, 0));
    // The slots that `b` leaves behind go to `a` alone.
    b.stop().await.unwrap();
    advance_seconds(30).await;
    assert_eq!((a.n_owned(), c.n_owned()), (8, 0));
    world.change(1).await;
    world.wait_until_reconciled_at(1).await;
    c.faults.clear();
    advance_seconds(120).await;
    assert_eq!((a.n_owned(), c.n_owned()), (4, 4), "the permission was granted");
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn replicas_share_slots_if_none_is_complete() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start_without_permission("a").await;
    advance_seconds(4).await;
    let b = world.start_without_permission("b").await;
    advance_seconds(40).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    assert_eq!(world.seat_note(0).await, "0,1 incomplete");
    for replica in [&a, &b] {
        replica.faults.clear();
    }
    world.wait_until_reconciled_at(0).await;
    advance_seconds(2).await;
    assert_eq!((a.n_owned(), b.n_owned(), world.seat_note(0).await.as_str()), (4, 4, "0,1"));
    world.check_nothing_ran_twice();
}
