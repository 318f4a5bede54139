//! Chooses the failed requests of an election that are logged. Without them, a replica that cannot lead looks like a
//! standby.

use std::time::Duration;

use tokio::time::Instant;

use crate::writer::ApiError;

/// An unchanged failure is logged once in this time. A different one is logged at once.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of different failures that are logged within [`LOG_INTERVAL`]. Their messages may have times or
/// numbers of requests.
const REPORTS_MAX: usize = 8;

/// The failures of an election that were logged since its requests last worked.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    /// The text of each logged failure, and the time of its last report. Invariant: at most [`REPORTS_MAX`].
    reports: Vec<(String, Instant)>,
}

impl FailureLog {
    /// Returns `true` if a failure has to be logged now, and remembers it.
    pub(super) fn add(&mut self, text: &str, now: Instant) -> bool {
        self.reports.retain(|(_, when)| now.duration_since(*when) < LOG_INTERVAL);
        let is_new = self.reports.len() < REPORTS_MAX && self.reports.iter().all(|(reported, _)| reported != text);
        if is_new {
            self.reports.push((text.to_owned(), now));
        }
        debug_assert!(self.reports.len() <= REPORTS_MAX, "further failures are not logged");
        is_new
    }

    /// Forgets the failures. Returns `true` if any was logged.
    pub(super) fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.reports).is_empty()
    }
}

/// Returns the action that a user can take against a failed request for a Lease. `role` has the options of
/// `generate-rbac`.
///
/// A 404 of a read is not a failure. A 404 of a write means that the namespace is missing.
pub(super) fn advice(error: &ApiError, namespace: &str, role: &str) -> String {
    match error.code() {
        Some(404) if !error.is_unknown_resource() => {
            format!("; create the namespace `{namespace}`, or choose another with `--leader-election-namespace`")
        }
        Some(403) => format!("; apply the role (`cargo run -- generate-rbac{role} | kubectl apply -f -`)"),
        Some(401) => "; the credentials of the kubeconfig are not accepted".into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_logged_once_a_minute() {
        let (begin, mut log) = (Instant::now(), FailureLog::default());
        let mut add = |text: &str, seconds| log.add(text, begin + Duration::from_secs(seconds));
        let reports =
            [("a", 0), ("a", 59), ("b", 59), ("a", 60), ("b", 60), ("b", 119)].map(|(text, at)| add(text, at));
        assert_eq!(reports, [true, false, true, true, false, true]);
        assert!(log.clear() && !log.clear());
    }

    #[test]
    fn number_of_logged_failures_is_bounded() {
        let (begin, mut log) = (Instant::now(), FailureLog::default());
        let n_logged = |log: &mut FailureLog, at| (0..100).filter(|n| log.add(&format!("request {n}"), at)).count();
        assert_eq!(n_logged(&mut log, begin), REPORTS_MAX);
        assert_eq!(n_logged(&mut log, begin + LOG_INTERVAL), REPORTS_MAX);
    }
}
