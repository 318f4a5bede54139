//! The plans with one fault each.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use kctl_apiserver::faults::{EventFault, Moment, RequestFault};
use kctl_runtime::__private_0_1::ThawOrder;

use super::{
    ExternalFault, Fault, Freeze, SINGLES_MAX, SKIPPED_EVENT_DELAY, STALE_SERVER_DURATION, TimedFault, WriteFault,
    points::{FaultPoints, fits},
};
use crate::testing::sim::lease_lapse::{LapsedLeases, LeaseLapse, Renewals};

/// Offset in seconds of a wrong clock from the start, fast or slow.
const SKEW: i64 = 3_600;

/// Maximum number of restarts once the state had settled, among the single faults.
const RESTARTS_MAX: usize = 8;

/// A restart comes this long before the moment at which the state counted as settled, so that the next step waits for it.
const RESTART_BEFORE: Duration = Duration::from_millis(250);

/// Maximum number of steps that all processes miss, among the single faults.
const MISSED_STEPS_MAX: usize = 100;

/// Maximum number of frozen leaders, among the single faults.
const FREEZES_MAX: usize = 100;

/// A leader is frozen this long before a write: its reconcile may be at work outside of the cluster.
const FREEZE_BEFORE: Duration = Duration::from_secs(1);

/// Time for which a leader is frozen: long enough that another replica takes its Lease and does the same work.
const FREEZE_DURATION: Duration = Duration::from_secs(25);

/// Maximum number of names whose calls have faults in [`FaultPoints::key_externals`]. The names that were called last come
/// first, since calls at the end are those that clean up.
const EXTERNAL_NAMES_MAX: usize = 25;

/// Maximum number of restarts on servers that are behind, among the single faults.
const STALE_RESTARTS_MAX: usize = 1_000;

/// Time for which a Lease is not renewed: longer than its 15 seconds, so that another replica takes
/// it over.
const LAPSE_DURATION: Duration = Duration::from_secs(17);

pub(super) const FAILURES: [RequestFault; 8] = [
    RequestFault::Reset(Moment::After),
    RequestFault::Reject { code: 500, retry_after: None, moment: Moment::After },
    RequestFault::Reject { code: 409, retry_after: None, moment: Moment::Before },
    RequestFault::Reset(Moment::Before),
    RequestFault::Reject { code: 500, retry_after: None, moment: Moment::Before },
    RequestFault::Reject { code: 429, retry_after: Some(1), moment: Moment::Before },
    RequestFault::DelayResponse(Duration::from_secs(5)),
    RequestFault::Half,
];

/// Failures of a read. A watch response has no end that could be missing, so it is not truncated;
/// its events have separate faults.
pub(super) const READ_FAILURES: [RequestFault; 6] = [
    RequestFault::Reject { code: 500, retry_after: None, moment: Moment::Before },
    RequestFault::Reset(Moment::Before),
    RequestFault::Reject { code: 429, retry_after: Some(1), moment: Moment::Before },
    RequestFault::Reject { code: 410, retry_after: None, moment: Moment::Before },
    RequestFault::DelayResponse(Duration::from_secs(5)),
    RequestFault::Half,
];

/// Faults of a call of a system outside of the cluster.
pub(super) const EXTERNAL: [ExternalFault; 5] = [
    ExternalFault::CrashAfter,
    ExternalFault::FailsAfter,
    ExternalFault::CrashBefore,
    ExternalFault::Fails,
    ExternalFault::Slow(Duration::from_secs(5)),
];

/// The calls of a system outside of the cluster that have one name. Counts start at one.
struct CallsOfName {
    first: u64,
    /// The last call before the final state; `None` if only the final deletion has such calls.
    last_of_work: Option<u64>,
    last: u64,
}

impl CallsOfName {
    /// Returns the last call whose effect a rule of `.settled(…)` sees, or else the last one.
    fn last_visible(&self) -> u64 {
        self.last_of_work.unwrap_or(self.last)
    }
}

impl FaultPoints {
    /// Returns each fault alone. The most productive ones come first, so that a test fails early:
    ///
    /// 1. restarts once the state had settled, and frozen leaders,
    /// 2. a crash after and before each write, faults of external calls, and each delivered state skipped,
    /// 3. Leases that lapse, and restarts on each older server,
    /// 4. the other faults of a single write, read or event,
    /// 5. long downtimes, and wrong clocks,
    /// 6. steps that all processes miss. `Search::singles` takes them from the end.
    ///
    /// At most [`SINGLES_MAX`] are returned.
    pub(in crate::testing::sim) fn singles(&self) -> Vec<Fault> {
        let writes = || (1..).zip(0..self.n_writes).map(|(nth, _)| nth);
        let events = || (1..).zip(&self.events).map(|(nth, _)| nth);
        let on_write = |nth, what| Fault::Write { nth, what };
        let (restarts, freezes) = (self.restarts(), self.freezes());
        let mut singles = Vec::new();
        for moment in [Moment::After, Moment::Before] {
            singles.extend(writes().map(|nth| on_write(nth, WriteFault::Crash { moment, behind: None })));
        }
        for what in EXTERNAL {
            singles.extend((1..).zip(&self.externals).map(|(nth, _call)| Fault::External { nth, what }));
        }
        singles.extend(events().map(|nth| Fault::Event { nth, what: EventFault::Skip(SKIPPED_EVENT_DELAY) }));
        singles.extend(self.lapses());
        singles.extend(self.restarts_behind());
        for fault in FAILURES.into_iter().chain(self.delayed_write()) {
            singles.extend(writes().map(|nth| on_write(nth, WriteFault::Fails(fault))));
        }
        if let Some(delay) = self.longest_delay() {
            singles.extend(writes().map(|nth| on_write(nth, WriteFault::CrashLate(delay))));
        }
        for what in READ_FAILURES {
            let reads = (1..).zip(&self.reads).filter(|(_, verb)| fits(verb, what));
            singles.extend(reads.map(|(nth, _)| Fault::Read { nth, what }));
        }
        for what in [EventFault::Close, EventFault::Expire, EventFault::Repeat, EventFault::Hold(STALE_SERVER_DURATION)]
        {
            singles.extend(events().map(|nth| Fault::Event { nth, what }));
        }
        for moment in [Moment::Before, Moment::After] {
            singles.extend(writes().map(|nth| on_write(nth, WriteFault::Outage(moment))));
        }
        if !self.without_clock_faults {
            singles.extend((0..self.instances).flat_map(wrong_clocks));
        }
        let missed_steps = self.missed_steps();
        let n_left = SINGLES_MAX - restarts.len() - freezes.len() - missed_steps.len();
        let key = self.key_externals();
        let singles = sample_with(singles, n_left, |fault| key.contains(fault));
        [restarts, freezes, singles, missed_steps].concat()
    }

    /// Returns the faults of external calls that few runs should have, the most valuable ones first. They are among the
    /// [single faults](Self::singles).
    ///
    /// - The last call of each name fails. Nothing repairs a swallowed error there, and no fault of a request is alike:
    ///   those let the reconcile fail at its next write.
    /// - The process ends after the first call of each name: it has not recorded yet what it has created.
    /// - The process ends before the last call of each name: it may have recorded what it has not done yet.
    /// - The last call of each name in the final deletion fails, which only invariants can notice.
    pub(in crate::testing::sim) fn key_externals(&self) -> Vec<Fault> {
        let calls = self.calls_by_name();
        let at = |what: ExternalFault, nth: fn(&CallsOfName) -> u64| {
            calls.iter().map(move |of_name| Fault::External { nth: nth(of_name), what })
        };
        let ranked = at(ExternalFault::Fails, CallsOfName::last_visible)
            .chain(at(ExternalFault::CrashAfter, |of_name| of_name.first))
            .chain(at(ExternalFault::CrashBefore, CallsOfName::last_visible))
            .chain(at(ExternalFault::Fails, |of_name| of_name.last));
        let mut faults = Vec::new();
        for fault in ranked {
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        faults
    }

    /// Returns the external calls of each name, up to [`EXTERNAL_NAMES_MAX`] names. The name that was called last comes
    /// first.
    fn calls_by_name(&self) -> Vec<CallsOfName> {
        let mut by_name: BTreeMap<&str, CallsOfName> = BTreeMap::new();
        for (nth, name) in (1..).zip(&self.externals) {
            let first = CallsOfName { first: nth, last_of_work: None, last: nth };
            let of_name = by_name.entry(name.as_str()).or_insert(first);
            of_name.last = nth;
            if nth <= self.n_externals_of_work as u64 {
                of_name.last_of_work = Some(nth);
            }
        }
        let mut calls: Vec<_> = by_name.into_values().collect();
        calls.sort_unstable_by_key(|of_name| Reverse(of_name.last));
        calls.truncate(EXTERNAL_NAMES_MAX);
        calls
    }

    /// Returns the restarts once everything had settled, which are the first single faults. The restarts in the final
    /// state come first.
    ///
    /// A level-triggered controller finds nothing to do then. What a restart changes is a state that the app had missed.
    pub(in crate::testing::sim) fn restarts(&self) -> Vec<Fault> {
        // Without slots only the leader has work to miss, and it is the one that writes.
        let works = |instance: &usize| self.n_slots > 0 || self.writers.last().is_none_or(|leader| leader == instance);
        let at = |time: &Duration| {
            let time = time.saturating_sub(RESTART_BEFORE);
            let crash = move |instance| Fault::At { time, what: TimedFault::Crash { instance } };
            (0..self.instances).filter(works).map(crash)
        };
        self.settled_times.iter().rev().flat_map(at).take(RESTARTS_MAX).collect()
    }

    /// Returns the steps during which all processes are down, which are the last single faults.
    ///
    /// Most steps wait until the app has nothing to do, so no other single fault ends the processes during a step.
    pub(in crate::testing::sim) fn missed_steps(&self) -> Vec<Fault> {
        sample_evenly((1..=self.n_steps).map(|nth| Fault::AtStep { nth }).collect(), MISSED_STEPS_MAX)
    }

    /// Returns a frozen leader shortly before each write. These follow the [restarts](Self::restarts) in the list.
    ///
    /// Seeds freeze owners of slots.
    pub(in crate::testing::sim) fn freezes(&self) -> Vec<Fault> {
        if self.instances < 2 || self.n_slots > 0 || self.without_freezes {
            return Vec::new();
        }
        let writes = self.write_times_of_work().iter();
        let mut times: Vec<_> = writes.filter_map(|time| time.checked_sub(FREEZE_BEFORE)).collect();
        times.dedup();
        let freeze = Freeze { instance: None, length: FREEZE_DURATION, order: ThawOrder::Reversed };
        let at = |time| Fault::At { time, what: TimedFault::Freeze(freeze) };
        sample_evenly(times, FREEZES_MAX).into_iter().map(at).collect()
    }

    /// Returns each restart on each older server, after each write.
    pub(super) fn restarts_behind(&self) -> Vec<Fault> {
        let restart = |nth, behind| Fault::Write { nth, what: WriteFault::Crash { moment: Moment::After, behind } };
        let restarts = self.histories.iter().flat_map(|history| {
            (1..).zip(&history.before).flat_map(move |(nth, before)| {
                let stale = (history.oldest(*before)..=*before).map(|revision| history.stale_start(revision));
                let outdated =
                    self.outdated_revisions(history, *before).map(|revision| history.outdated_start(revision));
                stale.chain(outdated).map(move |behind| restart(nth, Some(behind)))
            })
        });
        sample_evenly(restarts.collect(), STALE_RESTARTS_MAX)
    }

    /// Returns Leases that are not renewed from a few seconds before each write on. Without the write permit, a leader
    /// would send that write.
    fn lapses(&self) -> Vec<Fault> {
        let Some(write_delay) = self.longest_delay() else { return Vec::new() };
        let before = |time: &Duration| {
            let time = *time;
            LeaseLapse::BEFORE_WRITE.into_iter().filter_map(move |before| time.checked_sub(before))
        };
        let leases = LapsedLeases::for_replica(self.n_slots);
        let lapse = LeaseLapse { renewals: Renewals::Rejected, length: LAPSE_DURATION, write_delay, leases };
        let at = |time| Fault::At { time, what: TimedFault::Lapse(lapse) };
        self.write_times_of_work().iter().flat_map(before).map(at).collect()
    }
}

/// Returns the clocks that are wrong from the start. Clocks that jump during a run are left to the
/// seeds.
fn wrong_clocks(instance: usize) -> impl Iterator<Item = Fault> {
    let jump = move |seconds| Fault::At { time: Duration::ZERO, what: TimedFault::ClockJump { instance, seconds } };
    [SKEW, -SKEW].into_iter().map(jump)
}

/// Returns at most `max` items in the order of the list: the reserved ones, which may be at most `max`, and others spread
/// evenly.
pub(in crate::testing::sim) fn sample_with<T>(all: Vec<T>, max: usize, is_reserved: impl Fn(&T) -> bool) -> Vec<T> {
    if all.len() <= max {
        return all;
    }
    let (mut chosen, others): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(_, one)| is_reserved(one));
    debug_assert!(chosen.len() <= max, "callers reserve a share of the places");
    let n_left = max.saturating_sub(chosen.len());
    chosen.extend(sample_evenly(others, n_left));
    chosen.sort_by_key(|(index, _)| *index);
    chosen.into_iter().map(|(_, one)| one).collect()
}

/// Returns at most `max` items, spread evenly over the list.
pub(in crate::testing::sim) fn sample_evenly<T>(all: Vec<T>, max: usize) -> Vec<T> {
    let n = all.len();
    if n <= max {
        return all;
    }
    let is_chosen = move |index: usize| (index * max) / n != ((index + 1) * max) / n;
    all.into_iter().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, one)| one).collect()
}
