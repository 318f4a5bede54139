//! Applies lists: an object that a complete list lacks was deleted.

use std::{collections::HashSet, sync::Arc};

use super::{Cache, delta::NamespaceScope, version_order::newer};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid},
    store::Change,
};

impl Cache {
    /// Applies a list of a scope: objects that it lacks were deleted, unless the cached state is newer than the list.
    pub(super) fn replace(
        &mut self,
        scope: &NamespaceScope,
        objects: Vec<Arc<Stored>>,
        version: &str,
    ) -> Vec<Change<Stored>> {
        let list = version.parse::<u64>().ok();
        // A list of a scope that is no longer followed is ignored.
        let Some(watermark) = self.scopes.get(scope) else { return Vec::new() };
        let (revision, has_objects) = (watermark.revision, watermark.was_listed && !watermark.absent);
        if list.is_some_and(|list| list < revision) {
            // The cache is newer than the list. It was marked as incomplete, and the list proves that the kind is served.
            if has_objects {
                self.set_watermark(scope, revision);
            }
            return Vec::new();
        }
        self.concurrent_lists.end(scope);
        self.apply_list(scope, objects, list)
    }

    /// Applies a list of a scope. Each of its objects exists, even if the watch is past its version.
    pub(super) fn apply_list(
        &mut self,
        scope: &NamespaceScope,
        objects: Vec<Arc<Stored>>,
        list: Option<u64>,
    ) -> Vec<Change<Stored>> {
        let Some(watermark) = self.scopes.get(scope).map(|watermark| watermark.revision) else { return Vec::new() };
        // The list of one namespace proves nothing about deletes in other namespaces.
        let listed_here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        let went_back = objects.iter().any(|object| self.is_undone_by(object, list));
        if went_back {
            self.n_restores += 1;
            self.tombstones.forget(listed_here);
            self.tombstones.forget_ended();
        }
        if !self.tombstones.is_empty() {
            let uids: HashSet<&Uid> = objects.iter().map(|object| &object.meta().uid).collect();
            self.tombstones.apply_list(&uids, list, listed_here);
        }
        self.forget_reads(scope, list.unwrap_or(u64::MAX));
        let mut changes = Vec::new();
        let missing = if self.objects.is_empty() { Vec::new() } else { self.missing_from_list(scope, &objects, list) };
        for last in missing {
            self.remove(&last);
            changes.push(Change::Deleted { last });
        }
        for object in objects {
            let is_undone = went_back && self.is_undone_by(&object, list);
            let store = |cache: &mut Self| if is_undone { cache.put(object) } else { cache.upsert(object) };
            changes.extend(self.below_watermark(scope, store));
        }
        self.set_watermark(scope, watermark.max(list.unwrap_or(0)));
        // The list reports all own writes up to its version: an object that it lacks is gone.
        let reported = list.unwrap_or(0);
        self.unreported.retain(|revision, key| *revision > reported || (scope.is_some() && key.namespace != *scope));
        changes
    }

    /// Returns `true` if a listed object is older than the cached one, although the list is not.
    ///
    /// Then the API server was restored from a backup with `etcdutl snapshot restore --bump-revision`, as the
    /// documentation of Kubernetes recommends. Objects have earlier versions again, and lists have later ones.
    ///
    /// A listed state that was received before the cached one proves nothing. It was the cached state when the list arrived,
    /// and represents an item that cannot be decoded.
    fn is_undone_by(&self, listed: &Stored, list: Option<u64>) -> bool {
        let cached = self.get(listed.key()).filter(|cached| !listed.was_received_before(cached));
        let versions = cached.and_then(|cached| cached.meta().revision()).zip(listed.meta().revision()).zip(list);
        versions.is_some_and(|((cached, listed), list)| listed < cached && cached <= list)
    }

    /// Returns the objects of a scope that a list would contain if they still existed.
    fn missing_from_list(
        &self,
        scope: &NamespaceScope,
        objects: &[Arc<Stored>],
        list: Option<u64>,
    ) -> Vec<Arc<Stored>> {
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let is_unlisted = |cached: &&Arc<Stored>| self.is_in(cached.key(), scope) && !listed.contains(cached.key());
        let is_older = |cached: &&Arc<Stored>| !newer(cached.meta().revision(), list) || list.is_none();
        self.iter_listable(scope).filter(is_unlisted).filter(is_older).cloned().collect()
    }

    /// Replaces a scope by a list, even if the cache is newer. Versions and uids that were undone may appear again.
    pub(super) fn restore(
        &mut self,
        scope: &NamespaceScope,
        objects: Vec<Arc<Stored>>,
        version: &str,
    ) -> Vec<Change<Stored>> {
        if !self.scopes.has(scope) {
            return Vec::new();
        }
        self.n_restores += 1;
        self.concurrent_lists.end(scope);
        let here = |key: &ObjectKey| scope.is_none() || key.namespace == *scope;
        self.tombstones.forget(here);
        self.tombstones.forget_ended();
        self.forget_reads(scope, u64::MAX);
        self.unreported.retain(|_, key| !here(key));
        let listed: HashSet<&ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let mut undone = self.objects_in_scope(scope);
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
        self.set_watermark(scope, version.parse().unwrap_or(0));
        changes
    }

    /// Calls `apply` with a watermark of 0, and restores the watermark afterwards.
    ///
    /// It is for objects that certainly exist, but whose versions the watch has passed. With the real watermark
    /// [`upsert`](Self::upsert) would ignore them as deleted. `apply` must not advance the watermark.
    pub(super) fn below_watermark<T>(&mut self, scope: &NamespaceScope, apply: impl FnOnce(&mut Self) -> T) -> T {
        let Some(watermark) = self.scopes.get_mut(scope).map(|watermark| std::mem::take(&mut watermark.revision))
        else {
            return apply(self);
        };
        let applied = apply(self);
        if let Some(lowered) = self.scopes.get_mut(scope) {
            lowered.revision = watermark;
        }
        applied
    }
}
