//! Simulates a leader that continues to work while its Lease runs out. Its Lease requests fail,
//! all others arrive, and its writes are in flight for as long as the write permit allows. Without the
//! permit some of them would arrive under the next leader.
//!
//! With slots, all Leases of one replica lapse, or the Lease of one slot alone. The owner of that slot loses it and
//! continues with the others, while a replica that loses the Lease of the settings ends.

use std::{fmt, time::Duration};

use kctl_apiserver::faults::{Faults, Moment, RequestFault, RequestSummary, Rule};
use kctl_runtime::{
    manager::{lease::ElectionConfig, shards::ShardConfig},
    shard::ShardBy,
};
use tokio::time::Instant;

use super::{checks::is_bookkeeping, owners::COORDINATION};

/// The way in which requests about the Lease fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewals {
    /// With 503.
    Rejected,
    /// The requests are delayed by the length of the lapse.
    NoResponse,
}

/// The Leases that are not renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LapsedLeases {
    /// The Lease of the leader.
    Leader,
    /// With slots, all Leases of one replica: the holder of the slot Lease that changed last.
    Replica,
    /// The Lease of one slot, whose owner renews its other Leases.
    Slot(u32),
}

impl LapsedLeases {
    /// Returns all Leases of one replica. `n_slots` is 0 for leader election.
    pub(super) fn for_replica(n_slots: u32) -> Self {
        if n_slots > 0 { Self::Replica } else { Self::Leader }
    }

    /// Returns the slot whose Lease lapses alone.
    pub(super) fn slot(self) -> Option<u32> {
        match self {
            Self::Leader | Self::Replica => None,
            Self::Slot(slot) => Some(slot),
        }
    }
}

/// Leases that their holder fails to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseLapse {
    pub(super) renewals: Renewals,
    /// Time for which requests fail: about as long as a Lease lasts.
    pub(super) length: Duration,
    /// Time for which each write is in flight: [`longest_write`] of the scenario.
    pub(super) write_delay: Duration,
    pub(super) leases: LapsedLeases,
}

/// Returns the longest time that a leader's write may take, including the margin for one that
/// continues after its timeout. `n_slots` is 0 for leader election.
pub(super) fn longest_write(n_slots: u32) -> Duration {
    let election = ElectionConfig::new("app", "default", "app-0");
    let shards = ShardConfig::new(election.clone(), n_slots, ShardBy::Object);
    shards.map_or(election.write_timeout(), |shards| shards.write_timeout()) + election.write_margin()
}

impl LeaseLapse {
    /// Times before a write at which the Lease stops being renewed. After each of them, too little of the Lease is
    /// left for a leader's permit. Writes of a slot have less time, so its owner may still send one after the first. The
    /// last is just before a leader gives up.
    pub(super) const BEFORE_WRITE: [Duration; 3] =
        [Duration::from_secs(5), Duration::from_secs(8), Duration::from_millis(9_500)];

    /// Starts the lapse for a replica. `lease` is the name of the only Lease whose requests fail; `None` for all of them.
    pub(super) fn begin(self, faults: &Faults, instance: &str, lease: Option<String>) {
        let (prefix, until) = (format!("{instance}."), Instant::now() + self.length);
        let is_from_instance =
            move |request: &RequestSummary| request.client.starts_with(&prefix) && Instant::now() < until;
        let (is_renewal, writes) = (is_from_instance.clone(), is_from_instance);
        let fault = match self.renewals {
            Renewals::Rejected => RequestFault::Reject { code: 503, retry_after: None, moment: Moment::Before },
            Renewals::NoResponse => RequestFault::Delay(self.length),
        };
        let is_lease = move |request: &RequestSummary| {
            let is_named = lease.as_ref().is_none_or(|name| *name == request.name);
            is_named && (&*request.group, &*request.resource) == (COORDINATION, "leases")
        };
        faults.add(Rule::request(fault, move |request| is_lease(request) && is_renewal(request)));
        let late = RequestFault::Late(self.write_delay);
        let works = |request: &RequestSummary| request.is_write() && !is_bookkeeping(&request.group, &request.resource);
        faults.add(Rule::request(late, move |request| works(request) && writes(request)));
    }
}

impl fmt::Display for LeaseLapse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { renewals, length, write_delay, leases } = self;
        match leases {
            LapsedLeases::Leader => f.write_str("Lease requests of the leader")?,
            LapsedLeases::Replica => f.write_str("all Lease requests of the replica whose slot Lease changed last")?,
            LapsedLeases::Slot(slot) => write!(f, "requests of its owner for the Lease of slot {slot}")?,
        }
        let how = match renewals {
            Renewals::Rejected => "are rejected with 503",
            Renewals::NoResponse => "get no response",
        };
        write!(f, " {how} for {length:?}; its writes arrive {write_delay:?} late")
    }
}
