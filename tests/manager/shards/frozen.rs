//! A replica with a separate clock, which can be stopped while the others continue.

use kctl::{
    kube::{Api, api::ListParams},
    prelude::*,
};
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

use super::{N_KEYS, ShardWorld};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

const STEP: Duration = Duration::from_millis(50);

fn drive(runtimes: &[&Runtime], time: Duration) {
    let n_steps = time.as_millis() / STEP.as_millis();
    for _ in 0..n_steps {
        for runtime in runtimes {
            runtime.block_on(async { sleep(STEP).await });
        }
    }
}

#[test]
fn frozen_replica_with_expired_leases_writes_nothing() {
    let (ours, theirs) = (runtime(), runtime());
    let world = ours.block_on(ShardWorld::new(Duration::from_secs(2)));
    let a = theirs.block_on(world.start("a"));
    let both = [&ours, &theirs];
    let b = ours.block_on(world.start("b"));
    drive(&both, Duration::from_secs(40));
    assert!(a.n_owned() > 0 && b.n_owned() > 0, "{} and {}", a.n_owned(), b.n_owned());
    ours.block_on(world.change(1));
    drive(&both, Duration::from_secs(1));
    let busy = world.seen.lock().busy.len();
    assert!(busy > 4, "both are at work: {busy}");
    let by_a = |world: &ShardWorld| world.seen.lock().last.n_reconciled_by("a");
    let before = by_a(&world);
    assert!(before > 0);
    // SIGSTOP for 20 s, then SIGCONT.
    drive(&[&ours], Duration::from_secs(20));
    assert_eq!(b.n_owned(), 8);
    let n_written = |world: &ShardWorld| {
        let written = ours.block_on(async {
            Api::<Secret>::default_namespaced(world.contest.client.clone()).list(&ListParams::default()).await
        });
        let by = |secret: &Secret| secret.data.as_ref().and_then(|data| data.get("by")).map(|by| by.0.clone());
        written.unwrap().iter().filter(|secret| by(secret).is_some_and(|by| by == b"a")).count()
    };
    let written = n_written(&world);
    theirs.block_on(async { tokio::time::advance(Duration::from_secs(20)).await });
    drive(&both, Duration::from_secs(5));
    assert!(n_written(&world) <= written, "it wrote after it was continued");
    assert!(a.running.is_finished(), "its Leases are lost");
    drive(&both, Duration::from_secs(60));
    assert_eq!(world.reconciled_at(1), (N_KEYS, ["b"].into()));
}
