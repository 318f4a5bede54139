//! The error of a request to the API server.
//!
//! Each variant names the point at which the request failed, because that decides the next step. A
//! request that was not sent can be repeated safely; one without a response may have taken effect.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusDetails;
use serde::Deserialize;

use super::Operation;

/// Longest `Retry-After` that is followed. A server that recovers earlier is found within this time, whatever wait it
/// named. Neither a cache nor a key must freeze for a day because of one response.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The error of a request to the API server, with the operation and the object it was about.
///
/// Reconcile functions return it with `?`. The error decides when the worker tries the key again:
///
/// | Error | Sent | Next attempt |
/// |---|---|---|
/// | [`Rejected`](Self::Rejected) with `Retry-After` | yes | after that wait, at most a minute |
/// | [`Rejected`](Self::Rejected), a conflict | yes | once the cache has a newer state |
/// | [`Rejected`](Self::Rejected) with a 5xx, [`NoResponse`](Self::NoResponse), [`Unreadable`](Self::Unreadable) | yes | after the backoff; after a write, once the cache was listed again |
/// | [`Rejected`](Self::Rejected) otherwise | yes | after the backoff |
/// | [`NotLeading`](Self::NotLeading), [`NotWatched`](Self::NotWatched), [`NotControlled`](Self::NotControlled) | no | after the backoff |
/// | [`Unsendable`](Self::Unsendable), [`SecondController`](Self::SecondController), [`OtherNamespace`](Self::OtherNamespace), [`Undeclared`](Self::Undeclared) | no | at the next event or resync: terminal |
///
/// Match on a method rather than on a variant if you handle one case yourself:
///
/// ```
/// use kctl_runtime::writer::ApiError;
///
/// let body = r#"{"kind": "Status", "reason": "AlreadyExists", "message": "pods \"web-0\" already exists", "code": 409}"#;
/// let error = ApiError::rejected("create Pod shop/web-0", 409, None, body);
/// assert!(error.is_already_exists() && !error.is_conflict());
/// assert!(!error.is_unknown_outcome() && !error.is_terminal());
/// assert_eq!(error.to_string(), "create Pod shop/web-0: pods \"web-0\" already exists");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The API server rejected the request and said why in a `Status` object.
    #[error("{operation}: {message}")]
    #[non_exhaustive]
    Rejected {
        /// Verb, kind and key of the request, such as `create Pod shop/web-0`.
        operation: Operation,
        /// HTTP status code.
        code: u16,
        /// `reason` of the Status object, for example `Conflict`; empty if the response was not a Status.
        reason: String,
        /// `message` of the Status object, or the first 500 characters of another answer with the code. Never empty for a
        /// response: without a body it is `302 Found without a message`.
        message: String,
        /// `details` of the Status object: kind and name that the rejection is about, and its causes.
        details: Box<StatusDetails>,
        /// Wait that the server asked for, from the `Retry-After` header or `details.retryAfterSeconds`.
        retry_after: Option<Duration>,
    },
    /// The connection failed or timed out. The request may have taken effect or not.
    #[error("{operation}: no response from the API server: {}", without_link(.cause))]
    #[non_exhaustive]
    NoResponse {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// The error of the connection, or the time that was waited.
        cause: String,
    },
    /// The server reported success, but its response is not an object of the kind. The write has happened.
    #[error("{operation}: the response cannot be read: {}", without_link(.cause))]
    #[non_exhaustive]
    Unreadable {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// The error of the decoder.
        cause: String,
    },
    /// The request could not be built, so nothing was sent. Terminal: a retry fails in the same way.
    #[error("{operation}: not sent: {cause}")]
    #[non_exhaustive]
    Unsendable {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// The mistake, and what to write instead.
        cause: String,
    },
    /// The primary does not control the object that it was about to change.
    ///
    /// `Owned` writes only objects whose controller reference names the primary, so that two controllers
    /// never fight over one. The object was created by another program or has another controller. It is tried again,
    /// because the end of such an object enqueues its controller and not this primary.
    #[error(
        "{operation}: {object} is not controlled by {owner}; use another name, or adopt it by `cx.adopt` once it has no controller"
    )]
    #[non_exhaustive]
    NotControlled {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// Kind and name of the object.
        object: String,
        /// Kind and name of the primary.
        owner: String,
    },
    /// The object to write names a controller other than the primary. Terminal: API servers accept at most
    /// one controller reference.
    #[error(
        "{operation}: {object} (controlled by {controller}) is not controlled by {owner}: an object has one controller; leave `controller` out of the owner reference to {controller}, or write the object by `cx.objects`, which adds no reference"
    )]
    #[non_exhaustive]
    SecondController {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// Kind and name of the object.
        object: String,
        /// The controller in the object's owner references.
        controller: String,
        /// Kind and name of the primary.
        owner: String,
    },
    /// The primary would own an object in another namespace. Terminal: the garbage collector treats such an object as
    /// an orphan and deletes it.
    #[error(
        "{operation}: {owner} cannot own an object of another namespace; leave `metadata.namespace` out, or write it by `cx.objects` and watch it with a mapper"
    )]
    #[non_exhaustive]
    OtherNamespace {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// Kind and name of the primary.
        owner: String,
    },
    /// The controller does not declare this operation, so its role does not permit it. Terminal.
    #[error("{operation}: not declared; write `{declaration}` in the controller")]
    #[non_exhaustive]
    Undeclared {
        /// Verb, kind and key of the request.
        operation: Operation,
        /// The option of `#[controller(…)]` to add.
        declaration: String,
    },
    /// This process does not hold the Lease, or not for long enough. Nothing was sent.
    ///
    /// The key is reconciled by the process that leads. Nothing needs to be done about it.
    #[error("{operation}: not sent, because this process does not lead (any longer); the leader will do it")]
    #[non_exhaustive]
    NotLeading {
        /// Verb, kind and key of the request.
        operation: Operation,
    },
    /// The cache does not follow the kind or the namespace, so the result could not be seen. Nothing was sent.
    #[error(
        "{operation}: not sent, because the cache does not follow it now: its namespace is no longer one of those that are watched, or its kind is not installed (for an optional kind, ask `cx.is_served` first)"
    )]
    #[non_exhaustive]
    NotWatched {
        /// Verb, kind and key of the request.
        operation: Operation,
    },
}

/// The fields of a `Status` object that an error needs.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    kind: String,
    reason: String,
    message: String,
    code: u16,
    details: Box<StatusDetails>,
}

impl Status {
    /// Reads the body of a response. A body that is not a JSON object becomes the message.
    fn read(code: u16, body: &str) -> Self {
        serde_json::from_str(body)
            .unwrap_or_else(|_not_a_status| Self { message: page_text(code, body), ..Self::default() })
    }
}

/// Leaves out the link to a library's docs at the end of a message: rustls adds one if a connection breaks.
fn without_link(cause: &str) -> &str {
    cause.split_once(": https://docs.rs/").map_or(cause, |(message, _link)| message)
}

/// Returns the start of a response that is not a `Status`, with the code unless the text has it.
fn page_text(code: u16, body: &str) -> String {
    let text: String = body.chars().take(500).collect();
    let text = text.trim();
    if text.is_empty() || text.contains(&code.to_string()) { text.to_owned() } else { format!("{text} ({code})") }
}

/// Returns a status code with its name, such as `302 Found`.
fn status_line(code: u16) -> String {
    http::StatusCode::from_u16(code).map_or_else(|_invalid| code.to_string(), |status| status.to_string())
}

impl ApiError {
    /// Builds [`Rejected`](Self::Rejected) from the body of a response.
    ///
    /// A body that is not a `Status` (a proxy's page, for example) becomes the message, cut after 500
    /// characters and followed by the code if the text lacks it. `retry_after` is the header's value; without one the
    /// body's `retryAfterSeconds` counts.
    /// Only the `code` of a body with `kind: Status` replaces the HTTP status.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kctl_runtime::writer::ApiError;
    ///
    /// let busy = r#"{"reason": "TooManyRequests", "message": "try later", "details": {"retryAfterSeconds": 3}, "code": 429}"#;
    /// let error = ApiError::rejected("list Pod", 429, None, busy);
    /// assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    ///
    /// let proxy = ApiError::rejected("get Pod shop/web-0", 502, None, "Bad Gateway\n");
    /// assert_eq!((proxy.code(), proxy.to_string().as_str()), (Some(502), "get Pod shop/web-0: Bad Gateway (502)"));
    /// assert!(proxy.is_unknown_outcome());
    /// ```
    pub fn rejected(operation: impl Into<Operation>, code: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let status = Status::read(code, body);
        // A gateway's 503 may have a JSON body with the gateway's own code 404. That does not mean that the kind is not served.
        let code = if status.kind == "Status" && status.code != 0 { status.code } else { code };
        Self::with_status(operation.into(), code, retry_after, status)
    }

    /// Builds [`Rejected`](Self::Rejected) from the object of an `ERROR` event, whose watch was accepted before. Without a
    /// `code` it counts as 500.
    pub(crate) fn watch_error(operation: impl Into<Operation>, body: &str) -> Self {
        let status = Status::read(500, body);
        let code = if status.code == 0 { 500 } else { status.code };
        Self::with_status(operation.into(), code, None, status)
    }

    /// Builds [`Rejected`](Self::Rejected) from this code and the other fields of a status.
    fn with_status(operation: Operation, code: u16, retry_after: Option<Duration>, status: Status) -> Self {
        let seconds = status.details.retry_after_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let message = match status.message.trim() {
            "" => format!("{} without a message", status_line(code)),
            message => message.to_owned(),
        };
        Self::Rejected {
            operation,
            code,
            reason: status.reason,
            message,
            retry_after: retry_after.or(seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)),
            details: status.details,
        }
    }

    /// Builds [`NoResponse`](Self::NoResponse) for a request whose connection failed or timed out.
    ///
    /// ```
    /// use kctl_runtime::writer::ApiError;
    ///
    /// let lost = ApiError::no_response("create Pod shop/web-0", "connection reset");
    /// assert!(lost.is_unknown_outcome());
    /// ```
    pub fn no_response(operation: impl Into<Operation>, cause: impl Into<String>) -> Self {
        Self::NoResponse { operation: operation.into(), cause: cause.into() }
    }

    /// Returns verb, kind and key of the request, such as `patch Deployment shop/web`.
    pub fn operation(&self) -> &Operation {
        match self {
            Self::Rejected { operation, .. }
            | Self::NoResponse { operation, .. }
            | Self::Unreadable { operation, .. }
            | Self::Unsendable { operation, .. }
            | Self::NotControlled { operation, .. }
            | Self::SecondController { operation, .. }
            | Self::OtherNamespace { operation, .. }
            | Self::Undeclared { operation, .. }
            | Self::NotLeading { operation }
            | Self::NotWatched { operation } => operation,
        }
    }

    /// Returns the HTTP status code if the server rejected the request.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Rejected { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Returns `true` if the write was based on an old state: read the object again and decide again.
    ///
    /// That is 409 `Conflict` (a `resourceVersion` or another precondition does not match), and 422 `Invalid`
    /// if a patch names the uid of an earlier object of the same name. 409 `AlreadyExists` is not a conflict.
    ///
    /// ```
    /// use kctl_runtime::writer::ApiError;
    ///
    /// let body = r#"{"kind": "Status", "reason": "Conflict", "message": "the object has been modified", "code": 409}"#;
    /// assert!(ApiError::rejected("update Pod shop/web-0", 409, None, body).is_conflict());
    /// ```
    pub fn is_conflict(&self) -> bool {
        self.has_reason(409, "Conflict") || self.is_about_another()
    }

    /// Returns `true` for a patch that names the uid of a predecessor, which the server takes for an attempt
    /// to change the uid (`k8s.io/apimachinery`, `ValidateObjectMetaUpdate`).
    fn is_about_another(&self) -> bool {
        self.has_reason(422, "Invalid") && self.has_cause("FieldValueInvalid", "metadata.uid")
    }

    /// Returns `true` for 409 `AlreadyExists`: an object of this name exists.
    pub fn is_already_exists(&self) -> bool {
        self.has_reason(409, "AlreadyExists")
    }

    /// Returns `true` for 404: the object, its namespace or its kind does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns `true` for 404 because the server lacks the kind or the subresource.
    ///
    /// The message has no name then (`k8s.io/apimachinery`, `NewGenericServerResponse`); for an unknown group
    /// the response is plain text.
    pub(crate) fn is_unknown_resource(&self) -> bool {
        let messages = ["the server could not find the requested resource", "404 page not found"];
        matches!(self, Self::Rejected { code: 404, message, .. } if messages.contains(&message.trim()))
    }

    /// Returns `true` if the kind is served but has no object with the key of the operation.
    ///
    /// A 404 for another reason names another object, such as the missing namespace, or none
    /// (`k8s.io/apimachinery`, `NewNotFound`).
    pub(crate) fn is_object_missing(&self) -> bool {
        let Self::Rejected { operation, details, .. } = self else { return false };
        let (Some(kind), Some(key)) = (operation.kind(), operation.key()) else { return false };
        self.has_reason(404, "NotFound")
            && details.kind.as_ref() == Some(&kind.plural)
            && details.name.as_deref() == Some(&*key.name)
    }

    /// Returns `true` for 403: the role lacks a rule, or an admission plugin denied the request.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// Returns `true` for 410: the server no longer keeps the requested resourceVersion, so list again.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// Returns `true` if the server may have rejected a list or a watch because of its `shardSelector`.
    ///
    /// A server that knows the parameter responds with 500 if it can't parse the selector (kube-apiserver 1.37.2, recorded
    /// in `tests/conformance/recorded/sharded_lists.json`). The start of the message decides, because this `Status` has no
    /// reason, no details and no causes. Other 500s without a reason, such as a timeout of etcd, pass by themselves: they
    /// must not turn the selector off. If the message changes, lists fail and are retried, and the error is logged.
    pub(crate) fn may_reject_shard_selector(&self) -> bool {
        match self {
            Self::Rejected { code: 400 | 422, .. } => true,
            Self::Rejected { code: 500, message, .. } => message.starts_with("invalid shard selector"),
            _ => false,
        }
    }

    /// Returns `true` if the request may have taken effect although it failed.
    ///
    /// That holds for [`NoResponse`](Self::NoResponse), [`Unreadable`](Self::Unreadable) and each 5xx. Before
    /// the key is reconciled again, its cache is brought up to date.
    pub fn is_unknown_outcome(&self) -> bool {
        match self {
            Self::NoResponse { .. } | Self::Unreadable { .. } => true,
            Self::Rejected { code, .. } => *code >= 500,
            Self::Unsendable { .. }
            | Self::NotControlled { .. }
            | Self::SecondController { .. }
            | Self::OtherNamespace { .. }
            | Self::Undeclared { .. }
            | Self::NotLeading { .. }
            | Self::NotWatched { .. } => false,
        }
    }

    /// Returns `true` if no later try can succeed, because the program itself is wrong.
    ///
    /// The worker does not retry such a key; it waits for the next event or resync.
    ///
    /// ```
    /// use kctl_runtime::writer::ApiError;
    ///
    /// // An administrator may correct the quota, so a later try can succeed.
    /// let status = r#"{"reason": "Forbidden", "message": "exceeded quota", "code": 403}"#;
    /// assert!(!ApiError::rejected("create Pod shop/web-0", 403, None, status).is_terminal());
    /// ```
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Unsendable { .. }
                | Self::SecondController { .. }
                | Self::OtherNamespace { .. }
                | Self::Undeclared { .. }
        )
    }

    /// Returns `true` if the server rejected the content of the request, so that the same request fails again.
    ///
    /// That is 422 and 400. A field that the schema does not declare is a 500 without a reason in server-side apply
    /// (`k8s.io/apimachinery`, `structuredMergeManager.Apply`). A failed webhook has the reason `InternalError`.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::Rejected { code: 400 | 422, .. } => !self.is_conflict(),
            Self::Rejected { code: 500, reason, operation, .. } => reason.is_empty() && operation.verb() == "apply",
            _ => false,
        }
    }

    /// Returns the wait that the server asked for (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the part of that wait that is followed, at most [`RETRY_AFTER_MAX`].
    pub(crate) fn followed_retry_after(&self) -> Option<Duration> {
        self.retry_after().map(|wait| wait.min(RETRY_AFTER_MAX))
    }

    /// Returns `true` if the Status object has a cause of this type, about this field; an empty field for none.
    pub(crate) fn has_cause(&self, cause: &str, field: &str) -> bool {
        let Self::Rejected { details, .. } = self else { return false };
        let mut causes = details.causes.iter().flatten();
        causes.any(|at| at.reason.as_deref() == Some(cause) && at.field.as_deref().unwrap_or_default() == field)
    }

    fn has_reason(&self, status: u16, name: &str) -> bool {
        matches!(self, Self::Rejected { code, reason, .. } if *code == status && reason == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_to_library_docs_is_left_out() {
        let link = "https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof";
        let cause = format!("peer closed connection without sending TLS close_notify: {link}");
        let error = ApiError::no_response("get Pod shop/web-0", cause).to_string();
        let expected = "no response from the API server: peer closed connection without sending TLS close_notify";
        assert_eq!(error, format!("get Pod shop/web-0: {expected}"));
    }

    #[test]
    fn rejection_without_a_status_names_its_code() {
        for (code, body, expected) in [
            (302, "", "302 Found without a message"),
            (302, " \n", "302 Found without a message"),
            (500, "{}", "500 Internal Server Error without a message"),
            (500, "boom\n", "boom (500)"),
            (404, "404 page not found\n", "404 page not found"),
            (500, r#"{"kind": "Status", "message": "etcd is full"}"#, "etcd is full"),
        ] {
            let error = ApiError::rejected("watch pods", code, None, body);
            assert_eq!(error.to_string(), format!("watch pods: {expected}"));
        }
        assert!(ApiError::rejected("list pods", 404, None, "404 page not found\n").is_unknown_resource());
    }

    #[test]
    fn only_code_of_a_status_replaces_http_status() {
        let gateway = r#"{"code": 404, "message": "no route"}"#;
        let error = ApiError::rejected("list pods", 503, None, gateway);
        assert_eq!((error.code(), error.is_not_found()), (Some(503), false));
        assert_eq!(error.to_string(), "list pods: no route");
        let status = r#"{"kind": "Status", "code": 404, "message": "no pod"}"#;
        assert_eq!(ApiError::rejected("list pods", 503, None, status).code(), Some(404));
        for (body, code) in [(r#"{"code": 410}"#, 410), (r#"{"kind": "Status"}"#, 500), ("gone", 500)] {
            assert_eq!(ApiError::watch_error("watch pods", body).code(), Some(code), "{body}");
        }
    }

    #[test]
    fn only_rejected_content_is_invalid() {
        let of_predecessor = r#"{"kind": "Status", "reason": "Invalid", "code": 422,
            "details": {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]}}"#;
        for (operation, code, body, expected) in [
            ("apply", 422, r#"{"reason": "Invalid"}"#, true),
            ("create", 400, r#"{"reason": "BadRequest"}"#, true),
            ("apply", 500, r#"{"message": "failed to create typed patch object"}"#, true),
            ("apply", 500, r#"{"reason": "InternalError"}"#, false),
            ("patch", 500, "{}", false),
            ("patch", 422, of_predecessor, false),
            ("apply", 409, r#"{"reason": "Conflict"}"#, false),
            ("apply", 403, "{}", false),
        ] {
            let error = ApiError::rejected(operation, code, None, body);
            assert_eq!(error.is_invalid(), expected, "{operation}: {code} {body}");
        }
    }

    #[test]
    fn undeclared_write_is_terminal_and_names_its_declaration() {
        let declaration = "owns = Pod(delete)".to_owned();
        let error = ApiError::Undeclared { operation: "delete Pod shop/web-0".into(), declaration };
        assert!(error.is_terminal());
        assert!(error.to_string().ends_with("write `owns = Pod(delete)` in the controller"), "{error}");
    }
}
