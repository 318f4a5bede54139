//! Chooses the dropped events that are logged. A full queue drops each further event, so a log of all of them would be
//! as long as the flood of events itself.

use std::time::Duration;

use tokio::time::Instant;

/// Dropped events are logged once in this time, with the number of those in between.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The dropped events of one recorder since the last log line.
#[derive(Debug, Default)]
pub(super) struct DropLog {
    /// The time of the last log line; `None` before the first.
    logged: Option<Instant>,
    /// The number of events that were dropped after it.
    n_unlogged: u64,
}

impl DropLog {
    /// Counts a dropped event. Returns the number of events for the log line if one is due: this event, and those that
    /// were not logged.
    pub(super) fn add(&mut self, now: Instant) -> Option<u64> {
        self.n_unlogged += 1;
        if self.logged.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.n_unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_events_are_logged_once_a_minute() {
        let (begin, mut log) = (Instant::now(), DropLog::default());
        let logged = [0, 1, 59, 60, 61, 200].map(|seconds| log.add(begin + Duration::from_secs(seconds)));
        assert_eq!(logged, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
