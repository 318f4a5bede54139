//! Events: what happened to an object, told to people, in the background.

use http::Method;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::Client;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::mpsc;

use super::{WritePermit, transport};
use crate::{manager::Clock, object::Stored, spec::ControllerSpec};

/// Events that wait to be sent; beyond it new ones are dropped (client-go's broadcaster keeps as many).
pub const EVENTS_MAX: usize = 1_000;
/// Longest note that the API server takes, in bytes.
const NOTE_LEN_MAX: usize = 1_024;

/// Whether something is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Takes events and sends them in the background.
#[derive(Clone)]
pub struct Recorder {
    events: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
    reporter: String,
    clock: Clock,
}

/// A recorder as metrics see it; it does not keep the recorder going.
#[derive(Clone)]
pub(crate) struct RecorderView {
    events: mpsc::WeakSender<Event>,
    dropped: Arc<AtomicU64>,
}

impl RecorderView {
    /// Events that wait to be sent.
    pub(crate) fn waiting(&self) -> usize {
        self.events.upgrade().map_or(0, |events| events.max_capacity() - events.capacity())
    }

    /// Events that were dropped since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Recorder {
    /// A recorder and what sends its events: a future that has to be run.
    pub fn new(
        client: Client,
        reporter: &str,
        clock: Clock,
        permit: WritePermit,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (events, waiting) = mpsc::channel(EVENTS_MAX);
        let dropped = Arc::default();
        (Self { events, dropped, reporter: reporter.into(), clock }, send(client, permit, waiting))
    }

    pub(crate) fn view(&self) -> RecorderView {
        RecorderView { events: self.events.downgrade(), dropped: self.dropped.clone() }
    }

    pub(crate) fn record(
        &self,
        spec: &ControllerSpec,
        about: &Stored,
        kind: EventType,
        reason: &str,
        mut note: String,
    ) {
        if note.len() > NOTE_LEN_MAX {
            let end = (0..=NOTE_LEN_MAX).rev().find(|at| note.is_char_boundary(*at)).unwrap_or(0);
            note.truncate(end);
        }
        let meta = about.meta();
        // Events about objects of the cluster live in this namespace, as kubectl expects.
        let namespace = meta.namespace.clone().unwrap_or_else(|| "default".into());
        let event = Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}-", meta.name)),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime((self.clock)())),
            reporting_controller: Some(self.reporter.clone()),
            reporting_instance: Some(spec.name.clone()),
            action: Some("Reconcile".into()),
            reason: Some(reason.into()),
            type_: Some(format!("{kind:?}")),
            note: Some(note),
            regarding: Some(ObjectReference {
                api_version: Some(spec.primary.kind.api_version()),
                kind: Some(spec.primary.kind.kind.clone()),
                name: Some(meta.name.clone()),
                namespace: meta.namespace.clone(),
                uid: Some(meta.uid.clone()),
                resource_version: Some(meta.resource_version.clone()),
                field_path: None,
            }),
            ..Event::default()
        };
        if self.events.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(reason, object = meta.name, "an event is dropped: {EVENTS_MAX} others wait");
        }
    }
}

async fn send(client: Client, permit: WritePermit, mut waiting: mpsc::Receiver<Event>) {
    while let Some(event) = waiting.recv().await {
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        // An event always serialises.
        let body = serde_json::to_vec(&event).unwrap_or_default();
        let sent = Some(("application/json", body));
        let told = async {
            let within = permit.ask("create Event").await?;
            transport::send_within(&client, "create Event", Method::POST, &path, sent, within).await
        };
        if let Err(error) = told.await {
            // Events are told once: work never waits for them.
            tracing::warn!(%error, reason = event.reason, "an event was not taken");
        }
    }
}
