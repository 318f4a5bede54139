//! What can go wrong between a request and its answer, named so that a reader knows which object and what to do.

use std::time::Duration;

use serde::Deserialize;

/// A request to the API server that did not do what it should. It names the operation and the object.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The API server said no.
    #[error("{operation}: {message}")]
    Refused {
        /// Verb, kind and name of the request.
        operation: String,
        /// HTTP status.
        code: u16,
        /// The reason of the Status object, for example `Conflict`.
        reason: String,
        /// The text of the Status object.
        message: String,
        /// What the server asks to wait before the next try.
        retry_after: Option<Duration>,
    },
    /// No answer came: whether the request took effect is not known.
    #[error("{operation}: no answer from the API server: {cause}")]
    Unanswered {
        /// Verb, kind and name of the request.
        operation: String,
        /// What the connection says.
        cause: String,
    },
    /// The answer is not what the API promises.
    #[error("{operation}: the answer cannot be read: {cause}")]
    Unreadable {
        /// Verb, kind and name of the request.
        operation: String,
        /// What the decoder says.
        cause: String,
    },
    /// What the request was given to send is not what can be sent: nothing was. Terminal: trying again cannot help.
    #[error("{operation}: not sent: {cause}")]
    Unsendable {
        /// Verb, kind and name of the request.
        operation: String,
        /// What is wrong, and what to write.
        cause: String,
    },
    /// The request would touch an object that the primary does not own. Terminal: trying again cannot help.
    #[error("{operation}: {object} is not controlled by {owner}")]
    Foreign {
        /// Verb, kind and name of the request.
        operation: String,
        /// The object.
        object: String,
        /// The primary.
        owner: String,
    },
    /// The object was given a controller that is not the primary, and an object has one at most. Terminal: trying again cannot help.
    #[error(
        "{operation}: {object} (controlled by {controller}) is not controlled by {owner}: an object has one controller; leave `controller` out of the owner reference to {controller}, or write the object by `cx.objects`, which adds no reference"
    )]
    SecondController {
        /// Verb, kind and name of the request.
        operation: String,
        /// The object.
        object: String,
        /// The name of the controller that it was given.
        controller: String,
        /// The primary.
        owner: String,
    },
    /// The primary would own an object of another namespace, which the garbage collector takes for one without an owner and
    /// deletes. Terminal: trying again cannot help.
    #[error(
        "{operation}: {owner} cannot own an object of another namespace; leave `metadata.namespace` out, or write it by `cx.objects` and watch it with a mapper"
    )]
    Elsewhere {
        /// Verb, kind and name of the request.
        operation: String,
        /// The primary.
        owner: String,
    },
    /// The request is outside of what the controller declares. Terminal: trying again cannot help.
    #[error("{operation}: not declared; write `{declaration}` in the controller")]
    Undeclared {
        /// Verb, kind and name of the request.
        operation: String,
        /// What would declare it.
        declaration: String,
    },
    /// The process does not hold the lease, or too little of it is left: nothing was sent.
    #[error("{operation}: not sent, because this process does not lead (any longer); the leader will do it")]
    NotLeading {
        /// Verb, kind and name of the request.
        operation: String,
    },
    /// The cache does not know (any longer) what is there: nothing was sent.
    #[error(
        "{operation}: not sent, because the cache does not follow it now: its namespace is no longer one of those that are watched, or its kind is not installed (for an optional kind, ask `cx.is_served` first)"
    )]
    NotFollowed {
        /// Verb, kind and name of the request.
        operation: String,
    },
}

/// The Status object, as far as it is read.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    reason: String,
    message: String,
    code: u16,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: u64,
}

impl ApiError {
    /// Reads a refusal from the body of an answer, which is a Status object when the API server wrote it.
    pub fn refused(operation: &str, code: u16, retry_after: Option<Duration>, body: &str) -> Self {
        let status: Status = serde_json::from_str(body)
            .unwrap_or_else(|_not_a_status| Status { message: body.chars().take(500).collect(), ..Status::default() });
        let asked = status.details.retry_after_seconds;
        Self::Refused {
            operation: operation.into(),
            code: if status.code == 0 { code } else { status.code },
            reason: status.reason,
            message: status.message.trim().to_owned(),
            retry_after: retry_after.or((asked > 0).then(|| Duration::from_secs(asked))),
        }
    }

    /// Verb, kind and name of the request.
    pub fn operation(&self) -> &str {
        match self {
            Self::Refused { operation, .. }
            | Self::Unanswered { operation, .. }
            | Self::Unreadable { operation, .. }
            | Self::Unsendable { operation, .. }
            | Self::Foreign { operation, .. }
            | Self::SecondController { operation, .. }
            | Self::Elsewhere { operation, .. }
            | Self::Undeclared { operation, .. }
            | Self::NotLeading { operation }
            | Self::NotFollowed { operation } => operation,
        }
    }

    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The request was made of an old state: 409 because of an outdated resourceVersion or another precondition, or 422 because
    /// the object that has the name now is not the one that was meant.
    pub fn is_conflict(&self) -> bool {
        self.has_reason(409, "Conflict") || self.is_about_another()
    }

    /// A patch and an apply that name the uid of a predecessor would change the uid (`k8s.io/apimachinery`, `ValidateObjectMetaUpdate`).
    fn is_about_another(&self) -> bool {
        let changes_uid =
            |message: &str| message.contains("metadata.uid: Invalid value") && message.contains("field is immutable");
        self.has_reason(422, "Invalid") && matches!(self, Self::Refused { message, .. } if changes_uid(message))
    }

    /// 409 because an object of this name exists.
    pub fn is_already_exists(&self) -> bool {
        self.has_reason(409, "AlreadyExists")
    }

    /// 404.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// 404 because the API server has no such kind, or no such subresource: what it lacks has no name (`k8s.io/apiserver`,
    /// `NewGenericServerResponse`; a group that is unknown is answered in plain text).
    pub(crate) fn is_unknown_resource(&self) -> bool {
        let known = ["the server could not find the requested resource", "404 page not found"];
        matches!(self, Self::Refused { code: 404, message, .. } if known.contains(&message.trim()))
    }

    /// Whether it says that there is no object of this name, and not that there is no such kind.
    pub(crate) fn names_missing(&self, name: &str) -> bool {
        let missing = format!("\"{name}\" not found");
        self.has_reason(404, "NotFound") && matches!(self, Self::Refused { message, .. } if message.ends_with(&missing))
    }

    /// 403: the role lacks a rule.
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// 410: the version that was asked for is no longer kept.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// Whether the request may have taken effect although it failed.
    pub fn is_unknown_outcome(&self) -> bool {
        match self {
            Self::Unanswered { .. } | Self::Unreadable { .. } => true,
            Self::Refused { code, .. } => *code >= 500,
            Self::Unsendable { .. }
            | Self::Foreign { .. }
            | Self::SecondController { .. }
            | Self::Elsewhere { .. }
            | Self::Undeclared { .. }
            | Self::NotLeading { .. }
            | Self::NotFollowed { .. } => false,
        }
    }

    /// Whether no later try can succeed.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Unsendable { .. }
                | Self::Foreign { .. }
                | Self::SecondController { .. }
                | Self::Elsewhere { .. }
                | Self::Undeclared { .. }
        )
    }

    /// Returns the wait that the server asked for (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    fn has_reason(&self, status: u16, name: &str) -> bool {
        matches!(self, Self::Refused { code, reason, .. } if *code == status && reason == name)
    }
}
