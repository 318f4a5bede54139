//! Validation of new and changed Pods (`ValidatePodCreate`, `ValidatePodUpdate`).
//!
//! Upstream: `pkg/apis/core/validation/validation.go`. A Pod is immutable with few exceptions, because controllers
//! replace Pods instead of changing them.
//!
//! | field | may it change? |
//! |---|---|
//! | `image` of containers and init containers | yes |
//! | `activeDeadlineSeconds` | it may be added, and become smaller |
//! | `tolerations` | additions, and `tolerationSeconds` |
//! | `terminationGracePeriodSeconds` | from a negative number to 1 |
//! | `schedulingGates` | removals |
//! | `nodeSelector`, required node affinity | additions, while the Pod has scheduling gates |

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, pairs, text},
    json_path::entries,
    validation::{affinity, container},
};

/// Rejects fields that a new Pod may not have. Ephemeral containers are only added through the subresource
/// `ephemeralcontainers`. A Pod with scheduling gates may not name a Node, since it would skip the scheduler and with
/// it the gates.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (containers, node) = (spec.at("ephemeralContainers"), spec.at("nodeName"));
    containers.forbidden_if(!containers.is_empty(), "cannot be set on create");
    let is_gated = !spec.at("schedulingGates").is_empty();
    node.forbidden_if(is_gated && !node.is_empty(), "cannot be set until all schedulingGates have been cleared");
}

/// Validates an update of a Pod. A changed number of containers, or an invalid deadline, ends the validation. The last
/// error, at `spec`, is about all other fields.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, spec) = (&old["spec"], Field::new(&new["spec"], "spec", errors));
    for name in ["containers", "initContainers"] {
        let list = spec.at(name);
        if entries(&was[name]).count() != entries(&list).count() {
            return list.forbidden("pod updates may not add or remove containers");
        }
        for container in list.items() {
            container.require_children(&["image"]);
            container::validate_image(&container);
        }
    }
    let deadline = spec.at("activeDeadlineSeconds");
    let (earlier, later) = (was["activeDeadlineSeconds"].as_i64(), deadline.as_i64());
    let detail = "must not be negative, removed, or greater than the previous value";
    deadline.invalid_if(earlier.is_some() && later.is_none(), detail);
    if later.is_some_and(|later| later < 0 || earlier.is_some_and(|earlier| later > earlier)) {
        return deadline.invalid(detail);
    }
    validate_kept_tolerations(was, &spec.at("tolerations"));
    forbid_new_gates(was, &spec.at("schedulingGates"));
    validate_narrowed_placement(was, &spec);
    if *was != *spec && without_mutable_fields(was, was, &spec) != without_mutable_fields(&spec, was, &spec) {
        spec.forbidden(
            "only images, activeDeadlineSeconds, a negative terminationGracePeriodSeconds, new tolerations, scheduling \
             gates, and while there are gates the nodeSelector of a Pod may change: delete and create it instead",
        );
    }
}

/// Validates that no old toleration is removed or changed, apart from its seconds (`FieldValueForbidden`), and
/// validates the new list.
fn validate_kept_tolerations(was: &Value, list: &Field<'_>) {
    let new: BTreeSet<_> = entries(list).map(|(_, toleration)| fixed_fields(toleration)).collect();
    if !entries(&was["tolerations"]).all(|(_, old)| new.contains(&fixed_fields(old))) {
        return list.forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
    list.check(affinity::validate_tolerations);
}

/// Returns the fields of a toleration that an update keeps: all but its seconds.
fn fixed_fields(toleration: &Value) -> [&str; 4] {
    ["key", "operator", "value", "effect"].map(|field| text(&toleration[field]))
}

/// Validates that an update adds no scheduling gate: the scheduler may have placed the Pod already.
fn forbid_new_gates(was: &Value, list: &Field<'_>) {
    let old: BTreeSet<&str> = entries(&was["schedulingGates"]).map(|(_, gate)| text(&gate["name"])).collect();
    for name in list.items().map(|gate| gate.at("name")) {
        name.forbidden_if(!old.contains(name.text()), "scheduling gates can only be removed");
    }
}

/// Returns one of two compared specs without the fields that may change from `old` to `new`.
///
/// Both specs are stripped by the same rules, so that they are equal if nothing else has changed.
fn without_mutable_fields(spec: &Value, old: &Value, new: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
        }
    }
    // Tolerations and gates have separate rules and errors, so this comparison skips them.
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if entries(&old["schedulingGates"]).next().is_some() {
        remove_placement(&mut spec, old, new);
    }
    let period = "terminationGracePeriodSeconds";
    if old[period].as_i64().is_some_and(|seconds| seconds < 0) && new[period] == 1 {
        free.push(period);
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !free.contains(&name.as_str()));
    }
    spec
}

/// Validates that an update of a Pod with scheduling gates only narrows the nodes that it fits.
///
/// Labels may be added to `nodeSelector`. Terms of the required node affinity are alternatives: their number must not
/// change, and each may get further requirements at its end. An empty list may get any terms.
fn validate_narrowed_placement(was: &Value, spec: &Field<'_>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    if entries(&was["schedulingGates"]).next().is_none() {
        return;
    }
    let selector = spec.at("nodeSelector");
    let is_changed = pairs(&was["nodeSelector"]).any(|(label, value)| selector.get(label) != Some(value));
    selector.invalid_if(is_changed, "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    let old = &was["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"];
    let terms = spec.at("affinity").at("nodeAffinity").at(REQUIRED).at("nodeSelectorTerms");
    let n_terms = entries(old).count();
    if n_terms != 0 && entries(&terms).count() != n_terms {
        return terms.invalid("no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    }
    for ((_, old), new) in entries(old).zip(terms.items()) {
        new.invalid_if(!is_only_extended(old, &new), "only additions are allowed (no mutations or deletions)");
    }
}

/// Requirements of a node selector term.
const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];

/// Returns `true` if a term only adds requirements. An empty term selects no node and must remain empty.
fn is_only_extended(old: &Value, new: &Value) -> bool {
    let list = |term: &Value, name: &str| term[name].as_array().cloned().unwrap_or_default();
    if LISTS.iter().all(|name| list(old, name).is_empty()) {
        return LISTS.iter().all(|name| list(new, name).is_empty());
    }
    LISTS.iter().all(|name| list(new, name).starts_with(&list(old, name)))
}

/// Removes node selector and node affinity, which `validate_narrowed_placement` validates, from one of two compared
/// specs.
fn remove_placement(spec: &mut Value, was: &Value, is: &Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    fields.remove("nodeSelector");
    if was["affinity"]["nodeAffinity"] == is["affinity"]["nodeAffinity"] {
        return;
    }
    let Some(affinity) = fields.get_mut("affinity").and_then(Value::as_object_mut) else { return };
    affinity.remove("nodeAffinity");
    if affinity.values().all(Value::is_null) {
        fields.remove("affinity");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if each toleration is compared with all old ones.
    #[test]
    fn only_seconds_of_many_tolerations_may_change() {
        let pod = |first: usize, seconds: i64| {
            let toleration = |n: usize| {
                json!({ "key": format!("k{n}"), "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": seconds })
            };
            json!({ "spec": { "tolerations": (first..50_000).map(toleration).collect::<Value>() } })
        };
        let errors = |new: &Value| Errors::collect(|errors| validate_update(&pod(0, 1), new, errors));
        assert!(errors(&pod(0, 2)).is_empty());
        let fields: Vec<String> = errors(&pod(1, 1)).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["spec.tolerations"]);
    }
}
