//! Validation of scheduling constraints: affinity, tolerations and topology spread.
//!
//! Upstream: `validateAffinity`, `ValidateTolerations` and `validateTopologySpreadConstraints` in
//! `pkg/apis/core/validation/validation.go`.
//!
//! A scheduler reads these fields, not the API server. No rule looks at existing Nodes or Pods.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    feature_gates::{self, Gate},
    field::Field,
    field_errors::{pairs, text},
    json_path::entries,
    names::NameRule,
    validation::{
        declared,
        selector::{self, Operators},
    },
};

/// The field of terms that must hold when a Pod is scheduled.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The field of terms that raise the score of a Node; each has a `weight`.
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// Valid weights of preferred terms. A scheduler adds the weight of each matching term to the score of a Node.
const WEIGHTS: std::ops::RangeInclusive<i64> = 1..=100;

/// Validates node affinity, Pod affinity and Pod anti-affinity, both required and preferred terms.
pub(crate) fn validate_affinity(affinity: &Field<'_>) {
    let node_affinity = affinity.at("nodeAffinity");
    node_affinity.at(REQUIRED).when_present(node_selector);
    for term in node_affinity.at(PREFERRED).items() {
        validate_weight(&term.at("weight"));
        validate_node_term(&term.at("preference"));
    }
    for pod_affinity in ["podAffinity", "podAntiAffinity"].map(|name| affinity.at(name)) {
        pod_affinity.at(REQUIRED).items().for_each(|term| validate_pod_term(&term));
        for term in pod_affinity.at(PREFERRED).items() {
            validate_weight(&term.at("weight"));
            validate_pod_term(&term.at("podAffinityTerm"));
        }
    }
}

/// Validates the weight of a preferred term (`FieldValueInvalid`). An absent one counts as 0, which is out of range.
fn validate_weight(weight: &Field<'_>) {
    let is_valid = WEIGHTS.contains(&weight.as_i64().unwrap_or(0));
    weight.invalid_if(!is_valid, "must be in the range 1-100");
}

/// Validates a node selector (`ValidateNodeSelector`). Terms are `ORed`, so a selector without terms would match no
/// Node. Upstream rejects it, because clients that leave the list empty usually expect the opposite.
pub(crate) fn node_selector(selector: &Field<'_>) {
    let terms = selector.at("nodeSelectorTerms");
    terms.required_if(terms.is_empty());
    for term in terms.items() {
        validate_node_term(&term);
        let values = term.at("matchExpressions").items().flat_map(|requirement| requirement.at("values").items());
        values.for_each(|value| value.label_value());
    }
}

/// Validates a node selector term, without the values: values of a required term must be valid label values; upstream
/// does not check values of a preferred one. A term without requirements is valid and matches no Node. The value of
/// `Gt` and `Lt` is not checked to be an integer, as in upstream.
fn validate_node_term(term: &Field<'_>) {
    for requirement in term.at("matchExpressions").items() {
        let values = requirement.at("values");
        if ["Gt", "Lt"].contains(&requirement.at("operator").text()) {
            let has_one = values.items().count() == 1;
            values.required_with_if(!has_one, "must have exactly one value for the operators Gt and Lt");
        } else {
            selector::validate_values(&requirement, Operators::Known);
        }
        requirement.at("key").qualified_name();
    }
    term.at("matchFields").items().for_each(|requirement| validate_node_field(&requirement));
}

/// Validates a requirement on a field of the Node instead of a label (`ValidateNodeFieldSelectorRequirement`).
/// `DaemonSet` Pods are bound to their Nodes by such a term.
fn validate_node_field(requirement: &Field<'_>) {
    let (key, operator, values) = (requirement.at("key"), requirement.at("operator"), requirement.at("values"));
    if ["In", "NotIn"].contains(&operator.text()) {
        values.required_with_if(values.items().count() != 1, "must have exactly one value");
    } else {
        operator.invalid("must be In or NotIn");
    }
    if key.text() == "metadata.name" {
        values.items().for_each(|value| value.name(NameRule::Subdomain));
    } else {
        key.invalid("must be metadata.name");
    }
}

/// Validates a term of Pod affinity or anti-affinity (`validatePodAffinityTerm`). A null `labelSelector` matches no
/// Pods, and a null `namespaceSelector` means the namespaces in `namespaces`, or the namespace of the Pod.
fn validate_pod_term(term: &Field<'_>) {
    term.check_children(&["labelSelector", "namespaceSelector"], selector::validate_selector);
    term.at("namespaces").items().for_each(|name| term.at_with("namespace", &name).name(NameRule::Label));
    validate_label_keys(term);
    term.require_children(&["topologyKey"]);
    term.at("topologyKey").qualified_name();
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`: label keys whose values a scheduler takes from the Pod itself.
/// The term is one of affinity or a topology spread constraint.
fn validate_label_keys(term: &Field<'_>) {
    for keys in ["matchLabelKeys", "mismatchLabelKeys"].map(|name| term.at(name)) {
        if !keys.is_empty() && term["labelSelector"].is_null() {
            keys.forbidden("must not be specified when labelSelector is not set");
        } else {
            keys.items().for_each(|key| key.qualified_name());
        }
    }
    validate_shared_keys(term);
    let mismatched: BTreeSet<&str> = entries(&term["mismatchLabelKeys"]).map(|(_, key)| text(key)).collect();
    for key in term.at("matchLabelKeys").items() {
        key.invalid_if(mismatched.contains(key.text()), "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

/// Reports a key of `matchLabelKeys` that the client's `labelSelector` also has, at the index in `matchLabelKeys`, as
/// in upstream.
///
/// On create, the server adds one requirement to the selector for each key whose label the Pod has. Exactly one
/// requirement per key is therefore valid here, and only a second one must come from the client. Keys of `matchLabels`
/// count as requirements.
fn validate_shared_keys(term: &Field<'_>) {
    let selector = &term["labelSelector"];
    let mut keys: BTreeSet<&str> = pairs(&selector["matchLabels"]).map(|(key, _)| key).collect();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, shared) in entries(&term["matchLabelKeys"]) {
        first.entry(text(shared)).or_insert(index);
    }
    for (_, requirement) in entries(&selector["matchExpressions"]) {
        let key = &requirement["key"];
        let is_new = keys.insert(text(key));
        if let Some(index) = first.get(text(key)).filter(|_| !is_new) {
            term.index(*index).with(key).invalid("exists in both matchLabelKeys and labelSelector");
        }
    }
}

/// Validates tolerations one by one. Two equal ones have the same effect as one, so upstream does not require
/// uniqueness.
pub(crate) fn validate_tolerations(list: &Field<'_>) {
    list.items().for_each(|toleration| validate_toleration(&toleration));
}

/// Validates a toleration. A tag of the API validates the form of its key. Errors about the value are reported at
/// `operator`, as upstream does. `Gt` and `Lt` need the feature gate `TaintTolerationComparisonOperators`.
fn validate_toleration(toleration: &Field<'_>) {
    let [key, operator, value, effect] = ["key", "operator", "value", "effect"].map(|name| toleration.at(name));
    let lacks_key = key.is_empty() && operator.text() != "Exists";
    operator.invalid_if(lacks_key, "must be Exists when `key` is empty, which means all keys");
    let needs_no_execute = toleration["tolerationSeconds"].is_number() && effect.text() != "NoExecute";
    effect.invalid_if(needs_no_execute, "must be 'NoExecute' when `tolerationSeconds` is set");
    match operator.text() {
        "Exists" => operator.invalid_if(!value.is_empty(), "value must be empty when `operator` is 'Exists'"),
        "" | "Equal" => operator.with(&value).label_value(),
        "Gt" | "Lt" if feature_gates::is_enabled(Gate::TaintTolerationComparisonOperators) => {
            validate_compared_integer(&value);
        }
        _ => operator.unsupported(&["Equal", "Exists"]),
    }
}

/// Validates the value of `Gt` and `Lt`: a decimal integer of 64 bits without a plus sign or leading zeros.
fn validate_compared_integer(value: &Field<'_>) {
    let is_integer = value.text().parse::<i64>().is_ok_and(|number| number.to_string() == value.text());
    value.invalid_if(!is_integer, "must be a decimal integer of 64 bits, such as 8");
}

/// Validates topology spread constraints. A pair of topology key and action that occurs again is reported at the
/// earlier constraint. The form of `topologyKey` as a label key is not checked.
pub(crate) fn validate_topology_spread(list: &Field<'_>) {
    let mut n_left: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (_, constraint) in entries(list) {
        *n_left.entry((text(&constraint["topologyKey"]), text(&constraint["whenUnsatisfiable"]))).or_default() += 1;
    }
    for constraint in list.items() {
        let (key, action) = (constraint.at("topologyKey"), constraint.at("whenUnsatisfiable"));
        require_positive(&constraint.at("maxSkew"));
        key.required_if(key.is_empty());
        action.always_one_of(&declared::values("core.v1.TopologySpreadConstraint", "whenUnsatisfiable"));
        let later = n_left.entry((key.text(), action.text())).or_default();
        *later = later.saturating_sub(1);
        constraint.at("{topologyKey, whenUnsatisfiable}").duplicate_if(*later > 0);
        let domains = constraint.at("minDomains");
        if !domains.is_null() {
            require_positive(&domains);
            domains.invalid_if(action.text() != "DoNotSchedule", "needs whenUnsatisfiable: DoNotSchedule");
        }
        validate_label_keys(&constraint);
        constraint.at("labelSelector").check(selector::validate_selector);
    }
}

/// Reports a number below 1 as `FieldValueInvalid`; an absent one counts as 0.
fn require_positive(number: &Field<'_>) {
    number.invalid_if(number.as_i64().unwrap_or(0) <= 0, "must be greater than zero");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::validate_compared_integer;
    use crate::{field::Field, field_errors::Errors};

    #[test]
    fn compared_value_is_an_integer() {
        for (text, is_valid) in [
            ("8", true),
            ("-8", true),
            ("9223372036854775807", true),
            ("9223372036854775808", false),
            ("08", false),
            ("+8", false),
            ("-0", false),
            ("8.0", false),
            ("", false),
        ] {
            let value = json!(text);
            let errors = Errors::collect(|errors| validate_compared_integer(&Field::new(&value, "value", errors)));
            assert_eq!(errors.is_empty(), is_valid, "{text:?}: {errors:?}");
        }
    }
}
