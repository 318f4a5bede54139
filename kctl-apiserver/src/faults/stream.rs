//! The faults of one watch: decide for each event if it is delivered, and when.
//!
//! A watch passes each event through its gate before it sends the event. Held events remain in the history of the
//! server, where the watch reads them again when the pause is over.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use super::{Connection, EventFault, EventSummary};
use crate::{
    status::GroupResource,
    store::{Event, EventLines, Key},
};

/// Decides which events of the history reach a watch, and when.
pub(crate) struct Gate {
    /// The client and its plan.
    connection: Connection,
    /// Group and resource of the watch, for rules.
    resource: GroupResource,
    /// The present pause of the watch; `None` while it delivers events.
    pause: Option<WatchPause>,
    /// The revision of the last event that was decided; 0 at first. A held event passes when the watch offers it a
    /// second time.
    decided: u64,
    /// `true` after [`EventFault::Expire`].
    expired: bool,
}

/// A pause that a fault injects into a watch.
struct WatchPause {
    /// The latest end of the pause, in the time of the runtime.
    until: Instant,
    /// The object whose event was skipped. The pause ends when it changes again, and then only the newest states are
    /// delivered.
    skips: Option<Key>,
}

/// The decision about an event.
pub(crate) enum GateDecision {
    /// The event is delivered.
    Once,
    /// The event is delivered twice. Correct clients ignore the second, which has the same `resourceVersion`.
    Twice,
    /// The event is delivered, and the watch ends. The client then watches again from this event.
    Last,
    /// The watch ends with 410 instead. The client has to list again.
    Expired,
    /// The event waits.
    Held,
}

impl Gate {
    /// Creates the gate of a watch. The watch starts with a pause up to `until` if the fault of its request has a lag
    /// ([`RequestFault::Stale`](super::RequestFault::Stale) or [`Outdated`](super::RequestFault::Outdated)).
    pub(crate) fn new(connection: Connection, group: &str, resource: &str, until: Option<Instant>) -> Self {
        let pause = until.map(|until| WatchPause { until, skips: None });
        Self { connection, resource: GroupResource::new(group, resource), pause, decided: 0, expired: false }
    }

    /// Returns `true` if the client has to list again.
    pub(crate) fn is_expired(&self) -> bool {
        self.expired
    }

    /// Returns the end of a pause.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.pause.as_ref().map(|pause| pause.until)
    }

    /// Decides if the watch continues. `waiting` iterates over the events since it paused. A pause after a skipped
    /// event ends early when its object has changed again. The client then sees only the later state, as from a slow
    /// watch cache.
    pub(crate) fn opens<'a>(&mut self, mut waiting: impl Iterator<Item = &'a Arc<Event>>) -> Opened {
        let Some(pause) = &self.pause else { return Opened::Each };
        let changed = |key: &Key| waiting.by_ref().filter(|event| event.key == *key).nth(1).is_some();
        let skips = pause.skips.is_some();
        if Instant::now() < pause.until && !pause.skips.as_ref().is_some_and(changed) {
            return Opened::Not;
        }
        self.pause = None;
        if skips { Opened::Newest } else { Opened::Each }
    }

    /// Decides about an event that the client would see. Each event is decided once, however often the watch offers it.
    pub(crate) fn pass(&mut self, event: &Event, kind: &str) -> GateDecision {
        let summary = self.summary(event, kind);
        let fault = if self.decided == event.revision { None } else { self.connection.faults.decide_event(&summary) };
        self.decided = event.revision;
        let passage = match fault {
            None => GateDecision::Once,
            Some(EventFault::Repeat) => GateDecision::Twice,
            Some(EventFault::Close) => GateDecision::Last,
            Some(EventFault::Expire) => {
                self.expired = true;
                return GateDecision::Expired;
            }
            Some(fault @ (EventFault::Hold(time) | EventFault::Skip(time))) => {
                let skips = matches!(fault, EventFault::Skip(_)).then(|| event.key.clone());
                self.pause = Some(WatchPause { until: Instant::now() + time, skips });
                return GateDecision::Held;
            }
        };
        self.connection.faults.notify_delivered(&summary);
        passage
    }

    /// Delivers an event without a fault. Rules do not act on it, but the observer of the plan sees it.
    pub(crate) fn deliver(&self, event: &Event, kind: &str) -> GateDecision {
        self.connection.faults.notify_delivered(&self.summary(event, kind));
        GateDecision::Once
    }

    /// Returns the event as rules see it.
    fn summary(&self, event: &Event, kind: &str) -> EventSummary {
        let GroupResource { group, resource } = self.resource.clone();
        let (namespace, name) = event.key.clone();
        let (client, server) = (self.connection.client().into(), (*self.connection.server).into());
        EventSummary { client, server, kind: kind.into(), group, resource, namespace, name, revision: event.revision }
    }
}

/// The result of [`Gate::opens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The watch is paused.
    Not,
    /// All events are delivered.
    Each,
    /// Only the newest state of each object is delivered.
    Newest,
}

/// Merges events: one per object, from the first state before to the newest state. The event type follows from the two
/// states: an object that was created and deleted in between is not seen at all.
pub(crate) fn newest<'a>(events: impl Iterator<Item = &'a Arc<Event>>) -> Vec<Arc<Event>> {
    let mut by_key: BTreeMap<&Key, Event> = BTreeMap::new();
    for event in events {
        let before = by_key.get(&event.key).map_or_else(|| event.before.clone(), |first| first.before.clone());
        let merged = Event {
            revision: event.revision,
            key: event.key.clone(),
            before,
            object: event.object.clone(),
            deleted: event.deleted,
            lines: EventLines::default(),
        };
        by_key.insert(&event.key, merged);
    }
    let mut merged: Vec<_> = by_key.into_values().map(Arc::new).collect();
    merged.sort_by_key(|event| event.revision);
    merged
}
