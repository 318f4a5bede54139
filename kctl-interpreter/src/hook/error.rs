//! Why a webhook gave no answer, in the words of Karmada's client.

use super::dial::ServiceUnusable;
use crate::dependency::DependenciesInvalid;

/// The reason why a webhook call failed. Calls are not retried here; the caller does that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The webhook was not reached, or did not answer as the protocol says: look at the program behind it.
    #[error("Internal error occurred: failed calling webhook {name:?}: {}{reason}", .reason.place())]
    Call {
        /// `configuration/webhook`.
        name: String,
        /// What went wrong.
        reason: CallFailed,
    },
    /// The webhook's patch does not fit the object: correct the patch that the program behind it makes.
    #[error("{problem}")]
    Patch {
        /// `configuration/webhook`.
        name: String,
        /// What does not fit. Karmada says nothing else, so the name stands in a field of its own.
        problem: String,
    },
}

/// The failure of a webhook call.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailed {
    /// The configuration names no version of the envelope that there is.
    #[error("webhook does not accept known ResourceInterpreterContext versions (v1alpha1)")]
    VersionUnknown,
    /// There is nothing to ask about.
    #[error("there is no object: give the desired or the observed one")]
    ObjectMissing,
    /// More replicas than the wire has room for.
    #[error("{replicas} replicas do not fit into an int32")]
    ReplicasTooMany {
        /// How many.
        replicas: i64,
    },
    /// The inputs have no form in JSON.
    #[error("the request can't be written: {0}")]
    NotWritten(String),
    /// The system has no random numbers for a uid.
    #[error("the system has no random numbers")]
    RandomMissing,
    /// The configuration names no usable address or authority.
    #[error("{0}")]
    ClientUnusable(String),
    /// The Service can't be routed to.
    #[error(transparent)]
    Service(#[from] ServiceUnusable),
    /// The request failed, or its answer was no answer.
    #[error("{0}")]
    Request(String),
    /// The answer breaks the protocol.
    #[error("{0}")]
    Answer(String),
    /// The dependencies that it names do not say what to bring along.
    #[error(transparent)]
    Dependencies(#[from] DependenciesInvalid),
    /// The webhook answered that it failed: the text is its own.
    #[error("webhook call failed, get status code: {code}, msg: {message}")]
    Unsuccessful {
        /// The code that it gave.
        code: i64,
        /// The text that it gave.
        message: String,
    },
}

impl CallFailed {
    /// The step at which it went wrong, as Karmada says it before the reason.
    fn place(&self) -> &'static str {
        match self {
            Self::VersionUnknown
            | Self::ObjectMissing
            | Self::ReplicasTooMany { .. }
            | Self::NotWritten(_)
            | Self::RandomMissing => "could not create ResourceInterpreterContext objects: ",
            Self::ClientUnusable(_) => "could not get REST client: ",
            Self::Service(_) | Self::Request(_) => "failed to call webhook: ",
            Self::Answer(_) | Self::Dependencies(_) => "received invalid webhook response: ",
            Self::Unsuccessful { .. } => "",
        }
    }
}

impl From<serde_json::Error> for CallFailed {
    fn from(error: serde_json::Error) -> Self {
        Self::NotWritten(error.to_string())
    }
}
