//! What every object must fulfil, and what is filled in for the built-in kinds.

pub mod defaults;
pub(crate) mod rules;
pub(crate) mod warnings;
mod zeros;

use serde_json::Value;

pub(crate) use self::{
    defaults::{Type, default_decoded, default_object},
    warnings::warnings as warnings_about,
};
pub(crate) use crate::amounts;
pub use crate::{metadata, names, quantity};
use crate::{metadata::validate_metadata, registry::Resource, status::FieldError};

/// Where claims named their class before they had a field for it.
pub(crate) const CLASS_OF_CLAIM: &str = "volume.beta.kubernetes.io/storage-class";

/// The class of storage that a claim names (`GetPersistentVolumeClaimClass`).
pub(crate) fn class_of_claim(claim: &Value) -> &str {
    let by_annotation = claim["metadata"]["annotations"][CLASS_OF_CLAIM].as_str();
    by_annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

/// Checks the metadata of an object.
pub(crate) fn metadata(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let errors = validate_metadata(&object["metadata"], resource.listed.namespaced, resource.rules.names);
    let without_domain = resource.rules.finalizers_without_domain;
    let unknown = |cause: &FieldError| without_domain && cause.message.contains("neither a standard finalizer name");
    errors.into_iter().filter(|cause| !unknown(cause)).collect()
}
