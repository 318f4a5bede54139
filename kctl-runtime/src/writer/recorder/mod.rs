//! Events: reports about objects for people, sent in the background.
//!
//! `kubectl describe` prints them. An event is queued in memory and never delays or fails a reconcile. On the way
//! repeated events are merged as client-go does it. The same event again increments the count of a series, and ten
//! similar ones within ten minutes become one "(combined from similar events)".
//!
//! 1. [`Recorder::record`] builds an `events.k8s.io/v1` Event and puts it into a queue of [`EVENTS_MAX`].
//! 2. `correlate` decides if it is new, a repetition, one of many similar ones, or too much.
//! 3. `send` creates or patches it. The permit is checked before each request, so that a standby sends nothing.
//!
//! Events are not state. API servers delete them after an hour, and they may be dropped here. So a controller must
//! never read its own events to decide something: use a condition.

mod correlate;
mod drop_log;
mod lru_map;
mod send;
#[cfg(test)]
mod tests;

use std::{
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use foldhash::fast::FixedState;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::Client;
use parking_lot::Mutex;
use tokio::{
    sync::{
        Notify,
        mpsc::{self, error::TrySendError},
    },
    time::Instant,
};

use drop_log::DropLog;
use send::Sender;

use super::WritePermit;
use crate::{
    clock::Clock,
    declaration::ControllerSpec,
    object::{Kind, Stored},
};

/// Maximum number of events that wait to be sent, per controller. Beyond it new ones are dropped.
///
/// A metric counts the dropped events. client-go's broadcaster has the same bound.
pub const EVENTS_MAX: usize = 1_000;
/// Longest note that the API server accepts, in bytes.
const NOTE_LEN_MAX: usize = 1_024;
/// Replaces the end of a longer note, so that a reader sees that something is missing.
const CUT: char = '…';

/// The type of an event: `kubectl describe` shows it in its first column.
///
/// ```
/// use kctl_runtime::writer::EventType;
///
/// assert_eq!(format!("{:?}", EventType::Warning), "Warning"); // as in the Event's `type`
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Something happened as intended.
    Normal,
    /// Something needs attention.
    Warning,
}

/// One event before it is bound to an object.
///
/// Choose a reason that people can search for: `CamelCase`, a fixed set, at most 128 characters. Details go into the
/// note.
#[derive(Debug, Clone)]
pub(crate) struct EventRecord {
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
    /// The action of the controller, for example `Scale`; required by `events.k8s.io/v1`.
    pub(crate) action: String,
    /// A second object, such as the Pod that a `ReplicaSet` created.
    pub(crate) related: Option<ObjectReference>,
}

impl EventRecord {
    /// The `action` of an event if the caller names none.
    pub(crate) const ACTION: &str = "Reconcile";

    /// Creates an event with the usual action and no second object.
    pub(crate) fn new(kind: EventType, reason: &str, note: String) -> Self {
        Self { kind, reason: reason.into(), note, action: Self::ACTION.into(), related: None }
    }
}

/// Accepts the events of one controller and queues them for the API server.
///
/// In a reconcile function you record events through the context; it fills in the object and the
/// controller. Create a recorder to use the stage alone, and run the returned future next to your code.
///
/// ```no_run
/// # fn recorder(client: kube::Client) {
/// use std::sync::Arc;
/// use k8s_openapi::jiff::Timestamp;
/// use kctl_runtime::writer::{Recorder, WritePermit};
///
/// let clock = Arc::new(Timestamp::now);
/// let permit = WritePermit::always();
/// let (recorder, sending) = Recorder::new(client, "podset.example.com", "podset", clock, permit);
/// tokio::spawn(sending); // ends when the last recorder is dropped
/// # drop(recorder);
/// # }
/// ```
#[derive(Clone)]
pub struct Recorder {
    events: mpsc::Sender<Event>,
    /// Number of events that found the queue full or the sender gone.
    dropped: Arc<AtomicU64>,
    /// Limits the log lines about them.
    drop_log: Arc<Mutex<DropLog>>,
    closing: Arc<Notify>,
    /// `reportingController` of each event.
    reporter: String,
    clock: Clock,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("reporter", &self.reporter).finish_non_exhaustive()
    }
}

/// A recorder as metrics and the manager see it. It does not keep the sender running.
#[derive(Clone)]
pub(crate) struct RecorderView {
    events: mpsc::WeakSender<Event>,
    dropped: Arc<AtomicU64>,
    closing: Arc<Notify>,
}

impl RecorderView {
    /// Returns the number of queued events.
    pub(crate) fn waiting(&self) -> usize {
        self.events.upgrade().map_or(0, |events| events.max_capacity() - events.capacity())
    }

    /// Sends the queued events and ends the sender, even if a task still holds the recorder.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    /// Returns the number of events that were dropped since the start.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Recorder {
    /// Creates a recorder, and the future that sends its events. Nothing is sent unless the future is polled.
    ///
    /// `reporter` becomes `reportingController` (the name of the program), and `controller` distinguishes
    /// events of two controllers of one program. `clock` sets `eventTime`, and `permit` is checked before each
    /// request, so a process that does not lead sends nothing.
    ///
    /// The future ends after the last recorder is dropped and everything queued has been sent. Dropping it earlier
    /// loses the queue. Events of one recorder are sent in the order in which they were recorded.
    pub fn new(
        client: Client,
        reporter: &str,
        controller: &str,
        clock: Clock,
        permit: WritePermit,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (events, waiting) = mpsc::channel(EVENTS_MAX);
        let (dropped, closing) = (Arc::default(), Arc::<Notify>::default());
        // A hash of the name alone, so that a simulation sends the same Events in each run.
        let [low, high, ..] = FixedState::default().hash_one(controller).to_le_bytes();
        let sender = Sender { client, permit, suffix: u16::from_le_bytes([low, high]) };
        let sending = sender.run(waiting, closing.clone());
        (Self { events, dropped, drop_log: Arc::default(), closing, reporter: reporter.into(), clock }, sending)
    }

    /// Returns a handle for metrics. The handle is weak: a strong one would keep the sender from ending.
    pub(crate) fn view(&self) -> RecorderView {
        RecorderView { events: self.events.downgrade(), dropped: self.dropped.clone(), closing: self.closing.clone() }
    }

    /// Queues an event about an object of the primary's kind.
    ///
    /// Never blocks. A full queue drops the event and counts it. A warning is logged for the first one, and then once a
    /// minute with the number of dropped events.
    pub(crate) fn record(&self, spec: &ControllerSpec, about: &Stored, record: EventRecord) {
        self.record_about(&spec.primary.kind, spec, about, record);
    }

    /// Queues an event about an object of another kind.
    ///
    /// The object is named with uid and resourceVersion, so the event belongs to this object and not to a later one of
    /// the same name.
    pub(crate) fn record_about(&self, about_kind: &Kind, spec: &ControllerSpec, about: &Stored, record: EventRecord) {
        let EventRecord { kind, reason, note, action, related } = record;
        let meta = about.meta();
        // kubectl looks for Events about cluster-scoped objects in this namespace.
        let namespace = meta.namespace().unwrap_or("default").to_owned();
        let event = Event {
            metadata: ObjectMeta { namespace: Some(namespace), ..ObjectMeta::default() },
            event_time: Some(MicroTime((self.clock)())),
            reporting_controller: Some(self.reporter.clone()),
            reporting_instance: Some(spec.name.clone()),
            action: Some(action),
            reason: Some(reason.clone()),
            type_: Some(format!("{kind:?}")),
            note: Some(truncate_note(note)),
            regarding: Some(ObjectReference {
                api_version: Some(about_kind.api_version()),
                kind: Some(about_kind.kind.clone()),
                name: Some(meta.name().to_owned()),
                namespace: meta.namespace().map(Into::into),
                uid: Some(meta.uid.to_string()),
                resource_version: Some(meta.resource_version.to_string()),
                field_path: None,
            }),
            related,
            ..Event::default()
        };
        let why = match self.events.try_send(event) {
            Ok(()) => return,
            Err(TrySendError::Full(_)) => format!("{EVENTS_MAX} are queued already"),
            Err(TrySendError::Closed(_)) => "the program has stopped".into(),
        };
        self.dropped.fetch_add(1, Ordering::Relaxed);
        let n_dropped = self.drop_log.lock().add(Instant::now());
        if let Some(n_dropped) = n_dropped {
            tracing::warn!(reason, object = meta.name(), n_dropped, "Event dropped: {why}");
        }
    }
}

/// Returns a note that the API server accepts; a cut one ends with `…`.
///
/// The cut is between characters: a note is never invalid UTF-8.
fn truncate_note(mut note: String) -> String {
    if note.len() > NOTE_LEN_MAX {
        let most = NOTE_LEN_MAX - CUT.len_utf8();
        let end = (0..=most).rev().find(|index| note.is_char_boundary(*index)).unwrap_or(0);
        note.truncate(end);
        note.push(CUT);
    }
    note
}
