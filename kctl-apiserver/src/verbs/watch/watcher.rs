//! A running watch, which reads the history and waits for changes, bookmarks and its end.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::{
    Start,
    deadline::Deadline,
    watch_event::{WatchEvent, convert},
};
use crate::{
    faults::{Gate, GateDecision, Opened, newest},
    state::State,
    status::StatusError,
    store::{Event, Table},
    verbs::output_form::EventOrder,
};

/// The time between two bookmarks, if the client requests them (`defaultBookmarkFrequency` of the watch cache).
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// The time before the end of a watch at which its last bookmark is sent (`nextBookmarkTime`).
const BOOKMARK_LEAD: Duration = Duration::from_secs(2);
/// The number of events in one chunk of the body.
const BATCH_LEN_MAX: usize = 100;

/// The state of a running watch. It has no buffer: it reads the history of the table from its revision on.
pub(super) struct Watcher {
    /// The options of the watch; `revision` in it moves forward with each event that is read.
    start: Start,
    /// Locked briefly for each read of the history.
    state: Arc<Mutex<State>>,
    /// The end of the watch.
    end: Deadline,
    /// The next bookmark.
    bookmark: Deadline,
    /// The start of the watch.
    started: Instant,
    /// The revision at which the watch started: no bookmark repeats it.
    start_revision: u64,
    /// `true` once the watch has ended, after an error, a change of the CRD or the initial events.
    over: bool,
    /// The place of the next event: a table has column definitions only in its first event.
    order: EventOrder,
    /// Initial events that are not sent yet.
    unsent: Vec<WatchEvent>,
}

/// The result of one read of the history.
enum Next {
    /// These events match.
    Events(Vec<WatchEvent>),
    /// No event matches yet.
    Nothing,
    /// The history starts only after this revision.
    TooOld(u64),
    /// The CRD has changed, and all earlier events are sent.
    Over,
}

impl Watcher {
    /// Starts a watch.
    pub(super) fn new(mut start: Start, state: Arc<Mutex<State>>) -> Self {
        let now = Instant::now();
        let mut watcher = Self {
            end: Deadline::new(now + start.life),
            bookmark: Deadline::new(now),
            started: now,
            start_revision: start.revision,
            over: start.over,
            unsent: std::mem::take(&mut start.initial),
            start,
            state,
            order: EventOrder::First,
        };
        watcher.next_bookmark();
        watcher
    }

    /// Formats events as lines. If an object cannot be converted, the watch ends with an error event. A single line
    /// that is shared with other watchers is returned without a copy. The conversion webhook is called without the
    /// lock.
    async fn lines(&mut self, mut events: Vec<WatchEvent>) -> Bytes {
        if let [WatchEvent::Line(line)] = events.as_slice() {
            self.order = EventOrder::Later;
            return line.clone();
        }
        if let Err(status_error) = convert(&self.state, &self.start.resource, &mut events).await {
            self.over = true;
            events = vec![WatchEvent::error(&status_error)];
        }
        let now = self.state.lock().store.clock.now();
        let mut body = Vec::new();
        for event in events {
            let mut event = match event {
                WatchEvent::Value(event) => event,
                WatchEvent::Transition(change) => match change.select(&self.start.selector) {
                    Some(event) => event,
                    None => continue,
                },
                WatchEvent::Line(line) => {
                    self.order = EventOrder::Later;
                    body.extend_from_slice(&line);
                    continue;
                }
            };
            if !self.start.form.shape_event(&self.start.resource, &mut event, now, self.order) {
                self.over = true;
                break;
            }
            self.order = EventOrder::Later;
            // Serialization of a JSON value into memory cannot fail.
            let _infallible = serde_json::to_writer(&mut body, &event);
            body.push(b'\n');
        }
        body.into()
    }

    /// Returns the next chunk of the body, or `None` at the end. Initial events come first, in one chunk. An empty
    /// chunk is never returned.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        if !self.unsent.is_empty() {
            let initial = std::mem::take(&mut self.unsent);
            let lines = self.lines(initial).await;
            if !lines.is_empty() {
                return Some(lines);
            }
        }
        loop {
            if self.over {
                return None;
            }
            // Register for notifications before the history is read, so that no change is missed in between.
            let changed = self.start.changes.clone().notified_owned();
            match self.read() {
                Next::Over => return None,
                Next::Events(events) => {
                    let lines = self.lines(events).await;
                    // It is possible that none of the objects match after their conversion.
                    if lines.is_empty() {
                        continue;
                    }
                    return Some(lines);
                }
                Next::TooOld(oldest) => {
                    self.over = true;
                    let why = format!("too old resource version: {} ({oldest})", self.start.revision);
                    return Some(self.lines(vec![WatchEvent::error(&StatusError::expired(why))]).await);
                }
                Next::Nothing => {}
            }
            // Checked after the read, because a fault may hold the watch at one of the events that were just read.
            let held_until = self.start.gate.as_ref().and_then(Gate::held_until);
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(held_until.unwrap_or(self.end.time)), if held_until.is_some() => {}
                () = self.end.wait() => {
                    self.over = true;
                    return None;
                }
                () = self.bookmark.wait(), if self.start.bookmarks => {
                    self.next_bookmark();
                    if self.start.revision > self.start_revision {
                        let event = self.start.bookmark(self.start.revision);
                        let lines = self.lines(vec![WatchEvent::Value(event)]).await;
                        // `PartialObjectMetadataList` has no form of a bookmark: the watch ends.
                        if !lines.is_empty() {
                            return Some(lines);
                        }
                    }
                }
            }
        }
    }

    /// Sets the time of the next bookmark. The last one is `BOOKMARK_LEAD` before the end of the watch. After the
    /// last bookmark, the time is set beyond the end of the watch.
    fn next_bookmark(&mut self) {
        let (now, end) = (self.bookmark.time, self.end.time);
        let frequent = self.start.frequent_bookmarks.filter(|frequent| now < self.started + frequent.lasts);
        let every = frequent.map_or(BOOKMARK_INTERVAL, |frequent| frequent.every);
        let last = end.checked_sub(BOOKMARK_LEAD).filter(|last| *last > now);
        self.bookmark = Deadline::new(last.map_or(end + BOOKMARK_INTERVAL, |last| last.min(now + every)));
    }

    /// Reads the history from the watch's revision on, up to [`BATCH_LEN_MAX`] events. Moves the watch's revision past
    /// the events that were read, even if they do not match. Stops where the CRD changed.
    fn read(&mut self) -> Next {
        if self.start.gate.is_some() {
            return self.read_under_faults();
        }
        let state = self.state.lock();
        let current = state.store.revision;
        if self.start.revision > current {
            return Next::Nothing;
        }
        let Some(table) = state.store.known_table(&self.start.resource.id) else { return Next::Nothing };
        let end = self.redefinition(table);
        let Some(events) = table.since(self.start.revision) else {
            return Next::TooOld(table.compacted_revision());
        };
        let mut batch = Vec::new();
        for event in events.take_while(|event| end.is_none_or(|end| event.revision < end)) {
            self.start.revision = event.revision;
            batch.extend(self.start.filter_event(event).map(|(_, watch_event)| watch_event));
            if batch.len() >= BATCH_LEN_MAX {
                return Next::Events(batch);
            }
        }
        // There are no more changes of this resource up to the server's revision.
        self.start.revision = current;
        match end {
            _ if !batch.is_empty() => Next::Events(batch),
            Some(_) => Next::Over,
            None => Next::Nothing,
        }
    }

    /// Reads the history like [`Self::read`], for a client under faults, one event at a time. Faults can hold, repeat
    /// or merge events of this client, or end its watch; the history itself is unchanged. If the CRD changes while the
    /// watch is paused, the watch ends without the held events.
    fn read_under_faults(&mut self) -> Next {
        let state = self.state.clone();
        let mut state = state.lock();
        let current = state.store.revision;
        let Some(mut gate) = self.start.gate.take() else { return Next::Nothing };
        let table = state.store.table(&self.start.resource.id);
        let end = self.redefinition(table);
        let next = match table.since(self.start.revision) {
            _ if self.start.revision > current => Next::Nothing,
            None => Next::TooOld(table.compacted_revision()),
            Some(_) if gate.is_expired() => Next::TooOld(current),
            Some(events) => {
                let events = events.take_while(|event| end.is_none_or(|end| event.revision < end));
                self.deliver_events(&mut gate, events.cloned().collect(), current)
            }
        };
        self.start.gate = Some(gate);
        if end.is_some() && matches!(next, Next::Nothing) { Next::Over } else { next }
    }

    /// Returns the revision at which the CRD has changed, if it has since the start of the watch.
    fn redefinition(&self, table: &Table) -> Option<u64> {
        Some(table.redefined_revision()).filter(|revision| *revision != self.start.definition)
    }

    /// Delivers events through the gate of faults. The revision moves only past events that were delivered, so that a
    /// held event is read again.
    fn deliver_events(&mut self, gate: &mut Gate, events: Vec<Arc<Event>>, current: u64) -> Next {
        let opened = gate.opens(events.iter());
        let events = match opened {
            Opened::Not => return Next::Nothing,
            Opened::Each => events,
            Opened::Newest => newest(events.iter()),
        };
        let mut batch = Vec::new();
        let events_or_nothing =
            |batch: Vec<WatchEvent>| if batch.is_empty() { Next::Nothing } else { Next::Events(batch) };
        for event in events {
            let Some((kind, watch_event)) = self.start.filter_event(&event) else {
                self.start.revision = event.revision;
                continue;
            };
            let kind = kind.name();
            let passage = if opened == Opened::Newest { gate.deliver(&event, kind) } else { gate.pass(&event, kind) };
            match passage {
                GateDecision::Held => return events_or_nothing(batch),
                GateDecision::Expired if batch.is_empty() => return Next::TooOld(current),
                GateDecision::Expired => return Next::Events(batch),
                GateDecision::Once | GateDecision::Last => batch.push(watch_event),
                GateDecision::Twice => batch.extend([watch_event.clone(), watch_event]),
            }
            self.start.revision = event.revision;
            if matches!(passage, GateDecision::Last) {
                self.over = true;
                return events_or_nothing(batch);
            }
        }
        self.start.revision = current;
        events_or_nothing(batch)
    }
}
