//! The strategy of a kind for deletions.
//!
//! Upstream: `RESTDeleteStrategy` and `GarbageCollectionDeleteStrategy` in
//! `k8s.io/apiserver/pkg/registry/rest/delete.go`.

use jiff::Timestamp;
use serde_json::Value;

use crate::deletion::{Grace, Propagation};

/// Marks an object as being deleted, by the propagation policy and at a time.
pub(crate) type MarkDeleted = fn(&mut Value, Propagation, Timestamp);

/// The strategy for deletions, in the order in which a delete uses it.
pub(crate) struct DeleteStrategy {
    /// Returns the grace period of an object in seconds, for kinds whose delete waits for it (`CheckGracefulDelete` of
    /// `RESTGracefulDeleteStrategy`).
    pub(crate) grace_seconds: Option<fn(&Value, Grace) -> i64>,
    /// Marks an object as being deleted before any other check of a delete. Its controller deletes what belongs to it.
    pub(crate) mark: Option<MarkDeleted>,
    /// Returns the reason why the object with this name may never be deleted.
    pub(crate) undeletable: fn(&str) -> Option<&'static str>,
    /// The warning about a delete without a propagation policy.
    pub(crate) warning: Option<&'static str>,
    /// Returns `true` if fields other than `metadata.finalizers` hold an object that is being deleted.
    pub(crate) has_own_finalizers: fn(&Value) -> bool,
    /// Without a propagation policy, a delete orphans dependents (`DefaultGarbageCollectionPolicy`).
    pub(crate) orphans_dependents: bool,
    /// The garbage collector ignores the objects: a delete adds none of its finalizers (`rest.Unsupported`),
    /// and owner references in the objects have no effect (`ignoredResources`).
    pub(crate) is_ignored_by_gc: bool,
    /// The response to a delete that removes the object at once.
    pub(crate) response: DeleteResponse,
}

impl DeleteStrategy {
    /// A delete removes the object at once, and its dependents later.
    pub(crate) const DEFAULT: Self = Self {
        grace_seconds: None,
        mark: None,
        undeletable: |_| None,
        warning: None,
        has_own_finalizers: |_| false,
        orphans_dependents: false,
        is_ignored_by_gc: false,
        response: DeleteResponse::Status,
    };
    /// A delete that removes the object at once returns it.
    pub(crate) const RETURNS_OBJECT: Self = Self { response: DeleteResponse::Object, ..Self::DEFAULT };
}

/// The response to a delete that removes the object at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteResponse {
    /// A `Status` with `Success`; its details name the object.
    Status,
    /// The object's last state.
    Object,
    /// The object's last state, though the `OpenAPI` document says `Status`.
    UndocumentedObject,
}
