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

/// The decision about a key after a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing until a change; its failures are forgotten.
    Forget,
    /// Once more after a time that the controller chose; its failures are forgotten.
    RequeueAfter(Duration),
    /// Once more after a time that the error asks for, instead of the growing wait; it counts as a failure.
    RetryAfter(Duration),
    /// Once more when the cache has the newer state, or after a wait; not counted as a failure.
    Outdated {
        /// Conflicts of this key in a row, this one included. After [`CONFLICTS_USUAL`](crate::queue::CONFLICTS_USUAL) of them the state is not old: somebody
        /// else has the name or the field.
        in_a_row: u32,
    },
    /// Once more after the next wait of the exponential backoff.
    RateLimited,
    /// Nothing until a change: it failed for good, or too often.
    Drop,
}

/// The attempts of a key since its last success, or since its object changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tried {
    /// Failures in a row.
    pub failures: u32,
    /// Conflicts in a row.
    pub conflicts: u32,
}

/// Decides whether a key is forgotten, retried or dropped. With `retries = Some(2)` it is dropped at its third failure.
///
/// A conflict only means that the state was old: it does not count as a failure, and never drops the key.
pub fn settle(outcome: &Outcome, tried: Tried, retries: Option<u32>) -> Decision {
    let Tried { failures, conflicts } = tried;
    let exhausted = retries.is_some_and(|retries| failures >= retries);
    match outcome {
        Outcome::Vanished => Decision::Forget,
        Outcome::Done(action) => action.requeue_after().map_or(Decision::Forget, Decision::RequeueAfter),
        Outcome::Failed { terminal: true, .. } => Decision::Drop,
        Outcome::Failed { conflict: true, retry_after: None, .. } => {
            Decision::Outdated { in_a_row: conflicts.saturating_add(1) }
        }
        Outcome::Failed { conflict: false, .. } | Outcome::Panicked(_) | Outcome::TimedOut if exhausted => {
            Decision::Drop
        }
        Outcome::Failed { retry_after: Some(wait), .. } => Decision::RetryAfter(*wait),
        Outcome::Failed { .. } | Outcome::Panicked(_) | Outcome::TimedOut => Decision::RateLimited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(7);
    /// Failures before, and retries allowed: what may be tried again, and what may not.
    const LEFT: [(u32, Option<u32>); 5] =
        [(0, None), (u32::MAX, None), (0, Some(1)), (4, Some(5)), (0, Some(u32::MAX))];
    const EXHAUSTED: [(u32, Option<u32>); 5] =
        [(0, Some(0)), (1, Some(1)), (5, Some(5)), (9, Some(5)), (u32::MAX, Some(u32::MAX))];

    fn check(outcome: &Outcome, left: &Decision, exhausted: &Decision) {
        for (budget, expected) in [(LEFT, left), (EXHAUSTED, exhausted)] {
            for (failures, retries) in budget {
                let decision = settle(outcome, Tried { failures, conflicts: 2 }, retries);
                assert_eq!(&decision, expected, "{outcome:?} after {failures} failures, {retries:?} retries");
            }
        }
    }

    #[test]
    fn success_is_never_dropped() {
        check(&Outcome::Vanished, &Decision::Forget, &Decision::Forget);
        check(&Outcome::Done(Action::await_change()), &Decision::Forget, &Decision::Forget);
        for wait in [Duration::ZERO, WAIT] {
            let decision = Decision::RequeueAfter(wait);
            check(&Outcome::Done(Action::requeue(wait)), &decision, &decision);
        }
    }

    #[test]
    fn panics_and_timeouts_are_tried_again_until_the_retries_are_used_up() {
        check(&Outcome::Panicked(String::new()), &Decision::RateLimited, &Decision::Drop);
        check(&Outcome::TimedOut, &Decision::RateLimited, &Decision::Drop);
    }

    #[test]
    fn every_kind_of_error_has_its_decision() {
        use Decision::{Drop, Outdated, RateLimited, RetryAfter};
        let third = Outdated { in_a_row: 3 };
        let table = [
            // conflict, terminal, retry_after; while there are retries left, when there are none
            (false, false, None, RateLimited, Drop),
            (false, false, Some(WAIT), RetryAfter(WAIT), Drop),
            (false, true, None, Drop, Drop),
            (false, true, Some(WAIT), Drop, Drop),
            (true, false, None, third.clone(), third),
            (true, false, Some(WAIT), RetryAfter(WAIT), RetryAfter(WAIT)),
            (true, true, None, Drop, Drop),
            (true, true, Some(WAIT), Drop, Drop),
        ];
        for (conflict, terminal, retry_after, left, exhausted) in table {
            check(&Outcome::Failed { conflict, terminal, retry_after, text: String::new() }, &left, &exhausted);
        }
    }
}
