//! The validation of a kind: rules of an object, of changes, and warnings.
//!
//! Enums and tags of the API are validated for all kinds (`validation/declared.rs`).

use jiff::Timestamp;
use serde_json::Value;

use super::Subresource;
use crate::field_errors::Errors;

/// Validates an object.
pub(crate) type Validate = fn(&Value, &mut Errors);
/// Validates the change from an old object to a new one.
pub(crate) type ValidateChange = fn(&Value, &Value, &mut Errors);

/// The validation of a kind, in the order in which it runs. `write/validate.rs` lists which functions a write runs.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate rule, with its name in kube-apiserver")]
pub(crate) struct Validation {
    /// The permissions that an object grants, which its writer must hold (`write/escalation.rs`).
    pub(crate) grants: Option<Grants>,
    /// The requests for devices, as a JSON pointer. Only a labelled namespace allows admin access in them
    /// (`write/admin_access.rs`).
    pub(crate) device_requests: Option<&'static str>,
    /// The metadata of a new object is validated only if the rest of the object is valid.
    pub(crate) validates_metadata_last: bool,
    /// `validate` checks only the name and the spec. An update that changes neither skips `validate`,
    /// `validate_update`, `validate_subresource` and the tags of the API.
    pub(crate) validates_spec_only: bool,
    /// A write of a subresource is validated like one of the object, unless the subresource is in `Strategy::parts`.
    pub(crate) validates_subresources: bool,
    /// Validates an object by itself.
    pub(crate) validate: Validate,
    /// Validates a new object, in addition to `validate`.
    pub(crate) validate_create: Validate,
    /// Validates the change that an update makes.
    pub(crate) validate_update: ValidateChange,
    /// Validates changes at the end, by subresource.
    pub(crate) validate_subresource: fn(Subresource, &Value, &Value, &mut Errors),
    /// Validates the change that a write of `status` makes.
    pub(crate) validate_status: ValidateChange,
    /// Validates the change that a write of `status` makes, where rules depend on the clock: now, old, new.
    pub(crate) validate_status_at: fn(Timestamp, &Value, &Value, &mut Errors),
    /// Adds the warnings about a created or changed object, if it is valid: old, new, warnings.
    pub(crate) warn: fn(Option<&Value>, &Value, &mut Vec<String>),
    /// Warnings are repeated when the generation changes, not with each write.
    pub(crate) warns_once_per_generation: bool,
    /// Returns the signer of certificates for which a write needs the permission to `sign`: subresource, old, new.
    pub(crate) signer: for<'a> fn(Subresource, &'a Value, &Value) -> Option<&'a str>,
}

impl Validation {
    /// Every object is valid.
    pub(crate) const DEFAULT: Self = Self {
        grants: None,
        device_requests: None,
        validates_metadata_last: false,
        validates_spec_only: false,
        validates_subresources: false,
        validate: |_, _| {},
        validate_create: |_, _| {},
        validate_update: |_, _, _| {},
        validate_subresource: |_, _, _, _| {},
        validate_status: |_, _, _| {},
        validate_status_at: |_, _, _, _| {},
        warn: |_, _, _| {},
        warns_once_per_generation: false,
        signer: |_, _, _| None,
    };
}

/// The permissions that an object grants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grants {
    /// Those in the `rules` of the object: a role.
    Rules,
    /// The rules of the role in `roleRef`, for a binding.
    ReferencedRole,
}
