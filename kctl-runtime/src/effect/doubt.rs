//! Writes of unknown outcome, by the key whose reconcile sent them.
//!
//! A reconcile that runs on a cache without its own last write would repeat it. So a key with such a write
//! waits until the cache has listed the namespace in question.
//!
//! client-go's controllers solve the same problem with *expectations* (`pkg/controller/controller_utils.go` in
//! Kubernetes): they count the creates and deletes that the watch has not shown, and give up waiting after five
//! minutes. Here there is nothing to count. The list is of the newest state, so it contains the write or proves its
//! absence.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::{ApiError, Target};
use crate::{key::ObjectKey, source::Source, store::Scope};

/// Caches and namespaces that have to be listed before a key is reconciled again.
///
/// A key rarely has more than one, so a linear search is enough.
type Places = Vec<(Arc<Source>, Scope)>;

/// The uncertain writes of one controller. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct Doubts(Arc<Mutex<HashMap<ObjectKey, Places>>>);

/// A write that is under way.
///
/// Dropping it leaves the write marked as uncertain: that covers a lost answer, a cancelled reconcile and
/// a panic alike. [`settle`](Self::settle) removes the mark.
pub(super) struct Doubt {
    doubts: Doubts,
    /// The key that is held back.
    by: ObjectKey,
    /// The cache and namespace of the write. `None` once the outcome is known.
    place: Option<(Arc<Source>, Scope)>,
}

impl Doubts {
    /// Marks a write before it is sent.
    ///
    /// The mark is active when the value is dropped, not before: while the write is under way its key is busy, and no
    /// other worker takes it.
    pub(super) fn of(&self, target: &Target<'_>) -> Doubt {
        let place = (target.source.clone(), target.namespace.map(Arc::from));
        Doubt { doubts: self.clone(), by: target.by.clone(), place: Some(place) }
    }

    /// Adds marks of a key, each cache and namespace once.
    fn add(&self, by: ObjectKey, places: impl IntoIterator<Item = (Arc<Source>, Scope)>) {
        let mut doubts = self.0.lock();
        let known = doubts.entry(by).or_default();
        for (source, scope) in places {
            if !known.iter().any(|(other, there)| Arc::ptr_eq(other, &source) && *there == scope) {
                known.push((source, scope));
            }
        }
    }

    /// Lists each namespace in which this key has an uncertain write.
    ///
    /// A key without uncertain writes, which is nearly every one, costs a look into a map.
    ///
    /// # Errors
    /// The first list that failed. The remaining marks are kept, so the next attempt continues there.
    ///
    /// # Cancel safety
    /// Not safe: dropping the future forgets the marks of this key that were not listed yet.
    pub(crate) async fn make_certain(&self, key: &ObjectKey) -> Result<(), ApiError> {
        let places = self.0.lock().remove(key).unwrap_or_default();
        for (n, (source, scope)) in places.iter().enumerate() {
            if let Err(error) = source.refresh(scope).await {
                self.add(key.clone(), places[n..].iter().cloned());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Doubt {
    /// Removes the mark: the outcome is known and the cache has it.
    pub(super) fn settle(mut self) {
        self.place = None;
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.doubts.add(self.by.clone(), [place]);
        }
    }
}
