//! Chooses the next try after a failed request.

use std::time::Duration;

use tokio::time::Instant;

use super::{Acquisition, Effect, Election, End, Holders, Step};
use crate::{
    manager::lease::{LeaseRequest, config::JITTER},
    shard::splitmix64,
    writer::ApiError,
};

/// Wait before the Lease is read again after a conflict (client-go, `retry.DefaultRetry`).
const CONFLICT_RETRY_DELAY: Duration = Duration::from_millis(10);
/// Random part of that wait, as a multiple of it.
const CONFLICT_JITTER: f64 = 4.0;

/// The last failed request.
///
/// It is forgotten once its cause is gone: after a write, and after a read if a read failed. It is also
/// forgotten when another process turns out to hold the Lease, since a standby has nothing to write.
#[derive(Debug)]
pub(super) struct Failure {
    /// The message, for readiness and for the reason of a lost Lease.
    pub(super) text: String,
    pub(super) request: FailedRequest,
}

/// The request that failed, which decides when the failure is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedRequest {
    Read,
    Write,
}

impl Election {
    /// Handles a failed request.
    ///
    /// A renewal that failed is tried again at once, with a read first, whatever the reason. If that fails too, the
    /// next try comes after the retry period (`tryAcquireOrRenew`), or soon after a conflict. Replicas that hold a
    /// Lease together conflict with each other, most of all when they start together.
    ///
    /// A candidate that lost a race for the Lease has no failure. One of several replicas that share work reads the
    /// holder soon: it joins it, or takes another Lease.
    pub(super) fn handle_failure(&mut self, error: &ApiError, now: Instant, effects: &mut Vec<Effect>) {
        let updating = matches!(self.step, Step::Send(LeaseRequest::Update(_), _));
        let creating = matches!(self.step, Step::Send(LeaseRequest::Create(_), _));
        // The code is the same if the Lease exists by now.
        let conflict = (updating && error.is_conflict()) || (creating && error.code() == Some(409));
        // Another candidate was faster. The next read returns the holder.
        let lost_race = self.leading.is_none() && conflict;
        if self.is_acquiring() && error.is_unknown_outcome() {
            self.acquisition = Acquisition::Unknown;
        }
        if lost_race {
            self.failure = None;
        } else {
            let request = if updating || creating { FailedRequest::Write } else { FailedRequest::Read };
            self.failure = Some(Failure { text: error.to_string(), request });
        }
        if let Some(deadline) = self.releasing {
            if now >= deadline {
                return self.end(End::Stopped, effects);
            }
            let wait = if conflict { CONFLICT_RETRY_DELAY } else { self.config.retry_period };
            self.step = Step::Wait((now + wait).min(deadline));
            return;
        }
        // A renewal that skipped the read may have failed because the Lease changed, so the next try reads it. Processes
        // that hold a Lease together always read it. Two that renew it at the same time would do so each time, so the one
        // that lost waits for a moment.
        let meets_others = self.holders == Holders::Together && conflict;
        let fast = self.leading.is_some() && updating && self.lease.is_some() && !meets_others;
        if fast && self.leading.is_some_and(|term| term.deadline.is_none_or(|deadline| now < deadline)) {
            self.lease = None;
            return self.send(LeaseRequest::Get, now);
        }
        self.retry_later(now, effects);
        let reads_soon = lost_race && self.holders != Holders::One;
        if matches!(self.step, Step::Wait(_)) && (reads_soon || (conflict && self.leading.is_some())) {
            // Several replicas may have lost at the same time. Without the random part they would meet again.
            let again = CONFLICT_RETRY_DELAY.mul_f64(1.0 + CONFLICT_JITTER * self.random());
            let Step::Wait(until) = &mut self.step else { return };
            *until = (*until).min(now + again);
        }
    }

    /// Forgets a failed read. A failed write is remembered until the write that follows.
    pub(super) fn read_succeeded(&mut self) {
        self.failure.take_if(|failure| failure.request == FailedRequest::Read);
    }

    /// Waits for the next try. Candidates add a random part, so that they don't all try at once.
    ///
    /// Without the random part all candidates of a Deployment that was scaled up would read the Lease in the same
    /// moment. Those that will hold it together do not compete for it, so they try when it expires.
    pub(super) fn retry_later(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let period = self.config.retry_period;
        let Some(term) = self.leading else {
            let jittered = now + period + period.mul_f64(JITTER * self.random());
            let expiry =
                self.observed.expiry_of_other().filter(|expiry| self.holders == Holders::Together && *expiry > now);
            self.step = Step::Wait(expiry.map_or(jittered, |expiry| expiry.min(jittered)));
            return;
        };
        let deadline = term.deadline.unwrap_or(term.until);
        if now >= deadline {
            return self.lose_lease(effects);
        }
        self.step = Step::Wait((now + period).min(deadline));
    }

    /// Returns the next random number in `0.0..=1.0` (splitmix64).
    fn random(&mut self) -> f64 {
        self.rng_state = self.rng_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let top = u32::try_from(splitmix64(self.rng_state) >> 32).unwrap_or(u32::MAX);
        f64::from(top) / f64::from(u32::MAX)
    }
}
