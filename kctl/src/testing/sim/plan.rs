//! The faults of a run: a list, each at a place that the run without faults has shown.
//!
//! A fault is addressed by a count, such as "the third write of the app", not by an object. A plan remains meaningful
//! when the faults before it change what the app does, and a shorter plan is tried by leaving entries out.

mod describe;
mod points;
mod seeded;
mod simpler;
mod singles;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use kctl_apiserver::faults::{EventFault, Moment, RequestFault};
use kctl_runtime::__private_0_1::ThawOrder;

use super::lease_lapse::LeaseLapse;

pub(super) use self::{
    describe::{event, request, slow_lists},
    points::{FaultPoints, History, fits},
    singles::{sample_evenly, sample_with},
};

/// A state that a watch skips is delivered after this time at the latest.
pub(super) const SKIPPED_EVENT_DELAY: Duration = Duration::from_secs(10);

/// An API server that is behind catches up after this time.
pub(super) const STALE_SERVER_DURATION: Duration = Duration::from_secs(3);

/// Wait before a crashed process starts again.
pub(super) const RESTART_DELAY: Duration = Duration::from_secs(1);

/// Downtime of a machine that fails: all deadlines have passed when the process starts again.
pub(super) const OUTAGE: Duration = Duration::from_secs(300);

/// Time for which all processes are down during a step: longer than a Lease lasts. A step that waits for the app
/// continues afterwards.
pub(super) const MISSED_STEP_DELAY: Duration = Duration::from_secs(20);

/// Maximum number of single faults of one scenario. If there are more, this many are tried, spread
/// evenly.
pub(super) const SINGLES_MAX: usize = 4_000;

/// Time for which the lists of a process are slow: long enough that the Leases of its slots expire and slots move.
pub(super) const SLOW_LISTS_DURATION: Duration = Duration::from_secs(30);

/// Time between two bookmarks of the watches that overtake slow lists.
pub(super) const BOOKMARK_INTERVAL: Duration = Duration::from_millis(100);

/// One fault. Counts start at one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// At the nth write of the app, counted over all its processes.
    Write { nth: u64, what: WriteFault },
    /// At the nth read of the app: of an object, or a list or watch that feeds a cache. It is not injected if that read
    /// turns out to be one that the fault does not fit.
    Read { nth: u64, what: RequestFault },
    /// At the nth event of the app's watches.
    Event { nth: u64, what: EventFault },
    /// At the nth call of a system outside of the cluster, counted over all processes of the app.
    External { nth: u64, what: ExternalFault },
    /// Some requests of the app, and some responses, are a few milliseconds late in the whole run. The seed is the seed of
    /// the random numbers.
    Jitter { seed: u64 },
    /// All processes end before the nth step, and start again after [`MISSED_STEP_DELAY`]. The last step is the
    /// deletion of everything.
    AtStep { nth: usize },
    /// At a time since the start of the run.
    At { time: Duration, what: TimedFault },
}

/// The effect of a fault on a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriteFault {
    /// The write fails, or is slow.
    Fails(RequestFault),
    /// The process ends before or after the write took effect, and starts again, perhaps on a
    /// server that is behind.
    Crash { moment: Moment, behind: Option<StaleServer> },
    /// The process ends and starts again. The write is in flight, and arrives this much later.
    CrashLate(Duration),
    /// The process ends, and starts again only after [`OUTAGE`].
    Outage(Moment),
}

/// The effect of a fault on a call of a system outside of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExternalFault {
    /// The process ends before the call takes effect, and starts again.
    CrashBefore,
    /// The process ends after the call took effect, and starts again.
    CrashAfter,
    /// The call fails before it takes effect.
    Fails,
    /// The call takes effect, and fails.
    FailsAfter,
    /// The call takes effect after this time.
    Slow(Duration),
}

/// An API server that is behind when a process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StaleServer {
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
pub(super) enum TimedFault {
    /// A process ends, and starts again.
    Crash { instance: usize },
    /// A process is stopped as by SIGTERM, and starts again after the downtime: a replica leaves and joins.
    Stop { instance: usize, downtime: Duration },
    /// All processes are replaced, one at a time. During the update, one more process runs.
    RollingUpdate,
    /// A process and the server can't reach each other; afterwards all messages arrive.
    Partition { instance: usize, length: Duration },
    /// The clock of one process jumps; the clocks of the others do not.
    ClockJump { instance: usize, seconds: i64 },
    /// The current leader fails to renew its Lease. With slots, a replica fails to renew all of its Leases, or the owner of
    /// a slot fails to renew only the slot's Lease.
    Lapse(LeaseLapse),
    /// A process is frozen as by SIGSTOP, and continues.
    Freeze(Freeze),
    /// A user deletes the Lease of a slot. Its owner is still at work.
    LeaseDeleted { slot: u32 },
    /// A process ends, and starts again. For [`SLOW_LISTS_DURATION`] the responses of the lists that fill its caches take
    /// this long, and its watches overtake them. Bookmarks move the watches on, as steady changes of the kind would.
    /// Slots move during the delay, because the process that starts again takes a share.
    SlowLists { instance: usize, delay: Duration },
}

/// A process that is frozen: all of its tasks stop while its deadlines continue to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Freeze {
    /// The replica; `None` for the leader at the time of the freeze.
    pub(super) instance: Option<usize>,
    pub(super) length: Duration,
    /// The order in which its tasks continue. In one order a reconcile may continue before the election notices that the
    /// Lease has expired.
    pub(super) order: ThawOrder,
}

impl Fault {
    /// Returns the seed of jitter.
    pub(super) fn jitter_seed(&self) -> Option<u64> {
        if let Self::Jitter { seed } = self { Some(*seed) } else { None }
    }

    /// Returns advice for an app that can't bear this fault, if the scenario can leave it out.
    pub(super) fn option_help(&self) -> Option<&'static str> {
        match self {
            Self::At { what: TimedFault::ClockJump { .. }, .. } => {
                Some("`.without_clock_faults()` is for an app that relies on clocks that agree with the server's")
            }
            Self::At { what: TimedFault::Freeze(_), .. } => {
                Some("`.without_freezes()` is for an app that changes a system without a fence outside of the cluster")
            }
            Self::Write { what: WriteFault::Crash { behind: Some(server), .. }, .. } if server.is_outdated => {
                Some("`.without_outdated_lists()` is for an app that relies on lists being up to date")
            }
            _ => None,
        }
    }
}
