//! Writes whose outcome nobody has seen, by the key whose reconcile sent them.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::{ApiError, Target};
use crate::{key::ObjectKey, source::Source, store::Scope};

/// What one key is to see anew before it is reconciled again: a kind and the namespace of what was written.
type Places = Vec<(Arc<Source>, Scope)>;

/// The doubts of one controller; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Doubts(Arc<Mutex<HashMap<ObjectKey, Places>>>);

/// A write that is under way. Whatever ends it before its outcome is known (an answer that is lost, a reconcile that is cut, a
/// panic) leaves a doubt.
pub(super) struct Doubt {
    doubts: Doubts,
    by: ObjectKey,
    place: Option<(Arc<Source>, Scope)>,
}

impl Doubts {
    pub(super) fn of(&self, target: &Target<'_>) -> Doubt {
        let place = (target.source.clone(), target.namespace.map(Arc::from));
        Doubt { doubts: self.clone(), by: target.by.clone(), place: Some(place) }
    }

    fn add(&self, by: ObjectKey, places: impl IntoIterator<Item = (Arc<Source>, Scope)>) {
        let mut doubts = self.0.lock();
        let known = doubts.entry(by).or_default();
        for (source, scope) in places {
            if !known.iter().any(|(other, there)| Arc::ptr_eq(other, &source) && *there == scope) {
                known.push((source, scope));
            }
        }
    }

    /// Brings the cache past every write of a key whose outcome is not known: only then is it reconciled again.
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
    /// The outcome is known, and the cache has it.
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
