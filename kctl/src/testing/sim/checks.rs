//! What is checked while a run goes on: at each request, each change of the state, and each begin and end of a reconcile.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kctl_apiserver::{Change, RequestRecord};
use kctl_runtime::key::ObjectKey;

use super::{
    ownership::Ownership,
    scenario::Invariant,
    snapshot::{Id, Snapshot},
};

/// Reconciles of one key within [`HOT_WITHIN`] while nothing changes.
const HOT_RECONCILES_MAX: u32 = 60;
/// Requests of the app within [`HOT_WITHIN`] while nothing changes.
const HOT_REQUESTS_MAX: u32 = 600;
const HOT_WITHIN: Duration = Duration::from_secs(10);
/// Requests of the app in one run, whatever happens.
const REQUESTS_MAX: u64 = 20_000;
/// Changes by the app at one moment of simulated time, which does not go on while a loop is hot.
const CHANGES_AT_ONCE_MAX: u32 = 2_000;

/// What a checker has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) checker: String,
    pub(super) message: String,
}

impl Found {
    pub(super) fn new(checker: &str, message: impl Into<String>) -> Self {
        Self { checker: checker.into(), message: message.into() }
    }
}

pub(super) struct Checks {
    pub(super) snapshot: Snapshot,
    invariants: Vec<Invariant>,
    ownership: Ownership,
    pub(super) found: Option<Found>,
    /// Reconciles that run: the process by controller and key.
    running: BTreeMap<(String, String), String>,
    /// Since the last change.
    reconciles: BTreeMap<(String, String), u32>,
    requests: u32,
    window: Duration,
    at_once: (Duration, u32),
    /// Of the last change.
    pub(super) revision: u64,
    /// Changes by the app in the whole run.
    pub(super) changes_max: u64,
    pub(super) n_requests: u64,
    pub(super) n_changes: u64,
    pub(super) changes_by_app: u64,
}

/// What is written beside the work: about leadership, and events for people.
pub(super) fn is_aside(resource: &str) -> bool {
    ["leases", "events"].contains(&resource)
}

/// Whether a client is a process of the app.
pub(super) fn is_app(client: &str) -> bool {
    client.starts_with("app-")
}

impl Checks {
    pub(super) fn new(invariants: Vec<Invariant>, ownership: Ownership) -> Self {
        Self {
            snapshot: Snapshot::default(),
            invariants,
            ownership,
            found: None,
            running: BTreeMap::new(),
            reconciles: BTreeMap::new(),
            requests: 0,
            window: Duration::ZERO,
            at_once: (Duration::ZERO, 0),
            revision: 0,
            changes_max: REQUESTS_MAX,
            n_requests: 0,
            n_changes: 0,
            changes_by_app: 0,
        }
    }

    pub(super) fn find(&mut self, found: Found) {
        self.found.get_or_insert(found);
    }

    pub(super) fn change(&mut self, change: &Change, now: Duration) {
        let by_app = is_app(&change.by);
        if by_app && let Err(message) = self.ownership.check(change) {
            self.find(Found::new("no write on objects that are not owned", message));
        }
        self.ownership.learn(change);
        self.snapshot.take(change, by_app, now);
        self.revision = change.revision;
        if is_aside(&change.resource) {
            return;
        }
        self.n_changes += 1;
        self.changes_by_app += u64::from(by_app);
        self.reconciles.clear();
        self.requests = 0;
        if by_app {
            self.at_once = if self.at_once.0 == now { (now, self.at_once.1 + 1) } else { (now, 1) };
            if self.at_once.1 > CHANGES_AT_ONCE_MAX {
                let what = format!("{CHANGES_AT_ONCE_MAX} changes at one moment, the last one of {}", Id::of(change));
                self.find(Found::new("no hot loop", what));
            }
            if self.changes_by_app > self.changes_max {
                let n = self.changes_by_app;
                let what = format!("{n} changes by the app, and no end: the last one of {}", Id::of(change));
                self.find(Found::new("no hot loop", what));
            }
        }
        for invariant in self.invariants.clone() {
            if let Err(message) = (invariant.holds)(&self.snapshot) {
                self.find(Found { checker: invariant.name, message });
            }
        }
    }

    pub(super) fn request(&mut self, request: &RequestRecord, now: Duration) {
        if is_aside(&request.resource) || request.verb == "watch" {
            return;
        }
        self.n_requests += 1;
        self.requests += 1;
        self.turn_window(now);
        let RequestRecord { verb, resource, .. } = request;
        if self.requests > HOT_REQUESTS_MAX {
            let what = format!(
                "{HOT_REQUESTS_MAX} requests within {HOT_WITHIN:?} although nothing changed, the last one: {verb} {resource}"
            );
            self.find(Found::new("no hot loop", what));
        }
        if self.n_requests > REQUESTS_MAX {
            let what = format!("{REQUESTS_MAX} requests, the last one: {verb} {resource}");
            self.find(Found::new("no hot loop", what));
        }
    }

    fn turn_window(&mut self, now: Duration) {
        if now.saturating_sub(self.window) > HOT_WITHIN {
            self.window = now;
            self.requests = 0;
            self.reconciles.clear();
        }
    }

    pub(super) fn begin(&mut self, process: &str, controller: &str, key: &ObjectKey, now: Duration) {
        let place = (controller.to_owned(), key.to_string());
        if let Some(other) = self.running.insert(place.clone(), process.into()) {
            let what = format!("{controller} reconciles {key} in {process} while it still does so in {other}");
            self.find(Found::new("a key never runs twice at once", what));
        }
        self.turn_window(now);
        let n = self.reconciles.entry(place).or_default();
        *n += 1;
        if *n > HOT_RECONCILES_MAX {
            let what = format!(
                "{controller} reconciles {key} {HOT_RECONCILES_MAX} times within {HOT_WITHIN:?} although nothing changed"
            );
            self.find(Found::new("no hot loop", what));
        }
    }

    pub(super) fn end(&mut self, controller: &str, key: &ObjectKey) {
        self.running.remove(&(controller.to_owned(), key.to_string()));
    }

    /// Whether a reconcile runs.
    pub(super) fn process_ended(&mut self, process: &str) {
        self.running.retain(|_, running| running != process);
    }

    /// What the app has left behind although everything that it belongs to is gone.
    pub(super) fn leaked(&self, kept: &[String], primaries: &BTreeSet<(String, String)>) -> Vec<String> {
        let leaked = self.snapshot.objects.iter().filter(|(id, object)| {
            let created = self.snapshot.created.contains(super::snapshot::uid(object));
            let primary = primaries.contains(&(id.group.clone(), id.resource.clone()));
            (created || primary) && !is_aside(&id.resource) && !kept.contains(&id.resource)
        });
        leaked
            .map(|(id, object)| {
                let metadata = &object["metadata"];
                let ends = if metadata["deletionTimestamp"].is_string() {
                    format!(" (being deleted, held by the finalizers {})", metadata["finalizers"])
                } else {
                    String::new()
                };
                format!("{id}{ends}")
            })
            .collect()
    }
}

pub(super) type SharedChecks = Arc<parking_lot::Mutex<Checks>>;
