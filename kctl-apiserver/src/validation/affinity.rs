//! Validation of scheduling constraints: affinity, tolerations and topology spread.
//!
//! Upstream: `validateAffinity`, `ValidateTolerations` and `validateTopologySpreadConstraints` in
//! `pkg/apis/core/validation/validation.go`.
//!
//! A scheduler reads these fields, not the API server. Validation only promises that each of them
//! can be evaluated: selectors parse, topology keys are label keys and weights are in range. No
//! rule looks at existing Nodes or Pods.
//!
//! `Pod`, Pod templates, `PersistentVolume` (node affinity) and `RuntimeClass` (tolerations) share
//! these rules.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::{NameRule, check_label_value},
    validation::{declared, entries, selector},
};

/// The field of terms that must hold when a Pod is scheduled.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The field of terms that raise the score of a Node; each has a `weight`.
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// Valid weights of preferred terms.
///
/// A scheduler adds the weight of each matching term to the score of a Node.
const WEIGHTS: std::ops::RangeInclusive<i64> = 1..=100;

/// Validates node affinity, Pod affinity and Pod anti-affinity, both required and preferred terms.
///
/// The three parts are independent: an absent one has no errors. Required node affinity is one
/// selector, required Pod affinity a list of terms. In preferred terms the node selector term is in
/// the field `preference` and the Pod term in `podAffinityTerm`, and only these have a weight.
pub(crate) fn affinity(affinity: &Value, path: &str, errors: &mut Errors) {
    let of_nodes = &affinity["nodeAffinity"];
    let nodes_at = format!("{path}.nodeAffinity");
    if of_nodes[REQUIRED].is_object() {
        node_selector(&of_nodes[REQUIRED], &format!("{nodes_at}.{REQUIRED}"), errors);
    }
    for (index, term) in entries(&of_nodes[PREFERRED]) {
        let path = format!("{nodes_at}.{PREFERRED}[{index}]");
        weight(&term["weight"], &path, errors);
        node_term(&term["preference"], NodeTerm::Preferred, &format!("{path}.preference"), errors);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let path = format!("{path}.{name}");
        for (index, term) in entries(&affinity[name][REQUIRED]) {
            pod_term(term, &format!("{path}.{REQUIRED}[{index}]"), errors);
        }
        for (index, term) in entries(&affinity[name][PREFERRED]) {
            let path = format!("{path}.{PREFERRED}[{index}]");
            weight(&term["weight"], &path, errors);
            pod_term(&term["podAffinityTerm"], &format!("{path}.podAffinityTerm"), errors);
        }
    }
}

/// Validates the weight of a preferred term, 1 to 100 (`FieldValueInvalid`).
///
/// An absent weight counts as 0, which is out of range.
fn weight(weight: &Value, path: &str, errors: &mut Errors) {
    let number = weight.as_i64().unwrap_or(0);
    if !WEIGHTS.contains(&number) {
        errors.invalid(&format!("{path}.weight"), &number.into(), "must be in the range 1-100");
    }
}

/// Validates a node selector (`ValidateNodeSelector`): at least one term (`FieldValueRequired`), and each term.
///
/// Terms are `ORed`, so a selector without terms would match no Node; upstream rejects it, because
/// clients that leave the list empty usually expect the opposite. `path` is the field path of the selector.
pub(crate) fn node_selector(selector: &Value, path: &str, errors: &mut Errors) {
    let path = format!("{path}.nodeSelectorTerms");
    if entries(&selector["nodeSelectorTerms"]).next().is_none() {
        errors.required(&path, "must have at least one node selector term");
    }
    for (index, term) in entries(&selector["nodeSelectorTerms"]) {
        node_term(term, NodeTerm::Required, &format!("{path}[{index}]"), errors);
    }
}

/// The effect of a node selector term on scheduling.
#[derive(Clone, Copy)]
enum NodeTerm {
    /// A Node must match it.
    Required,
    /// A Node that matches it has a higher score.
    Preferred,
}

/// Validates a node selector term. Values of a required term must be valid label values; upstream does not check those
/// of a preferred one.
///
/// All requirements of a term must hold. A term without requirements is valid and matches no
/// Node. Rules by operator:
///
/// | operator | values | else |
/// |---|---|---|
/// | `In`, `NotIn` | at least one | `FieldValueRequired` |
/// | `Exists`, `DoesNotExist` | none | `FieldValueForbidden` |
/// | `Gt`, `Lt` | exactly one | `FieldValueRequired` |
/// | another | – | `FieldValueInvalid` |
///
/// The value of `Gt` and `Lt` is not checked to be an integer, as in upstream.
fn node_term(term: &Value, kind: NodeTerm, path: &str, errors: &mut Errors) {
    for (index, requirement) in entries(&term["matchExpressions"]) {
        let path = format!("{path}.matchExpressions[{index}]");
        let (values_at, n_values) = (format!("{path}.values"), entries(&requirement["values"]).count());
        match text(&requirement["operator"]) {
            "In" | "NotIn" if n_values == 0 => {
                errors.required(&values_at, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if n_values > 0 => {
                errors.forbidden(&values_at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if n_values != 1 => {
                errors.required(&values_at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.invalid(&format!("{path}.operator"), &other.into(), "not a valid selector operator"),
        }
        errors.qualified_name(&format!("{path}.key"), text(&requirement["key"]));
        match kind {
            NodeTerm::Required => label_values(&requirement["values"], &values_at, errors),
            NodeTerm::Preferred => {}
        }
    }
    for (index, requirement) in entries(&term["matchFields"]) {
        node_field(requirement, &format!("{path}.matchFields[{index}]"), errors);
    }
}

/// Validates that the values of a requirement are label values (`FieldValueInvalid`).
fn label_values(values: &Value, path: &str, errors: &mut Errors) {
    for (index, value) in entries(values) {
        if let Some(message) = check_label_value(text(value)) {
            errors.invalid(&format!("{path}[{index}]"), value, message);
        }
    }
}

/// Validates a requirement on a field of the Node instead of a label
/// (`ValidateNodeFieldSelectorRequirement`).
///
/// The only key is `metadata.name`. The operators are `In` and `NotIn`, each with exactly one
/// value, which must be a valid Node name. `DaemonSet` Pods are bound to their Nodes by such a
/// term.
fn node_field(requirement: &Value, path: &str, errors: &mut Errors) {
    let operator = text(&requirement["operator"]);
    if !["In", "NotIn"].contains(&operator) {
        errors.invalid(&format!("{path}.operator"), &operator.into(), "not a valid selector operator");
    } else if entries(&requirement["values"]).count() != 1 {
        let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.required(&format!("{path}.values"), detail);
    }
    if requirement["key"] != "metadata.name" {
        let key = text(&requirement["key"]).into();
        return errors.invalid(&format!("{path}.key"), &key, "not a valid field selector key");
    }
    for (index, value) in entries(&requirement["values"]) {
        errors.name(&format!("{path}.values[{index}]"), value, NameRule::Subdomain);
    }
}

/// Validates a term of Pod affinity or anti-affinity (`validatePodAffinityTerm`).
///
/// Both selectors are optional here: a null `labelSelector` matches no Pods, and a null
/// `namespaceSelector` means the namespaces in `namespaces`, or the namespace of the Pod. The
/// topology key is required. An empty one adds two errors, since the empty string is not a label
/// key either.
fn pod_term(term: &Value, path: &str, errors: &mut Errors) {
    selector::selector(&term["labelSelector"], &format!("{path}.labelSelector"), errors);
    selector::selector(&term["namespaceSelector"], &format!("{path}.namespaceSelector"), errors);
    for (_, name) in entries(&term["namespaces"]) {
        errors.name(&format!("{path}.namespace"), name, NameRule::Label);
    }
    label_keys(term, path, errors);
    let key = text(&term["topologyKey"]);
    if key.is_empty() {
        errors.required(&format!("{path}.topologyKey"), "can not be empty");
    }
    errors.qualified_name(&format!("{path}.topologyKey"), key);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`: label keys whose values a scheduler takes
/// from the Pod itself.
///
/// - Either list needs a `labelSelector` beside it (`FieldValueForbidden`); then its keys are not
///   validated.
/// - Each key must be a qualified name.
/// - A key may not be in both lists (`FieldValueInvalid`, at the index in `matchLabelKeys`).
///
/// `path` is the field path of an affinity term or of a topology spread constraint.
fn label_keys(term: &Value, path: &str, errors: &mut Errors) {
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = format!("{path}.{name}");
        if entries(&term[name]).next().is_some() && term["labelSelector"].is_null() {
            errors.forbidden(&path, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in entries(&term[name]) {
            errors.qualified_name(&format!("{path}[{index}]"), text(key));
        }
    }
    shared_keys(term, path, errors);
    for (index, key) in entries(&term["matchLabelKeys"]) {
        if entries(&term["mismatchLabelKeys"]).any(|(_, other)| other == key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&format!("{path}.matchLabelKeys[{index}]"), key, detail);
        }
    }
}

/// Reports a key of `matchLabelKeys` that the client's `labelSelector` also has
/// (`FieldValueInvalid`).
///
/// On create, the server adds one requirement to the selector for each key whose label the Pod has.
/// Exactly one requirement per key is therefore valid here, and only a second one must come from
/// the client. Keys of `matchLabels` count as requirements.
fn shared_keys(term: &Value, path: &str, errors: &mut Errors) {
    let selector = &term["labelSelector"];
    let mut keys: Vec<&str> = super::pairs(&selector["matchLabels"]).map(|(key, _)| key).collect();
    for (_, requirement) in entries(&selector["matchExpressions"]) {
        let key = text(&requirement["key"]);
        let shared = entries(&term["matchLabelKeys"]).find(|(_, shared)| *shared == key);
        if let Some((index, _)) = shared.filter(|_| keys.contains(&key)) {
            errors.invalid(&format!("{path}[{index}]"), &key.into(), "exists in both matchLabelKeys and labelSelector");
        }
        keys.push(key);
    }
}

/// Validates tolerations one by one; duplicates are allowed.
///
/// Two equal tolerations have the same effect as one, so upstream does not require uniqueness.
pub(crate) fn tolerations(list: &Value, path: &str, errors: &mut Errors) {
    for (index, toleration) in entries(list) {
        tolerates(toleration, &format!("{path}[{index}]"), errors);
    }
}

/// Validates a toleration.
///
/// An empty key needs the operator `Exists`, which takes no value. `tolerationSeconds` needs the effect `NoExecute`. An
/// unknown operator is `FieldValueNotSupported`; so are `Gt` and `Lt`, because
/// the feature gate `TaintTolerationComparisonOperators` is off.
///
/// Without an operator the default is `Equal`, whose value must be a valid label value. Errors
/// about the value are reported at `operator`, as upstream does.
fn tolerates(toleration: &Value, path: &str, errors: &mut Errors) {
    let (key, operator) = (text(&toleration["key"]), text(&toleration["operator"]));
    let operator_path = format!("{path}.operator");
    if !key.is_empty() {
        errors.qualified_name(&format!("{path}.key"), key);
    }
    if key.is_empty() && operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid(&operator_path, &operator.into(), detail);
    }
    let effect = text(&toleration["effect"]);
    if toleration["tolerationSeconds"].is_number() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&format!("{path}.effect"), &effect.into(), detail);
    }
    match operator {
        "Exists" if !text(&toleration["value"]).is_empty() => {
            errors.invalid(&operator_path, &toleration["value"], "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        "" | "Equal" => {
            if let Some(message) = check_label_value(text(&toleration["value"])) {
                errors.invalid(&operator_path, &toleration["value"], message);
            }
        }
        _ => errors.unsupported(&operator_path, &toleration["operator"], &["Equal", "Exists"]),
    }
}

/// Validates topology spread constraints.
///
/// `maxSkew` and `minDomains` are above 0, and `minDomains` needs `DoNotSchedule`. A pair of topology key and action that
/// occurs again is `FieldValueDuplicate`, reported at the earlier constraint.
///
/// The other rules per constraint:
///
/// - `topologyKey` is required; its form as a label key is not checked.
/// - `whenUnsatisfiable` is `DoNotSchedule` or `ScheduleAnyway` (`FieldValueNotSupported`).
/// - `labelSelector` and `matchLabelKeys` follow the rules of affinity terms.
pub(crate) fn spread(list: &Value, path: &str, errors: &mut Errors) {
    for (index, constraint) in entries(list) {
        let path = format!("{path}[{index}]");
        let (key, action) = (&constraint["topologyKey"], &constraint["whenUnsatisfiable"]);
        positive(&constraint["maxSkew"], &format!("{path}.maxSkew"), errors);
        if text(key).is_empty() {
            errors.required(&format!("{path}.topologyKey"), "can not be empty");
        }
        let actions = declared::values("core.v1.TopologySpreadConstraint", "whenUnsatisfiable");
        errors.always_one_of(&format!("{path}.whenUnsatisfiable"), action, &actions);
        let is_same = |other: &Value| other["topologyKey"] == *key && other["whenUnsatisfiable"] == *action;
        if entries(list).skip(index + 1).any(|(_, other)| is_same(other)) {
            errors.duplicate(&format!("{path}.{{topologyKey, whenUnsatisfiable}}"));
        }
        let domains = &constraint["minDomains"];
        if !domains.is_null() {
            let path = format!("{path}.minDomains");
            positive(domains, &path, errors);
            if action != "DoNotSchedule" {
                let action = text(action);
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&path, domains, &detail);
            }
        }
        label_keys(constraint, &path, errors);
        selector::selector(&constraint["labelSelector"], &format!("{path}.labelSelector"), errors);
    }
}

/// Reports a number below 1 as `FieldValueInvalid`; an absent one counts as 0.
///
/// The error prints 0 for an absent number, since Go has no other value for it.
fn positive(number: &Value, path: &str, errors: &mut Errors) {
    let number = number.as_i64().unwrap_or(0);
    if number <= 0 {
        errors.invalid(path, &number.into(), "must be greater than zero");
    }
}
