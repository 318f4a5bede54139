//! The plans of seeds: one to five random faults, and up to three more from separate random numbers.

use std::time::Duration;

use kctl_apiserver::faults::{EventFault, Moment};
use kctl_runtime::__private_0_1::ThawOrder;

use super::{
    Fault, Freeze, SKIPPED_EVENT_DELAY, StaleServer, TimedFault, WriteFault,
    points::{FaultPoints, fits},
    singles::{EXTERNAL, FAILURES, READ_FAILURES},
};
use crate::testing::sim::lease_lapse::{LapsedLeases, LeaseLapse, Renewals, longest_write};

/// With several instances, one of this many seeded faults lets the Leases of one replica lapse.
const LAPSES_ONE_IN: u64 = 6;

/// With slots, one of this many seeded faults makes the lists of a process slow.
const SLOW_LISTS_ONE_IN: u64 = 6;

/// With several instances, one of this many seeded faults stops a process or replaces all of them.
const STOPS_ONE_IN: u64 = 6;

/// Milliseconds of the longest downtime of a stopped process: longer than a Lease lasts.
const DOWNTIME_MAX_MILLIS: u64 = 20_000;

/// The kinds of faults of a seed, each for one random number. The order and the number of the entries are part of
/// the meaning of a seed: changing them changes all plans.
const KINDS: [FaultKind; 13] = {
    use FaultKind::{Crash, Event, Failure, Read, Timed};
    [Crash, Crash, Crash, Crash, Failure, Failure, Failure, Event, Event, Event, Read, Timed, Timed]
};

/// With several instances, one of this many crashes leaves its write in flight.
const LATE_CRASHES_ONE_IN: u64 = 4;

/// Faults of watch events, each for one random number, as for [`KINDS`].
const EVENTS: [AnyEvent; 6] = {
    use AnyEvent::{Close, Expire, Hold, Repeat, Skip};
    [Skip, Skip, Close, Expire, Repeat, Hold]
};

/// Servers for the start after a crash, each for one random number, as for [`KINDS`].
const STARTS: [Start; 6] = {
    use Start::{Current, Outdated, Stale};
    [Stale, Outdated, Current, Current, Current, Current]
};

/// With slots, one of this many timed faults deletes a Lease.
const LEASES_DELETED_ONE_IN: u64 = 3;

/// Shortest time within which the faults of [`TIMED`] and deletions of Leases begin. A run with one of them ends later,
/// so that an app that should act at a time, and does not, is found although it has settled early.
const CRASH_WINDOW_MIN: Duration = Duration::from_secs(100);

/// Faults at a time, each for one random number, as for [`KINDS`].
const TIMED: [AnyTimed; 4] = {
    use AnyTimed::{ClockJump, Crash, Partition};
    [Crash, ClockJump, Partition, Partition]
};

/// One of this many stops replaces all processes, one after the other.
const ROLLING_UPDATES_ONE_IN: u64 = 3;

/// With leader election, one of this many seeds has an additional fault: a leader that is frozen.
const LEADERS_FROZEN_ONE_IN: u64 = 3;

/// One of this many seeds has an additional fault of an external call, if the app makes any.
const EXTERNAL_ONE_IN: u64 = 2;

/// Separates the random numbers of that fault from the others'.
const EXTERNAL_SEED: u64 = 0x6578_7465_726e_616c;

/// One of this many seeds has jitter.
const JITTERS_ONE_IN: u64 = 4;

/// Separates the random number of jitter from the others'.
const JITTER_SEED: u64 = 0x6a69_7474_6572;

/// Maximum number of faults of a seed, without jitter and the additional ones of several replicas and of external calls.
const FAULTS_OF_SEED_MAX: u64 = 5;

/// The additional fault of a seed with slots, each for one random number, as for [`KINDS`].
const SHARD_FAULTS: [AnyOfShards; 3] = {
    use AnyOfShards::{ClockJump, Freeze, SlotLapse};
    [Freeze, ClockJump, SlotLapse]
};

/// A process is frozen at most this long before a write, in the reconcile that sends it.
const FROZEN_BEFORE_WRITE_MAX: Duration = Duration::from_millis(1_500);

/// Milliseconds within which a freeze begins, from [`FROZEN_BEFORE_WRITE_MAX`] before a write on. At the end the write is
/// in flight.
const FROZEN_WITHIN_MILLIS: u64 = 2_400;

/// The kind of a seeded fault, by the point at which it is injected.
#[derive(Clone, Copy)]
enum FaultKind {
    /// A crash before or after a write.
    Crash,
    /// A write that fails, or arrives late.
    Failure,
    /// A watch event.
    Event,
    /// A read that fails. Without reads it is a timed fault.
    Read,
    /// A fault at a time.
    Timed,
}

/// The fault of a watch event, without its durations.
#[derive(Clone, Copy)]
enum AnyEvent {
    Skip,
    Close,
    Expire,
    Repeat,
    Hold,
}

/// The state of the server on which a process starts again.
#[derive(Clone, Copy)]
enum Start {
    /// Its events are late.
    Stale,
    /// It takes an old revision for the newest state. Scenarios without such lists start on a current server.
    Outdated,
    /// It is up to date.
    Current,
}

/// The fault at a time, without its instance and durations.
#[derive(Clone, Copy)]
enum AnyTimed {
    Crash,
    /// The clock of the process jumps. Scenarios without faults of clocks have a partition instead.
    ClockJump,
    Partition,
}

/// The additional fault of replicas that share slots, without its times.
#[derive(Clone, Copy)]
enum AnyOfShards {
    Freeze,
    /// The clock of a process jumps. Scenarios without faults of clocks have no additional fault instead.
    ClockJump,
    /// The Lease of one slot is not renewed.
    SlotLapse,
}

impl FaultPoints {
    /// Returns the combination of faults that a seed chooses: one to [`FAULTS_OF_SEED_MAX`], and perhaps one more for
    /// several replicas, one for an external call, and jitter.
    pub(in crate::testing::sim) fn choose_faults(&self, seed: u64) -> Vec<Fault> {
        let mut rng = Rng::new(seed);
        let n_faults = 1 + rng.below(FAULTS_OF_SEED_MAX);
        debug_assert!((1..=FAULTS_OF_SEED_MAX).contains(&n_faults), "`below` excludes its bound");
        let faults = (0..n_faults).map(|_| self.any(&mut rng)).chain(self.of_replicas(seed));
        faults.chain(self.of_external_call(seed)).chain(self.any_jitter(seed)).collect()
    }

    /// Returns the jitter of a seed, for an app that writes. Its random numbers are separate as well.
    fn any_jitter(&self, seed: u64) -> Option<Fault> {
        let is_chosen = self.n_writes > 0 && Rng::new(seed ^ JITTER_SEED).below(JITTERS_ONE_IN) == 0;
        is_chosen.then_some(Fault::Jitter { seed })
    }

    /// Returns the additional fault of a seed if the app calls systems outside of the cluster.
    ///
    /// Its random numbers are separate, so that the other faults of the seed are unchanged.
    fn of_external_call(&self, seed: u64) -> Option<Fault> {
        let mut rng = Rng::new(seed ^ EXTERNAL_SEED);
        let is_chosen = !self.externals.is_empty() && rng.below(EXTERNAL_ONE_IN) == 0;
        is_chosen.then(|| {
            let nth = 1 + rng.below(reach(self.externals.len()));
            Fault::External { nth, what: rng.one_of(&EXTERNAL) }
        })
    }

    /// Returns the additional fault of a seed with several replicas.
    ///
    /// Its random numbers are separate, so that the other faults of the seed are unchanged.
    fn of_replicas(&self, seed: u64) -> Option<Fault> {
        let mut rng = Rng::new(!seed);
        if self.n_slots > 0 {
            return self.of_shards(&mut rng);
        }
        let freezes = self.instances > 1 && !self.without_freezes && rng.below(LEADERS_FROZEN_ONE_IN) == 0;
        freezes.then(|| self.any_freeze(&mut rng))
    }

    fn of_shards(&self, rng: &mut Rng) -> Option<Fault> {
        match rng.one_of(&SHARD_FAULTS) {
            AnyOfShards::Freeze if self.without_freezes => None,
            AnyOfShards::Freeze => Some(self.any_freeze(rng)),
            AnyOfShards::ClockJump if self.without_clock_faults => None,
            AnyOfShards::ClockJump => Some(self.any_clock_jump(rng)),
            AnyOfShards::SlotLapse => Some(self.any_slot_lapse(rng)),
        }
    }

    /// Returns a jump of a clock while the state is not final yet.
    fn any_clock_jump(&self, rng: &mut Rng) -> Fault {
        let time = self.any_time_of_work(rng);
        let instance = usize::try_from(rng.below(self.instances as u64)).unwrap_or_default();
        Fault::At { time, what: TimedFault::ClockJump { instance, seconds: any_seconds(rng) } }
    }

    /// Returns a Lease of a slot that its owner does not renew, while the state is not final yet. In most cases another
    /// replica takes it.
    fn any_slot_lapse(&self, rng: &mut Rng) -> Fault {
        let time = self.any_time_of_work(rng);
        let leases = LapsedLeases::Slot(u32::try_from(rng.below(self.n_slots.into())).unwrap_or_default());
        let renewals = rng.one_of(&[Renewals::Rejected, Renewals::NoResponse]);
        let length = Duration::from_millis(rng.within(12_000, 25_000));
        let write_delay = longest_write(self.n_slots);
        Fault::At { time, what: TimedFault::Lapse(LeaseLapse { renewals, length, write_delay, leases }) }
    }

    /// Returns a freeze of the process that sends a write, from shortly before or after that on. A Lease expires during
    /// most of them. With leader election the leader of that moment is frozen, because earlier faults may change the
    /// leader.
    fn any_freeze(&self, rng: &mut Rng) -> Fault {
        let writes = self.write_times_of_work();
        let n = usize::try_from(rng.below(writes.len() as u64)).unwrap_or_default();
        let shift = Duration::from_millis(rng.below(FROZEN_WITHIN_MILLIS));
        let at_write = writes.get(n).map(|time| (*time + shift).saturating_sub(FROZEN_BEFORE_WRITE_MAX));
        let time = at_write.unwrap_or_else(|| self.any_time_of_work(rng));
        let instance = (self.n_slots > 0).then(|| self.writers.get(n).copied().unwrap_or_default());
        let length = Duration::from_millis(rng.within(8_000, 30_000));
        let order = rng.one_of(&[ThawOrder::AsWoken, ThawOrder::Reversed]);
        Fault::At { time, what: TimedFault::Freeze(Freeze { instance, length, order }) }
    }

    /// Returns one random fault. Crashes and failing writes are the most frequent, since they find
    /// the most.
    fn any(&self, rng: &mut Rng) -> Fault {
        // Draws no number for a single instance, so that the plans of its seeds are unchanged.
        if self.instances > 1 && rng.below(LAPSES_ONE_IN) == 0 {
            return self.any_lapse(rng);
        }
        if self.instances > 1 && rng.below(STOPS_ONE_IN) == 0 {
            return self.any_stop(rng);
        }
        // Draws no number without slots, for the same reason.
        if self.n_slots > 0 && rng.below(SLOW_LISTS_ONE_IN) == 0 {
            return self.any_slow_lists(rng);
        }
        let nth_write = 1 + rng.below(reach(self.n_writes));
        let nth_event = 1 + rng.below(reach(self.events.len()));
        match rng.one_of(&KINDS) {
            FaultKind::Crash => {
                let moment = if rng.below(2) == 0 { Moment::Before } else { Moment::After };
                let behind = self.any_behind(rng, nth_write);
                if let Some(delay) = self.longest_delay().filter(|_| rng.below(LATE_CRASHES_ONE_IN) == 0) {
                    return Fault::Write { nth: nth_write, what: WriteFault::CrashLate(delay) };
                }
                Fault::Write { nth: nth_write, what: WriteFault::Crash { moment, behind } }
            }
            FaultKind::Failure => {
                let failures: Vec<_> = FAILURES.into_iter().chain(self.delayed_write()).collect();
                Fault::Write { nth: nth_write, what: WriteFault::Fails(rng.one_of(&failures)) }
            }
            FaultKind::Event => {
                let what = match rng.one_of(&EVENTS) {
                    AnyEvent::Skip => EventFault::Skip(SKIPPED_EVENT_DELAY),
                    AnyEvent::Close => EventFault::Close,
                    AnyEvent::Expire => EventFault::Expire,
                    AnyEvent::Repeat => EventFault::Repeat,
                    AnyEvent::Hold => EventFault::Hold(Duration::from_millis(100 + rng.below(8_000))),
                };
                Fault::Event { nth: nth_event, what }
            }
            FaultKind::Read if !self.reads.is_empty() => {
                let n = rng.below(self.reads.len() as u64);
                let verb = usize::try_from(n).ok().and_then(|n| self.reads.get(n)).copied().unwrap_or_default();
                let failures: Vec<_> = READ_FAILURES.into_iter().filter(|what| fits(verb, *what)).collect();
                Fault::Read { nth: 1 + n, what: rng.one_of(&failures) }
            }
            FaultKind::Read | FaultKind::Timed => self.any_timed(rng),
        }
    }

    /// Chooses the server on which a process starts again after a write; two of three are up to
    /// date.
    fn any_behind(&self, rng: &mut Rng, nth_write: u64) -> Option<StaleServer> {
        let start = rng.one_of(&STARTS);
        let is_behind = !matches!(start, Start::Current);
        // Draws no number for a single cluster, so that the plans of its seeds are unchanged.
        let n = if self.histories.len() > 1 && is_behind { rng.below(self.histories.len() as u64) } else { 0 };
        let history = self.histories.get(usize::try_from(n).unwrap_or_default())?;
        let newest = history.newest(nth_write);
        match start {
            Start::Stale => Some(history.stale_start(rng.within(history.oldest(newest), newest))),
            Start::Outdated if self.outdated_lists => Some(history.outdated_start(rng.within(history.first, newest))),
            Start::Outdated | Start::Current => None,
        }
    }

    /// Returns Leases of one replica that are not renewed from a few seconds before a write on or, if that is not
    /// possible, from a random time on.
    fn any_lapse(&self, rng: &mut Rng) -> Fault {
        let before = Duration::from_millis(rng.within(4_000, 10_000));
        let writes = self.write_times_of_work();
        let n = usize::try_from(rng.below(writes.len() as u64)).unwrap_or_default();
        let time = writes.get(n).and_then(|time| time.checked_sub(before));
        let renewals = rng.one_of(&[Renewals::Rejected, Renewals::NoResponse]);
        let length = Duration::from_millis(rng.within(12_000, 17_000));
        let time = time.unwrap_or_else(|| self.any_time_of_work(rng));
        let (write_delay, leases) = (longest_write(self.n_slots), LapsedLeases::for_replica(self.n_slots));
        Fault::At { time, what: TimedFault::Lapse(LeaseLapse { renewals, length, write_delay, leases }) }
    }

    /// Returns a stop of a process, or of one after the other, while the state is not final yet.
    fn any_stop(&self, rng: &mut Rng) -> Fault {
        let time = self.any_time_of_work(rng);
        if rng.below(ROLLING_UPDATES_ONE_IN) == 0 {
            return Fault::At { time, what: TimedFault::RollingUpdate };
        }
        let instance = usize::try_from(rng.below(self.instances as u64)).unwrap_or_default();
        let downtime = Duration::from_millis(rng.below(DOWNTIME_MAX_MILLIS));
        Fault::At { time, what: TimedFault::Stop { instance, downtime } }
    }

    /// Returns slow lists of a process that crashes while the state is not final yet.
    fn any_slow_lists(&self, rng: &mut Rng) -> Fault {
        let time = self.any_time_of_work(rng);
        let instance = usize::try_from(rng.below(self.instances as u64)).unwrap_or_default();
        let delay = Duration::from_millis(rng.within(200, 3_000));
        Fault::At { time, what: TimedFault::SlowLists { instance, delay } }
    }

    /// Returns a time before the final state was reached.
    ///
    /// A run waits for the ends of its timed faults before it checks the final state. A later fault would only hit an app
    /// that has nothing to do, and would never hit the deletion of all objects.
    fn any_time_of_work(&self, rng: &mut Rng) -> Duration {
        any_time_before(self.settled, rng)
    }

    fn any_timed(&self, rng: &mut Rng) -> Fault {
        let time = any_time_before(self.settled.max(CRASH_WINDOW_MIN), rng);
        // Draws no number without slots, so that the plans of other scenarios are unchanged.
        if self.n_slots > 0 && rng.below(LEASES_DELETED_ONE_IN) == 0 {
            let slot = u32::try_from(rng.below(self.n_slots.into())).unwrap_or_default();
            return Fault::At { time, what: TimedFault::LeaseDeleted { slot } };
        }
        let instance = usize::try_from(rng.below(self.instances as u64)).unwrap_or_default();
        let what = match rng.one_of(&TIMED) {
            AnyTimed::Crash => TimedFault::Crash { instance },
            AnyTimed::ClockJump if !self.without_clock_faults => {
                TimedFault::ClockJump { instance, seconds: any_seconds(rng) }
            }
            AnyTimed::ClockJump | AnyTimed::Partition => {
                TimedFault::Partition { instance, length: Duration::from_millis(500 + rng.below(30_000)) }
            }
        };
        Fault::At { time, what }
    }
}

/// Returns a time before a limit.
fn any_time_before(limit: Duration, rng: &mut Rng) -> Duration {
    Duration::from_millis(rng.below(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
}

/// Returns the number of places among which a fault is chosen. It is a quarter more than in the run without faults,
/// because faults cause more writes and events.
fn reach(n: usize) -> u64 {
    (n as u64 + n as u64 / 4).max(1)
}

/// Returns the seconds of a clock jump: up to an hour forward or back.
fn any_seconds(rng: &mut Rng) -> i64 {
    i64::try_from(rng.below(7_200)).unwrap_or_default() - 3_600
}

/// A seeded random number generator (splitmix64). It is part of the meaning of a seed: changing it
/// changes all plans.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x5de6_c1f2_37a9_80b4)
    }

    /// Returns a number from 0 up to and excluding `end`. An `end` of 0, as of an empty list, gives 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    /// Returns a number between `first` and `last`, both included.
    fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap_or_default()]
    }
}
