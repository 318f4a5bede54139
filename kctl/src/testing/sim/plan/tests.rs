//! Tests of the plans: which single faults there are, and what seeds choose.

use std::collections::BTreeSet;

use kctl_runtime::__private_0_1::ThawOrder;

use super::{
    points::{FaultPoints, History},
    singles::{READ_FAILURES, sample_evenly, sample_with},
    *,
};
use crate::testing::sim::lease_lapse::{Renewals, longest_write};

#[test]
fn long_lists_are_thinned_evenly() {
    assert_eq!(sample_evenly((0..10).collect(), 5), [1, 3, 5, 7, 9]);
    assert_eq!(sample_evenly((0..3).collect(), 5), [0, 1, 2]);
    assert_eq!(sample_evenly((0..1000).collect::<Vec<i32>>(), 7).len(), 7);
}

#[test]
fn reserved_items_are_kept_in_their_order() {
    let sample = |max, reserved: &[i32]| sample_with((0..10).collect(), max, |one| reserved.contains(one));
    assert_eq!(sample(3, &[8, 2]), [2, 8, 9]);
    assert_eq!(sample(2, &[8, 2]), [2, 8]);
    assert_eq!(sample(5, &[]), sample_evenly((0..10).collect(), 5));
    assert_eq!(sample(10, &[8]), (0..10).collect::<Vec<_>>());
}

#[test]
fn restarts_of_settled_states_come_first() {
    let settled_times = [20, 40].map(Duration::from_secs).to_vec();
    let points = FaultPoints { settled_times, n_writes: 1, writers: vec![1], instances: 3, ..FaultPoints::default() };
    for (n_slots, n_restarts) in [(0, 2), (4, 6)] {
        let points = FaultPoints { n_slots, ..points.clone() };
        let restarts = points.restarts();
        assert_eq!(points.singles()[..n_restarts], restarts);
        let [Fault::At { time, what: TimedFault::Crash { instance } }, ..] = restarts[..] else {
            panic!("{restarts:?}")
        };
        assert_eq!((time, instance), (Duration::from_millis(39_750), usize::from(n_slots == 0)));
    }
    let many = FaultPoints { settled_times: vec![Duration::from_secs(20); 100], ..points };
    assert_eq!(many.restarts().len(), 8);
}

#[test]
fn leaders_are_frozen_shortly_before_each_write() {
    // The last write is one of the final deletion, which no freeze could hit.
    let write_times = [0, 20, 20, 40, 90].map(Duration::from_secs).to_vec();
    let settled = Duration::from_secs(60);
    let points = FaultPoints { write_times, n_writes: 5, instances: 2, settled, ..FaultPoints::default() };
    let times = |points: &FaultPoints| -> Vec<u64> {
        let seconds = |fault| match fault {
            Fault::At { time, what: TimedFault::Freeze(Freeze { instance: None, .. }) } => Some(time.as_secs()),
            _ => None,
        };
        points.singles().into_iter().filter_map(seconds).collect()
    };
    assert_eq!(times(&points), [19, 39]);
    for none in [
        FaultPoints { instances: 1, ..points.clone() },
        FaultPoints { n_slots: 4, ..points.clone() },
        FaultPoints { without_freezes: true, ..points },
    ] {
        assert!(times(&none).is_empty(), "{none:?}");
    }
}

#[test]
fn external_calls_have_separate_faults() {
    let points = FaultPoints { n_writes: 3, externals: vec!["create".into(), "tag".into()], ..FaultPoints::default() };
    let is_external = |fault: &Fault| matches!(fault, Fault::External { .. });
    assert_eq!(points.singles().iter().filter(|fault| is_external(fault)).count(), 10);
    let none = FaultPoints { externals: Vec::new(), ..points.clone() };
    for seed in 0..200 {
        let mut with = points.choose_faults(seed);
        let n_external = with.extract_if(.., |fault| is_external(fault)).count();
        assert!(n_external <= 1, "seed {seed}");
        assert_eq!(with, none.choose_faults(seed), "the other faults of seed {seed} are the same");
    }
    let n_seeds = (0..200).filter(|seed| points.choose_faults(*seed).iter().any(is_external)).count();
    assert!((60..140).contains(&n_seeds), "{n_seeds} of 200");
}

#[test]
fn key_faults_hit_the_last_external_calls() {
    let texts = |calls: &[&str], n_externals_of_work| -> Vec<String> {
        let externals = calls.iter().copied().map(String::from).collect();
        let points = FaultPoints { externals, n_externals_of_work, ..FaultPoints::default() };
        let faults = points.key_externals();
        let singles = points.singles();
        assert!(faults.iter().all(|fault| singles.contains(fault)), "{faults:?}");
        faults.iter().map(ToString::to_string).collect()
    };
    // The last call comes from the final deletion. No rule is checked after that.
    let expected = [
        "call 3: fails before it took effect",
        "call 2: fails before it took effect",
        "call 3: crash after it took effect",
        "call 1: crash after it took effect",
        "call 3: crash before it took effect",
        "call 2: crash before it took effect",
        "call 4: fails before it took effect",
    ];
    assert_eq!(texts(&["make", "make", "drop", "drop"], 3), expected);
    // Only the final deletion has the calls that clean up.
    let fails = ["call 2: fails before it took effect", "call 1: fails before it took effect"];
    assert_eq!(texts(&["make", "drop"], 1)[..2], fails);
    assert!(texts(&[], 0).is_empty());
}

#[test]
fn external_calls_of_many_names_are_bounded() {
    for (n_names, n_expected) in [(24, 72), (25, 75), (26, 75)] {
        let externals = (0..n_names).map(|n| format!("call {n}")).collect();
        let points = FaultPoints { externals, n_externals_of_work: n_names, ..FaultPoints::default() };
        let faults = points.key_externals();
        assert_eq!(faults.len(), n_expected);
        assert_eq!(faults[0], Fault::External { nth: n_names as u64, what: ExternalFault::Fails });
    }
}

#[test]
fn long_lists_keep_key_faults() {
    let externals = ["make", "drop"].map(String::from).to_vec();
    let points = FaultPoints { n_writes: 2_000, externals, n_externals_of_work: 2, ..FaultPoints::default() };
    let singles = points.singles();
    assert_eq!(singles.len(), SINGLES_MAX);
    assert!(points.key_externals().iter().all(|fault| singles.contains(fault)));
}

#[test]
fn quarter_of_seeds_has_jitter() {
    let points = FaultPoints { n_writes: 3, ..FaultPoints::default() };
    let n_jitters = |points: &FaultPoints| {
        let faults = (0..400).flat_map(|seed| points.choose_faults(seed));
        faults.filter(|fault| matches!(fault, Fault::Jitter { .. })).count()
    };
    assert!((60..140).contains(&n_jitters(&points)), "{} of 400", n_jitters(&points));
    assert_eq!(n_jitters(&FaultPoints { n_writes: 0, ..points }), 0);
}

#[test]
fn each_older_state_is_tried_after_each_write() {
    let cases = [
        (true, true, vec![3, 4, 5, 3, 4, 5, 6], vec![3, 4, 3, 4, 5]),
        (false, true, vec![5, 6], vec![3, 4, 3, 4, 5]),
        (false, false, vec![5, 6], vec![]),
    ];
    for (reads_may_be_cached, outdated_lists, stale, outdated) in cases {
        let own = History { first: 3, before: vec![5, 6], reads_may_be_cached, ..History::default() };
        let points = FaultPoints { n_writes: 2, histories: vec![own], outdated_lists, ..FaultPoints::default() };
        let behind = |is_outdated: bool| -> Vec<u64> {
            let restarts = points.singles().into_iter().filter_map(|fault| match fault {
                Fault::Write { what: WriteFault::Crash { behind, .. }, .. } => behind,
                _ => None,
            });
            restarts.filter(|behind| behind.is_outdated == is_outdated).map(|behind| behind.revision).collect()
        };
        assert_eq!((behind(false), behind(true)), (stale, outdated));
    }
}

fn with_edge() -> FaultPoints {
    let history = |cluster: &str, first, before: &[u64]| History {
        cluster: cluster.into(),
        first,
        before: before.to_vec(),
        reads_may_be_cached: false,
    };
    let histories = vec![history("", 3, &[5, 6]), history("edge", 20, &[20, 22])];
    FaultPoints { n_writes: 2, histories, outdated_lists: true, ..FaultPoints::default() }
}

#[test]
fn every_older_state_is_tried_after_each_write() {
    let texts: Vec<_> = with_edge().restarts_behind().iter().map(ToString::to_string).collect();
    let on_edge: Vec<_> = texts.iter().filter(|text| text.contains("edge")).map(String::as_str).collect();
    let expected = [
        "crash after write 1 took effect, restart on a server of edge that is behind (revision 20)",
        "crash after write 2 took effect, restart on a server of edge that is behind (revision 22)",
        "crash after write 2 took effect, restart on a server of edge that takes revision 20 for the newest state",
        "crash after write 2 took effect, restart on a server of edge that takes revision 21 for the newest state",
    ];
    assert_eq!(on_edge, expected);
    assert_eq!(texts.len() - on_edge.len(), 7, "the faults of the app's own cluster");
}

#[test]
fn seeds_choose_servers_and_their_past_states() {
    let points = with_edge();
    let chosen = (0..2_000).flat_map(|seed| points.choose_faults(seed)).filter_map(|fault| match fault {
        Fault::Write { what: WriteFault::Crash { behind, .. }, .. } => behind,
        _ => None,
    });
    let mut seen = BTreeSet::new();
    for StaleServer { cluster, revision, is_outdated } in chosen {
        let (all, newest) = if cluster.is_empty() { (3..=6, 5..=6) } else { (20..=22, 20..=22) };
        let revisions = if is_outdated { all } else { newest };
        assert!(revisions.contains(&revision), "{cluster:?} at {revision}, outdated: {is_outdated}");
        seen.insert((cluster.to_string(), is_outdated));
    }
    let each = ["", "edge"].map(|cluster| [false, true].map(|is_outdated| (cluster.to_owned(), is_outdated)));
    assert_eq!(seen, each.into_iter().flatten().collect());
}

#[test]
fn clock_jump_faults_cover_every_process() {
    let points = FaultPoints { instances: 3, settled: Duration::from_secs(9), ..FaultPoints::default() };
    let jumps = (0..400).flat_map(|seed| points.choose_faults(seed)).filter_map(|fault| match fault {
        Fault::At { what: TimedFault::ClockJump { instance, .. }, .. } => Some(instance),
        _ => None,
    });
    assert_eq!(jumps.collect::<std::collections::BTreeSet<_>>(), [0, 1, 2].into());
}

/// A run waits for the ends of these faults before it checks the final state, so later ones would hit an idle app.
/// [`CRASH_WINDOW_MIN`] is shorter than this work.
#[test]
fn timed_faults_of_seeds_meet_the_work() {
    let (work, deletion) = ([20, 40].map(Duration::from_secs), Duration::from_secs(200));
    let (write_times, settled) = ([work[0], work[1], deletion].to_vec(), Duration::from_secs(120));
    for (instances, n_slots) in [(1, 0), (3, 0), (3, 4)] {
        let points = FaultPoints {
            write_times: write_times.clone(),
            writers: vec![0; 3],
            n_writes: 3,
            settled,
            instances,
            n_slots,
            ..FaultPoints::default()
        };
        let times: Vec<_> = (0..400)
            .flat_map(|seed| points.choose_faults(seed))
            .filter_map(|fault| if let Fault::At { time, .. } = fault { Some(time) } else { None })
            .collect();
        assert!(times.len() > 50, "{} faults", times.len());
        assert!(times.iter().all(|time| *time < settled), "{instances} instances, {n_slots} slots: {times:?}");
    }
}

#[test]
fn only_sharded_replicas_get_slow_lists() {
    for n_slots in [0, 4] {
        let settled = Duration::from_secs(60);
        let points = FaultPoints { instances: 3, n_slots, settled, ..FaultPoints::default() };
        let slow = (0..400).flat_map(|seed| points.choose_faults(seed)).filter_map(|fault| match fault {
            Fault::At { time, what: TimedFault::SlowLists { instance, .. } } => Some((time, instance)),
            _ => None,
        });
        let slow: Vec<_> = slow.collect();
        assert!(slow.iter().all(|(time, _)| *time < settled), "{slow:?}");
        let instances: std::collections::BTreeSet<_> = slow.iter().map(|(_, instance)| *instance).collect();
        assert_eq!(instances.len(), if n_slots == 0 { 0 } else { 3 });
    }
}

/// Number of seeds with which a sharded example runs.
const EXAMPLE_SEEDS: u64 = 16;

#[test]
fn seeds_freeze_the_process_of_a_write() {
    let write_times = vec![Duration::from_secs(20), Duration::from_secs(40)];
    for n_slots in [0, 4] {
        let write_times = write_times.clone();
        let points = FaultPoints {
            write_times,
            writers: vec![1, 2],
            n_writes: 2,
            instances: 3,
            n_slots,
            settled: Duration::from_secs(60),
            ..FaultPoints::default()
        };
        let freezes = |seeds: std::ops::Range<u64>| -> Vec<(Duration, Freeze)> {
            let of = |fault| match fault {
                Fault::At { time, what: TimedFault::Freeze(freeze) } => Some((time, freeze)),
                _ => None,
            };
            seeds.flat_map(|seed| points.choose_faults(seed)).filter_map(of).collect()
        };
        let all = freezes(0..400);
        for (time, freeze) in &all {
            let is_of = |write: u128| (write - 1_500..write + 900).contains(&time.as_millis());
            let is_near_its_write = match freeze.instance {
                Some(1) => n_slots > 0 && is_of(20_000),
                Some(_) => n_slots > 0 && is_of(40_000),
                None => n_slots == 0 && (is_of(20_000) || is_of(40_000)),
            };
            assert!(is_near_its_write, "{time:?}, {n_slots} slots: {freeze}");
        }
        for order in [ThawOrder::AsWoken, ThawOrder::Reversed] {
            assert!(all.iter().any(|(_, freeze)| freeze.order == order), "{order:?}");
        }
        // Leases last 15 s.
        let n_expired = all.iter().filter(|(_, freeze)| freeze.length > Duration::from_secs(15)).count();
        assert!(n_expired > all.len() / 2 && n_expired < all.len(), "{n_expired} of {}", all.len());
        assert!(freezes(0..EXAMPLE_SEEDS).len() > 2, "an example meets several");
    }
}

#[test]
fn only_several_replicas_are_frozen() {
    let n_frozen = |points: &FaultPoints| {
        let faults = (0..400).flat_map(|seed| points.choose_faults(seed));
        faults.filter(|fault| matches!(fault, Fault::At { what: TimedFault::Freeze(_), .. })).count()
    };
    for (instances, n_slots, is_frozen) in [(1, 0, false), (2, 0, true), (2, 4, true)] {
        let (write_times, writers) = (vec![Duration::from_secs(20)], vec![0]);
        let settled = Duration::from_secs(60);
        let points =
            FaultPoints { write_times, writers, n_writes: 1, instances, n_slots, settled, ..FaultPoints::default() };
        assert_eq!(n_frozen(&points) > 0, is_frozen, "{instances} instances, {n_slots} slots");
        assert_eq!(n_frozen(&FaultPoints { without_freezes: true, ..points }), 0);
    }
}

#[test]
fn seeds_lapse_the_lease_of_one_slot() {
    let settled = Duration::from_secs(60);
    let points = FaultPoints { instances: 3, n_slots: 4, settled, ..FaultPoints::default() };
    let lapses = |seeds: std::ops::Range<u64>| -> Vec<(Duration, u32)> {
        let of = |fault| match fault {
            Fault::At { time, what: TimedFault::Lapse(lapse) } => lapse.leases.slot().map(|slot| (time, slot)),
            _ => None,
        };
        seeds.flat_map(|seed| points.choose_faults(seed)).filter_map(of).collect()
    };
    let all = lapses(0..400);
    assert!(all.iter().all(|(time, _)| *time < settled), "{all:?}");
    assert_eq!(all.iter().map(|(_, slot)| *slot).collect::<BTreeSet<_>>(), [0, 1, 2, 3].into());
    assert!(lapses(0..EXAMPLE_SEEDS).len() > 2, "an example meets several");
}

#[test]
fn seeds_let_clocks_of_sharded_replicas_jump() {
    let settled = Duration::from_secs(60);
    let points = FaultPoints { instances: 3, n_slots: 4, settled, ..FaultPoints::default() };
    for (without_clock_faults, n_expected) in [(true, 0..=0), (false, 3..=16)] {
        let points = FaultPoints { without_clock_faults, ..points.clone() };
        let faults = (0..EXAMPLE_SEEDS).flat_map(|seed| points.choose_faults(seed));
        let n_jumps =
            faults.filter(|fault| matches!(fault, Fault::At { what: TimedFault::ClockJump { .. }, .. })).count();
        assert!(n_expected.contains(&n_jumps), "{n_jumps} jumps");
    }
}

#[test]
fn without_clock_faults_other_faults_remain() {
    let settled = Duration::from_secs(9);
    let with = FaultPoints { instances: 2, n_writes: 3, settled, ..FaultPoints::default() };
    let without = FaultPoints { without_clock_faults: true, ..with.clone() };
    let faults = |points: &FaultPoints| {
        [points.singles(), (0..400).flat_map(|seed| points.choose_faults(seed)).collect()].concat()
    };
    let is_clock = |fault: &Fault| matches!(fault, Fault::At { what: TimedFault::ClockJump { .. }, .. });
    assert!(faults(&with).iter().any(is_clock));
    assert!(!faults(&without).iter().any(is_clock));
    let n_others = |points: &FaultPoints| points.singles().iter().filter(|fault| !is_clock(fault)).count();
    assert_eq!(n_others(&with), without.singles().len());
}

#[test]
fn each_read_gets_all_applicable_failures() {
    let points = FaultPoints { reads: vec!["get", "list", "watch"], ..FaultPoints::default() };
    let of = |read: u64| {
        let singles = points.singles();
        singles.iter().filter(|fault| matches!(fault, Fault::Read { nth, .. } if *nth == read)).count()
    };
    let n = READ_FAILURES.len();
    assert_eq!([of(1), of(2), of(3), of(4)], [n - 1, n, n - 1, 0]);
}

#[test]
fn late_write_faults_require_multiple_instances() {
    for (instances, expected) in [(1, 0), (3, 2)] {
        let points = FaultPoints { n_writes: 2, instances, ..FaultPoints::default() };
        let singles = points.singles();
        let late =
            |fault: &&Fault| matches!(fault, Fault::Write { what: WriteFault::Fails(RequestFault::Late(_)), .. });
        assert_eq!(singles.iter().filter(late).count(), expected, "{instances} instances");
        let is_late_crash = |fault: &&Fault| matches!(fault, Fault::Write { what: WriteFault::CrashLate(_), .. });
        assert_eq!(singles.iter().filter(is_late_crash).count(), expected, "{instances} instances");
        let seeded = (0..400).flat_map(|seed| points.choose_faults(seed)).collect::<Vec<_>>();
        assert_eq!(seeded.iter().any(|fault| is_late_crash(&fault)), instances > 1);
    }
}

#[test]
fn leases_lapse_shortly_before_a_write() {
    let [early, at] = [3, 20].map(Duration::from_secs);
    let lapses = |faults: Vec<Fault>| -> Vec<(Duration, LeaseLapse)> {
        let of = |fault| match fault {
            Fault::At { time, what: TimedFault::Lapse(lapse) } => Some((time, lapse)),
            _ => None,
        };
        faults.into_iter().filter_map(of).collect()
    };
    for instances in [1, 2] {
        // The last write is one of the final deletion, which no lapse could hit.
        let (write_times, settled) = (vec![early, at, Duration::from_secs(60)], Duration::from_secs(30));
        let points = FaultPoints { write_times, n_writes: 3, instances, settled, ..FaultPoints::default() };
        let singles: Vec<_> = lapses(points.singles()).into_iter().map(|(time, _)| at.saturating_sub(time)).collect();
        let seeded = lapses((0..400).flat_map(|seed| points.choose_faults(seed)).collect());
        if instances == 1 {
            assert!(singles.is_empty() && seeded.is_empty());
            continue;
        }
        // Every lapse begins more than 3 s before its write. The first write is at 3 s, so it has no lapse.
        assert_eq!(singles, LeaseLapse::BEFORE_WRITE);
        let before = Duration::from_secs(4)..=Duration::from_secs(10);
        let n_before = seeded.iter().filter(|(time, _)| before.contains(&at.saturating_sub(*time))).count();
        assert!(n_before > 50 && n_before < seeded.len(), "{n_before} of {}", seeded.len());
        for renewals in [Renewals::Rejected, Renewals::NoResponse] {
            assert!(seeded.iter().any(|(_, lapse)| lapse.renewals == renewals), "{renewals:?}");
        }
    }
}

#[test]
fn lapse_report_includes_its_write_delay() {
    assert_ne!(longest_write(0), longest_write(4));
    for n_slots in [0, 4] {
        let write_times = vec![Duration::from_secs(20)];
        let points = FaultPoints { write_times, n_writes: 1, instances: 2, n_slots, ..FaultPoints::default() };
        let faults = points.singles().into_iter().chain((0..100).flat_map(|seed| points.choose_faults(seed)));
        let lapses = faults.filter(|fault| matches!(fault, Fault::At { what: TimedFault::Lapse(_), .. }));
        let texts: Vec<_> = lapses.map(|fault| fault.to_string()).collect();
        let end = format!("its writes arrive {:?} late", longest_write(n_slots));
        assert!(texts.len() > LeaseLapse::BEFORE_WRITE.len(), "singles and seeds have lapses: {texts:?}");
        assert!(texts.iter().all(|text| text.ends_with(&end)), "{n_slots} slots: {texts:?}");
    }
}

#[test]
fn lapse_report_names_the_leases() {
    let replica = "all Lease requests of the replica whose slot Lease changed last".to_owned();
    let slots = [0, 1, 2, 3].map(|slot| format!("requests of its owner for the Lease of slot {slot}"));
    let of_shards = slots.into_iter().chain([replica]).collect();
    for (n_slots, expected) in [(0, vec!["Lease requests of the leader".to_owned()]), (4, of_shards)] {
        let (write_times, settled) = (vec![Duration::from_secs(20)], Duration::from_secs(60));
        let points = FaultPoints { write_times, n_writes: 1, instances: 2, n_slots, settled, ..FaultPoints::default() };
        let mut named = BTreeSet::new();
        for fault in points.singles().into_iter().chain((0..400).flat_map(|seed| points.choose_faults(seed))) {
            if let Fault::At { what: TimedFault::Lapse(lapse), .. } = fault {
                let text = lapse.to_string();
                let leases = expected.iter().find(|leases| text.starts_with(leases.as_str()));
                named.insert(leases.unwrap_or_else(|| panic!("{n_slots} slots: {text}")));
            }
        }
        assert_eq!(named.len(), expected.len(), "{n_slots} slots: {named:?}");
    }
}

#[test]
fn seeds_stop_replicas_while_the_state_changes() {
    let settled = Duration::from_secs(20);
    for (instances, expected) in [(1, false), (3, true)] {
        let points = FaultPoints { settled, instances, ..FaultPoints::default() };
        let (mut stopped, mut has_update) = (BTreeSet::new(), false);
        for fault in (0..400).flat_map(|seed| points.choose_faults(seed)) {
            let Fault::At { time, what: what @ (TimedFault::Stop { .. } | TimedFault::RollingUpdate) } = fault else {
                continue;
            };
            assert!(time < settled, "{fault}");
            match what {
                TimedFault::Stop { instance, .. } => drop(stopped.insert(instance)),
                _ => has_update = true,
            }
        }
        assert_eq!((stopped.len() == 3, has_update), (expected, expected), "{instances} instances: {stopped:?}");
    }
}

#[test]
fn one_seed_gives_one_combination() {
    let points = FaultPoints { n_writes: 3, instances: 2, settled: Duration::from_secs(9), ..FaultPoints::default() };
    assert_eq!(points.choose_faults(7), points.choose_faults(7));
    assert!((0..20).any(|seed| points.choose_faults(seed) != points.choose_faults(7)));
}
