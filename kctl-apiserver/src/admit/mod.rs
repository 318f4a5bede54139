//! What every object must fulfil, and what is filled in for the built-in kinds.

pub mod defaults;
pub mod metadata;
pub mod names;
pub mod quantity;
pub(crate) mod rules;

use serde_json::Value;

pub(crate) use self::defaults::default_object;
use self::{
    metadata::{FieldError, validate_metadata},
    names::NameRule,
};

use crate::{kinds::Resource, status::Cause};

/// Checks the metadata of an object.
pub(crate) fn metadata(resource: &Resource, object: &Value) -> Vec<Cause> {
    let rule = NameRule::of(&resource.of.group, resource.kind());
    let errors = validate_metadata(&object["metadata"], resource.listed.namespaced, rule);
    // Only kinds of the core's validation ask for a domain (`validateKubeFinalizerName`).
    let generic = resource.custom.is_some() || resource.of.group == "apiextensions.k8s.io";
    let errors =
        errors.into_iter().filter(|error| !(generic && error.message.contains("neither a standard finalizer name")));
    let cause = |error: FieldError| Cause { reason: error.reason, message: error.message, field: error.field };
    errors.map(cause).collect()
}
