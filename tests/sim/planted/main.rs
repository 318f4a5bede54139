//! Controllers with one real-world bug each, and their corrected twins.

#![expect(
    clippy::clone_on_copy,
    clippy::trivially_copy_pass_by_ref,
    clippy::unused_self,
    reason = "systems outside of the cluster are used as clients of them are, although they are thread-locals"
)]
#![expect(clippy::print_stdout, reason = "what was found is worth reading: `cargo test … -- --nocapture`")]

mod after_lease;
mod case;
mod cleanup_error_ignored;
mod deletion_ignored;
mod done_too_early;
mod edge_triggered;
mod error_as_absence;
mod external_pair;
mod external_twice;
mod finalizer_kept;
mod finalizers_cleared;
mod generated_name;
mod half_made;
mod missed_delete;
mod missing_finalizer;
mod no_permit;
mod not_watched;
mod outdated_list;
mod outdated_member;
mod owner_by_name;
mod random_order;
mod random_restart;
mod random_select;
mod random_value;
mod sharded;
mod site;
mod stale_read;
mod status_each_time;
mod status_time_each_time;
mod swallowed_error;
mod too_late;

use kctl::{
    __private_0_1::Planted,
    app::ShardBy,
    testing::{Scenario, Sim},
};

/// Number of seeds within which each bug has to be found.
const SEEDS: u64 = 200;
/// Number of seeds with which each twin has to pass. `KCTL_SEEDS` overrides it, as in the nightly workflow.
const TWIN_SEEDS: u64 = 8;
/// Number of single faults and of seeds that a twin executes twice. The first single fault is a restart.
const TWIN_REPEATS: usize = 2;

/// Number of seeds for replicas that share the keys. Their runs cost more, because the replicas renew eight Leases
/// instead of one. Only the run without faults is executed twice; the sharded examples repeat others.
const SHARDED_SEEDS: u64 = 2;
/// Number of seeds with which the sharded examples run (`tests/sim/examples.rs`). A bug of the library has to be found
/// within them.
const EXAMPLE_SEEDS: u64 = 16;
/// Number of seeds in the test that `kctl new` writes. An ignored error of an external call has to be found within them.
const NEW_PROJECT_SEEDS: u64 = 16;

/// The runs that reveal a bug.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    WithoutFaults,
    /// Runs with a single fault, or with the faults of a seed.
    WithFaults,
    /// Runs with the faults of a seed. The single faults that come before them reveal nothing, so they are left out.
    WithSeeds,
}
use Shows::{WithFaults, WithSeeds, WithoutFaults};

/// Checks that a bug is found, and that the faults of that run do not excuse it: the twin survives them.
fn check_found(bug: &Scenario, twin: &Scenario, shows: Shows, checker: &str) {
    let sim = match shows {
        WithoutFaults | WithFaults => Sim::seeds(0..SEEDS),
        WithSeeds => Sim::seeds_alone(0..SEEDS),
    };
    check_found_in(&sim, bug, twin, shows, checker);
}

fn check_found_in(sim: &Sim, bug: &Scenario, twin: &Scenario, shows: Shows, checker: &str) {
    let report = sim.run(bug).unwrap();
    let failure = report.failure().expect("the simulator does not find the bug");
    println!("{} runs\n{failure}", report.runs());
    assert_eq!(failure.checker(), checker, "{failure}");
    assert_eq!(failure.seed() == "none", shows == WithoutFaults, "{failure}");
    let report = Sim::run_with_faults_of(failure, twin).unwrap();
    assert!(report.failure().is_none(), "the twin: {}", report.failure().unwrap());
}

fn check_clean(twin: &Scenario) {
    check_clean_in(&Sim::from_env(TWIN_SEEDS).unwrap().twice(TWIN_REPEATS), twin);
}

fn check_sharded(twin: &Scenario) {
    check_clean_in(&Sim::from_env(SHARDED_SEEDS).unwrap().twice(0), twin);
}

fn check_clean_in(sim: &Sim, twin: &Scenario) {
    let report = sim.run(twin).unwrap();
    if let Some(failure) = report.failure() {
        panic!("{failure}");
    }
    assert!(report.injected() > 0, "no fault hit anything");
    println!("{} runs, {} faults", report.runs(), report.injected());
}

/// Declares two tests for each bug: a checker finds it, and finds nothing in its corrected twin.
macro_rules! planted {
    ($($name:ident: $shows:ident, $checker:literal;)*) => {$(
        mod $name {
            #[test]
            fn is_found() {
                super::check_found(&crate::$name::bug(), &crate::$name::twin(), super::$shows, $checker);
            }

            #[test]
            fn twin_is_clean() {
                super::check_clean(&crate::$name::twin());
            }
        }
    )*};
}

/// Only a cache that starts with an outdated list shows the bug.
#[test]
fn trust_in_the_first_list_is_found() {
    let cases =
        [(outdated_list::bug(), "on a server that takes"), (outdated_member::bug(), "on a server of edge that takes")];
    for (bug, server) in cases {
        let report = Sim::single_faults().run(&bug).unwrap();
        let failure = report.failure().expect("the simulator does not find the bug");
        assert!(matches!(failure.faults(), [only] if only.contains(server)), "{failure}");
        let report = Sim::single_faults().run(&bug.without_outdated_lists()).unwrap();
        assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    }
}

#[test]
fn permit_that_ignores_the_slot_is_found() {
    // No case runs twice, because a run of three replicas costs more than others.
    let sim = Sim::seeds(0..SEEDS).twice(0);
    check_found_in(&sim, &sharded::bug(Planted::PermitGrants), &sharded::twin(), WithFaults, "only the owner writes");
}

#[test]
fn hand_over_that_does_not_wait_is_found() {
    check_found(
        &sharded::bug(Planted::HandOverAtOnce),
        &sharded::twin(),
        WithoutFaults,
        "a key never runs twice at once",
    );
}

#[test]
fn replicas_that_hash_differently_are_found() {
    check_found(&sharded::bug(Planted::AnotherHash), &sharded::twin(), WithoutFaults, "only the owner writes");
}

/// The objects of a slot are in no cache of its owner.
#[test]
fn caches_that_hash_differently_are_found() {
    let twin = sharded::by_namespace(ShardBy::Namespace);
    check_found(&twin.clone().plant(Planted::CacheHash), &twin, WithoutFaults, "each site reached its version");
}

/// The correct cache passes the seeds that the bug needs.
#[test]
fn cache_that_ignores_overtaken_lists_is_found() {
    let (twin, bug) = (sharded::with_children(), sharded::with_children().plant(Planted::OvertakenListIgnored));
    let report = Sim::seeds_alone(0..EXAMPLE_SEEDS).twice(0).run(&bug).unwrap();
    let failure = report.failure().expect("the simulator does not find the bug");
    println!("{} runs\n{failure}", report.runs());
    assert_eq!(failure.checker(), "each owner of a site sees its key", "{failure}");
    let n_seeds = 1 + failure.seed().parse::<u64>().expect("the bug shows with the faults of a seed");
    let clean = Sim::seeds_alone(0..n_seeds).twice(0).run(&twin).unwrap();
    assert!(clean.failure().is_none(), "{}", clean.failure().unwrap());
}

#[test]
fn replicas_that_share_keys_survive_faults() {
    check_sharded(&sharded::twin());
}

#[test]
fn replicas_that_share_namespaces_survive_faults() {
    check_sharded(&sharded::by_namespace(ShardBy::Namespace));
}

#[test]
fn replicas_whose_objects_the_server_selects_survive_faults() {
    check_sharded(&sharded::by_namespace(ShardBy::NamespaceRange));
}

/// Replicas have to work alike on a server without the feature.
#[test]
fn replicas_that_select_their_objects_survive_faults() {
    check_sharded(&sharded::by_namespace(ShardBy::NamespaceRange).without_server_selection());
}

#[test]
fn watch_kept_when_slots_move_is_found() {
    let twin = sharded::by_namespace(ShardBy::NamespaceRange);
    check_found(&twin.clone().plant(Planted::WatchKept), &twin, WithoutFaults, "each site reached its version");
}

/// Random seeds also let Leases expire, so they find the missing permit without the list of single faults.
#[test]
fn missing_permit_is_found_by_seeds_alone() {
    let report = Sim::seeds_alone(0..SEEDS).twice(0).run(&no_permit::bug()).unwrap();
    let failure = report.failure().expect("the simulator does not find the bug");
    println!("{} runs\n{failure}", report.runs());
    assert_eq!(failure.checker(), "only the leader writes", "{failure}");
}

/// A reconcile that continues before the election does not know that its Lease has expired. Only the permit stops its write.
#[test]
fn missing_permit_is_found_by_a_frozen_leader() {
    let (twin, bug) = (sharded::with_leader_election(), sharded::with_leader_election().without_fencing());
    let mut next = 0;
    loop {
        let report = Sim::seeds_alone(next..SEEDS).twice(0).run(&bug).unwrap();
        let failure = report.failure().expect("no frozen leader reveals the bug");
        if matches!(failure.faults(), [only] if only.contains("the leader is frozen")) {
            println!("{failure}");
            assert_eq!(failure.checker(), "only the leader writes", "{failure}");
            let report = Sim::run_with_faults_of(failure, &twin).unwrap();
            assert!(report.failure().is_none(), "the twin: {}", report.failure().unwrap());
            return;
        }
        next = 1 + failure.seed().parse::<u64>().expect("the bug shows with the faults of a seed");
    }
}

/// The program has to be down when the user deletes, and no request of it is near.
#[test]
fn deletion_missed_by_a_quiet_program_is_found() {
    let report = Sim::single_faults().run(&missing_finalizer::quiet_bug()).unwrap();
    let failure = report.failure().expect("the simulator does not find the bug");
    assert_eq!(failure.checker(), "one record for each site", "{failure}");
    assert_eq!(failure.faults(), ["all processes are down during step 1"], "{failure}");
    let twin = missing_finalizer::twin();
    let report = Sim::run_with_faults_of(failure, &twin).unwrap();
    assert!(report.failure().is_none(), "the twin: {}", report.failure().unwrap());
}

/// One fault of hundreds reveals the bug: the last cleanup that a rule sees has to fail.
#[test]
fn ignored_cleanup_error_is_found_with_few_seeds() {
    let report = Sim::seeds(0..NEW_PROJECT_SEEDS).run(&cleanup_error_ignored::bug()).unwrap();
    let failure = report.failure().expect("the simulator does not find the bug");
    println!("{} runs\n{failure}", report.runs());
    assert_eq!(failure.checker(), "the registry knows each site", "{failure}");
    let is_cleanup = |fault: &String| fault.ends_with("(unregister): fails before it took effect");
    assert!(matches!(failure.faults(), [only] if is_cleanup(only)), "{failure}");
    let report = Sim::run_with_faults_of(failure, &cleanup_error_ignored::twin()).unwrap();
    assert!(report.failure().is_none(), "the twin: {}", report.failure().unwrap());
}

/// Two controllers clean up: only a crash in between shows that one of them removes the other's finalizer.
#[test]
fn cleared_foreign_finalizers_are_found_by_a_crash() {
    check_found(
        &finalizers_cleared::bug_alone(),
        &finalizers_cleared::twin(),
        WithSeeds,
        "each site has a disk and a name, and goes when it has none",
    );
}

mod bug {
    use super::{WithFaults, WithSeeds, WithoutFaults, check_clean, check_found};

    planted! {
        after_lease: WithSeeds, "no program uploads after another has begun";
        cleanup_error_ignored: WithFaults, "the registry knows each site";
        deletion_ignored: WithFaults, "no disk is wiped under a pod";
        done_too_early: WithFaults, "every version is released";
        edge_triggered: WithFaults, "the database has the version of the site";
        error_as_absence: WithFaults, "no database is dropped while there are credentials";
        external_pair: WithFaults, "each site has a bucket with a tag";
        external_twice: WithFaults, "one invoice for each site";
        finalizer_kept: WithFaults, "one disk for each site";
        finalizers_cleared: WithoutFaults, "a site exists as long as a user holds it";
        generated_name: WithFaults, "one key for the site";
        half_made: WithFaults, "a site has all of its parts";
        missed_delete: WithFaults, "each record leads to a site";
        missing_finalizer: WithFaults, "one record for each site";
        no_permit: WithFaults, "only the leader writes";
        not_watched: WithFaults, "each site has a key";
        outdated_list: WithFaults, "no database of a site is dropped";
        outdated_member: WithFaults, "the secret opens the site";
        owner_by_name: WithFaults, "each site has a separate key";
        random_order: WithoutFaults, "one seed, one trace";
        random_restart: WithFaults, "one seed, one trace";
        random_select: WithoutFaults, "one seed, one trace";
        random_value: WithoutFaults, "one seed, one trace";
        stale_read: WithFaults, "the sites share one secret";
        status_each_time: WithoutFaults, "no hot loop";
        status_time_each_time: WithoutFaults, "no hot loop";
        swallowed_error: WithFaults, "the secret has the version of its site";
        too_late: WithFaults, "each site has a key";
    }
}
