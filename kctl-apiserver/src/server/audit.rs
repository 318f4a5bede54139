//! The audit log: a line of JSON for each request, at level Metadata.

use std::{io::Write, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header, request::Parts};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::response::bytes_of;
use crate::{
    clock::Clock,
    request::{Caller, RequestInfo},
    state::State,
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

/// By which an answer is found in the log (`k8s.io/apiserver/pkg/endpoints/filters/audit_init.go`).
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// What a request is known by: an extension of the request, and a header of its answer.
#[derive(Clone, Debug)]
pub(super) struct AuditId(HeaderValue);

impl AuditId {
    /// The id that the client has chosen, or else a new one.
    pub(super) fn of(state: &mut State, headers: &HeaderMap) -> Self {
        let chosen = headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        Self(chosen.unwrap_or_else(|| {
            HeaderValue::try_from(state.audit_ids.uid()).unwrap_or_else(|error| unreachable!("a uid is text: {error}"))
        }))
    }

    /// The answer with the id.
    pub(super) fn on<B>(self, mut response: Response<B>) -> Response<B> {
        response.headers_mut().insert(AUDIT_ID, self.0);
        response
    }
}

/// What is known of a request before anybody has read it.
pub(super) struct AuditedRequest<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    id: Option<&'a AuditId>,
    received: Option<Received>,
}

impl<'a> From<&'a Parts> for AuditedRequest<'a> {
    fn from(parts: &'a Parts) -> Self {
        let Parts { method, uri, headers, extensions, .. } = parts;
        Self { method, uri, headers, id: extensions.get(), received: extensions.get().copied() }
    }
}

#[cfg(feature = "serve")]
impl<'a> AuditedRequest<'a> {
    /// A request that has come no further than to its id.
    pub(super) fn with_id<B>(request: &'a http::Request<B>, id: &'a AuditId) -> Self {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        Self { method, uri, headers, id: Some(id), received: None }
    }
}

/// Writes the line of a request that was understood, when there is a log.
pub(super) fn audit(state: &mut State, info: &RequestInfo, parts: &Parts, code: StatusCode) {
    if state.audit.is_none() {
        return;
    }
    let mut event = event(state.clock, &parts.into(), Some(&info.caller), code);
    event["verb"] = info.verb.name().into();
    event["objectRef"] = json!({
        "apiGroup": info.resource.of.group,
        "apiVersion": info.resource.version,
        "resource": info.resource.of.resource,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "name": info.name,
    });
    for (name, value) in info.round.annotations() {
        event["annotations"][name] = value.into();
    }
    write(state, &event);
}

/// The same of one that was refused before it was understood, or that asks for a document. There is no caller when nobody
/// knows who asks.
pub(super) fn audit_other(state: &mut State, asked: &AuditedRequest<'_>, caller: Option<&Caller>, code: StatusCode) {
    if state.audit.is_some() {
        let event = event(state.clock, asked, caller, code);
        write(state, &event);
    }
}

fn event(clock: Clock, asked: &AuditedRequest<'_>, caller: Option<&Caller>, code: StatusCode) -> Value {
    // One that never came to a verb has taken no time.
    let received = asked.received.unwrap_or_else(|| Received::now(clock));
    json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": asked.id.map(|AuditId(id)| String::from_utf8_lossy(id.as_bytes())).unwrap_or_default(),
        "stage": "ResponseComplete",
        "requestURI": asked.uri.path_and_query().map_or("", |path| path.as_str()),
        "verb": asked.method.as_str().to_lowercase(),
        "user": caller.map_or_else(|| json!({}), Caller::user_info),
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
