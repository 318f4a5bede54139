//! Rolling updates: the slots that move, and the reconciles during the moves.

use kctl::{manager::Manager, prelude::*};
use kctl_runtime::manager::shards::ShardView;

use super::{ShardWorld, shards};
use crate::{lease_candidates::advance_seconds, replicas::Replica};

#[tokio::test(start_paused = true)]
async fn rolling_update_under_load_reconciles_each_key_once() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let mut old = Vec::new();
    for replica in ["a", "b", "c"] {
        old.push(world.start(replica).await);
        advance_seconds(2).await;
    }
    let mut new = Vec::new();
    for (state, (replica, old)) in (1..).zip(["d", "e", "f"].into_iter().zip(old)) {
        world.change(state * 10).await;
        new.push(world.start(replica).await);
        world.change(state * 10 + 1).await;
        advance_seconds(1).await;
        world.change(state * 10 + 2).await;
        old.stop().await.unwrap();
        world.change(state * 10 + 3).await;
        let took = world.wait_until_reconciled_at(state * 10 + 3).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    world.check_nothing_ran_twice();
    assert_eq!(new.iter().map(Replica::n_owned).sum::<usize>(), 8);
    assert_eq!(world.seen.lock().failed, []);
}

/// The order in which a rolling update replaces a replica.
#[derive(Clone, Copy)]
enum Replacement {
    /// Like a Deployment with `maxSurge: 1` and `maxUnavailable: 0`: a new Pod starts, then an old one stops.
    StartFirst,
    /// Like a `StatefulSet`: an old Pod stops, then the new one starts.
    StopFirst,
}

/// A rolling update, with a record of the slots that have moved.
struct Rollout {
    world: ShardWorld,
    /// Running replicas, the oldest first.
    running: Vec<Replica>,
    /// The slots as each process sees them, including processes that have stopped.
    views: Vec<ShardView>,
    /// Number of slots that all processes together have gained, after each start and each stop.
    gained: Vec<u64>,
    n_slots: u32,
}

impl Rollout {
    async fn start(&mut self, replica: &'static str) {
        let n_slots = self.n_slots;
        let set_up = |manager: Manager, client| manager.shard(client, shards(replica, n_slots)).unwrap();
        let started = self.world.start_by(replica, set_up).await;
        self.views.push(started.view.shards().unwrap().clone());
        self.running.push(started);
        self.wait_until_balanced().await;
    }

    async fn stop_oldest(&mut self) {
        self.running.remove(0).stop().await.unwrap();
        self.wait_until_balanced().await;
    }

    /// Waits until each running replica has its share of the slots, and notes how many slots were gained until then.
    async fn wait_until_balanced(&mut self) {
        advance_seconds(5).await;
        let owned: Vec<usize> = self.running.iter().map(Replica::n_owned).collect();
        let n_slots = self.n_slots as usize;
        let share = n_slots.div_ceil(owned.len());
        assert!(owned.iter().sum::<usize>() == n_slots && owned.iter().all(|n| *n <= share), "{owned:?} of {n_slots}");
        self.gained.push(self.views.iter().map(ShardView::n_gained).sum());
    }
}

/// Replaces three replicas, the oldest first. Returns the number of slots that moved at each start and at each stop.
async fn moves_of_rollout(order: Replacement, n_slots: u32) -> Vec<u64> {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let mut rollout = Rollout { world, running: Vec::new(), views: Vec::new(), gained: Vec::new(), n_slots };
    for replica in ["a", "b", "c"] {
        rollout.start(replica).await;
    }
    let before = rollout.gained.len() - 1;
    for replica in ["d", "e", "f"] {
        match order {
            Replacement::StartFirst => {
                rollout.start(replica).await;
                rollout.stop_oldest().await;
            }
            Replacement::StopFirst => {
                rollout.stop_oldest().await;
                rollout.start(replica).await;
            }
        }
    }
    rollout.world.check_nothing_ran_twice();
    rollout.gained[before..].windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// `guide/sharding.md` has these sums. Each slot moves at least once, because no old replica remains.
#[tokio::test(start_paused = true)]
async fn rolling_update_moves_slots_by_its_order() {
    for (n_slots, expected) in [(24, [40, 54]), (8, [21, 16])] {
        let deployment = moves_of_rollout(Replacement::StartFirst, n_slots).await;
        let stateful_set = moves_of_rollout(Replacement::StopFirst, n_slots).await;
        let sums = [&deployment, &stateful_set].map(|moves| moves.iter().sum::<u64>());
        assert!(sums.iter().all(|sum| *sum >= u64::from(n_slots)), "{deployment:?}, {stateful_set:?}");
        assert_eq!(
            sums, expected,
            "update guide/sharding.md; {n_slots} slots: a Deployment {deployment:?}, a StatefulSet {stateful_set:?}"
        );
    }
}
