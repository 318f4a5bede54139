//! Rejected objects: logged once, and retried with exponential backoff.
//!
//! kube-controller-manager has the same backoff for each key, from 5 ms to 1,000 s (`DefaultTypedControllerRateLimiter`
//! of client-go). Here it begins later, because a pass lists all objects. It ends earlier, so that a raised quota takes
//! effect soon.

use std::{collections::BTreeMap, time::Duration};

use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use crate::errors::describe;

/// The wait before the first retry of a rejected object. It doubles with each rejection.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// The longest wait between two retries of a rejected object.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// The objects for which the API server rejected a request, by kind, namespace and name.
pub(super) type Rejections = BTreeMap<String, Rejection>;

/// The last rejection of an object.
#[derive(Clone)]
pub(super) struct Rejection {
    code: u16,
    reason: String,
    /// The API server's message. It is not compared: the random name of a Pod changes it at each retry.
    pub(super) message: String,
    /// The wait that ends at `due`.
    wait: Duration,
    /// The time of the next retry.
    pub(super) due: Instant,
}

/// The objects that a pass syncs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// All objects, after a change: it may be what a rejected object waits for.
    All,
    /// All except for rejected objects whose retry is not due, at a deadline or retry.
    Due,
}

/// Collects the results of the objects during a pass.
pub(super) struct Tally<'a> {
    before: &'a Rejections,
    turn: Turn,
    now: Instant,
    pub(super) n_writes: usize,
    pub(super) failure: Option<kube::Error>,
    pub(super) rejected: Rejections,
}

impl<'a> Tally<'a> {
    /// Begins a pass after one with the rejections `before`.
    pub(super) fn new(before: &'a Rejections, turn: Turn) -> Self {
        Self { before, turn, now: Instant::now(), n_writes: 0, failure: None, rejected: Rejections::new() }
    }

    /// Returns `true` if the pass syncs the object. Otherwise the object keeps its rejection.
    pub(super) fn takes<K>(&mut self, object: &K) -> bool
    where
        K: Resource<DynamicType = ()>,
    {
        let key = key_of(object);
        let waiting = self.before.get(&key).filter(|rejection| self.turn == Turn::Due && rejection.due > self.now);
        let Some(rejection) = waiting else { return true };
        self.rejected.insert(key, rejection.clone());
        false
    }

    /// Adds the number of writes of an object, or the rejection of one of them. A rejection that differs from the one
    /// before is logged.
    ///
    /// # Errors
    /// Fails for an error that is not about the object, such as a lost connection.
    pub(super) fn add<K>(&mut self, object: &K, synced: kube::Result<usize>) -> kube::Result<()>
    where
        K: Resource<DynamicType = ()>,
    {
        let error = match synced {
            Ok(n_writes) => {
                self.n_writes += n_writes;
                return Ok(());
            }
            Err(error) => error,
        };
        let kube::Error::Api(status) = &error else { return Err(error) };
        let key = key_of(object);
        let (code, reason) = (status.code, status.reason.clone());
        let (before, message) = (self.before.get(&key), describe(&error));
        if !before.is_some_and(|before| before.code == code && before.reason == reason) {
            let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
            tracing::warn!(kind = %K::kind(&()), namespace, name, error = %message, "request rejected; retrying");
        }
        let (wait, due) = next_retry(before, self.now);
        self.rejected.insert(key, Rejection { code, reason, message, wait, due });
        self.failure.get_or_insert(error);
        Ok(())
    }
}

fn key_of<K: Resource<DynamicType = ()>>(object: &K) -> String {
    format!("{} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any())
}

/// Returns the wait and the time of the next retry. An attempt before its time, after a change, does not count.
fn next_retry(before: Option<&Rejection>, now: Instant) -> (Duration, Instant) {
    match before {
        Some(before) if before.due > now => (before.wait, before.due),
        before => {
            let wait = before.map_or(BACKOFF_MIN, |before| (before.wait * 2).min(BACKOFF_MAX));
            (wait, now + wait)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut now = Instant::now();
        let mut rejection = None;
        let mut waits = Vec::new();
        for _ in 0..6 {
            let (wait, due) = next_retry(rejection.as_ref(), now);
            let made = Rejection { code: 403, reason: "Forbidden".into(), message: String::new(), wait, due };
            assert_eq!(next_retry(Some(&made), now), (wait, due), "an early attempt changes nothing");
            waits.push(wait.as_secs());
            (now, rejection) = (due, Some(made));
        }
        assert_eq!(waits, [1, 2, 4, 8, 8, 8]);
    }
}
