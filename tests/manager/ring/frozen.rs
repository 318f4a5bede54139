//! A shard with a separate clock, which can be stopped while the others continue.

use std::collections::BTreeSet;

use kctl::prelude::*;
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

use super::{N_KEYS, RingWorld, sharder::TAKEN};

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
