//! The deadline of a request, by the monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

/// The time that a request has. It begins when the request is permitted, not when it is sent.
///
/// A process may be stopped between the two. A timeout alone would then begin again after the stop, when the Lease may have
/// expired.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    until: Instant,
    /// The whole timeout, for messages.
    length: Duration,
}

impl TimeLimit {
    /// Returns the limit of a request that is permitted at `begin`.
    pub(crate) fn new(begin: Instant, length: Duration) -> Self {
        Self { until: begin + length, length }
    }

    /// Returns the limit of a request that needs no permit.
    pub(crate) fn from_now(length: Duration) -> Self {
        Self::new(Instant::now(), length)
    }

    pub(crate) fn until(self) -> Instant {
        self.until
    }

    pub(crate) fn length(self) -> Duration {
        self.length
    }
}
