//! The record of one change of a stored object, for observers.
//!
//! Observers are for tests and simulations, which record the history of a cluster; controllers of this process use
//! watches like any client.

use std::sync::Arc;

use serde_json::Value;

use super::Event;
use crate::status::GroupResource;

/// Receives each change of an object.
pub(crate) type ChangeObserver = Box<dyn Fn(&Change) + Send>;

/// The client on whose behalf objects are written. Empty while the server's own controllers write.
#[derive(Default)]
pub(crate) struct ChangeOrigin {
    /// See [`Change::by`].
    pub(crate) by: String,
    /// See [`Change::trace`].
    pub(crate) trace: String,
}

/// One change of a stored object. An observer is called under the lock of the store, after the change is in the journal
/// and before a watch sees it. It has to return soon, and must not call the server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Change {
    /// The client of the request ([`Connection::client`](crate::faults::Connection::client)), or else its user; empty
    /// for changes by the server itself.
    pub by: String,
    /// The trace id of the request's `traceparent` header; empty without one.
    pub trace: String,
    /// The revision of the change, as in `metadata.resourceVersion`.
    pub revision: u64,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, such as `pods`.
    pub resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The object before the change; `None` if the change created it.
    pub before: Option<Arc<Value>>,
    /// The object after the change; `None` if the change deleted it.
    pub after: Option<Arc<Value>>,
}

impl Change {
    /// Creates the record of an event in a table.
    pub(crate) fn new(origin: &ChangeOrigin, resource: &GroupResource, event: &Event) -> Self {
        let (namespace, name) = event.key.clone();
        Self {
            by: origin.by.clone(),
            trace: origin.trace.clone(),
            revision: event.revision,
            group: resource.group.clone(),
            resource: resource.resource.clone(),
            namespace,
            name,
            before: event.before.as_ref().map(|before| before.value()),
            after: (!event.deleted).then(|| event.object.value()),
        }
    }
}
