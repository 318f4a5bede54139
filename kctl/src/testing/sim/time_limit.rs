//! The real time that a simulation takes, and may take, for jobs that run as many seeds as they can.

use std::time::{Duration, Instant};

/// A clock of real time. Simulated time belongs to a run, and says nothing about how long all of them take.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the clock is about real time, outside of all runs")]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn run_time(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A limit of real time.
pub(super) struct TimeLimit {
    clock: Stopwatch,
    length: Duration,
}

impl TimeLimit {
    /// Starts a limit of this length.
    pub(super) fn start(length: Duration) -> Self {
        Self { clock: Stopwatch::start(), length }
    }

    pub(super) fn is_over(&self) -> bool {
        self.clock.run_time() >= self.length
    }
}
