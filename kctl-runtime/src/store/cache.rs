//! The objects of one informer with their indexes, and the rules by which they change: pure, called by the writer alone.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::{Change, IndexFn};
use crate::{key::ObjectKey, object::Stored, source::Present};

/// How many uids of deleted objects are remembered at most; beyond it the oldest knowledge goes, and only a
/// relist older than that delete could show the object again.
pub const TOMBSTONES_MAX: usize = 100_000;

/// What one list and one watch are about: a namespace, or all.
pub type Scope = Option<Arc<str>>;

/// What the writer is told.
#[derive(Debug, Clone)]
pub enum Delta {
    /// The complete state of a scope at a resourceVersion.
    Replace(Scope, Vec<Arc<Stored>>, String),
    /// The same from a server whose state went back, as after a restore from a backup: what was known of later versions never
    /// happened.
    Restore(Scope, Vec<Arc<Stored>>, String),
    /// The scope is about to be listed: until then the store is not complete, and nothing is written there.
    Open(Scope),
    /// The API server no longer has the kind: neither has it any objects of it. It may come back.
    Clear(Scope),
    /// The scope is no longer wanted: its objects go, and nothing is written there any more.
    Close(Scope),
    /// The API server's watch reports this state.
    Apply(Arc<Stored>),
    /// The API server's watch reports that this was the last state.
    Delete(Arc<Stored>),
    /// Everything of a scope up to this resourceVersion has been reported.
    Bookmark(Scope, String),
    /// The process wrote this state.
    Written(Arc<Stored>),
    /// The process deleted the object with this uid, and it is gone.
    Gone(ObjectKey, String),
}

/// With a fixed seed: what is iterated in no order comes in the same order in each run under test.
type Map<K, V> = HashMap<K, V, FixedState>;

/// How far list and watch of a scope have come.
#[derive(Default)]
struct Mark {
    listed: bool,
    /// Everything up to here has been reported. An object that is unknown at or below it is gone.
    revision: u64,
}

/// The state behind a store.
pub(crate) struct Cache {
    objects: Map<ObjectKey, Arc<Stored>>,
    /// Length of the JSON of all objects.
    n_bytes: usize,
    namespaces: Map<Option<Arc<str>>, BTreeSet<ObjectKey>>,
    owners: Map<String, BTreeSet<ObjectKey>>,
    user: Vec<UserIndex>,
    /// Own deletes that the watch has not reported yet, by uid: invariant, none of them is in `objects`.
    tombstones: Map<String, ObjectKey>,
    /// Own writes that list and watch have not reported yet. Invariant: each is the present version of its object.
    unreported: BTreeMap<u64, ObjectKey>,
    /// What is listed and watched. Own writes elsewhere are not kept: nobody would tell of their end.
    scopes: BTreeMap<Scope, Mark>,
    /// Where nothing may be written, because what is there is not known any more, or not yet again.
    barred: BTreeSet<Scope>,
}

impl Default for Cache {
    fn default() -> Self {
        Self::of([None])
    }
}

/// An index of the user's. It remembers what it said of each object: to ask again about an old state would decode it again,
/// and a function that answers otherwise would leave the key behind.
struct UserIndex {
    name: &'static str,
    values_of: IndexFn,
    keys: Map<String, BTreeSet<ObjectKey>>,
    /// Only objects with a value are here.
    values: Map<ObjectKey, Box<[String]>>,
}

impl UserIndex {
    fn put(&mut self, object: &Stored) {
        let (key, values) = (object.key(), (self.values_of)(object).into_boxed_slice());
        if self.values.get(key).map_or(values.is_empty(), |known| **known == *values) {
            return;
        }
        self.take(key);
        if !values.is_empty() {
            for value in &values {
                self.keys.entry(value.clone()).or_default().insert(key.clone());
            }
            self.values.insert(key.clone(), values);
        }
    }

    fn take(&mut self, key: &ObjectKey) {
        for value in self.values.remove(key).into_iter().flatten() {
            take(&mut self.keys, &value, key);
        }
    }
}

impl Cache {
    /// An empty cache of these scopes.
    pub(crate) fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self {
            objects: Map::default(),
            n_bytes: 0,
            namespaces: Map::default(),
            owners: Map::default(),
            user: Vec::new(),
            tombstones: Map::default(),
            unreported: BTreeMap::new(),
            scopes: scopes.into_iter().map(|scope| (scope, Mark::default())).collect(),
            barred: BTreeSet::new(),
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The lowest of all scopes.
    pub(crate) fn revision(&self) -> u64 {
        self.scopes.values().map(|mark| mark.revision).min().unwrap_or(0)
    }

    pub(crate) fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// Whether all that is wanted has been listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.scopes.values().all(|mark| mark.listed)
    }

    /// Whether nothing may be written in a namespace.
    pub(crate) fn bars(&self, namespace: Option<&str>) -> bool {
        !self.barred.is_empty() && (self.barred.contains(&None) || self.barred.contains(&namespace.map(Arc::from)))
    }

    /// The scope that an object is in, if it is in one.
    fn scope_of(&self, key: &ObjectKey) -> Option<Scope> {
        let scopes = [key.namespace.clone(), None];
        scopes.into_iter().find(|scope| self.scopes.contains_key(scope))
    }

    fn is_in(&self, key: &ObjectKey, scope: &Scope) -> bool {
        self.scope_of(key).is_some_and(|of| of == *scope)
    }

    fn revision_of(&self, key: &ObjectKey) -> u64 {
        self.scope_of(key).and_then(|scope| self.scopes.get(&scope)).map_or(0, |mark| mark.revision)
    }

    pub(crate) fn in_namespace(&self, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.resolve(self.namespaces.get(&namespace.map(Arc::from)))
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<Stored>> {
        self.resolve(self.owners.get(uid))
    }

    /// `None` when no such index exists.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<Stored>>> {
        let index = self.user.iter().find(|index| index.name == name)?;
        Some(self.resolve(index.keys.get(value)))
    }

    fn resolve(&self, keys: Option<&BTreeSet<ObjectKey>>) -> Vec<Arc<Stored>> {
        keys.into_iter().flatten().filter_map(|key| self.objects.get(key).cloned()).collect()
    }

    /// Adds an index and fills it from the objects present; an index of that name stays as it is.
    pub(crate) fn add_index(&mut self, name: &'static str, values_of: IndexFn) {
        if self.user.iter().any(|index| index.name == name) {
            return;
        }
        let mut index = UserIndex { name, values_of, keys: Map::default(), values: Map::default() };
        for object in self.objects.values() {
            index.put(object);
        }
        self.user.push(index);
    }

    /// Applies a delta and says what changed, in order.
    pub(crate) fn apply(&mut self, delta: Delta) -> Vec<Change<Stored>> {
        match delta {
            Delta::Replace(scope, objects, version) => self.replace(&scope, objects, &version),
            Delta::Restore(scope, objects, version) => self.restore(&scope, objects, &version),
            Delta::Apply(object) => {
                let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
                let revision = object.meta().revision();
                if let Some(revision) = revision {
                    self.unreported.remove(&revision);
                }
                let mut changes = self.upsert(object);
                changes.extend(self.advance(&scope, revision));
                changes
            }
            Delta::Delete(object) => {
                let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
                let revision = object.meta().revision();
                let mut changes = self.deleted(&object);
                changes.extend(self.advance(&scope, revision));
                changes
            }
            Delta::Bookmark(scope, version) => self.advance(&scope, version.parse().ok()),
            // Without comparable versions an own write can't be placed in time: the watch brings it.
            Delta::Written(object) if object.meta().revision().is_none() => Vec::new(),
            Delta::Written(object) if self.scope_of(object.key()).is_none() => Vec::new(),
            Delta::Written(object) => self.written(object),
            Delta::Gone(key, uid) => self.gone(&key, uid),
            Delta::Open(scope) => {
                self.scopes.entry(scope.clone()).or_default().listed = false;
                self.barred.insert(scope);
                Vec::new()
            }
            Delta::Clear(scope) => self.clear(&scope),
            Delta::Close(scope) => {
                let changes = self.clear(&scope);
                self.scopes.remove(&scope);
                self.barred.insert(scope);
                changes
            }
        }
    }

    /// All objects of a scope, in order: one seed is to give one order of changes.
    fn of_scope(&self, scope: &Scope) -> Vec<Arc<Stored>> {
        let mut objects: Vec<_> =
            self.objects.values().filter(|object| self.is_in(object.key(), scope)).cloned().collect();
        objects.sort_by(|a, b| a.key().cmp(b.key()));
        objects
    }

    /// Whether it has everything of a scope that is there, or something newer.
    pub(crate) fn has_all(&self, scope: &Scope, present: &Present) -> bool {
        let is_known = |(key, (uid, version)): (&ObjectKey, &(String, String))| match self.objects.get(key) {
            Some(known) if known.meta().resource_version == *version => true,
            Some(known) => {
                known.meta().revision().zip(version.parse().ok()).is_some_and(|(known, there)| known > there)
            }
            None => self.tombstones.contains_key(uid),
        };
        let is_there = |known: &Arc<Stored>| {
            let is_newer = || known.meta().revision().zip(present.version).is_some_and(|(known, list)| known > list);
            present.objects.contains_key(known.key()) || is_newer()
        };
        present.objects.iter().all(is_known) && self.of_scope(scope).iter().all(is_there)
    }

    fn clear(&mut self, scope: &Scope) -> Vec<Change<Stored>> {
        let objects = self.of_scope(scope);
        for object in &objects {
            self.remove(object);
        }
        objects.into_iter().map(|last| Change::Deleted { last }).collect()
    }

    /// Everything of a scope up to a revision has been reported.
    fn advance(&mut self, scope: &Scope, revision: Option<u64>) -> Vec<Change<Stored>> {
        let Some(mark) = self.scopes.get_mut(scope) else { return Vec::new() };
        mark.revision = mark.revision.max(revision.unwrap_or(0));
        let mark = mark.revision;
        let here = |key: &&ObjectKey| self.is_in(key, scope);
        let passed: Vec<ObjectKey> = self.unreported.range(..=mark).map(|(_, key)| key).filter(here).cloned().collect();
        // The watch has passed by these own writes: they are outside of its selector, and nobody would tell of their end.
        let outside: Vec<_> = passed.iter().filter_map(|key| self.objects.get(key).cloned()).collect();
        for object in &outside {
            self.remove(object);
        }
        outside.into_iter().map(|last| Change::Deleted { last }).collect()
    }

    fn written(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let (revision, key) = (object.meta().revision(), object.key().clone());
        let changes = self.upsert(object);
        if let Some(revision) = revision.filter(|_| !changes.is_empty()) {
            self.unreported.insert(revision, key);
        }
        changes
    }

    fn upsert(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        if self.tombstones.contains_key(&object.meta().uid) {
            return Vec::new();
        }
        let known = self.objects.get(object.key());
        let revision = object.meta().revision();
        match known {
            None if revision.is_some_and(|revision| revision <= self.revision_of(object.key())) => Vec::new(),
            Some(old) if !newer(revision, old.meta().revision()) => Vec::new(),
            _ => self.put(object),
        }
    }

    /// Takes an object in, whatever is known of its name.
    fn put(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        match self.objects.get(object.key()).cloned() {
            None => {
                self.insert(object.clone());
                vec![Change::Added(object)]
            }
            Some(old) if old.meta().uid == object.meta().uid => {
                self.change(&old, object.clone());
                vec![Change::Updated { old, new: object }]
            }
            // Re-created under the same name in a gap: its predecessor was deleted, and handlers must hear it.
            Some(old) => {
                self.remove(&old);
                self.insert(object.clone());
                vec![Change::Deleted { last: old }, Change::Added(object)]
            }
        }
    }

    fn deleted(&mut self, object: &Arc<Stored>) -> Vec<Change<Stored>> {
        let uid = &object.meta().uid;
        if self.tombstones.remove(uid).is_some() {
            return Vec::new();
        }
        match self.objects.get(object.key()).cloned() {
            Some(old) if old.meta().uid == *uid => {
                self.remove(&old);
                vec![Change::Deleted { last: object.clone() }]
            }
            _ => Vec::new(),
        }
    }

    fn gone(&mut self, key: &ObjectKey, uid: String) -> Vec<Change<Stored>> {
        match self.objects.get(key).cloned() {
            Some(old) if old.meta().uid == uid => {
                self.remove(&old);
                if self.tombstones.len() < TOMBSTONES_MAX {
                    self.tombstones.insert(uid, key.clone());
                }
                vec![Change::Deleted { last: old }]
            }
            _ => Vec::new(),
        }
    }

    fn replace(&mut self, scope: &Scope, objects: Vec<Arc<Stored>>, version: &str) -> Vec<Change<Stored>> {
        let list = version.parse::<u64>().ok();
        // A list from a server that is behind what was already seen says nothing new; nor does one that nobody wants.
        let Some(mark) = self.scopes.get(scope).map(|mark| mark.revision) else { return Vec::new() };
        if list.is_some_and(|list| list < mark) {
            return Vec::new();
        }
        let listed: HashMap<&ObjectKey, &str> =
            objects.iter().map(|object| (object.key(), object.meta().uid.as_str())).collect();
        let uids: HashSet<&str> = listed.values().copied().collect();
        // The list of one namespace knows nothing of the deletes in another.
        let listed_here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        self.tombstones.retain(|uid, key| uids.contains(uid.as_str()) || !listed_here(key));
        let mut vanished = self.of_scope(scope);
        vanished.retain(|known| !listed.contains_key(known.key()));
        vanished.retain(|known| !newer(known.meta().revision(), list) || list.is_none());
        let mut changes = Vec::new();
        for last in vanished {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        // What the list has is there, however old its last change: lower the mark while it is taken in.
        self.set_mark(scope, 0);
        for object in objects {
            changes.extend(self.upsert(object));
        }
        self.set_mark(scope, mark.max(list.unwrap_or(0)));
        // What the list had is reported, and what it had not is gone.
        let reported = list.unwrap_or(0);
        self.unreported.retain(|revision, key| *revision > reported || (scope.is_some() && key.namespace != *scope));
        changes
    }

    /// The list is the truth, whatever was known. Versions and uids of what was undone may come again.
    fn restore(&mut self, scope: &Scope, objects: Vec<Arc<Stored>>, version: &str) -> Vec<Change<Stored>> {
        if !self.scopes.contains_key(scope) {
            return Vec::new();
        }
        let here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        self.tombstones.retain(|_, key| !here(key));
        self.unreported.retain(|_, key| !here(key));
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let mut undone = self.of_scope(scope);
        undone.retain(|known| !listed.contains(known.key()));
        let mut changes = Vec::new();
        for last in undone {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        for object in objects {
            let state = |object: &Stored| (object.meta().uid.clone(), object.meta().resource_version.clone());
            if self.objects.get(object.key()).is_none_or(|known| state(known) != state(&object)) {
                changes.extend(self.put(object));
            }
        }
        self.set_mark(scope, version.parse().unwrap_or(0));
        changes
    }

    /// The scope has been listed, up to there.
    fn set_mark(&mut self, scope: &Scope, revision: u64) {
        self.scopes.insert(scope.clone(), Mark { listed: true, revision });
        self.barred.remove(scope);
    }

    fn insert(&mut self, object: Arc<Stored>) {
        let key = object.key().clone();
        self.namespaces.entry(key.namespace.clone()).or_default().insert(key.clone());
        if let Some(owner) = object.meta().controller() {
            self.owners.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        for index in &mut self.user {
            index.put(&object);
        }
        self.n_bytes += object.json().len();
        self.objects.insert(key, object);
    }

    /// Puts a new state in the place of an old one of the same object. Indexes are touched where values differ: most updates
    /// are of a status and change none.
    fn change(&mut self, old: &Stored, new: Arc<Stored>) {
        let key = new.key();
        let (before, after) = (old.meta().controller(), new.meta().controller());
        if before.map(|owner| &owner.uid) != after.map(|owner| &owner.uid) {
            if let Some(before) = before {
                take(&mut self.owners, &before.uid, key);
            }
            if let Some(after) = after {
                self.owners.entry(after.uid.clone()).or_default().insert(key.clone());
            }
        }
        for index in &mut self.user {
            index.put(&new);
        }
        if let Some(known) = self.objects.get_mut(old.key()) {
            self.n_bytes = self.n_bytes + new.json().len() - old.json().len();
            *known = new;
        }
        self.forget_write(old);
    }

    /// A version that is no longer the present one need not be reported.
    fn forget_write(&mut self, old: &Stored) {
        if let Some(revision) = old.meta().revision() {
            self.unreported.remove(&revision);
        }
    }

    fn remove(&mut self, object: &Arc<Stored>) {
        let key = object.key();
        if let Some(known) = self.objects.remove(key) {
            self.n_bytes -= known.json().len();
        }
        self.forget_write(object);
        take(&mut self.namespaces, &key.namespace, key);
        if let Some(owner) = object.meta().controller() {
            take(&mut self.owners, &owner.uid, key);
        }
        for index in &mut self.user {
            index.take(key);
        }
    }
}

/// Empty sets go: an index never grows with values that no object has any more.
fn take<V: Eq + std::hash::Hash>(index: &mut Map<V, BTreeSet<ObjectKey>>, value: &V, key: &ObjectKey) {
    if let Some(keys) = index.get_mut(value) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(value);
        }
    }
}

/// Whether `new` is a later version than `old`. Versions that do not compare are taken in the order in which they come.
fn newer(new: Option<u64>, old: Option<u64>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::Kind;

    fn pod(name: &str, uid: &str, version: u64) -> Arc<Stored> {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"a","uid":"{uid}","resourceVersion":"{version}",
            "ownerReferences":[{{"apiVersion":"v1","kind":"Set","name":"s","uid":"owner","controller":true}}]}}}}"#
        );
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    }

    /// Applies deltas, prints the changes as `+name@version`, `~name@version`, `-name@version`.
    fn check(deltas: Vec<Delta>, expected: &str) -> Cache {
        let mut cache = Cache::default();
        let mut seen = Vec::new();
        for delta in deltas {
            for change in cache.apply(delta) {
                seen.push(match change {
                    Change::Added(new) => format!("+{}@{}", new.meta().name, new.meta().resource_version),
                    Change::Updated { new, .. } => format!("~{}@{}", new.meta().name, new.meta().resource_version),
                    Change::Deleted { last } => format!("-{}@{}", last.meta().name, last.meta().resource_version),
                });
            }
        }
        assert_eq!(seen.join(" "), expected);
        assert_eq!(cache.n_bytes, cache.objects.values().map(|object| object.json().len()).sum::<usize>());
        cache
    }

    fn list(objects: &[Arc<Stored>], version: &str) -> Delta {
        Delta::Replace(None, objects.to_vec(), version.into())
    }

    #[test]
    fn own_write_is_not_undone_by_older_watch_events() {
        let cache = check(
            vec![
                list(&[pod("x", "1", 5)], "5"),
                Delta::Written(pod("x", "1", 9)),
                Delta::Apply(pod("x", "1", 7)),
                Delta::Apply(pod("x", "1", 9)),
            ],
            "+x@5 ~x@9",
        );
        assert_eq!(cache.owned_by("owner").len(), 1);
    }

    #[test]
    fn own_delete_is_not_undone_before_the_watch_reports_it() {
        let key = pod("x", "1", 5).key().clone();
        let cache = check(
            vec![
                list(&[pod("x", "1", 5)], "5"),
                Delta::Gone(key, "1".into()),
                Delta::Apply(pod("x", "1", 6)),
                Delta::Delete(pod("x", "1", 8)),
                Delta::Apply(pod("x", "2", 9)),
            ],
            "+x@5 -x@5 +x@9",
        );
        assert!(cache.tombstones.is_empty());
    }

    #[test]
    fn object_missing_from_a_relist_is_deleted_with_its_last_state() {
        check(vec![list(&[pod("x", "1", 5), pod("y", "2", 4)], "5"), list(&[pod("y", "2", 4)], "9")], "+x@5 +y@4 -x@5");
    }

    #[test]
    fn objects_missing_from_a_relist_are_deleted_in_order_of_their_keys() {
        let names = ["i", "c", "g", "a", "h", "e", "b", "f", "d"];
        let pods: Vec<_> = names.iter().map(|name| pod(name, name, 5)).collect();
        let gone = "-a@5 -b@5 -c@5 -d@5 -e@5 -f@5 -g@5 -h@5 -i@5";
        let there = names.map(|name| format!("+{name}@5")).join(" ");
        check(vec![list(&pods, "5"), list(&[], "9")], &format!("{there} {gone}"));
    }

    #[test]
    fn own_write_after_the_list_survives_the_relist() {
        check(vec![list(&[], "5"), Delta::Written(pod("x", "1", 12)), list(&[], "10")], "+x@12");
    }

    #[test]
    fn relist_older_than_what_was_seen_changes_nothing() {
        check(
            vec![
                list(&[pod("x", "1", 5)], "5"),
                Delta::Delete(pod("x", "1", 8)),
                list(&[pod("x", "1", 5)], "6"),
                Delta::Apply(pod("x", "1", 7)),
            ],
            "+x@5 -x@8",
        );
    }

    #[test]
    fn object_recreated_in_a_gap_is_a_delete_and_an_add() {
        check(vec![list(&[pod("x", "1", 5)], "5"), list(&[pod("x", "2", 8)], "9")], "+x@5 -x@5 +x@8");
    }

    #[test]
    fn write_answered_after_the_watch_reported_its_deletion_stays_deleted() {
        check(
            vec![
                list(&[], "5"),
                Delta::Apply(pod("x", "1", 6)),
                Delta::Delete(pod("x", "1", 7)),
                Delta::Written(pod("x", "1", 6)),
            ],
            "+x@6 -x@7",
        );
    }

    #[test]
    fn own_write_that_the_watch_passes_by_is_outside_of_its_selector() {
        let mark = |version: &str| Delta::Bookmark(None, version.into());
        let begin = || list(&[pod("y", "2", 4)], "5");
        check(vec![begin(), Delta::Written(pod("x", "1", 6)), mark("5")], "+y@4 +x@6");
        check(vec![begin(), Delta::Written(pod("x", "1", 6)), mark("6")], "+y@4 +x@6 -x@6");
        check(vec![begin(), Delta::Written(pod("x", "1", 6)), Delta::Apply(pod("y", "2", 7))], "+y@4 +x@6 ~y@7 -x@6");
        // What the watch reports stays, and so does a later write of the same object.
        check(vec![begin(), Delta::Written(pod("x", "1", 6)), Delta::Apply(pod("x", "1", 6)), mark("9")], "+y@4 +x@6");
        let twice = [Delta::Written(pod("x", "1", 6)), Delta::Written(pod("x", "1", 8)), mark("7")];
        check([vec![begin()], twice.into()].concat(), "+y@4 +x@6 ~x@8");
        // A list that has it reports it.
        let listed = list(&[pod("x", "1", 6), pod("y", "2", 4)], "7");
        check(vec![begin(), Delta::Written(pod("x", "1", 6)), listed, mark("9")], "+y@4 +x@6");
    }

    #[test]
    fn empty_sets_leave_the_indexes() {
        let cache = check(vec![list(&[pod("x", "1", 5)], "5"), Delta::Delete(pod("x", "1", 8))], "+x@5 -x@8");
        assert!(cache.owners.is_empty() && cache.namespaces.is_empty());
    }

    #[test]
    fn bytes_are_those_of_the_objects_that_are_there() {
        let (x, y) = (pod("x", "1", 5), pod("y", "2", 4));
        let (n_x, n_y, n_newer) = (x.json().len(), y.json().len(), pod("x", "1", 12345).json().len());
        let steps = [
            (vec![list(&[x.clone(), y.clone()], "5")], n_x + n_y),
            (vec![Delta::Apply(pod("x", "1", 12345))], n_newer + n_y),
            (vec![Delta::Delete(pod("y", "2", 12346))], n_newer),
            (vec![Delta::Clear(None)], 0),
        ];
        let mut cache = Cache::default();
        for (deltas, expected) in steps {
            for delta in deltas {
                cache.apply(delta);
            }
            assert_eq!(cache.n_bytes(), expected);
        }
    }

    #[test]
    fn object_outside_of_the_namespaces_is_not_kept_whoever_tells_of_it() {
        let mut cache = Cache::of([Some("b".into())]);
        for delta in [
            Delta::Written(pod("x", "1", 5)),
            Delta::Apply(pod("x", "1", 6)),
            Delta::Replace(Some("a".into()), vec![pod("x", "1", 6)], "6".into()),
            Delta::Delete(pod("x", "1", 7)),
        ] {
            assert!(cache.apply(delta).is_empty());
        }
        assert!(!cache.is_complete() && cache.revision() == 0);
    }

    #[test]
    fn scope_is_complete_and_written_to_from_its_list_until_it_is_opened_again() {
        let mut cache = Cache::of([Some("a".into())]);
        assert!(!cache.is_complete() && !cache.bars(Some("a")));
        let scope = || Some("a".into());
        let steps = [
            (Delta::Replace(scope(), vec![pod("x", "1", 5)], "5".into()), true, false),
            (Delta::Open(scope()), false, true),
            (Delta::Replace(scope(), vec![pod("x", "1", 5)], "6".into()), true, false),
            (Delta::Clear(scope()), true, false),
            (Delta::Close(scope()), true, true),
            (Delta::Open(scope()), false, true),
            (Delta::Restore(scope(), Vec::new(), "2".into()), true, false),
        ];
        for (delta, complete, barred) in steps {
            let text = format!("{delta:?}");
            cache.apply(delta);
            assert_eq!((cache.is_complete(), cache.bars(Some("a"))), (complete, barred), "{text}");
            assert!(!cache.bars(Some("b")), "what was never followed is nobody's business");
        }
    }

    #[test]
    fn restored_state_is_the_truth_whatever_was_known() {
        let restore = |objects: &[Arc<Stored>], version: &str| Delta::Restore(None, objects.to_vec(), version.into());
        let begin = || list(&[pod("x", "1", 50), pod("y", "2", 60)], "70");
        let key = pod("y", "2", 60).key().clone();
        let cases = [
            (vec![begin(), restore(&[pod("x", "1", 50)], "55")], "+x@50 +y@60 -y@60"),
            (vec![begin(), restore(&[pod("x", "1", 40), pod("y", "2", 60)], "65")], "+x@50 +y@60 ~x@40"),
            (vec![begin(), restore(&[pod("x", "3", 40)], "45")], "+x@50 +y@60 -y@60 -x@50 +x@40"),
            // An own delete is undone, and an own write that nobody reported never was.
            (
                vec![begin(), Delta::Gone(key, "2".into()), restore(&[pod("x", "1", 50), pod("y", "2", 60)], "65")],
                "+x@50 +y@60 -y@60 +y@60",
            ),
            (
                vec![begin(), Delta::Written(pod("z", "4", 80)), restore(&[], "30")],
                "+x@50 +y@60 +z@80 -x@50 -y@60 -z@80",
            ),
            // Versions that were seen before come again.
            (vec![begin(), restore(&[], "30"), Delta::Apply(pod("x", "5", 31))], "+x@50 +y@60 -x@50 -y@60 +x@31"),
        ];
        for (deltas, expected) in cases {
            check(deltas, expected);
        }
    }
}
