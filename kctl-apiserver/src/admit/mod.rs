//! What every object must fulfil, and what is filled in for the built-in kinds.

pub(crate) mod amounts;
pub mod defaults;
pub(crate) mod rules;
pub(crate) mod warnings;
mod zeros;

use serde_json::Value;

pub(crate) use self::{
    defaults::{default_decoded, default_object},
    warnings::warnings as warnings_about,
};
use crate::{kinds::Resource, metadata::validate_metadata, names::NameRule, status::Cause};
pub use crate::{metadata, names, quantity};

/// Where claims named their class before they had a field for it.
pub(crate) const CLASS_OF_CLAIM: &str = "volume.beta.kubernetes.io/storage-class";

/// The class of storage that a claim names (`GetPersistentVolumeClaimClass`).
pub(crate) fn class_of_claim(claim: &Value) -> &str {
    let by_annotation = claim["metadata"]["annotations"][CLASS_OF_CLAIM].as_str();
    by_annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

/// Groups whose metadata is judged by the rules of the API machinery alone.
const OF_THE_MACHINERY: [&str; 5] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
];

/// Checks the metadata of an object.
pub(crate) fn metadata(resource: &Resource, object: &Value) -> Vec<Cause> {
    let rule = NameRule::of(&resource.of.group, resource.kind());
    let errors = validate_metadata(&object["metadata"], resource.listed.namespaced, rule);
    // Only kinds of the core's validation ask for a domain (`validateKubeFinalizerName`).
    let generic = resource.custom.is_some() || OF_THE_MACHINERY.contains(&resource.of.group.as_str());
    let unknown = |cause: &Cause| generic && cause.message.contains("neither a standard finalizer name");
    errors.into_iter().filter(|cause| !unknown(cause)).collect()
}
