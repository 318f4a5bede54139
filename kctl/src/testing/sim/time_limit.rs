//! The real time that a simulation may take, for jobs that run as many seeds as they can.

use std::time::{Duration, Instant};

/// A limit of real time. Simulated time belongs to a run, and says nothing about how long all of them take.
pub(super) struct TimeLimit {
    start: Instant,
    length: Duration,
}

impl TimeLimit {
    /// Starts a limit of this length.
    #[expect(clippy::disallowed_methods, reason = "the limit is about real time, outside of all runs")]
    pub(super) fn start(length: Duration) -> Self {
        Self { start: Instant::now(), length }
    }

    pub(super) fn is_over(&self) -> bool {
        self.start.elapsed() >= self.length
    }
}
