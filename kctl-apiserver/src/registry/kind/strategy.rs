//! The strategy of a kind: what the server changes in an object that a client creates or updates.
//!
//! Upstream: `RESTCreateStrategy` and `RESTUpdateStrategy` in `k8s.io/apiserver/pkg/registry/rest`.

use std::sync::Arc;

use serde_json::Value;

use super::{OwnedState, Subresource, validation::ValidateChange};
use crate::field_errors::Errors;

/// Values that the server gives to an object when it is written.
pub(crate) trait Environment {
    /// Returns the time in the format of `metadata.creationTimestamp`.
    fn now(&self) -> String;
    /// Returns a new uid.
    fn uid(&mut self) -> String;
    /// Returns an address of the cluster's range that no Service has.
    fn cluster_ip(&mut self) -> String;
}

/// The parts of a write request that a strategy may use: its user and its warnings.
pub(crate) trait RequestContext {
    /// Returns the user, as `UserInfo` of `authentication.k8s.io`.
    fn user_info(&self) -> Value;
    /// Adds a warning to the response.
    fn warn(&self, warning: &str);
}

/// The strategy of a kind. A write runs its functions in this order:
///
/// - new object: `allocator.check`, `prepare_create`, `drop_unstored`, `set_times`, `complete_create`, `finish_create`,
///   `allocate`, `allocator.allocate`, `set_generated_name`;
/// - update: `set_times`, `set_status_times`, `prepare_status` or one of the `parts`, `prepare_update`,
///   `drop_unstored`, `finish_update`, `allocate`, `allocator.check`, `allocator.allocate`.
pub(crate) struct Strategy {
    /// A `PUT` creates an object that does not exist (`AllowCreateOnUpdate`).
    pub(crate) creates_on_update: bool,
    /// An update without `resourceVersion` is allowed (`AllowUnconditionalUpdate`).
    pub(crate) allows_unconditional_update: bool,
    /// `status` of a new object, for kinds with a subresource `status`.
    pub(crate) new_status: NewStatus,
    /// Completes a new object (`PrepareForCreate`).
    pub(crate) prepare_create: fn(&mut dyn Environment, &mut Value),
    /// Drops fields that are accepted but never stored. A write of them still increments the generation.
    pub(crate) drop_unstored: fn(&mut Value),
    /// Completes a new object after its defaults are set (the part of `PrepareForCreate` that needs them). Clients do
    /// not own the added fields.
    pub(crate) complete_create: fn(&mut Value),
    /// Sets fields of a new object that depend on the request (the part of `PrepareForCreate` that needs its context).
    pub(crate) finish_create: fn(&dyn RequestContext, &mut Value),
    /// Sets times that were left out or that a change renews. The arguments include the old and the new object.
    pub(crate) set_times: fn(&dyn Environment, Option<&Value>, &mut Value),
    /// Sets the times in a status that was written.
    pub(crate) set_status_times: fn(&dyn Environment, &Value, &mut Value),
    /// Subresources that write a part of the object.
    pub(crate) parts: &'static [Part],
    /// Fields of the metadata that a write of the status leaves as they are. With `CLIENT_METADATA`, its manager owns
    /// no metadata either (`reset_fields` in `write/ownership.rs`).
    pub(crate) kept_by_status: &'static [&'static str],
    /// Keeps parts of the old status in a write of the status.
    pub(crate) prepare_status: fn(&Value, &mut Value),
    /// Restores the fields that an update through the subresource may not change (`PrepareForUpdate`), beyond those
    /// that `write/prepare/restore.rs` restores for every kind (status, spec, metadata).
    pub(crate) prepare_update: fn(Subresource, &Value, &mut Value),
    /// Sets times of an updated object after its other changes: old, new.
    pub(crate) finish_update: fn(&dyn Environment, &Value, &mut Value),
    /// Allocates values for a new or changed object that need no other object, such as a cluster IP.
    pub(crate) allocate: fn(&mut dyn Environment, &mut Value),
    /// Checks and allocates values that no two objects of the kind may have, such as node ports.
    pub(crate) allocator: Option<Allocator>,
    /// Sets names and labels that contain the generated name of a new object. The first argument is the object before
    /// `write/prepare.rs` changed it.
    pub(crate) set_generated_name: fn(&Value, &mut Value),
    /// A list that is stored as `null` when it is empty, as a JSON pointer.
    pub(crate) null_when_empty: Option<&'static str>,
}

impl Strategy {
    /// The server resets the status of a new object, and changes nothing else.
    pub(crate) const DEFAULT: Self = Self {
        creates_on_update: false,
        allows_unconditional_update: true,
        new_status: NewStatus::Reset,
        prepare_create: |_, _| {},
        drop_unstored: |_| {},
        complete_create: |_| {},
        finish_create: |_, _| {},
        set_times: |_, _, _| {},
        set_status_times: |_, _, _| {},
        parts: &[],
        kept_by_status: &[],
        prepare_status: |_, _| {},
        prepare_update: |_, _, _| {},
        finish_update: |_, _, _| {},
        allocate: |_, _| {},
        allocator: None,
        set_generated_name: |_, _| {},
        null_when_empty: None,
    };
    /// An update needs a `resourceVersion`.
    pub(crate) const CONDITIONAL: Self = Self { allows_unconditional_update: false, ..Self::DEFAULT };
}

/// The objects of a kind without the one that is written.
pub(crate) type Others<'a> = Box<dyn Iterator<Item = Arc<Value>> + 'a>;

/// The functions for values that no two objects of a kind may have.
pub(crate) struct Allocator {
    /// Checks the values that were requested: old, new, other objects. A new object is checked before
    /// `write/prepare.rs` changes it. A dry run has no other objects.
    pub(crate) check: fn(Option<&Value>, &Value, Others<'_>) -> Result<(), Errors>,
    /// Checks values that were requested, and sets the missing ones: the object, other objects.
    pub(crate) allocate: fn(&mut Value, Others<'_>) -> Result<(), Errors>,
}

/// The `status` of a new object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewStatus {
    /// Removed; `prepare_create` may set another.
    Reset,
    /// An empty object.
    Empty,
    /// The client's status is kept.
    AsSent,
}

/// A subresource that writes a part of the object, such as `resize` of Pods.
pub(crate) struct Part {
    /// The subresource that writes the part.
    pub(crate) subresource: Subresource,
    /// Fields of the metadata that a write of the part leaves as they are.
    pub(crate) kept_metadata: &'static [&'static str],
    /// The state of the object from which `managedFields` are computed.
    pub(crate) owned_state: OwnedState,
    /// Returns the old object with the part of the new one that the subresource is for.
    pub(crate) with: fn(&Value, &Value) -> Value,
    /// Validates the change. Fields outside of the part have their stored values in both objects.
    pub(crate) validate: ValidateChange,
}
