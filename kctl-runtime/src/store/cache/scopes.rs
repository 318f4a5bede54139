//! Adds, lists and closes the scopes of a cache, and blocks writes to those that are not listed yet.

use std::sync::Arc;

use super::{Cache, delta::NamespaceScope, watermarks::Watermark};
use crate::{object::Stored, store::Change};

impl Cache {
    /// Blocks writes in a scope until it has been listed, and adds the scope if it is new.
    pub(super) fn mark_incomplete(&mut self, scope: NamespaceScope) -> Vec<Change<Stored>> {
        self.concurrent_lists.end(&scope);
        self.scopes.entry(&scope).listed = false;
        self.blocked.insert(scope);
        Vec::new()
    }

    /// Empties a scope whose kind the API server does not serve. It is complete, and nothing is written there.
    pub(super) fn mark_not_served(&mut self, scope: NamespaceScope) -> Vec<Change<Stored>> {
        if !self.scopes.has(&scope) {
            return Vec::new();
        }
        let changes = self.clear(&scope);
        let watermark = self.scopes.entry(&scope);
        (watermark.listed, watermark.was_listed, watermark.absent) = (true, true, true);
        self.blocked.insert(scope);
        changes
    }

    /// Empties a scope that is no longer followed.
    pub(super) fn close(&mut self, scope: NamespaceScope) -> Vec<Change<Stored>> {
        let changes = self.clear(&scope);
        // No watch will report the end of these objects. The next list of the scope is newer than their deletion.
        self.tombstones.forget(|key| scope.is_none() || key.namespace == scope);
        self.scopes.remove(&scope);
        self.blocked.insert(scope);
        changes
    }

    /// Removes all objects of a scope.
    pub(super) fn clear(&mut self, scope: &NamespaceScope) -> Vec<Change<Stored>> {
        self.forget_reads(scope, u64::MAX);
        self.concurrent_lists.end(scope);
        if let Some(watermark) = self.scopes.get_mut(scope) {
            watermark.was_listed = false;
        }
        let objects = self.objects_in_scope(scope);
        for object in &objects {
            self.remove(object);
        }
        objects.into_iter().map(|last| Change::Deleted { last }).collect()
    }

    /// Returns the objects of a scope in the order of their keys, so that simulated runs repeat themselves.
    pub(super) fn objects_in_scope(&self, scope: &NamespaceScope) -> Vec<Arc<Stored>> {
        self.iter_listable(scope).filter(|object| self.is_in(object.key(), scope)).cloned().collect()
    }

    /// Records that the scope has been listed up to this revision.
    pub(super) fn set_watermark(&mut self, scope: &NamespaceScope, revision: u64) {
        *self.scopes.entry(scope) = Watermark { listed: true, was_listed: true, absent: false, revision };
        self.blocked.remove(scope);
    }
}
