//! Exceptions of a kind in the computation of `metadata.managedFields`. The head of `write/ownership.rs` lists the step
//! that reads each field.

use serde_json::Value;

use super::{Paths, Subresource};

/// Exceptions in the computation of `metadata.managedFields`.
pub(crate) struct ManagedFields {
    /// Fields that a write resets, by subresource (`GetResetFields`), where the usual ones do not apply.
    pub(crate) reset_fields: &'static [(Subresource, Paths)],
    /// Fields that a creator does not own. JSON pointers.
    pub(crate) unowned: &'static [&'static str],
    /// Fields that the server fills in: a client owns them only if it has sent them. JSON pointers.
    pub(crate) filled_in: &'static [&'static str],
    /// The fields among them that an update fills in again.
    pub(crate) filled_in_by_update: &'static [&'static str],
    /// The lists among them to which the server adds items: a client owns only the items that it has sent.
    pub(crate) extended_lists: &'static [&'static str],
    /// The lists among them that count as absent if they are empty, because Go drops them when it decodes.
    pub(crate) absent_when_empty: &'static [&'static str],
    /// Completes the sent object as decoding does.
    pub(crate) complete_sent: Option<fn(&mut Value)>,
    /// Changes the state from which `managedFields` are computed: the object as sent, with defaults.
    pub(crate) complete_owned: fn(&Value, &mut Value),
    /// The state of an updated object from which `managedFields` are computed.
    pub(crate) owned_state: OwnedState,
}

impl ManagedFields {
    /// A client owns the fields that it has written and that have changed.
    pub(crate) const DEFAULT: Self = Self {
        reset_fields: &[],
        unowned: &[],
        filled_in: &[],
        filled_in_by_update: &[],
        extended_lists: &[],
        absent_when_empty: &[],
        complete_sent: None,
        complete_owned: |_, _| {},
        owned_state: OwnedState::Stored,
    };
    /// Fields that a write of the status resets for kinds whose metadata is not writable through it.
    pub(crate) const ALL_BUT_STATUS: Paths = &[&["metadata"], &["spec"]];
}

/// The state of an updated object from which `managedFields` are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnedState {
    /// The object as it is written to the store, with all fields that the server has set.
    Stored,
    /// The object as the client sent it, with defaults.
    Sent,
    /// The object as the client sent it, with defaults, and without the fields of `filled_in` that the client left out.
    SentWithoutFilledIn,
}
