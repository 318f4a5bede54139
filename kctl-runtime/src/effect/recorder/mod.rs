//! Events: what happened to an object, told to people, in the background.

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
    manager::Clock,
    object::{Kind, Stored},
    spec::ControllerSpec,
};

/// Events that wait to be sent; beyond it new ones are dropped (client-go's broadcaster keeps as many).
pub const EVENTS_MAX: usize = 1_000;
/// Longest note that the API server takes, in bytes.
const NOTE_LEN_MAX: usize = 1_024;
/// What stands for the rest of a longer note.
const CUT: char = '…';

/// Whether something is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What happened to an object.
#[derive(Debug, Clone)]
pub(crate) struct Happening {
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
    pub(crate) action: String,
    pub(crate) related: Option<ObjectReference>,
}

impl Happening {
    /// What was done where nobody says what.
    pub(crate) const ACTION: &str = "Reconcile";

    pub(crate) fn new(kind: EventType, reason: &str, note: String) -> Self {
        Self { kind, reason: reason.into(), note, action: Self::ACTION.into(), related: None }
    }
}

/// Takes events and sends them in the background.
#[derive(Clone)]
pub struct Recorder {
    events: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
    closing: Arc<Notify>,
    reporter: String,
    clock: Clock,
}

/// A recorder as metrics see it; it does not keep the recorder going.
#[derive(Clone)]
pub(crate) struct RecorderView {
    events: mpsc::WeakSender<Event>,
    dropped: Arc<AtomicU64>,
    closing: Arc<Notify>,
}

impl RecorderView {
    /// Events that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.events.upgrade().map_or(0, |events| events.max_capacity() - events.capacity())
    }

    /// Has it send what waits, and end: whoever still holds the recorder, in a report that was kept or in a task of its own,
    /// keeps no stop waiting.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    /// Events that were dropped since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Recorder {
    /// A recorder of a controller, and what sends its events: a future that has to be run.
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

    pub(crate) fn record(&self, spec: &ControllerSpec, about: &Stored, happening: Happening) {
        self.record_about(&spec.primary.kind, spec, about, happening);
    }

    /// The same of an object of another kind than the primary's.
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
            Err(TrySendError::Full(_)) => format!("{EVENTS_MAX} others wait"),
            Err(TrySendError::Closed(_)) => "the program has stopped".into(),
        };
        self.dropped.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(reason, object = meta.name(), "an event is dropped: {why}");
    }
}

/// The part of a note that the API server takes; at its end it says that there was more.
fn fitting(mut note: String) -> String {
    if note.len() > NOTE_LEN_MAX {
        let most = NOTE_LEN_MAX - CUT.len_utf8();
        let end = (0..=most).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
        note.truncate(end);
        note.push(CUT);
    }
    note
}
