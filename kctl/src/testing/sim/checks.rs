//! The checkers that run during a run: at each request, each change of the state, and each start
//! and end of a reconcile.

#[cfg(test)]
mod tests;

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use kctl_apiserver::{Change, RequestRecord};
use kctl_runtime::key::ObjectKey;
use serde_json::Value;

use super::{
    authors::Authors,
    owners::{AppLease, COORDINATION, Owners},
    ownership::Ownership,
    panics,
    scenario::{FailingKeys, Invariant, REQUESTS_PER_CHANGE},
    snapshot::{Creator, Id, Snapshot},
    timed::TimeDependent,
};

/// Maximum number of reconciles of one key within [`HOT_INTERVAL`] while nothing changes.
const HOT_RECONCILES_MAX: u32 = 60;
/// Maximum number of requests of the app within [`HOT_INTERVAL`] while nothing changes.
const HOT_REQUESTS_MAX: u32 = 600;
const HOT_INTERVAL: Duration = Duration::from_secs(10);
/// Above this number of requests of the app in one run, the bound of requests per change is checked at each request,
/// and not only at the end. Also the maximum number of its changes in the run without faults, which has no other bound.
const REQUESTS_MAX: u64 = 20_000;
/// Requests that a run may send in addition to those per change.
const REQUESTS_BASE: u64 = 200;
/// Finalizers that the API server adds for a deletion option, and that the garbage collector removes.
const GC_FINALIZERS: [&str; 2] = ["foregroundDeletion", "orphan"];
/// Maximum number of needless writes that a report names.
const NEEDLESS_NAMED_MAX: usize = 3;
/// Maximum number of changes by the app at one moment of simulated time, which does not advance during a hot loop.
const CHANGES_AT_ONCE_MAX: u32 = 5_000;
/// The same of one object. An app may create many objects at once, but has no reason to change one again and again.
const CHANGES_OF_OBJECT_MAX: u32 = 200;
/// Maximum number of authors of such changes that a report names.
const AUTHORS_NAMED_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) checker: String,
    /// The first object that differs for `the same final state`, and the kind of code that panicked for `no panic`. Empty
    /// for the other checkers: a shorter plan may reveal the same checker's finding about another object.
    pub(super) subject: String,
    pub(super) message: String,
}

impl Violation {
    pub(super) fn new(checker: &str, message: impl Into<String>) -> Self {
        Self { checker: checker.into(), subject: String::new(), message: message.into() }
    }

    /// Sets the object or the code that it is about. A shorter plan has to reveal a finding about the same.
    pub(super) fn about(self, subject: &str) -> Self {
        Self { subject: subject.into(), ..self }
    }

    /// Returns the finding of a panic. `place` is the code that panicked.
    pub(super) fn from_panic(place: &str, panic: &(dyn Any + Send)) -> Self {
        Self::new("no panic", panics::describe(place, panic)).about(place)
    }
}

/// Writes that arrived although nothing was left to do.
#[derive(Default)]
pub(super) struct NeedlessWrites {
    /// Keys that may fail send rejected writes again and again. Those are not counted then.
    pub(super) failing_keys: FailingKeys,
    pub(super) n_writes: u64,
    /// Descriptions of the first ones. Invariant: at most [`NEEDLESS_NAMED_MAX`].
    pub(super) first: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) text: String,
    /// Set after an error, a panic and a timeout.
    pub(super) has_failed: bool,
}

/// The reconciles of one key since the last change.
#[derive(Default)]
struct RepeatedReconciles {
    n: u32,
    /// The outcome of the last one.
    end: String,
}

/// The changes by the app at one moment of simulated time.
#[derive(Default)]
struct ChangesAtOnce {
    moment: Duration,
    n: u32,
    objects: BTreeMap<Id, ChangesOfObject>,
}

#[derive(Default)]
struct ChangesOfObject {
    n: u32,
    /// The first of its authors. Invariant: at most [`AUTHORS_NAMED_MAX`], each once.
    authors: Vec<String>,
}

/// The state of all checkers of one run.
///
/// The first finding wins: [`find`](Self::find) ignores later ones, since they usually follow from
/// it.
pub(super) struct Checks {
    pub(super) snapshot: Snapshot,
    invariants: Vec<Invariant>,
    ownership: Ownership,
    pub(super) found: Option<Violation>,
    pub(super) authors: Authors,
    /// Processes that changed an object with a request whose record has not arrived yet.
    changed: BTreeSet<String>,
    /// The creator of each object of the app and of its dependents, by uid.
    made_by: BTreeMap<String, String>,
    /// The finalizers that the app added to existing objects, by object.
    app_finalizers: BTreeMap<Id, BTreeSet<String>>,
    /// The objects whose `status.observedGeneration` the app has written.
    pub(super) observed: BTreeSet<Id>,
    pub(super) last_change: String,
    /// Writes since nothing is left to do; `None` before.
    pub(super) needless: Option<NeedlessWrites>,
    /// Set if the replicas elect a leader.
    pub(super) elects: bool,
    /// With several replicas, the number of the process that holds the Lease according to the
    /// server. With slots it holds the Lease of a slot that changed last.
    leader: Option<String>,
    /// The owners of slots, if the instances share the keys.
    pub(super) owners: Owners,
    /// How the last reconcile of each key ended, by controller and key.
    pub(super) ends: BTreeMap<(String, ObjectKey), End>,
    /// Number of reconciles that have begun.
    pub(super) n_reconciles: u64,
    /// Reconciles since the last change, by controller and key.
    reconciles: BTreeMap<(String, String), RepeatedReconciles>,
    requests: u32,
    window: Duration,
    at_once: ChangesAtOnce,
    /// The revision of the last change, by cluster.
    pub(super) revisions: BTreeMap<String, u64>,
    /// Maximum number of changes by the app in the whole run.
    pub(super) changes_max: u64,
    /// Number of requests that the app may send for each change.
    pub(super) requests_per_change: u64,
    pub(super) n_requests: u64,
    pub(super) n_changes: u64,
    pub(super) timed: TimeDependent,
    /// Number of changes that don't depend on time.
    pub(super) n_lasting_changes: u64,
    pub(super) changes_by_app: u64,
    /// Number of objects of the app that the garbage collector has deleted. Creating them again, as
    /// long as the app can't know that their owner is gone, is not a hot loop.
    collected: u64,
}

/// Returns `true` for Leases and Events. Faults of a write, a read or a watch event leave them out; lapses and
/// partitions do not. Kinds of other groups may have the same plural.
///
/// Checkers ask [`Owners::is_bookkeeping`], which knows the Leases of the app's processes from others.
pub(super) fn is_bookkeeping(group: &str, resource: &str) -> bool {
    matches!((group, resource), (COORDINATION, "leases") | ("" | "events.k8s.io", "events"))
}

pub(super) fn is_app(client: &str) -> bool {
    client.starts_with("app-")
}

/// Returns the index of the replica that a client is a process of: 0 for `app-0.1`.
pub(super) fn index_of(client: &str) -> Option<usize> {
    let (index, _start) = client.strip_prefix("app-")?.split_once('.')?;
    index.parse().ok()
}

impl Checks {
    pub(super) fn new(invariants: Vec<Invariant>, ownership: Ownership) -> Self {
        Self {
            snapshot: Snapshot::default(),
            invariants,
            ownership,
            found: None,
            authors: Authors::default(),
            changed: BTreeSet::new(),
            made_by: BTreeMap::new(),
            app_finalizers: BTreeMap::new(),
            observed: BTreeSet::new(),
            last_change: String::new(),
            needless: None,
            elects: false,
            leader: None,
            owners: Owners::default(),
            ends: BTreeMap::new(),
            n_reconciles: 0,
            reconciles: BTreeMap::new(),
            requests: 0,
            window: Duration::ZERO,
            at_once: ChangesAtOnce::default(),
            revisions: BTreeMap::new(),
            changes_max: REQUESTS_MAX,
            requests_per_change: REQUESTS_PER_CHANGE,
            n_requests: 0,
            n_changes: 0,
            timed: TimeDependent::default(),
            n_lasting_changes: 0,
            changes_by_app: 0,
            collected: 0,
        }
    }

    /// Records a finding, unless there is one.
    pub(super) fn find(&mut self, found: Violation) {
        self.found.get_or_insert(found);
    }

    /// Checks a change on one of the clusters. `cluster` is empty for the app's own.
    pub(super) fn change(&mut self, cluster: &str, change: &Change, now: Duration) {
        let by_app = is_app(&change.by);
        let maker = if by_app { Creator::App } else { Creator::Other };
        let id = Id::for_change(cluster, change);
        if by_app && let Err(message) = self.ownership.check(&id, change) {
            let what = format!("{}: {message}", self.authors.author(&change.by, &change.trace));
            self.find(Violation::new("no write on objects that are not owned", what));
        }
        self.ownership.record_change(&id, change);
        self.snapshot.apply_change(id.clone(), change, maker, now);
        self.revisions.insert(cluster.to_owned(), change.revision);
        if cluster.is_empty() {
            self.learn_leader(change);
        }
        if by_app {
            self.changed.insert(change.by.clone());
        }
        self.record_finalizers(&id, change, maker);
        self.record_observed(&id, change, maker);
        if !self.owners.is_bookkeeping(&id) {
            self.count_change(&id, change, maker, now);
        }
        self.check_invariants();
    }

    /// Records the finalizers that the app adds to an object that exists already.
    fn record_finalizers(&mut self, id: &Id, change: &Change, maker: Creator) {
        let (Some(before), Some(after)) = (&change.before, &change.after) else {
            self.app_finalizers.remove(id);
            return;
        };
        if maker == Creator::App {
            let added = finalizers(after).filter(|one| !GC_FINALIZERS.contains(one));
            for finalizer in added.filter(|one| finalizers(before).all(|other| other != *one)) {
                self.app_finalizers.entry(id.clone()).or_default().insert(finalizer.to_owned());
            }
        }
    }

    /// Records that the app writes the `observedGeneration` of an object's status.
    fn record_observed(&mut self, id: &Id, change: &Change, maker: Creator) {
        let observed = |object: &Value| object["status"]["observedGeneration"].as_i64();
        let Some(after) = &change.after else {
            self.observed.remove(id);
            return;
        };
        let before = change.before.as_deref().and_then(observed);
        if maker == Creator::App && observed(after).is_some_and(|after| Some(after) != before) {
            self.observed.insert(id.clone());
        }
    }

    /// Returns `true` for an object that is being deleted, and that a finalizer of the app holds.
    fn is_held_by_app(&self, id: &Id, object: &Value) -> bool {
        let added = self.app_finalizers.get(id);
        object["metadata"]["deletionTimestamp"].is_string()
            && added.is_some_and(|added| finalizers(object).any(|finalizer| added.contains(finalizer)))
    }

    /// Counts a change of the state, and checks that the app comes to an end with its changes.
    fn count_change(&mut self, id: &Id, change: &Change, maker: Creator, now: Duration) {
        let by_app = maker == Creator::App;
        self.n_changes += 1;
        self.n_lasting_changes += u64::from(!self.timed.record_change(change));
        self.changes_by_app += u64::from(by_app);
        self.collected += u64::from(self.is_collected(change));
        self.reconciles.clear();
        self.requests = 0;
        let author = self.author(change);
        self.last_change = format!("{id} by {author}");
        if by_app {
            self.count_at_once(id, &author, now);
        }
        if let (None, Some(object)) = (&change.before, &change.after) {
            self.record_maker(object, maker, author);
        }
        if by_app && self.changes_by_app > self.changes_max + self.collected {
            let (n, last) = (self.changes_by_app, &self.last_change);
            let what = format!("{n} changes by the app, and no end: the last one of {last}");
            self.find(Violation::new("no hot loop", what));
        }
    }

    /// Counts a change by the app at a moment, and checks that simulated time advances.
    fn count_at_once(&mut self, id: &Id, author: &str, now: Duration) {
        if self.at_once.moment != now {
            self.at_once = ChangesAtOnce { moment: now, ..ChangesAtOnce::default() };
        }
        self.at_once.n += 1;
        let object = self.at_once.objects.entry(id.clone()).or_default();
        object.n += 1;
        if object.authors.len() < AUTHORS_NAMED_MAX && !object.authors.iter().any(|known| known == author) {
            object.authors.push(author.to_owned());
        }
        debug_assert!(object.authors.len() <= AUTHORS_NAMED_MAX, "a report names no more");
        let what = if object.n > CHANGES_OF_OBJECT_MAX {
            let changes = format!("{CHANGES_OF_OBJECT_MAX} changes of {id} at one moment");
            match object.authors.as_slice() {
                [one] => format!("{changes} by {one}"),
                several => format!("{changes}: {} change it in turn", several.join(" and ")),
            }
        } else if self.at_once.n > CHANGES_AT_ONCE_MAX {
            format!("{CHANGES_AT_ONCE_MAX} changes at one moment, the last one of {}", self.last_change)
        } else {
            return;
        };
        self.find(Violation::new("no hot loop", what));
    }

    /// Checks the rules of the scenario against the state.
    ///
    /// They run within the request that made the change. A panic that left this function would unwind through the
    /// server into the app's reconcile, which turns it into an error of the key.
    fn check_invariants(&mut self) {
        let invariants = std::mem::take(&mut self.invariants);
        for invariant in &invariants {
            let holds = AssertUnwindSafe(|| (invariant.holds)(&self.snapshot));
            match catch_unwind(holds) {
                Ok(Ok(())) => {}
                Ok(Err(message)) => self.find(Violation::new(&invariant.name, message)),
                Err(panic) => self.find(Violation::from_panic(&format!("invariant {:?}", invariant.name), &*panic)),
            }
        }
        self.invariants = invariants;
    }

    /// Records the creator of an object if the app created it, or if it was created for an object
    /// of the app.
    fn record_maker(&mut self, object: &Value, maker: Creator, author: String) {
        let uid = super::snapshot::uid(object).to_owned();
        if maker == Creator::App {
            self.made_by.insert(uid, author);
        } else if let Some(owner) = self.snapshot.owner_of_the_app(object) {
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            self.made_by.insert(uid, format!("{author} for {} {}", text("kind"), text("name")));
        }
    }

    /// Reads the holder of the Lease from a change.
    fn learn_leader(&mut self, change: &Change) {
        let Some(lease) = self.owners.lease(change) else { return };
        if let AppLease::Slot(slot) = lease {
            self.owners.record_change(slot, change);
        }
        // With slots, only their own Leases decide which process may write.
        if matches!(lease, AppLease::Slot(_)) == self.owners.slots.is_some() {
            // A Lease that was deleted by hand has no holder, but the last one is still at work.
            if let Some(lease) = &change.after {
                self.leader = lease["spec"]["holderIdentity"].as_str().map(number);
            }
        }
    }

    /// Returns the replica that holds the Lease according to the server; with slots, the replica of the last change.
    pub(super) fn leader(&self) -> Option<String> {
        replica(self.leader.as_deref()?)
    }

    /// Returns the replica that holds the Lease of a slot according to the server.
    pub(super) fn owner(&self, slot: u32) -> Option<String> {
        replica(&number(self.owners.holder(slot)?))
    }

    fn only_the_owner_writes(&mut self, request: &RequestRecord, by: &str, id: &Id) {
        let of_reconcile = self.authors.key(by, &request.trace).map(str::to_owned);
        // Without a trace it is not known for which key a task of the app writes, unless it writes the primary.
        let Some(key) = of_reconcile.or_else(|| self.ownership.key_of_primary(id)) else { return };
        if let Some((slot, owner)) = self.owners.lookup(&key)
            && number(owner) != number(by)
        {
            let (verb, author) = (request.verb, self.authors.author(by, &request.trace));
            let what = format!("{author}: {verb} {id} although slot {slot} is owned by {:?}", number(owner));
            self.find(Violation::new("only the owner writes", what));
        }
    }

    fn only_the_leader_writes(&mut self, request: &RequestRecord, by: &str, id: &Id) {
        if self.owners.slots.is_some() {
            return self.only_the_owner_writes(request, by, id);
        }
        // No replica may write before the Lease is held for the first time, or after it was released.
        let leader = self.leader.as_deref().unwrap_or_default();
        if self.elects && leader != number(by) {
            let (verb, author) = (request.verb, self.authors.author(by, &request.trace));
            let holder = if leader.is_empty() { "nobody".to_owned() } else { format!("{leader:?}") };
            let what = format!("{author}: {verb} {id} although the lease is held by {holder}");
            self.find(Violation::new("only the leader writes", what));
        }
    }

    fn author(&self, change: &Change) -> String {
        match change.by.as_str() {
            "" => "the server".into(),
            process if is_app(process) => self.authors.author(process, &change.trace),
            other => other.into(),
        }
    }

    /// Checks a request that a cluster has answered. Returns a description of a write that changed
    /// nothing.
    pub(super) fn check_request(&mut self, cluster: &str, request: &RequestRecord, now: Duration) -> Option<String> {
        let RequestRecord { verb, resource, namespace, name, .. } = request;
        let by = request.client.as_deref().unwrap_or_default();
        let changes = self.changed.remove(by);
        let (plural, _subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let mut id = Id {
            cluster: cluster.into(),
            group: request.group.clone(),
            resource: plural.into(),
            namespace: namespace.clone(),
            name: name.clone(),
        };
        if self.owners.is_bookkeeping(&id) || *verb == "watch" {
            return None;
        }
        id.resource.clone_from(resource);
        self.n_requests += 1;
        self.requests += 1;
        self.advance_window(now);
        self.authors.count_request(by, &request.trace, verb, resource);
        let hot = if self.requests > HOT_REQUESTS_MAX {
            Some(format!("{HOT_REQUESTS_MAX} requests within {HOT_INTERVAL:?} although nothing changed"))
        } else {
            let surplus = if self.n_requests > REQUESTS_MAX { self.surplus_requests() } else { None };
            surplus.map(|surplus| format!("{surplus} (`.requests_per_change(n)` sets another bound)"))
        };
        if let Some(hot) = hot {
            let what = format!("{hot}, the last one: {}: {verb} {id}", self.authors.author(by, &request.trace));
            self.find(Violation::new("no hot loop", what));
        }
        if !request.is_accepted_write() {
            if is_rejected_for_good(request) {
                self.count_needless(request, by, &format!("{verb} {id}, answered {}", request.code));
            }
            return None;
        }
        self.only_the_leader_writes(request, by, &id);
        let what = format!("{verb} {id}{}", if changes { "" } else { ", which changes nothing" });
        self.count_needless(request, by, &what);
        (!changes).then_some(what)
    }

    /// Counts a write if nothing is left to do.
    fn count_needless(&mut self, request: &RequestRecord, by: &str, what: &str) {
        let Some(needless) = self.needless.as_mut().filter(|_| !self.timed.has_request(&request.resource)) else {
            return;
        };
        if request.code >= 400 && needless.failing_keys == FailingKeys::Allowed {
            return;
        }
        needless.n_writes += 1;
        if needless.first.len() < NEEDLESS_NAMED_MAX {
            needless.first.push(format!("{}: {what}", self.authors.author(by, &request.trace)));
        }
        debug_assert!(needless.first.len() <= NEEDLESS_NAMED_MAX, "a report names no more");
    }

    /// Describes the number of requests if it is above the bound of the scenario.
    pub(super) fn surplus_requests(&self) -> Option<String> {
        let Self { n_requests, n_changes, requests_per_change: per_change, .. } = self;
        let max = REQUESTS_BASE.saturating_add(per_change.saturating_mul(*n_changes));
        let surplus =
            || format!("{n_requests} requests for {n_changes} changes of the state: more than {per_change} for each");
        (*n_requests > max).then(surplus)
    }

    fn is_collected(&self, change: &Change) -> bool {
        let uid = change.before.as_ref().filter(|_| change.by.is_empty() && change.after.is_none());
        uid.is_some_and(|object| self.snapshot.created.contains(super::snapshot::uid(object)))
    }

    fn advance_window(&mut self, now: Duration) {
        if now.saturating_sub(self.window) > HOT_INTERVAL {
            self.window = now;
            self.requests = 0;
            self.reconciles.clear();
        }
    }

    pub(super) fn begin(&mut self, process: &str, controller: &str, key: &ObjectKey, trace: &str, now: Duration) {
        self.n_reconciles += 1;
        let id = (controller.to_owned(), key.to_string());
        if let Some(other) = self.authors.begin(process, controller, key, trace) {
            let what = format!("{controller} reconciles {key} in {process} while it still does so in {other}");
            self.find(Violation::new("a key never runs twice at once", what));
        }
        self.advance_window(now);
        let repeated = self.reconciles.entry(id).or_default();
        repeated.n += 1;
        if repeated.n > HOT_RECONCILES_MAX {
            let what = format!(
                "{controller} reconciles {key} {HOT_RECONCILES_MAX} times within {HOT_INTERVAL:?} although nothing \
                 changed; the last time: {}",
                repeated.end
            );
            self.find(Violation::new("no hot loop", what));
        }
    }

    /// Records how a reconcile ended. A reconcile of a process that was frozen does not count if another process has
    /// the key by now.
    pub(super) fn end(&mut self, process: &str, controller: &str, key: &ObjectKey, end: End) {
        if !self.authors.end(process, controller, key) {
            return;
        }
        if let Some(repeated) = self.reconciles.get_mut(&(controller.to_owned(), key.to_string())) {
            repeated.end.clone_from(&end.text);
        }
        self.ends.insert((controller.to_owned(), key.clone()), end);
    }

    /// Returns the state without Events and Leases, which the app writes in addition to its work.
    pub(super) fn comparable_state(&self) -> Snapshot {
        let mut snapshot = self.snapshot.clone();
        snapshot.objects.retain(|id, _| !self.owners.is_bookkeeping(id));
        snapshot
    }

    /// Returns what the app has left behind although all its primaries are deleted. `is_primary` names objects that the app
    /// holds by a finalizer if they still exist.
    pub(super) fn find_leaks(&self, left_behind: &[String], is_primary: impl Fn(&Id, &Value) -> bool) -> Vec<String> {
        let leaked = self.snapshot.objects.iter().filter(|(id, object)| {
            let uid = super::snapshot::uid(object);
            let created = self.snapshot.created.contains(uid) || self.snapshot.dependents.contains(uid);
            let is_left = created || is_primary(id, object) || self.is_held_by_app(id, object);
            is_left && !self.owners.is_bookkeeping(id) && !left_behind.contains(&id.resource)
        });
        leaked
            .map(|(id, object)| {
                let metadata = &object["metadata"];
                let ends = if metadata["deletionTimestamp"].is_string() {
                    format!(" (being deleted, held by the finalizers {})", metadata["finalizers"])
                } else {
                    String::new()
                };
                let maker = self.made_by.get(super::snapshot::uid(object));
                let made = maker.map_or_else(String::new, |maker| format!(" (made by {maker})"));
                format!("{id}{made}{ends}")
            })
            .collect()
    }
}

/// Returns `true` for a write that the server would reject again, such as an invalid object: an app that is at rest has
/// swallowed that error.
///
/// A conflict and a missing object depend on the state that the app has seen, and the others on the server's load.
fn is_rejected_for_good(request: &RequestRecord) -> bool {
    let is_write = !["get", "list", "watch"].contains(&request.verb) && !request.dry_run;
    is_write && (400..500).contains(&request.code) && ![404, 409, 410, 429].contains(&request.code)
}

/// Returns the finalizers of an object.
fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the number of a process. Lease identities and client names end alike: `web-0.1` is
/// `app-0.1`.
fn number(name: &str) -> String {
    name.rsplit('-').next().unwrap_or_default().to_owned()
}

/// Returns the replica of a process from its number: `app-0` for `0.1`.
fn replica(number: &str) -> Option<String> {
    let (replica, _start) = number.split_once('.')?;
    Some(format!("app-{replica}"))
}

pub(super) type SharedChecks = Arc<parking_lot::Mutex<Checks>>;
