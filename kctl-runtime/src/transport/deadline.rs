//! The deadline of a request, by the monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

/// The end of a request's time, which begins when the request is permitted and not when it is sent.
///
/// A process may be stopped between the two. A timeout alone would then begin again after the stop, when the Lease may have
/// expired.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    /// The whole timeout, for messages.
    timeout: Duration,
}

impl Deadline {
    /// Returns the deadline of a request that is permitted at `begin`.
    pub(crate) fn new(begin: Instant, timeout: Duration) -> Self {
        Self { at: begin + timeout, timeout }
    }

    /// Returns the deadline of a request that needs no permit.
    pub(crate) fn from_now(timeout: Duration) -> Self {
        Self::new(Instant::now(), timeout)
    }

    pub(crate) fn at(self) -> Instant {
        self.at
    }

    pub(crate) fn timeout(self) -> Duration {
        self.timeout
    }
}
