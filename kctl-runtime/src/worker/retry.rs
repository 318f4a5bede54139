//! Decides from the outcome of a reconcile when its key is reconciled again: one pure function.
//!
//! It decides only what follows a run. `Backoff::wait` in `queue/backoff.rs` calculates the length of a backoff, and a
//! conflict waits at least `OUTDATED_WAIT` (`worker/mod.rs`). For a change that arrives during a backoff,
//! `handler/backoff_effect.rs` and `QueueState::add_known` in `queue/state/add.rs` decide if it ends.
//!
//! For a change during the run, `add_known` makes a note, and `finish_processing` in `queue/state/get.rs` runs the key once
//! more. A run that failed first removes its own events from the note (`ignore_own_writes`). If it then waits for a
//! backoff, `QueueState::delay` drops the note if all its adds are [`Cause::Unchanged`](crate::queue::Cause::Unchanged).

use std::time::Duration;

use crate::reconcile::Action;

/// The result of one reconcile, as the worker saw it.
///
/// ```
/// use kctl_runtime::{reconcile::Action, worker::Outcome};
///
/// fn word(outcome: &Outcome) -> &'static str {
///     match outcome {
///         Outcome::Vanished | Outcome::Done(_) => "ok",
///         Outcome::Failed { conflict: true, .. } => "conflict",
///         Outcome::Failed { .. } => "error",
///         Outcome::Panicked(_) => "panic",
///         Outcome::TimedOut => "timeout",
///         _ => "another outcome",
///     }
/// }
/// assert_eq!(word(&Outcome::Done(Action::await_change())), "ok");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The object was not in the cache, so there was nothing to reconcile. In a controller ring it may have come back
    /// after the worker took the key; then the key was added again.
    Vanished,
    /// The reconcile function returned `Ok` with this action.
    Done(Action),
    /// The reconcile function returned an error.
    Failed {
        /// Is `true` if the error is a conflict (409): the write was based on an outdated state, or the primary is
        /// gone. It is also `true` if the list after a write without a response expired. With shards it is also `true` if
        /// the key's slot was lost, or if a slot was read before it was listed.
        conflict: bool,
        /// Is `true` if a retry cannot help, by [`terminal`](crate::reconcile::ResultExt::terminal) or by the kind of
        /// the API error.
        terminal: bool,
        /// Is `true` if the API server rejected the content of a request (422, 400, or an apply with an undeclared field).
        /// The key is retried, because another client may change what the rule compares.
        invalid: bool,
        /// The wait that the error names, by [`retry_after`](crate::reconcile::ResultExt::retry_after) or by a
        /// `Retry-After` header.
        retry_after: Option<Duration>,
        /// The message of the error with its causes.
        text: String,
    },
    /// The reconcile function panicked with this message.
    Panicked(String),
    /// The reconcile took longer than the controller's `timeout` and was dropped.
    TimedOut,
}

impl Outcome {
    /// Returns `true` for an error, a panic and a timeout.
    pub(super) fn is_failure(&self) -> bool {
        !matches!(self, Self::Vanished | Self::Done(_))
    }
}

/// The decision about a key after a reconcile, from [`decide`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The key waits for its next event or resync. Its failures are reset.
    Forget,
    /// The key is reconciled again after the time that the controller chose. Its failures are reset: the worker calls
    /// [`forget`](crate::queue::WorkQueue::forget) before it adds the key with
    /// [`Cause::Requeue`](crate::queue::Cause::Requeue), which alone keeps them.
    RequeueAfter(Duration),
    /// The key is reconciled again after the time that the error names, instead of the backoff. This counts as a
    /// failure.
    RetryAfter(Duration),
    /// The key is reconciled again when the cache has the newer state, or after a wait. This does not count as a
    /// failure.
    Outdated {
        /// Conflicts of this key since its counts were reset, including this one. After more than
        /// [`CONFLICTS_BEFORE_WARNING`](crate::queue::CONFLICTS_BEFORE_WARNING) of them the cache is probably not outdated: another
        /// client owns the name or the field.
        in_a_row: u32,
    },
    /// The key is reconciled again after the next wait of the exponential backoff.
    RateLimited,
    /// The key is given up, after a terminal error or too many failures. Its failures are reset. It has no wait, so its
    /// next event or resync runs it; events of own writes do not.
    Drop,
}

/// The failures and conflicts of a key: an input of [`decide`].
///
/// A success, [`Cause::Changed`](crate::queue::Cause::Changed) and giving up reset both counts. A failure does not reset
/// the conflicts, and a conflict does not reset the failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// Failures since the last reset, without the present one.
    pub failures: u32,
    /// Conflicts since the last reset, without the present one.
    pub conflicts: u32,
}

/// Decides from the outcome of a reconcile when its key is reconciled again.
///
/// | Outcome | Decision |
/// |---|---|
/// | the object is gone, or `Action::await_change()` | [`Forget`](Decision::Forget) |
/// | `Action::requeue(after)` | [`RequeueAfter`](Decision::RequeueAfter) |
/// | terminal error | [`Drop`](Decision::Drop) |
/// | conflict without a named wait | [`Outdated`](Decision::Outdated) |
/// | conflict that names a wait, also after `retries` failures | [`RetryAfter`](Decision::RetryAfter) |
/// | any other failure, panic or timeout after `retries` failures | [`Drop`](Decision::Drop) |
/// | error that names a wait | [`RetryAfter`](Decision::RetryAfter) |
/// | any other failure, panic or timeout | [`RateLimited`](Decision::RateLimited) |
///
/// `retries` is the number of retries after the first failure: with `Some(2)` a key is dropped at its third failure.
/// `None` retries indefinitely. A conflict that is not terminal only means that the state was outdated, so it never
/// drops a key. It counts as a failure only if it names a wait.
///
/// ```
/// use kctl_runtime::worker::{Attempts, Decision, Outcome, decide};
///
/// let failed = Outcome::Panicked("index out of bounds".into());
/// let after = |failures| Attempts { failures, conflicts: 0 };
/// assert_eq!(decide(&failed, after(1), Some(2)), Decision::RateLimited);
/// assert_eq!(decide(&failed, after(2), Some(2)), Decision::Drop);
///
/// let conflict = Outcome::Failed {
///     conflict: true,
///     terminal: false,
///     invalid: false,
///     retry_after: None,
///     text: "the object has been modified".into(),
/// };
/// assert_eq!(decide(&conflict, after(9), Some(2)), Decision::Outdated { in_a_row: 1 });
/// ```
pub fn decide(outcome: &Outcome, attempts: Attempts, retries: Option<u32>) -> Decision {
    let Attempts { failures, conflicts } = attempts;
    let exhausted = retries.is_some_and(|retries| failures >= retries);
    let decision = match outcome {
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
    };
    let is_conflict = matches!(outcome, Outcome::Failed { conflict: true, terminal: false, .. });
    debug_assert!(!is_conflict || decision != Decision::Drop, "only a terminal conflict drops a key");
    let resets = matches!(decision, Decision::Forget | Decision::RequeueAfter(_));
    debug_assert!(outcome.is_failure() != resets, "failures are counted until a success, and reset by one");
    decision
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(7);
    /// Pairs of earlier failures and allowed retries, for which a failed key is retried.
    const LEFT: [(u32, Option<u32>); 5] =
        [(0, None), (u32::MAX, None), (0, Some(1)), (4, Some(5)), (0, Some(u32::MAX))];
    const EXHAUSTED: [(u32, Option<u32>); 5] =
        [(0, Some(0)), (1, Some(1)), (5, Some(5)), (9, Some(5)), (u32::MAX, Some(u32::MAX))];

    fn check(outcome: &Outcome, left: &Decision, exhausted: &Decision) {
        for (budget, expected) in [(LEFT, left), (EXHAUSTED, exhausted)] {
            for (failures, retries) in budget {
                let decision = decide(outcome, Attempts { failures, conflicts: 2 }, retries);
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
    fn panics_and_timeouts_use_up_retries() {
        check(&Outcome::Panicked(String::new()), &Decision::RateLimited, &Decision::Drop);
        check(&Outcome::TimedOut, &Decision::RateLimited, &Decision::Drop);
    }

    #[test]
    fn every_kind_of_error_has_its_decision() {
        use Decision::{Drop, Outdated, RateLimited, RetryAfter};
        let third = Outdated { in_a_row: 3 };
        let table = [
            // Columns: conflict, terminal, `retry_after`; decision with retries left, decision without.
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
            for invalid in [false, true] {
                let failed = Outcome::Failed { conflict, terminal, invalid, retry_after, text: String::new() };
                check(&failed, &left, &exhausted);
            }
        }
    }
}
