//! The waits between requests of a reflector that fail in a row.

use std::time::Duration;

/// First wait after a failure (client-go, `reflector.go`, `NewReflectorWithOptions`).
pub(super) const BACKOFF_MIN: Duration = Duration::from_millis(800);
/// Longest wait after a failure, without jitter. It is reached with the seventh failure in a row.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// A watch that lasted this long was healthy: the next failure has the first wait again (client-go, `reflector.go`,
/// `NewReflectorWithOptions`: the backoff resets after two minutes).
const HEALTHY_AFTER: Duration = Duration::from_secs(120);

/// The wait after a failure, which grows until a watch was healthy.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Number of failures since the last healthy watch.
    failures: u32,
}

impl Backoff {
    /// Resets the backoff after a watch that lasted. A list that works is not enough: the watch may fail each time.
    pub(super) fn reset_if_healthy(&mut self, lasted: Duration) {
        if lasted >= HEALTHY_AFTER {
            self.failures = 0;
        }
    }

    /// Returns the wait after this failure, 0.8 s doubled each time up to 30 s, and counts it.
    pub(super) fn next_wait(&mut self) -> Duration {
        let wait = BACKOFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}
