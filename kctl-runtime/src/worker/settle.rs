//! The only place that decides whether and when a key is tried again: one table.

use std::time::Duration;

use crate::reconcile::Action;

/// How a reconcile ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The object is gone: there is nothing to do.
    Vanished,
    /// It succeeded.
    Done(Action),
    /// It returned an error.
    Failed {
        /// The API server refused a write because of an outdated state.
        conflict: bool,
        /// Trying again can't help.
        terminal: bool,
        /// A wait that somebody asked for.
        retry_after: Option<Duration>,
        /// The error.
        text: String,
    },
    /// It panicked.
    Panicked(String),
    /// It took longer than the controller's `timeout`.
    TimedOut,
}

/// What happens to the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing until a change; its failures are forgotten.
    Forget,
    /// Once more after a time that the controller chose; its failures are forgotten.
    RequeueAfter(Duration),
    /// Once more after a time that the error asks for; it counts as a failure.
    RetryAfter(Duration),
    /// Once more when the cache has the newer state, or a second has passed; not counted as a failure.
    Outdated,
    /// Once more after the next wait of the exponential backoff.
    RateLimited,
    /// Nothing until a change: it failed for good, or too often.
    Drop,
}

/// Decides. `failures` is how often the key failed in a row before, `retries` how often it may be tried again.
pub fn settle(outcome: &Outcome, failures: u32, retries: Option<u32>) -> Decision {
    let exhausted = retries.is_some_and(|retries| failures >= retries);
    match outcome {
        Outcome::Vanished => Decision::Forget,
        Outcome::Done(action) => action.requeue_after().map_or(Decision::Forget, Decision::RequeueAfter),
        Outcome::Failed { terminal: true, .. } => Decision::Drop,
        Outcome::Failed { conflict: true, .. } => Decision::Outdated,
        Outcome::Failed { .. } | Outcome::Panicked(_) | Outcome::TimedOut if exhausted => Decision::Drop,
        Outcome::Failed { retry_after: Some(wait), .. } => Decision::RetryAfter(*wait),
        Outcome::Failed { .. } | Outcome::Panicked(_) | Outcome::TimedOut => Decision::RateLimited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(conflict: bool, terminal: bool, retry_after: Option<Duration>) -> Outcome {
        Outcome::Failed { conflict, terminal, retry_after, text: String::new() }
    }

    #[test]
    fn every_outcome_has_its_decision() {
        let second = Duration::from_secs(1);
        let table = [
            (Outcome::Vanished, 9, Some(1), Decision::Forget),
            (Outcome::Done(Action::await_change()), 9, Some(1), Decision::Forget),
            (Outcome::Done(Action::requeue(second)), 0, None, Decision::RequeueAfter(second)),
            (failed(false, true, Some(second)), 0, None, Decision::Drop),
            (failed(true, false, None), 9, Some(1), Decision::Outdated),
            (failed(false, false, None), 0, Some(1), Decision::RateLimited),
            (failed(false, false, None), 1, Some(1), Decision::Drop),
            (failed(false, false, None), 1000, None, Decision::RateLimited),
            (failed(false, false, Some(second)), 0, None, Decision::RetryAfter(second)),
            (Outcome::Panicked(String::new()), 0, None, Decision::RateLimited),
            (Outcome::TimedOut, 5, Some(5), Decision::Drop),
        ];
        for (outcome, failures, retries, expected) in table {
            assert_eq!(settle(&outcome, failures, retries), expected, "{outcome:?}");
        }
    }
}
