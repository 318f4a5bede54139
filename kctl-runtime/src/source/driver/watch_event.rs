//! Reads the lines of a watch: from the JSON of an event to an input of the reflector.

use std::sync::atomic::Ordering;

use super::Source;
use crate::{
    key::ObjectKey,
    object::Stored,
    source::{
        check::Arrival,
        event::{Bookmark, Event, OBJECT_EVENTS, split_object_event},
        filter::ObjectHead,
        reflector::{Input, Reflector, Request},
    },
    store::{Delta, NamespaceScope},
    transport::ApiError,
};

/// An event of an object that the filter does not select.
struct Unselected<'a> {
    kind: &'a str,
    head: ObjectHead<'a>,
    /// `true` if a list that is concurrent with the watch had begun before.
    is_listed: bool,
}

impl Source {
    /// Returns the input of a line, `None` for a line without one, or the error that ends the watch.
    ///
    /// Unknown event types are ignored with a warning, so a newer API server may add some. A deleted object needs only
    /// its metadata: whatever else is wrong with it, it is gone.
    ///
    /// An object that the filter does not select is not decoded, and its event only moves the version on. `left` receives
    /// further deltas of it ([`pass_unselected`](Self::pass_unselected)).
    pub(in crate::source) fn read_event(
        &self,
        line: &[u8],
        reflector: &Reflector,
        left: &mut Vec<Delta>,
    ) -> Result<Option<Input>, ApiError> {
        // The line is not read to its end for objects of other replicas, which may be most of them.
        let split = self.filter().and_then(|_| split_object_event(line));
        if let Some(event) = split.and_then(|(kind, json)| self.as_unselected(kind, json)) {
            return Ok(Some(self.pass_unselected(event, reflector.scope(), left)));
        }
        let event: Event<'_> = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) if line.trim_ascii().is_empty() => return Ok(None),
            Err(error) => {
                return Err(ApiError::Unreadable { operation: self.watching(), cause: error.to_string() });
            }
        };
        let json = event.object.get();
        let is_unchecked = split.is_none() && OBJECT_EVENTS.contains(&event.kind);
        if let Some(event) = is_unchecked.then(|| self.as_unselected(event.kind, json)).flatten() {
            return Ok(Some(self.pass_unselected(event, reflector.scope(), left)));
        }
        Ok(match event.kind {
            "ADDED" | "MODIFIED" if *reflector.request() == Request::Stream => {
                self.accept_or_last(json, Arrival::Alone).map(Input::Applied)
            }
            "ADDED" | "MODIFIED" => match self.accept_typed(json, Arrival::Alone) {
                Some(object) => Some(Input::Applied(object)),
                None => self.accept_unchecked(json).ok().and_then(|unread| version_of(&unread)),
            },
            // The metadata of a deleted object is enough; the rest may be unreadable.
            "DELETED" => match self.accept_unchecked(json) {
                Ok(object) => Some(self.handle_deletion(object, reflector.scope(), left)),
                Err(_) => self.accept_or_report(json).map(Input::Deleted),
            },
            "BOOKMARK" => Bookmark::read(json),
            "ERROR" => return Err(ApiError::watch_error(self.watching(), json)),
            other => {
                self.condition.record_unknown_event(&self.config, other);
                None
            }
        })
    }

    /// Returns the input of an event whose object is not selected: only its version counts.
    ///
    /// `left` receives the end of an object that may just have ceased to be selected. It receives the version during a
    /// concurrent list of the scope, and for a deletion that may be an own one: its slot may have been lost since.
    fn pass_unselected(&self, event: Unselected<'_>, scope: &NamespaceScope, left: &mut Vec<Delta>) -> Input {
        let Unselected { kind, head, is_listed } = event;
        let key = head.key();
        self.unreadable.remove(&key);
        if self.may_leave(&key, &head.uid) {
            left.push(Delta::Leave(key, (&*head.uid).into(), head.resource_version.to_string()));
        }
        if is_listed || (kind == "DELETED" && self.store.tombstones() > 0) {
            left.push(Delta::Unselected(scope.clone(), (&*head.uid).into(), head.resource_version.to_string()));
        }
        Input::Bookmark(head.resource_version.into_owned())
    }

    /// Returns the event if the filter does not select its object.
    fn as_unselected<'a>(&self, kind: &'a str, json: &'a str) -> Option<Unselected<'a>> {
        // Looked at before the filter. A list for a slot that the filter does not see yet begins later and has this event,
        // whose version would hide the object from it.
        let is_listed = self.n_lists.load(Ordering::Acquire) > 0;
        Some(Unselected { kind, head: self.not_selected(json)?, is_listed })
    }

    /// Returns the input of a deletion.
    ///
    /// If the final state cannot be decoded, handlers get the cached one, by a delta in `left`. The watch continues at the
    /// version of the event: the version of the cached state is older.
    fn handle_deletion(&self, last: Stored, scope: &NamespaceScope, left: &mut Vec<Delta>) -> Input {
        self.unreadable.remove(last.key());
        let (uid, version) = (last.meta().uid.clone(), version_of(&last));
        let readable = self.readable(last);
        match version {
            Some(Input::Bookmark(version)) if readable.meta().resource_version != *version => {
                left.push(Delta::Leave(readable.key().clone(), uid.clone(), version.clone()));
                // A concurrent list may have a state between the two.
                left.push(Delta::Unselected(scope.clone(), uid, version.clone()));
                Input::Bookmark(version)
            }
            _ => Input::Deleted(readable),
        }
    }

    /// Returns `true` if the store may have a selected state of an object that is no longer selected.
    ///
    /// While deltas wait for the writer, the store does not show yet what the watch has reported before this event. A cached
    /// state that is not selected either is of a lost slot, and `drop_lost` removes it.
    fn may_leave(&self, key: &ObjectKey, uid: &str) -> bool {
        // Looked at before the store, which may be up to date a moment later.
        let is_behind = self.store.backlog() > 0;
        let is_selected = |cached: &Stored| self.filter().is_some_and(|filter| filter.has(cached));
        is_behind || self.store.get(key).is_some_and(|cached| cached.meta().uid == *uid && is_selected(&cached))
    }
}

/// Returns the input of an event whose content does not matter, only its version: the next watch continues there.
/// `None` for an object without a version.
fn version_of(unread: &Stored) -> Option<Input> {
    let version = unread.meta().resource_version.to_string();
    (!version.is_empty()).then_some(Input::Bookmark(version))
}
