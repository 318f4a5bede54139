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

    /// Returns the deadline of a request that has to end at this instant. Its timeout is rounded, for messages.
    pub(crate) fn until(at: Instant) -> Self {
        let left = at.saturating_duration_since(Instant::now());
        let tenths = (left.as_secs_f64() * 10.0).round();
        Self { at, timeout: Duration::from_secs_f64(tenths / 10.0) }
    }

    pub(crate) fn at(self) -> Instant {
        self.at
    }

    pub(crate) fn timeout(self) -> Duration {
        self.timeout
    }
}
