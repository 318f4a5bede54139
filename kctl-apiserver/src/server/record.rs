//! Counts and records completed requests.
//!
//! Only requests for resources are counted and recorded, not requests for documents such as discovery. The counters are
//! shown by `/metrics`, the records by `ApiServer::requests`.

use http::StatusCode;
use serde_json::Value;

use crate::{
    metrics::CompletedRequest,
    request::{RequestInfo, Verb},
    request_log::RequestRecord,
    state::Core,
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
    core: &mut Core,
    info: &RequestInfo,
    client: Option<String>,
    code: StatusCode,
    response: Option<&VerbResponse>,
) {
    let dry_run = is_dry_run(info);
    core.counts.add(CompletedRequest { info, code, dry_run });
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
    let is_rejected_create = response.is_none() && info.verb == Verb::Create && info.name.is_empty();
    let record = RequestRecord {
        user: info.caller.user.name.clone(),
        client,
        verb: info.verb.name(),
        group: info.resource.id.group.clone(),
        resource,
        namespace: info.namespace.clone(),
        name: if info.name.is_empty() { generated.into() } else { info.name.clone() },
        rejected_name: if is_rejected_create { name_in_body(&info.body) } else { String::new() },
        code: code.as_u16(),
        dry_run,
        trace: trace(info).into(),
    };
    core.requests.push(record);
}

/// Returns the name of an object in JSON, or its `generateName` with a `*`. A body in another format has no name here.
fn name_in_body(body: &[u8]) -> String {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    match (text("name"), text("generateName")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_object_has_its_name_or_prefix() {
        for (body, expected) in [
            (r#"{"metadata": {"name": "web", "generateName": "a-"}}"#, "web"),
            (r#"{"metadata": {"generateName": "web-"}}"#, "web-*"),
            (r#"{"metadata": {}}"#, ""),
            ("no JSON", ""),
        ] {
            assert_eq!(name_in_body(body.as_bytes()), expected, "{body}");
        }
    }
}
