//! Keys that something outside of the caches enqueues: a message, a timer, a webhook.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{Stream, StreamExt};
use kctl_runtime::{
    handler,
    key::{Key, ObjectKey},
    manager::Manager,
    queue::WorkQueue,
    reconcile::{Controller, Error, Result},
    spec::ControllerSpec,
    store::SharedStore,
};
use parking_lot::Mutex;

use super::{App, Boxed, Env};

/// Maximum number of keys that wait for the app to start, and for the first list of each triggered
/// kind.
///
/// At the bound [`Triggers::trigger`] returns an error. Once the cache of the kind is complete,
/// only keys of existing objects are enqueued, each once, so the number of objects is the bound.
pub const TRIGGERS_WAITING_MAX: usize = 10_000;

/// Enqueues keys of an app's controllers from outside: from a message, a timer, or another server in
/// the program.
///
/// Get one with [`App::triggers`](crate::App::triggers) before the app runs. Clones share their
/// state, and can be moved to other tasks and threads.
///
/// ```
/// use kctl::prelude::*;
///
/// #[controller]
/// async fn pages(page: Arc<ConfigMap>, _cx: Context<pages>) -> Result<Action> {
///     println!("renders {}", page.name_any());
///     Ok(Action::await_change())
/// }
///
/// let app = App::new("pages").controller::<pages>();
/// let triggers = app.triggers();
/// // In the handler of a message:
/// let on_message = move |name: &str| triggers.trigger::<pages>(&Key::namespaced("default", name));
/// on_message("index")?;
/// # Ok::<(), kctl::Error>(())
/// ```
///
/// A trigger is a hint, like a watch event: several for one key are one reconcile, and a restart of
/// the program forgets them. Use `resync` or a requeue for work that must not be missed.
#[derive(Clone, Default)]
pub struct Triggers {
    shared: Arc<Mutex<Shared>>,
}

impl std::fmt::Debug for Triggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Triggers").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shared {
    controllers: BTreeSet<String>,
    running: BTreeMap<String, RunningController>,
    /// Keys that were triggered before the app ran. Invariant: at most [`TRIGGERS_WAITING_MAX`].
    waiting: BTreeSet<(String, ObjectKey)>,
}

struct RunningController {
    queue: WorkQueue<ObjectKey>,
    primaries: Arc<SharedStore>,
    /// Keys that were enqueued before the first list, when it was unknown whether their objects exist. Invariant: at most
    /// [`TRIGGERS_WAITING_MAX`].
    early: BTreeSet<ObjectKey>,
}

impl RunningController {
    /// Enqueues a key. One without an object is dropped: if the object is on its way, its own event
    /// enqueues it.
    fn trigger(&mut self, key: &ObjectKey) -> Result<()> {
        let synced = self.primaries.is_synced();
        if synced {
            self.early.clear();
        }
        if self.primaries.get(key).is_none() {
            if synced {
                // The object does not exist. If it is about to, its watch event enqueues the key.
                return Ok(());
            }
            if self.early.len() >= TRIGGERS_WAITING_MAX && !self.early.contains(key) {
                return Err(Error::from(format!(
                    "{key} is not enqueued: {TRIGGERS_WAITING_MAX} other keys wait for the first list of their kind; trigger \
                     it again later"
                )));
            }
            self.early.insert(key.clone());
            debug_assert!(self.early.len() <= TRIGGERS_WAITING_MAX, "further keys are rejected");
        }
        handler::trigger(&self.queue, key.clone());
        Ok(())
    }

    fn n_early(&self) -> usize {
        if self.primaries.is_synced() { 0 } else { self.early.len() }
    }
}

impl Triggers {
    /// Enqueues a key for the controller `C`, as if its object had changed.
    ///
    /// Before the app runs, the key waits for its start. A key without an object does nothing.
    ///
    /// With `run --shards`, only the owner of the key's slot enqueues it. While the slot has no owner, such as before
    /// the first one begins or during a hand-over, the trigger is dropped. The next owner reconciles the keys of the
    /// slot, except objects that `converged` or `primary(when = f)` skips.
    ///
    /// ```
    /// # use kctl::prelude::*;
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// let app = App::new("idler").controller::<idle>();
    /// let triggers = app.triggers();
    /// triggers.trigger::<idle>(&Key::namespaced("default", "web"))?;
    /// # Ok::<(), kctl::Error>(())
    /// ```
    ///
    /// # Errors
    /// The app has no such controller, or 10,000 other keys (`TRIGGERS_WAITING_MAX`) wait for its start or for
    /// the first list.
    pub fn trigger<C: Controller>(&self, key: &Key<C::Primary>) -> Result<()> {
        let name = C::spec().name;
        let mut shared = self.shared.lock();
        if !shared.controllers.contains(&name) {
            return Err(Error::from(format!("the app has no controller `{name}`: add it by `App::controller` first")));
        }
        if let Some(running) = shared.running.get_mut(&name) {
            return running.trigger(key.object());
        }
        let waiting = (name, key.object().clone());
        if shared.waiting.len() >= TRIGGERS_WAITING_MAX && !shared.waiting.contains(&waiting) {
            let (name, key) = waiting;
            return Err(Error::from(format!(
                "{key} of `{name}` is not enqueued: {TRIGGERS_WAITING_MAX} other keys wait for the app to be started; trigger \
                 it again later"
            )));
        }
        shared.waiting.insert(waiting);
        debug_assert!(shared.waiting.len() <= TRIGGERS_WAITING_MAX, "further keys are rejected");
        Ok(())
    }

    /// Returns the number of keys that wait for the start, or for the first list of the kind with
    /// the most of them.
    pub(super) fn n_waiting(&self) -> usize {
        let shared = self.shared.lock();
        shared.running.values().map(RunningController::n_early).max().unwrap_or(0).max(shared.waiting.len())
    }

    pub(super) fn declare(&self, controller: String) {
        self.shared.lock().controllers.insert(controller);
    }

    /// Sends keys to the queues of this manager from now on, first those that waited.
    pub(super) fn connect(&self, manager: &Manager) {
        let mut shared = self.shared.lock();
        let view = manager.view();
        let controllers = view.controllers().iter().zip(view.primaries());
        let running = controllers.map(|((spec, queue), primary)| {
            let (queue, primaries) = (queue.clone(), primary.store().clone());
            (spec.name.clone(), RunningController { queue, primaries, early: BTreeSet::new() })
        });
        shared.running = running.collect();
        for (name, key) in std::mem::take(&mut shared.waiting) {
            // Waiting keys have the same bound, so none is rejected.
            let _taken = shared.running.get_mut(&name).map(|running| running.trigger(&key));
        }
    }
}

/// Enqueues the keys of a stream until it ends.
pub(super) async fn drain<C: Controller>(triggers: Triggers, keys: impl Stream<Item = Key<C::Primary>> + Send) {
    let mut keys = std::pin::pin!(keys);
    while let Some(key) = keys.next().await {
        // A stream that always has a next key must not keep its thread from everything else.
        tokio::task::coop::consume_budget().await;
        if let Err(error) = triggers.trigger::<C>(&key) {
            tracing::error!(%key, "{error}");
        }
    }
}

pub(super) type OpenStream = (fn() -> ControllerSpec, Arc<dyn Fn(Env) -> Boxed<'static, ()> + Send + Sync>);

impl App {
    /// Returns a handle that enqueues keys of the app's controllers from outside.
    ///
    /// Get it before [`App::main`] takes the app; the handle works afterwards as well. [`Triggers`]
    /// has an example.
    pub fn triggers(&self) -> Triggers {
        self.triggers.clone()
    }

    /// Enqueues a key for the controller `C`: now if the app runs, otherwise at its start. See
    /// [`Triggers::trigger`].
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[controller]
    /// async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let app = App::new("idler").controller::<idle>();
    /// app.trigger::<idle>(&Key::namespaced("default", "web"))?;
    /// # Ok::<(), kctl::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Triggers::trigger`].
    pub fn trigger<C: Controller>(&self, key: &Key<C::Primary>) -> Result<()> {
        self.triggers.trigger::<C>(key)
    }

    /// Enqueues the keys of a stream for the controller `C`.
    ///
    /// The closure opens the stream at each start of `run` and `dev`. When the stream ends, the app
    /// continues. Use it for message queues, webhooks of external systems, and timers; a periodic
    /// reconcile of all objects is `resync = "1h"`.
    ///
    /// ```
    /// # use kctl::prelude::*;
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// let app = App::new("idler")
    ///     .controller::<idle>()
    ///     .trigger_on::<idle, _, _>(|_env| futures::stream::iter([Key::namespaced("default", "web")]));
    /// ```
    #[must_use]
    pub fn trigger_on<C, F, S>(mut self, open: F) -> Self
    where
        C: Controller,
        F: Fn(Env) -> S + Send + Sync + 'static,
        S: Stream<Item = Key<C::Primary>> + Send + 'static,
    {
        let triggers = self.triggers.clone();
        let drain = move |env| -> Boxed<'static, ()> { Box::pin(drain::<C>(triggers.clone(), open(env))) };
        self.streams.push((C::spec, Arc::new(drain)));
        self
    }
}
