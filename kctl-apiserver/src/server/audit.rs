//! The audit log: one `audit.k8s.io/v1` Event per request as a line of JSON, at level `Metadata`.
//!
//! The level is the same for all requests: no policy file is read, and bodies are never logged. There is one event per
//! request, at the stage `ResponseComplete`; for a watch this is the moment at which its response begins. A request
//! that runs several times because of webhooks is logged once.

use std::{io::Write, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header, request::Parts};
use jiff::Timestamp;
use kctl_apimachinery::time;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    clock::Clock,
    request::{Caller, RequestInfo},
    response::bytes_of,
    state::{Core, State},
};

/// The annotation with the time from the request to its response. Upstream adds it to requests that took longer than
/// 500 ms (`writeLatencyToAnnotation` in `k8s.io/apiserver/pkg/endpoints/filters/audit.go`); here each event has it.
const LATENCY: &str = "apiserver.latency.k8s.io/total";

/// The time at which a request arrived: an extension of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// The time of the server's clock, for the event.
    time: Timestamp,
    /// The time of the runtime, for the latency. It advances even if the server's clock does not.
    since: Instant,
}

impl Received {
    /// Returns the present time.
    pub(super) fn now(clock: Clock) -> Self {
        Self { time: clock.now(), since: Instant::now() }
    }
}

/// The header with the id of the audit event (`k8s.io/apiserver/pkg/endpoints/filters/audit_init.go`).
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The id of the audit event: an extension of the request, and a header of its response.
#[derive(Clone, Debug)]
pub(super) struct AuditId(HeaderValue);

impl AuditId {
    /// Returns the id that the client sent in `Audit-ID`, or else a new one. New ids come from a separate random
    /// sequence, so that logging does not change the uids of objects.
    pub(super) fn for_request(core: &mut Core, headers: &HeaderMap) -> Self {
        let chosen = headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        Self(chosen.unwrap_or_else(|| {
            HeaderValue::try_from(core.audit_ids.uid()).unwrap_or_else(|error| unreachable!("a uid is text: {error}"))
        }))
    }

    /// Adds the id to a response.
    pub(super) fn add_to<B>(self, mut response: Response<B>) -> Response<B> {
        response.headers_mut().insert(AUDIT_ID, self.0);
        response
    }
}

/// The parts of a request that are known before it is parsed.
pub(super) struct AuditedRequest<'a> {
    /// The HTTP method. In lower case it is the verb of a non-resource request.
    method: &'a Method,
    /// The URI, logged with its query as `requestURI`.
    uri: &'a Uri,
    /// The headers. Only `User-Agent` is logged.
    headers: &'a HeaderMap,
    /// The id of the event; `None` for a request that did not come through the service.
    id: Option<&'a AuditId>,
    /// The arrival time; `None` for a request that was rejected on the socket.
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
    /// Creates it from a request that was rejected before it was handled.
    pub(super) fn with_id<B>(request: &'a http::Request<B>, id: &'a AuditId) -> Self {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        Self { method, uri, headers, id: Some(id), received: None }
    }
}

/// Writes the event of a parsed request, if the server has an audit log.
pub(super) fn audit(state: &mut State, info: &RequestInfo, parts: &Parts, code: StatusCode) {
    if state.core.audit.is_none() {
        return;
    }
    let mut event = event(state.store.clock, &parts.into(), Some(&info.caller), code);
    event["verb"] = info.verb.name().into();
    event["objectRef"] = json!({
        "apiGroup": info.resource.id.group,
        "apiVersion": info.resource.version,
        "resource": info.resource.id.resource,
        "subresource": info.subresource.as_str(),
        "namespace": info.namespace,
        "name": info.name,
    });
    for (name, value) in info.round.annotations() {
        event["annotations"][name] = value.into();
    }
    write(&mut state.core, &event);
}

/// Writes the event of a request that was rejected before it was parsed, or that reads a document. `caller` is `None`
/// if the client is not authenticated.
pub(super) fn audit_other(state: &mut State, request: &AuditedRequest<'_>, caller: Option<&Caller>, code: StatusCode) {
    if state.core.audit.is_some() {
        let event = event(state.store.clock, request, caller, code);
        write(&mut state.core, &event);
    }
}

/// Returns the event, without the fields that only a parsed request has.
fn event(clock: Clock, request: &AuditedRequest<'_>, caller: Option<&Caller>, code: StatusCode) -> Value {
    // A request that reached no verb has no latency.
    let received = request.received.unwrap_or_else(|| Received::now(clock));
    json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": request.id.map(|AuditId(id)| String::from_utf8_lossy(id.as_bytes())).unwrap_or_default(),
        "stage": "ResponseComplete",
        "requestURI": request.uri.path_and_query().map_or("", |path| path.as_str()),
        "verb": request.method.as_str().to_lowercase(),
        "user": caller.map_or_else(|| json!({}), Caller::user_info),
        "userAgent": request.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
        "responseStatus": { "code": code.as_u16() },
        "annotations": { LATENCY: duration(received.since.elapsed()) },
        "requestReceivedTimestamp": time::micros(received.time),
        "stageTimestamp": time::micros(clock.now()),
    })
}

/// Formats a duration so that Go's `time.ParseDuration` reads it. Three decimals of a millisecond: `12.034ms`.
fn duration(time: Duration) -> String {
    format!("{}.{:03}ms", time.as_millis(), time.as_micros() % 1000)
}

/// Appends an event to the file. At the first failed write, the server logs an error and closes the audit log. Later
/// requests are served without being logged: a full disk must not stop the server.
fn write(core: &mut Core, event: &Value) {
    let Some(file) = &mut core.audit else { return };
    if let Err(error) = file.write_all(&bytes_of(event)) {
        tracing::error!(%error, "requests are no longer audited");
        core.audit = None;
    }
}
