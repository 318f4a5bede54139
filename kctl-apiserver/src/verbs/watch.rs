//! `GET` with `watch`: events out of the history, for as long as the client asks.
//!
//! A watcher has no buffer: it reads the history at its own pace, and one that is slower than the history is long is
//! told so with 410. Writers never wait for it.

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
use super::{Answer, OutputForm, Payload, list};
use crate::{
    conversion::{self, Way},
    faults::{Connection, Gate, Opened, Passage, newest},
    proto,
    registry::Resource,
    request::RequestInfo,
    schema,
    selector::Selector,
    state::State,
    status::{FieldError, StatusError},
    store::{Event, EventType, Lines, Object, event_line, head},
};

/// A client that wants bookmarks gets one so often (`defaultBookmarkFrequency` of the watch cache), and one so long before its time
/// is over (`nextBookmarkTime`).
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Without a timeout a watch lives for 30 to 60 minutes on the real server; here for the shorter.
const LIFE_DEFAULT: Duration = Duration::from_secs(1_800);
/// Events that are put into one piece of the body.
const BATCH_LEN_MAX: usize = 100;

/// A watch that has been accepted.
pub(crate) struct Start {
    resource: Arc<Resource>,
    namespace: String,
    selector: Selector,
    bookmarks: bool,
    form: OutputForm,
    life: Duration,
    /// How the text begins of objects that go out as they are stored.
    head: String,
    /// The state that is sent first, as events.
    initial: Vec<WatchEvent>,
    /// Events after this revision follow.
    revision: u64,
    /// By which [`Table::redefined`](crate::store::Table::redefined) the kind is served as it was.
    definition: u64,
    changes: Arc<Notify>,
    /// A fault on purpose: so long the watch stays behind.
    lag: Option<Duration>,
    gate: Option<Gate>,
    /// It ends after what is sent first.
    over: bool,
}

const NOT_OLDER: &str = "NotOlderThan";

/// Where a watch begins.
struct Wanted<'a> {
    version: &'a str,
    /// By the path alone, as of old: such options are judged as those of a list, and nothing is added to them
    /// (`ListResource` of `k8s.io/apiserver/pkg/endpoints/handlers/get.go`).
    by_path: bool,
    /// Whether the state is sent first, if it says so.
    initial: Option<bool>,
    matching: &'a str,
}

impl<'a> Wanted<'a> {
    /// Watches without a version, or with 0, are streams of the state like those that say so (apimachinery,
    /// `SetListOptionsDefaults`).
    fn of(info: &'a RequestInfo) -> Self {
        let (version, matching) = (info.params.text("resourceVersion"), info.params.text("resourceVersionMatch"));
        let by_path = !info.params.flag("watch");
        let initial = info.params.given("sendInitialEvents").then(|| info.params.flag("sendInitialEvents"));
        if !by_path && initial.is_none() && matching.is_empty() && ["", "0"].contains(&version) {
            return Self { version, by_path, initial: Some(true), matching: NOT_OLDER };
        }
        Self { version, by_path, initial, matching }
    }

    /// Whether the state comes first.
    fn begins_with_state(&self) -> bool {
        self.initial == Some(true) || (self.by_path && ["", "0"].contains(&self.version))
    }

    /// apimachinery, `validateWatchOptions`.
    fn check(&self, info: &RequestInfo) -> Result<(), StatusError> {
        if self.by_path {
            return list::ListOptions::check_versions(info);
        }
        let continues = !info.params.text("continue").is_empty();
        let (streams, matching) = (self.initial.is_some(), self.matching);
        let mut errors = Vec::new();
        let mut forbid = |is_so: bool, why: &str| errors.extend(is_so.then(|| FieldError::forbidden(list::MATCH, why)));
        forbid(
            streams && matching != NOT_OLDER,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
        forbid(
            !streams && !matching.is_empty(),
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        );
        if !["", NOT_OLDER].contains(&matching) {
            errors.push(list::unsupported_match(matching, r#""NotOlderThan""#));
        }
        if continues && !matching.is_empty() {
            errors.push(FieldError::forbidden(
                list::MATCH,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
    }

    fn revision(&self) -> Result<u64, StatusError> {
        match self.version {
            "" => Ok(0),
            text => text.parse().map_err(|_| list::unreadable_version(text)),
        }
    }
}

pub(super) fn start(state: &mut State, info: &RequestInfo, form: OutputForm) -> Result<Answer, StatusError> {
    let options = list::ListOptions::read(info)?;
    let life = life(options.seconds);
    let wanted = Wanted::of(info);
    wanted.check(info)?;
    let selector = options.selector(info)?;
    let asked = wanted.revision()?;
    OutputForm::streams(info)?;
    let sends_initial = wanted.begins_with_state();
    let unknown = list::not_from_the_future(state, wanted.version).err().filter(|_| sends_initial);
    let bookmarks = info.params.flag("allowWatchBookmarks");
    let revision = state.revision;
    let table = state.table(&info.resource.of);
    let mut start = Start {
        namespace: info.namespace.clone(),
        resource: info.resource.clone(),
        selector,
        bookmarks,
        form,
        life,
        head: head(&info.resource),
        initial: Vec::new(),
        revision: asked,
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
        let past = stale.and_then(|stale| table.at(stale));
        let (table, revision) = past.as_ref().zip(stale).unwrap_or((table, revision));
        start.initial = table.range(namespace, None).filter_map(|(_, object)| start.there(object)).collect();
        start.revision = revision;
        if bookmarks && wanted.initial.is_some() {
            let mut end = start.bookmark(revision);
            end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true".into();
            start.initial.push(WatchEvent::Value(end));
        }
    } else if asked == 0 {
        start.revision = revision;
    }
    if life.is_zero() {
        start.end_at_once(&wanted);
    }
    Ok(Answer { payload: Payload::Watch(Box::new(start)), ..Answer::ok(Value::Null) })
}

/// Go counts in nanoseconds: what is too long for them is as likely to be less than nothing.
fn life(seconds: i64) -> Duration {
    match seconds.wrapping_mul(1_000_000_000) {
        0 => LIFE_DEFAULT,
        nanos => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
    }
}

impl Start {
    /// A watch whose time is over before it begins. Whoever waits for the newest state does so in vain, and is told.
    fn end_at_once(&mut self, wanted: &Wanted<'_>) {
        let waits = wanted.initial == Some(true) && wanted.version.is_empty();
        let late = StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "context deadline exceeded");
        self.initial = waits.then(|| WatchEvent::error(&late)).into_iter().collect();
        self.over = true;
    }

    /// The watch of a client under faults.
    pub(crate) fn under(mut self, connection: Option<&Connection>) -> Self {
        let held = self.lag.map(|lag| Instant::now() + lag);
        let of = &self.resource.of;
        self.gate = connection.map(|connection| Gate::new(connection.clone(), &of.group, &of.resource, held));
        self
    }

    fn event(&self, kind: &str, object: &Value) -> Value {
        match conversion::way(&self.resource, object) {
            Way::Done(converted) => json!({ "type": kind, "object": converted }),
            Way::Same | Way::Ask => json!({ "type": kind, "object": object }),
        }
    }

    /// The lines of an event are shared by all who watch it as it is.
    fn said(&self, kind: EventType, object: &Object, lines: Option<&Lines>) -> WatchEvent {
        if self.form == OutputForm::Plain && object.text().starts_with(self.head.as_bytes()) {
            return WatchEvent::Line(lines.map_or_else(|| event_line(kind, object), |lines| lines.of(kind, object)));
        }
        WatchEvent::Value(self.event(kind.name(), &object.value()))
    }

    /// The event of an object that is there when the watch begins.
    fn there(&self, object: &Arc<Object>) -> Option<WatchEvent> {
        if self.is_judged_later(object) {
            let after = Value::clone(&object.value());
            return Some(WatchEvent::Transition(Transition { before: None, after, deleted: false }.into()));
        }
        self.matches(object).then(|| self.said(EventType::Added, object, None))
    }

    fn is_judged_later(&self, object: &Object) -> bool {
        conversion::is_asked(&self.resource) && is_judged_later(&self.resource, &self.selector, &object.value())
    }

    fn matches(&self, object: &Object) -> bool {
        if self.selector.is_empty() {
            return true;
        }
        let value = object.value();
        match conversion::way(&self.resource, &value) {
            Way::Done(converted) => self.selector.matches(&converted),
            Way::Same | Way::Ask => self.selector.matches(&value),
        }
    }

    /// An object in which nothing but the revision is set.
    fn bookmark(&self, revision: u64) -> Value {
        let (kind, api_version) = (self.resource.kind(), self.resource.api_version());
        let zeros = schema::name_of(&api_version, kind).map(proto::always).unwrap_or_default();
        let mut object = json!({ "kind": kind, "apiVersion": api_version });
        for (field, zero) in zeros {
            object[field] = zero;
        }
        object["metadata"] = json!({ "resourceVersion": revision.to_string() });
        // Where the real server has a number, these have a pointer or an annotation.
        match (self.resource.of.group.as_str(), kind) {
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") => object["spec"]["replicas"] = 0.into(),
            ("apps", "DaemonSet") => {
                object["metadata"]["annotations"] = json!({ "deprecated.daemonset.template.generation": "0" });
            }
            _ => {}
        }
        json!({ "type": "BOOKMARK", "object": object })
    }

    /// An event as this watcher sees it: what begins to match is added, what ceases to match is deleted.
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
        Some((kind, self.said(kind, &event.object, Some(&event.lines))))
    }

    /// The body of the answer: lines of JSON.
    pub(crate) fn stream(mut self, state: Arc<Mutex<State>>) -> impl Stream<Item = Bytes> + Send {
        let initial = std::mem::take(&mut self.initial);
        let now = Instant::now();
        let mut watcher = Watcher {
            end: Alarm::at(now + self.life),
            bookmark: Alarm::at(now),
            known: self.revision,
            over: self.over,
            start: self,
            state,
            any: false,
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

struct Watcher {
    start: Start,
    state: Arc<Mutex<State>>,
    end: Alarm,
    bookmark: Alarm,
    /// The revision with which it began: no bookmark tells it again.
    known: u64,
    over: bool,
    /// Something has been sent.
    any: bool,
    /// The state that is sent first.
    unsent: Vec<WatchEvent>,
}

/// A time that is waited for again and again: its timer is set once.
struct Alarm {
    at: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn at(at: Instant) -> Self {
        Self { at, timer: None }
    }

    async fn ring(&mut self) {
        let at = self.at;
        self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at))).await;
    }
}

enum Next {
    Events(Vec<WatchEvent>),
    Nothing,
    /// What follows its revision is forgotten; it is known from this one on.
    TooOld(u64),
    /// The definition of the kind is another one now, and all events from before have been told.
    Over,
}

impl Watcher {
    /// The events as lines. One whose object cannot be converted ends the watch.
    async fn lines(&mut self, mut events: Vec<WatchEvent>) -> Bytes {
        if let [WatchEvent::Line(line)] = events.as_slice() {
            self.any = true;
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
                    self.any = true;
                    body.extend_from_slice(&line);
                    continue;
                }
            };
            if !self.start.form.shape_event(&self.start.resource, &mut event, now, !self.any) {
                self.over = true;
                break;
            }
            self.any = true;
            // Values always serialise.
            let _infallible = serde_json::to_writer(&mut body, &event);
            body.push(b'\n');
        }
        body.into()
    }

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
            // Before the look at the history, so that no change falls between look and wait.
            let changed = self.start.changes.clone().notified_owned();
            match self.read() {
                Next::Over => return None,
                Next::Events(events) => {
                    let lines = self.lines(events).await;
                    // Nothing of it may match.
                    if lines.is_empty() {
                        continue;
                    }
                    return Some(lines);
                }
                Next::TooOld(known) => {
                    self.over = true;
                    let why = format!("too old resource version: {} ({known})", self.start.revision);
                    return Some(self.lines(vec![WatchEvent::error(&StatusError::expired(why))]).await);
                }
                Next::Nothing => {}
            }
            // After the look: the event at which the watch stands still may be among those that were looked at.
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
                    if self.start.revision > self.known {
                        let event = self.start.bookmark(self.start.revision);
                        return Some(self.lines(vec![WatchEvent::Value(event)]).await);
                    }
                }
            }
        }
    }

    /// After the last one none comes before the end.
    fn next_bookmark(&mut self) {
        let (now, end) = (self.bookmark.at, self.end.at);
        let last = end.checked_sub(BOOKMARK_BEFORE_END).filter(|last| *last > now);
        self.bookmark = Alarm::at(last.map_or(end + BOOKMARK_EVERY, |last| last.min(now + BOOKMARK_EVERY)));
    }

    fn read(&mut self) -> Next {
        if self.start.gate.is_some() {
            return self.read_under_faults();
        }
        let state = self.state.lock();
        let current = state.revision;
        if self.start.revision > current {
            return Next::Nothing;
        }
        let Some(table) = state.known_table(&self.start.resource.of) else { return Next::Nothing };
        let end = (table.redefined() != self.start.definition).then(|| table.redefined());
        let Some(events) = table.since(self.start.revision) else {
            return Next::TooOld(table.compacted());
        };
        let mut seen = Vec::new();
        for event in events.take_while(|event| end.is_none_or(|end| event.revision < end)) {
            self.start.revision = event.revision;
            seen.extend(self.start.seen(event).map(|(_, said)| said));
            if seen.len() >= BATCH_LEN_MAX {
                return Next::Events(seen);
            }
        }
        // Nothing more of this resource happened up to the revision of the whole server.
        self.start.revision = current;
        match end {
            _ if !seen.is_empty() => Next::Events(seen),
            Some(_) => Next::Over,
            None => Next::Nothing,
        }
    }

    /// The same for a client under faults, one event at a time.
    fn read_under_faults(&mut self) -> Next {
        let state = self.state.clone();
        let mut state = state.lock();
        let current = state.revision;
        let Some(mut gate) = self.start.gate.take() else { return Next::Nothing };
        let table = state.table(&self.start.resource.of);
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

    fn pass(&mut self, gate: &mut Gate, events: Vec<Arc<Event>>, current: u64) -> Next {
        let opened = gate.opens(events.iter());
        let events = match opened {
            Opened::Not => return Next::Nothing,
            Opened::Each => events,
            Opened::Newest => newest(events.iter()),
        };
        let mut seen = Vec::new();
        let told = |seen: Vec<WatchEvent>| if seen.is_empty() { Next::Nothing } else { Next::Events(seen) };
        for event in events {
            let Some((kind, shown)) = self.start.seen(&event) else {
                self.start.revision = event.revision;
                continue;
            };
            let kind = kind.name();
            let passage = if opened == Opened::Newest { gate.deliver(&event, kind) } else { gate.pass(&event, kind) };
            match passage {
                Passage::Held => return told(seen),
                Passage::Expired if seen.is_empty() => return Next::TooOld(current),
                Passage::Expired => return Next::Events(seen),
                Passage::Once | Passage::Last => seen.push(shown),
                Passage::Twice => seen.extend([shown.clone(), shown]),
            }
            self.start.revision = event.revision;
            if matches!(passage, Passage::Last) {
                self.over = true;
                return told(seen);
            }
        }
        self.start.revision = current;
        told(seen)
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
