//! The rows of webhook configurations, admission policies and their bindings.
//!
//! Upstream: `printMutatingWebhook`, `printValidatingAdmissionPolicy` and their neighbours in
//! `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::age,
    fields::{list, name, text, text_or, value_at},
    labels::{UNSET, go_notation},
};

/// Returns name, number of webhooks and age of a webhook configuration.
pub(crate) fn webhooks(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![json!(name(object)), json!(list(object, "/webhooks").len()), json!(age(object, now))]
}

/// Returns the row of a `ValidatingAdmissionPolicy`, which counts `spec.validations`.
pub(crate) fn validating_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    admission_policy(object, now, list(object, "/spec/validations").len())
}

/// Returns the row of a `MutatingAdmissionPolicy`, which counts `spec.mutations`.
pub(crate) fn mutating_policy(object: &Value, now: Timestamp) -> Vec<Value> {
    admission_policy(object, now, list(object, "/spec/mutations").len())
}

/// Returns name, number of rules, kind of the parameters and age.
///
/// The kind is printed as `apiVersion/kind`, such as `v1/ConfigMap`, and `<unset>` for a policy
/// without parameters.
fn admission_policy(object: &Value, now: Timestamp, n_rules: usize) -> Vec<Value> {
    let kind = value_at(object, "/spec/paramKind");
    let kind = if kind.is_object() {
        format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind"))
    } else {
        UNSET.to_owned()
    };
    vec![json!(name(object)), json!(n_rules), json!(kind), json!(age(object, now))]
}

/// Returns name, name of the policy, parameters and age of a binding.
///
/// | `spec.paramRef` | cell |
/// |---|---|
/// | absent | `<unset>` |
/// | by name | `namespace/name`; `*/name` if the namespace is that of each request |
/// | by selector | the selector as Go prints it |
pub(crate) fn policy_binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameter = value_at(object, "/spec/paramRef");
    let shown = if !parameter.is_object() {
        UNSET.to_owned()
    } else if text(parameter, "/name").is_empty() {
        go_notation(value_at(parameter, "/selector"))
    } else {
        format!("{}/{}", text_or(parameter, "/namespace", "*"), text(parameter, "/name"))
    };
    vec![json!(name(object)), json!(text(object, "/spec/policyName")), json!(shown), json!(age(object, now))]
}
