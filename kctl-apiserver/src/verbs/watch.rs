//! `GET` with `watch`: streams events from the history until the watch ends.
//!
//! A watcher has no buffer: it reads the history at its own pace. If it falls behind the oldest event of the history,
//! the watch ends with 410. Writers never wait for it.

mod deadline;
mod watch_event;
mod watch_options;
mod watcher;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::Stream;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

use self::{
    watch_event::{Matches, Transition, WatchEvent, as_deleted, needs_conversion_first},
    watch_options::WatchOptions,
    watcher::Watcher,
};
use super::{OutputForm, Payload, VerbResponse, list, output_form::INITIAL_EVENTS_END, wants_yaml};
use crate::{
    conversion::{self, ConversionPlan},
    faults::{Connection, Gate},
    proto,
    registry::Resource,
    request::RequestInfo,
    schema,
    selector::Selector,
    stale::FrequentBookmarks,
    state::State,
    status::StatusError,
    store::{Event, EventLines, EventType, Object, Store, Table, event_line, head},
};

/// The duration of a watch without a timeout. kube-apiserver chooses 30 to 60 minutes (`ListResource` in
/// `k8s.io/apiserver/pkg/endpoints/handlers/get.go`); here it is always 30.
const LIFE_DEFAULT: Duration = Duration::from_secs(1_800);

/// An accepted watch, from which the body is streamed.
pub(crate) struct Start {
    /// The kind in the requested version.
    resource: Arc<Resource>,
    /// The namespace of the path; empty for all namespaces.
    namespace: String,
    /// The selector. An object that starts or stops matching is sent as added or deleted.
    selector: Selector,
    /// `allowWatchBookmarks`.
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
    initial: Vec<WatchEvent>,
    /// The revision after which the watch sends changes.
    revision: u64,
    /// [`Table::redefined_revision`](crate::store::Table::redefined_revision) at the start. If it changes, the CRD has
    /// changed and the watch ends.
    definition: u64,
    /// Notified after each change of the resource.
    changes: Arc<Notify>,
    /// The delay of a fault: the watch lags for this time.
    lag: Option<Duration>,
    /// The faults of this client's events.
    gate: Option<Gate>,
    /// `true` if the watch ends after the initial events.
    over: bool,
}

/// Accepts a watch: validates its options and takes the initial state under the lock. The initial state and its
/// revision are read under one lock, so no change before the first event is lost. A revision in the future causes an
/// error event if the initial state was requested; otherwise the watch waits until the revision is reached.
///
/// # Errors
/// Fails for invalid options. A version that is too old is reported by an event of the watch.
pub(super) fn start(store: &mut Store, info: &RequestInfo, form: OutputForm) -> Result<VerbResponse, StatusError> {
    let options = list::ListOptions::read(info)?;
    let life = watch_duration(options.seconds);
    let requested = WatchOptions::from_request(info);
    requested.check(info)?;
    let selector = options.selector(info)?;
    let since = requested.revision()?;
    // Types other than YAML are accepted, since `Accept` was checked before.
    if wants_yaml(info) {
        let streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        return Err(StatusError::not_acceptable(streams));
    }
    let sends_initial = requested.begins_with_state();
    let future_error = list::check_not_in_future(store, requested.version).err().filter(|_| sends_initial);
    let revision = store.revision;
    let table = store.table(&info.resource.id);
    let mut start = Start {
        namespace: info.namespace.clone(),
        resource: info.resource.clone(),
        selector,
        bookmarks: info.params.flag("allowWatchBookmarks"),
        frequent_bookmarks: info.frequent_bookmarks,
        form,
        life,
        head: head(&info.resource),
        initial: Vec::new(),
        revision: since,
        definition: table.redefined_revision(),
        changes: table.changes(),
        lag: info.stale.map(|stale| stale.lag),
        gate: None,
        over: future_error.is_some(),
    };
    if let Some(status_error) = future_error {
        start.initial = vec![WatchEvent::error(&status_error)];
    } else if sends_initial {
        start.begin_with_state(info, table, revision);
        if start.bookmarks && requested.initial.is_some() {
            let mut end = start.bookmark(start.revision);
            end["object"]["metadata"]["annotations"][INITIAL_EVENTS_END] = "true".into();
            start.initial.push(WatchEvent::Value(end));
        }
    } else if since == 0 {
        start.revision = revision;
    }
    if life.is_zero() {
        start.end_at_once(&requested);
    }
    Ok(VerbResponse { payload: Payload::Watch(Box::new(start)), ..VerbResponse::ok(Value::Null) })
}

/// Returns the duration for `timeoutSeconds`. Go multiplies it to nanoseconds, which may overflow to a negative number.
/// A negative timeout ends the watch at once.
fn watch_duration(seconds: i64) -> Duration {
    match seconds.wrapping_mul(1_000_000_000) {
        0 => LIFE_DEFAULT,
        nanos => Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)),
    }
}

impl Start {
    /// Begins the watch with an event for each object of the table, whose revision is `newest`. A fault may make the
    /// server lag: then the watch begins with an old state.
    fn begin_with_state(&mut self, info: &RequestInfo, table: &Table, newest: u64) {
        let stale = table.stale(info);
        let past = stale.and_then(|stale| table.at_revision(stale));
        let (table, revision) = past.as_deref().zip(stale).unwrap_or((table, newest));
        let namespace = Some(info.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        self.initial = table.range(namespace, None).filter_map(|(_, object)| self.initial_event(object)).collect();
        self.revision = revision;
    }

    /// Ends a watch before it starts. A watch that waits for the newest state gets an error event. Upstream's watch
    /// cache waits for the newest revision, and its deadline has passed by then.
    fn end_at_once(&mut self, requested: &WatchOptions<'_>) {
        let waits = requested.initial == Some(true) && requested.version.is_empty();
        let late = StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "context deadline exceeded");
        self.initial = waits.then(|| WatchEvent::error(&late)).into_iter().collect();
        self.over = true;
    }

    /// Applies the faults of a client to the watch.
    pub(crate) fn with_faults(mut self, connection: Option<&Connection>) -> Self {
        let held_until = self.lag.map(|lag| Instant::now() + lag);
        let resource = &self.resource.id;
        self.gate =
            connection.map(|connection| Gate::new(connection.clone(), &resource.group, &resource.resource, held_until));
        self
    }

    /// Returns an event of this type, with the object converted if that needs no webhook. With
    /// `ConversionPlan::CallWebhook` the object is converted later, by `lines`.
    fn event(&self, kind: &str, object: &Value) -> Value {
        match conversion::plan(&self.resource, object) {
            ConversionPlan::Done(converted) => json!({ "type": kind, "object": converted }),
            ConversionPlan::Same | ConversionPlan::CallWebhook => json!({ "type": kind, "object": object }),
        }
    }

    /// Returns the event of a stored object. If it is sent as stored, its line is shared with other watchers. `lines`
    /// is the cache of the event; initial objects have none.
    fn watch_event(&self, kind: EventType, object: &Object, lines: Option<&EventLines>) -> WatchEvent {
        if self.form == OutputForm::Plain && object.text().starts_with(self.head.as_bytes()) {
            return WatchEvent::Line(lines.map_or_else(|| event_line(kind, object), |lines| lines.get(kind, object)));
        }
        WatchEvent::Value(self.event(kind.name(), &object.value()))
    }

    /// Returns the initial event of an object, or `None` if it does not match. If a webhook must convert an object
    /// first, the selector is applied after the conversion.
    fn initial_event(&self, object: &Arc<Object>) -> Option<WatchEvent> {
        if self.needs_conversion_first(object) {
            let after = Value::clone(&object.value());
            return Some(WatchEvent::Transition(Transition { before: None, after, deleted: false }.into()));
        }
        self.matches(object).then(|| self.watch_event(EventType::Added, object, None))
    }

    /// Returns `true` if the object has to be converted before the selector can be applied. Either state may need a
    /// webhook.
    fn needs_conversion_first(&self, object: &Object) -> bool {
        conversion::uses_webhook(&self.resource)
            && needs_conversion_first(&self.resource, &self.selector, &object.value())
    }

    /// Returns `true` if the selector selects the object in the requested version.
    fn matches(&self, object: &Object) -> bool {
        self.selector.is_empty() || list::matches(&self.resource, &self.selector, &object.value())
    }

    /// Returns a bookmark. Its object has only what Go's zero value of the type writes, and the revision. Clients read
    /// only `resourceVersion` from it.
    fn bookmark(&self, revision: u64) -> Value {
        let (kind, api_version) = (self.resource.kind_name(), self.resource.api_version());
        let zeros = schema::name_of(&api_version, kind).map(proto::always_written_fields).unwrap_or_default();
        let mut object = json!({ "kind": kind, "apiVersion": api_version });
        for (field, zero) in zeros {
            object[field] = zero;
        }
        object["metadata"] = json!({ "resourceVersion": revision.to_string() });
        (self.resource.kind.requests.complete_bookmark)(&mut object);
        json!({ "type": "BOOKMARK", "object": object })
    }

    /// Returns the event as this watcher sees it: an object that starts to match is added, one that stops to match is
    /// deleted. `None` if the change does not concern the watcher. A deletion by selector carries the last matching
    /// state with the new revision.
    fn filter_event(&self, event: &Event) -> Option<(EventType, WatchEvent)> {
        if !self.namespace.is_empty() && event.key.0 != self.namespace {
            return None;
        }
        let before = event.before.as_ref();
        if [Some(&event.object), before].into_iter().flatten().any(|object| self.needs_conversion_first(object)) {
            let value = |object: &Arc<Object>| Value::clone(&object.value());
            let change = Transition { before: before.map(value), after: value(&event.object), deleted: event.deleted };
            let kind = Matches { before: before.is_some(), after: !event.deleted }.event_type()?;
            return Some((kind, WatchEvent::Transition(change.into())));
        }
        let matches = Matches {
            before: before.is_some_and(|before| self.matches(before)),
            after: !event.deleted && self.matches(&event.object),
        };
        let kind = matches.event_type()?;
        if let (EventType::Deleted, false, Some(before)) = (kind, event.deleted, before) {
            let last = as_deleted(Value::clone(&before.value()), &event.object.value());
            return Some((kind, WatchEvent::Value(self.event(kind.name(), &last))));
        }
        Some((kind, self.watch_event(kind, &event.object, Some(&event.lines))))
    }

    /// Returns the body of the response: events as lines of JSON. The stream ends with the watch; dropping it ends the
    /// watch at once, since nothing else refers to it.
    pub(crate) fn stream(self, state: Arc<Mutex<State>>) -> impl Stream<Item = Bytes> + Send {
        let watcher = Watcher::new(self, state);
        futures::stream::unfold(watcher, |mut watcher| async move {
            let piece = watcher.next().await?;
            Some((piece, watcher))
        })
    }
}

#[cfg(test)]
mod tests;
