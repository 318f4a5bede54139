//! Triggers from outside: keys that something else than a change in the cluster asks to be reconciled.

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
    store::SharedStore,
};
use parking_lot::Mutex;

/// Keys that can wait for an app to be started, and for the first list of each kind that is triggered. More are refused. From
/// then on a key waits once, and only if there is an object of it: the number of objects bounds them.
pub const TRIGGERS_WAITING_MAX: usize = 10_000;

/// Queues keys of an app's controllers from outside: from a web hook, a timer, a message. Clones are the same; get one by
/// [`App::triggers`](crate::App::triggers) before the app runs.
#[derive(Clone, Default)]
pub struct Triggers {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    controllers: BTreeSet<String>,
    /// Of the app that runs.
    running: BTreeMap<String, Running>,
    /// Triggered before the app ran.
    waiting: BTreeSet<(String, ObjectKey)>,
}

/// A controller of the app that runs.
struct Running {
    queue: WorkQueue<ObjectKey>,
    primaries: Arc<SharedStore>,
    /// Keys that were queued before anybody could know whether there are objects of them.
    early: BTreeSet<ObjectKey>,
}

impl Running {
    fn trigger(&mut self, key: &ObjectKey) -> Result<()> {
        let synced = self.primaries.is_synced();
        if synced {
            self.early.clear();
        }
        if self.primaries.get(key).is_none() {
            if synced {
                // There is none; if it is on its way, the change that brings it queues it.
                return Ok(());
            }
            if self.early.len() >= TRIGGERS_WAITING_MAX && !self.early.contains(key) {
                return Err(Error::from(format!("{TRIGGERS_WAITING_MAX} keys wait for the first list of their kind")));
            }
            self.early.insert(key.clone());
        }
        handler::trigger(&self.queue, key.clone());
        Ok(())
    }

    fn n_early(&self) -> usize {
        if self.primaries.is_synced() { 0 } else { self.early.len() }
    }
}

impl Triggers {
    /// Has the controller `C` reconcile a key, as if its object had changed. Before the app runs, the key waits for its start;
    /// a key without an object does nothing.
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
    /// When the app has no such controller, or [`TRIGGERS_WAITING_MAX`] keys wait for its start or for the first list.
    pub fn trigger<C: Controller>(&self, key: &Key<C::Primary>) -> Result<()> {
        let name = C::spec().name;
        let mut shared = self.shared.lock();
        if !shared.controllers.contains(&name) {
            return Err(Error::from(format!("the app has no controller `{name}`: add it by `App::controller` first")));
        }
        if let Some(running) = shared.running.get_mut(&name) {
            return running.trigger(key.object());
        }
        if shared.waiting.len() < TRIGGERS_WAITING_MAX {
            shared.waiting.insert((name, key.object().clone()));
        } else {
            return Err(Error::from(format!("{TRIGGERS_WAITING_MAX} keys wait for the app to be started")));
        }
        Ok(())
    }

    /// Keys that wait for the app to be started, or for the first list of the kind of which most do.
    pub(super) fn n_waiting(&self) -> usize {
        let shared = self.shared.lock();
        shared.running.values().map(Running::n_early).max().unwrap_or(0).max(shared.waiting.len())
    }

    pub(super) fn declare(&self, controller: String) {
        self.shared.lock().controllers.insert(controller);
    }

    /// Sends to the queues of this manager from now on.
    pub(super) fn connect(&self, manager: &Manager) {
        let mut shared = self.shared.lock();
        let view = manager.view();
        let controllers = view.controllers().iter().zip(view.primaries());
        let running = controllers.map(|((spec, queue), primary)| {
            let (queue, primaries) = (queue.clone(), primary.store().clone());
            (spec.name.clone(), Running { queue, primaries, early: BTreeSet::new() })
        });
        shared.running = running.collect();
        for (name, key) in std::mem::take(&mut shared.waiting) {
            // At most as many as may wait: none is refused.
            let _taken = shared.running.get_mut(&name).map(|running| running.trigger(&key));
        }
    }
}

/// Queues the keys of a stream until it ends.
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
