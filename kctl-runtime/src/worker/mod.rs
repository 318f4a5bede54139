//! A pool of workers: get a key, reconcile the newest state, settle what comes next, done.

mod finalizer;
mod settle;
#[cfg(test)]
mod tests;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::{task::JoinSet, time::Instant};

pub use settle::{Decision, Outcome, settle};

use crate::{
    key::ObjectKey,
    object::Stored,
    queue::WorkQueue,
    reconcile::{Action, Context, Env, Error, Reconcile},
    spec::Role,
};

/// What became of one reconcile; `dev` prints it and metrics count it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The controller's name.
    pub controller: String,
    /// The key.
    pub key: ObjectKey,
    /// What the reconcile came to.
    pub outcome: Outcome,
    /// What happens to the key.
    pub decision: Decision,
    /// How long the reconcile took.
    pub took: Duration,
}

/// Told of every reconcile.
pub type Observer = Arc<dyn Fn(&Report) + Send + Sync>;

/// How long a key whose write met a newer state waits for that state at most.
const OUTDATED_WAIT_MAX: Duration = Duration::from_secs(1);

/// Everything that the workers of one controller share.
pub(crate) struct Pool<C> {
    pub(crate) controller: Arc<C>,
    pub(crate) env: Arc<Env>,
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) observer: Observer,
}

impl<C: Reconcile> Pool<C> {
    /// Works until the manager stops. A reconcile that hangs holds its worker, and no other.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut workers = JoinSet::new();
        for _ in 0..self.env.spec.concurrency {
            let pool = self.clone();
            workers.spawn(async move { while pool.step().await {} });
        }
        while workers.join_next().await.is_some() {}
    }

    async fn step(&self) -> bool {
        // What still waits at a stop is the next process's work: it lists everything anyway.
        if *self.env.stopping.borrow() {
            return false;
        }
        if !self.env.is_complete() && !self.resumes().await {
            return false;
        }
        let Some(item) = self.queue.get().await else { return false };
        let (key, tags) = (item.key, item.tags);
        if !self.env.is_complete() {
            // It waits with the others: what it would see is half of the truth.
            self.queue.add_tagged(key.clone(), item.priority, tags);
            self.queue.done(&key);
            return true;
        }
        let begun = Instant::now();
        let outcome = self.reconcile(&key, tags).await;
        let took = begun.elapsed();
        let decision = settle(&outcome, self.queue.num_requeues(&key), self.env.spec.retries);
        match &decision {
            Decision::RequeueAfter(wait) => {
                self.queue.forget(&key);
                self.queue.add_after(key.clone(), *wait);
            }
            Decision::RetryAfter(wait) => self.queue.add_failed(key.clone(), *wait),
            // Its event queues the key at once; the wait is for watches that are late.
            Decision::Outdated => self.queue.add_after(key.clone(), OUTDATED_WAIT_MAX),
            Decision::RateLimited => drop(self.queue.add_rate_limited(key.clone())),
            Decision::Forget | Decision::Drop => self.queue.forget(&key),
        }
        self.queue.done(&key);
        self.report(Report { controller: self.env.spec.name.clone(), key, outcome, decision, took });
        true
    }

    /// Waits until the caches are complete again; `false` when the manager stops before.
    async fn resumes(&self) -> bool {
        let mut stopping = self.env.stopping.clone();
        tokio::select! {
            biased;
            _stopping = stopping.wait_for(|stopping| *stopping) => false,
            () = self.env.complete() => true,
        }
    }

    /// The key is settled already: an observer that panics costs its report, not a worker.
    fn report(&self, report: Report) {
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| (self.observer)(&report)));
        if let Err(panic) = told {
            let Report { controller, key, .. } = report;
            tracing::error!(controller, %key, panic = panic_text(&*panic), "an observer of reconciles panicked");
        }
    }

    async fn reconcile(&self, key: &ObjectKey, tags: u32) -> Outcome {
        let run = AssertUnwindSafe(self.run_once(key, tags)).catch_unwind();
        let outcome = run.await.unwrap_or_else(|panic| Outcome::Panicked(panic_text(&*panic)));
        if matches!(outcome, Outcome::Panicked(_) | Outcome::TimedOut) {
            self.suspect_writes(key);
        }
        outcome
    }

    async fn run_once(&self, key: &ObjectKey, tags: u32) -> Outcome {
        if let Err(error) = self.env.make_certain(key).await {
            return outcome(Err(error.into()), key, &self.env);
        }
        let Some(stored) = self.env.primary.store().get(key) else { return Outcome::Vanished };
        let run = self.perform(stored, tags);
        let result = match self.env.spec.timeout {
            Some(limit) => tokio::time::timeout(limit, run).await,
            None => Ok(run.await),
        };
        result.map_or(Outcome::TimedOut, |result| outcome(result, key, &self.env))
    }

    /// A reconcile that was cut may have had a write under way, whose outcome nobody has seen.
    fn suspect_writes(&self, key: &ObjectKey) {
        let owned = self.env.sources.iter().filter(|(relation, _)| relation.role == Role::Owned);
        for (_, source) in owned.filter(|(relation, _)| !relation.verbs.is_empty()) {
            let mut uncertain = self.env.uncertain.lock();
            let known = uncertain.entry(key.clone()).or_default();
            if !known.iter().any(|known| Arc::ptr_eq(known, source)) {
                known.push(source.clone());
            }
        }
    }

    /// Reconciles, or cleans up what is being deleted. What is being deleted and has nothing to be cleaned up is left alone:
    /// the garbage collector has it, and whatever a reconcile would create would go at once.
    async fn perform(&self, mut stored: Arc<Stored>, tags: u32) -> Result<Action, Error> {
        let deleting = stored.meta().deletion_timestamp.is_some();
        let finalizer = self.env.spec.finalizer.as_deref();
        let held = finalizer.is_some_and(|finalizer| stored.meta().finalizers.iter().any(|known| known == finalizer));
        match (finalizer, C::finalize_fn()) {
            (Some(finalizer), Some(finalize)) if deleting && held => {
                finalize(&self.controller, Self::decode(&stored)?, self.context(&stored, tags)).await?;
                finalizer::remove(&self.env, &stored, finalizer).await?;
                return Ok(Action::await_change());
            }
            _ if deleting => return Ok(Action::await_change()),
            (Some(finalizer), _) if !held => stored = finalizer::add(&self.env, &stored, finalizer).await?,
            _ => {}
        }
        self.controller.reconcile(Self::decode(&stored)?, self.context(&stored, tags)).await
    }

    fn context(&self, stored: &Arc<Stored>, tags: u32) -> Context<C> {
        Context::new(self.env.clone(), stored.clone(), self.queue.num_requeues(stored.key()), tags)
    }

    fn decode(stored: &Arc<Stored>) -> Result<Arc<C::Primary>, Error> {
        // Checked at the source: an object that does not fit is never stored.
        stored.decode::<C::Primary>().map_err(Error::from)
    }
}

fn outcome(result: Result<Action, Error>, key: &ObjectKey, env: &Env) -> Outcome {
    match result {
        Ok(action) => Outcome::Done(action),
        Err(error) => Outcome::Failed {
            conflict: error.is_conflict() || error.api().is_some_and(|api| env.is_gone(api, key)),
            terminal: error.is_terminal(),
            retry_after: error.retry_after(),
            text: error.to_string(),
        },
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
}
