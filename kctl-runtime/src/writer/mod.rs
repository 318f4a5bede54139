//! Writes: the last stage of the control loop, from a reconcile function to the API server.
//!
//! All writes of a controller go through a [`Writer`]. The [`Context`](crate::reconcile::Context) and the handles
//! that it returns call it. The declaration of the controller decides which of its operations a reconcile function
//! can name. Every write passes the same four steps:
//!
//! 1. The [`WritePermit`] waits until the rest of the Lease is longer than the write may take, and fails
//!    with [`ApiError::NotLeading`] if this process does not lead.
//! 2. The request is sent, with the field manager of the program and a timeout.
//! 3. An object in the response goes into the [`store`](crate::store) before the caller gets it. The next read of the
//!    cache sees it, and the watch event that follows changes nothing. The table below has the exceptions.
//! 4. If the outcome is unknown (timeout, 5xx, a reconcile that was cancelled), the key is marked. Before
//!    its function is called again, the worker lists the namespace of that write.
//!
//! Step 3 makes a reconcile function read its own writes. After a lost response, step 4 makes the next reconcile read
//! them. controller-runtime offers step 3 as `EnableReadYourWritesConsistency` (v0.25, off by default).
//!
//! Requests that the server rejects with 429 or 503 and a `Retry-After` header are sent again, at most 10 times in
//! all, as long as the waits fit into the timeout. A server that names a wait has done nothing, so this is safe
//! for creates as well.
//!
//! # Outcomes of a write
//!
//! | Response | Cache | Next reconcile of the key |
//! |---|---|---|
//! | success with the object | has it before the call returns | as the reconcile function asks |
//! | success with the last state of an object that the write ends | drops the object | the same |
//! | success with something else, such as a `Scale` | waits for the watch, or reads the object | the same |
//! | success with a `resourceVersion` that is not a number | waits for the watch, at most 10 s | the same; after 10 s it first lists the namespace of the write |
//! | success of the patch that removes a finalizer from an unreadable object | unchanged until the watch delivers it | the same |
//! | 409 `Conflict`, or 422 for the uid of a predecessor | unchanged | at the next event, or after at least 1 s; it does not count as a failure |
//! | 404 for the object of a `DELETE` | drops the object | as the reconcile function asks: the call succeeds |
//! | rejected with another 4xx | unchanged | after backoff |
//! | 5xx, timeout, connection lost | unchanged | first lists the namespace of the write |
//! | reconcile dropped or panicked during the write | unchanged | first lists the namespace of the write |
//! | that list fails | unchanged | after backoff, and first lists again; the function is not called |
//! | no permit | unchanged; nothing was sent | in the process that holds the Lease by then |
//!
//! [`ApiError`] has these classes as methods, so that no caller has to look at status codes:
//!
//! ```
//! use kctl_runtime::writer::ApiError;
//!
//! let status = r#"{"reason": "Conflict", "message": "the object has been modified", "code": 409}"#;
//! let conflict = ApiError::rejected("update Pod shop/web-0", 409, None, status);
//! assert!(!conflict.is_unknown_outcome(), "the server decided, and the cache is right");
//!
//! let lost = ApiError::no_response("create Pod shop/web-0", "connection reset");
//! assert!(lost.is_unknown_outcome(), "the Pod may exist");
//! ```
//!
//! # Events
//!
//! Events take another path: a [`Recorder`] queues them and never delays a reconcile. At most [`EVENTS_MAX`] wait per
//! controller.

mod delete;
mod deletion;
mod objects;
mod permit;
mod propagation;
mod raw;
mod read;
mod recorder;
mod response;
mod review;
mod send;
mod subresources;
mod target;
#[cfg(test)]
mod tests;
mod uncertain;

use std::sync::Arc;

use kube::Client;

use crate::key::ObjectKey;

pub use crate::transport::{ApiError, Operation};
pub(crate) use objects::{APPLY_PATCH, MERGE_PATCH};
pub(crate) use permit::ShardPermits;
pub use permit::{LeaseState, WriteGuard, WritePermit};
pub(crate) use propagation::Propagation;
pub(crate) use recorder::EventRecord;
pub(crate) use recorder::RecorderView;
pub use recorder::{EVENTS_MAX, EventType, Recorder};
pub(crate) use review::{UserInfo, access, token};
pub(crate) use target::Target;
pub(crate) use uncertain::UncertainWrites;

/// Sends the writes of one controller.
///
/// It has a field manager, which `metadata.managedFields` records for each field that is applied, and a
/// [`WritePermit`]. Its operations are internal, because each needs the cache that takes the response in:
/// use them through the context of a reconcile function. You build a writer to assemble the stages of the
/// loop by hand.
///
/// ```
/// use kctl_runtime::writer::{WritePermit, Writer};
///
/// let writer = Writer::new("podset.example.com").permit(WritePermit::always());
/// # drop(writer);
/// ```
///
/// Clones are cheap. They share the permit and the record of uncertain writes.
#[derive(Clone)]
pub struct Writer {
    /// The field manager, sent as `fieldManager` with every write.
    manager: Arc<str>,
    /// Asked before each write.
    permit: WritePermit,
    /// Number of the tenure in which the reconcile began that writes; 0 without slots and without a controller ring.
    tenure: u64,
    /// The writes whose outcome is unknown, by the key that sent them.
    uncertain_writes: UncertainWrites,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("manager", &self.manager).field("permit", &self.permit).finish_non_exhaustive()
    }
}

impl Writer {
    /// Creates a writer with this field manager, whose permit always grants.
    ///
    /// API servers accept at most 128 characters.
    ///
    /// All replicas of a program should use the same name, and keep it over versions. Server-side apply releases a
    /// field when the manager that applied it stops sending it; under a new name the old fields would never be
    /// released.
    pub fn new(manager: &str) -> Self {
        Self {
            manager: manager.into(),
            permit: WritePermit::always(),
            tenure: 0,
            uncertain_writes: UncertainWrites::default(),
        }
    }

    /// Replaces the permit that is checked before each write.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kctl_runtime::writer::{LeaseState, WritePermit, Writer};
    /// use tokio::sync::watch;
    ///
    /// let (election, permission) = watch::channel(LeaseState::NotHeld);
    /// let permit = WritePermit::from_lease(permission, Duration::from_secs(4), Duration::from_secs(1));
    /// let writer = Writer::new("podset.example.com").permit(permit);
    /// // Writes fail until the election sends `LeaseState::HeldUntil`.
    /// # drop((election, writer));
    /// ```
    #[must_use]
    pub fn permit(mut self, permit: WritePermit) -> Self {
        self.permit = permit;
        self
    }

    /// Returns this writer for one reconcile. It sends nothing after the end of the tenure with this number.
    pub(crate) fn in_tenure(&self, tenure: u64) -> Self {
        Self { tenure, ..self.clone() }
    }

    /// Returns the number of the only tenure in which it sends requests.
    pub(crate) fn tenure(&self) -> u64 {
        self.tenure
    }

    /// Returns the writes of this controller whose outcome is unknown.
    pub(crate) fn uncertain_writes(&self) -> &UncertainWrites {
        &self.uncertain_writes
    }

    /// Returns a client for requests that have no operation here; its writes wait for the permit of the key.
    pub(crate) fn raw(&self, client: &Client, key: &ObjectKey) -> Client {
        raw::guard_writes(client, &self.permit.for_key(key, self.tenure))
    }
}
