//! Applies the events of a watch (`ADDED`, `MODIFIED`, `DELETED`) and records its progress.

use std::sync::Arc;

use super::{Cache, delta::NamespaceScope, scope_among, version_order::is_later};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid},
    store::Change,
};

impl Cache {
    /// Applies a watch event `ADDED` or `MODIFIED`.
    pub(super) fn apply_object(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
        let revision = object.meta().revision();
        if let Some(revision) = revision {
            self.unreported.remove(&revision);
            self.tombstones.record_version(revision);
        }
        self.concurrent_lists.forget_delete(&object);
        let mut changes = self.upsert(object);
        changes.extend(self.advance(&scope, revision));
        changes
    }

    /// Applies a watch event `DELETED`.
    pub(super) fn delete_object(&mut self, object: &Arc<Stored>) -> Vec<Change<Stored>> {
        let Some(scope) = self.scope_of(object.key()) else { return Vec::new() };
        let revision = object.meta().revision();
        self.concurrent_lists.record_delete(&scope, &object.meta().uid, revision);
        let mut changes = self.remove_object(object);
        changes.extend(self.advance(&scope, revision));
        changes
    }

    /// Removes an object that the watch reported as deleted, and an earlier one of its name. A later state and a
    /// successor are kept.
    fn remove_object(&mut self, object: &Arc<Stored>) -> Vec<Change<Stored>> {
        let uid = &object.meta().uid;
        if self.tombstones.record_delete(uid, object.meta().revision()) {
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

    /// Removes an object that is no longer selected, also in a later state. The watermark of the watch does not change:
    /// the cached state may be an own write, with a version that the watch has not reached.
    pub(super) fn drop_object(&mut self, object: &Stored) -> Vec<Change<Stored>> {
        let is_same = |cached: &&Arc<Stored>| cached.meta().uid == object.meta().uid;
        let Some(last) = self.get(object.key()).filter(is_same).cloned() else { return Vec::new() };
        self.remove(&last);
        vec![Change::Deleted { last }]
    }

    /// Removes an object that the watch has reported as no longer selected, at this revision. A later state is kept: it is an
    /// own write that the watch has not reached.
    pub(super) fn end_object(&mut self, key: &ObjectKey, uid: &Uid, end: Option<u64>) -> Vec<Change<Stored>> {
        let is_ended = |cached: &&Arc<Stored>| {
            let versions = cached.meta().revision().zip(end);
            cached.meta().uid == *uid && versions.is_none_or(|(cached, end)| cached <= end)
        };
        let Some(last) = self.get(key).filter(is_ended).cloned() else { return Vec::new() };
        self.remove(&last);
        vec![Change::Deleted { last }]
    }

    /// Does the same as [`advance`](Self::advance) if no object leaves the cache by it. Otherwise it changes nothing, and
    /// returns `false`.
    pub(in crate::store) fn try_advance(&mut self, scope: &NamespaceScope, revision: Option<u64>) -> bool {
        let watermark = self.scopes.get(scope).map_or(0, |watermark| watermark.revision);
        if self.unreported.range(..=watermark.max(revision.unwrap_or(0))).next().is_some() {
            return false;
        }
        let left = self.advance(scope, revision);
        debug_assert!(left.is_empty(), "only own writes that the watch has passed leave");
        true
    }

    /// Records that everything of a scope up to a revision has been reported. Own writes that the watch has passed
    /// without reporting are outside of its selector, and leave the cache.
    pub(super) fn advance(&mut self, scope: &NamespaceScope, revision: Option<u64>) -> Vec<Change<Stored>> {
        let Some(watermark) = self.scopes.get_mut(scope) else { return Vec::new() };
        watermark.revision = watermark.revision.max(revision.unwrap_or(0));
        let watermark = watermark.revision;
        self.forget_reads(scope, watermark);
        let scopes = &self.scopes;
        let here = |key: &ObjectKey| scope_among(scopes, key).is_some_and(|covering| covering == *scope);
        self.tombstones.advance(watermark, here);
        let passed = self.unreported.range(..=watermark).map(|(_, key)| key).filter(|key| here(key));
        let passed: Vec<ObjectKey> = passed.cloned().collect();
        // The watch is past these own writes without reporting them: they do not match its selector, and it would not
        // report their deletion either.
        let outside: Vec<_> = passed.iter().filter_map(|key| self.get(key).cloned()).collect();
        let is_passed = |object: &Arc<Stored>| object.meta().revision().is_some_and(|revision| revision <= watermark);
        debug_assert!(outside.iter().all(is_passed), "an object with a later version still exists");
        for object in &outside {
            self.remove(object);
        }
        outside.into_iter().map(|last| Change::Deleted { last }).collect()
    }
}
