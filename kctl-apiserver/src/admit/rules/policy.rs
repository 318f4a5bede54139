//! Rules of disruption budgets and priority classes.

use serde_json::Value;

use super::{Errors, declared, selector, text};

/// The highest priority that users may define: `HighestUserDefinablePriority`.
const PRIORITY_MAX: i64 = 1_000_000_000;
const OF_SYSTEM: &[&str] = &["system-cluster-critical", "system-node-critical"];

pub(crate) fn disruption_budget(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        errors.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set");
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let at = format!("spec.{name}");
        errors.count_or_percent(&at, &spec[name]);
        errors.at_most_all(&at, &spec[name]);
    }
    selector::selector(&spec["selector"], "spec.selector", errors);
}

pub(crate) fn priority_class(object: &Value, errors: &mut Errors) {
    let is_of_system = text(&object["metadata"]["name"]).starts_with("system-");
    if is_of_system {
        let name = text(&object["metadata"]["name"]);
        if !OF_SYSTEM.contains(&name) {
            let detail = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            errors.forbidden("metadata.name", &format!("{detail}{name} is not a known system priority class"));
        }
    }
    if !is_of_system && object["value"].as_i64().is_some_and(|value| value > PRIORITY_MAX) {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        errors.forbidden("value", &detail);
    }
    if object["preemptionPolicy"] == "" {
        errors.required("preemptionPolicy", "");
    } else {
        let supported = declared::values("scheduling.v1.PriorityClass", "preemptionPolicy");
        errors.one_of("preemptionPolicy", &object["preemptionPolicy"], &supported);
    }
}
