//! Validation of changed Pods (`ValidatePodUpdate`).
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

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    validation::{affinity, entries},
};

/// Validates an update of a Pod. A changed number of containers, or an invalid deadline, ends the validation.
///
/// The last error, at `spec`, is about all other fields.
///
/// The images are validated again, because they may change: they are required and have no white
/// space around them.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    for list in ["containers", "initContainers"] {
        if entries(&was[list]).count() != entries(&is[list]).count() {
            errors.forbidden(&format!("spec.{list}"), "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in entries(&is[list]) {
            let (path, image) = (format!("spec.{list}[{index}].image"), text(&container["image"]));
            if image.is_empty() {
                errors.required(&path, "");
            }
            if image.trim() != image {
                errors.invalid(&path, &image.into(), "must not have leading or trailing whitespace");
            }
        }
    }
    let (deadline, earlier) = (&is["activeDeadlineSeconds"], was["activeDeadlineSeconds"].as_i64());
    if deadline.as_i64().is_some_and(|deadline| deadline < 0) {
        return errors.in_range("spec.activeDeadlineSeconds", deadline, 0, i64::from(i32::MAX));
    }
    if let Some(earlier) = earlier {
        match deadline.as_i64() {
            Some(later) if later > earlier => {
                let detail = "must be less than or equal to previous value";
                errors.invalid("spec.activeDeadlineSeconds", deadline, detail);
                return;
            }
            None => {
                errors.invalid(
                    "spec.activeDeadlineSeconds",
                    deadline,
                    "must not update from a positive integer to nil value",
                );
            }
            Some(_) => {}
        }
    }
    tolerations_stay(was, is, errors);
    gates_are_removed(was, is, errors);
    narrows(was, is, errors);
    if was != is && without_mutable_fields(was, was, is) != without_mutable_fields(is, was, is) {
        let detail = "only images, activeDeadlineSeconds, a negative terminationGracePeriodSeconds, new tolerations, \
                      scheduling gates, and while there are gates the nodeSelector of a Pod may change: delete and \
                      create it instead";
        errors.forbidden("spec", detail);
    }
}

/// Validates that no old toleration is removed or changed, apart from its seconds (`FieldValueForbidden`), and
/// validates the new list.
fn tolerations_stay(was: &Value, is: &Value, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration["tolerationSeconds"] = Value::Null;
        toleration
    };
    let is_kept =
        |old: &Value| entries(&is["tolerations"]).any(|(_, new)| without_seconds(new) == without_seconds(old));
    if !entries(&was["tolerations"]).all(|(_, old)| is_kept(old)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return errors.forbidden("spec.tolerations", detail);
    }
    affinity::tolerations(&is["tolerations"], "spec.tolerations", errors);
}

/// Validates that an update adds no scheduling gate: the scheduler may have placed the Pod already.
fn gates_are_removed(was: &Value, is: &Value, errors: &mut Errors) {
    for (index, gate) in entries(&is["schedulingGates"]) {
        if !entries(&was["schedulingGates"]).any(|(_, old)| old["name"] == gate["name"]) {
            let name = text(&gate["name"]);
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&format!("spec.schedulingGates[{index}].name"), &detail);
        }
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
        forget_placement(&mut spec, old, new);
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
fn narrows(was: &Value, is: &Value, errors: &mut Errors) {
    if entries(&was["schedulingGates"]).next().is_none() {
        return;
    }
    let selector = &is["nodeSelector"];
    if pairs(&was["nodeSelector"]).any(|(label, value)| selector.get(label) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.invalid("spec.nodeSelector", selector, detail);
    }
    let terms = |spec: &Value| {
        let required = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        required["nodeSelectorTerms"].clone()
    };
    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let (old, new) = (terms(was), terms(is));
    let n_terms = entries(&old).count();
    if n_terms == 0 {
        return;
    }
    if entries(&new).count() != n_terms {
        return errors.invalid(path, &new, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    }
    for ((index, old), (_, new)) in entries(&old).zip(entries(&new)) {
        if !only_adds(old, new) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.invalid(&format!("{path}[{index}]"), new, detail);
        }
    }
}

/// Requirements of a node selector term.
const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];

/// Returns `true` if a term only adds requirements. An empty term selects no node and must remain empty.
fn only_adds(old: &Value, new: &Value) -> bool {
    let list = |term: &Value, name: &str| term[name].as_array().cloned().unwrap_or_default();
    if LISTS.iter().all(|name| list(old, name).is_empty()) {
        return LISTS.iter().all(|name| list(new, name).is_empty());
    }
    LISTS.iter().all(|name| list(new, name).starts_with(&list(old, name)))
}

/// Removes node selector and node affinity, which `narrows` validates, from one of two compared
/// specs.
fn forget_placement(spec: &mut Value, was: &Value, is: &Value) {
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
