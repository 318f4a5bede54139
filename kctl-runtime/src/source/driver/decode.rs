//! Brings the JSON of an object into the form of the cache, with the checks of its readers, and reports unreadable objects.

use std::sync::Arc;

use super::Source;
use crate::{
    key::ObjectKey,
    object::{DecodeError, Meta, Stored},
    source::{UNREADABLE_MAX, check::Arrival},
};

/// An item of a list during the watch, whose object has a later known state. The version of the list, which arrives last,
/// decides if the item is reported.
pub(super) struct DeferredItem {
    /// The revision of the later state.
    known: u64,
    json: String,
    object: Result<Arc<Stored>, DecodeError>,
}

impl Source {
    /// Decodes the JSON of an object, runs the checks, and returns it in the form of the cache. The store is not
    /// changed.
    ///
    /// The stage that writes uses it for responses: a state enters the cache in the same form, whichever way it came.
    ///
    /// # Errors
    /// The JSON is not an object of this kind, or does not fit a type that reads the store.
    pub fn accept(&self, json: &str) -> Result<Arc<Stored>, DecodeError> {
        self.prepare(self.accept_unchecked(json)?, Arrival::Alone)
    }

    /// Returns the kept parts of an object, unchecked.
    pub(super) fn accept_unchecked(&self, json: &str) -> Result<Stored, DecodeError> {
        Stored::accept_masked(&self.config.kind, json, &self.field_mask.read())
    }

    /// Checks an object, and makes it as small as possible.
    ///
    /// Parts that it has in common with the known state, or with other objects of the kind, are shared with them.
    ///
    /// # Errors
    /// The first check that fails.
    fn prepare(&self, object: Stored, arrival: Arrival) -> Result<Arc<Stored>, DecodeError> {
        for check in self.checks.read().iter() {
            check.check(&object, arrival)?;
        }
        let cached = self.store.get(object.key());
        Ok(Arc::new(object.deduplicate(&self.deduplicator, cached.as_deref())))
    }

    /// Accepts one item. Items of built-in kinds in lists have no `kind` and `apiVersion`, which readers of the JSON
    /// expect.
    ///
    /// An item whose uid and version the store has already is not decoded again. A list after a short break costs
    /// little more than its bytes.
    pub(super) fn accept_typed(&self, json: &str, arrival: Arrival) -> Option<Arc<Stored>> {
        self.or_report(json, self.decode_item(json, arrival))
    }

    fn decode_item(&self, json: &str, arrival: Arrival) -> Result<Arc<Stored>, DecodeError> {
        let same = |meta: &Meta| {
            let cached = self.store.get(&meta.key)?;
            let is_same = cached.meta().uid == meta.uid && cached.meta().resource_version == meta.resource_version;
            (is_same && !meta.resource_version.is_empty()).then_some(cached)
        };
        let object = Stored::accept_item(&self.config.kind, json, &self.field_mask.read(), same);
        object.and_then(|object| object.or_else(|object| self.prepare(object, arrival)))
    }

    /// Accepts an object of a complete state. An unreadable one is replaced by its last good state, because it would
    /// count as deleted otherwise. A predecessor of that name is deleted, so its state does not count.
    pub(super) fn accept_or_last(&self, json: &str, arrival: Arrival) -> Option<Arc<Stored>> {
        self.accept_typed(json, arrival).or_else(|| self.last_readable(json))
    }

    /// Returns the last good state of an object that cannot be decoded.
    fn last_readable(&self, json: &str) -> Option<Arc<Stored>> {
        let unread = self.accept_unchecked(json).ok()?;
        self.store.get(unread.key()).filter(|cached| cached.meta().uid == unread.meta().uid)
    }

    /// Accepts an item of a list during the watch, like [`accept_or_last`](Self::accept_or_last).
    ///
    /// An item that is older than a known state of its object is not reported before the version of the list is known:
    /// call [`report_deferred`](Self::report_deferred) then. Beyond [`UNREADABLE_MAX`] such items, further ones are
    /// reported at once.
    pub(super) fn accept_or_defer(&self, json: &str, deferred: &mut Vec<DeferredItem>) -> Option<Arc<Stored>> {
        let object = self.decode_item(json, Arrival::ListedDuringWatch);
        let later = self.later_revision(json, &object).filter(|_known| deferred.len() < UNREADABLE_MAX);
        let accepted = match later {
            Some(known) => {
                let accepted = object.as_ref().ok().cloned();
                deferred.push(DeferredItem { known, json: json.to_owned(), object });
                accepted
            }
            None => self.or_report(json, object),
        };
        accepted.or_else(|| self.last_readable(json))
    }

    /// Returns the revision of the known state of an item's object if it is later than the item. For a readable item
    /// only an unreadable state matters.
    fn later_revision(&self, json: &str, object: &Result<Arc<Stored>, DecodeError>) -> Option<u64> {
        let unreadable = |key: &ObjectKey| self.unreadable.get(key).and_then(|one| one.stored.meta().revision());
        let (item, known) = if let Ok(object) = object {
            (object.meta().revision(), unreadable(object.key()))
        } else {
            let unread = self.accept_unchecked(json).ok()?;
            let cached = self.store.get(unread.key()).and_then(|cached| cached.meta().revision());
            (unread.meta().revision(), cached.max(unreadable(unread.key())))
        };
        item.zip(known).filter(|(item, known)| known > item).map(|(_item, known)| known)
    }

    /// Reports the deferred items of a complete list, except those whose known state is later than the list.
    ///
    /// If the list is later than the known state and has an older one, the API server was restored from a backup, so the
    /// item is the present state of its object.
    pub(super) fn report_deferred(&self, deferred: Vec<DeferredItem>, version: &str) {
        let list = version.parse::<u64>().ok();
        for DeferredItem { known, json, object } in deferred {
            if list.is_none_or(|list| known <= list) {
                self.or_report(&json, object);
            }
        }
    }

    pub(super) fn accept_or_report(&self, json: &str) -> Option<Arc<Stored>> {
        self.or_report(json, self.accept(json))
    }

    /// Records the outcome: a readable object is no longer on the list of unreadable ones. An unreadable one is counted
    /// and added, and each of its states is logged once, with the decoder's message.
    fn or_report(&self, json: &str, object: Result<Arc<Stored>, DecodeError>) -> Option<Arc<Stored>> {
        match object {
            Ok(object) => {
                self.unreadable.remove(object.key());
                Some(object)
            }
            Err(error) => {
                self.condition.count_undecodable();
                let unread = self.accept_unchecked(json).ok();
                // Each list has the state again until a client corrects the object.
                if unread.as_ref().is_none_or(|unread| !self.unreadable.has(unread.meta())) {
                    tracing::error!(%error, cause = %error.source, "object can't be deserialized; the cache keeps its last readable state");
                }
                // A list may end after its scope was removed, and nothing would forget its objects then.
                if let Some(unread) = unread.filter(|unread| self.follows(unread.key()))
                    && self.unreadable.add(unread, error.source.to_string())
                {
                    tracing::error!(
                        kind = %self.config.kind,
                        max = UNREADABLE_MAX,
                        "too many objects can't be deserialized: further ones get no Event, no cleanup and no move to \
                         another shard; correct the objects, or the type that reads them"
                    );
                }
                None
            }
        }
    }

    /// Returns `true` if a scope of an object is listed and watched.
    fn follows(&self, key: &ObjectKey) -> bool {
        self.scopes.has(&key.namespace) || self.scopes.has(&None)
    }

    /// Returns the last state of a deleted object as handlers can read it: its last good state if the final one cannot
    /// be decoded.
    pub(super) fn readable(&self, last: Stored) -> Arc<Stored> {
        let fits = self.checks.read().iter().all(|check| check.check(&last, Arrival::Alone).is_ok());
        let cached = self.store.get(last.key()).filter(|cached| !fits && cached.meta().uid == last.meta().uid);
        cached.unwrap_or_else(|| Arc::new(last))
    }
}
