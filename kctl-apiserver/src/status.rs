//! Refusals: the `Status` objects that clients of the API server know how to read.

use std::borrow::Cow;

use http::StatusCode;
use serde_json::{Value, json};

pub(crate) use crate::cause::Cause;
use crate::go;

/// What the API server refuses, and why. The texts are those of `k8s.io/apimachinery/pkg/api/errors`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) code: StatusCode,
    /// The machine-readable reason, such as `NotFound`.
    pub(crate) reason: Cow<'static, str>,
    /// The text for people.
    pub(crate) message: String,
    /// `details` of the Status: null when there are none.
    pub(crate) details: Value,
    /// The token with which a list goes on nevertheless; empty for none.
    pub(crate) goes_on: String,
    /// Whether no verb has seen the request: who asks may not. Such answers say that browsers are not to guess their type.
    pub(crate) is_of_filter: bool,
}

/// A resource in texts: `pods`, `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct GroupResource {
    /// The group; empty for the core.
    pub(crate) group: String,
    /// The plural name.
    pub(crate) resource: String,
}

impl GroupResource {
    /// A resource of a group.
    pub(crate) fn new(group: &str, resource: &str) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl std::fmt::Display for GroupResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

fn details(of: &GroupResource, name: &str) -> Value {
    let mut details = json!({});
    if !of.resource.is_empty() {
        details["kind"] = of.resource.clone().into();
    }
    if !name.is_empty() {
        details["name"] = name.into();
    }
    if !of.group.is_empty() {
        details["group"] = of.group.clone().into();
    }
    details
}

impl Refusal {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Self { code, reason, message, details: Value::Null, goes_on: String::new(), is_of_filter: false }
    }

    /// Nobody is answered with this: the request runs again when its questions were asked.
    pub(crate) fn waiting() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "", "the request waits for a webhook")
    }

    /// The server, or somebody whom it has asked, has failed.
    pub(crate) fn internal(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let mut refusal = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        refusal.details = json!({ "causes": [{ "message": why }] });
        refusal
    }

    pub(crate) fn timed_out() -> Self {
        let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
        let mut refusal = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        refusal.details = json!({});
        refusal
    }

    pub(crate) fn about(mut self, of: &GroupResource, name: &str) -> Self {
        self.details = details(of, name);
        self
    }

    /// It comes before the request has got to any verb.
    pub(crate) fn of_filter(mut self) -> Self {
        self.is_of_filter = true;
        self
    }

    pub(crate) fn not_found(of: &GroupResource, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{of} {} not found", go::quote(name))).about(of, name)
    }

    pub(crate) fn already_exists(of: &GroupResource, name: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", format!("{of} {} already exists", go::quote(name)))
            .about(of, name)
    }

    /// The client may try again, with another name.
    pub(crate) fn of_a_generated_name(mut self) -> Self {
        self.message += ", the server was not able to generate a unique name for the object";
        self.details["retryAfterSeconds"] = 1.into();
        self
    }

    pub(crate) fn conflict(of: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {of} {}: {why}", go::quote(name));
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(of, name)
    }

    /// The object has another resourceVersion than the writer has read.
    pub(crate) fn modified(of: &GroupResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(of, name, why)
    }

    pub(crate) fn forbidden(of: &GroupResource, name: &str, why: &str) -> Self {
        let quoted = if name.is_empty() { String::new() } else { format!(" {}", go::quote(name)) };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("{of}{quoted} is forbidden: {why}")).about(of, name)
    }

    /// `group` and `kind` are those of the object: this is the one refusal that names the kind.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        // Some causes are found twice, and told once.
        let mut once: Vec<&Cause> = Vec::new();
        for cause in causes {
            if !once.contains(&cause) {
                once.push(cause);
            }
        }
        let texts: Vec<String> = once.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let all = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let of = GroupResource::new(group, kind);
        let mut refusal = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!("{of} {} is invalid: {all}", go::quote(name)),
        );
        refusal.details = details(&of, name);
        refusal.details["causes"] = once
            .iter()
            .map(|cause| json!({ "reason": cause.reason, "message": cause.message, "field": cause.field }))
            .collect();
        refusal
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn no_such_path() -> Self {
        let mut refusal =
            Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        refusal.details = json!({});
        refusal
    }

    pub(crate) fn method_not_allowed() -> Self {
        let mut refusal = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        refusal.details = json!({});
        refusal
    }

    /// What the handler of custom kinds says.
    pub(crate) fn not_supported(of: &GroupResource, verb: &str) -> Self {
        let why = format!("{verb} is not supported on resources of kind \"{of}\"");
        let mut refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", why);
        refusal.details = json!({ "group": of.group, "kind": of.resource });
        refusal
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The client may go on with this token.
    pub(crate) fn going_on_with(mut self, token: String) -> Self {
        self.goes_on = token;
        self
    }

    pub(crate) fn too_large() -> Self {
        let message = format!("Request entity too large: limit is {}", crate::limits::BODY_LEN_MAX);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// The `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        // Some internal errors have none.
        if !self.reason.is_empty() {
            body["reason"] = self.reason.as_ref().into();
        }
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        if !self.goes_on.is_empty() {
            body["metadata"]["continue"] = self.goes_on.as_str().into();
        }
        body
    }
}
