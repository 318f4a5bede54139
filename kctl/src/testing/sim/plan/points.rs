//! The places at which a run can have faults, as the run without faults has shown them.

use std::{ops::Range, sync::Arc, time::Duration};

use kctl_apiserver::faults::{EventSummary, RequestFault};

use super::StaleServer;
use crate::testing::sim::lease_lapse::longest_write;

/// The places for faults, recorded in the run without any.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::sim) struct FaultPoints {
    /// Number of writes by the app.
    pub(in crate::testing::sim) n_writes: usize,
    pub(in crate::testing::sim) write_times: Vec<Duration>,
    /// The replica that sent each write.
    pub(in crate::testing::sim) writers: Vec<usize>,
    /// The verb of each read of the app: `get`, `list` or `watch`.
    pub(in crate::testing::sim) reads: Vec<&'static str>,
    /// The events of the app's watches.
    pub(in crate::testing::sim) events: Vec<EventSummary>,
    /// The calls of systems outside of the cluster.
    pub(in crate::testing::sim) externals: Vec<String>,
    /// Number of the calls among them that came before the final state. Rules of `.settled(…)` see only their effects.
    pub(in crate::testing::sim) n_externals_of_work: usize,
    /// The revisions of each cluster, the app's own first.
    pub(in crate::testing::sim) histories: Vec<History>,
    /// Times at which the state had settled: before each step that waits for it, and at the end.
    pub(in crate::testing::sim) settled_times: Vec<Duration>,
    /// Number of the user's steps; the last one is the deletion of everything.
    pub(in crate::testing::sim) n_steps: usize,
    /// Time at which the final state was reached.
    pub(in crate::testing::sim) settled: Duration,
    pub(in crate::testing::sim) instances: usize,
    /// Number of slots; 0 if the instances do not share the keys.
    pub(in crate::testing::sim) n_slots: u32,
    /// Allows servers that serve an old state as the newest one.
    pub(in crate::testing::sim) outdated_lists: bool,
    pub(in crate::testing::sim) without_clock_faults: bool,
    pub(in crate::testing::sim) without_freezes: bool,
}

/// The revisions of one cluster that a process can start with.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::sim) struct History {
    /// The name of the cluster; empty for the app's own.
    pub(in crate::testing::sim) cluster: Arc<str>,
    /// The revision at which the app was started.
    pub(in crate::testing::sim) first: u64,
    /// The revision before each write of the app, to any of the clusters.
    pub(in crate::testing::sim) before: Vec<u64>,
    /// Set when the app accepts cached states (`resourceVersion=0`). The caches of kctl do not: they start
    /// with the newest state, and are behind only in that their events arrive late.
    pub(in crate::testing::sim) reads_may_be_cached: bool,
}

impl History {
    /// Returns the newest revision that a server which is behind can have after the nth write: the one before that
    /// write. Writes beyond the last one count as the last one.
    pub(super) fn newest(&self, nth: u64) -> u64 {
        let index = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
        self.before.get(index).or(self.before.last()).copied().unwrap_or(self.first)
    }

    /// Returns the oldest revision that makes a difference to a process that starts when `newest`
    /// is current.
    pub(super) fn oldest(&self, newest: u64) -> u64 {
        if self.reads_may_be_cached { self.first.min(newest) } else { newest }
    }

    pub(super) fn stale_start(&self, revision: u64) -> StaleServer {
        StaleServer { cluster: self.cluster.clone(), revision, is_outdated: false }
    }

    pub(super) fn outdated_start(&self, revision: u64) -> StaleServer {
        StaleServer { cluster: self.cluster.clone(), revision, is_outdated: true }
    }
}

/// Returns `true` if a server may answer a read like this. 410 is for list and watch, since a `get` has no version that
/// could be too old.
pub(in crate::testing::sim) fn fits(verb: &str, fault: RequestFault) -> bool {
    match fault {
        RequestFault::Reject { code: 410, .. } => verb != "get",
        RequestFault::Half => verb != "watch",
        _ => true,
    }
}

impl FaultPoints {
    /// Returns the longest delay with which a write may arrive without being a bug: only several instances have a Lease
    /// that bounds it.
    ///
    /// A single instance has no protection against a write that arrives after the next process has
    /// read the state.
    pub(super) fn longest_delay(&self) -> Option<Duration> {
        (self.instances > 1).then(|| longest_write(self.n_slots))
    }

    pub(super) fn delayed_write(&self) -> Option<RequestFault> {
        self.longest_delay().map(RequestFault::Late)
    }

    /// Returns the times of the writes before the final state. Faults at a time are over before the final deletion begins, so
    /// they hit none of its writes.
    pub(super) fn write_times_of_work(&self) -> &[Duration] {
        debug_assert!(self.write_times.is_sorted(), "writes are recorded as they are sent");
        &self.write_times[..self.write_times.partition_point(|time| *time < self.settled)]
    }

    /// Returns the revisions of outdated servers among the single faults. `newest` itself is left to stale servers and
    /// to seeds.
    pub(super) fn outdated_revisions(&self, history: &History, newest: u64) -> Range<u64> {
        if self.outdated_lists { history.first..newest } else { 0..0 }
    }
}
