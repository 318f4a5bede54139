//! The objects of one informer with their indexes, and the rules by which they change: pure, called by the writer alone.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::{Change, IndexFn};
use crate::{key::ObjectKey, object::Stored};

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

/// The state behind a store.
#[derive(Default)]
pub(crate) struct Cache {
    objects: Map<ObjectKey, Arc<Stored>>,
    namespaces: Map<Option<Arc<str>>, BTreeSet<ObjectKey>>,
    owners: Map<String, BTreeSet<ObjectKey>>,
    user: Vec<UserIndex>,
    /// Own deletes that the watch has not reported yet, by uid: invariant, none of them is in `objects`.
    tombstones: Map<String, ObjectKey>,
    /// Own writes that list and watch have not reported yet. Invariant: each is the present version of its object.
    unreported: BTreeMap<u64, ObjectKey>,
    /// Up to where list and watch of each scope have reported. An object that is unknown at or below it is gone.
    revisions: Map<Scope, u64>,
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
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The lowest of all scopes.
    pub(crate) fn revision(&self) -> u64 {
        self.revisions.values().min().copied().unwrap_or(0)
    }

    pub(crate) fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// The scopes that have been listed.
    pub(crate) fn n_scopes(&self) -> usize {
        self.revisions.len()
    }

    /// The scope that an object is in.
    fn scope_of(&self, key: &ObjectKey) -> Scope {
        let namespace = key.namespace.clone();
        if self.revisions.contains_key(&namespace) { namespace } else { None }
    }

    fn revision_of(&self, key: &ObjectKey) -> u64 {
        self.revisions.get(&self.scope_of(key)).copied().unwrap_or(0)
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
            Delta::Apply(object) => {
                let (scope, revision) = (self.scope_of(object.key()), object.meta().revision());
                if let Some(revision) = revision {
                    self.unreported.remove(&revision);
                }
                let mut changes = self.upsert(object);
                changes.extend(self.advance(&scope, revision));
                changes
            }
            Delta::Delete(object) => {
                let (scope, revision) = (self.scope_of(object.key()), object.meta().revision());
                let mut changes = self.deleted(&object);
                changes.extend(self.advance(&scope, revision));
                changes
            }
            Delta::Bookmark(scope, version) => self.advance(&scope, version.parse().ok()),
            // Without comparable versions an own write can't be placed in time: the watch brings it.
            Delta::Written(object) if object.meta().revision().is_none() => Vec::new(),
            Delta::Written(object) => self.written(object),
            Delta::Gone(key, uid) => self.gone(&key, uid),
        }
    }

    /// Everything of a scope up to a revision has been reported.
    fn advance(&mut self, scope: &Scope, revision: Option<u64>) -> Vec<Change<Stored>> {
        let known = self.revisions.entry(scope.clone()).or_default();
        *known = (*known).max(revision.unwrap_or(0));
        let mark = *known;
        let here = |key: &&ObjectKey| self.scope_of(key) == *scope;
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
        let known = self.objects.get(object.key()).cloned();
        let revision = object.meta().revision();
        match known {
            None if revision.is_some_and(|revision| revision <= self.revision_of(object.key())) => Vec::new(),
            None => {
                self.insert(object.clone());
                vec![Change::Added(object)]
            }
            Some(old) if !newer(revision, old.meta().revision()) => Vec::new(),
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
        // A list from a server that is behind what was already seen says nothing new.
        let mark = self.revisions.get(scope).copied().unwrap_or(0);
        if list.is_some_and(|list| list < mark) {
            return Vec::new();
        }
        let listed: HashMap<&ObjectKey, &str> =
            objects.iter().map(|object| (object.key(), object.meta().uid.as_str())).collect();
        let uids: HashSet<&str> = listed.values().copied().collect();
        // The list of one namespace knows nothing of the deletes in another.
        let listed_here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        self.tombstones.retain(|uid, key| uids.contains(uid.as_str()) || !listed_here(key));
        let mut vanished: Vec<_> = self
            .objects
            .values()
            .filter(|known| listed_here(known.key()))
            .filter(|known| !listed.contains_key(known.key()))
            .filter(|known| !newer(known.meta().revision(), list) || list.is_none())
            .cloned()
            .collect();
        // Handlers queue keys in the order of the changes, and one seed is to give one order.
        vanished.sort_by(|a, b| a.key().cmp(b.key()));
        let mut changes = Vec::new();
        for last in vanished {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        // What the list has is there, however old its last change: lower the mark while it is taken in.
        self.revisions.insert(scope.clone(), 0);
        for object in objects {
            changes.extend(self.upsert(object));
        }
        self.revisions.insert(scope.clone(), mark.max(list.unwrap_or(0)));
        // What the list had is reported, and what it had not is gone.
        let reported = list.unwrap_or(0);
        self.unreported.retain(|revision, key| *revision > reported || (scope.is_some() && key.namespace != *scope));
        changes
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
        self.objects.remove(key);
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
}
