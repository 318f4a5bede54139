//! Events: reports about objects for people, sent in the background.
//!
//! `kubectl describe` prints them. An event is queued in memory and never delays or fails a reconcile. On
//! the way repeated events are merged as client-go does it: the same event again increments the count of a
//! series, and ten similar ones within ten minutes become one "(combined from similar events)".

mod correlate;
mod recent;
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
use tokio::sync::{
    Notify,
    mpsc::{self, error::TrySendError},
};

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
/// Replaces the end of a longer note.
const CUT: char = '…';

/// The type of an event: `kubectl describe` shows it in its first column.
///
/// ```
/// use kctl_runtime::effect::EventType;
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
#[derive(Debug, Clone)]
pub(crate) struct Happening {
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
    pub(crate) action: String,
    pub(crate) related: Option<ObjectReference>,
}

impl Happening {
    /// The `action` of an event if the caller names none.
    pub(crate) const ACTION: &str = "Reconcile";

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
/// use kctl_runtime::effect::{Recorder, WritePermit};
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
    dropped: Arc<AtomicU64>,
    closing: Arc<Notify>,
    reporter: String,
    clock: Clock,
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
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Recorder {
    /// Creates a recorder, and the future that sends its events. Nothing is sent unless the future is polled.
    ///
    /// `reporter` becomes `reportingController` (the name of the program), and `controller` tells events of
    /// two controllers of one program apart. `clock` sets `eventTime`, and `permit` is asked before each
    /// request, so a process that does not lead sends nothing.
    pub fn new(
        client: Client,
        reporter: &str,
        controller: &str,
        clock: Clock,
        permit: WritePermit,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (events, waiting) = mpsc::channel(EVENTS_MAX);
        let (dropped, closing) = (Arc::default(), Arc::<Notify>::default());
        // Of the name alone, so that two runs of the same program tell the same.
        let [low, high, ..] = FixedState::default().hash_one(controller).to_le_bytes();
        let sender = Sender { client, permit, suffix: u16::from_le_bytes([low, high]) };
        let sending = sender.run(waiting, closing.clone());
        (Self { events, dropped, closing, reporter: reporter.into(), clock }, sending)
    }

    pub(crate) fn view(&self) -> RecorderView {
        RecorderView { events: self.events.downgrade(), dropped: self.dropped.clone(), closing: self.closing.clone() }
    }

    /// Queues an event about an object of the primary's kind.
    pub(crate) fn record(&self, spec: &ControllerSpec, about: &Stored, happening: Happening) {
        self.record_about(&spec.primary.kind, spec, about, happening);
    }

    /// Queues an event about an object of another kind.
    pub(crate) fn record_about(&self, of: &Kind, spec: &ControllerSpec, about: &Stored, happening: Happening) {
        let Happening { kind, reason, note, action, related } = happening;
        let meta = about.meta();
        // Events about objects of the cluster live in this namespace, as kubectl expects.
        let namespace = meta.namespace().unwrap_or("default").to_owned();
        let event = Event {
            metadata: ObjectMeta { namespace: Some(namespace), ..ObjectMeta::default() },
            event_time: Some(MicroTime((self.clock)())),
            reporting_controller: Some(self.reporter.clone()),
            reporting_instance: Some(spec.name.clone()),
            action: Some(action),
            reason: Some(reason.clone()),
            type_: Some(format!("{kind:?}")),
            note: Some(fitting(note)),
            regarding: Some(ObjectReference {
                api_version: Some(of.api_version()),
                kind: Some(of.kind.clone()),
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
        tracing::warn!(reason, object = meta.name(), "Event dropped: {why}");
    }
}

/// Returns a note that the API server accepts; a cut one ends with `…`.
fn fitting(mut note: String) -> String {
    if note.len() > NOTE_LEN_MAX {
        let most = NOTE_LEN_MAX - CUT.len_utf8();
        let end = (0..=most).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
        note.truncate(end);
        note.push(CUT);
    }
    note
}
