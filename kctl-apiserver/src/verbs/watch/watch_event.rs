//! Events as one watcher sees them, and the conversion of their objects to another version by the CRD's webhook,
//! without the server's lock.

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    conversion::{self, ConversionPlan, UnconvertedObjects},
    registry::Resource,
    selector::Selector,
    state::State,
    status::StatusError,
    store::EventType,
};

/// An event for one watcher.
#[derive(Clone)]
pub(super) enum WatchEvent {
    /// A complete line, shared with other watchers.
    Line(Bytes),
    /// An event whose object is not in the requested form yet. An object with `type` and `object`.
    Value(Value),
    /// A change whose objects have to be converted before the selector can be applied.
    Transition(Box<Transition>),
}

/// Two states of an object, possibly in versions that the watcher has not requested.
#[derive(Clone)]
pub(super) struct Transition {
    /// The old state; `None` for a new object.
    pub(super) before: Option<Value>,
    /// The new state. For a deletion: the last state with the revision of the deletion as its `resourceVersion`.
    pub(super) after: Value,
    /// `true` if the object was deleted; `after` is its last state then.
    pub(super) deleted: bool,
}

impl WatchEvent {
    /// Returns an `ERROR` event, after which a watch ends. The object is a `Status`; clients relist on 410.
    pub(super) fn error(status_error: &StatusError) -> Self {
        Self::Value(json!({ "type": "ERROR", "object": status_error.body() }))
    }

    /// Returns the objects that a webhook may have to convert.
    fn objects(&mut self) -> Vec<&mut Value> {
        match self {
            Self::Line(_) => Vec::new(),
            Self::Value(event) => event.get_mut("object").into_iter().collect(),
            Self::Transition(change) => change.before.iter_mut().chain([&mut change.after]).collect(),
        }
    }
}

impl Transition {
    /// Returns the event of this change for a selector, or `None` if neither state matches.
    pub(super) fn select(self, selector: &Selector) -> Option<Value> {
        let before = self.before.as_ref().is_some_and(|before| selector.matches(before));
        let kind = Matches { before, after: !self.deleted && selector.matches(&self.after) }.event_type()?;
        let object = match self.before {
            Some(before) if kind == EventType::Deleted && !self.deleted => as_deleted(before, &self.after),
            _ => self.after,
        };
        Some(json!({ "type": kind.name(), "object": object }))
    }
}

/// The states of a changed object that a watcher's selector matches.
#[derive(Clone, Copy)]
pub(super) struct Matches {
    /// The object existed before the change, and matched.
    pub(super) before: bool,
    /// The object exists after the change, and matches.
    pub(super) after: bool,
}

impl Matches {
    /// Returns the type of the watcher's event: an object that starts to match is added, one that stops to match is
    /// deleted (`cacheWatcher.convertToWatchEvent`).
    pub(super) fn event_type(self) -> Option<EventType> {
        match self {
            Self { before: false, after: false } => None,
            Self { before: false, after: true } => Some(EventType::Added),
            Self { before: true, after: true } => Some(EventType::Modified),
            Self { before: true, after: false } => Some(EventType::Deleted),
        }
    }
}

/// Returns the last state that matched, with the revision at which it stopped matching, so that a client's version
/// always moves forward (`convertToWatchEvent` in `k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go`).
pub(super) fn as_deleted(mut last: Value, after: &Value) -> Value {
    last["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    last
}

/// Converts the objects of another version, all of them in one call of the webhook. The lock is held only to prepare
/// the call; the webhook is awaited without it. Objects without a uid, such as bookmarks, are skipped.
///
/// # Errors
/// Fails if the webhook does.
pub(super) async fn convert(
    state: &Mutex<State>,
    resource: &Resource,
    events: &mut [WatchEvent],
) -> Result<(), StatusError> {
    if !conversion::uses_webhook(resource) {
        return Ok(());
    }
    let needs_webhook = |object: &&mut Value| {
        object["metadata"]["uid"].is_string()
            && matches!(conversion::plan(resource, object), ConversionPlan::CallWebhook)
    };
    let unconverted: Vec<&mut Value> = events.iter_mut().flat_map(WatchEvent::objects).filter(needs_webhook).collect();
    if unconverted.is_empty() {
        return Ok(());
    }
    let objects: Vec<&Value> = unconverted.iter().map(|object| &**object).collect();
    let (call, transport, uid) = {
        let mut state = state.lock();
        (
            conversion::call_for(&state, resource, &objects).map_err(UnconvertedObjects::into_status)?,
            state.core.transport.clone(),
            state.store.rng.uid(),
        )
    };
    let reply = transport.send(&call, uid).await;
    let converted = conversion::read_response(resource, &objects, &reply).map_err(UnconvertedObjects::into_status)?;
    for (object, converted) in unconverted.into_iter().zip(converted) {
        *object = converted;
    }
    Ok(())
}

/// Returns `true` if a webhook has to convert the object before the selector can be applied. Without a selector the
/// order does not matter.
pub(super) fn needs_conversion_first(resource: &Resource, selector: &Selector, object: &Value) -> bool {
    !selector.is_empty() && matches!(conversion::plan(resource, object), ConversionPlan::CallWebhook)
}
