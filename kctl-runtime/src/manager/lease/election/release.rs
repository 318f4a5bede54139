//! Releases the Lease when the process stops.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::{Acquisition, Effect, Election, End};
use crate::manager::lease::{LeaseRequest, Record};

impl Election {
    /// Ends the election. Releases the Lease first, if this process leads and may release it.
    ///
    /// A Lease that is not released is taken over after `lease_duration`; a released one at once. A candidate whose write
    /// may have acquired the Lease releases it too: nothing would work under it.
    pub(super) fn release(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let is_unknown = self.acquisition == Acquisition::Unknown || self.is_acquiring();
        let may_hold = self.leading.is_some() || is_unknown;
        if !may_hold || !self.config.release_on_stop {
            return self.end(End::Stopped, effects);
        }
        self.releasing = Some(now + self.config.renew_deadline);
        self.send(LeaseRequest::Get, now);
    }

    /// Releases the Lease that was read, unless another process holds it by now.
    ///
    /// Another client may have removed the name of this leader. Candidates that saw that count the Lease as held until it
    /// is released.
    pub(super) fn release_read(&mut self, lease: &Value, now: Instant, wall: Timestamp, effects: &mut Vec<Effect>) {
        let is_emptied = |record: &Record| self.leading.is_some() && record.holder().is_empty() && !record.is_release();
        match self.observed.record() {
            Some(record) if self.observed.is_own || is_emptied(record) => {
                let next = Record::for_release(record, wall).update(&self.config, lease);
                self.send(LeaseRequest::Update(next), now);
            }
            _ => self.end(End::Stopped, effects),
        }
    }

    /// Handles the read of a missing Lease during a release.
    pub(super) fn release_missing(&mut self, now: Instant, wall: Timestamp, effects: &mut Vec<Effect>) {
        if self.leading.is_none() {
            return self.end(End::Stopped, effects);
        }
        // The held Lease was deleted by hand. Without a record, a process that starts later could not know that it is
        // free. The record has the transitions of the deleted one, so that candidates that saw it recognize the release.
        let transitions = self.observed.record().and_then(|record| record.lease_transitions);
        let deleted = Record { lease_transitions: transitions.or(Some(0)), ..Record::default() };
        let released = Record::for_release(&deleted, wall);
        self.send(LeaseRequest::Create(released.create(&self.config)), now);
    }
}
