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
};
use parking_lot::Mutex;

/// Keys that can wait for an app to be started. More are refused.
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
    queues: BTreeMap<String, WorkQueue<ObjectKey>>,
    /// Triggered before the app ran.
    waiting: BTreeSet<(String, ObjectKey)>,
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
    /// When the app has no such controller, or [`TRIGGERS_WAITING_MAX`] keys wait for its start.
    pub fn trigger<C: Controller>(&self, key: &Key<C::Primary>) -> Result<()> {
        let name = C::spec().name;
        let mut shared = self.shared.lock();
        if !shared.controllers.contains(&name) {
            return Err(Error::from(format!("the app has no controller `{name}`: add it by `App::controller` first")));
        }
        if let Some(queue) = shared.queues.get(&name) {
            handler::trigger(queue, key.object().clone());
        } else if shared.waiting.len() < TRIGGERS_WAITING_MAX {
            shared.waiting.insert((name, key.object().clone()));
        } else {
            return Err(Error::from(format!("{TRIGGERS_WAITING_MAX} keys wait for the app to be started")));
        }
        Ok(())
    }

    /// Keys that wait for the app to be started.
    pub(super) fn n_waiting(&self) -> usize {
        self.shared.lock().waiting.len()
    }

    pub(super) fn declare(&self, controller: String) {
        self.shared.lock().controllers.insert(controller);
    }

    /// Sends to the queues of this manager from now on.
    pub(super) fn connect(&self, manager: &Manager) {
        let mut shared = self.shared.lock();
        let view = manager.view();
        shared.queues = view.controllers().iter().map(|(spec, queue)| (spec.name.clone(), queue.clone())).collect();
        for (name, key) in std::mem::take(&mut shared.waiting) {
            if let Some(queue) = shared.queues.get(&name) {
                handler::trigger(queue, key);
            }
        }
    }
}

/// Queues the keys of a stream until it ends.
pub(super) async fn drain<C: Controller>(triggers: Triggers, keys: impl Stream<Item = Key<C::Primary>> + Send) {
    let mut keys = std::pin::pin!(keys);
    while let Some(key) = keys.next().await {
        if let Err(error) = triggers.trigger::<C>(&key) {
            tracing::error!(%key, "{error}");
        }
    }
}
