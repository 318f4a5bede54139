//! Validation of reviews (`pkg/apis/authorization/validation/validation.go`).
//!
//! Reviews are validated before they are answered. A failed validation is a response 422, not a
//! denied permission.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    registry::kind::Review,
    validation::{
        declared,
        selector::{self, Operators},
    },
};

/// Returns the errors of a `SubjectAccessReview`, `SelfSubjectAccessReview` or `LocalSubjectAccessReview`. Tags of the
/// API require either `resourceAttributes` or `nonResourceAttributes`.
pub(crate) fn errors(kind: Review, review: &Value) -> Errors {
    Errors::collect(|errors| {
        declared::validate(None, review, errors);
        validate(kind, &Field::new(review, "", errors));
    })
}

fn validate(kind: Review, review: &Field<'_>) {
    let (spec, meta) = (review.at("spec"), review.at("metadata"));
    let (resource, other) = (spec.at("resourceAttributes"), spec.at("nonResourceAttributes"));
    let user = spec.at("user");
    let has_subject = kind == Review::SelfSubjectAccess || !user.is_empty() || !spec.at("groups").is_empty();
    user.invalid_if(!has_subject, "at least one of user or group must be specified");
    validate_selectors(&resource);
    let is_local = kind == Review::LocalSubjectAccess;
    let is_allowed = |name: &str| name == "managedFields" || (is_local && name == "namespace");
    let is_filled = meta.entries().any(|(name, _)| !is_allowed(name));
    meta.invalid_if(is_filled, if is_local { "must be empty except for namespace" } else { "must be empty" });
    if is_local {
        let namespace = resource.at("namespace");
        let is_other = !resource.is_null() && *namespace != meta["namespace"];
        namespace.invalid_if(is_other, "must match metadata.namespace");
        other.invalid_if(!other.is_null(), "disallowed on this kind of request");
    }
}

/// Validates the selectors of a list request (`validateResourceAttributes`).
///
/// A selector has either `rawSelector`, as sent in the query, or parsed `requirements`. Unknown operators are valid,
/// because an older server must be able to serve newer clients.
fn validate_selectors(resource: &Field<'_>) {
    for kind in ["fieldSelector", "labelSelector"] {
        let selector = resource.at(kind);
        let (raw, requirements) = (selector.at("rawSelector"), selector.at("requirements"));
        let has_none = raw.is_empty() && requirements.is_empty();
        requirements.required_if(has_none && !selector.is_null());
        raw.invalid_if(!raw.is_empty() && !requirements.is_empty(), "may not be specified together with requirements");
        for requirement in requirements.items() {
            let rule = if kind == "labelSelector" { selector::requirement_of } else { selector::validate_values };
            rule(&requirement, Operators::Any);
            let key = requirement.at("key");
            key.required_if(kind == "fieldSelector" && key.is_empty());
        }
    }
}
