//! The deadline of a request: the parameter `timeout` of its query.
//!
//! Upstream: `WithRequestDeadline` of `k8s.io/apiserver/pkg/endpoints/filters/request_deadline.go`.
//!
//! The deadline covers the arrival of the body and all webhook calls of the request. It can only shorten the limit of
//! the server, which is 60 s. When it passes, the client gets 504 with the reason `Timeout`.

use std::time::Duration;

use http::request::Parts;

use crate::{
    request::{Params, decode, parse_path},
    status::StatusError,
};

/// Subresources without a deadline (`BasicLongRunningRequestCheck`). A client may hold them open for hours.
const LONG: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];
/// The time for which kube-apiserver waits for a `resourceVersion` that does not exist yet (`blockTimeout` in
/// `k8s.io/apiserver/pkg/storage/cacher/watch_cache.go`).
const VERSION_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns the time that a request may take, or `None` if it names none or is long-running. A duration is written as in
/// Go: `30s`, `1m30s`. Zero and an empty value count as absent.
///
/// # Errors
/// `BadRequest` if the parameter cannot be parsed as a duration.
pub(super) fn requested_timeout(parts: &Parts) -> Result<Option<Duration>, StatusError> {
    let query = parts.uri.query().unwrap_or_default();
    if !query.contains("timeout") {
        return Ok(None);
    }
    let params = Params::parse(query);
    let requested = params.text("timeout");
    if requested.is_empty() || is_long(parts.uri.path(), &params) {
        return Ok(None);
    }
    let Some(duration) = kctl_apimachinery::duration::parse(requested) else {
        return Err(StatusError::bad_request(format!("timeout: must be a duration such as 30s, found {requested:?}")));
    };
    Ok(Duration::try_from(duration).ok().filter(|duration| !duration.is_zero()))
}

/// Returns `true` for long-running requests: watches and the subresources in [`LONG`]. Non-resource paths are never
/// long-running.
fn is_long(path: &str, params: &Params) -> bool {
    let path = decode(path);
    let Some(resource_path) = parse_path(&path) else { return false };
    let is_watch = resource_path.watches || (resource_path.name.is_empty() && params.flag("watch"));
    is_watch || LONG.contains(&resource_path.subresource)
}

/// Returns the deadline error if the deadline passes before kube-apiserver would return this error. kube-apiserver
/// waits three seconds for a future `resourceVersion`. This server returns that error at once, so a request with a
/// shorter deadline gets the deadline error instead.
pub(super) fn within(parts: &Parts, error: StatusError) -> StatusError {
    let waits = error.details["causes"][0]["reason"] == "ResourceVersionTooLarge";
    if waits && requested_timeout(parts).ok().flatten().is_some_and(|allotted| allotted < VERSION_TIMEOUT) {
        return StatusError::timed_out();
    }
    error
}
