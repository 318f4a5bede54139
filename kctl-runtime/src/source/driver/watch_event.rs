//! Reads the lines of a watch: from the JSON of an event to an input of the reflector.

use std::sync::{Arc, atomic::Ordering};

use super::Source;
use crate::{
    object::Stored,
    source::{
        check::Arrival,
        event::{Bookmark, Event},
        filter::ObjectHead,
        reflector::{Input, Reflector, Request},
    },
    store::{Delta, NamespaceScope},
    transport::ApiError,
};

impl Source {
    /// Returns the input of a line, `None` for a line without one, or the error that ends the watch.
    ///
    /// Unknown event types are ignored with a warning, so a newer API server may add some. A deleted object needs only
    /// its metadata: whatever else is wrong with it, it is gone.
    ///
    /// An object that the filter does not select is not decoded, and its event only moves the version on. `left` receives
    /// a deletion if it has just ceased to be selected. It receives the version during a concurrent list of the scope,
    /// and for a deletion that may be an own one: its slot may have been lost since.
    pub(in crate::source) fn read_event(
        &self,
        line: &[u8],
        reflector: &Reflector,
        left: &mut Vec<Delta>,
    ) -> Result<Option<Input>, ApiError> {
        let event: Event<'_> = match serde_json::from_slice(line) {
            Ok(event) => event,
            Err(_) if line.trim_ascii().is_empty() => return Ok(None),
            Err(error) => {
                return Err(ApiError::Unreadable { operation: self.watching(), cause: error.to_string() });
            }
        };
        let json = event.object.get();
        // Looked at before the filter. A list for a slot that the filter does not see yet begins later and has this event,
        // whose version would hide the object from it.
        let is_listed = self.n_lists.load(Ordering::Acquire) > 0;
        if ["ADDED", "MODIFIED", "DELETED"].contains(&event.kind)
            && let Some(head) = self.not_selected(json)
        {
            self.unreadable.remove(&head.key());
            left.extend(self.last_selected(&head).map(Delta::Delete));
            if is_listed || (event.kind == "DELETED" && self.store.tombstones() > 0) {
                left.push(Delta::Unselected(
                    reflector.scope().clone(),
                    (&*head.uid).into(),
                    head.resource_version.to_string(),
                ));
            }
            return Ok(Some(Input::Bookmark(head.resource_version.into_owned())));
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

    /// Returns the input of a deletion.
    ///
    /// If the final state cannot be decoded, handlers get the last readable one, in `left`. The watch continues at the
    /// version of the event: the version of the readable state is older.
    ///
    /// A cached state that is later than the event is kept: the object had left the selector, and was written after
    /// that.
    fn handle_deletion(&self, last: Stored, scope: &NamespaceScope, left: &mut Vec<Delta>) -> Input {
        self.unreadable.remove(last.key());
        let (uid, version) = (last.meta().uid.clone(), version_of(&last));
        let end = last.meta().revision();
        let readable = self.readable(last);
        match version {
            Some(Input::Bookmark(version)) if readable.meta().resource_version != *version => {
                if readable.meta().revision().zip(end).is_none_or(|(readable, end)| readable <= end) {
                    left.push(Delta::Delete(readable));
                }
                // A concurrent list may have a state between the two.
                left.push(Delta::Unselected(scope.clone(), uid, version.clone()));
                Input::Bookmark(version)
            }
            _ => Input::Deleted(readable),
        }
    }

    /// Returns the cached state of an object that is no longer selected. A state that is newer than the event is kept,
    /// because its own event has not arrived yet.
    fn last_selected(&self, head: &ObjectHead<'_>) -> Option<Arc<Stored>> {
        let cached = self.store.get(&head.key()).filter(|cached| cached.meta().uid == *head.uid)?;
        // The object was not selected before the event either. Its slot was lost, and `drop_lost` removes it.
        if self.filter().is_none_or(|filter| !filter.has(&cached)) {
            return None;
        }
        let versions = head.resource_version.parse::<u64>().ok().zip(cached.meta().revision());
        versions.is_none_or(|(event, version)| event >= version).then_some(cached)
    }
}

/// Returns the input of an event whose content does not matter, only its version: the next watch continues there.
/// `None` for an object without a version.
fn version_of(unread: &Stored) -> Option<Input> {
    let version = unread.meta().resource_version.to_string();
    (!version.is_empty()).then_some(Input::Bookmark(version))
}
