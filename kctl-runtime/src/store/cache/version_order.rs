//! The order of the states of one object. A late event or response does not bring an older state back.

use std::sync::Arc;

use super::Cache;
use crate::{object::Stored, store::Change};

impl Cache {
    /// Stores a state unless it is old. An old state is older than the cached one, or from before an own delete. Or the
    /// watch has already passed its object without reporting it.
    pub(super) fn upsert(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
        let revision = object.meta().revision();
        if self.tombstones.blocks(&object.meta().uid, object.key(), revision) {
            return self.end_predecessor(&object);
        }
        let cached = self.get(object.key());
        match cached {
            None if revision.is_some_and(|revision| revision <= self.revision_of(object.key())) => Vec::new(),
            Some(old) if !newer(revision, old.meta().revision()) => Vec::new(),
            _ => self.put(object),
        }
    }

    /// Stores an object, and replaces the cached state under its name.
    pub(super) fn put(&mut self, object: Arc<Stored>) -> Vec<Change<Stored>> {
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

    /// Deletes the object that had this name before. The given object is not shown, but its existence proves that the
    /// earlier one is gone.
    pub(super) fn end_predecessor(&mut self, object: &Stored) -> Vec<Change<Stored>> {
        let is_before = |cached: &&Arc<Stored>| cached.meta().uid != object.meta().uid && is_later(object, cached);
        let Some(last) = self.get(object.key()).filter(is_before).cloned() else { return Vec::new() };
        self.remove(&last);
        vec![Change::Deleted { last }]
    }
}

/// Returns `true` if the first state is certainly later than the second.
pub(super) fn is_later(one: &Stored, other: &Stored) -> bool {
    one.meta().revision().zip(other.meta().revision()).is_some_and(|(one, other)| one > other)
}

/// Returns `true` if `new` is a later version than `old`. Versions that cannot be compared are applied in the order of
/// their arrival.
pub(super) fn newer(new: Option<u64>, old: Option<u64>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}
