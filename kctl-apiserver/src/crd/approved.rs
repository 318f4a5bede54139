//! API approval of CRDs in the groups `*.k8s.io` and `*.kubernetes.io`. Validates the annotation
//! `api-approved.kubernetes.io` and writes the condition `KubernetesAPIApprovalPolicyConformant`.
//!
//! Upstream: `GetAPIApprovalState` of `pkg/apihelpers/helpers.go`, `validateAPIApproval` of `validation.go` and
//! `pkg/controller/apiapproval/apiapproval_controller.go` of apiextensions-apiserver.
//!
//! The policy keeps groups of the Kubernetes project for reviewed APIs. CRDs in other groups are not affected.

use kctl_apimachinery::{url::Url, validation::is_protected_group};
use serde_json::Value;

use crate::{
    conditions::{condition, report},
    field_error::FieldError,
};

/// The annotation that holds the URL of the API review, or the reason why the API is unapproved.
const ANNOTATION: &str = "api-approved.kubernetes.io";
/// The condition that reports the approval; only CRDs of protected groups have it.
const CONDITION: &str = "KubernetesAPIApprovalPolicyConformant";

/// The message about an annotation that is absent or malformed.
const PROBLEM: &str = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL \
                       or a reason starting with \"unapproved\", see \
                       https://github.com/kubernetes/enhancements/pull/1111";

/// The state of the annotation (`GetAPIApprovalState`).
///
/// Two states are equal if their variants are equal, so a new URL is not a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Approval {
    /// The annotation is absent or empty.
    Missing,
    /// The value is neither a URL nor a reason.
    Invalid,
    /// The value starts with `unapproved`: the owner bypasses the review.
    Bypassed,
    /// The value is a URL.
    Given,
}

/// Returns the value of the annotation, or the empty string.
fn annotation(definition: &Value) -> &str {
    definition["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default()
}

/// Returns `true` for CRDs in `k8s.io`, `kubernetes.io` and their subdomains: `a.k8s.io`, but not `myk8s.io`.
fn is_protected(definition: &Value) -> bool {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    is_protected_group(group)
}

impl Approval {
    /// Parses the annotation. A URL needs a scheme and a host.
    fn from_definition(definition: &Value) -> Self {
        match annotation(definition) {
            "" => Self::Missing,
            value if value.starts_with("unapproved") => Self::Bypassed,
            value if Url::parse(value).is_some_and(|url| !url.scheme.is_empty() && !url.host.is_empty()) => Self::Given,
            _ => Self::Invalid,
        }
    }
}

/// Returns the validation error of the annotation. An update that does not change the approval state is accepted, so
/// that old CRDs remain writable.
///
/// Absent or empty is `FieldValueRequired`, malformed `FieldValueInvalid`. A bypass is accepted
/// here, and only visible as a condition.
pub(super) fn check(old: Option<&Value>, definition: &Value) -> Option<FieldError> {
    let is = Approval::from_definition(definition);
    if !is_protected(definition) || old.map(Approval::from_definition) == Some(is) {
        return None;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    match is {
        Approval::Missing => Some(FieldError::required(&field, PROBLEM)),
        Approval::Invalid => Some(FieldError::invalid(&field, &annotation(definition).into(), PROBLEM)),
        Approval::Bypassed | Approval::Given => None,
    }
}

/// Returns the status, reason and message of the condition; `None` for CRDs in unprotected groups.
fn condition_fields(definition: &Value) -> Option<[String; 3]> {
    let (is, value) = (Approval::from_definition(definition), annotation(definition));
    let (status, reason, message) = match is {
        Approval::Missing => ("False", "MissingAnnotation", PROBLEM.to_owned()),
        Approval::Invalid => ("False", "InvalidAnnotation", PROBLEM.to_owned()),
        Approval::Bypassed => ("False", "UnapprovedAnnotation", format!("not approved: {value:?}")),
        Approval::Given => ("True", "ApprovedAnnotation", format!("approved in {value}")),
    };
    is_protected(definition).then(|| [status.to_owned(), reason.to_owned(), message])
}

/// Returns `true` if the condition of the CRD matches its annotation.
///
/// `true` for unprotected CRDs, which never get the condition. The write path uses it to avoid no-op writes.
pub(crate) fn has_current_approval_condition(definition: &Value) -> bool {
    let Some(expected) = condition_fields(definition) else { return true };
    let found = condition(definition, CONDITION);
    found.is_some_and(|found| {
        ["status", "reason", "message"].iter().zip(&expected).all(|(key, text)| found[*key] == **text)
    })
}

/// Writes the condition of a CRD in a protected group; other CRDs are unchanged.
pub(crate) fn set_approval_condition(definition: &mut Value, now: &str) {
    if let Some([status, reason, message]) = condition_fields(definition) {
        report(definition, now, [CONDITION, &status, &reason, &message]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_condition(group: &str, value: &str, expected: Option<[&str; 3]>) {
        let mut definition =
            json!({ "metadata": { "annotations": { ANNOTATION: value } }, "spec": { "group": group } });
        set_approval_condition(&mut definition, "now");
        assert!(has_current_approval_condition(&definition));
        let found = condition(&definition, CONDITION);
        let found = found.map(|found| ["status", "reason", "message"].map(|key| found[key].as_str().unwrap()));
        assert_eq!(found, expected, "{group} {value}");
    }

    #[test]
    fn crds_of_protected_groups_report_their_approval() {
        check_condition("a.example.com", "", None);
        check_condition("a.k8s.io", "https://a.b/c", Some(["True", "ApprovedAnnotation", "approved in https://a.b/c"]));
        let bypassed = ["False", "UnapprovedAnnotation", "not approved: \"unapproved, x\""];
        check_condition("a.kubernetes.io", "unapproved, x", Some(bypassed));
        check_condition("k8s.io", "", Some(["False", "MissingAnnotation", PROBLEM]));
    }
}
