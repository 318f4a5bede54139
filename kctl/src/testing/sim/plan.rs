//! The faults of a run: a list, each at a place that the run without faults has shown.
//!
//! A fault is addressed by a count, such as "the third write of the app", not by an object. A plan
//! stays meaningful when the faults before it change what the app does, and a shorter plan is tried
//! by leaving entries out.

use std::{fmt, ops::Range, sync::Arc, time::Duration};

use kctl_apiserver::faults::{EventFault, EventSummary, Moment, Past, RequestFault};

use super::lapse::{Lapse, Renewals, longest_write};

/// A state that a watch skips is delivered after this time at the latest.
pub(super) const SKIPPED_FOR: Duration = Duration::from_secs(10);
/// An API server that is behind catches up after this time.
pub(super) const BEHIND_FOR: Duration = Duration::from_secs(3);
/// Wait before a crashed process starts again.
pub(super) const DOWN_FOR: Duration = Duration::from_secs(1);
/// Downtime of a machine that fails: all deadlines have passed when the process starts again.
pub(super) const OUTAGE: Duration = Duration::from_secs(300);
/// Seconds by which a clock is wrong from the start, fast or slow.
const SKEW: i64 = 3_600;
/// Maximum number of single faults of one scenario. If there are more, this many are tried, spread
/// evenly.
pub(super) const SINGLES_MAX: usize = 4_000;
/// Maximum number of restarts on servers that are behind, among the single faults.
const BEHIND_MAX: usize = 1_000;
/// Time for which a Lease is not renewed: longer than its 15 seconds, so that another replica takes
/// it over.
const LAPSE_FOR: Duration = Duration::from_secs(17);
/// Time for which the lists of a process are slow: long enough that the Leases of its slots expire and slots move.
pub(super) const SLOW_LISTS_FOR: Duration = Duration::from_secs(30);
/// Time between two bookmarks of the watches that overtake slow lists.
pub(super) const BOOKMARKS_EVERY: Duration = Duration::from_millis(100);
/// With several instances, one of this many seeded faults is a Lease that lapses.
const LAPSES_ONE_IN: u64 = 6;
/// With slots, one of this many seeded faults makes the lists of a process slow.
const SLOW_LISTS_ONE_IN: u64 = 6;
/// Maximum number of faults of a seed.
const FAULTS_OF_SEED_MAX: u64 = 5;

/// One fault. Counts start at one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// At the nth write of the app, counted over all its processes.
    Write { nth: u64, what: OnWrite },
    /// At the nth read of the app: of an object, or a list or watch that feeds a cache. It is not injected if that read
    /// turns out to be one that the fault does not fit.
    Read { nth: u64, what: RequestFault },
    /// At the nth event of the app's watches.
    Event { nth: u64, what: EventFault },
    /// At a time since the start of the run.
    At { time: Duration, what: Timed },
}

/// The effect of a fault on a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OnWrite {
    /// The write fails, or is slow.
    Fails(RequestFault),
    /// The process ends before or after the write took effect, and starts again, perhaps on a
    /// server that is behind.
    Crash { moment: Moment, behind: Option<Behind> },
    /// The process ends and starts again. The write is on its way, and arrives this much later.
    CrashLate(Duration),
    /// The process ends, and starts again only after [`OUTAGE`].
    Outage(Moment),
}

/// An API server that is behind when a process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    /// The cluster of the server; empty for the app's own.
    pub(super) cluster: Arc<str>,
    /// The revision that the server still has.
    pub(super) revision: u64,
    /// `true` for an outdated server ([`RequestFault::Outdated`]): requests for the newest state get the old one too, so
    /// that caches start with it. `false` for a stale one ([`RequestFault::Stale`]).
    pub(super) is_outdated: bool,
}

/// A fault that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timed {
    /// A process ends, and starts again.
    Crash { instance: usize },
    /// A process and the server can't reach each other; afterwards all messages arrive.
    Partition { instance: usize, length: Duration },
    /// The clock of one process jumps; those of the others do not.
    ClockJump { instance: usize, seconds: i64 },
    /// The current leader fails to renew its Lease.
    Lapse(Lapse),
    /// A user deletes the Lease of a slot. Its owner is still at work.
    LeaseDeleted { slot: u32 },
    /// A process ends, and starts again. For [`SLOW_LISTS_FOR`] the answers of the lists that fill its caches take this
    /// long, and its watches overtake them: bookmarks move them on, as steady changes of the kind would. Slots move
    /// meanwhile, because the process that starts again takes a share.
    SlowLists { instance: usize, answer: Duration },
}

impl Fault {
    /// Returns `true` for a clock that is wrong.
    pub(super) fn is_of_a_clock(&self) -> bool {
        matches!(self, Self::At { what: Timed::ClockJump { .. }, .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { nth, what: OnWrite::Fails(fault) } => write!(formatter, "write {nth}: {}", request(*fault)),
            Self::Write { nth, what: OnWrite::Crash { moment, behind } } => {
                write!(formatter, "crash {} write {nth} took effect", moment_text(*moment))?;
                behind.as_ref().map_or(Ok(()), |behind| write!(formatter, ", restart on {behind}"))
            }
            Self::Write { nth, what: OnWrite::CrashLate(time) } => {
                write!(formatter, "crash at write {nth}, which arrives {time:?} later")
            }
            Self::Write { nth, what: OnWrite::Outage(moment) } => {
                let moment = moment_text(*moment);
                write!(formatter, "crash {moment} write {nth} took effect, restart {OUTAGE:?} later")
            }
            Self::Read { nth, what } => write!(formatter, "read {nth}: {}", request(*what)),
            Self::Event { nth, what } => write!(formatter, "watch event {nth}: {}", event(*what)),
            Self::At { time, what } => {
                write!(formatter, "at {:.3} s: ", time.as_secs_f64())?;
                match what {
                    Timed::Crash { instance } => write!(formatter, "crash of app-{instance}"),
                    Timed::Partition { instance, length } => {
                        write!(formatter, "app-{instance} does not reach the server for {length:?}")
                    }
                    Timed::ClockJump { instance, seconds } => {
                        write!(formatter, "the clock of app-{instance} jumps by {seconds} s")
                    }
                    Timed::Lapse(lapse) => write!(formatter, "who leads {lapse}"),
                    Timed::LeaseDeleted { slot } => write!(formatter, "the Lease of slot {slot} is deleted by hand"),
                    Timed::SlowLists { instance, answer } => {
                        write!(formatter, "crash of app-{instance}, whose lists then {}", slow_lists(*answer))
                    }
                }
            }
        }
    }
}

impl fmt::Display for Behind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, revision, is_outdated } = self;
        let of = if cluster.is_empty() { "" } else { " of " };
        if *is_outdated {
            write!(formatter, "a server{of}{cluster} that takes revision {revision} for the newest state")
        } else {
            write!(formatter, "a server{of}{cluster} that is behind (revision {revision})")
        }
    }
}

/// Describes slow lists, for a timeline.
pub(super) fn slow_lists(answer: Duration) -> String {
    format!("take {answer:?} for {SLOW_LISTS_FOR:?}, while its watches go on")
}

/// Returns the word for a moment relative to the effect of a write.
fn moment_text(moment: Moment) -> &'static str {
    match moment {
        Moment::Before => "before",
        Moment::After => "after",
    }
}

fn past_text(past: Past) -> String {
    match past {
        Past::Revision(revision) => format!("revision {revision}"),
        Past::Changes(n_changes) => format!("the state of {n_changes} changes ago"),
    }
}

/// Describes a fault of a request, for a timeline.
pub(super) fn request(fault: RequestFault) -> String {
    match fault {
        RequestFault::Refuse { code, retry_after, moment } => {
            let after = retry_after.map(|seconds| format!(" and Retry-After {seconds}")).unwrap_or_default();
            format!("answered {code}{after} {} it took effect", moment_text(moment))
        }
        RequestFault::Reset(moment) => format!("connection reset {} it took effect", moment_text(moment)),
        RequestFault::Half => "its answer breaks off in the middle".into(),
        RequestFault::Delay(time) => format!("on its way for {time:?}"),
        RequestFault::Late(time) => format!("on its way for {time:?}, whoever waits for it"),
        RequestFault::DelayAnswer(time) => format!("its answer is on its way for {time:?}"),
        RequestFault::Stale { past, lag } => format!("server is behind ({}), events {lag:?} late", past_text(past)),
        RequestFault::Outdated { past, lag } => {
            format!("server takes {} for the newest state, events {lag:?} late", past_text(past))
        }
        RequestFault::Crash(moment) => format!("crash {} it took effect", moment_text(moment)),
        RequestFault::CrashLate(time) => format!("crash; it arrives {time:?} later"),
        RequestFault::Bookmarks { every, .. } => format!("a bookmark every {every:?}"),
        // The enum belongs to another crate and may grow; there, each fault has a name.
        other => kctl_apiserver::faults::Fault::Request(other).name().into(),
    }
}

/// Describes a fault of a watch event, for a timeline.
pub(super) fn event(fault: EventFault) -> String {
    match fault {
        EventFault::Close => "the watch ends after it".into(),
        EventFault::Expire => "the watch expires before it".into(),
        EventFault::Hold(time) => format!("the watch stands still for {time:?} before it"),
        EventFault::Skip(_) => "is not seen, only what the object becomes next".into(),
        EventFault::Repeat => "comes twice".into(),
        other => kctl_apiserver::faults::Fault::Event(other).name().into(),
    }
}

/// The places for faults, recorded in the run without any.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    /// Number of writes by the app.
    pub(super) n_writes: usize,
    /// Send time of each write.
    pub(super) write_times: Vec<Duration>,
    /// The verb of each read of the app: `get`, `list` or `watch`.
    pub(super) reads: Vec<&'static str>,
    /// The events of the app's watches.
    pub(super) events: Vec<EventSummary>,
    /// The revisions of each cluster, the app's own first.
    pub(super) histories: Vec<History>,
    /// Time at which the final state was reached.
    pub(super) settled: Duration,
    /// Length of the run.
    pub(super) length: Duration,
    pub(super) instances: usize,
    /// Number of slots; 0 if the instances do not share the keys.
    pub(super) n_slots: u32,
    /// Allows servers that serve an old state as the newest one.
    pub(super) outdated_lists: bool,
    /// Forbids faults of clocks.
    pub(super) without_clock_faults: bool,
}

/// The revisions of one cluster that a process can start with.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The name of the cluster; empty for the app's own.
    pub(super) cluster: Arc<str>,
    /// The revision at which the app was started.
    pub(super) first: u64,
    /// The revision before each write of the app, to any of the clusters.
    pub(super) before: Vec<u64>,
    /// Set when the app accepts cached states (`resourceVersion=0`). The caches of kctl do not: they start
    /// with the newest state, and are behind only in that their events arrive late.
    pub(super) reads_may_be_cached: bool,
}

impl History {
    /// Returns the newest revision that a process can see after the nth write. Writes beyond the
    /// last one count as the last one.
    fn newest(&self, nth: u64) -> u64 {
        let index = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
        self.before.get(index).or(self.before.last()).copied().unwrap_or(self.first)
    }

    /// Returns the oldest revision that makes a difference to a process that starts when `newest`
    /// is current.
    fn oldest(&self, newest: u64) -> u64 {
        if self.reads_may_be_cached { self.first.min(newest) } else { newest }
    }

    /// Returns a stale server that has this revision.
    fn stale(&self, revision: u64) -> Behind {
        Behind { cluster: self.cluster.clone(), revision, is_outdated: false }
    }

    /// Returns an outdated server that has this revision.
    fn outdated(&self, revision: u64) -> Behind {
        Behind { cluster: self.cluster.clone(), revision, is_outdated: true }
    }
}

/// Failures of a single write.
const FAILURES: [RequestFault; 8] = [
    RequestFault::Reset(Moment::After),
    RequestFault::Refuse { code: 500, retry_after: None, moment: Moment::After },
    RequestFault::Refuse { code: 409, retry_after: None, moment: Moment::Before },
    RequestFault::Reset(Moment::Before),
    RequestFault::Refuse { code: 500, retry_after: None, moment: Moment::Before },
    RequestFault::Refuse { code: 429, retry_after: Some(1), moment: Moment::Before },
    RequestFault::DelayAnswer(Duration::from_secs(5)),
    RequestFault::Half,
];

/// Failures of a read. A watch response has no end that could be missing, so it is not truncated;
/// its events have separate faults.
const READ_FAILURES: [RequestFault; 6] = [
    RequestFault::Refuse { code: 500, retry_after: None, moment: Moment::Before },
    RequestFault::Reset(Moment::Before),
    RequestFault::Refuse { code: 429, retry_after: Some(1), moment: Moment::Before },
    RequestFault::Refuse { code: 410, retry_after: None, moment: Moment::Before },
    RequestFault::DelayAnswer(Duration::from_secs(5)),
    RequestFault::Half,
];

/// Returns `true` if a server may answer a read like this: 410 is for list and watch, since a `get`
/// has no version that could be too old.
pub(super) fn fits(verb: &str, fault: RequestFault) -> bool {
    match fault {
        RequestFault::Refuse { code: 410, .. } => verb != "get",
        RequestFault::Half => verb != "watch",
        _ => true,
    }
}

impl Points {
    /// Returns each fault alone: a crash before and after each write, each delivered state skipped,
    /// each restart on each older server, and whatever else a single request or event can meet.
    ///
    /// The most productive ones come first, so that a test fails early. At most [`SINGLES_MAX`] are
    /// returned.
    pub(super) fn singles(&self) -> Vec<Fault> {
        let writes = || (1..).zip(0..self.n_writes).map(|(nth, _)| nth);
        let events = || (1..).zip(&self.events).map(|(nth, _)| nth);
        let on_write = |nth, what| Fault::Write { nth, what };
        let mut singles = Vec::new();
        for moment in [Moment::After, Moment::Before] {
            singles.extend(writes().map(|nth| on_write(nth, OnWrite::Crash { moment, behind: None })));
        }
        singles.extend(events().map(|nth| Fault::Event { nth, what: EventFault::Skip(SKIPPED_FOR) }));
        singles.extend(self.lapses());
        singles.extend(self.restarts_behind());
        for fault in FAILURES.into_iter().chain(self.delayed_write()) {
            singles.extend(writes().map(|nth| on_write(nth, OnWrite::Fails(fault))));
        }
        if let Some(delay) = self.longest_delay() {
            singles.extend(writes().map(|nth| on_write(nth, OnWrite::CrashLate(delay))));
        }
        for what in READ_FAILURES {
            let reads = (1..).zip(&self.reads).filter(|(_, verb)| fits(verb, what));
            singles.extend(reads.map(|(nth, _)| Fault::Read { nth, what }));
        }
        for what in [EventFault::Close, EventFault::Expire, EventFault::Repeat, EventFault::Hold(BEHIND_FOR)] {
            singles.extend(events().map(|nth| Fault::Event { nth, what }));
        }
        for moment in [Moment::Before, Moment::After] {
            singles.extend(writes().map(|nth| on_write(nth, OnWrite::Outage(moment))));
        }
        if !self.without_clock_faults {
            singles.extend((0..self.instances).flat_map(wrong_clocks));
        }
        evenly(singles, SINGLES_MAX)
    }

    /// Returns each restart on each older server, after each write.
    fn restarts_behind(&self) -> Vec<Fault> {
        let restart = |nth, behind| Fault::Write { nth, what: OnWrite::Crash { moment: Moment::After, behind } };
        let restarts = self.histories.iter().flat_map(|history| {
            (1..).zip(&history.before).flat_map(move |(nth, before)| {
                let stale = (history.oldest(*before)..=*before).map(|revision| history.stale(revision));
                let outdated = self.outdated(history, *before).map(|revision| history.outdated(revision));
                stale.chain(outdated).map(move |behind| restart(nth, Some(behind)))
            })
        });
        evenly(restarts.collect(), BEHIND_MAX)
    }

    /// Returns the revisions that an outdated server can have; the newest one is not outdated.
    fn outdated(&self, history: &History, newest: u64) -> Range<u64> {
        if self.outdated_lists { history.first..newest } else { 0..0 }
    }

    /// Returns the longest delay with which a write may arrive without being a bug: only several instances have a Lease
    /// that bounds it.
    ///
    /// A single instance has no protection against a write that arrives after the next process has
    /// read the state.
    fn longest_delay(&self) -> Option<Duration> {
        (self.instances > 1).then(|| longest_write(self.n_slots))
    }

    /// Returns the fault that delays a write by [`longest_delay`](Self::longest_delay).
    fn delayed_write(&self) -> Option<RequestFault> {
        self.longest_delay().map(RequestFault::Late)
    }

    /// Returns Leases that lapse so shortly before a write that only the write permit keeps it from
    /// being sent.
    fn lapses(&self) -> Vec<Fault> {
        let Some(write_delay) = self.longest_delay() else { return Vec::new() };
        let before = |time: &Duration| {
            let time = *time;
            Lapse::BEFORE_WRITE.into_iter().filter_map(move |before| time.checked_sub(before))
        };
        let lapse = Lapse { renewals: Renewals::Refused, length: LAPSE_FOR, write_delay };
        let at = |time| Fault::At { time, what: Timed::Lapse(lapse) };
        self.write_times.iter().flat_map(before).map(at).collect()
    }

    /// Returns the combination of faults that a seed chooses: one to [`FAULTS_OF_SEED_MAX`].
    pub(super) fn seeded(&self, seed: u64) -> Vec<Fault> {
        let mut dice = Dice::new(seed);
        let n_faults = 1 + dice.below(FAULTS_OF_SEED_MAX);
        (0..n_faults).map(|_| self.any(&mut dice)).collect()
    }

    /// Returns one random fault. Crashes and failing writes are the most frequent, since they find
    /// the most.
    fn any(&self, dice: &mut Dice) -> Fault {
        // Draws no number for a single instance, so that the plans of its seeds stay the same.
        if self.instances > 1 && dice.below(LAPSES_ONE_IN) == 0 {
            return self.any_lapse(dice);
        }
        // Draws no number without slots, for the same reason.
        if self.n_slots > 0 && dice.below(SLOW_LISTS_ONE_IN) == 0 {
            return self.any_slow_lists(dice);
        }
        // Reaches a quarter beyond the counts of the run without faults, because faults cause more writes and events.
        let reach = |n: usize| (n as u64 + n as u64 / 4).max(1);
        let nth_write = 1 + dice.below(reach(self.n_writes));
        let nth_event = 1 + dice.below(reach(self.events.len()));
        match dice.below(13) {
            0..=3 => {
                let moment = if dice.below(2) == 0 { Moment::Before } else { Moment::After };
                let behind = self.any_behind(dice, nth_write);
                if let Some(delay) = self.longest_delay().filter(|_| dice.below(4) == 0) {
                    return Fault::Write { nth: nth_write, what: OnWrite::CrashLate(delay) };
                }
                Fault::Write { nth: nth_write, what: OnWrite::Crash { moment, behind } }
            }
            4..=6 => {
                let failures: Vec<_> = FAILURES.into_iter().chain(self.delayed_write()).collect();
                Fault::Write { nth: nth_write, what: OnWrite::Fails(dice.one_of(&failures)) }
            }
            7..=9 => {
                let what = match dice.below(6) {
                    0 | 1 => EventFault::Skip(SKIPPED_FOR),
                    2 => EventFault::Close,
                    3 => EventFault::Expire,
                    4 => EventFault::Repeat,
                    _ => EventFault::Hold(Duration::from_millis(100 + dice.below(8_000))),
                };
                Fault::Event { nth: nth_event, what }
            }
            10 if !self.reads.is_empty() => {
                let n = dice.below(self.reads.len() as u64);
                let verb = usize::try_from(n).ok().and_then(|n| self.reads.get(n)).copied().unwrap_or_default();
                let failures: Vec<_> = READ_FAILURES.into_iter().filter(|what| fits(verb, *what)).collect();
                Fault::Read { nth: 1 + n, what: dice.one_of(&failures) }
            }
            _ => self.any_timed(dice),
        }
    }

    /// Chooses the server on which a process starts again after a write; two of three are up to
    /// date.
    fn any_behind(&self, dice: &mut Dice, nth_write: u64) -> Option<Behind> {
        let kind = dice.below(6);
        // Draws no number for a single cluster, so that the plans of its seeds stay the same.
        let n = if self.histories.len() > 1 && kind < 2 { dice.below(self.histories.len() as u64) } else { 0 };
        let history = self.histories.get(usize::try_from(n).unwrap_or_default())?;
        let newest = history.newest(nth_write);
        match kind {
            0 => Some(history.stale(dice.within(history.oldest(newest), newest))),
            1 if self.outdated_lists => Some(history.outdated(dice.within(history.first, newest))),
            _ => None,
        }
    }

    /// Returns a Lease that is not renewed from a few seconds before a write on or, if that is not
    /// possible, from a random time on.
    fn any_lapse(&self, dice: &mut Dice) -> Fault {
        let before = Duration::from_millis(dice.within(4_000, 10_000));
        let n = usize::try_from(dice.below(self.write_times.len() as u64)).unwrap_or_default();
        let time = self.write_times.get(n).and_then(|time| time.checked_sub(before));
        let renewals = dice.one_of(&[Renewals::Refused, Renewals::Unanswered]);
        let length = Duration::from_millis(dice.within(12_000, 17_000));
        let time = time.unwrap_or_else(|| self.any_time(dice));
        let write_delay = longest_write(self.n_slots);
        Fault::At { time, what: Timed::Lapse(Lapse { renewals, length, write_delay }) }
    }

    /// Returns slow lists of a process that crashes while the state is not final yet.
    fn any_slow_lists(&self, dice: &mut Dice) -> Fault {
        let settled = u64::try_from(self.settled.as_millis()).unwrap_or(u64::MAX);
        let time = Duration::from_millis(dice.below(settled));
        let instance = usize::try_from(dice.below(self.instances as u64)).unwrap_or_default();
        let answer = Duration::from_millis(dice.within(200, 3_000));
        Fault::At { time, what: Timed::SlowLists { instance, answer } }
    }

    fn any_time(&self, dice: &mut Dice) -> Duration {
        let length = u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX).max(1);
        Duration::from_millis(dice.below(length))
    }

    fn any_timed(&self, dice: &mut Dice) -> Fault {
        let time = self.any_time(dice);
        // Draws no number without slots, so that the plans of other scenarios stay the same.
        if self.n_slots > 0 && dice.below(3) == 0 {
            let slot = u32::try_from(dice.below(self.n_slots.into())).unwrap_or_default();
            return Fault::At { time, what: Timed::LeaseDeleted { slot } };
        }
        let instance = usize::try_from(dice.below(self.instances as u64)).unwrap_or_default();
        let what = match dice.below(4) {
            0 => Timed::Crash { instance },
            1 if !self.without_clock_faults => {
                Timed::ClockJump { instance, seconds: i64::try_from(dice.below(7_200)).unwrap_or_default() - 3_600 }
            }
            _ => Timed::Partition { instance, length: Duration::from_millis(500 + dice.below(30_000)) },
        };
        Fault::At { time, what }
    }
}

/// Returns the clocks that are wrong from the start. Clocks that jump during a run are left to the
/// seeds.
fn wrong_clocks(instance: usize) -> impl Iterator<Item = Fault> {
    let jump = move |seconds| Fault::At { time: Duration::ZERO, what: Timed::ClockJump { instance, seconds } };
    [SKEW, -SKEW].into_iter().map(jump)
}

/// Returns at most `max` items, spread evenly over the list.
pub(super) fn evenly<T>(all: Vec<T>, max: usize) -> Vec<T> {
    let n = all.len();
    if n <= max {
        return all;
    }
    let is_chosen = move |index: usize| (index * max) / n != ((index + 1) * max) / n;
    all.into_iter().enumerate().filter(|(index, _)| is_chosen(*index)).map(|(_, one)| one).collect()
}

/// A seeded random number generator (splitmix64). It is part of the meaning of a seed: changing it
/// changes all plans.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x5de6_c1f2_37a9_80b4)
    }

    /// Returns a number from 0 up to and excluding `end`.
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

    /// Returns one item of a list that is not empty.
    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_thinned_evenly() {
        assert_eq!(evenly((0..10).collect(), 5), [1, 3, 5, 7, 9]);
        assert_eq!(evenly((0..3).collect(), 5), [0, 1, 2]);
        assert_eq!(evenly((0..1000).collect::<Vec<i32>>(), 7).len(), 7);
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
            let points = Points { n_writes: 2, histories: vec![own], outdated_lists, ..Points::default() };
            let behind = |is_outdated: bool| -> Vec<u64> {
                let restarts = points.singles().into_iter().filter_map(|fault| match fault {
                    Fault::Write { what: OnWrite::Crash { behind, .. }, .. } => behind,
                    _ => None,
                });
                restarts.filter(|behind| behind.is_outdated == is_outdated).map(|behind| behind.revision).collect()
            };
            assert_eq!((behind(false), behind(true)), (stale, outdated));
        }
    }

    fn with_edge() -> Points {
        let history = |cluster: &str, first, before: &[u64]| History {
            cluster: cluster.into(),
            first,
            before: before.to_vec(),
            reads_may_be_cached: false,
        };
        let histories = vec![history("", 3, &[5, 6]), history("edge", 20, &[20, 22])];
        Points { n_writes: 2, histories, outdated_lists: true, ..Points::default() }
    }

    #[test]
    fn every_older_state_is_tried_after_each_write() {
        let texts: Vec<_> = with_edge().restarts_behind().iter().map(ToString::to_string).collect();
        let of_edge: Vec<_> = texts.iter().filter(|text| text.contains("edge")).map(String::as_str).collect();
        let expected = [
            "crash after write 1 took effect, restart on a server of edge that is behind (revision 20)",
            "crash after write 2 took effect, restart on a server of edge that is behind (revision 22)",
            "crash after write 2 took effect, restart on a server of edge that takes revision 20 for the newest state",
            "crash after write 2 took effect, restart on a server of edge that takes revision 21 for the newest state",
        ];
        assert_eq!(of_edge, expected);
        assert_eq!(texts.len() - of_edge.len(), 7, "those of the app's own cluster");
    }

    #[test]
    fn seeds_choose_servers_and_their_past_states() {
        let points = with_edge();
        let chosen = (0..2_000).flat_map(|seed| points.seeded(seed)).filter_map(|fault| match fault {
            Fault::Write { what: OnWrite::Crash { behind, .. }, .. } => behind,
            _ => None,
        });
        let mut seen = std::collections::BTreeSet::new();
        for Behind { cluster, revision, is_outdated } in chosen {
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
        let points = Points { instances: 3, length: Duration::from_secs(9), ..Points::default() };
        let jumps = (0..400).flat_map(|seed| points.seeded(seed)).filter_map(|fault| match fault {
            Fault::At { what: Timed::ClockJump { instance, .. }, .. } => Some(instance),
            _ => None,
        });
        assert_eq!(jumps.collect::<std::collections::BTreeSet<_>>(), [0, 1, 2].into());
    }

    #[test]
    fn only_sharded_replicas_get_slow_lists() {
        for n_slots in [0, 4] {
            let settled = Duration::from_secs(60);
            let points = Points { instances: 3, n_slots, settled, length: 3 * settled, ..Points::default() };
            let slow = (0..400).flat_map(|seed| points.seeded(seed)).filter_map(|fault| match fault {
                Fault::At { time, what: Timed::SlowLists { instance, .. } } => Some((time, instance)),
                _ => None,
            });
            let slow: Vec<_> = slow.collect();
            assert!(slow.iter().all(|(time, _)| *time < settled), "{slow:?}");
            let instances: std::collections::BTreeSet<_> = slow.iter().map(|(_, instance)| *instance).collect();
            assert_eq!(instances.len(), if n_slots == 0 { 0 } else { 3 });
        }
    }

    #[test]
    fn without_clock_faults_other_faults_remain() {
        let length = Duration::from_secs(9);
        let with = Points { instances: 2, n_writes: 3, length, ..Points::default() };
        let without = Points { without_clock_faults: true, ..with.clone() };
        let faults =
            |points: &Points| [points.singles(), (0..400).flat_map(|seed| points.seeded(seed)).collect()].concat();
        let is_clock = |fault: &Fault| matches!(fault, Fault::At { what: Timed::ClockJump { .. }, .. });
        assert!(faults(&with).iter().any(is_clock));
        assert!(!faults(&without).iter().any(is_clock));
        let n_others = |points: &Points| points.singles().iter().filter(|fault| !is_clock(fault)).count();
        assert_eq!(n_others(&with), without.singles().len());
    }

    #[test]
    fn each_read_gets_all_applicable_failures() {
        let points = Points { reads: vec!["get", "list", "watch"], ..Points::default() };
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
            let points = Points { n_writes: 2, instances, ..Points::default() };
            let singles = points.singles();
            let late =
                |fault: &&Fault| matches!(fault, Fault::Write { what: OnWrite::Fails(RequestFault::Late(_)), .. });
            assert_eq!(singles.iter().filter(late).count(), expected, "{instances} instances");
            let of_crash = |fault: &&Fault| matches!(fault, Fault::Write { what: OnWrite::CrashLate(_), .. });
            assert_eq!(singles.iter().filter(of_crash).count(), expected, "{instances} instances");
            let seeded = (0..400).flat_map(|seed| points.seeded(seed)).collect::<Vec<_>>();
            assert_eq!(seeded.iter().any(|fault| of_crash(&fault)), instances > 1);
        }
    }

    #[test]
    fn leases_lapse_shortly_before_a_write() {
        let [early, at] = [3, 20].map(Duration::from_secs);
        let lapses = |faults: Vec<Fault>| -> Vec<(Duration, Lapse)> {
            let of = |fault| match fault {
                Fault::At { time, what: Timed::Lapse(lapse) } => Some((time, lapse)),
                _ => None,
            };
            faults.into_iter().filter_map(of).collect()
        };
        for instances in [1, 2] {
            let length = Duration::from_secs(30);
            let points = Points { write_times: vec![early, at], n_writes: 2, instances, length, ..Points::default() };
            let singles: Vec<_> =
                lapses(points.singles()).into_iter().map(|(time, _)| at.saturating_sub(time)).collect();
            let seeded = lapses((0..400).flat_map(|seed| points.seeded(seed)).collect());
            if instances == 1 {
                assert!(singles.is_empty() && seeded.is_empty());
                continue;
            }
            // Every lapse begins more than 3 s before its write. The first write is at 3 s, so it has no lapse.
            assert_eq!(singles, Lapse::BEFORE_WRITE);
            let before = Duration::from_secs(4)..=Duration::from_secs(10);
            let n_before = seeded.iter().filter(|(time, _)| before.contains(&at.saturating_sub(*time))).count();
            assert!(n_before > 50 && n_before < seeded.len(), "{n_before} of {}", seeded.len());
            for renewals in [Renewals::Refused, Renewals::Unanswered] {
                assert!(seeded.iter().any(|(_, lapse)| lapse.renewals == renewals), "{renewals:?}");
            }
        }
    }

    #[test]
    fn lapse_report_includes_its_write_delay() {
        assert_ne!(longest_write(0), longest_write(4));
        for n_slots in [0, 4] {
            let write_times = vec![Duration::from_secs(20)];
            let points = Points { write_times, n_writes: 1, instances: 2, n_slots, ..Points::default() };
            let faults = points.singles().into_iter().chain((0..100).flat_map(|seed| points.seeded(seed)));
            let lapses = faults.filter(|fault| matches!(fault, Fault::At { what: Timed::Lapse(_), .. }));
            let texts: Vec<_> = lapses.map(|fault| fault.to_string()).collect();
            let end = format!("while its writes are on their way for {:?}", longest_write(n_slots));
            assert!(texts.len() > Lapse::BEFORE_WRITE.len(), "singles and seeds have lapses: {texts:?}");
            assert!(texts.iter().all(|text| text.ends_with(&end)), "{n_slots} slots: {texts:?}");
        }
    }

    #[test]
    fn one_seed_gives_one_combination() {
        let points = Points { n_writes: 3, instances: 2, length: Duration::from_secs(9), ..Points::default() };
        assert_eq!(points.seeded(7), points.seeded(7));
        assert!((0..20).any(|seed| points.seeded(seed) != points.seeded(7)));
    }
}
