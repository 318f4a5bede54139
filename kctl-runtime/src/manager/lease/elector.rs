//! Performs an [`Election`] with a client: requests, waits, and reports to the rest of the process.
//!
//! All decisions are in [`Election`]. This file sends requests with their deadlines, logs changes of the leader, and
//! publishes the state through `watch` channels, from which [`Leadership`] and [`WritePermit`] read.
//!
//! A late response is not used. The deadline of a request ends before the Lease does, and the election continues as if
//! the request had failed. That includes the response that a frozen process finds when it continues.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use http::Method;
use kctl_apimachinery::url;
use kube::Client;
use serde_json::Value;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout, timeout_at},
};

use super::{
    Effect, Election, ElectionConfig, ElectionError, ElectionLimiter, ElectionRuntime, ElectionState, End, Holders,
    Input, Leadership, LeaseRequest, Record, Step,
    election_limiter::ElectionTurn,
    failure_log::{self, FailureLog},
    release_watch,
};
use crate::{
    manager::Clock,
    transport::{self, Deadline, RequestBody},
    writer::{ApiError, LeaseState, Operation, WritePermit},
};

/// A participant of a leader election.
///
/// The [module](super) has an example. It needs `get`, `create` and `update` on the Lease. With `list` and
/// `watch` as well, a candidate acquires a released Lease at once.
///
/// One elector takes part in one election, once. After [`run`](Self::run) has returned, the process should exit:
/// its caches and timers belong to a leader that is gone.
pub struct Elector {
    client: Client,
    clock: Clock,
    config: Arc<ElectionConfig>,
    /// Read by [`Leadership::wait_until_leading`] and by health.
    state: watch::Sender<ElectionState>,
    /// Read by the permit before each write. It is set to `Lost` first when the election ends.
    permission: watch::Sender<LeaseState>,
    permit: WritePermit,
    /// Identity of the leader, as last read.
    holder: watch::Sender<String>,
    /// The last failed request; readiness reports it.
    failure: watch::Sender<Option<String>>,
    /// Number of renewals that had to read first.
    slow_renewals: watch::Sender<u64>,
    /// Set when this process begins to lead, if nothing had renewed the Lease before.
    joined_new_lease: Arc<AtomicBool>,
    /// Set if another part of the process watches the Lease.
    watched: Option<ObservedLease>,
    /// A holder that may be at work although the Lease is missing, and when it was suspected.
    suspect: Option<(Record, Instant)>,
    /// The processes that may hold the Lease under its identity.
    holders: Holders,
    /// The runtime that it runs on, if it is not the caller's runtime.
    runtime: Option<ElectionRuntime>,
    /// An annotation that follows the state of this process.
    annotation: Option<LeaseAnnotation>,
    /// The turn to acquire the Lease, or to release it.
    turn: ElectionTurn,
    /// The options of `generate-rbac` that print the permissions for the Lease, for the log.
    role: String,
    /// `None` if another part of the process logs why it does not hold the Lease.
    failure_log: Option<FailureLog>,
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Returns the last record of a Lease that was seen, and when it changed.
pub(in crate::manager) type LatestRecord = Box<dyn Fn() -> Option<(Record, Instant)> + Send + Sync>;

/// A Lease that another part of the process watches, together with others.
pub(in crate::manager) struct ObservedLease {
    /// The last record that was seen, and when it changed.
    pub(in crate::manager) seen: Option<(Record, Instant)>,
    /// Set if the Lease was missing at that time.
    pub(in crate::manager) missing: Option<Missing>,
    /// Returns the record that was seen last by now. A candidate reads the Lease less often than the watch shows it.
    pub(in crate::manager) latest: LatestRecord,
    /// Notified when the Lease is free or has expired, so that a candidate tries at once.
    pub(in crate::manager) free: Arc<Notify>,
}

/// An annotation that the holder of a Lease keeps up to date.
pub(in crate::manager) struct LeaseAnnotation {
    pub(in crate::manager) name: &'static str,
    /// Returns the present value. Called before each write.
    pub(in crate::manager) value: Box<dyn Fn() -> String + Send + Sync>,
    /// Notified when the value has changed, so that the holder renews the Lease at once.
    pub(in crate::manager) changed: Arc<Notify>,
}

/// Marks a Lease that was missing when its record was noted.
pub(in crate::manager) struct Missing;

impl Elector {
    /// Creates an elector that does nothing before [`run`](Self::run). `clock` sets the times in the Lease.
    ///
    /// # Errors
    /// [`ElectionError`] if the configuration is invalid.
    pub fn new(client: Client, config: ElectionConfig, clock: Clock) -> Result<Self, ElectionError> {
        config.check()?;
        let (permission, permitted) = watch::channel(LeaseState::NotHeld);
        let permit = WritePermit::from_lease(permitted, config.write_timeout(), config.write_margin());
        Ok(Self {
            client,
            clock,
            config: Arc::new(config),
            state: watch::Sender::new(ElectionState::Standby),
            permission,
            permit,
            holder: watch::Sender::default(),
            failure: watch::Sender::default(),
            slow_renewals: watch::Sender::default(),
            joined_new_lease: Arc::default(),
            watched: None,
            suspect: None,
            holders: Holders::One,
            runtime: None,
            annotation: None,
            turn: ElectionTurn::default(),
            role: " --leader-elect".into(),
            failure_log: Some(FailureLog::default()),
        })
    }

    /// Runs it on another runtime, unless that is `None`.
    pub(in crate::manager) fn with_runtime(mut self, runtime: Option<ElectionRuntime>) -> Self {
        self.runtime = runtime;
        self
    }

    /// Replaces the client.
    pub(super) fn with_client(mut self, client: Client) -> Self {
        self.client = client;
        self
    }

    /// Adds an annotation to the Lease while it is held.
    pub(in crate::manager) fn with_annotation(mut self, annotation: LeaseAnnotation) -> Self {
        self.annotation = Some(annotation);
        self
    }

    /// Limits how many electors acquire or release a Lease at the same time. Renewals are not limited.
    pub(in crate::manager) fn with_limiter(mut self, limiter: ElectionLimiter) -> Self {
        self.turn = ElectionTurn::limited_by(limiter);
        self
    }

    /// Uses the watch of another part of the process, and opens none.
    pub(in crate::manager) fn with_watch(mut self, watched: ObservedLease) -> Self {
        self.watched = Some(watched);
        self
    }

    /// Counts a missing Lease as held until the duration of this record has passed since then.
    pub(in crate::manager) fn assume_held(mut self, record: Record, since: Instant) -> Self {
        self.suspect = Some((record, since));
        self
    }

    /// Sets the options of `generate-rbac` that print the permissions for the Lease, such as ` --shards 24`.
    pub(in crate::manager) fn with_role(mut self, options: String) -> Self {
        self.role = options;
        self
    }

    /// Leaves out the log lines about failed requests. Sharded replicas have a Lease per slot, and log one reason for all.
    pub(in crate::manager) fn without_failure_log(mut self) -> Self {
        self.failure_log = None;
        self
    }

    /// Holds the Lease together with other processes of the same identity.
    pub(in crate::manager) fn with_shared_identity(mut self) -> Self {
        self.holders = Holders::Together;
        self
    }

    /// Adds an annotation with this number to the Lease. It distinguishes this process from others with the same identity.
    pub(in crate::manager) fn with_process_number(mut self, process: u64) -> Self {
        self.holders = Holders::Numbered { process };
        let (timeout, margin) = (self.config.shared_write_timeout(), self.config.write_margin());
        self.permit = WritePermit::from_lease(self.permission.subscribe(), timeout, margin);
        self
    }

    /// Returns a handle to the state of the election. It can be cloned and outlives the elector.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// use std::sync::Arc;
    /// use k8s_openapi::jiff::Timestamp;
    /// use kctl_runtime::manager::lease::{ElectionConfig, Elector, ElectionState};
    ///
    /// let config = ElectionConfig::new("backup.example.com", "default", "host_1");
    /// let elector = Elector::new(client, config, Arc::new(Timestamp::now))?;
    /// let leadership = elector.leadership();
    /// assert_eq!(leadership.state(), ElectionState::Standby);
    /// assert!(leadership.permit().acquire("patch ConfigMap shop/settings").await.is_err());
    /// # Ok::<_, kctl_runtime::manager::lease::ElectionError>(()) })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn leadership(&self) -> Leadership {
        Leadership {
            state: self.state.subscribe(),
            permit: self.permit.clone(),
            holder: self.holder.subscribe(),
            failure: self.failure.subscribe(),
            slow_renewals: self.slow_renewals.subscribe(),
            joined_new_lease: self.joined_new_lease.clone(),
            config: self.config.clone(),
        }
    }

    /// Takes part in the election until the Lease is lost or `stop` is ready, and returns why it ended.
    ///
    /// `stop` returns `true` to release the Lease, which is only safe once no write of this process can be in
    /// flight. With `false` the Lease expires.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the Lease to expire. Writes are permitted no longer than that. On another runtime, a renewal
    /// that has begun may still be sent.
    pub async fn run(mut self, stop: impl Future<Output = bool> + Send) -> End {
        match self.runtime.take() {
            Some(runtime) => runtime.run(self, stop).await,
            None => self.run_election(stop).await,
        }
    }

    /// Does the same on the runtime that polls it.
    pub(super) async fn run_election(mut self, stop: impl Future<Output = bool> + Send) -> End {
        let mut stop = std::pin::pin!(stop);
        tokio::select! {
            biased;
            _release = &mut stop => return self.publish(Effect::Ended(End::Stopped)).unwrap_or(End::Stopped),
            () = self.turn.begin() => {}
        }
        let (mut watched, mut failure_log) = (self.watched.take(), self.failure_log.take());
        let mut election = self.begin_election(watched.as_mut());
        let released = watched.as_ref().map_or_else(Arc::default, |watched| watched.free.clone());
        let mut stopping = false;
        let (client, role) = (self.client.clone(), &self.role);
        let notice = release_watch::watch_for_release(client, &self.config, self.holders, role, released.clone());
        let mut notice = std::pin::pin!(notice);
        loop {
            let acquiring = election.is_acquiring();
            let mut performed = std::pin::pin!(self.perform(election.step().clone(), &released));
            let input = tokio::select! {
                biased;
                release = &mut stop, if !stopping => {
                    stopping = true;
                    // No write begins from here on, even if the Lease is still valid.
                    self.permission.send_replace(LeaseState::Lost);
                    if acquiring {
                        // The server may handle the pending request after the one that would release the Lease, so its
                        // response is awaited.
                        let _unpublished = election.handle(performed.await, Instant::now(), (self.clock)());
                    } else if release {
                        self.wait_to_release().await;
                    }
                    Input::Stop { release }
                }
                input = &mut performed => input,
                () = &mut notice, if watched.is_none() => unreachable!("the watch never ends"),
            };
            if let Some(LeaseAnnotation { name, value, .. }) = &self.annotation {
                election.set_annotation(name, value());
            }
            if let Some(watched) = &watched {
                election.set_watched((watched.latest)());
            }
            let error = if let Input::Failed(error) = &input { Some(error.clone()) } else { None };
            let effects = election.handle(input, Instant::now(), (self.clock)());
            self.publish_failure(election.failure());
            if let Some(log) = &mut failure_log {
                self.log_failure(log, error.as_ref(), election.failure());
            }
            for effect in effects {
                if matches!(effect, Effect::Leading(_)) && *self.state.borrow() == ElectionState::Standby {
                    self.joined_new_lease.store(election.joined_new_lease(), Ordering::Relaxed);
                }
                if let Some(end) = self.publish(effect) {
                    return end;
                }
            }
            if matches!(election.step(), Step::Wait(_)) {
                self.turn.end();
            }
        }
    }

    /// Waits for the turn to release the Lease, at most for a retry period. A candidate may have a turn, and has nothing to
    /// release.
    async fn wait_to_release(&self) {
        let leads = matches!(*self.state.borrow(), ElectionState::Leading(_));
        if leads {
            let _late = timeout(self.config.retry_period, self.turn.begin()).await;
        }
    }

    /// Begins the election with what this process knows of the Lease: a record that another part of the process has
    /// seen, or a holder that may be at work although the Lease is missing.
    fn begin_election(&mut self, watched: Option<&mut ObservedLease>) -> Election {
        let mut election = Election::new(self.config.clone(), Instant::now()).with_holders(self.holders);
        if let Some(watched) = watched
            && let Some((record, observed_at)) = watched.seen.take()
        {
            election = election.with_observed_record(record, observed_at);
            if watched.missing.is_some() {
                election = election.with_missing_lease();
            }
        }
        if let Some((record, since)) = self.suspect.take() {
            election = election.with_observed_record(record, since).with_missing_lease();
        }
        election
    }

    /// Publishes the error of the last request, if it has changed.
    fn publish_failure(&self, failure: Option<&str>) {
        self.failure.send_if_modified(|current| {
            let has_changed = current.as_deref() != failure;
            if has_changed {
                *current = failure.map(ToOwned::to_owned);
            }
            has_changed
        });
    }

    /// Logs a request that has just failed, or that the requests work again. `failure` is the last failure, until its cause
    /// is gone.
    ///
    /// A conflict is not logged: something else wrote the Lease, so the election reads it and tries again.
    fn log_failure(&self, log: &mut FailureLog, error: Option<&ApiError>, failure: Option<&str>) {
        let ElectionConfig { namespace, name, .. } = &*self.config;
        if failure.is_none() {
            if log.clear() {
                tracing::info!(lease = %format_args!("{namespace}/{name}"), "leader election works again");
            }
            return;
        }
        let Some(error) = error.filter(|error| !error.is_conflict()) else { return };
        let text = format!("{error}{}", failure_log::advice(error, namespace, &self.role));
        let until_then = if *self.state.borrow() == ElectionState::Standby {
            "this replica cannot lead until this works again"
        } else {
            "this replica loses the Lease if this lasts"
        };
        if log.add(&text, Instant::now()) {
            tracing::warn!(lease = %format_args!("{namespace}/{name}"), "{text}; {until_then}");
        }
    }

    /// Performs a step and returns its result. A waiting candidate is woken when the Lease is released, and tries in its turn.
    ///
    /// That wake-up would not help a leader that waits for its next renewal. A leader is woken when its annotation has
    /// changed.
    async fn perform(&self, step: Step, released: &Notify) -> Input {
        match step {
            Step::Wait(until) if *self.state.borrow() == ElectionState::Standby => {
                let _timed = timeout_at(until, released.notified()).await;
                self.turn.begin().await;
                Input::WaitEnded
            }
            Step::Wait(until) => {
                let changed = async {
                    match &self.annotation {
                        Some(annotation) => annotation.changed.notified().await,
                        None => std::future::pending().await,
                    }
                };
                let _timed = timeout_at(until, changed).await;
                Input::WaitEnded
            }
            Step::Send(request, deadline) => tokio::select! {
                biased;
                input = self.send(request, Deadline::until(deadline)) => input,
                never = self.turn.end_in_time(self.config.retry_period) => match never {},
            },
            // `publish` has reported the end already, and the caller does not call this again.
            Step::Done => std::future::pending().await,
        }
    }

    /// Sends a request about the Lease and returns its result as an input.
    ///
    /// 404 of a read is a separate input; 404 of a write means that the namespace is missing, which is a failure.
    ///
    /// A `Retry-After` beyond the deadline is not waited for. The rejection is the failure then, rather than a missing
    /// response.
    async fn send(&self, request: LeaseRequest, deadline: Deadline) -> Input {
        let ElectionConfig { namespace, name, .. } = &*self.config;
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", url::escape(namespace));
        let one = format!("{all}/{}", url::escape(name));
        let (verb, method, path, body, written) = match request {
            LeaseRequest::Get => ("get", Method::GET, one, None, false),
            LeaseRequest::Create(lease) => ("create", Method::POST, all, Some(lease), true),
            LeaseRequest::Update(lease) => ("update", Method::PUT, one, Some(lease), true),
        };
        let operation = Operation::from(format!("{verb} the lease {namespace}/{name}"));
        let body = body.map(|lease| RequestBody::json(lease.to_string().into_bytes()));
        let response = transport::send_within(&self.client, &operation, method, &path, body, deadline).await;
        let lease = response.and_then(|response| {
            let unreadable = |cause: serde_json::Error| ApiError::Unreadable { operation, cause: cause.to_string() };
            serde_json::from_str::<Value>(&response).map_err(unreadable)
        });
        match lease {
            Ok(lease) if written => Input::Written(lease),
            Ok(lease) => Input::Read(lease),
            Err(error) if error.is_not_found() && !written => Input::Absent,
            Err(error) => Input::Failed(error),
        }
    }

    fn publish(&self, effect: Effect) -> Option<End> {
        let ElectionConfig { namespace, name, identity, .. } = &*self.config;
        match effect {
            Effect::Holder(holder) => {
                let lease = format_args!("{namespace}/{name}");
                let before = self.holder.send_replace(holder.clone());
                if holder.is_empty() {
                    tracing::info!(%lease, "the Lease has no holder");
                } else if before.is_empty() {
                    tracing::info!(%lease, holder, "the Lease has a holder");
                } else {
                    tracing::info!(%lease, holder, "the holder of the Lease changed");
                }
                if let Some(reason) = mode_conflict(identity, &holder) {
                    tracing::warn!(%lease, "this replica does not lead: {reason}");
                }
            }
            Effect::Leading(until) => {
                // First the permission: a task on another thread may write as soon as it sees that this process leads.
                self.permission.send_replace(LeaseState::HeldUntil(until));
                let before = self.state.send_replace(ElectionState::Leading(until));
                debug_assert!(
                    !matches!(before, ElectionState::Over(_)),
                    "an elector that lost its Lease never leads again"
                );
                if before == ElectionState::Standby {
                    tracing::info!(lease = %format_args!("{namespace}/{name}"), identity, "acquired the Lease");
                }
            }
            Effect::SlowPath => self.slow_renewals.send_modify(|count| *count += 1),
            Effect::Ended(end) => {
                self.permission.send_replace(LeaseState::Lost);
                let before = self.state.send_replace(ElectionState::Over(end.clone()));
                debug_assert!(!matches!(before, ElectionState::Over(_)), "an election ends once");
                return Some(end);
            }
        }
        None
    }
}

/// Returns `true` if the holder of a Lease is the settings of sharded replicas, of any version of kctl.
pub(in crate::manager) fn is_shard_settings(holder: &str) -> bool {
    holder.starts_with("shards-") && holder.contains("-by-")
}

/// Returns why a replica with leader election waits for sharded replicas, and the remedy. The Lease of their settings
/// has the same name, so the two modes never work at the same time.
fn mode_conflict(identity: &str, holder: &str) -> Option<String> {
    let conflicts = is_shard_settings(holder) && !is_shard_settings(identity);
    conflicts.then(|| {
        format!("other replicas run with --shards (`{holder}`): stop all replicas, then start them with one mode")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_shards_conflict_with_leader_election() {
        let settings = "shards-8-by-object";
        assert!(mode_conflict("web-1", settings).is_some_and(|reason| reason.contains("with one mode")));
        for (identity, holder) in [("web-1", "web-2"), ("web-1", ""), (settings, "shards-4-by-object")] {
            assert_eq!(mode_conflict(identity, holder), None, "{identity} {holder}");
        }
    }
}
