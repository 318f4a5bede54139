//! Applies the responses to own writes, before the watch reports them. This makes a reconcile read its own writes.
//!
//! [`own_writes`](crate::own_writes) recognizes the changes that come from here, and keeps them from ending a backoff.

use std::sync::Arc;

use super::Cache;
use crate::{
    key::ObjectKey,
    object::{Stored, Uid},
    store::{Change, tombstones::LastVersion},
};

impl Cache {
    /// Stores the state of an object in a response, and expects the watch to report it.
    pub(super) fn apply_own_write(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
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

    /// Removes an object that is gone by a response or a read. Leaves a tombstone until the watch reports the delete.
    pub(super) fn apply_own_delete(&mut self, key: &ObjectKey, uid: Uid) -> Vec<Change<Stored>> {
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
}
