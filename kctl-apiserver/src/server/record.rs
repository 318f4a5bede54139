//! Counts and records answered requests.

use http::StatusCode;

use crate::{
    metrics::Answered,
    request::Call,
    request_log::RequestRecord,
    state::State,
    verbs::{Answer, Payload},
    write::body::is_dry_run,
};

/// Returns the trace id of a request; empty without one.
pub(super) fn trace(call: &Call) -> &str {
    call.header("traceparent").split('-').nth(1).unwrap_or_default()
}

/// Counts an answered request, and adds it to the log.
pub(super) fn record(
    state: &mut State,
    call: &Call,
    client: Option<String>,
    code: StatusCode,
    answer: Option<&Answer>,
) {
    let dry_run = is_dry_run(call);
    state.counts.add(Answered { call, code, dry_run });
    let mut resource = call.resource.of.resource.clone();
    if !call.subresource.is_empty() {
        resource += &format!("/{}", call.subresource);
    }
    // The generated name of a new object is in the response.
    let generated = match answer {
        Some(Answer { payload: Payload::Json(object), .. }) if call.name.is_empty() => {
            object["metadata"]["name"].as_str().unwrap_or_default()
        }
        Some(Answer { payload: Payload::Text { name, .. }, .. }) if call.name.is_empty() => name,
        _ => "",
    };
    let record = RequestRecord {
        user: call.caller.user.name.clone(),
        client,
        verb: call.verb.name(),
        group: call.resource.of.group.clone(),
        resource,
        namespace: call.namespace.clone(),
        name: if call.name.is_empty() { generated.into() } else { call.name.clone() },
        code: code.as_u16(),
        dry_run,
        trace: trace(call).into(),
    };
    state.requests.push(record);
}
