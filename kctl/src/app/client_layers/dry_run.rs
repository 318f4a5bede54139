//! `--dry-run`: reads are sent unchanged, writes with `dryRun=All`.

use std::io::Write;

use futures::FutureExt;
use http::{Method, Request, Uri, header::CONTENT_LENGTH};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Map, Value, json};
use tower::BoxError;

/// Groups of reviews such as `SelfSubjectAccessReview`: sent unchanged, because they store nothing.
const REVIEWING: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];
/// Subresources that run something outside of the API server, whatever the method.
const RUNNING: [&str; 3] = ["attach", "exec", "portforward"];

/// Replaces each value of a Secret in a printed body.
const HIDDEN: &str = "***";
/// Annotation of client-side `kubectl apply` with a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the request as one that changes nothing, and prints writes. Values of Secrets are not printed.
///
/// # Errors
/// The request has no dry run: it runs something (`exec`, `proxy`), or its body is a stream.
pub(super) fn rewrite(request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let target = Target::parse(request.uri().path());
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    if target.runs() || (!reads && target.is_proxy()) {
        let reason = "it has no dry run; run it without --dry-run";
        return Err(dry_run_error(request.method(), request.uri(), reason));
    }
    if reads || target.is_review() {
        return Ok(request);
    }
    let is_secret = target.is_secret();
    let (mut parts, body) = request.into_parts();
    let not_in_memory = "its body is not in memory; send bytes rather than a stream";
    let body =
        body.collect().now_or_never().ok_or_else(|| dry_run_error(&parts.method, &parts.uri, not_in_memory))??;
    let mut body = body.to_bytes();
    // With DeleteOptions in the body of a DELETE, an API server ignores the options in the query.
    if parts.method == Method::DELETE && !body.is_empty() {
        let no_options =
            "its body is not a JSON object, so `dryRun` can't be added; send DeleteOptions as JSON, or no body";
        let mut options: Map<String, Value> =
            serde_json::from_slice(&body).map_err(|_| dry_run_error(&parts.method, &parts.uri, no_options))?;
        options.insert("dryRun".into(), json!(["All"]));
        body = serde_json::to_vec(&options)?.into();
        parts.headers.remove(CONTENT_LENGTH);
    }
    let shown = if is_secret { without_values(&body) } else { String::from_utf8_lossy(&body).into_owned() };
    let line = format!("dry run: {} {} {shown}\n", parts.method, parts.uri);
    let _closed = std::io::stdout().write_all(line.as_bytes());
    let and = if parts.uri.query().is_some() { '&' } else { '?' };
    parts.uri = format!("{}{and}dryRun=All", parts.uri).parse::<Uri>()?;
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// Returns the body of a write of a Secret without its values, which would be in the log of the container otherwise.
fn without_values(body: &[u8]) -> String {
    if body.is_empty() {
        return String::new();
    }
    let Ok(mut body) = serde_json::from_slice::<Value>(body) else { return HIDDEN.to_owned() };
    // A JSON patch is a list of operations.
    for operation in body.as_array_mut().into_iter().flatten() {
        if let Some(value) = operation.get_mut("value") {
            *value = HIDDEN.into();
        }
    }
    for field in ["data", "stringData"] {
        let values = body.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
        for value in values.filter(|value| !value.is_null()) {
            *value = HIDDEN.into();
        }
    }
    let annotations = body.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(copy) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
        *copy = HIDDEN.into();
    }
    body.to_string()
}

/// Returns the error for a request that is not sent.
fn dry_run_error(method: &Method, uri: &Uri, reason: &str) -> BoxError {
    format!("--dry-run does not send {method} {}: {reason}", uri.path()).into()
}

/// The group, resource and subresource of a path.
#[derive(Default)]
struct Target<'a> {
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
}

impl<'a> Target<'a> {
    fn parse(path: &'a str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match &*parts {
            ["api", _version, rest @ ..] => ("", rest),
            ["apis", group, _version, rest @ ..] => (*group, rest),
            _ => return Self::default(),
        };
        let rest = match rest {
            ["namespaces", _namespace, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let at = |index: usize| rest.get(index).copied().unwrap_or_default();
        Self { group, resource: at(0), subresource: at(2) }
    }

    /// Returns `true` for `TokenReview`, `SubjectAccessReview` and their kin.
    fn is_review(&self) -> bool {
        REVIEWING.contains(&self.group) && self.resource.ends_with("reviews")
    }

    /// Returns `true` for Secrets.
    fn is_secret(&self) -> bool {
        self.group.is_empty() && self.resource == "secrets"
    }

    /// Returns `true` if the request runs a program in a container, or opens a connection into a Pod.
    fn runs(&self) -> bool {
        RUNNING.contains(&self.subresource)
    }

    /// Returns `true` if the request goes to a Pod, Service or Node rather than to the API server.
    fn is_proxy(&self) -> bool {
        self.subresource == "proxy"
    }
}

#[cfg(test)]
mod tests;
