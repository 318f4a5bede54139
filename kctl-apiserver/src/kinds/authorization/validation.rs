//! Validation of reviews (`pkg/apis/authorization/validation/validation.go`).
//!
//! Reviews are validated before they are answered. A failed validation is a response 422, not a
//! denied permission.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::{
        entries,
        selector::{self, Operators},
    },
};

/// Returns the errors of a `SubjectAccessReview`, `SelfSubjectAccessReview` or `LocalSubjectAccessReview`.
///
/// `kind` decides which rules apply.
///
/// | rule | kinds |
/// |---|---|
/// | exactly one of `resourceAttributes` and `nonResourceAttributes` | all |
/// | a user or a group | all but `SelfSubjectAccessReview` |
/// | `metadata` empty, apart from managed fields | all |
/// | namespace of the metadata equal to that of `resourceAttributes` | `LocalSubjectAccessReview` |
/// | no `nonResourceAttributes` | `LocalSubjectAccessReview` |
pub(crate) fn errors(kind: &str, review: &Value) -> Errors {
    let mut errors = Errors::default();
    let (spec, meta) = (&review["spec"], &review["metadata"]);
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let is_local = kind == "LocalSubjectAccessReview";
    if resource.is_null() == other.is_null() {
        errors.invalid("spec", other, "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    }
    if kind != "SelfSubjectAccessReview" && text(&spec["user"]).is_empty() && entries(&spec["groups"]).next().is_none()
    {
        errors.invalid("spec.user", &"".into(), "at least one of user or group must be specified");
    }
    selectors(resource, &mut errors);
    let allowed = if is_local { &["managedFields", "namespace"][..] } else { &["managedFields"] };
    if meta.as_object().into_iter().flatten().any(|(name, _)| !allowed.contains(&name.as_str())) {
        let detail = if is_local { "must be empty except for namespace" } else { "must be empty" };
        errors.invalid("metadata", meta, detail);
    }
    if is_local && !resource.is_null() && resource["namespace"] != meta["namespace"] {
        let namespace = text(&resource["namespace"]).into();
        errors.invalid("spec.resourceAttributes.namespace", &namespace, "must match metadata.namespace");
    }
    if is_local && !other.is_null() {
        errors.invalid("spec.nonResourceAttributes", other, "disallowed on this kind of request");
    }
    errors
}

/// Validates the selectors of a list request (`validateResourceAttributes`).
///
/// A selector has either `rawSelector`, as sent in the query, or parsed `requirements`. Unknown
/// operators are valid, because an older server must be able to serve newer clients.
fn selectors(resource: &Value, errors: &mut Errors) {
    for kind in ["fieldSelector", "labelSelector"] {
        let (selector, path) = (&resource[kind], format!("spec.resourceAttributes.{kind}"));
        let (raw, requirements) = (text(&selector["rawSelector"]), &selector["requirements"]);
        match (raw.is_empty(), entries(requirements).next().is_none()) {
            _ if selector.is_null() => continue,
            (false, false) => {
                let detail = "may not specified at the same time as requirements";
                errors.invalid(&format!("{path}.rawSelector"), &raw.into(), detail);
            }
            (true, true) => {
                let detail = format!("when {path} is specified, requirements or rawSelector is required");
                errors.required(&format!("{path}.requirements"), &detail);
            }
            _ => {}
        }
        for (index, requirement) in entries(requirements) {
            let path = format!("{path}.requirements[{index}]");
            if kind == "labelSelector" {
                selector::requirement_of(requirement, &path, Operators::Any, errors);
                continue;
            }
            if text(&requirement["key"]).is_empty() {
                errors.required(&format!("{path}.key"), "must be specified");
            }
            selector::values(requirement, &path, Operators::Any, errors);
        }
    }
}
