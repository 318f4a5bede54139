//! `GET` with `watch`: streams events from the history until the watch ends.
//!
//! A watcher has no buffer: it reads the history at its own pace. If it falls behind the oldest event of the history,
//! the watch ends with 410. Writers never wait for it.

mod watch_event;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::Stream;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, Sleep},
};

use self::watch_event::{Transition, WatchEvent, as_deleted, convert, is_judged_later, kind_of};
use super::{Answer, OutputForm, Payload, list, output_form::EventOrder};
use crate::{
    conversion::{self, ConversionPlan},
    faults::{Connection, Gate, Opened, Passage, newest},
    field_errors::Errors,
    proto,
    registry::Resource,
    request::RequestInfo,
    schema,
    selector::Selector,
    stale::FrequentBookmarks,
    state::State,
    status::StatusError,
    store::{Event, EventType, Lines, Object, event_line, head},
};

/// The time between two bookmarks, if the client requests them (`defaultBookmarkFrequency` of the watch cache).
///
/// It starts with the watch.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The time before the end of a watch at which its last bookmark is sent (`nextBookmarkTime`).
///
/// The bookmark lets a client resume from a recent revision.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// The duration of a watch without a timeout. kube-apiserver chooses 30 to 60 minutes; here it is always 30.
const LIFE_DEFAULT: Duration = Duration::from_secs(1_800);
/// The number of events in one chunk of the body.
///
/// Bounds the time under the lock for one watcher.
const BATCH_LEN_MAX: usize = 100;

/// An accepted watch, from which the body is streamed.
pub(crate) struct Start {
    /// The kind in the requested version.
    resource: Arc<Resource>,
    /// The namespace of the path; empty for all namespaces.
    ///
    /// Events of other namespaces are skipped.
    namespace: String,
    /// The selector. An object that starts or stops matching is sent as added or deleted.
    selector: Selector,
    /// `allowWatchBookmarks`.
    ///
    /// The final bookmark of the initial events requires it, too.
    bookmarks: bool,
    /// The fault that sends bookmarks more often, if any.
    frequent_bookmarks: Option<FrequentBookmarks>,
    /// The form of the objects in events.
    form: OutputForm,
    /// The time after which the watch ends.
    life: Duration,
    /// The first bytes of stored objects that are in the requested version, and are sent as they are.
    head: String,
    /// The initial state, sent as events before the changes.
    ///
    /// `stream` takes the events; the list is empty afterwards.
    initial: Vec<WatchEvent>,
    /// The revision after which the watch sends changes.
    revision: u64,
    /// [`Table::redefined`](crate::store::Table::redefined) at the start. If it changes, the CRD has changed and the
    /// watch ends.
    definition: u64,
    /// Notified after each change of the resource.
    changes: Arc<Notify>,
    /// The delay of a fault: the watch stays behind for this time.
    lag: Option<Duration>,
    /// The faults of this client's events.
    gate: Option<Gate>,
    /// `true` if the watch ends after the initial events.
    ///
    /// Set after an error that replaces the watch.
    over: bool,
}

/// The value of `resourceVersionMatch` that `sendInitialEvents` requires.
const NOT_OLDER: &str = "NotOlderThan";

/// The options that decide where a watch starts.
struct WatchOptions<'a> {
    /// `resourceVersion`.
    ///
    /// It is kept as the client sent it, so that an error can show it.
    version: &'a str,
    /// `true` for the deprecated path `/watch/…`. Its options are validated as those of a list, and get no defaults
    /// (`ListResource` of `k8s.io/apiserver/pkg/endpoints/handlers/get.go`).
    by_path: bool,
    /// `sendInitialEvents`, if the client set it.
    initial: Option<bool>,
    /// `resourceVersionMatch`.
    ///
    /// Empty if the client did not set it.
    matching: &'a str,
}

impl<'a> WatchOptions<'a> {
    /// Reads the options. A watch without a version, or with 0, gets the initial state, like a watch with
    /// `sendInitialEvents` (`SetListOptionsDefaults` of apimachinery).
    fn from_request(info: &'a RequestInfo) -> Self {
        let (version, matching) = (info.params.text("resourceVersion"), info.params.text("resourceVersionMatch"));
        let by_path = !info.params.flag("watch");
        let initial = info.params.given("sendInitialEvents").then(|| info.params.flag("sendInitialEvents"));
        if !by_path && initial.is_none() && matching.is_empty() && ["", "0"].contains(&version) {
            return Self { version, by_path, initial: Some(true), matching: NOT_OLDER };
        }
        Self { version, by_path, initial, matching }
    }

    /// Returns `true` if the watch sends the initial state first.
    ///
    /// The initial state is a series of `ADDED` events in the order of keys.
    fn begins_with_state(&self) -> bool {
        self.initial == Some(true) || (self.by_path && ["", "0"].contains(&self.version))
    }

    /// Validates the options (`validateWatchOptions` of apimachinery).
    ///
    /// The deprecated path has the rules of lists.
    fn check(&self, info: &RequestInfo) -> Result<(), StatusError> {
        if self.by_path {
            return list::ListOptions::check_versions(info);
        }
        let continues = !info.params.text("continue").is_empty();
        let (streams, matching) = (self.initial.is_some(), self.matching);
        let mut errors = Errors::default();
        let is_given = !matching.is_empty();
        if (streams && matching != NOT_OLDER) || (is_given && (continues || !streams)) {
            let why = "must be NotOlderThan with sendInitialEvents, and not be set without it or with continue";
            errors.forbidden(list::MATCH, why);
        }
        if is_given && matching != NOT_OLDER {
            errors.unsupported(list::MATCH, &matching.into(), &[NOT_OLDER]);
        }
        StatusError::unless_valid("meta.k8s.io", "ListOptions", "", &errors)
    }

    /// Parses `resourceVersion`; 0 if it is empty.
    ///
    /// Versions are numbers of 64 bits; the error is that of a get.
    fn revision(&self) -> Result<u64, StatusError> {
        match self.version {
            "" => Ok(0),
            text => text.parse().map_err(|_| list::unreadable_version(text)),
        }
    }
}

/// Accepts a watch: validates its options and takes the initial state under the lock.
///
/// The initial state and its revision are read under one lock, so no change before the first event is lost.
///
/// A revision in the future causes an error event if the initial state was requested; otherwise the watch waits until
/// the revision is reached.
///
/// # Errors
/// Fails for invalid options. A version that is too old is reported by an event of the watch.
pub(super) fn start(state: &mut State, info: &RequestInfo, form: OutputForm) -> Result<Answer, StatusError> {
    let options = list::ListOptions::read(info)?;
    let life = life(options.seconds);
    let requested = WatchOptions::from_request(info);
    requested.check(info)?;
    let selector = options.selector(info)?;
    let since = requested.revision()?;
    OutputForm::streams(info)?;
    let sends_initial = requested.begins_with_state();
    let unknown = list::not_from_the_future(state, requested.version).err().filter(|_| sends_initial);
    let bookmarks = info.params.flag("allowWatchBookmarks");
    let revision = state.revision;
    let table = state.table(&info.resource.id);
    let mut start = Start {
        namespace: info.namespace.clone(),
        resource: info.resource.clone(),
        selector,
        bookmarks,
        frequent_bookmarks: info.frequent_bookmarks,
        form,
        life,
        head: head(&info.resource),
        initial: Vec::new(),
        revision: since,
        definition: table.redefined(),
        changes: table.changes(),
        lag: info.stale.map(|stale| stale.lag),
        gate: None,
        over: unknown.is_some(),
    };
    if let Some(status_error) = unknown {
        start.initial = vec![WatchEvent::error(&status_error)];
    } else if sends_initial {
        let namespace = Some(info.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let stale = table.stale(info);
        let past = stale.and_then(|stale| table.at_revision(stale));
        let (table, revision) = past.as_ref().zip(stale).unwrap_or((table, revision));
        start.initial = table.range(namespace, None).filter_map(|(_, object)| start.there(object)).collect();
        start.revision = revision;
        if bookmarks && requested.initial.is_some() {
            let mut end = start.bookmark(revision);
            end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true".into();
            start.initial.push(WatchEvent::Value(end));
        }
    } else if since == 0 {
        start.revision = revision;
    }
    if life.is_zero() {
        start.end_at_once(&requested);
    }
    Ok(Answer { payload: Payload::Watch(Box::new(start)), ..Answer::ok(Value::Null) })
}

/// Returns the duration for `timeoutSeconds`.
///
/// Go multiplies it to nanoseconds, which may overflow to a negative number. A negative timeout ends the watch at once.
fn life(seconds: i64) -> Duration {
    match seconds.wrapping_mul(1_000_000_000) {
        0 => LIFE_DEFAULT,
        nanos => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
    }
}

impl Start {
    /// Ends a watch before it starts. A watch that waits for the newest state gets an error event.
    ///
    /// Upstream's watch cache waits for the newest revision, and its deadline has passed by then.
    fn end_at_once(&mut self, requested: &WatchOptions<'_>) {
        let waits = requested.initial == Some(true) && requested.version.is_empty();
        let late = StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "context deadline exceeded");
        self.initial = waits.then(|| WatchEvent::error(&late)).into_iter().collect();
        self.over = true;
    }

    /// Applies the faults of a client to the watch.
    ///
    /// `connection` is `None` for a client without faults.
    pub(crate) fn under(mut self, connection: Option<&Connection>) -> Self {
        let held_until = self.lag.map(|lag| Instant::now() + lag);
        let resource = &self.resource.id;
        self.gate =
            connection.map(|connection| Gate::new(connection.clone(), &resource.group, &resource.resource, held_until));
        self
    }

    /// Returns an event of this type, with the object converted if that needs no webhook.
    ///
    /// With `ConversionPlan::CallWebhook` the object is converted later, by `lines`.
    fn event(&self, kind: &str, object: &Value) -> Value {
        match conversion::plan(&self.resource, object) {
            ConversionPlan::Done(converted) => json!({ "type": kind, "object": converted }),
            ConversionPlan::Same | ConversionPlan::CallWebhook => json!({ "type": kind, "object": object }),
        }
    }

    /// Returns the event of a stored object. If it is sent as stored, its line is shared with other watchers.
    ///
    /// `lines` is the cache of the event; initial objects have none.
    fn watch_event(&self, kind: EventType, object: &Object, lines: Option<&Lines>) -> WatchEvent {
        if self.form == OutputForm::Plain && object.text().starts_with(self.head.as_bytes()) {
            return WatchEvent::Line(lines.map_or_else(|| event_line(kind, object), |lines| lines.get(kind, object)));
        }
        WatchEvent::Value(self.event(kind.name(), &object.value()))
    }

    /// Returns the initial event of an object, or `None` if it does not match.
    ///
    /// If a webhook must convert an object first, the selector is applied after the conversion.
    fn there(&self, object: &Arc<Object>) -> Option<WatchEvent> {
        if self.is_judged_later(object) {
            let after = Value::clone(&object.value());
            return Some(WatchEvent::Transition(Transition { before: None, after, deleted: false }.into()));
        }
        self.matches(object).then(|| self.watch_event(EventType::Added, object, None))
    }

    /// Returns `true` if the object has to be converted before the selector can be applied.
    ///
    /// Either state may need a webhook.
    fn is_judged_later(&self, object: &Object) -> bool {
        conversion::uses_webhook(&self.resource) && is_judged_later(&self.resource, &self.selector, &object.value())
    }

    /// Returns `true` if the selector selects the object in the requested version.
    fn matches(&self, object: &Object) -> bool {
        if self.selector.is_empty() {
            return true;
        }
        let value = object.value();
        match conversion::plan(&self.resource, &value) {
            ConversionPlan::Done(converted) => self.selector.matches(&converted),
            ConversionPlan::Same | ConversionPlan::CallWebhook => self.selector.matches(&value),
        }
    }

    /// Returns a bookmark. Its object has only what Go's zero value of the type writes, and the revision.
    ///
    /// Clients read only `resourceVersion` from it.
    fn bookmark(&self, revision: u64) -> Value {
        let (kind, api_version) = (self.resource.kind_name(), self.resource.api_version());
        let zeros = schema::name_of(&api_version, kind).map(proto::always).unwrap_or_default();
        let mut object = json!({ "kind": kind, "apiVersion": api_version });
        for (field, zero) in zeros {
            object[field] = zero;
        }
        object["metadata"] = json!({ "resourceVersion": revision.to_string() });
        (self.resource.kind.requests.complete_bookmark)(&mut object);
        json!({ "type": "BOOKMARK", "object": object })
    }

    /// Returns the event as this watcher sees it: an object that starts to match is added, one that stops to match is
    /// deleted.
    ///
    /// `None` if the change does not concern the watcher. A deletion by selector carries the last
    /// matching state with the new revision.
    fn seen(&self, event: &Event) -> Option<(EventType, WatchEvent)> {
        if !self.namespace.is_empty() && event.key.0 != self.namespace {
            return None;
        }
        let before = event.before.as_ref();
        if [Some(&event.object), before].into_iter().flatten().any(|object| self.is_judged_later(object)) {
            let value = |object: &Arc<Object>| Value::clone(&object.value());
            let change = Transition { before: before.map(value), after: value(&event.object), deleted: event.deleted };
            let kind = kind_of(before.is_some(), !event.deleted)?;
            return Some((kind, WatchEvent::Transition(change.into())));
        }
        let matched = before.is_some_and(|before| self.matches(before));
        let kind = kind_of(matched, !event.deleted && self.matches(&event.object))?;
        if let (EventType::Deleted, false, Some(before)) = (kind, event.deleted, before) {
            let last = as_deleted(Value::clone(&before.value()), &event.object.value());
            return Some((kind, WatchEvent::Value(self.event(kind.name(), &last))));
        }
        Some((kind, self.watch_event(kind, &event.object, Some(&event.lines))))
    }

    /// Returns the body of the response: events as lines of JSON.
    ///
    /// The stream ends with the watch; dropping it ends the watch at once, since nothing else
    /// refers to it.
    pub(crate) fn stream(mut self, state: Arc<Mutex<State>>) -> impl Stream<Item = Bytes> + Send {
        let initial = std::mem::take(&mut self.initial);
        let now = Instant::now();
        let mut watcher = Watcher {
            end: Alarm::new(now + self.life),
            bookmark: Alarm::new(now),
            started: now,
            start_revision: self.revision,
            over: self.over,
            start: self,
            state,
            order: EventOrder::First,
            unsent: Vec::new(),
        };
        watcher.unsent = initial;
        watcher.next_bookmark();
        futures::stream::unfold(watcher, |mut watcher| async move {
            let piece = watcher.next().await?;
            Some((piece, watcher))
        })
    }
}

/// The state of a running watch. It has no buffer: it reads the history of the table from its revision on.
struct Watcher {
    /// The options of the watch; `revision` in it moves forward with each event that is read.
    start: Start,
    /// Locked briefly for each read of the history.
    state: Arc<Mutex<State>>,
    /// The end of the watch.
    ///
    /// It never changes.
    end: Alarm,
    /// The next bookmark.
    bookmark: Alarm,
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

/// A time to wait for, repeatedly and with a single timer.
struct Alarm {
    /// The time.
    time: Instant,
    /// Created at the first wait.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Creates an alarm.
    fn new(time: Instant) -> Self {
        Self { time, timer: None }
    }

    /// Waits for the time.
    ///
    /// Cancel safe: the timer is kept, and the next call waits for the same time.
    async fn ring(&mut self) {
        let time = self.time;
        self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(time))).await;
    }
}

/// The result of one read of the history.
enum Next {
    /// These events match.
    Events(Vec<WatchEvent>),
    /// No event matches yet.
    ///
    /// The watcher waits for the next change.
    Nothing,
    /// The history starts only after this revision.
    TooOld(u64),
    /// The CRD has changed, and all earlier events are sent.
    Over,
}

impl Watcher {
    /// Formats events as lines. If an object cannot be converted, the watch ends with an error event.
    ///
    /// A single line that is shared with other watchers is returned without a copy. The conversion
    /// webhook is called without the lock.
    async fn lines(&mut self, mut events: Vec<WatchEvent>) -> Bytes {
        if let [WatchEvent::Line(line)] = events.as_slice() {
            self.order = EventOrder::Later;
            return line.clone();
        }
        if let Err(status_error) = convert(&self.state, &self.start.resource, &mut events).await {
            self.over = true;
            events = vec![WatchEvent::error(&status_error)];
        }
        let now = self.state.lock().clock.now();
        let mut body = Vec::new();
        for event in events {
            let mut event = match event {
                WatchEvent::Value(event) => event,
                WatchEvent::Transition(change) => match change.judged(&self.start.selector) {
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

    /// Returns the next chunk of the body, or `None` at the end.
    ///
    /// Initial events come first, in one chunk. An empty chunk is never returned.
    async fn next(&mut self) -> Option<Bytes> {
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
                () = sleep_until(held_until), if held_until.is_some() => {}
                () = self.end.ring() => {
                    self.over = true;
                    return None;
                }
                () = self.bookmark.ring(), if self.start.bookmarks => {
                    self.next_bookmark();
                    if self.start.revision > self.start_revision {
                        let event = self.start.bookmark(self.start.revision);
                        return Some(self.lines(vec![WatchEvent::Value(event)]).await);
                    }
                }
            }
        }
    }

    /// Sets the time of the next bookmark. The last one is `BOOKMARK_BEFORE_END` before the end of the watch.
    ///
    /// After the last bookmark, the time is set beyond the end of the watch.
    fn next_bookmark(&mut self) {
        let (now, end) = (self.bookmark.time, self.end.time);
        let frequent = self.start.frequent_bookmarks.filter(|frequent| now < self.started + frequent.lasts);
        let every = frequent.map_or(BOOKMARK_EVERY, |frequent| frequent.every);
        let last = end.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
        self.bookmark = Alarm::new(last.map_or(end + BOOKMARK_EVERY, |last| last.min(now + every)));
    }

    /// Reads the history from the watch's revision on, up to [`BATCH_LEN_MAX`] events.
    ///
    /// Moves the watch's revision past the events that were read, even if they do not match. Stops where the CRD
    /// changed.
    fn read(&mut self) -> Next {
        if self.start.gate.is_some() {
            return self.read_under_faults();
        }
        let state = self.state.lock();
        let current = state.revision;
        if self.start.revision > current {
            return Next::Nothing;
        }
        let Some(table) = state.known_table(&self.start.resource.id) else { return Next::Nothing };
        let end = (table.redefined() != self.start.definition).then(|| table.redefined());
        let Some(events) = table.since(self.start.revision) else {
            return Next::TooOld(table.compacted());
        };
        let mut seen = Vec::new();
        for event in events.take_while(|event| end.is_none_or(|end| event.revision < end)) {
            self.start.revision = event.revision;
            seen.extend(self.start.seen(event).map(|(_, watch_event)| watch_event));
            if seen.len() >= BATCH_LEN_MAX {
                return Next::Events(seen);
            }
        }
        // There are no more changes of this resource up to the server's revision.
        self.start.revision = current;
        match end {
            _ if !seen.is_empty() => Next::Events(seen),
            Some(_) => Next::Over,
            None => Next::Nothing,
        }
    }

    /// Reads the history like [`Self::read`], for a client under faults, one event at a time.
    ///
    /// Faults can hold, repeat or merge events of this client, or end its watch; the history itself is unchanged.
    fn read_under_faults(&mut self) -> Next {
        let state = self.state.clone();
        let mut state = state.lock();
        let current = state.revision;
        let Some(mut gate) = self.start.gate.take() else { return Next::Nothing };
        let table = state.table(&self.start.resource.id);
        let over = table.redefined() != self.start.definition;
        let next = match table.since(self.start.revision) {
            _ if self.start.revision > current => Next::Nothing,
            None => Next::TooOld(table.compacted()),
            Some(_) if gate.is_expired() => Next::TooOld(current),
            Some(events) => self.pass(&mut gate, events.cloned().collect(), current),
        };
        self.start.gate = Some(gate);
        if over && matches!(next, Next::Nothing) { Next::Over } else { next }
    }

    /// Delivers events through the gate of faults.
    ///
    /// The revision moves only past events that were delivered, so that a held event is read again.
    fn pass(&mut self, gate: &mut Gate, events: Vec<Arc<Event>>, current: u64) -> Next {
        let opened = gate.opens(events.iter());
        let events = match opened {
            Opened::Not => return Next::Nothing,
            Opened::Each => events,
            Opened::Newest => newest(events.iter()),
        };
        let mut seen = Vec::new();
        let events_or_nothing =
            |seen: Vec<WatchEvent>| if seen.is_empty() { Next::Nothing } else { Next::Events(seen) };
        for event in events {
            let Some((kind, shown)) = self.start.seen(&event) else {
                self.start.revision = event.revision;
                continue;
            };
            let kind = kind.name();
            let passage = if opened == Opened::Newest { gate.deliver(&event, kind) } else { gate.pass(&event, kind) };
            match passage {
                Passage::Held => return events_or_nothing(seen),
                Passage::Expired if seen.is_empty() => return Next::TooOld(current),
                Passage::Expired => return Next::Events(seen),
                Passage::Once | Passage::Last => seen.push(shown),
                Passage::Twice => seen.extend([shown.clone(), shown]),
            }
            self.start.revision = event.revision;
            if matches!(passage, Passage::Last) {
                self.over = true;
                return events_or_nothing(seen);
            }
        }
        self.start.revision = current;
        events_or_nothing(seen)
    }
}

/// Waits for a time, or forever without one.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
