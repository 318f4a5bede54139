//! A pool of workers: get a key, reconcile the newest state, settle what comes next, done.

mod settle;

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use tokio::task::JoinSet;

pub use settle::{Decision, Outcome, settle};

use crate::{
    key::ObjectKey,
    queue::WorkQueue,
    reconcile::{Action, Context, Env, Error, Reconcile},
    store::view,
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
}

/// Told of every reconcile.
pub type Observer = Arc<dyn Fn(&Report) + Send + Sync>;

/// Everything that the workers of one controller share.
pub(crate) struct Pool<C> {
    pub(crate) controller: Arc<C>,
    pub(crate) env: Arc<Env>,
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) observer: Observer,
}

impl<C: Reconcile> Pool<C> {
    /// Works until the queue is shut down and empty.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut workers = JoinSet::new();
        for _ in 0..self.env.spec.concurrency {
            let pool = self.clone();
            workers.spawn(async move { while pool.step().await {} });
        }
        while workers.join_next().await.is_some() {}
    }

    async fn step(&self) -> bool {
        let Some(item) = self.queue.get().await else { return false };
        let key = item.key;
        let outcome = self.reconcile(&key).await;
        let decision = settle(&outcome, self.queue.num_requeues(&key), self.env.spec.retries);
        match &decision {
            Decision::RequeueAfter(wait) => {
                self.queue.forget(&key);
                self.queue.add_after(key.clone(), *wait);
            }
            Decision::RetryAfter(wait) => self.queue.add_after(key.clone(), *wait),
            Decision::RateLimited => drop(self.queue.add_rate_limited(key.clone())),
            Decision::Forget | Decision::Drop => self.queue.forget(&key),
        }
        self.queue.done(&key);
        (self.observer)(&Report { controller: self.env.spec.name.clone(), key, outcome, decision });
        true
    }

    async fn reconcile(&self, key: &ObjectKey) -> Outcome {
        let Some(stored) = self.env.primary.store().get(key) else { return Outcome::Vanished };
        let Some(object) = view::<C::Primary>(&stored) else { return Outcome::Vanished };
        let cx = Context::new(self.env.clone(), stored, self.queue.num_requeues(key));
        let run = AssertUnwindSafe(self.controller.reconcile(object, cx)).catch_unwind();
        let result = match self.env.spec.timeout {
            Some(limit) => tokio::time::timeout(limit, run).await,
            None => Ok(run.await),
        };
        match result {
            Ok(Ok(result)) => outcome(result),
            Ok(Err(panic)) => Outcome::Panicked(panic_text(&*panic)),
            Err(_elapsed) => Outcome::TimedOut,
        }
    }
}

fn outcome(result: Result<Action, Error>) -> Outcome {
    match result {
        Ok(action) => Outcome::Done(action),
        Err(error) => Outcome::Failed {
            conflict: error.api().is_some_and(crate::effect::ApiError::is_conflict),
            terminal: error.is_terminal(),
            retry_after: error.retry_after(),
            text: error.to_string(),
        },
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into())
}
