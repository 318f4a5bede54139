//! Decides if a response is a success. client-go accepts the same responses (`rest.Request.transformResponse`).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};

/// Maximum number of characters of an error body that a message shows.
const ERROR_SHOWN_MAX: usize = 512;

/// Returns the wait in `Retry-After` of a 429 or a server error, in whole seconds.
pub(super) fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    let is_retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = text(response.headers(), header::RETRY_AFTER).parse().ok();
    seconds.filter(|_| is_retryable).map(Duration::from_secs)
}

/// Returns the body of a successful response. The media type has to be well-formed, but may be any: decoding the body
/// shows its format.
///
/// ```
/// use bytes::Bytes;
/// use http::Response;
/// use kctl_webhook::client::check_response;
///
/// let response = |code: u16, body: &'static str| Response::builder().status(code).body(Bytes::from(body)).unwrap();
/// assert_eq!(check_response(&response(200, "{}")).unwrap(), "{}");
/// let error = check_response(&response(500, "boom")).unwrap_err();
/// assert_eq!(error.to_string(), r#"the webhook answered 500 Internal Server Error: "boom""#);
/// ```
///
/// # Errors
/// The status of the response is not a success, its body is empty, or its media type is invalid.
pub fn check_response(response: &Response<Bytes>) -> Result<Bytes, ResponseError> {
    let (status, body) = (response.status(), response.body());
    let content = text(response.headers(), header::CONTENT_TYPE);
    let problem = if !content.is_empty() && !is_media_type(content) {
        format!("with the invalid media type {content:?}")
    } else if body.is_empty() {
        "without a body".to_owned()
    } else if (200..=206).contains(&status.as_u16()) {
        return Ok(body.clone());
    } else {
        // A character has at most four bytes.
        let shown = &body[..body.len().min(4 * ERROR_SHOWN_MAX)];
        let shown: String = String::from_utf8_lossy(shown).trim().chars().take(ERROR_SHOWN_MAX).collect();
        return Err(ResponseError { problem: format!("{status}: {shown:?}") });
    };
    Err(ResponseError { problem: format!("{status} {problem}") })
}

/// An unsuccessful response. The message has its status, and up to 512 characters of its body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the webhook answered {problem}")]
pub struct ResponseError {
    problem: String,
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns `true` for a media type that Go accepts (`ParseMediaType` in `mime/mediatype.go`).
fn is_media_type(content: &str) -> bool {
    let (media, parameters) = content.split_once(';').unwrap_or((content, ""));
    let is_token = |part: &str| !part.is_empty() && token_len(part) == part.len();
    media.trim().splitn(2, '/').all(is_token) && are_parameters(parameters)
}

/// Returns the length of the token at the start (RFC 2045).
fn token_len(text: &str) -> usize {
    let is_token_char = |c: char| c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(c);
    text.find(|c| !is_token_char(c)).unwrap_or(text.len())
}

/// Returns `true` for `name=value` between semicolons; values may be quoted.
fn are_parameters(text: &str) -> bool {
    let mut unread = text.trim_start();
    while !unread.is_empty() {
        let name = token_len(unread);
        let Some(value) = unread[name..].trim_start().strip_prefix('=').filter(|_| name > 0) else { return false };
        let value = value.trim_start();
        let length = if value.starts_with('"') { quoted_len(value) } else { token_len(value) };
        unread = value[length..].trim_start();
        match unread.strip_prefix(';') {
            Some(next) if length > 0 => unread = next.trim_start(),
            None if length > 0 && unread.is_empty() => {}
            _ => return false,
        }
    }
    true
}

/// Returns the length of the quoted string at the start; 0 if it does not end.
fn quoted_len(text: &str) -> usize {
    let mut is_escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return index + 1,
            b'\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_well_formed_media_type_is_accepted() {
        for (content, is_valid) in [
            ("application/json", true),
            ("text/html; charset=utf-8", true),
            ("application/json;", true),
            ("text", true),
            ("a/b; c=\"d;\\\"e\"; f=g", true),
            (";;", false),
            ("a b/c", false),
            ("/b", false),
            ("application/", false),
            ("a/b c", false),
            ("a/b/c", false),
            ("a/b; c", false),
            ("a/b; c=\"d", false),
        ] {
            assert_eq!(is_media_type(content), is_valid, "{content}");
        }
    }

    #[test]
    fn rejection_has_the_status_and_the_body() {
        let (most, more) = ("ü".repeat(ERROR_SHOWN_MAX), "ü".repeat(ERROR_SHOWN_MAX + 1));
        for (code, content, body, expected) in [
            (206, "", "x", None),
            (200, "text/html", "x", None),
            (204, "", "", Some("204 No Content without a body".to_owned())),
            (503, "", "", Some("503 Service Unavailable without a body".to_owned())),
            (200, "a/", "x", Some("200 OK with the invalid media type \"a/\"".to_owned())),
            (500, "a/", "x", Some("500 Internal Server Error with the invalid media type \"a/\"".to_owned())),
            (207, "", "x", Some("207 Multi-Status: \"x\"".to_owned())),
            (302, "", "x", Some("302 Found: \"x\"".to_owned())),
            (502, "application/json", " a \"b\"\n", Some("502 Bad Gateway: \"a \\\"b\\\"\"".to_owned())),
            (400, "", most.as_str(), Some(format!("400 Bad Request: {most:?}"))),
            (400, "", more.as_str(), Some(format!("400 Bad Request: {most:?}"))),
        ] {
            let content_type = Some(content).filter(|content| !content.is_empty());
            let response = Response::builder().status(code);
            let response =
                content_type.into_iter().fold(response, |response, content| response.header("content-type", content));
            let response = response.body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
            let found = check_response(&response).err().map(|rejected| rejected.to_string());
            assert_eq!(found, expected.map(|rest| format!("the webhook answered {rest}")), "{code} {content}");
        }
    }

    #[test]
    fn retry_after_applies_to_429_and_5xx_only() {
        for (code, after, wait) in [
            (429, Some("2"), Some(2)),
            (503, Some("0"), Some(0)),
            (500, Some("1"), Some(1)),
            (503, None, None),
            (503, Some("Wed, 21 Oct 2026 07:28:00 GMT"), None),
            (404, Some("1"), None),
            (200, Some("1"), None),
        ] {
            let response = Response::builder().status(code);
            let response = after.into_iter().fold(response, |response, after| response.header("retry-after", after));
            let found = retry_after(&response.body(()).unwrap());
            assert_eq!(found, wait.map(Duration::from_secs), "{code} {after:?}");
        }
    }
}
