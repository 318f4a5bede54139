//! States that were read concurrently with the watch, of a namespace or of a whole scope.

use std::{collections::HashSet, sync::Arc};

use foldhash::fast::FixedState;

use super::{Cache, delta::NamespaceScope, version_order::newer};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid, Version},
    store::Change,
};

/// The newest state in the API server, compared with the store while it was read.
pub(crate) struct ListedVersions {
    /// The keys of all objects.
    pub(crate) keys: HashSet<ObjectKey, FixedState>,
    /// Key, uid and version of the objects that the store did not have at that moment.
    pub(crate) missing: Vec<(ObjectKey, Uid, Version)>,
    /// The version of the list, if it is a number.
    pub(crate) version: Option<u64>,
}

impl Cache {
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
    pub(crate) fn has_all(&self, scope: &NamespaceScope, present: &ListedVersions) -> bool {
        let is_listed = |cached: &Arc<Stored>| {
            let is_newer =
                || cached.meta().revision().zip(present.version).is_some_and(|(revision, list)| revision > list);
            present.keys.contains(cached.key()) || is_newer()
        };
        let mut missing = present.missing.iter();
        missing.all(|(key, uid, version)| self.has(key, uid, version))
            && self.iter_listable(scope).filter(|cached| self.is_in(cached.key(), scope)).all(is_listed)
    }

    /// Applies a concurrent list of one namespace. Objects that are not in it are deleted, unless they are newer.
    pub(super) fn apply_list_during_watch(
        &mut self,
        scope: NamespaceScope,
        objects: Vec<Arc<Stored>>,
        version: &str,
    ) -> Vec<Change<Stored>> {
        let Ok(revision) = version.parse::<u64>() else { return Vec::new() };
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let is_gone =
            |cached: &&Arc<Stored>| !listed.contains(cached.key()) && !newer(cached.meta().revision(), Some(revision));
        let gone: Vec<_> = self.iter_listable(&scope).filter(is_gone).cloned().collect();
        let mut changes = Vec::new();
        for last in gone {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        // An older list proves nothing about the objects of this one: it lacks objects of a slot that was gained since.
        if self.reads_ahead.get(&scope).is_some_and(|older| *older <= revision) {
            self.reads_ahead.remove(&scope);
        }
        for object in objects {
            changes.extend(self.present_object(object));
        }
        let announced =
            self.scopes.get(&scope).or_else(|| self.scopes.get(&None)).map_or(u64::MAX, |watermark| watermark.revision);
        if revision > announced {
            let latest = self.reads_ahead.entry(scope).or_default();
            *latest = revision.max(*latest);
        }
        changes
    }

    /// Stores an object of a concurrent list of its namespace.
    ///
    /// While the whole scope is listed, the watermark of the watch proves nothing about unknown objects. The source may
    /// select more than when the watch passed them.
    fn present_object(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
        let watermark = self.scopes.get(&scope).map_or(0, |watermark| watermark.revision);
        let is_passed = object.meta().revision().is_some_and(|revision| revision <= watermark);
        if !is_passed || !self.concurrent_lists.has(&scope) {
            return self.apply_own_write(object);
        }
        if self.concurrent_lists.has_deleted(&scope, &object) {
            return Vec::new();
        }
        // The watch is past this version and will not report it, so it is not kept as unreported.
        self.below_watermark(&scope, |cache| cache.upsert(object))
    }

    /// Begins a concurrent list of a whole scope, if the scope is followed.
    pub(super) fn begin_join(&mut self, scope: NamespaceScope) -> Vec<Change<Stored>> {
        if self.scopes.has(&scope) {
            self.concurrent_lists.begin(scope);
        }
        Vec::new()
    }

    /// Returns `true` if the last concurrent list was applied, and `false` if it has to be requested again.
    pub(crate) fn has_joined(&self) -> bool {
        self.concurrent_lists.is_applied
    }

    /// Forgets concurrent lists that the watch has caught up with.
    pub(super) fn forget_reads(&mut self, scope: &NamespaceScope, revision: u64) {
        self.reads_ahead.retain(|read, until| *until > revision || (scope.is_some() && read != scope));
    }
}
