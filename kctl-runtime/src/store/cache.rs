//! The objects of one informer with their indexes, and the rules for applying deltas to them. It is pure: the
//! store calls it under a lock, and its writer reports the changes that it returns.

mod concurrent_lists;
mod delta;
mod events;
mod index;
mod list;
mod list_during_watch;
mod objects;
mod own_write;
mod scopes;
#[cfg(test)]
mod tests;
mod version_order;
mod watermarks;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use foldhash::fast::FixedState;

use self::{
    concurrent_lists::ConcurrentLists,
    index::{ByKey, Map, UserIndex},
    watermarks::Watermarks,
};
use super::{Change, tombstones::Tombstones};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid},
};

pub use self::delta::{Delta, NamespaceScope};
pub(crate) use self::list_during_watch::ListedVersions;

/// The state behind a store.
pub(crate) struct Cache {
    objects: HashSet<ByKey, FixedState>,
    /// The size of the JSON of all objects in bytes, after compression. Invariant: 0 for an empty cache.
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
    scopes: Watermarks,
    /// The `resourceVersion` of namespaces that were listed concurrently with the watch. An unknown object at or below
    /// it is deleted. Invariant: each is ahead of the watch; it is removed once the watch has caught up.
    reads_ahead: BTreeMap<NamespaceScope, u64>,
    /// The concurrent lists in progress. Invariant: each is of a scope that is followed.
    concurrent_lists: ConcurrentLists,
    /// Scopes in which nothing may be written, because their objects are not known completely. Invariant: none of them
    /// is listed, unless the API server does not serve the kind there.
    ///
    /// A removed namespace is kept until it is added again, because reconciles from before may still write there. So
    /// there is one name per namespace that was ever removed.
    blocked: BTreeSet<NamespaceScope>,
    /// Number of lists that showed that the API server's state went back.
    n_restores: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self::new([None])
    }
}

impl Cache {
    pub(crate) fn new(scopes: impl IntoIterator<Item = NamespaceScope>) -> Self {
        Self {
            objects: HashSet::default(),
            n_bytes: 0,
            sorted: BTreeSet::new(),
            owners: Map::default(),
            user: Vec::new(),
            tombstones: Tombstones::default(),
            unreported: BTreeMap::new(),
            scopes: Watermarks::new(scopes),
            reads_ahead: BTreeMap::new(),
            concurrent_lists: ConcurrentLists::default(),
            blocked: BTreeSet::new(),
            n_restores: 0,
        }
    }

    /// Returns the lowest `resourceVersion` up to which all scopes have been reported.
    pub(crate) fn revision(&self) -> u64 {
        self.scopes.all().map(|mark| mark.revision).min().unwrap_or(0)
    }

    /// Returns the number of own deletes that the watch has not reported.
    pub(crate) fn n_tombstones(&self) -> usize {
        self.tombstones.len()
    }

    /// Returns how often the API server's state went back, so that versions from before say nothing about later ones.
    pub(crate) fn n_restores(&self) -> u64 {
        self.n_restores
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

    /// Returns `true` if it is certain that the API server does not serve the kind in this scope.
    pub(crate) fn is_absent(&self, scope: &NamespaceScope) -> bool {
        self.scopes.get(scope).is_some_and(|mark| mark.listed && mark.absent)
    }

    /// Returns `true` if nothing may be written in the namespace.
    pub(crate) fn blocks_writes(&self, namespace: Option<&str>) -> bool {
        !self.blocked.is_empty() && (self.blocked.contains(&None) || self.blocked.contains(&namespace.map(Arc::from)))
    }

    /// Returns the scope that an object belongs to, if there is one.
    fn scope_of(&self, key: &ObjectKey) -> Option<NamespaceScope> {
        scope_among(&self.scopes, key)
    }

    /// Returns `true` if an object belongs to the scope.
    fn is_in(&self, key: &ObjectKey, scope: &NamespaceScope) -> bool {
        self.scope_of(key).is_some_and(|covering| covering == *scope)
    }

    /// Returns the revision up to which objects of this namespace are known: an unknown object that is not newer was
    /// deleted.
    fn revision_of(&self, key: &ObjectKey) -> u64 {
        let announced = self.scope_of(key).and_then(|scope| self.scopes.get(&scope)).map_or(0, |mark| mark.revision);
        if self.reads_ahead.is_empty() {
            return announced;
        }
        let read = [&key.namespace, &None].into_iter().filter_map(|scope| self.reads_ahead.get(scope)).max();
        announced.max(read.copied().unwrap_or(0))
    }

    /// Applies a delta and returns the changes in order, without those that no reader can see.
    pub(crate) fn apply(&mut self, delta: Delta) -> Vec<Change<Stored>> {
        let mut changes = self.changes_of(delta);
        // Updates of fields that this cache does not keep queue no key: a heartbeat outside of a view, or a status where
        // only the metadata is read.
        changes.retain(|change| !matches!(change, Change::Updated { old, new } if new.equals_except_version(old)));
        self.check();
        changes
    }

    /// Checks the invariants of the scopes and of the oldest own write. A cache has few scopes.
    fn check(&self) {
        let is_unknown = |scope| self.scopes.get(scope).is_none_or(|mark| !mark.listed || mark.absent);
        debug_assert!(self.blocked.iter().all(is_unknown), "writes are possible where everything is known");
        let watched = |scope| self.scopes.get(scope).or_else(|| self.scopes.get(&None)).map(|mark| mark.revision);
        let is_ahead = |(scope, revision): (_, &u64)| watched(scope).is_none_or(|watched| *revision > watched);
        debug_assert!(self.reads_ahead.iter().all(is_ahead), "lists that the watch has caught up with are forgotten");
        debug_assert!(
            self.concurrent_lists.scopes().all(|scope| self.scopes.has(scope)),
            "only followed scopes are listed"
        );
        let is_present = |(revision, key): (&u64, &ObjectKey)| {
            self.get(key).and_then(|object| object.meta().revision()) == Some(*revision)
        };
        debug_assert!(self.unreported.first_key_value().is_none_or(is_present), "the watch may report this write");
    }

    /// Applies a delta and returns all changes, including changes of fields that the cache does not keep.
    fn changes_of(&mut self, delta: Delta) -> Vec<Change<Stored>> {
        match delta {
            Delta::Replace(scope, objects, version) => self.replace(&scope, objects, &version),
            Delta::Restore(scope, objects, version) => self.restore(&scope, objects, &version),
            Delta::Listing(scope) => self.begin_join(scope),
            Delta::Join(scope, objects, version) => match self.concurrent_lists.finish(&scope, objects) {
                Some(objects) => self.apply_list(&scope, objects, version.parse().ok()),
                None => Vec::new(),
            },
            Delta::Apply(object) => self.apply_object(object),
            Delta::Delete(object) => self.delete_object(&object),
            Delta::Drop(object) => self.drop_object(&object),
            Delta::Leave(key, uid, version) => self.end_object(&key, &uid, version.parse().ok()),
            Delta::Unselected(scope, uid, version) => {
                let revision = version.parse().ok();
                self.tombstones.record_delete(&uid, revision);
                self.concurrent_lists.record_delete(&scope, &uid, revision);
                Vec::new()
            }
            Delta::Bookmark(scope, version) => self.advance(&scope, version.parse().ok()),
            // Versions that are not numbers have no order, so the watch has to deliver the own write.
            Delta::Written(object) if object.meta().revision().is_none() => Vec::new(),
            Delta::Written(object) if self.scope_of(object.key()).is_none() => Vec::new(),
            Delta::Written(object) => self.apply_own_write(object),
            Delta::Gone(key, uid) => self.apply_own_delete(&key, uid),
            Delta::ListDuringWatch(scope, objects, version) => self.apply_list_during_watch(scope, objects, &version),
            Delta::Incomplete(scope) => self.mark_incomplete(scope),
            Delta::Clear(scope) => self.clear(&scope),
            Delta::Absent(scope) => self.mark_not_served(scope),
            Delta::Close(scope) => self.close(scope),
        }
    }
}

/// Returns the followed scope of a key: its namespace, or the scope of all namespaces.
fn scope_among(watermarks: &Watermarks, key: &ObjectKey) -> Option<NamespaceScope> {
    let scopes = [key.namespace.clone(), None];
    scopes.into_iter().find(|scope| watermarks.has(scope))
}
