//! Rules of autoscalers, disruption budgets and priority classes.

use serde_json::Value;

use super::{Errors, entries, selector, text};

/// The highest priority that users may define: `HighestUserDefinablePriority`.
const PRIORITY_MAX: i64 = 1_000_000_000;

pub(super) fn autoscaler(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        errors.invalid("spec.minReplicas", &least.into(), "must be greater than or equal to 1");
    }
    if most < 1 {
        errors.required("spec.maxReplicas", "must be set and greater than 0");
    }
    if least.is_some_and(|least| most < least) {
        errors.invalid("spec.maxReplicas", &most.into(), "must be greater than or equal to `minReplicas`");
    }
    let (target, at) = (&spec["scaleTargetRef"], "spec.scaleTargetRef");
    for name in ["kind", "name"].into_iter().filter(|name| text(&target[*name]).is_empty()) {
        errors.required(&format!("{at}.{name}"), "");
    }
    let version = text(&target["apiVersion"]);
    let is_controller = version == "v1" && target["kind"] == "ReplicationController";
    if !version.contains('/') && !is_controller {
        errors.invalid(&format!("{at}.apiVersion"), &version.into(), "apiVersion must specify API group");
    }
    metrics(spec, errors);
}

fn metrics(spec: &Value, errors: &mut Errors) {
    let mut scales_to_none = false;
    for (index, metric) in entries(&spec["metrics"]) {
        let at = format!("spec.metrics[{index}]");
        let (kind, source) = match text(&metric["type"]) {
            "Object" => ("Object", "object"),
            "Pods" => ("Pods", "pods"),
            "Resource" => ("Resource", "resource"),
            "External" => ("External", "external"),
            "ContainerResource" => ("ContainerResource", "containerResource"),
            "" => {
                errors.required(&format!("{at}.type"), "must specify a metric source type");
                continue;
            }
            _ => {
                let supported = ["ContainerResource", "External", "Object", "Pods", "Resource"];
                errors.one_of(&format!("{at}.type"), &metric["type"], &supported);
                continue;
            }
        };
        scales_to_none |= ["Object", "External"].contains(&kind);
        if metric[source].is_null() {
            let detail = "must populate information for the given metric source";
            errors.required(&format!("{at}.{source}"), detail);
        }
    }
    if spec["minReplicas"] == 0 && !scales_to_none {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden("spec.metrics", detail);
    }
}

pub(super) fn disruption_budget(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        let selector = if spec["selector"].is_null() { "null".into() } else { selector::shown(&spec["selector"]) };
        let policy = &spec["unhealthyPodEvictionPolicy"];
        let shown = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{selector},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{policy}}}"
        );
        errors.shown("spec", &shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let at = format!("spec.{name}");
        errors.count_or_percent(&at, &spec[name]);
        errors.at_most_all(&at, &spec[name]);
    }
    selector::selector(&spec["selector"], "spec.selector", errors);
    let at = "spec.unhealthyPodEvictionPolicy";
    errors.one_of(at, &spec["unhealthyPodEvictionPolicy"], &["AlwaysAllow", "IfHealthyBudget"]);
}

pub(super) fn priority_class(object: &Value, errors: &mut Errors) {
    let is_of_system = text(&object["metadata"]["name"]).starts_with("system-");
    if !is_of_system && object["value"].as_i64().is_some_and(|value| value > PRIORITY_MAX) {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        errors.forbidden("value", &detail);
    }
}
