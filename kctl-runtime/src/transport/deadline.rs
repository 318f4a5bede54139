//! The deadline of a request, by the monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

/// A deadline counted from when a request is permitted, not from when it is sent.
///
/// The process may be suspended between the two. A plain timeout would start again afterwards, when the Lease may have
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
