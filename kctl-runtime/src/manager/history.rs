//! The last reconciles of a manager and the errors of failing keys, for the debug page.
//!
//! Metrics count, and logs are elsewhere. This answers "why does this key not become ready" on the spot: when it was
//! reconciled last, for which reason, and with which error. Memory is bounded: [`RECONCILES_MAX`] reports and
//! [`FAILURES_MAX`] errors of [`TEXT_LEN_MAX`] bytes.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicBool, Ordering},
};

use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;

use crate::{
    key::ObjectKey,
    text::truncate_text,
    worker::{CONFLICTS_BEFORE_WARNING, Decision, Outcome, Report},
};

/// Maximum number of remembered reconciles; the oldest one is dropped first.
pub(crate) const RECONCILES_MAX: usize = 1_000;
/// Maximum number of keys whose error is remembered; further ones are shown without it.
pub(crate) const FAILURES_MAX: usize = 500;
/// Longest error message that is kept, in bytes; the rest is cut.
pub(crate) const TEXT_LEN_MAX: usize = 1_024;

#[derive(Clone)]
pub(crate) struct PastReconcile {
    /// Counts up from 1. A browser asks for reconciles after the last number that it has.
    pub(crate) number: u64,
    /// Time at which it ended.
    pub(crate) at: Timestamp,
    pub(crate) report: Report,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastError {
    pub(crate) controller: String,
    pub(crate) key: ObjectKey,
    /// The error, cut to [`TEXT_LEN_MAX`] bytes.
    pub(crate) text: String,
    /// `true` if it was given up: it is not retried before its next event or a resync.
    pub(crate) given_up: bool,
}

/// A ring of finished reconciles. It records nothing until it is switched on.
#[derive(Default)]
pub(crate) struct History {
    /// `false` until the debug page is served. Recording costs a copy of each report.
    on: AtomicBool,
    recorded: Mutex<Recorded>,
}

/// The recorded reconciles and failures, under one lock.
#[derive(Default)]
struct Recorded {
    /// Number of reconciles so far, and of the newest one.
    n_reconciles: u64,
    reconciles: VecDeque<PastReconcile>,
    /// By controller and key. A key leaves it with its next success, or when its object or its slot is gone.
    failures: HashMap<(String, ObjectKey), LastError>,
}

impl History {
    /// Begins to record.
    pub(crate) fn enable(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Records a finished reconcile, once recording is switched on.
    ///
    /// The report is copied before the lock is taken, so workers wait for each other only for an insertion.
    pub(crate) fn record(&self, report: &Report, clock: &(dyn Fn() -> Timestamp + Send + Sync)) {
        if !self.on.load(Ordering::Relaxed) {
            return;
        }
        let (mut report, ended_at) = (report.clone(), clock());
        if let Outcome::Failed { text, .. } | Outcome::Panicked(text) = &mut report.outcome {
            truncate_text(text, TEXT_LEN_MAX);
        }
        let mut recorded = self.recorded.lock();
        recorded.update_failure(&report);
        recorded.n_reconciles += 1;
        let number = recorded.n_reconciles;
        if recorded.reconciles.len() == RECONCILES_MAX {
            recorded.reconciles.pop_front();
        }
        recorded.reconciles.push_back(PastReconcile { number, at: ended_at, report });
    }

    /// Returns the newest reconciles after the one with this number, at most `max`, in their order.
    pub(crate) fn after(&self, number: u64, max: usize) -> Vec<PastReconcile> {
        let recorded = self.recorded.lock();
        let newer = recorded.reconciles.iter().rev().take_while(|past| past.number > number).take(max);
        let mut newer: Vec<PastReconcile> = newer.cloned().collect();
        newer.reverse();
        newer
    }

    /// Keeps the errors of only these keys of a controller. Another replica reconciles the others now, so none of their
    /// successes would be recorded here.
    pub(crate) fn retain_failures(&self, controller: &str, is_own: impl Fn(&ObjectKey) -> bool) {
        self.recorded.lock().failures.retain(|(by, key), _failure| by != controller || is_own(key));
    }

    /// Returns the last recorded error of a key since its last success.
    pub(crate) fn failure(&self, controller: &str, key: &ObjectKey) -> Option<LastError> {
        self.recorded.lock().failures.get(&(controller.to_owned(), key.clone())).cloned()
    }

    /// Returns the keys of a controller that were given up, sorted.
    ///
    /// [`WorkQueue::keys`](crate::queue::WorkQueue::keys) does not list them as failing.
    pub(crate) fn given_up(&self, controller: &str) -> Vec<LastError> {
        let recorded = self.recorded.lock();
        let failed_for_good =
            recorded.failures.values().filter(|failure| failure.given_up && failure.controller == controller);
        let mut given_up: Vec<LastError> = failed_for_good.cloned().collect();
        given_up.sort_by(|a, b| a.key.cmp(&b.key));
        given_up
    }
}

impl Recorded {
    /// Remembers or forgets the error of a key. Up to [`CONFLICTS_BEFORE_WARNING`] conflicts in a row leave its record
    /// unchanged.
    fn update_failure(&mut self, report: &Report) {
        let text = match &report.outcome {
            // A few conflicts in a row are normal, and are not recorded as an error.
            Outcome::Failed { .. } if matches!(report.decision, Decision::Outdated { in_a_row } if in_a_row <= CONFLICTS_BEFORE_WARNING) =>
            {
                return;
            }
            Outcome::Failed { text, .. } => text.clone(),
            Outcome::Panicked(text) => format!("panic: {text}"),
            Outcome::TimedOut => "took longer than its timeout".into(),
            Outcome::Done(_) | Outcome::Vanished => {
                if !self.failures.is_empty() {
                    self.failures.remove(&(report.controller.clone(), report.key.clone()));
                }
                return;
            }
        };
        let Report { controller, key, decision, .. } = report;
        let id = (controller.clone(), key.clone());
        if self.failures.len() >= FAILURES_MAX && !self.failures.contains_key(&id) {
            return;
        }
        let given_up = matches!(decision, Decision::Drop);
        let failure = LastError { controller: controller.clone(), key: key.clone(), text, given_up };
        self.failures.insert(id, failure);
    }
}
