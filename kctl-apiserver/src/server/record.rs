//! Counts and records completed requests.
//!
//! Only requests for resources are counted and recorded, not those for documents such as discovery. The counters are
//! those of `/metrics`, the records those of `ApiServer::requests`.

use http::StatusCode;

use crate::{
    metrics::CompletedRequest,
    request::RequestInfo,
    request_log::RequestRecord,
    state::State,
    verbs::{Payload, VerbResponse, is_dry_run},
};

/// Returns the trace id of a request; empty without one. A `traceparent` is `00-TRACE-SPAN-FLAGS` (W3C Trace Context).
/// It is not validated.
pub(super) fn trace(info: &RequestInfo) -> &str {
    info.header("traceparent").split('-').nth(1).unwrap_or_default()
}

/// Counts a completed request, and adds it to the request log. `client` is the client under faults, `None` without a
/// plan.
pub(super) fn record(
    state: &mut State,
    info: &RequestInfo,
    client: Option<String>,
    code: StatusCode,
    response: Option<&VerbResponse>,
) {
    let dry_run = is_dry_run(info);
    state.counts.add(CompletedRequest { info, code, dry_run });
    let mut resource = info.resource.id.resource.clone();
    if !info.subresource.is_main() {
        resource += &format!("/{}", info.subresource.as_str());
    }
    // The generated name of a new object is in the response.
    let generated = match response {
        Some(VerbResponse { payload: Payload::Json(object), .. }) if info.name.is_empty() => {
            object["metadata"]["name"].as_str().unwrap_or_default()
        }
        Some(VerbResponse { payload: Payload::Text { name, .. }, .. }) if info.name.is_empty() => name,
        _ => "",
    };
    let record = RequestRecord {
        user: info.caller.user.name.clone(),
        client,
        verb: info.verb.name(),
        group: info.resource.id.group.clone(),
        resource,
        namespace: info.namespace.clone(),
        name: if info.name.is_empty() { generated.into() } else { info.name.clone() },
        code: code.as_u16(),
        dry_run,
        trace: trace(info).into(),
    };
    state.requests.push(record);
}
