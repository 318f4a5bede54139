//! Acquires the Lease and renews it in time.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{Effect, Election, End, Holders, Step};
use crate::{
    manager::lease::{LeaseRequest, Record},
    shard::hash_string,
};

/// Number of parts of a period among which [`part_of`] chooses.
const N_PARTS: u32 = 64;

/// Returns a part of a period, up to the whole of it, which depends only on the name.
fn part_of(period: Duration, name: &str) -> Duration {
    // The upper half of the hash depends on every character of the name.
    let part = u32::try_from(hash_string(name) >> 32).unwrap_or_default() % N_PARTS;
    period * (part + 1) / N_PARTS
}

/// The time for which this process leads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term {
    /// End of the Lease by the local clock. Counted from before the request, because others may have seen the
    /// record that early.
    pub(super) until: Instant,
    /// Deadline of the renewal that is under way. Invariant: not after `until`.
    pub(super) deadline: Option<Instant>,
}

impl Election {
    /// Starts a try (`tryAcquireOrRenew`): a leader renews without reading, a candidate reads.
    ///
    /// A leader sends its update with the `resourceVersion` of its last one. That saves a read per renewal, and fails
    /// with a conflict if anything else wrote the Lease.
    pub(super) fn attempt(&mut self, now: Instant, wall: Timestamp, effects: &mut Vec<Effect>) {
        if self.releasing.is_some() {
            return self.send(LeaseRequest::Get, now);
        }
        let renewal = now + self.config.renew_deadline;
        let Some(term) = &mut self.leading else { return self.send(LeaseRequest::Get, now) };
        let deadline = *term.deadline.get_or_insert(renewal.min(term.until));
        if now >= deadline {
            return self.lose_lease(effects);
        }
        match (&self.lease, self.observed.record()) {
            (Some(lease), Some(record)) if self.holders != Holders::Together => {
                let next = Record::for_holder(&self.config, record, wall).update(&self.config, lease);
                self.send(LeaseRequest::Update(self.with_annotations(next)), now);
            }
            _ => self.send(LeaseRequest::Get, now),
        }
    }

    /// Writes this process into a Lease that was read, as its holder or one of its holders.
    pub(super) fn join_or_acquire(
        &mut self,
        lease: &Value,
        record: &Record,
        now: Instant,
        wall: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if self.leading.is_some() && self.holders != Holders::Together {
            effects.push(Effect::SlowPath);
        }
        // A leader whose name was removed keeps its `acquireTime`, as one whose Lease was deleted (`initial_record`).
        let is_emptied = self.leading.is_some() && record.holder().is_empty();
        let holder_identity = Some(self.config.identity.clone());
        let restored = is_emptied.then(|| Record { holder_identity, ..record.clone() });
        let mut next = Record::for_holder(&self.config, restored.as_ref().unwrap_or(record), wall);
        if self.holders == Holders::Together && self.leading.is_none() && self.is_new {
            // Joining does not renew the Lease: for the next process that joins, it is as new as for this one.
            next.acquire_time.clone_from(&next.renew_time);
        }
        self.send(LeaseRequest::Update(self.with_annotations(next.update(&self.config, lease))), now);
    }

    /// Notes that this process leads until this instant, and waits for the next renewal.
    pub(super) fn lead_until(&mut self, until: Instant, now: Instant, effects: &mut Vec<Effect>) {
        debug_assert!(self.leading.is_none_or(|term| term.until <= until), "a renewal does not shorten the Lease");
        let is_first = self.leading.is_none();
        self.leading = Some(Term { until, deadline: None });
        effects.push(Effect::Leading(until));
        let next = if is_first { self.first_renewal(now) } else { self.next_renewal(now) };
        self.step = Step::Wait(next);
    }

    /// Returns when the first renewal begins.
    ///
    /// A replica acquires the Leases of many slots in the same moment. Each has its part of the retry period, by its name, so
    /// they are not all renewed at once: every renewal would need a connection, which would be kept open for the next.
    fn first_renewal(&self, now: Instant) -> Instant {
        match self.holders {
            Holders::Numbered { .. } => now + part_of(self.config.retry_period, &self.config.name),
            Holders::One | Holders::Together => self.next_renewal(now),
        }
    }

    /// Returns when the renewal after the present one begins.
    ///
    /// Processes that hold a Lease together begin a read per retry period, however long each takes. A record that a read
    /// shows counts from the start of the previous read. So a wait after a slow read would cost twice as much of the Lease.
    pub(super) fn next_renewal(&self, now: Instant) -> Instant {
        let begun = if self.holders == Holders::Together { self.sent } else { now };
        begun + self.config.retry_period
    }

    /// Ends the election because the renew deadline has passed.
    pub(super) fn lose_lease(&mut self, effects: &mut Vec<Effect>) {
        let within = self.config.renew_deadline;
        let cause = self.failure.take().map_or_else(|| "no answer".into(), |failure| failure.text);
        self.end(End::Lost(format!("{} was not renewed within {within:?}: {cause}", self.lease_name())), effects);
    }
}
