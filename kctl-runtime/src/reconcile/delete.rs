//! Deletes, and their propagation policies.

use std::{
    pin::Pin,
    task::{self, Poll},
};

use super::ApiRequest;
use crate::writer::{ApiError, Propagation};

/// Sends the delete with a policy; `None` leaves the policy to the API server.
type SendWith = Box<dyn FnOnce(Option<Propagation>) -> ApiRequest<()> + Send>;

/// A delete that is sent when it is awaited. Dependents of the object are deleted in the background, as with
/// `kubectl delete`; [`foreground`](Self::foreground) and [`orphan`](Self::orphan) select another [propagation
/// policy](https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion).
///
/// API servers themselves orphan the Pods of a deleted `batch/v1` Job by default, so kctl always sends a policy. There
/// is one exception: if the object has the finalizer `foregroundDeletion` or `orphan`, none is sent and that finalizer
/// decides.
///
/// ```
/// use k8s_openapi::api::batch::v1::Job;
/// use kctl_runtime::reconcile::{Context, Deletes, Result};
///
/// /// Deletes the Jobs beyond the newest three. A Job is gone only after its Pods, so its successor never runs beside them.
/// async fn prune<C: Deletes<Job>>(cx: &Context<C>) -> Result<()> {
///     let jobs = cx.owned::<Job>();
///     for job in jobs.iter().rev().skip(3) {
///         jobs.delete(&job).foreground().await?;
///     }
///     Ok(())
/// }
/// ```
///
/// # Cancel safety
/// After the first poll, a dropped delete may or may not take effect; the watch reports it if it does.
#[must_use = "nothing is sent until the request is awaited: append `.await?`"]
pub struct DeleteRequest(DeleteState);

impl std::fmt::Debug for DeleteRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeleteRequest").finish_non_exhaustive()
    }
}

enum DeleteState {
    New {
        policy: Option<Propagation>,
        send: SendWith,
    },
    Sent(ApiRequest<()>),
    /// Only while the first poll replaces `New` by `Sent`.
    Empty,
}

impl DeleteRequest {
    pub(super) fn new(
        finalizers: &[String],
        send: impl FnOnce(Option<Propagation>) -> ApiRequest<()> + Send + 'static,
    ) -> Self {
        Self(DeleteState::New { policy: Propagation::by_default(finalizers), send: Box::new(send) })
    }

    /// Deletes the object first, and its dependents later: the default.
    pub fn background(self) -> Self {
        self.with(Propagation::Background)
    }

    /// Deletes dependents first. The object remains, with a `deletionTimestamp`, until all dependents with
    /// `blockOwnerDeletion` in their owner reference are gone. Owner references by Jobs, `ReplicaSet`s and other
    /// built-in kinds have it, and so have objects of `owns = Kind(block_owner_deletion)`.
    pub fn foreground(self) -> Self {
        self.with(Propagation::Foreground)
    }

    /// Keeps the dependents, without their reference to the object. The Pods of a Job then run on, and no controller
    /// deletes them.
    pub fn orphan(self) -> Self {
        self.with(Propagation::Orphan)
    }

    fn with(self, propagation: Propagation) -> Self {
        Self(match self.0 {
            DeleteState::New { send, .. } => DeleteState::New { policy: Some(propagation), send },
            sent => sent,
        })
    }
}

impl Future for DeleteRequest {
    type Output = Result<(), ApiError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        if matches!(self.0, DeleteState::New { .. })
            && let DeleteState::New { policy, send } = std::mem::replace(&mut self.0, DeleteState::Empty)
        {
            self.0 = DeleteState::Sent(send(policy));
        }
        match &mut self.0 {
            DeleteState::Sent(request) => Pin::new(request).poll(cx),
            DeleteState::New { .. } | DeleteState::Empty => Poll::Pending,
        }
    }
}
