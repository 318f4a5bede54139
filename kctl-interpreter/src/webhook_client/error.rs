//! Errors of webhook calls, in the words of Karmada's client (`callHook` in
//! `pkg/resourceinterpreter/customized/webhook/customized.go`).

use super::dial::ServiceError;
use crate::dependency::InvalidDependencyError;

/// The error of a webhook call. [`ChainError::LayerFailed`](crate::chain::ChainError::LayerFailed)
/// wraps it.
///
/// A call is not retried and no other webhook is tried. The caller retries, for example by
/// returning the error from its reconcile function.
///
/// ```
/// use kctl_interpreter::webhook_client::{CallError, WebhookClientError};
///
/// /// Returns the code with which the webhook rejected the operation.
/// fn code(error: &WebhookClientError) -> Option<i64> {
///     match error {
///         WebhookClientError::Call { reason: CallError::Unsuccessful { code, .. }, .. } => Some(*code),
///         _ => None,
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookClientError {
    /// The webhook was not reached, or its response breaks the protocol: look at the program behind
    /// it.
    #[error("Internal error occurred: failed calling webhook {name:?}: {}{reason}", .reason.failed_step())]
    #[non_exhaustive]
    Call {
        /// The full name `configuration/webhook`.
        name: String,
        /// The step that failed, and its error.
        reason: CallError,
    },
    /// The patch of the response does not apply to the object: correct the program that makes it.
    #[error("{problem}")]
    #[non_exhaustive]
    Patch {
        /// The full name `configuration/webhook`. Karmada's message does not have it, so it is only
        /// a field.
        name: String,
        /// The operation of the patch that failed, and its path.
        problem: String,
    },
}

/// The reason of [`WebhookClientError::Call`]. The variants follow the steps of a call: request, address,
/// connection, response.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The webhook accepts no version of `ResourceInterpreterContext` that this client writes. Add
    /// `v1alpha1` to `interpreterContextVersions`.
    #[error("webhook does not accept known ResourceInterpreterContext versions (v1alpha1)")]
    VersionUnknown,
    /// The inputs have no object.
    #[error("there is no object: give the desired or the observed one")]
    ObjectMissing,
    /// The number of replicas does not fit into 32 bits, which is what the request has.
    #[error("{replicas} replicas do not fit into an int32")]
    #[non_exhaustive]
    ReplicasTooMany {
        /// The number in the inputs.
        replicas: i64,
    },
    /// The inputs can't be serialized as JSON.
    #[error("the request can't be written: {0}")]
    NotWritten(String),
    /// The operating system returned no random numbers for the uid of the request.
    #[error("the system has no random numbers")]
    RandomMissing,
    /// The URL or the CA bundle of the configuration is invalid.
    #[error("{0}")]
    ClientUnusable(String),
    /// The Service of the configuration has no usable address.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The request failed, timed out, or the body of its response can't be decoded.
    #[error("{0}")]
    Request(String),
    /// The response breaks the protocol, for example with another uid or a missing field.
    #[error("{0}")]
    InvalidResponse(String),
    /// The response has an invalid reference, for `InterpretDependency`.
    #[error(transparent)]
    Dependencies(#[from] InvalidDependencyError),
    /// The webhook reported an error with `successful: false`.
    #[error("webhook call failed, get status code: {code}, msg: {message}")]
    #[non_exhaustive]
    Unsuccessful {
        /// `response.status.code`.
        code: i64,
        /// `response.status.message`.
        message: String,
    },
}

impl CallError {
    /// Returns the step that failed, which Karmada writes before the reason; empty for an error
    /// that the webhook reported.
    fn failed_step(&self) -> &'static str {
        match self {
            Self::VersionUnknown
            | Self::ObjectMissing
            | Self::ReplicasTooMany { .. }
            | Self::NotWritten(_)
            | Self::RandomMissing => "could not create ResourceInterpreterContext objects: ",
            Self::ClientUnusable(_) => "could not get REST client: ",
            Self::Service(_) | Self::Request(_) => "failed to call webhook: ",
            Self::InvalidResponse(_) | Self::Dependencies(_) => "received invalid webhook response: ",
            Self::Unsuccessful { .. } => "",
        }
    }
}

impl From<serde_json::Error> for CallError {
    fn from(error: serde_json::Error) -> Self {
        Self::NotWritten(error.to_string())
    }
}
