//! Where a pod that is held back by gates may still be placed: only more narrowly than before.

use serde_json::Value;

use super::{Errors, entries, pairs};

/// What may change of the placement from one spec of a held back pod to the next.
pub(crate) fn narrows(was: &Value, is: &Value, errors: &mut Errors) {
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
    let at = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let (old, new) = (terms(was), terms(is));
    let n_terms = entries(&old).count();
    if n_terms == 0 {
        return;
    }
    if entries(&new).count() != n_terms {
        return errors.invalid(at, &new, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    }
    for ((index, old), (_, new)) in entries(&old).zip(entries(&new)) {
        if !only_adds(old, new) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.invalid(&format!("{at}[{index}]"), new, detail);
        }
    }
}

const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];

/// Whether a term begins as it was. One that asked for nothing stays so: it selects no node.
fn only_adds(old: &Value, new: &Value) -> bool {
    let list = |term: &Value, name: &str| term[name].as_array().cloned().unwrap_or_default();
    if LISTS.iter().all(|name| list(old, name).is_empty()) {
        return LISTS.iter().all(|name| list(new, name).is_empty());
    }
    LISTS.iter().all(|name| list(new, name).starts_with(&list(old, name)))
}

/// Takes what is judged here out of one of two specs that are compared.
pub(crate) fn forget(spec: &mut Value, was: &Value, is: &Value) {
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
