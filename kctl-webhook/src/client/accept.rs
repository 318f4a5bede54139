//! Decides if a response is a success, with the messages of client-go for others
//! (`rest.Request.transformResponse`, `errors.NewGenericServerResponse`).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};

/// Maximum number of bytes of an error body that are read, as in client-go.
const ERROR_READ_MAX: usize = 2048;
/// Maximum number of characters of an error body that a message shows.
const ERROR_SHOWN_MAX: usize = 512;

/// Returns the wait in `Retry-After` of a 429 or a server error, in whole seconds.
pub(super) fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let status = response.status();
    let is_retryable = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = text(response.headers(), header::RETRY_AFTER).parse().ok();
    seconds.filter(|_| is_retryable).map(Duration::from_secs)
}

/// Returns the body of a successful response. The media type is not checked: decoding the body
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
/// assert_eq!(error.to_string(), r#"an error on the server ("boom") has prevented the request from succeeding"#);
/// ```
///
/// # Errors
/// The status of the response is not a success, or its body is empty.
pub fn check_response(response: &Response<Bytes>) -> Result<Bytes, ResponseError> {
    let (status, body) = (response.status(), response.body());
    let content = match text(response.headers(), header::CONTENT_TYPE) {
        "" => "application/json",
        content => content,
    };
    let rejected = |text: String, shown: &str| ResponseError { text, shown: shown.to_owned() };
    if let Some(problem) = problem_of_media_type(content) {
        return Err(rejected(format!("Internal error occurred: mime: {problem}"), ""));
    }
    match (status.as_u16(), body.is_empty()) {
        (code @ 200..=206, true) => {
            Err(rejected(format!("0-length response with status code: {code} and content type: {content}"), ""))
        }
        (200..=206, false) => Ok(body.clone()),
        (code, _) => {
            let text = String::from_utf8_lossy(&body[..body.len().min(ERROR_READ_MAX)]);
            let is_text = content.starts_with("text/") || !response.headers().contains_key(header::CONTENT_TYPE);
            let counts = if is_text { text.trim() } else { "unknown" };
            Err(rejected(status_within(body).unwrap_or_else(|| status_message(code, counts)), text.trim()))
        }
    }
}

/// An unsuccessful response, with client-go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ResponseError {
    text: String,
    shown: String,
}

impl ResponseError {
    /// Returns the message, followed by the body that client-go leaves out of most messages.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Response;
    /// use kctl_webhook::client::check_response;
    ///
    /// let response = Response::builder().status(404).body(Bytes::from("no such path")).unwrap();
    /// let text = check_response(&response).unwrap_err().with_body();
    /// assert_eq!(text, r#"the server could not find the requested resource ("no such path")"#);
    /// ```
    pub fn with_body(self) -> String {
        let shown: String = self.shown.chars().take(ERROR_SHOWN_MAX).collect();
        if shown.is_empty() || self.text.contains(&shown) || self.text.contains(&format!("{:?}", self.shown)) {
            self.text
        } else {
            format!("{} ({shown:?})", self.text)
        }
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the message of a `Status`, if the body is one.
fn status_within(body: &Bytes) -> Option<String> {
    let status: serde_json::Value = serde_json::from_slice(body).ok()?;
    let is_failure = status["kind"] == "Status" && status["apiVersion"] == "v1" && status["status"] == "Failure";
    status["message"].as_str().filter(|_| is_failure).map(str::to_owned)
}

/// Returns client-go's message for a status code. `body` is the body, if it counts as text.
fn status_message(code: u16, body: &str) -> String {
    let text = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        406 if body.is_empty() || body == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        403 | 406 | 415 => body,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => return format!("an error on the server ({body:?}) has prevented the request from succeeding"),
        _ => {
            return format!("the server responded with the status code {code} but did not return more information");
        }
    };
    text.to_owned()
}

/// Returns what is wrong with a media type, in the words of Go (`ParseMediaType` and `checkMediaTypeDisposition` in
/// `mime/mediatype.go`); `None` for a valid one.
fn problem_of_media_type(content: &str) -> Option<&'static str> {
    let (media, parameters) = content.split_once(';').unwrap_or((content, ""));
    let mut parts = media.trim().splitn(2, '/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    match (token_len(first), second.map(|second| (token_len(second), second))) {
        (0, _) => Some("no media type"),
        (n, _) if n < first.len() => Some("expected slash after first token"),
        (_, Some((0, _))) => Some("expected token after slash"),
        (_, Some((n, second))) if n < second.len() => Some("unexpected content after media subtype"),
        _ => (!are_parameters(parameters)).then_some("invalid media parameter"),
    }
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
        for (content, problem) in [
            ("application/json", None),
            ("text/html; charset=utf-8", None),
            ("application/json;", None),
            ("text", None),
            ("a/b; c=\"d;\\\"e\"; f=g", None),
            (";;", Some("no media type")),
            ("a b/c", Some("expected slash after first token")),
            ("application/", Some("expected token after slash")),
            ("a/b c", Some("unexpected content after media subtype")),
            ("a/b; c", Some("invalid media parameter")),
            ("a/b; c=\"d", Some("invalid media parameter")),
        ] {
            assert_eq!(problem_of_media_type(content), problem, "{content}");
        }
    }

    #[test]
    fn each_status_has_the_message_of_client_go() {
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not today"}"#;
        for (code, content, body, expected) in [
            (206, "", "x", None),
            (204, "", "", Some("0-length response with status code: 204 and content type: application/json")),
            (207, "", "x", Some("the server responded with the status code 207 but did not return more information")),
            (410, "", "x", Some("the server responded with the status code 410 but did not return more information")),
            (400, "", "x", Some("the server rejected our request for an unknown reason")),
            (403, "", "you may not", Some("you may not")),
            (403, "application/json", "{}", Some("unknown")),
            (406, "", "", Some("the server was unable to respond with a content type that the client supports")),
            (502, "", " x\n", Some("an error on the server (\"x\") has prevented the request from succeeding")),
            (502, "text/html", "x", Some("an error on the server (\"x\") has prevented the request from succeeding")),
            (
                502,
                "application/json",
                "x",
                Some("an error on the server (\"unknown\") has prevented the request from succeeding"),
            ),
            (503, "", "", Some("the server is currently unable to handle the request")),
            (500, "application/json", status, Some("not today")),
        ] {
            let content_type = Some(content).filter(|content| !content.is_empty());
            let response = Response::builder().status(code);
            let response =
                content_type.into_iter().fold(response, |response, content| response.header("content-type", content));
            let response = response.body(Bytes::from_static(body.as_bytes())).unwrap();
            let found = check_response(&response).err().map(|rejected| rejected.to_string());
            assert_eq!(found.as_deref(), expected, "{code} {body}");
        }
    }

    #[test]
    fn server_message_is_shown_once() {
        for (code, body, expected) in [
            (400, "x", "the server rejected our request for an unknown reason (\"x\")"),
            (304, "", "the server responded with the status code 304 but did not return more information"),
            (403, "you may not", "you may not"),
            (502, "a \"b\"", "an error on the server (\"a \\\"b\\\"\") has prevented the request from succeeding"),
        ] {
            let rejected = ResponseError { text: status_message(code, body), shown: body.into() };
            assert_eq!(rejected.with_body(), expected, "{code}");
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
