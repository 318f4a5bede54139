//! Errors of requests, as the `Status` objects that clients of an API server decode.
//!
//! The constructors correspond to `k8s.io/apimachinery/pkg/api/errors` (`NewNotFound`, `NewConflict`, `NewInvalid`, …),
//! with the same codes, reasons and `details`. The wording of messages is not guaranteed.

use std::{borrow::Cow, collections::HashSet};

use http::StatusCode;
use serde_json::{Value, json};

pub(crate) use crate::field_error::FieldError;
use crate::{field_error::with_detail, limits::CAUSES_LEN_MAX};

/// An error response, before it is written in the format that the client accepts. Named after `StatusError` of
/// `k8s.io/apimachinery/pkg/api/errors/errors.go`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusError {
    /// The HTTP status, which is also `code` of the `Status`.
    pub(crate) code: StatusCode,
    /// The machine-readable reason, such as `NotFound`; empty if upstream returns a plain error, which has none.
    pub(crate) reason: Cow<'static, str>,
    /// The message for people. `kubectl` prints it unchanged.
    pub(crate) message: String,
    /// `details` of the `Status`, or null if it has no details.
    pub(crate) details: Value,
    /// `metadata.continue` of the `Status`, or empty. A list whose token has expired gets a token with which it may
    /// continue in the newest state, inconsistently (`handleCompactedErrorForPaging` of
    /// `k8s.io/apiserver/pkg/storage/etcd3`).
    pub(crate) continue_token: String,
    /// Marks an error of a filter of the handler chain, such as authorization: the request has reached no verb.
    /// `responsewriters.Forbidden` adds `X-Content-Type-Options: nosniff` to such responses.
    pub(crate) is_from_filter: bool,
}

/// A group and a resource, as `schema.GroupResource`. Displayed as `pods` or `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct GroupResource {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The plural name of the resource, in lower case.
    pub(crate) resource: String,
}

impl GroupResource {
    /// Creates a `GroupResource` from an API group and the plural name of a resource.
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

/// Returns `details` that name a resource (in the field `kind`, as upstream does) and an object.
fn details(resource: &GroupResource, name: &str) -> Value {
    let parts = [("kind", resource.resource.as_str()), ("name", name), ("group", &resource.group)];
    parts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(field, text)| (field.to_owned(), Value::from(text)))
        .collect()
}

impl StatusError {
    /// Creates an error without details.
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.into(), message.into());
        Self { code, reason, message, details: Value::Null, continue_token: String::new(), is_from_filter: false }
    }

    /// Returns the placeholder error that ends a run which waits for webhooks. It is never sent: `server::service` runs
    /// the request again when the calls have their replies.
    pub(crate) fn waiting() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "", "the request waits for a webhook")
    }

    /// Returns `InternalError` (500): the server, or a webhook that it called, failed. See `NewInternalError`.
    pub(crate) fn internal(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let mut status_error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        status_error.details = json!({ "causes": [{ "message": why }] });
        status_error
    }

    /// Returns an error without a reason (500), as kube-apiserver shows errors of Go without an `APIStatus`.
    pub(crate) fn server_error(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// Returns `Timeout` (504), as `NewTimeoutError` in `k8s.io/apiserver/pkg/endpoints/handlers/finisher`.
    pub(crate) fn timed_out() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", "the request took longer than its timeout")
            .with_empty_details()
    }

    /// Adds a reason to the message.
    pub(crate) fn because(mut self, why: &str) -> Self {
        self.message = with_detail(&self.message, why);
        self
    }

    /// Adds empty `details`.
    pub(crate) fn with_empty_details(mut self) -> Self {
        self.details = json!({});
        self
    }

    /// Sets the details to a resource and the name of an object.
    pub(crate) fn for_object(mut self, resource: &GroupResource, name: &str) -> Self {
        self.details = details(resource, name);
        self
    }

    /// Marks the error as one of a filter; see [`Self::is_from_filter`].
    pub(crate) fn into_filter_error(mut self) -> Self {
        self.is_from_filter = true;
        self
    }

    /// Returns `NotFound` (404) for an object.
    pub(crate) fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{resource} {name:?} not found"))
            .for_object(resource, name)
    }

    /// Returns `AlreadyExists` (409) for the name of a create.
    pub(crate) fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", format!("{resource} {name:?} already exists"))
            .for_object(resource, name)
    }

    /// Adds to `AlreadyExists` that the name was generated, so that the client may retry (`NewGenerateNameConflict`).
    pub(crate) fn for_generated_name(mut self) -> Self {
        self.message += ": no unique name could be generated, try again";
        self.details["retryAfterSeconds"] = 1.into();
        self
    }

    /// Returns `Conflict` (409). The client has to read the object again before it retries its change.
    pub(crate) fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", format!("{resource} {name:?}: {why}")).for_object(resource, name)
    }

    /// Returns `Conflict` (409) for a write whose `resourceVersion` is not the stored one (`OptimisticLockErrorMsg`).
    pub(crate) fn optimistic_lock_error(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(resource, name, "the object has been modified: read it again and repeat the change")
    }

    /// Returns `Forbidden` (403). An empty name leaves the name out of the message.
    pub(crate) fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let object = if name.is_empty() { resource.to_string() } else { format!("{resource} {name:?}") };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("{object} is forbidden: {why}"))
            .for_object(resource, name)
    }

    /// Returns `Invalid` (422) with one cause per field error. `kind` becomes `details.kind`, where most other errors
    /// have the resource. Equal field errors are reported once, so validation may find an error twice. At most
    /// [`CAUSES_LEN_MAX`] are reported.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut seen = HashSet::new();
        let mut once: Vec<&FieldError> =
            errors.iter().filter(|error| seen.insert(*error)).take(CAUSES_LEN_MAX + 1).collect();
        let is_cut = once.len() > CAUSES_LEN_MAX;
        once.truncate(CAUSES_LEN_MAX);
        let mut texts: Vec<String> =
            once.iter().map(|field_error| format!("{}: {}", field_error.field, field_error.message)).collect();
        if is_cut {
            texts.push(format!("only the first {CAUSES_LEN_MAX} errors are listed"));
        }
        let resource = GroupResource::new(group, kind);
        let message = format!("{resource} {name:?} is invalid: {}", texts.join(", "));
        let mut status_error =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).for_object(&resource, name);
        status_error.details["causes"] = once
            .iter()
            .map(|field_error| json!({ "reason": field_error.reason, "message": field_error.message, "field": field_error.field }))
            .collect();
        status_error
    }

    /// Rejects an object that has field errors. The errors are in the order in which validation found them.
    pub(crate) fn unless_valid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::invalid(group, kind, name, errors)) }
    }

    /// Returns `BadRequest` (400).
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Returns `NotFound` (404) for a path at which no resource or document is served (`NewGenericServerResponse`).
    pub(crate) fn path_not_found() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with_empty_details()
    }

    /// Returns `MethodNotAllowed` (405) for a built-in resource that lacks the verb.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with_empty_details()
    }

    /// Returns `MethodNotAllowed` (405) as the handler of custom resources does (`NewMethodNotSupported`).
    pub(crate) fn not_supported(resource: &GroupResource, verb: &str) -> Self {
        let why = format!("{verb} is not supported on resources of kind \"{resource}\"");
        let mut status_error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", why);
        status_error.details = json!({ "group": resource.group, "kind": resource.resource });
        status_error
    }

    /// Returns `Expired` (410): the requested `resourceVersion` or continue token is older than the history. client-go
    /// lists again when a watch gets it.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Sets the token with which the client may continue its list.
    pub(crate) fn with_continue_token(mut self, token: String) -> Self {
        self.continue_token = token;
        self
    }

    /// Returns `RequestEntityTooLarge` (413) for a body over `limits::BODY_LEN_MAX` bytes.
    pub(crate) fn too_large() -> Self {
        let message = format!("Request entity too large: limit is {}", crate::limits::BODY_LEN_MAX);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// Returns `NotAcceptable` (406): the client accepts none of the served forms.
    pub(crate) fn not_acceptable(forms: &str) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", format!("the Accept header must name one of {forms}"))
    }

    /// Returns `UnsupportedMediaType` (415); `accepted` lists the supported types.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// Returns the `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            body["reason"] = self.reason.as_ref().into();
        }
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        if !self.continue_token.is_empty() {
            body["metadata"]["continue"] = self.continue_token.as_str().into();
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fields of the causes for errors at `spec.l[0]` and so on, each found twice.
    fn fields_of_invalid(n_fields: usize) -> (Vec<String>, String) {
        let error = |index| FieldError::required(&format!("spec.l[{index}]"), "");
        let errors: Vec<FieldError> = (0..n_fields).chain(0..n_fields).map(error).collect();
        let status_error = StatusError::invalid("g", "K", "name", &errors);
        let causes = status_error.details["causes"].as_array().expect("a list of causes");
        (
            causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default().to_owned()).collect(),
            status_error.message,
        )
    }

    #[test]
    fn equal_field_errors_are_reported_once() {
        assert_eq!(fields_of_invalid(2).0, ["spec.l[0]", "spec.l[1]"]);
    }

    #[test]
    fn field_errors_beyond_the_bound_are_cut() {
        for (n_fields, n_causes) in [(CAUSES_LEN_MAX, CAUSES_LEN_MAX), (CAUSES_LEN_MAX + 1, CAUSES_LEN_MAX)] {
            let (fields, message) = fields_of_invalid(n_fields);
            assert_eq!(fields.len(), n_causes);
            assert_eq!(message.ends_with("only the first 1000 errors are listed"), n_fields > CAUSES_LEN_MAX);
        }
    }
}
