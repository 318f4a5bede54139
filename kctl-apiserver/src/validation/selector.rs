//! Validation of label selectors, and of the match between a workload's selector and its template.
//!
//! The evaluation of selectors is in `crate::selector`. `NetworkPolicy`, affinity and webhook
//! configurations use the plain rules; workloads need a selector that is present, not empty and
//! consistent with the template.

use serde_json::Value;

use crate::{field::Field, go, selector::selects};

/// Validates a label selector (`ValidateLabelSelector` in `k8s.io/apimachinery/pkg/apis/meta/v1/validation`). An absent
/// selector is valid: its meaning, everything or nothing, depends on the field. Requirements and labels may contradict
/// each other; such a selector matches nothing.
pub(crate) fn validate_selector(selector: &Field<'_>) {
    selector.at("matchLabels").labels();
    for requirement in selector.at("matchExpressions").items() {
        requirement_of(&requirement, Operators::Known);
    }
}

/// The operators that a requirement may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operators {
    /// `In`, `NotIn`, `Exists` and `DoesNotExist`.
    Known,
    /// Unknown operators are accepted, too, since newer clients may send them.
    Any,
}

/// Validates one label requirement: its operator, its key, and that each value is a label value.
pub(crate) fn requirement_of(requirement: &Field<'_>, operators: Operators) {
    validate_values(requirement, operators);
    requirement.at("key").qualified_name();
    requirement.at("values").items().for_each(|value| value.label_value());
}

/// Validates the operator of a requirement and its values. `metav1.LabelSelectorRequirement` defines the operators:
/// `Gt` and `Lt` exist for Nodes only.
pub(crate) fn validate_values(requirement: &Field<'_>, operators: Operators) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    match operator.text() {
        "In" | "NotIn" => {
            values.required_with_if(values.is_empty(), "must have at least one value for the operators In and NotIn");
        }
        "Exists" | "DoesNotExist" => {
            values.forbidden_if(!values.is_empty(), "must be empty for the operators Exists and DoesNotExist");
        }
        _ => operator.invalid_if(operators == Operators::Known, "not a valid selector operator"),
    }
}

/// Validates the selector of a workload; returns `false` for a selector with errors, which cannot be evaluated against
/// the template.
///
/// An absent one is `FieldValueRequired`, an empty one `FieldValueInvalid`; for both the result is `true`. An empty
/// selector matches everything: the workload would own all Pods of its namespace.
pub(crate) fn validate_workload_selector(label_selector: &Field<'_>) -> bool {
    if label_selector.is_null() {
        label_selector.required();
        return true;
    }
    let is_usable = label_selector.passes(validate_selector);
    label_selector.invalid_without_value_if(is_empty(label_selector), "must not be empty");
    is_usable
}

/// Validates that a selector matches the labels of a template: a controller would create Pods without end otherwise. An
/// absent selector matches nothing.
pub(crate) fn validate_matches_template(label_selector: &Value, template: &Field<'_>) {
    let labels = template.at("metadata").at("labels");
    let fits = !label_selector.is_null() && selects(label_selector, &labels);
    labels.invalid_if(!fits, "`selector` does not match template `labels`");
}

/// Returns `true` for a selector without labels and requirements, which matches every object.
pub(crate) fn is_empty(selector: &Value) -> bool {
    ["matchLabels", "matchExpressions"].iter().all(|part| go::is_zero(&selector[*part]))
}
