//! The objects of one informer with their indexes, and the rules by which deltas change them. It is pure: the store's
//! writer calls it under a lock and reports the changes that it returns.

mod index;
mod joins;
mod marks;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use foldhash::fast::FixedState;

use self::{
    index::{ByKey, Map, UserIndex, take},
    joins::Joins,
    marks::{Mark, Marks},
};
use super::{
    Change, IndexFn,
    tombstones::{LastVersion, Tombstones},
};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid, Version},
};

/// The scope of one list and one watch: a namespace, or `None` for all namespaces and for cluster-scoped kinds.
pub type Scope = Option<Arc<str>>;

/// An input of a store: a message of its source, or the result of an own write or of a read beside the watch.
///
/// Versions decide which of two states is newer, never the order of arrival. Where `resourceVersion`s cannot be
/// compared as numbers, as with some aggregated API servers, the deltas of the source are applied in the order of their
/// arrival and own writes are left to the watch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Delta {
    /// The complete state of a scope at a `resourceVersion`, from a list. Objects that are not in it were deleted.
    Replace(Scope, Vec<Arc<Stored>>, String),
    /// The complete state of a scope from an API server whose state went back, for example after the restore of a
    /// backup of etcd. It replaces everything, even newer versions.
    Restore(Scope, Vec<Arc<Stored>>, String),
    /// The scope is about to be listed. Until then the store is not complete, and nothing is written there.
    Open(Scope),
    /// The API server no longer serves the kind, so its objects are gone. The kind may come back.
    Clear(Scope),
    /// The API server does not serve a kind that is optional: the store is empty and complete. Nothing is written there
    /// before it is listed.
    Absent(Scope),
    /// The scope is no longer followed: its objects leave the store as deletions, and nothing is written there.
    Close(Scope),
    /// A watch event `ADDED` or `MODIFIED`.
    Apply(Arc<Stored>),
    /// A watch event `DELETED`, with the last state.
    Delete(Arc<Stored>),
    /// The source no longer selects this object, whatever its version is. Unlike [`Delete`](Self::Delete) it does not come
    /// from the watch, so it does not prove that the watch is past the version.
    Drop(Arc<Stored>),
    /// Everything of a scope up to this `resourceVersion` has been reported.
    Bookmark(Scope, String),
    /// The objects of a namespace at a `resourceVersion`, from a list beside the watch.
    Present(Scope, Vec<Arc<Stored>>, String),
    /// The whole scope is about to be listed beside the watch. Until [`Join`](Self::Join), the store remembers which
    /// objects the watch reports as deleted.
    Listing(Scope),
    /// The complete state of a scope at a `resourceVersion`, from a list beside the watch that began after
    /// [`Listing`](Self::Listing). It is applied even if the watch is past it, because the source may select more
    /// objects than when the watch passed them. Objects whose end the watch has reported meanwhile do not come back.
    Join(Scope, Vec<Arc<Stored>>, String),
    /// The watch reported this `resourceVersion` of an object that the source does not select, by its uid. Only a list beside the
    /// watch needs it: an older state in it does not come back.
    Unselected(Scope, Uid, String),
    /// The state of one object in the response to an own write, or to a read beside the watch.
    Written(Arc<Stored>),
    /// This process deleted the object with this uid, and it is gone.
    Gone(ObjectKey, Uid),
}

/// The newest state in the API server, compared with the store while it was read.
pub(crate) struct Present {
    /// The keys of all objects.
    pub(crate) keys: HashSet<ObjectKey, FixedState>,
    /// Key, uid and version of the objects that the store did not have at that moment.
    pub(crate) missing: Vec<(ObjectKey, Uid, Version)>,
    /// The version of the list, if it is a number.
    pub(crate) version: Option<u64>,
}

/// The state behind a store.
pub(crate) struct Cache {
    objects: HashSet<ByKey, FixedState>,
    /// The size of the JSON of all objects in bytes. Invariant: 0 for an empty cache.
    n_bytes: usize,
    /// The same objects, sorted by key. Invariant: as many as in `objects`.
    sorted: BTreeSet<ByKey>,
    /// The objects of each controller, by its uid. Invariant: no set is empty.
    owners: Map<Uid, BTreeSet<ByKey>>,
    /// The indexes of `reads = K(index = f)`. A controller has few of them.
    user: Vec<UserIndex>,
    /// Own deletes that the watch has not reported yet, by uid. Invariant: none of them is in `objects`.
    tombstones: Tombstones,
    /// Versions from responses ([`Delta::Written`]) that list and watch have not reported yet. Invariant: each is the
    /// present version of its object.
    unreported: BTreeMap<u64, ObjectKey>,
    /// The scopes that are listed and watched. Own writes elsewhere are not kept, because no watch would report their
    /// deletion.
    scopes: Marks,
    /// The `resourceVersion` of namespaces that were listed beside the watch. An unknown object at or below it is
    /// deleted. Invariant: each is ahead of the watch, which makes it superfluous once it has caught up.
    read: BTreeMap<Scope, u64>,
    /// The lists beside the watch that are under way. Invariant: each is of a scope that is followed.
    joins: Joins,
    /// Scopes in which nothing may be written, because their objects are not known completely. Invariant: none of them
    /// is listed, unless the API server does not serve the kind there.
    blocked: BTreeSet<Scope>,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new([None])
    }
}

impl Cache {
    /// Creates an empty cache of these scopes.
    pub(crate) fn new(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self {
            objects: HashSet::default(),
            n_bytes: 0,
            sorted: BTreeSet::new(),
            owners: Map::default(),
            user: Vec::new(),
            tombstones: Tombstones::default(),
            unreported: BTreeMap::new(),
            scopes: Marks::new(scopes),
            read: BTreeMap::new(),
            joins: Joins::default(),
            blocked: BTreeSet::new(),
        }
    }

    /// Returns the present state of an object.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(key).map(|ByKey(object)| object)
    }

    /// Iterates over all objects, sorted by key.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.sorted.iter().map(|ByKey(object)| object)
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the size of the JSON of all objects in bytes, after compression.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the lowest `resourceVersion` up to which all scopes have been reported.
    pub(crate) fn revision(&self) -> u64 {
        self.scopes.all().map(|mark| mark.revision).min().unwrap_or(0)
    }

    /// Returns the number of own deletes that the watch has not reported.
    pub(crate) fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// Returns `true` if every scope has been listed.
    pub(crate) fn is_complete(&self) -> bool {
        self.scopes.all().all(|mark| mark.listed)
    }

    /// Returns `true` if the delta is the first list of its scope. A list after an interruption is not: it brings changes
    /// that no handler has seen.
    pub(crate) fn is_initial(&self, delta: &Delta) -> bool {
        let (Delta::Replace(scope, ..) | Delta::Restore(scope, ..)) = delta else { return false };
        self.scopes.get(scope).is_some_and(|mark| !mark.was_listed)
    }

    /// Returns `true` if the API server serves the kind in every scope.
    pub(crate) fn is_served(&self) -> bool {
        self.scopes.all().all(|mark| mark.listed && !mark.absent)
    }

    /// Returns `true` if nothing may be written in the namespace.
    pub(crate) fn blocks_writes(&self, namespace: Option<&str>) -> bool {
        !self.blocked.is_empty() && (self.blocked.contains(&None) || self.blocked.contains(&namespace.map(Arc::from)))
    }

    /// Returns the scope that an object belongs to, if there is one.
    fn scope_of(&self, key: &ObjectKey) -> Option<Scope> {
        scope_among(&self.scopes, key)
    }

    /// Returns `true` if an object belongs to the scope.
    fn is_in(&self, key: &ObjectKey, scope: &Scope) -> bool {
        self.scope_of(key).is_some_and(|covering| covering == *scope)
    }

    /// Returns the revision up to which objects of this namespace are known: an unknown object that is not newer was
    /// deleted.
    fn revision_of(&self, key: &ObjectKey) -> u64 {
        let announced = self.scope_of(key).and_then(|scope| self.scopes.get(&scope)).map_or(0, |mark| mark.revision);
        if self.read.is_empty() {
            return announced;
        }
        let read = [&key.namespace, &None].into_iter().filter_map(|scope| self.read.get(scope)).max();
        announced.max(read.copied().unwrap_or(0))
    }

    /// Returns the objects of one namespace, sorted by name. `None` selects cluster-scoped objects.
    pub(crate) fn in_namespace(&self, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.among(namespace).cloned().collect()
    }

    /// Iterates over one namespace, at a cost of its objects and not of all.
    fn among(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Stored>> {
        // The empty name sorts before all names of the namespace.
        let first = ObjectKey::new(namespace, "");
        let is_there = move |object: &&Arc<Stored>| object.meta().namespace() == namespace;
        self.sorted.range(first..).map(|ByKey(object)| object).take_while(is_there)
    }

    /// Returns the objects whose controller has this uid.
    pub(crate) fn owned_by(&self, uid: &Uid) -> Vec<Arc<Stored>> {
        self.owners.get(uid).into_iter().flatten().map(|ByKey(object)| object.clone()).collect()
    }

    /// Returns the objects with this value in an index, or `None` if there is no such index.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<Stored>>> {
        let index = self.user.iter().find(|index| index.name == name)?;
        Some(index.get(value).into_iter().flatten().filter_map(|key| self.get(key).cloned()).collect())
    }

    /// Adds an index and fills it with the present objects. An index of this name stays as it is.
    pub(crate) fn add_index(&mut self, name: &'static str, values_of: IndexFn) {
        if self.user.iter().any(|index| index.name == name) {
            return;
        }
        self.user.push(UserIndex::build(name, values_of, self.all()));
    }

    /// Applies a delta and returns the changes in order, without those that no reader can see.
    pub(crate) fn apply(&mut self, delta: Delta) -> Vec<Change<Stored>> {
        let mut changes = self.changes_of(delta);
        // Updates of fields that this cache does not keep queue no key: a heartbeat outside of a view, or a status where
        // only the metadata is read.
        changes.retain(|change| !matches!(change, Change::Updated { old, new } if new.looks_as(old)));
        self.check();
        changes
    }

    /// Checks the invariants of the scopes, of which a cache has few.
    fn check(&self) {
        let is_unknown = |scope| self.scopes.get(scope).is_none_or(|mark| !mark.listed || mark.absent);
        debug_assert!(self.blocked.iter().all(is_unknown), "writes are possible where everything is known");
        let watched = |scope| self.scopes.get(scope).or_else(|| self.scopes.get(&None)).map(|mark| mark.revision);
        let is_ahead = |(scope, revision): (_, &u64)| watched(scope).is_none_or(|watched| *revision > watched);
        debug_assert!(self.read.iter().all(is_ahead), "lists that the watch has caught up with are forgotten");
    }

    /// Applies a delta and returns all changes, with those of fields that the cache does not keep.
    fn changes_of(&mut self, delta: Delta) -> Vec<Change<Stored>> {
        match delta {
            Delta::Replace(scope, objects, version) => self.replace(&scope, objects, &version),
            Delta::Restore(scope, objects, version) => self.restore(&scope, objects, &version),
            Delta::Listing(scope) => {
                if self.scopes.has(&scope) {
                    self.joins.begin(scope);
                }
                Vec::new()
            }
            Delta::Join(scope, objects, version) => match self.joins.finish(&scope, objects) {
                Some(objects) => self.listed(&scope, objects, version.parse().ok()),
                None => Vec::new(),
            },
            Delta::Apply(object) => {
                let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
                let revision = object.meta().revision();
                if let Some(revision) = revision {
                    self.unreported.remove(&revision);
                    self.tombstones.reported(revision);
                }
                self.joins.applied(&object);
                let mut changes = self.upsert(object);
                changes.extend(self.advance(&scope, revision));
                changes
            }
            Delta::Delete(object) => {
                let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
                let revision = object.meta().revision();
                self.joins.ended(&scope, object.meta().uid.clone(), revision);
                let mut changes = self.deleted(&object);
                changes.extend(self.advance(&scope, revision));
                changes
            }
            Delta::Drop(object) => self.drop_object(&object),
            Delta::Unselected(scope, uid, version) => {
                self.joins.ended(&scope, uid, version.parse().ok());
                Vec::new()
            }
            Delta::Bookmark(scope, version) => self.advance(&scope, version.parse().ok()),
            // Versions that are not numbers have no order, so the watch has to deliver the own write.
            Delta::Written(object) if object.meta().revision().is_none() => Vec::new(),
            Delta::Written(object) if self.scope_of(object.key()).is_none() => Vec::new(),
            Delta::Written(object) => self.written(object),
            Delta::Gone(key, uid) => self.gone(&key, uid),
            Delta::Present(scope, objects, version) => self.present(scope, objects, &version),
            Delta::Open(scope) => {
                self.joins.end(&scope);
                self.scopes.entry(&scope).listed = false;
                self.blocked.insert(scope);
                Vec::new()
            }
            Delta::Clear(scope) => self.clear(&scope),
            Delta::Absent(scope) => {
                if !self.scopes.has(&scope) {
                    return Vec::new();
                }
                let changes = self.clear(&scope);
                let mark = self.scopes.entry(&scope);
                (mark.listed, mark.was_listed, mark.absent) = (true, true, true);
                self.blocked.insert(scope);
                changes
            }
            Delta::Close(scope) => {
                let changes = self.clear(&scope);
                // No watch will report the end of these objects. The next list of the scope is newer than their deletion.
                self.tombstones.forget(|key| scope.is_none() || key.namespace == scope);
                self.scopes.remove(&scope);
                self.blocked.insert(scope);
                changes
            }
        }
    }

    /// Returns the objects of a scope in the order of their keys, so that simulated runs repeat themselves.
    fn of_scope(&self, scope: &Scope) -> Vec<Arc<Stored>> {
        self.all().filter(|object| self.is_in(object.key(), scope)).cloned().collect()
    }

    /// Returns `true` if the cache has this state of an object, or a newer one.
    pub(crate) fn has(&self, key: &ObjectKey, uid: &Uid, version: &Version) -> bool {
        match self.get(key) {
            Some(cached) if cached.meta().resource_version == *version => true,
            Some(cached) => {
                cached.meta().revision().zip(version.number()).is_some_and(|(revision, written)| revision > written)
            }
            None => self.tombstones.has(uid),
        }
    }

    /// Returns `true` if the cache has everything that `present` lists, or a newer state of it, and nothing that it
    /// lacks.
    pub(crate) fn has_all(&self, scope: &Scope, present: &Present) -> bool {
        let is_there = |cached: &Arc<Stored>| {
            let is_newer =
                || cached.meta().revision().zip(present.version).is_some_and(|(revision, list)| revision > list);
            present.keys.contains(cached.key()) || is_newer()
        };
        let mut missing = present.missing.iter();
        missing.all(|(key, uid, version)| self.has(key, uid, version))
            && self.all().filter(|cached| self.is_in(cached.key(), scope)).all(is_there)
    }

    /// Removes all objects of a scope.
    fn clear(&mut self, scope: &Scope) -> Vec<Change<Stored>> {
        self.forget_reads(scope, u64::MAX);
        self.joins.end(scope);
        if let Some(mark) = self.scopes.get_mut(scope) {
            mark.was_listed = false;
        }
        let objects = self.of_scope(scope);
        for object in &objects {
            self.remove(object);
        }
        objects.into_iter().map(|last| Change::Deleted { last }).collect()
    }

    /// Records that everything of a scope up to a revision has been reported. Own writes that the watch has passed
    /// without reporting are outside of its selector, and leave the cache.
    fn advance(&mut self, scope: &Scope, revision: Option<u64>) -> Vec<Change<Stored>> {
        let Some(mark) = self.scopes.get_mut(scope) else { return Vec::new() };
        mark.revision = mark.revision.max(revision.unwrap_or(0));
        let mark = mark.revision;
        self.forget_reads(scope, mark);
        let scopes = &self.scopes;
        let here = |key: &ObjectKey| scope_among(scopes, key).is_some_and(|covering| covering == *scope);
        self.tombstones.passed(mark, here);
        let passed = self.unreported.range(..=mark).map(|(_, key)| key).filter(|key| here(key));
        let passed: Vec<ObjectKey> = passed.cloned().collect();
        // The watch is past these own writes without reporting them: they do not match its selector, and it would not
        // report their deletion either.
        let outside: Vec<_> = passed.iter().filter_map(|key| self.get(key).cloned()).collect();
        let is_passed = |object: &Arc<Stored>| object.meta().revision().is_some_and(|revision| revision <= mark);
        debug_assert!(outside.iter().all(is_passed), "an object with a later version still exists");
        for object in &outside {
            self.remove(object);
        }
        outside.into_iter().map(|last| Change::Deleted { last }).collect()
    }

    /// Stores the state of an object in a response, and expects the watch to report it.
    fn written(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let (revision, key) = (object.meta().revision(), object.key().clone());
        let changes = self.upsert(object);
        // `upsert` does not store a state from before a delete. Then the changes only remove a predecessor of that name, and
        // the watch will not report the write.
        let is_present = |revision| self.get(&key).is_some_and(|stored| stored.meta().revision() == Some(revision));
        if let Some(revision) = revision.filter(|revision| !changes.is_empty() && is_present(*revision)) {
            self.unreported.insert(revision, key);
        }
        changes
    }

    /// Stores a state unless it is old: older than the cached one, from before an own delete, or of an object that the
    /// watch has already passed without reporting it.
    fn upsert(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let revision = object.meta().revision();
        if self.tombstones.block(&object.meta().uid, object.key(), revision) {
            return self.end_predecessor(&object);
        }
        let cached = self.get(object.key());
        match cached {
            None if revision.is_some_and(|revision| revision <= self.revision_of(object.key())) => Vec::new(),
            Some(old) if !newer(revision, old.meta().revision()) => Vec::new(),
            _ => self.put(object),
        }
    }

    /// Applies a list of one namespace beside the watch. Objects that are not in it are deleted, unless they are newer.
    fn present(&mut self, scope: Scope, objects: Vec<Arc<Stored>>, version: &str) -> Vec<Change<Stored>> {
        let Ok(revision) = version.parse::<u64>() else { return Vec::new() };
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let is_gone = |cached: &&Arc<Stored>| {
            let is_here = scope.is_none() || cached.key().namespace == scope;
            is_here && !listed.contains(cached.key()) && !newer(cached.meta().revision(), Some(revision))
        };
        let gone: Vec<_> = self.all().filter(is_gone).cloned().collect();
        let mut changes = Vec::new();
        for last in gone {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        // An older list proves nothing about the objects of this one: it lacks those of a slot that was gained since.
        if self.read.get(&scope).is_some_and(|older| *older <= revision) {
            self.read.remove(&scope);
        }
        for object in objects {
            changes.extend(self.present_object(object));
        }
        let announced =
            self.scopes.get(&scope).or_else(|| self.scopes.get(&None)).map_or(u64::MAX, |mark| mark.revision);
        if revision > announced {
            let latest = self.read.entry(scope).or_default();
            *latest = revision.max(*latest);
        }
        changes
    }

    /// Stores an object of a list of its namespace beside the watch.
    ///
    /// While the whole scope is listed, the mark of the watch proves nothing about unknown objects: the source may
    /// select more than when the watch passed them.
    fn present_object(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
        let mark = self.scopes.get(&scope).map_or(0, |mark| mark.revision);
        let is_passed = object.meta().revision().is_some_and(|revision| revision <= mark);
        if !is_passed || !self.joins.has(&scope) {
            return self.written(object);
        }
        if self.joins.has_deleted(&scope, &object) {
            return Vec::new();
        }
        // The watch is past this version and will not report it, so it is not kept as unreported.
        self.below_mark(&scope, |cache| cache.upsert(object))
    }

    /// Applies objects that exist although the watch has passed their versions.
    fn below_mark<T>(&mut self, scope: &Scope, apply: impl FnOnce(&mut Self) -> T) -> T {
        let Some(mark) = self.scopes.get_mut(scope).map(|mark| std::mem::take(&mut mark.revision)) else {
            return apply(self);
        };
        let applied = apply(self);
        if let Some(lowered) = self.scopes.get_mut(scope) {
            lowered.revision = mark;
        }
        applied
    }

    /// Returns `true` if the last list beside the watch was applied, and `false` if it has to be requested again.
    pub(crate) fn has_joined(&self) -> bool {
        self.joins.is_applied
    }

    /// Forgets lists beside the watch that the watch has caught up with.
    fn forget_reads(&mut self, scope: &Scope, revision: u64) {
        self.read.retain(|read, until| *until > revision || (scope.is_some() && read != scope));
    }

    /// Stores an object, and replaces the cached state under its name.
    fn put(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        match self.get(object.key()).cloned() {
            None => {
                self.insert(object.clone());
                vec![Change::Added(object)]
            }
            Some(old) if old.meta().uid == object.meta().uid => {
                self.change(&old, object.clone());
                vec![Change::Updated { old, new: object }]
            }
            // A successor was created while the watch was down. Handlers must also get the deletion of its predecessor.
            Some(old) => {
                self.remove(&old);
                self.insert(object.clone());
                vec![Change::Deleted { last: old }, Change::Added(object)]
            }
        }
    }

    /// Removes an object that the watch reported as deleted, and an earlier one of its name. A later state and a
    /// successor stay.
    fn deleted(&mut self, object: &Arc<Stored>) -> Vec<Change<Stored>> {
        let uid = &object.meta().uid;
        if self.tombstones.ended(uid, object.meta().revision()) {
            return self.end_predecessor(object);
        }
        match self.get(object.key()).cloned() {
            // It stopped matching the selector before this process wrote it. The watch has not reached that write yet.
            Some(old) if is_later(&old, object) => Vec::new(),
            Some(old) if old.meta().uid == *uid => {
                self.remove(&old);
                vec![Change::Deleted { last: object.clone() }]
            }
            _ => self.end_predecessor(object),
        }
    }

    /// Removes an object that is no longer selected, also in a later state. The mark of the watch stays: the cached state
    /// may be an own write, with a version that the watch has not reached.
    fn drop_object(&mut self, object: &Stored) -> Vec<Change<Stored>> {
        let is_same = |cached: &&Arc<Stored>| cached.meta().uid == object.meta().uid;
        let Some(last) = self.get(object.key()).filter(is_same).cloned() else { return Vec::new() };
        self.remove(&last);
        vec![Change::Deleted { last }]
    }

    /// Deletes the object that had this name before. The given object is not shown, but its existence proves that the
    /// earlier one is gone.
    fn end_predecessor(&mut self, object: &Stored) -> Vec<Change<Stored>> {
        let is_before = |cached: &&Arc<Stored>| cached.meta().uid != object.meta().uid && is_later(object, cached);
        let Some(last) = self.get(object.key()).filter(is_before).cloned() else { return Vec::new() };
        self.remove(&last);
        vec![Change::Deleted { last }]
    }

    /// Removes an object that this process deleted, and leaves a tombstone until the watch reports the delete.
    fn gone(&mut self, key: &ObjectKey, uid: Uid) -> Vec<Change<Stored>> {
        match self.get(key).cloned() {
            Some(old) if old.meta().uid == uid => {
                let revision = old.meta().revision();
                let is_reported = revision.is_none_or(|revision| !self.unreported.contains_key(&revision));
                let last = if is_reported { LastVersion::Reported } else { LastVersion::Unreported };
                self.remove(&old);
                self.tombstones.add(uid, key.clone(), revision, last);
                vec![Change::Deleted { last: old }]
            }
            _ => {
                self.tombstones.add_unknown(&uid);
                Vec::new()
            }
        }
    }

    /// Applies a list of a scope: objects that it lacks were deleted, unless the cached state is newer than the list.
    fn replace(&mut self, scope: &Scope, objects: Vec<Arc<Stored>>, version: &str) -> Vec<Change<Stored>> {
        let list = version.parse::<u64>().ok();
        // A list of a scope that is no longer followed is ignored.
        let Some(mark) = self.scopes.get(scope) else { return Vec::new() };
        let (revision, has_objects) = (mark.revision, mark.was_listed && !mark.absent);
        if list.is_some_and(|list| list < revision) {
            // The cache is newer than the list. It was opened again, and the list proves that the kind is served.
            if has_objects {
                self.set_mark(scope, revision);
            }
            return Vec::new();
        }
        self.joins.end(scope);
        self.listed(scope, objects, list)
    }

    /// Applies a list of a scope. Each of its objects exists, even if the watch is past its version.
    fn listed(&mut self, scope: &Scope, objects: Vec<Arc<Stored>>, list: Option<u64>) -> Vec<Change<Stored>> {
        let Some(mark) = self.scopes.get(scope).map(|mark| mark.revision) else { return Vec::new() };
        // The list of one namespace proves nothing about deletes in another one.
        let listed_here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        if !self.tombstones.is_empty() {
            let uids: HashSet<&Uid> = objects.iter().map(|object| &object.meta().uid).collect();
            self.tombstones.listed(&uids, list, listed_here);
        }
        self.forget_reads(scope, list.unwrap_or(u64::MAX));
        let mut changes = Vec::new();
        let vanished = if self.objects.is_empty() { Vec::new() } else { self.vanished(scope, &objects, list) };
        for last in vanished {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        for object in objects {
            changes.extend(self.below_mark(scope, |cache| cache.upsert(object)));
        }
        self.set_mark(scope, mark.max(list.unwrap_or(0)));
        // The list reports all own writes up to its version: an object that it lacks is gone.
        let reported = list.unwrap_or(0);
        self.unreported.retain(|revision, key| *revision > reported || (scope.is_some() && key.namespace != *scope));
        changes
    }

    /// Returns the objects of a scope that a list would contain if they still existed.
    fn vanished(&self, scope: &Scope, objects: &[Arc<Stored>], list: Option<u64>) -> Vec<Arc<Stored>> {
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let is_unlisted = |cached: &&Arc<Stored>| self.is_in(cached.key(), scope) && !listed.contains(cached.key());
        let is_older = |cached: &&Arc<Stored>| !newer(cached.meta().revision(), list) || list.is_none();
        self.all().filter(is_unlisted).filter(is_older).cloned().collect()
    }

    /// Replaces a scope by a list, even if the cache is newer. Versions and uids that were undone may appear again.
    fn restore(&mut self, scope: &Scope, objects: Vec<Arc<Stored>>, version: &str) -> Vec<Change<Stored>> {
        if !self.scopes.has(scope) {
            return Vec::new();
        }
        self.joins.end(scope);
        let here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        self.tombstones.forget(here);
        self.tombstones.forget_ended();
        self.forget_reads(scope, u64::MAX);
        self.unreported.retain(|_, key| !here(key));
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let mut undone = self.of_scope(scope);
        undone.retain(|deleted| !listed.contains(deleted.key()));
        let mut changes = Vec::new();
        for last in undone {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        for object in objects {
            let state = |object: &Stored| (object.meta().uid.clone(), object.meta().resource_version.clone());
            if self.get(object.key()).is_none_or(|cached| state(cached) != state(&object)) {
                changes.extend(self.put(object));
            }
        }
        self.set_mark(scope, version.parse().unwrap_or(0));
        changes
    }

    /// Records that the scope has been listed up to this revision.
    fn set_mark(&mut self, scope: &Scope, revision: u64) {
        *self.scopes.entry(scope) = Mark { listed: true, was_listed: true, absent: false, revision };
        self.blocked.remove(scope);
    }

    /// Adds an object to the cache and all indexes. Its name is free.
    fn insert(&mut self, object: Arc<Stored>) {
        debug_assert!(!self.objects.contains(object.key()), "an object of this name leaves all indexes first");
        debug_assert!(!self.tombstones.has(&object.meta().uid), "an object that this process deleted does not return");
        for index in &mut self.user {
            index.put(&object);
        }
        self.n_bytes += object.n_bytes();
        let entry = ByKey(object);
        if let Some(owner) = entry.0.meta().controller() {
            self.owners.entry(owner.uid.clone()).or_default().insert(entry.clone());
        }
        self.sorted.insert(entry.clone());
        self.objects.insert(entry);
        debug_assert_eq!(self.objects.len(), self.sorted.len(), "both hold the same objects");
    }

    /// Replaces the state of an object by a newer one of the same object.
    fn change(&mut self, old: &Stored, new: Arc<Stored>) {
        for index in &mut self.user {
            index.put(&new);
        }
        debug_assert_eq!(old.meta().uid, new.meta().uid, "a successor is a deletion and an addition for handlers");
        self.n_bytes = self.n_bytes + new.n_bytes() - old.n_bytes();
        let entry = ByKey(new);
        let (before, after) = (old.meta().controller(), entry.0.meta().controller());
        let is_moved = before.map(|owner| &owner.uid) != after.map(|owner| &owner.uid);
        if let Some(before) = before.filter(|_| is_moved) {
            take(&mut self.owners, &before.uid, old.key());
        }
        if let Some(after) = after {
            self.owners.entry(after.uid.clone()).or_default().replace(entry.clone());
        }
        self.sorted.replace(entry.clone());
        self.objects.replace(entry);
        self.forget_write(old);
    }

    /// Forgets that a version has to be reported, because it is no longer the present one.
    fn forget_write(&mut self, old: &Stored) {
        if let Some(revision) = old.meta().revision() {
            self.unreported.remove(&revision);
        }
    }

    /// Removes an object from the cache and all indexes.
    fn remove(&mut self, object: &Arc<Stored>) {
        let key = object.key();
        if let Some(ByKey(removed)) = self.objects.take(key) {
            self.n_bytes -= removed.n_bytes();
        }
        self.forget_write(object);
        self.sorted.remove(key);
        if let Some(owner) = object.meta().controller() {
            take(&mut self.owners, &owner.uid, key);
        }
        for index in &mut self.user {
            index.take(key);
        }
        debug_assert_eq!(self.objects.len(), self.sorted.len(), "both hold the same objects");
        debug_assert!(!self.objects.is_empty() || self.n_bytes == 0, "the sizes of all objects were subtracted again");
        debug_assert!(
            !self.objects.is_empty() || self.owners.is_empty(),
            "no removed object stays with its controller"
        );
    }
}

/// Returns the followed scope of a key: its namespace, or the scope of all namespaces.
fn scope_among(marks: &Marks, key: &ObjectKey) -> Option<Scope> {
    let scopes = [key.namespace.clone(), None];
    scopes.into_iter().find(|scope| marks.has(scope))
}

/// Returns `true` if the first state is certainly later than the second.
fn is_later(one: &Stored, other: &Stored) -> bool {
    one.meta().revision().zip(other.meta().revision()).is_some_and(|(one, other)| one > other)
}

/// Returns `true` if `new` is a later version than `old`. Versions that cannot be compared are applied in the order of
/// their arrival.
fn newer(new: Option<u64>, old: Option<u64>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}
