//! A shard with a separate clock, which freezes while the others continue.

use std::collections::BTreeSet;

use kctl::prelude::*;
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

use super::{
    N_KEYS, RingWorld,
    sharder::{DRAIN_LABEL, TAKEN},
};

const STEP: Duration = Duration::from_millis(50);

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn drive(runtimes: &[&Runtime], time: Duration) {
    for _ in 0..time.as_millis() / STEP.as_millis() {
        for runtime in runtimes {
            runtime.block_on(async { sleep(STEP).await });
        }
    }
}

#[test]
fn frozen_shard_with_a_taken_lease_writes_nothing() {
    let (ours, theirs) = (runtime(), runtime());
    let world = ours.block_on(RingWorld::new(Duration::from_secs(2)));
    let a = theirs.block_on(world.start("a"));
    let _b = ours.block_on(world.start("b"));
    let both = [&ours, &theirs];
    drive(&both, Duration::from_secs(40));
    assert_eq!(world.reconciled_at(0), (N_KEYS, ["a", "b"].into()));
    ours.block_on(world.change(1));
    drive(&both, Duration::from_secs(1));
    assert!(world.seen.lock().busy.iter().any(|(_, shard)| *shard == "a"), "it is at work");
    // SIGSTOP for 40 s, then SIGCONT.
    drive(&[&ours], Duration::from_secs(40));
    assert_eq!(ours.block_on(world.holder("a")), TAKEN);
    assert_eq!(world.shard_by_object("configmaps").into_values().collect::<BTreeSet<_>>(), ["b".to_owned()].into());
    let written_by_a = |world: &RingWorld| {
        let secrets = world.server.objects("", "secrets");
        // `YQ==` is `a`.
        secrets.iter().filter(|secret| secret["data"]["by"] == "YQ==").count()
    };
    let before = written_by_a(&world);
    theirs.block_on(async { tokio::time::advance(Duration::from_secs(40)).await });
    drive(&both, Duration::from_secs(5));
    assert!(written_by_a(&world) <= before, "it wrote after it was continued");
    assert!(a.running.is_finished(), "its Lease is lost");
    drive(&both, Duration::from_secs(60));
    assert_eq!(world.reconciled_at(1), (N_KEYS, ["b"].into()));
}

/// Checks that all objects are reconciled in this state, none is drained, and each of these shards has some of them.
fn check_settled<const N: usize>(world: &RingWorld, state: u64, shards: [&str; N]) {
    assert_eq!(world.reconciled_at(state).0, N_KEYS);
    let configs = world.server.objects("", "configmaps");
    assert!(configs.iter().all(|config| config["metadata"]["labels"][DRAIN_LABEL].is_null()), "{configs:?}");
    let assigned = world.shard_by_object("configmaps");
    assert_eq!(assigned.values().map(String::as_str).collect::<BTreeSet<_>>(), shards.into());
    assert_eq!(world.shard_by_object("secrets"), assigned, "each has one owned object, in the same shard");
}

/// The steps that were tried with the sharder itself (`docs/decisions/controller-rings.md`).
#[test]
fn keys_survive_joined_stopped_killed_and_frozen_shards() {
    let (ours, theirs) = (runtime(), runtime());
    let world = ours.block_on(RingWorld::new(Duration::from_secs(1)));
    let (a, b) = (ours.block_on(world.start("a")), ours.block_on(world.start("b")));
    let c = theirs.block_on(world.start("c"));
    let both = [&ours, &theirs];
    drive(&both, Duration::from_secs(40));
    check_settled(&world, 0, ["a", "b", "c"]);
    let _d = ours.block_on(world.start("d"));
    drive(&both, Duration::from_secs(40));
    check_settled(&world, 0, ["a", "b", "c", "d"]);
    ours.block_on(b.stop()).unwrap();
    drive(&both, Duration::from_secs(40));
    check_settled(&world, 0, ["a", "c", "d"]);
    ours.block_on(world.change(1));
    drive(&both, Duration::from_millis(500));
    let busy: BTreeSet<_> = world.seen.lock().busy.iter().map(|(_, shard)| *shard).collect();
    assert_eq!(busy, ["a", "c", "d"].into());
    // SIGKILL for `a`, and SIGSTOP for `c`, which gets SIGCONT 46 s later.
    ours.block_on(a.crash());
    for state in 2..=14 {
        ours.block_on(world.change(state));
        drive(&[&ours], Duration::from_secs(3));
    }
    drive(&[&ours], Duration::from_secs(7));
    assert_eq!([ours.block_on(world.holder("a")), ours.block_on(world.holder("c"))], [TAKEN; 2]);
    theirs.block_on(async { tokio::time::advance(Duration::from_secs(46)).await });
    drive(&both, Duration::from_secs(5));
    assert!(c.running.is_finished(), "its Lease is lost");
    drive(&both, Duration::from_secs(100));
    check_settled(&world, 14, ["d"]);
    assert_eq!(world.reconciled_at(14).1, ["d"].into());
    let overlaps = world.seen.lock().overlaps();
    assert!(overlaps.is_empty(), "two shards reconciled a key at the same time: {overlaps:?}");
}
