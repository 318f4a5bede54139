//! What a watcher is told, and how objects of other versions get there: by the webhook of their definition, without the lock.

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    conversion::{self, Way},
    registry::Resource,
    selector::Selector,
    state::State,
    status::StatusError,
    store::EventType,
};

/// What a watcher is told.
#[derive(Clone)]
pub(super) enum WatchEvent {
    /// A line that others are told, too.
    Line(Bytes),
    /// An event that has still to be brought into its form.
    Value(Value),
    /// A change of an object that has to be converted, before it can be said whether it matches.
    Transition(Box<Transition>),
}

/// Two states of an object, in versions that the watcher may not have asked for.
#[derive(Clone)]
pub(super) struct Transition {
    pub(super) before: Option<Value>,
    /// Of a deletion: the last state, with the resourceVersion of the deletion.
    pub(super) after: Value,
    pub(super) deleted: bool,
}

impl WatchEvent {
    pub(super) fn error(status_error: &StatusError) -> Self {
        Self::Value(json!({ "type": "ERROR", "object": status_error.body() }))
    }

    /// The objects that a webhook may have to convert.
    fn objects(&mut self) -> Vec<&mut Value> {
        match self {
            Self::Line(_) => Vec::new(),
            Self::Value(event) => event.get_mut("object").into_iter().collect(),
            Self::Transition(change) => change.before.iter_mut().chain([&mut change.after]).collect(),
        }
    }
}

impl Transition {
    /// The event, where there is one for this selector.
    pub(super) fn judged(self, selector: &Selector) -> Option<Value> {
        let matched = self.before.as_ref().is_some_and(|before| selector.matches(before));
        let kind = kind_of(matched, !self.deleted && selector.matches(&self.after))?;
        let object = match self.before {
            Some(before) if kind == EventType::Deleted && !self.deleted => as_deleted(before, &self.after),
            _ => self.after,
        };
        Some(json!({ "type": kind.name(), "object": object }))
    }
}

/// What begins to match is added, what ceases to match is deleted.
pub(super) fn kind_of(matched: bool, matches: bool) -> Option<EventType> {
    match (matched, matches) {
        (false, false) => None,
        (false, true) => Some(EventType::Added),
        (true, true) => Some(EventType::Modified),
        (true, false) => Some(EventType::Deleted),
    }
}

/// The last state that matched, with the revision at which it ceased to.
pub(super) fn as_deleted(mut last: Value, after: &Value) -> Value {
    last["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    last
}

/// Asks the webhook of the definition about all objects of another version at once.
///
/// # Errors
/// The webhook fails.
pub(super) async fn convert(
    state: &Mutex<State>,
    resource: &Resource,
    events: &mut [WatchEvent],
) -> Result<(), StatusError> {
    if !conversion::is_asked(resource) {
        return Ok(());
    }
    let is_open = |object: &&mut Value| {
        object["metadata"]["uid"].is_string() && matches!(conversion::way(resource, object), Way::Ask)
    };
    let open: Vec<&mut Value> = events.iter_mut().flat_map(WatchEvent::objects).filter(is_open).collect();
    if open.is_empty() {
        return Ok(());
    }
    let objects: Vec<&Value> = open.iter().map(|object| &**object).collect();
    let (call, transport, uid) = {
        let mut state = state.lock();
        (conversion::call_for(&state, resource, &objects)?, state.transport.clone(), state.chance.uid())
    };
    let reply = transport.send(&call, uid).await;
    let converted = conversion::converted(resource, &objects, &reply)?;
    for (object, converted) in open.into_iter().zip(converted) {
        *object = converted;
    }
    Ok(())
}

/// Whether a webhook has to convert an object before a selector can be asked about it.
pub(super) fn is_judged_later(resource: &Resource, selector: &Selector, object: &Value) -> bool {
    !selector.is_empty() && matches!(conversion::way(resource, object), Way::Ask)
}
