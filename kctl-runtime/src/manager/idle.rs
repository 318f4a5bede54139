//! Idleness: the end of work, for programs that run until then (`kctl dev --until-idle`, tests).
//!
//! A control loop has no end. "Idle" therefore means that nothing is left that the loop itself would still do.
//! Only a change from outside, or a timer that is more than five seconds away, would start a reconcile. Other
//! processes may change objects at any moment, so a test with several programs has to ask all of them.

use std::time::Duration;

use super::View;
use crate::{key::ObjectKey, queue::WorkQueue, source::Source, spec::ControllerSpec};

/// A key that is delayed for longer than this does not count as unfinished work.
const HORIZON: Duration = Duration::from_secs(5);
/// Maximum number of keys of one controller that are listed by name.
const KEYS_MAX: usize = 20;

impl View {
    /// Returns `true` if no work is left.
    ///
    /// Caches are full, no change waits for a handler, and no slot is moving. No key is queued or being reconciled, none
    /// becomes due within five seconds, and none waits for a retry after a failure. A failing key counts as work however
    /// long its backoff is, but a key that was given up does not.
    pub fn is_idle(&self) -> bool {
        self.has_full_caches() && self.queues.iter().all(|(_, queue)| is_quiet(queue))
    }

    /// Returns `true` if caches are full, no change waits for a handler, and no slot is moving.
    fn has_full_caches(&self) -> bool {
        // Caches of watches that were opened at run time need not be complete: their kind may never be installed.
        self.informers.open().iter().all(|(source, _)| source.store().backlog() == 0)
            && self.sources.iter().all(|source| source.store().is_synced())
            && self.spawned_handlers.iter().all(|spawned| spawned.waiting() == 0)
            && self.shards.as_ref().is_none_or(|shards| shards.has_no_moving_slots(&self.gates))
    }

    /// Returns `true` if no work is left but retries of failing keys for which `is_expected` returns `true`.
    ///
    /// The function gets the name of the controller and the key. Use it to stop waiting for keys whose retries fail in
    /// the same way. Everything else is idle as in [`is_idle`](Self::is_idle), and no other key becomes due within
    /// `horizon`. So no reconcile of another key will help them before that.
    pub fn is_idle_except(&self, horizon: Duration, is_expected: impl Fn(&str, &ObjectKey) -> bool) -> bool {
        let horizon = horizon.max(HORIZON);
        let is_quiet = |spec: &ControllerSpec, queue: &WorkQueue<ObjectKey>| {
            is_quiet_except(queue, horizon, |key| is_expected(&spec.name, key))
        };
        self.has_full_caches() && self.queues.iter().all(|(spec, queue)| is_quiet(spec, queue))
    }

    /// Returns the remaining work, one line each, for people.
    ///
    /// At most 20 keys of each controller are named. Empty if [`is_idle`](Self::is_idle) returns `true`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// # use std::sync::Arc;
    /// # use kctl_runtime::manager::Manager;
    /// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {}));
    /// let view = manager.view();
    /// assert!(view.is_idle()); // no controller, no work
    /// assert!(view.unfinished_work().is_empty());
    /// # });
    /// # Ok::<_, std::io::Error>(())
    /// ```
    pub fn unfinished_work(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.sources.iter().filter_map(|source| not_synced_reason(source)).collect();
        let behind = self.spawned_handlers.iter().filter(|spawned| spawned.waiting() > 0);
        lines.extend(behind.map(|spawned| {
            let (controller, relation, n) = (spawned.controller(), spawned.relation(), spawned.waiting());
            format!("{controller}: changes that wait for `map` and `when` of `{relation}`: {n}")
        }));
        for (spec, queue) in &self.queues {
            add_keys(spec, queue, &mut lines);
        }
        lines
    }
}

/// Returns `true` if a queue has no ready, running, failing or soon due key.
fn is_quiet(queue: &WorkQueue<ObjectKey>) -> bool {
    queue.is_empty() && queue.processing() == 0 && queue.next_delayed_within(HORIZON) == 0 && queue.failing().is_empty()
}

/// Returns `true` if a queue has no ready or running key, and none that is due within `horizon`, except failing keys that
/// are expected.
fn is_quiet_except(queue: &WorkQueue<ObjectKey>, horizon: Duration, is_expected: impl Fn(&ObjectKey) -> bool) -> bool {
    let failing = queue.keys(usize::MAX).failing;
    let n_due = failing.iter().filter(|(.., wait)| wait.is_some_and(|wait| wait <= horizon)).count();
    queue.is_empty()
        && queue.processing() == 0
        && failing.iter().all(|(key, ..)| is_expected(key))
        && queue.next_delayed_within(horizon) <= n_due
}

/// Returns the reason why a cache is not full, or `None` if it is.
fn not_synced_reason(source: &Source) -> Option<String> {
    if let Some(failure) = source.health().failure {
        return Some(failure.to_string());
    }
    let kind = &source.config().kind;
    (!source.store().is_synced()).then(|| format!("the list of {} has not come yet", kind.plural))
}

/// Adds the lines of one controller's keys: failing first, since they explain the others.
fn add_keys(spec: &ControllerSpec, queue: &WorkQueue<ObjectKey>, lines: &mut Vec<String>) {
    let (name, keys) = (&spec.name, queue.keys(KEYS_MAX));
    for (key, failures, _) in &keys.failing {
        lines.push(format!("{name} {key}: failed {failures} times in a row"));
    }
    if keys.n_failing > keys.failing.len() {
        lines.push(format!("{name}: more keys that fail: {}", keys.n_failing - keys.failing.len()));
    }
    for (key, since) in &keys.running {
        lines.push(format!("{name} {key}: its reconcile has been running for {since:.1?}"));
    }
    match queue.len() {
        0 => {}
        n => lines.push(format!("{name}: keys that wait for a worker: {n}")),
    }
    let due = queue.next_delayed_within(HORIZON);
    if keys.failing.is_empty() && due > 0 {
        lines.push(format!("{name}: keys that asked to be reconciled again within {HORIZON:?}: {due}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Add, Cause, QueueConfig};

    #[tokio::test(start_paused = true)]
    async fn key_due_within_the_horizon_is_unfinished() {
        let queue = WorkQueue::new(QueueConfig::default());
        let (web, api) = (ObjectKey::new(Some("default"), "web"), ObjectKey::new(Some("default"), "api"));
        let is_quiet = |seconds| is_quiet_except(&queue, Duration::from_secs(seconds), |key| *key == web);
        queue.add(Add::new(web.clone()).cause(Cause::Failure));
        assert!(is_quiet(60), "the failure is expected");
        assert!(!is_quiet_except(&queue, HORIZON, |_| false), "the failure is not expected");
        // This reconcile may help the failing key.
        queue.add(Add::new(api.clone()).cause(Cause::Requeue(Duration::from_secs(10))));
        assert_eq!((is_quiet(9), is_quiet(10)), (true, false));
        queue.add(Add::new(api).cause(Cause::Failure));
        assert!(!is_quiet(1), "another key fails");
    }
}
