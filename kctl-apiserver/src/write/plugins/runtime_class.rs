//! `RuntimeClass`: a new Pod gets the overhead, the node selector and the tolerations of its `RuntimeClass`.
//!
//! Upstream: `RuntimeClass.Admit` and `Validate` in `plugin/pkg/admission/runtimeclass/admission.go`.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;

use super::{Mutation, forbidden, rejection};
use crate::{
    admission::Attributes, amounts, field_errors::text, kinds::node::runtime_class, request::Operation,
    status::StatusError, store::Store,
};

/// Maximum number of tolerations that are compared with each other, which takes quadratic time under the lock of the
/// server. In a longer list, only equal ones are merged.
const TOLERATIONS_LEN_MAX: usize = 1_000;

/// Returns the name of the Pod's `RuntimeClass`, and the class if it exists. `None` if the Pod names no class.
fn runtime_class(store: &Store, pod: &Value) -> Option<(String, Option<Arc<Value>>)> {
    let named = pod["spec"]["runtimeClassName"].as_str()?.to_owned();
    let class = store.object(&runtime_class::KIND, "", &named);
    Some((named, class))
}

/// Returns the message about a `RuntimeClass` that does not exist.
fn missing_class_message(named: &str) -> String {
    format!("spec.runtimeClassName: there is no RuntimeClass {named:?}")
}

/// Sets the overhead, node selector and tolerations of a new Pod's `RuntimeClass` (`setOverhead`, `setScheduling`).
/// Conflicts between Pod and class are `Forbidden`. Tolerations are merged, the Pod's first.
pub(super) fn admit(store: &Store, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    if !mutation.creates() {
        return Ok(());
    }
    let (info, pod) = (mutation.info, &mut *mutation.object);
    let Some((named, class)) = runtime_class(store, pod) else { return Ok(()) };
    let Some(class) = class else { return Err(forbidden(info, pod, &missing_class_message(&named))) };
    let (fixed, overhead) = (&class["overhead"]["podFixed"], &pod["spec"]["overhead"]);
    if fixed.is_object() {
        let has_overhead = overhead.as_object().is_some_and(|overhead| !overhead.is_empty());
        if has_overhead && amounts::read(fixed) != amounts::read(overhead) {
            return Err(forbidden(info, pod, OTHER_OVERHEAD));
        }
        pod["spec"]["overhead"] = fixed.clone();
    }
    for (label, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let current = &pod["spec"]["nodeSelector"][label];
        if !current.is_null() && current != value {
            let why =
                format!("spec.nodeSelector[{label}]: must be {value} as the RuntimeClass has it, found {current}");
            return Err(forbidden(info, pod, &why));
        }
        pod["spec"]["nodeSelector"][label] = value.clone();
    }
    if class["scheduling"].is_object() {
        let list = |object: &Value| object["tolerations"].as_array().cloned().unwrap_or_default();
        let merged = merge_tolerations(&[list(&pod["spec"]), list(&class["scheduling"])].concat());
        if !merged.is_empty() {
            pod["spec"]["tolerations"] = merged.into();
        }
    }
    Ok(())
}

/// Returns tolerations without the ones that another toleration covers (`MergeTolerations`). The order of the remaining
/// ones is kept.
fn merge_tolerations(all: &[Value]) -> Vec<Value> {
    if all.len() > TOLERATIONS_LEN_MAX {
        let mut seen = HashSet::new();
        return all.iter().filter(|toleration| seen.insert(*toleration)).cloned().collect();
    }
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_covered_before = merged.iter().any(|existing| covers(existing, toleration));
        let is_covered_later = all[index + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !is_covered_before && !is_covered_later {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Returns `true` if a toleration tolerates everything that another toleration does. A toleration with fewer seconds is
/// covered by one with more or without a limit.
fn covers(whole: &Value, part: &Value) -> bool {
    let same = |field: &str| text(&whole[field]) == text(&part[field]);
    let is = |toleration: &Value, operator: &str| text(&toleration["operator"]) == operator;
    let seconds = |toleration: &Value| toleration["tolerationSeconds"].as_i64();
    let lasts = seconds(whole).is_none_or(|most| seconds(part).is_some_and(|seconds| seconds <= most));
    whole == part
        || ((same("key") || (text(&whole["key"]).is_empty() && is(whole, "Exists")))
            && (same("effect") || text(&whole["effect"]).is_empty())
            && (whole["effect"] != "NoExecute" || lasts)
            && (is(whole, "Exists")
                || (["", "Equal"].contains(&text(&whole["operator"])) && is(part, "Equal") && same("value"))))
}

/// The message about an overhead that differs from the `RuntimeClass`.
const OTHER_OVERHEAD: &str = "spec.overhead: must equal the overhead of the RuntimeClass";

/// Checks that the overhead of a new Pod equals the overhead of its `RuntimeClass` (`validateOverhead`). Runs after
/// webhooks, which may have changed the overhead.
pub(super) fn validate(store: &Store, attributes: &Attributes<'_>, pod: &Value) -> Result<(), StatusError> {
    if attributes.operation != Operation::Create || !attributes.info.subresource.is_main() {
        return Ok(());
    }
    let class = match runtime_class(store, pod) {
        Some((named, None)) => return Err(rejection(attributes, &missing_class_message(&named))),
        Some((_, class)) => class,
        None => None,
    };
    let overhead = &pod["spec"]["overhead"];
    let fixed = class.as_ref().map(|class| &class["overhead"]["podFixed"]).filter(|fixed| fixed.is_object());
    let is_other = fixed.map_or(overhead.is_object(), |fixed| amounts::read(fixed) != amounts::read(overhead));
    if is_other { Err(rejection(attributes, OTHER_OVERHEAD)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if each toleration is compared with all others.
    #[test]
    fn many_tolerations_are_merged_if_equal() {
        let toleration = |n: u32| json!({ "key": n.to_string(), "operator": "Exists", "effect": "NoSchedule" });
        let of_pod: Vec<Value> = (0..60_000).map(toleration).collect();
        let merged = merge_tolerations(&[&of_pod[..], &of_pod[..]].concat());
        assert!(merged == of_pod);
        let some = json!([{ "key": "a", "operator": "Exists" }, { "key": "a", "operator": "Equal", "value": "b" }]);
        assert_eq!(merge_tolerations(some.as_array().unwrap()).len(), 1);
    }
}
