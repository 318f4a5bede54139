//! The wait of a key after its failures. `QueueState::add` in `queue/state/add.rs` counts them. A success, a change of the
//! spec and giving up reset the count (`Entry::reset_failures`).

use std::time::Duration;

/// Exponential backoff per key: `base · 2^n` after `n` earlier failures, at most `max`.
///
/// The formula and the defaults come from client-go's `ItemExponentialFailureRateLimiter`
/// (`util/workqueue/default_rate_limiters.go`). A controller sets it with `backoff("5ms", max = "1000s")`. There is no
/// limit across keys, so one failing object does not delay the others.
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::queue::Backoff;
///
/// let backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(5) };
/// let waits: Vec<u64> = (0..4).map(|failures| backoff.wait(failures).as_secs()).collect();
/// assert_eq!(waits, [1, 2, 4, 5]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure; 5 ms by default.
    pub base: Duration,
    /// The longest wait; 1000 s by default.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// Returns the wait after `failures` earlier failures. It never shrinks as failures grow, and never overflows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kctl_runtime::queue::Backoff;
    /// let backoff = Backoff::default();
    /// assert_eq!(backoff.wait(0), Duration::from_millis(5));
    /// assert_eq!(backoff.wait(3), Duration::from_millis(40));
    /// assert_eq!(backoff.wait(u32::MAX), Duration::from_secs(1000));
    /// ```
    pub fn wait(&self, failures: u32) -> Duration {
        let mut wait = self.base.min(self.max);
        for _ in 0..failures {
            if wait.is_zero() || wait == self.max {
                break;
            }
            wait = wait.saturating_mul(2).min(self.max);
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(base: Duration, max: Duration, failures: u32, expected: Duration) {
        assert_eq!(Backoff { base, max }.wait(failures), expected, "{base:?} · 2^{failures} ≤ {max:?}");
    }

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_from_5ms_to_1000s() {
        let expected = [(0, 5 * MS), (1, 10 * MS), (2, 20 * MS), (3, 40 * MS), (4, 80 * MS), (17, 655_360 * MS)];
        for (failures, wait) in expected {
            check(5 * MS, 1000 * S, failures, wait);
        }
        check(5 * MS, 1000 * S, 18, 1000 * S);
        check(5 * MS, 1000 * S, 19, 1000 * S);
    }

    #[test]
    fn many_failures_do_not_overflow_the_wait() {
        for failures in [30, 31, 32, 63, 64, 1000, u32::MAX] {
            check(5 * MS, 1000 * S, failures, 1000 * S);
        }
        check(S, Duration::MAX, u32::MAX, Duration::MAX);
    }

    #[test]
    fn tiny_base_reaches_the_longest_wait_too() {
        check(Duration::from_nanos(1), 1000 * S, 31, Duration::from_nanos(1 << 31));
        check(Duration::from_nanos(1), 1000 * S, 40, 1000 * S);
    }

    #[test]
    fn base_beyond_the_longest_wait_is_cut() {
        check(10 * S, S, 0, S);
    }

    #[test]
    fn zero_base_means_no_wait() {
        check(Duration::ZERO, S, u32::MAX, Duration::ZERO);
    }
}
