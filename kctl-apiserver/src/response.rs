//! HTTP responses: bodies as JSON, YAML or text, errors as `Status`, and `Warning` headers.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::Value;

use crate::status::StatusError;

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Maximum number of characters of all warnings of one response. If there are more, each warning is truncated to
/// `CUT_WARNING_LEN_MAX` characters (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`). 4,096 characters, not bytes.
const WARNINGS_LEN_MAX: usize = 4 * 1024;
/// The length of a truncated warning (`truncateItemRunes`).
const CUT_WARNING_LEN_MAX: usize = 256;

/// Adds a `Warning` header for each warning. Code 299 is a persistent warning without a further meaning. kubectl prints
/// each to the standard error.
pub(crate) fn warn(response: &mut Response<Body>, warnings: impl IntoIterator<Item = String>) {
    for warning in truncate(warnings.into_iter().collect()) {
        // A header is a single line, so warnings with control characters are left out.
        if warning.chars().any(char::is_control) {
            continue;
        }
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
}

/// Returns the warnings within the limits. If they are too long together, each is truncated, and those that still do
/// not fit are left out. Where the others fill the limit exactly, kube-apiserver sends one more.
fn truncate(warnings: Vec<String>) -> Vec<String> {
    let len = |text: &String| text.chars().count();
    if warnings.iter().map(len).sum::<usize>() <= WARNINGS_LEN_MAX {
        return warnings;
    }
    let cut = warnings.into_iter().map(|text| text.chars().take(CUT_WARNING_LEN_MAX).collect::<String>());
    let mut written = 0;
    let fitting = cut.take_while(|text| {
        let fits = written < WARNINGS_LEN_MAX;
        written += len(text);
        fits
    });
    fitting.collect()
}

/// Returns an object as YAML.
pub(crate) fn yaml(object: &Value) -> Vec<u8> {
    serde_saphyr::to_string(object).unwrap_or_default().into_bytes()
}

/// Returns a value as a line of JSON. Go's `json.Encoder` also appends the line feed.
pub(crate) fn bytes_of(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Returns a body with these bytes.
pub(crate) fn full(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

/// Returns a response with a short plain text, and disables content sniffing in browsers (`X-Content-Type-Options`).
pub(crate) fn text(code: StatusCode, text: &str) -> Response<Body> {
    let mut response = plain(code, text);
    set_nosniff(&mut response);
    response
}

/// Returns a response with a short plain text.
pub(crate) fn plain(code: StatusCode, text: &str) -> Response<Body> {
    respond(code, "text/plain; charset=utf-8", full(text.as_bytes().to_vec()))
}

/// Disables content sniffing in browsers.
fn set_nosniff(response: &mut Response<Body>) {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Returns the response for an error: its `Status` as JSON. `Retry-After` repeats the seconds in the details of the
/// `Status`, where client-go reads the header.
pub(crate) fn reject(error: &StatusError) -> Response<Body> {
    let mut response = respond(error.code, "application/json", full(bytes_of(&error.body())));
    if let Some(seconds) = error.details["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if error.is_from_filter {
        set_nosniff(&mut response);
    }
    response
}

/// Returns a response that must not be cached. Objects may change at any time and depend on the user, so no proxy may
/// store them.
pub(crate) fn respond(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lens: &[usize], expected: &[usize]) {
        let warnings = lens.iter().map(|len| "é".repeat(*len)).collect();
        let cut: Vec<usize> = truncate(warnings).iter().map(|text| text.chars().count()).collect();
        assert_eq!(cut, expected, "{lens:?}");
    }

    #[test]
    fn long_warnings_are_truncated_then_dropped() {
        check(&[4000, 96], &[4000, 96]);
        check(&[4000, 97], &[256, 97]);
        check(&[4097], &[256]);
        check(&[300; 20], &[256; 16]);
        check(&[100; 60], &[100; 41]);
        check(&[256; 17], &[256; 16]);
    }
}
