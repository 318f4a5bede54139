//! Workers: they take keys from the queue and reconcile the newest state of each object.
//!
//! A controller has `concurrency` workers, one by default. Each repeats these steps until the manager stops:
//!
//! 1. Wait until all caches of the controller are complete: a reconcile that sees half of the objects would do harm.
//! 2. Take a key from the [queue](crate::queue).
//! 3. If a write of the key has an [unknown outcome](crate::writer#outcomes-of-a-write), list its namespace, for which the
//!    controller's `timeout` does not count. If the list fails, the key backs off.
//! 4. Read the object from the [store](crate::store). If it is gone, the key is forgotten.
//! 5. Add the finalizer, or clean up by `finalize` if the object is being deleted; otherwise call the reconcile
//!    function. A panic counts as a failure, and so does a function that takes longer than the controller's `timeout`.
//! 6. Choose by [`decide`] when the key runs again, inform the queue, and hand the key back.
//! 7. Pass a [`Report`] to the observer, for logs and metrics.
//!
//! Step 6 is a pure function that can be tested and used alone:
//!
//! ```
//! use std::time::Duration;
//! use kctl_runtime::{reconcile::Action, worker::{Attempts, Decision, Outcome, decide}};
//!
//! let minute = Duration::from_secs(60);
//! let done = Outcome::Done(Action::requeue(minute));
//! assert_eq!(decide(&done, Attempts::default(), None), Decision::RequeueAfter(minute));
//! assert_eq!(decide(&Outcome::TimedOut, Attempts::default(), None), Decision::RateLimited);
//! ```
//!
//! The steps follow controller-runtime's `pkg/internal/controller/controller.go`, `reconcileHandler`.

mod finalizer;
mod hand_over;
mod retry;
#[cfg(test)]
mod tests;

use std::{
    any::Any,
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::FutureExt;
use serde_json::Value;
use tokio::{
    task::{JoinError, JoinSet},
    time::Instant,
};
use tracing::Instrument;

pub use retry::{Attempts, Decision, Outcome, decide};

pub use crate::queue::CONFLICTS_BEFORE_WARNING;
use crate::{
    freezer,
    handler::{self, TAG_INITIAL},
    key::ObjectKey,
    object::{Stored, Uid},
    own_writes,
    panic::{NotListedYet, panic_text},
    polled::poll_reconcile,
    queue::{Add, Cause, VersionEffect, WorkQueue},
    reconcile::{Action, Context, Env, Error, Reconcile, ReconcileEnv, ReconcileReason, UnreadableObject},
    shard::ReconcileGuard,
    source::Unreadable,
    store::{Change, Delta},
    text::truncate_text,
    trace::Trace,
    writer::{ApiError, EventRecord, EventType},
};

/// The report of one finished reconcile. `dev` prints it, metrics count it, and the simulator checks it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// The controller's name.
    pub controller: String,
    /// The key that was reconciled.
    pub key: ObjectKey,
    /// Everything that queued the key since its last reconcile.
    pub reason: ReconcileReason,
    /// The trace of the reconcile, whose ID is in its log lines and requests.
    pub trace: Trace,
    /// The result of the reconcile.
    pub outcome: Outcome,
    /// The decision about the next run of the key.
    pub decision: Decision,
    /// The duration of the reconcile, from taking the key until its result.
    pub took: Duration,
    /// The timeout of the controller, after which the outcome is [`Outcome::TimedOut`]. `None` without one.
    pub timeout: Option<Duration>,
    /// Is `true` if the manager is stopping. Whatever the decision, this process does not reconcile the key again.
    pub stopping: bool,
}

/// A function that receives the [`Report`] of every reconcile. It runs on the worker's task, after the key was handed
/// back; a panic in it is logged.
///
/// ```
/// use std::sync::Arc;
/// use kctl_runtime::worker::Observer;
///
/// let print: Observer = Arc::new(|report| println!("{} {}: {:?}", report.controller, report.key, report.outcome));
/// # drop(print);
/// ```
pub type Observer = Arc<dyn Fn(&Report) + Send + Sync>;

/// A function that is called when a reconcile begins, with the name of the controller, the key and the trace. A panic in
/// it is logged.
pub type BeginObserver = Arc<dyn Fn(&str, &ObjectKey, Trace) + Send + Sync>;

/// The wait of a key whose write met a conflict, until the watch delivers the newer state. After many conflicts in a row
/// the backoff is longer.
const OUTDATED_WAIT: Duration = Duration::from_secs(1);

/// A worker yields after a reconcile that never waited and took at least this long.
///
/// Otherwise a worker reconciles 128 ready keys (Tokio's budget of a task) before timers and sockets are polled.
/// Until then probes, watches and hand-overs wait, and so do elections that share the runtime.
const YIELD_AFTER: Duration = Duration::from_micros(100);

/// The workers of one controller and all that they share.
pub(crate) struct Pool<C> {
    pub(crate) controller: Arc<C>,
    pub(crate) env: Arc<Env>,
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) observer: Observer,
    pub(crate) begun: BeginObserver,
}

/// A key that a worker has taken. Dropping it hands the key back, also when the worker is cancelled: the hand-over of
/// a slot waits for its keys.
struct ProcessingKey<'a> {
    queue: &'a WorkQueue<ObjectKey>,
    key: ObjectKey,
}

impl Drop for ProcessingKey<'_> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

/// The result of one run of the reconcile function, with what was measured.
struct FinishedRun {
    outcome: Outcome,
    /// The versions that the run has written. The changes of the cache to them do not end a backoff.
    written: Vec<VersionEffect>,
    took: Duration,
    /// `true` if the run was pending at least once, so that other tasks of the thread could run.
    has_waited: bool,
}

impl<C: Reconcile> Pool<C> {
    /// Runs the workers until the manager stops. A reconcile that hangs holds only its own worker.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut workers = JoinSet::new();
        for _ in 0..self.env.spec.concurrency {
            let pool = self.clone();
            freezer::spawn(&mut workers, async move { while pool.step().await {} });
        }
        while let Some(ended) = workers.join_next().await {
            // Resumes the panic in the manager, which ends the process.
            if let Err(Ok(panic)) = ended.map_err(JoinError::try_into_panic) {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Waits for a key, and reconciles its object once. Returns `false` when the manager stops.
    async fn step(&self) -> bool {
        // Keys that still wait at a stop are dropped: the next process lists and queues every object.
        if *self.env.stopping.borrow() {
            return false;
        }
        if !self.env.is_complete() && !self.wait_until_complete().await {
            return false;
        }
        // Yields now and then: a reconcile that never awaits and is requeued at once would otherwise block its thread.
        tokio::task::coop::consume_budget().await;
        let Some(item) = self.queue.get().await else { return false };
        let (key, tags) = (item.key, item.tags);
        let processing = ProcessingKey { queue: &self.queue, key: key.clone() };
        if !self.env.is_complete() {
            // A reconcile would read an incomplete cache, so the key goes back into the queue.
            self.queue.add(Add::new(key).priority(item.priority).tags(tags));
            return true;
        }
        let Some(guard) = self.enter(&key).await else { return true };
        let (reason, trace) = (ReconcileReason::new(self.env.clone(), tags), self.env.traces.read().next());
        self.observe(&key, || (self.begun)(&self.env.spec.name, &key, trace));
        let FinishedRun { outcome, written, took, has_waited } = self.run_guarded(&key, &reason, trace, &guard).await;
        if outcome.is_failure() {
            // Otherwise the changes of the cache by these writes would end the wait, or queue a key that is given up.
            self.queue.ignore_own_writes(&key, written);
        }
        let attempts = Attempts { failures: self.queue.num_requeues(&key), conflicts: self.queue.num_conflicts(&key) };
        let decision = decide(&outcome, attempts, self.env.spec.retries);
        self.record_failure(&key, attempts.failures, &outcome, &decision);
        self.requeue(&key, &decision);
        if !guard.serves() {
            self.queue.evict_key(&key);
            // The slot may be this replica's again: then the next run has to look for the write.
            if !self.env.gate.owns(&key) {
                self.env.writer.uncertain_writes().forget(&key);
            }
        }
        // The guard is dropped before the key is free again, because a hand-over waits for all counted reconciles.
        drop(guard);
        drop(processing);
        let (controller, timeout) = (self.env.spec.name.clone(), self.env.spec.timeout);
        let stopping = *self.env.stopping.borrow();
        let report = Report { controller, key, reason, trace, outcome, decision, took, timeout, stopping };
        // The key was handed back, so a slow observer does not block its next run.
        self.observe(&report.key, || (self.observer)(&report));
        // Under simulated time `took` is 0 here, so nothing changes.
        if !has_waited && took >= YIELD_AFTER {
            tokio::task::yield_now().await;
        }
        true
    }

    /// Runs the reconcile as long as the key belongs to this replica, and measures it.
    async fn run_guarded(
        &self,
        key: &ObjectKey,
        reason: &ReconcileReason,
        trace: Trace,
        guard: &ReconcileGuard,
    ) -> FinishedRun {
        let begun = Instant::now();
        // Boxed, so that an idle worker does not hold the memory of a reconcile.
        let run = guard.run(Box::pin(self.reconcile_traced(key, reason, trace, guard)));
        let mut run = pin!(own_writes::record(async { run.await.unwrap_or_else(slot_lost) }));
        let mut has_waited = false;
        let (outcome, written) = poll_fn(|cx| {
            let polled = poll_reconcile(&self.env.spec.name, key, || run.as_mut().poll(cx));
            has_waited |= polled.is_pending();
            polled
        })
        .await;
        FinishedRun { outcome, written, took: begun.elapsed(), has_waited }
    }

    /// Adds the key to the queue again as its outcome asks, or forgets its failures.
    fn requeue(&self, key: &ObjectKey, decision: &Decision) {
        let again = |cause| {
            let _wait = self.queue.add(Add::new(key.clone()).cause(cause));
        };
        match decision {
            Decision::RequeueAfter(wait) => {
                self.queue.forget(key);
                again(Cause::Requeue(*wait));
            }
            Decision::RetryAfter(wait) => again(Cause::FailureAfter(*wait)),
            // The event of the newer state enqueues the key at once. The wait is for watches that are late.
            Decision::Outdated { .. } => again(Cause::Conflict(OUTDATED_WAIT)),
            Decision::RateLimited => again(Cause::Failure),
            Decision::Drop => self.queue.give_up(key.clone()),
            Decision::Forget => self.queue.forget(key),
        }
    }

    /// Waits until the caches are complete again; returns `false` if the manager stops first.
    async fn wait_until_complete(&self) -> bool {
        let mut stopping = self.env.stopping.clone();
        tokio::select! {
            biased;
            _stopping = stopping.wait_for(|stopping| *stopping) => false,
            () = self.env.complete() => true,
        }
    }

    /// Records a `Warning` event `ReconcileFailed` on the object: when it has failed often enough, and each time it is
    /// given up.
    fn record_failure(&self, key: &ObjectKey, failures_before: u32, outcome: &Outcome, decision: &Decision) {
        let limit = self.env.warn_after_failures.load(Ordering::Relaxed);
        if limit == 0 {
            return;
        }
        let text = match outcome {
            Outcome::Failed { text, .. } => text.clone(),
            Outcome::Panicked(text) => format!("panic: {text}"),
            Outcome::TimedOut => format!("timed out after {:?}", self.env.spec.timeout.unwrap_or_default()),
            Outcome::Done(_) | Outcome::Vanished => return,
        };
        let failures = failures_before.saturating_add(1);
        let note = match decision {
            Decision::Drop => format!("given up until the next event or resync: {text}"),
            Decision::RateLimited | Decision::RetryAfter(_) if failures == limit => {
                format!("failed {failures} times in a row: {text}")
            }
            // Fewer conflicts are normal with concurrent writers. Log and debug page start to warn at the same number.
            Decision::Outdated { in_a_row } if *in_a_row == CONFLICTS_BEFORE_WARNING + 1 => {
                format!("met a conflict {in_a_row} times in a row: {text}")
            }
            _ => return,
        };
        if let Some(stored) = self.env.primary.newest(key) {
            let failed = EventRecord::new(EventType::Warning, "ReconcileFailed", note);
            self.env.recorder.record(&self.env.spec, &stored, failed);
        }
    }

    /// Calls an observer. A panic in it loses only its report.
    fn observe(&self, key: &ObjectKey, observer: impl FnOnce()) {
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(observer)) {
            let controller = &self.env.spec.name;
            tracing::error!(controller, %key, panic = panic_text(&*panic), "an observer of reconciles panicked");
        }
    }

    /// Runs the reconcile in its trace and in a span with controller, key and reason, so that its log lines and
    /// requests carry them.
    async fn reconcile_traced(
        &self,
        key: &ObjectKey,
        reason: &ReconcileReason,
        trace: Trace,
        guard: &ReconcileGuard,
    ) -> Outcome {
        let controller = &self.env.spec.name;
        let run = async {
            let span = tracing::info_span!("reconcile", controller, %key, %reason, trace_id = %trace);
            self.reconcile(key, reason.tags(), guard).instrument(span).await
        };
        trace.run(run).await
    }

    async fn reconcile(&self, key: &ObjectKey, tags: u32, guard: &ReconcileGuard) -> Outcome {
        let run = AssertUnwindSafe(self.run_once(key, tags, guard)).catch_unwind();
        run.await.unwrap_or_else(|panic| panic_outcome(&*panic))
    }

    async fn run_once(&self, key: &ObjectKey, tags: u32, guard: &ReconcileGuard) -> Outcome {
        if let Err(error) = self.env.writer.uncertain_writes().resolve(key).await {
            return unresolved_outcome(error, &self.env);
        }
        let is_deleted = |one: &Arc<Unreadable>| one.stored.meta().deletion_timestamp().is_some();
        let unreadable = self.env.primary.unreadable(key).filter(is_deleted);
        let stored = unreadable.as_ref().map(|one| one.stored.clone()).or_else(|| self.env.primary.store().get(key));
        let Some(stored) = stored else {
            self.env.applied.forget(key);
            return Outcome::Vanished;
        };
        if matches!(guard, ReconcileGuard::Gone) {
            // In the meantime the sharder assigned the object to this shard again. Its next run is counted, so that no
            // other controller hands it over during that run.
            self.queue.add(Add::new(key.clone()).tags(tags));
            return Outcome::Vanished;
        }
        let uid = stored.meta().uid.clone();
        let env = ReconcileEnv::new(&self.env, guard.tenure());
        // Boxed, because each future around it would be several times as large.
        let run = Box::pin(async {
            match unreadable {
                Some(unreadable) => self.clean_up_unreadable(&unreadable, tags, &env).await,
                None => self.perform(stored, tags, &env).await,
            }
        });
        let result = match self.env.spec.timeout {
            Some(limit) => {
                let _run = self.env.timed_runs.start(key);
                tokio::time::timeout(limit, run).await
            }
            None => Ok(run.await),
        };
        let is_gone = match &result {
            Ok(Err(error)) => self.record_deletion(error, key, uid).await,
            _ => false,
        };
        let mut ended = result.map_or(Outcome::TimedOut, |result| outcome(result, &self.env));
        if let Outcome::Failed { conflict, .. } = &mut ended {
            *conflict |= is_gone;
        }
        ended
    }

    /// Removes the primary from the cache if the error says that it is gone. A uid never comes back, so the cache need
    /// not wait for the watch. Until then each event of an owned object would start another reconcile of the deleted
    /// owner.
    ///
    /// Returns `true` if the primary is gone.
    async fn record_deletion(&self, error: &Error, key: &ObjectKey, uid: Uid) -> bool {
        let Some(api) = error.api().filter(|api| self.env.is_gone(api, key)) else { return false };
        let source = &self.env.primary;
        if !api.operation().is_on_subresource() {
            source.store().push_and_wait(Delta::Gone(key.clone(), uid)).await;
            return true;
        }
        // The object may be there without the subresource. Only a read tells the two apart. Boxed, because it is rare.
        let uid_text = uid.to_string();
        let read = Box::pin(source.refresh_object(key.namespace.as_deref(), &key.name, &uid_text));
        if let Err(error) = read.await {
            tracing::debug!(%key, %error, "failed to read the object after a 404 of its subresource");
            return true;
        }
        source.newest(key).is_none_or(|newest| newest.meta().uid != uid)
    }

    /// Reconciles an object, or cleans it up if it is being deleted. An object that is being deleted without this
    /// controller's finalizer is left alone. The garbage collector removes what it owns, and objects created now would
    /// be removed as well.
    async fn perform(&self, mut stored: Arc<Stored>, tags: u32, env: &Arc<ReconcileEnv>) -> Result<Action, Error> {
        let finalizer = self.env.spec.finalizer.as_deref();
        let lacks =
            |finalizer: &&str| stored.meta().deletion_timestamp().is_none() && !stored.meta().has_finalizer(finalizer);
        if let Some(finalizer) = finalizer.filter(lacks) {
            stored = finalizer::add(env, &stored, finalizer).await?;
        }
        // Read after the patch of the finalizer: the object may have been deleted in between.
        let deleting = stored.meta().deletion_timestamp().is_some();
        let is_present = finalizer.is_some_and(|finalizer| stored.meta().has_finalizer(finalizer));
        match (finalizer, C::finalize_fn()) {
            (Some(finalizer), Some(finalize)) if deleting && is_present => {
                let finalize =
                    (finalize.readable)(&self.controller, Self::decode(&stored)?, self.context(&stored, tags, env));
                let cleaned_up = self.clean_up(&stored, finalize).await?;
                finalizer::remove(env, &cleaned_up, finalizer).await?;
                return Ok(Action::await_change());
            }
            _ if deleting => return Ok(Action::await_change()),
            _ => {}
        }
        let (object, context) = (Self::decode(&stored)?, self.context(&stored, tags, env));
        // A key that was also queued for another reason has changed, and is always reconciled.
        if tags == TAG_INITIAL && C::converged_fn().is_some_and(|is_converged| is_converged(&object, &context)) {
            return Ok(Action::await_change());
        }
        self.controller.reconcile(object, context).await
    }

    /// Cleans up an object that is being deleted and cannot be decoded: with its last readable state, or else by
    /// [`finalize_unreadable`](crate::reconcile::Finalize::finalize_unreadable).
    async fn clean_up_unreadable(
        &self,
        unreadable: &Unreadable,
        tags: u32,
        env: &Arc<ReconcileEnv>,
    ) -> Result<Action, Error> {
        let stored = &unreadable.stored;
        let finalizer = self.env.spec.finalizer.as_deref();
        let present_finalizer = finalizer.filter(|finalizer| stored.meta().has_finalizer(finalizer));
        let (Some(finalizer), Some(finalize)) = (present_finalizer, C::finalize_fn()) else {
            return Ok(Action::await_change());
        };
        let context = self.context(stored, tags, env);
        let cleaned_up = if let Some(object) = self.last_readable(stored) {
            self.clean_up(stored, (finalize.readable)(&self.controller, object, context)).await?
        } else {
            let object = UnreadableObject::new(unreadable, &self.env.spec.primary.kind, finalizer);
            self.clean_up(stored, (finalize.unreadable)(&self.controller, object, context)).await?
        };
        finalizer::release(env, &cleaned_up, finalizer).await?;
        Ok(Action::await_change())
    }

    /// Runs a cleanup, and returns the state of the object from which its finalizer may be removed. That is the state
    /// that was cleaned up, or the one that the cleanup itself has written. After a change by another client, the
    /// removal meets a conflict, and the newer state is cleaned up.
    async fn clean_up(
        &self,
        stored: &Arc<Stored>,
        finalize: impl Future<Output = Result<(), Error>>,
    ) -> Result<Arc<Stored>, Error> {
        let meta = stored.meta();
        let (result, written) = own_writes::last_write(meta.uid.clone(), finalize).await;
        result?;
        // A patch is made onto the newest state, which may have a change that the cleanup did not see.
        let is_own = |cached: &Arc<Stored>| {
            written.as_ref().is_some_and(|(version, effect)| {
                let change = Change::Updated { old: stored.clone(), new: cached.clone() };
                cached.meta().resource_version == *version && handler::effect_on_primary(&change) <= *effect
            })
        };
        Ok(self.env.primary.store().get(&meta.key).filter(is_own).unwrap_or_else(|| stored.clone()))
    }

    /// Returns the last readable state of an object with its present metadata.
    fn last_readable(&self, stored: &Stored) -> Option<Arc<C::Primary>> {
        let cached =
            self.env.primary.store().get(stored.key()).filter(|cached| cached.meta().uid == stored.meta().uid)?;
        let mut json: Value = serde_json::from_str(&cached.json()).ok()?;
        let now: Value = serde_json::from_str(&stored.json()).ok()?;
        json["metadata"] = now["metadata"].clone();
        let with_metadata = Stored::accept(&self.env.spec.primary.kind, &json.to_string()).ok()?;
        Arc::new(with_metadata).decode::<C::Primary>().ok()
    }

    fn context(&self, stored: &Arc<Stored>, tags: u32, env: &Arc<ReconcileEnv>) -> Context<C> {
        Context::new(env.clone(), stored.clone(), self.queue.num_requeues(stored.key()), tags)
    }

    fn decode(stored: &Arc<Stored>) -> Result<Arc<C::Primary>, Error> {
        // Does not fail: the source stores only objects that fit the type.
        stored.decode::<C::Primary>().map_err(Error::from)
    }
}

/// Maximum length of the error of a reconcile, in bytes. It goes to the log, an Event and the observer.
///
/// Others decide how long it is: a script, a webhook, or the API server.
const ERROR_LEN_MAX: usize = 4 << 10;

/// Returns the message of an error, cut to [`ERROR_LEN_MAX`].
fn truncate_error(mut text: String) -> String {
    truncate_text(&mut text, ERROR_LEN_MAX);
    text
}

/// Returns the outcome of a reconcile whose slot was lost. It counts as a conflict, because the next owner handles the
/// key.
fn slot_lost() -> Outcome {
    let text = "the Lease of the key's slot was lost; its next owner reconciles the key".to_owned();
    Outcome::Failed { conflict: true, terminal: false, invalid: false, retry_after: None, text }
}

/// Returns the outcome of a reconcile that panicked. A read of a slot that is not listed yet counts as a conflict. The
/// state was outdated, and a controller without retries must not give up the key.
fn panic_outcome(panic: &(dyn Any + Send)) -> Outcome {
    let text = truncate_error(panic_text(panic));
    if panic.is::<NotListedYet>() {
        return Outcome::Failed { conflict: true, terminal: false, invalid: false, retry_after: None, text };
    }
    Outcome::Panicked(text)
}

/// Returns the outcome of a key whose uncertain writes could not be looked for. A list that expired counts as a
/// conflict. Slots may have moved during each of its tries, and a controller without retries must not give up the key.
fn unresolved_outcome(error: ApiError, env: &Env) -> Outcome {
    let is_expired = error.is_expired();
    let mut failed = outcome(Err(error.into()), env);
    if let Outcome::Failed { conflict, .. } = &mut failed {
        *conflict |= is_expired;
    }
    failed
}

/// Returns `true` for a write that was not sent because the key moves to another replica, which reconciles it.
fn is_rejected_by_move(error: &ApiError, env: &Env) -> bool {
    matches!(error, ApiError::NotLeading { .. }) && env.gate.moves_keys()
}

fn outcome(result: Result<Action, Error>, env: &Env) -> Outcome {
    match result {
        Ok(action) => Outcome::Done(action),
        Err(error) => Outcome::Failed {
            conflict: error.is_conflict() || error.api().is_some_and(|api| is_rejected_by_move(api, env)),
            terminal: error.is_terminal(),
            invalid: error.is_invalid(),
            retry_after: error.retry_after(),
            text: truncate_error(error.to_string()),
        },
    }
}
