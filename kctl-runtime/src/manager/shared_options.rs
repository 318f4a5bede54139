//! Options that may be set until the manager runs, even after controllers were added.
//!
//! Controllers get closures that read the option when they are called.
//!
//! The alternative would be an order: options first, then controllers. `kctl::App` cannot keep it, because a test or
//! the simulator sets clock and observers on a manager that the app has already filled.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use parking_lot::RwLock;

use super::Clock;
use crate::{
    trace::Traces,
    worker::{BeginObserver, Observer},
};

/// The options, shared between the manager and its controllers.
pub(super) struct SharedOptions {
    /// Time that is written into objects.
    clock: RwLock<Clock>,
    /// Called when a reconcile begins.
    begun: RwLock<Option<BeginObserver>>,
    /// Called when a reconcile ends: all observers as one.
    ended: RwLock<Observer>,
    /// Source of trace ids, random or from a seed.
    traces: Arc<RwLock<Traces>>,
}

impl SharedOptions {
    /// Creates the options with the system's clock and random trace ids.
    pub(super) fn new(observer: Observer) -> Arc<Self> {
        Arc::new(Self {
            clock: RwLock::new(Arc::new(Timestamp::now)),
            begun: RwLock::default(),
            ended: RwLock::new(observer),
            traces: Arc::default(),
        })
    }

    pub(super) fn set_clock(&self, clock: Clock) {
        *self.clock.write() = clock;
    }

    pub(super) fn set_begin_observer(&self, begun: BeginObserver) {
        *self.begun.write() = Some(begun);
    }

    /// Adds an observer after the existing ones.
    ///
    /// Each call wraps the observers so far, so a panic in one keeps the later ones from being called.
    pub(super) fn add_end_observer(&self, ended: Observer) {
        let mut all = self.ended.write();
        let first = all.clone();
        *all = Arc::new(move |report| {
            first(report);
            ended(report);
        });
    }

    pub(super) fn seed_traces(&self, seed: u64) {
        *self.traces.write() = Traces::from_seed(seed);
    }

    /// Returns a clock that calls the one that is set at that moment. No lock is held while it runs.
    pub(super) fn clock(self: &Arc<Self>) -> Clock {
        let set = self.clone();
        Arc::new(move || {
            let clock = set.clock.read().clone();
            clock()
        })
    }

    /// Returns an observer that calls the one that is set at that moment, if any.
    pub(super) fn begin_observer(self: &Arc<Self>) -> BeginObserver {
        let set = self.clone();
        Arc::new(move |controller, key, trace| {
            let begun = set.begun.read().clone();
            if let Some(begun) = begun {
                begun(controller, key, trace);
            }
        })
    }

    /// Returns an observer that calls the one that is set at that moment. No lock is held while it runs.
    pub(super) fn end_observer(self: &Arc<Self>) -> Observer {
        let set = self.clone();
        Arc::new(move |report| {
            let ended = set.ended.read().clone();
            ended(report);
        })
    }

    pub(super) fn traces(&self) -> Arc<RwLock<Traces>> {
        self.traces.clone()
    }
}
