//! The deadline of a request: the parameter `timeout` of its query.
//!
//! Upstream: `WithRequestDeadline` of `k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go`.

use std::time::Duration;

use http::{StatusCode, request::Parts};
use serde_json::json;

use crate::{
    go,
    request::{Params, decode, place},
    status::StatusError,
};

/// Subresources without a deadline (`BasicLongRunningRequestCheck`).
const LONG: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];
/// The time for which kube-apiserver waits for a `resourceVersion` that does not exist yet.
const VERSION_WITHIN: Duration = Duration::from_secs(3);

/// Returns the time that a request may take, or `None` if it names none or is long-running.
///
/// # Errors
/// `BadRequest` if the parameter cannot be parsed as a duration.
pub(super) fn allotted(parts: &Parts) -> Result<Option<Duration>, StatusError> {
    let query = parts.uri.query().unwrap_or_default();
    if !query.contains("timeout") {
        return Ok(None);
    }
    let params = Params::parse(query);
    let asked = params.text("timeout");
    if asked.is_empty() || is_long(parts.uri.path(), &params) {
        return Ok(None);
    }
    let nanos = go::parse_duration(asked)
        .map_err(|why| StatusError::bad_request(format!("invalid timeout specified in the request URL - {why}")))?;
    Ok(u64::try_from(nanos).ok().filter(|nanos| *nanos > 0).map(Duration::from_nanos))
}

/// Returns `true` for a watch and for subresources that take as long as the client likes.
fn is_long(path: &str, params: &Params) -> bool {
    let path = decode(path);
    let Some(place) = place(&path) else { return false };
    let is_watch = place.watches || (place.name.is_empty() && params.flag("watch"));
    is_watch || LONG.contains(&place.subresource)
}

/// Returns the error that the client gets at its deadline, if that comes before this error.
///
/// kube-apiserver waits three seconds for a future `resourceVersion`. This server returns that error at once, so a
/// request with a shorter deadline gets the error of its deadline instead.
pub(super) fn within(parts: &Parts, error: StatusError) -> StatusError {
    let waits = error.details["causes"][0]["reason"] == "ResourceVersionTooLarge";
    if waits && allotted(parts).ok().flatten().is_some_and(|allotted| allotted < VERSION_WITHIN) {
        let message = "Timeout: request did not complete within the allotted timeout";
        let mut error = StatusError::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        error.details = json!({});
        return error;
    }
    error
}
