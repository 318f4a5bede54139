//! The audit log: a line of JSON for each request, at level Metadata.

use std::{io::Write, time::Duration};

use http::{Extensions, HeaderMap, Method, Request, StatusCode, Uri, header, request::Parts};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::respond::bytes_of;
use crate::{
    clock::Clock,
    request::{Call, Caller},
    store::State,
};

/// Where the real server tells how long a request took, too.
const LATENCY: &str = "apiserver.latency.k8s.io/total";

/// When a request came: an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    at: Timestamp,
    since: Instant,
}

impl Received {
    pub(super) fn now(clock: Clock) -> Self {
        Self { at: clock.now(), since: Instant::now() }
    }
}

/// What is known of a request before anybody has read it.
pub(super) struct Asked<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl<'a> From<&'a Parts> for Asked<'a> {
    fn from(parts: &'a Parts) -> Self {
        Self { method: &parts.method, uri: &parts.uri, headers: &parts.headers, extensions: &parts.extensions }
    }
}

impl<'a, B> From<&'a Request<B>> for Asked<'a> {
    fn from(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

/// Writes the line of a request that was understood, when there is a log.
pub(super) fn audit(state: &mut State, call: &Call, parts: &Parts, code: StatusCode) {
    if state.audit.is_none() {
        return;
    }
    let mut event = event(state.clock, &parts.into(), Some(&call.caller), code);
    event["verb"] = call.verb.name().into();
    event["objectRef"] = json!({
        "apiGroup": call.resource.of.group,
        "apiVersion": call.resource.version,
        "resource": call.resource.of.resource,
        "subresource": call.subresource,
        "namespace": call.namespace,
        "name": call.name,
    });
    for (name, value) in call.session.annotations() {
        event["annotations"][name] = value.into();
    }
    write(state, &event);
}

/// The same of one that was refused before it was understood, or that asks for a document. There is no caller when nobody
/// knows who asks.
pub(super) fn audit_other(state: &mut State, asked: &Asked<'_>, caller: Option<&Caller>, code: StatusCode) {
    if state.audit.is_some() {
        let event = event(state.clock, asked, caller, code);
        write(state, &event);
    }
}

fn event(clock: Clock, asked: &Asked<'_>, caller: Option<&Caller>, code: StatusCode) -> Value {
    // One that never came to a verb has taken no time.
    let received = asked.extensions.get().copied().unwrap_or_else(|| Received::now(clock));
    json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": asked.uri.path_and_query().map_or("", |path| path.as_str()),
        "verb": asked.method.as_str().to_lowercase(),
        "user": caller.map_or_else(|| json!({}), Caller::info),
        "userAgent": asked.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
        "responseStatus": { "code": code.as_u16() },
        "annotations": { LATENCY: duration(received.since.elapsed()) },
        "requestReceivedTimestamp": micros(received.at),
        "stageTimestamp": micros(clock.now()),
    })
}

/// As Go's `time.ParseDuration` reads it.
fn duration(time: Duration) -> String {
    format!("{}.{:03}ms", time.as_millis(), time.as_micros() % 1000)
}

/// As a `MicroTime` is written.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn write(state: &mut State, event: &Value) {
    let Some(file) = &mut state.audit else { return };
    if let Err(error) = file.write_all(&bytes_of(event)) {
        tracing::error!(%error, "requests are no longer audited");
        state.audit = None;
    }
}
