//! Answers as HTTP: objects as JSON or YAML, refusals, warnings.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use serde_json::Value;

use crate::{request::Call, status::Refusal};

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(super) fn warn(response: &mut Response<Body>, warnings: impl IntoIterator<Item = String>) {
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

pub(super) fn rendered(call: &Call, code: StatusCode, object: &Value) -> Response<Body> {
    if call.wants_yaml() {
        return respond(code, "application/yaml", full(yaml(object)));
    }
    respond(code, "application/json", full(bytes_of(object)))
}

pub(crate) fn yaml(object: &Value) -> Vec<u8> {
    serde_saphyr::to_string(object).unwrap_or_default().into_bytes()
}

pub(crate) fn bytes_of(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

pub(crate) fn full(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

/// A short text, whose type browsers are not to guess.
pub(crate) fn text(code: StatusCode, text: &str) -> Response<Body> {
    let mut response = plain(code, text);
    do_not_guess(&mut response);
    response
}

pub(crate) fn plain(code: StatusCode, text: &str) -> Response<Body> {
    respond(code, "text/plain; charset=utf-8", full(text.as_bytes().to_vec()))
}

fn do_not_guess(response: &mut Response<Body>) {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

pub(crate) fn refuse(refusal: &Refusal) -> Response<Body> {
    let mut response = respond(refusal.code, "application/json", full(bytes_of(&refusal.body())));
    if let Some(seconds) = refusal.details["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if refusal.is_of_filter {
        do_not_guess(&mut response);
    }
    response
}

pub(crate) fn respond(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
