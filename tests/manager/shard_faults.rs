//! Wrong use of sharded replicas, and faults of single ones.

use std::sync::atomic::{AtomicUsize, Ordering};

use kctl::{
    k8s::{
        api::coordination::v1::{Lease, LeaseSpec},
        apimachinery::pkg::apis::meta::v1::MicroTime,
        jiff::SignedDuration,
    },
    key::ObjectKey,
    kube::{
        Client,
        api::{DeleteParams, PostParams},
    },
    manager::Manager,
    prelude::*,
};
use kctl_runtime::{
    manager::shards::{LABEL, ShardConfig},
    shard::ShardBy,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use tokio::time::{Instant, sleep};

use crate::{
    lease_candidates::{advance_seconds, config},
    replicas::Replica,
    shards::{N_SLOTS, ShardWorld, shards},
    trace::capture_log,
};

/// Makes a process a shard under this identity.
fn shard_as(identity: &'static str, seed: u64) -> impl FnOnce(Manager, Client) -> Manager {
    move |manager, client| {
        let mut leases = config(identity);
        leases.seed = seed;
        manager.shard(client, ShardConfig::new(leases, N_SLOTS, ShardBy::Object).unwrap()).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_of_one_identity_share_the_slots() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let a = world.start_by("a", shard_as("same", 1)).await;
    world.wait_until_reconciled_at(0).await;
    let b = world.start_by("b", shard_as("same", 2)).await;
    for state in 1..=20 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(20).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn restarted_container_waits_for_its_former_leases() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start_by("a", shard_as("pod-0", 1)).await;
    world.wait_until_reconciled_at(0).await;
    a.crash().await;
    let again = world.start_by("again", shard_as("pod-0", 2)).await;
    advance_seconds(12).await;
    assert_eq!(again.n_owned(), 0, "a write of the crashed process may still arrive");
    advance_seconds(8).await;
    assert_eq!(again.n_owned(), 8);
}

#[tokio::test(start_paused = true)]
async fn restarted_container_releases_its_former_seat() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start_by("a", shard_as("pod-0", 1)).await;
    world.wait_until_reconciled_at(0).await;
    a.crash().await;
    let _again = world.start_by("again", shard_as("pod-0", 2)).await;
    advance_seconds(20).await;
    let leases = world.leases().await;
    assert_eq!((&*leases["podset-seat-0"], &*leases["podset-seat-1"]), ("", "pod-0"));
}

/// The replicas notice the deletion at their next read, up to a retry period later.
#[tokio::test(start_paused = true)]
async fn deleted_settings_lease_admits_no_other_settings() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    advance_seconds(10).await;
    world.contest.leases().delete("podset", &DeleteParams::default()).await.unwrap();
    let other = |manager: Manager, client| manager.shard(client, shards("b", 4)).unwrap();
    let b = world.start_by("b", other).await;
    for state in 1..=30 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(30).await;
    assert_eq!((a.n_owned(), b.n_owned()), (8, 0));
    assert!(b.ready().unwrap_err().starts_with("other replicas run as `shards-8-by-object-v2`"), "{:?}", b.ready());
    let reason = b.view.shards().unwrap().explain(&ObjectKey::new(Some("default"), "web")).reason;
    let expected =
        "other replicas run as `shards-8-by-object-v2` and this one as `shards-4-by-object-v2`: use the same --shards";
    assert!(reason.contains("does not reconcile default/web") && reason.contains(expected), "{reason}");
    world.check_nothing_ran_twice();
}

/// A person removes the holder to let replicas with other settings begin. The present ones notice that at their next read, up
/// to a retry period later.
#[tokio::test(start_paused = true)]
async fn emptied_settings_lease_lets_no_other_settings_in() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let a = world.start("a").await;
    let other = |manager: Manager, client| manager.shard(client, shards("b", 4)).unwrap();
    let b = world.start_by("b", other).await;
    advance_seconds(10).await;
    world.contest.change(kctl::json!({ "spec": { "holderIdentity": "" } })).await;
    for state in 1..=20 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(20).await;
    assert_eq!((a.n_owned(), b.n_owned()), (8, 0));
    assert_eq!(world.leases().await["podset"], "shards-8-by-object-v2");
    world.check_nothing_ran_twice();
}

/// The owners don't reach their Leases of slots, so only the Lease of the settings is created again.
#[tokio::test(start_paused = true)]
async fn deleted_settings_and_slots_wait_for_former_owners() {
    let world = ShardWorld::new(Duration::from_millis(200)).await;
    let (a, b) = (world.start("a").await, world.start("b").await);
    advance_seconds(10).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    for replica in [&a, &b] {
        replica.faults.add(Fault::Reject(403), |request: &RequestSummary| request.path.contains("-slot-"));
    }
    let slots = (0..N_SLOTS).map(|slot| format!("podset-slot-{slot}"));
    for name in slots.chain(["podset".to_owned()]) {
        world.contest.leases().delete(&name, &DeleteParams::default()).await.unwrap();
    }
    let deleted = Instant::now();
    while !world.leases().await.contains_key("podset") {
        assert!(deleted.elapsed() < Duration::from_secs(5), "a replica creates it again");
        sleep(Duration::from_millis(10)).await;
    }
    // The Lease of the settings has not been renewed since.
    let c = world.start("c").await;
    for state in 1..=12 {
        world.change(state).await;
        advance_seconds(1).await;
        assert_eq!(c.n_owned(), 0, "the former owners may be at work: {state} s after the start");
    }
    advance_seconds(13).await;
    assert!(c.n_owned() > 0);
    world.check_nothing_ran_twice();
}

#[tokio::test(start_paused = true)]
async fn wait_for_settings_is_logged_once() {
    let (lines, _logged) = capture_log();
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start("a").await;
    advance_seconds(10).await;
    let (warning, info) = ("before this replica holds the Lease", "the wait for the Lease of the settings is over");
    let found = |what: &str| -> Vec<String> {
        lines.text().lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
    };
    assert_eq!(found(warning), [""; 0]);
    // Another test may have used the callsites for the first time while `capture_log` started.
    tracing::callsite::rebuild_interest_cache();
    let other = |manager: Manager, client| manager.shard(client, shards("b", 4)).unwrap();
    let b = world.start_by("b", other).await;
    advance_seconds(60).await;
    let warned = found(warning);
    assert!(warned.len() == 1 && warned[0].contains("WARN"), "{warned:?}");
    assert!(warned[0].contains(&b.ready().unwrap_err()) && warned[0].contains("default/podset"), "{warned:?}");
    tracing::callsite::rebuild_interest_cache();
    a.stop().await.unwrap();
    advance_seconds(20).await;
    assert_eq!(b.n_owned(), 4);
    let counts = [warning, info].map(|what| found(what).len());
    assert_eq!(counts, [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn rejected_lease_watch_names_role_of_shards() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    for selector in ["labelSelector", "fieldSelector"] {
        let (lines, _logged) = capture_log();
        let faults = Faults::default();
        faults.add(Fault::Reject(403), move |request: &RequestSummary| {
            // Another test may use the callsite of the warning for the first time while `capture_log` starts.
            tracing::callsite::rebuild_interest_cache();
            request.path.ends_with("/leases") && request.query.contains(selector)
        });
        let a = world.start_on("a", faults, |manager, client| manager.shard(client, shards("a", 8)).unwrap()).await;
        advance_seconds(5).await;
        let text = lines.text();
        let mut advice =
            text.lines().filter(|line| line.contains("leases") && line.contains("apply the role")).peekable();
        assert!(advice.peek().is_some(), "{selector}: {text}");
        assert!(advice.all(|line| line.contains("generate-rbac --shards 8 |")), "{text}");
        a.crash().await;
    }
}

/// The role was printed for fewer slots.
#[tokio::test(start_paused = true)]
async fn candidate_without_permission_asks_once_a_retry_period() {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let (faults, rejected) = (Faults::default(), Arc::<AtomicUsize>::default());
    let counted = rejected.clone();
    faults.add(Fault::Reject(403), move |request: &RequestSummary| {
        let is_beyond = ["-slot-4", "-slot-5", "-slot-6", "-slot-7"].iter().any(|slot| request.path.contains(slot));
        counted.fetch_add(usize::from(is_beyond), Ordering::Relaxed);
        is_beyond
    });
    let a = world.start_on("a", faults, shard_as("a", 1)).await;
    advance_seconds(5).await;
    rejected.store(0, Ordering::Relaxed);
    advance_seconds(20).await;
    assert_eq!(a.n_owned(), 4);
    assert!(a.ready().unwrap_err().contains("podset-slot-"), "{:?}", a.ready());
    let n_rejected = rejected.load(Ordering::Relaxed);
    // Each of four candidates tries after 2 to 4.4 s.
    assert!((16..=40).contains(&n_rejected), "{n_rejected} requests");
}

/// Slots of a busy replica come one by one, as its reconciles end. The list of the first ones is not repeated for each.
#[tokio::test(start_paused = true)]
async fn slots_gained_during_slow_list_delay_no_others() {
    let world = ShardWorld::new(Duration::from_millis(1500)).await;
    let a = world.start("a").await;
    world.wait_until_reconciled_at(0).await;
    world.change(1).await;
    let faults = Faults::default();
    let is_list =
        |request: &RequestSummary| request.method == "GET" && !request.is_watch && !request.path.ends_with("/leases");
    faults.add(Fault::DelayResponse(Duration::from_millis(700)), is_list);
    let b = world.start_on("b", faults, shard_as("b", 2)).await;
    let first_gain = wait_for_slot(&b).await;
    while world.n_reconciled_by("b") == 0 {
        // A list and a reconcile. Further slots are gained during the list.
        assert!(first_gain.elapsed() < Duration::from_millis(2600), "no key has run in the new replica");
        sleep(Duration::from_millis(10)).await;
    }
    world.wait_until_reconciled_at(1).await;
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    world.check_nothing_ran_twice();
}

/// Waits until a replica owns a slot, and returns when that was.
async fn wait_for_slot(replica: &Replica) -> Instant {
    while replica.n_owned() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    Instant::now()
}

/// Makes a process a shard whose clock differs from the API server's by these minutes.
fn shard_with_clock(
    world: &ShardWorld,
    identity: &'static str,
    minutes: i64,
) -> impl FnOnce(Manager, Client) -> Manager {
    let server = world.contest.server.clone();
    move |manager, client| {
        let clock = move || server.now() + SignedDuration::from_mins(minutes);
        manager.clock(Arc::new(clock)).shard(client, shards(identity, N_SLOTS)).unwrap()
    }
}

/// Returns by how many minutes the `renewTime` of a Lease differs from the clock of the API server.
async fn renew_time_offset(world: &ShardWorld, lease: &str) -> i64 {
    let renewed = world.contest.leases().get(lease).await.unwrap().spec.unwrap().renew_time.unwrap();
    let seconds = renewed.0.as_second() - world.contest.server.now().as_second();
    (seconds + 30).div_euclid(60)
}

/// Runs two replicas with these clocks, and crashes the first. Returns after which time the second has reconciled its keys.
async fn takeover_with_clocks(of_a: i64, of_b: i64) -> Duration {
    let world = ShardWorld::new(Duration::from_millis(20)).await;
    let a = world.start_by("a", shard_with_clock(&world, "a", of_a)).await;
    let b = world.start_by("b", shard_with_clock(&world, "b", of_b)).await;
    advance_seconds(5).await;
    let ahead = (renew_time_offset(&world, "podset-seat-0").await, renew_time_offset(&world, "podset-seat-1").await);
    assert_eq!(ahead, (of_a, of_b), "the Leases have the times of these clocks");
    let owners = world.leases().await;
    for state in 1..=40 {
        world.change(state).await;
        advance_seconds(1).await;
    }
    world.wait_until_reconciled_at(40).await;
    assert_eq!(world.leases().await, owners, "no live replica loses a Lease");
    assert_eq!((a.n_owned(), b.n_owned()), (4, 4));
    a.crash().await;
    world.change(41).await;
    let took = world.wait_until_reconciled_at(41).await;
    assert_eq!(b.n_owned(), 8);
    world.check_nothing_ran_twice();
    took
}

#[tokio::test(start_paused = true)]
async fn takeover_time_ignores_skewed_clocks() {
    for (of_a, of_b) in [(10, -10), (-10, 10)] {
        let took = takeover_with_clocks(of_a, of_b).await;
        let expected = Duration::from_secs(10)..Duration::from_secs(16);
        assert!(expected.contains(&took), "clocks {of_a} and {of_b} minutes ahead: {took:?}");
    }
}

/// The holder has gone. The replica counts from the moment at which it saw the Lease.
#[tokio::test(start_paused = true)]
async fn lease_of_another_clock_expires_after_its_duration() {
    for hours in [-1, 1] {
        let world = ShardWorld::new(Duration::from_millis(20)).await;
        let at = MicroTime(world.contest.server.now() + SignedDuration::from_hours(hours));
        let labels = Some([(LABEL.to_owned(), "podset".to_owned())].into());
        let metadata = ObjectMeta { name: Some("podset-slot-3".into()), labels, ..ObjectMeta::default() };
        let spec = LeaseSpec {
            holder_identity: Some("gone".into()),
            lease_duration_seconds: Some(15),
            acquire_time: Some(at.clone()),
            renew_time: Some(at),
            lease_transitions: Some(1),
            ..LeaseSpec::default()
        };
        let lease = Lease { metadata, spec: Some(spec) };
        world.contest.leases().create(&PostParams::default(), &lease).await.unwrap();
        let a = world.start("a").await;
        advance_seconds(14).await;
        assert_eq!(a.n_owned(), 0, "the holder may be at work; its clock is {hours} h ahead");
        advance_seconds(8).await;
        assert_eq!(a.n_owned(), 8, "the clock of the former holder was {hours} h ahead");
    }
}
