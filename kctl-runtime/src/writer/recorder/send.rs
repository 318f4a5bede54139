//! Sends events to the API server: in order, each retried until the server answers.
//!
//! A create may be repeated safely, because its name contains the time: the second try finds the name taken. Only a
//! request without any answer is retried. A rejection is final, since an invalid event would be rejected again.
//!
//! While one event is retried the others wait: ten seconds per try, and the timeout of each. In that time the queue may
//! fill up, and then drops the newest events.

use std::{sync::Arc, time::Duration};

use http::Method;
use k8s_openapi::api::events::v1::Event;
use kube::Client;
use serde_json::json;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

use super::correlate::{Correlator, EventWrite};
use crate::{
    transport::{self, RequestBody},
    writer::{ApiError, MERGE_PATCH, Operation, WritePermit},
};

/// Maximum number of tries of an event without a response (client-go, `tools/record/event.go`).
const TRIES_MAX: u32 = 12;
/// Wait between two tries; the first one is a part of it, which differs by controller.
///
/// client-go randomizes the first wait for the same reason: after an API server restarts, not all clients come at once.
const RETRY_DELAY: Duration = Duration::from_secs(10);
/// Interval at which ended series are looked for.
const TICK: Duration = Duration::from_secs(60);
/// Longest name of an object, in bytes.
const NAME_LEN_MAX: usize = 253;

/// Sends the events of one controller. Owned by the future that [`Recorder::new`](super::Recorder::new) returns.
pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) permit: WritePermit,
    /// Ends the names of events, so that the names of two controllers differ.
    pub(super) suffix: u16,
}

impl Sender {
    /// Sends events until all recorders are gone or closed, then the counts of all series.
    ///
    /// A recorder that is closed takes no further events. Those in the queue are still sent.
    ///
    /// # Cancel safety
    /// Not safe: dropping the future loses the queue and the counts of running series.
    pub(super) async fn run(self, mut waiting: mpsc::Receiver<Event>, closing: Arc<Notify>) {
        let (mut correlator, mut last) = (Correlator::new(), 0);
        loop {
            let due = tokio::time::sleep(TICK);
            let event = tokio::select! {
                biased;
                event = waiting.recv() => event,
                () = closing.notified() => {
                    waiting.close();
                    continue;
                }
                () = due, if !correlator.is_empty() => {
                    self.send_all(correlator.tick(Instant::now())).await;
                    continue;
                }
            };
            let Some(mut event) = event else { break };
            last = self.name(&mut event, last);
            let steps = correlator.observe(event, Instant::now());
            self.send_all(steps).await;
        }
        self.send_all(correlator.finish(Instant::now())).await;
    }

    /// Names an event by its time, which makes a second try harmless, and returns that time.
    ///
    /// Times are made distinct: `last` is the one of the event before.
    ///
    /// The form is `<object>.<time in hex><suffix>`, close to client-go's `<object>.<nanoseconds in hex>`.
    fn name(&self, event: &mut Event, last: i128) -> i128 {
        let nanos = event.event_time.as_ref().map_or(0, |time| time.0.as_nanosecond()).max(last + 1);
        let end = format!(".{nanos:x}{:04x}", self.suffix);
        let object = event.regarding.as_ref().and_then(|object| object.name.as_deref()).unwrap_or_default();
        event.metadata.name = Some(subdomain(object, NAME_LEN_MAX - end.len()) + &end);
        nanos
    }

    /// Performs the steps in order. A failure is logged, because no reconcile waits for events.
    async fn send_all(&self, steps: Vec<EventWrite>) {
        for step in steps {
            let (EventWrite::Create(event) | EventWrite::Patch(event)) = &step;
            let reason = event.reason.clone();
            let object = event.regarding.as_ref().and_then(|regarding| regarding.name.clone());
            if let Err(error) = self.send(step).await {
                // Not retried: a reconcile never waits for an Event.
                tracing::warn!(%error, reason, object, "failed to send an Event");
            }
        }
    }

    /// Performs one step. A series whose event has expired (after an hour by default) is created again.
    async fn send(&self, step: EventWrite) -> Result<(), ApiError> {
        match step {
            EventWrite::Create(event) => self.create(&event).await,
            EventWrite::Patch(event) => match self.patch(&event).await {
                // The API server deletes Events after an hour by default, and a series may last longer.
                Err(error) if error.is_not_found() => self.create(&event).await,
                other => other,
            },
        }
    }

    /// Creates an event. `AlreadyExists` counts as success: an earlier try reached the server.
    async fn create(&self, event: &Event) -> Result<(), ApiError> {
        // Serializing an Event does not fail.
        let body = serde_json::to_vec(event).unwrap_or_default();
        let sent = self.request("create Event", Method::POST, &collection(event), RequestBody::json(body)).await;
        match sent {
            // The response to an earlier try was lost.
            Err(error) if error.is_already_exists() => Ok(()),
            other => other,
        }
    }

    /// Patches count and time of a series. Everything else of an event is immutable.
    async fn patch(&self, event: &Event) -> Result<(), ApiError> {
        let body = json!({ "series": event.series }).to_string().into_bytes();
        let path = format!("{}/{}", collection(event), event.metadata.name.as_deref().unwrap_or_default());
        self.request("patch Event", Method::PATCH, &path, RequestBody::new(MERGE_PATCH, body)).await
    }

    /// Sends a request, at most [`TRIES_MAX`] times if the server does not answer. Checks the permit before each try.
    ///
    /// # Errors
    /// No permit, a rejection, or no response to the last try.
    async fn request(
        &self,
        operation: &str,
        method: Method,
        path: &str,
        body: RequestBody<'_>,
    ) -> Result<(), ApiError> {
        let operation = Operation::from(operation);
        let mut tries = 1;
        loop {
            let guard = self.permit.acquire(&operation).await?;
            let sent = Some(body.clone());
            let response =
                transport::send_within(&self.client, &operation, method.clone(), path, sent, guard.deadline()).await;
            guard.finish(&response);
            match response {
                Err(ApiError::NoResponse { .. }) if tries < TRIES_MAX => {
                    let wait = if tries == 1 { RETRY_DELAY * u32::from(self.suffix % 100) / 100 } else { RETRY_DELAY };
                    tries += 1;
                    tokio::time::sleep(wait).await;
                }
                other => return other.map(drop),
            }
        }
    }
}

/// Returns the path of the events in the namespace of this one (`events.k8s.io/v1`).
fn collection(event: &Event) -> String {
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

/// Returns the beginning of a name as a DNS subdomain. Names of roles, for example, may have colons.
///
/// An Event's name must be a DNS subdomain of at most 253 bytes. A name without a usable character becomes `event`.
fn subdomain(name: &str, len_max: usize) -> String {
    let fitting = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' { c } else { '-' };
    let text: String = name.chars().map(|c| c.to_ascii_lowercase()).map(fitting).take(len_max).collect();
    // Each part between dots begins and ends with a letter or a digit.
    let parts: Vec<&str> = text.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "event".into() } else { parts.join(".") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_begin_with_the_object_name() {
        let long = "a".repeat(300);
        let cases = [
            ("web", 10, "web"),
            ("web-1.example", 20, "web-1.example"),
            ("web-1.example", 6, "web-1"),
            ("system:Node:a", 20, "system-node-a"),
            ("-", 10, "event"),
            ("a..b", 10, "a.b"),
            ("system:.node", 20, "system.node"),
            (":edit.", 10, "edit"),
            (&long, 200, &long[..200]),
        ];
        for (name, len_max, expected) in cases {
            assert_eq!(subdomain(name, len_max), expected);
        }
    }
}
