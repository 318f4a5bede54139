//! Converts `HorizontalPodAutoscalers` between `autoscaling/v1` and `autoscaling/v2`.
//!
//! Version 2 is stored. Version 1 has one metric, the utilization of CPU. It keeps everything else in annotations
//! (`pkg/apis/autoscaling/v1/conversion.go`) that only the conversion writes: version 2 drops them.
//!
//! | version 2 | version 1 |
//! |---|---|
//! | CPU utilization in `spec.metrics` | `spec.targetCPUUtilizationPercentage` |
//! | other `spec.metrics` | annotation `autoscaling.alpha.kubernetes.io/metrics` |
//! | `spec.behavior` | annotation `autoscaling.alpha.kubernetes.io/behavior` |
//! | `status.currentMetrics` | annotation `autoscaling.alpha.kubernetes.io/current-metrics` |
//! | `status.conditions` | annotation `autoscaling.alpha.kubernetes.io/conditions` |
//!
//! A client of version 1 that updates an object therefore keeps the fields that are unknown to it, as long as it keeps
//! the annotations. An invalid annotation is ignored without an error.

mod annotations;
mod metrics;

use metrics::MetricValues;
use serde_json::{Value, json};

use crate::{
    defaulting::part,
    json_path::{remove, set},
};

/// The older version, which only has a CPU target.
pub(super) const V1: &str = "autoscaling/v1";
/// The version in which autoscalers are stored.
pub(super) const V2: &str = "autoscaling/v2";
/// The annotation of version 1 with `spec.metrics`, except the target of CPU.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
/// The annotation with `spec.behavior`.
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The annotation with `status.currentMetrics`, except CPU.
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
/// The annotation with `status.conditions`.
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// All annotations that represent fields, including fields of removed versions. Clients of version 2 cannot use these
/// names: the conversion removes them.
const OWN: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    CURRENT_METRICS,
    CONDITIONS,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// The target utilization of an autoscaler without metrics (`DefaultCPUUtilization`).
const UTILIZATION: i64 = 80;

/// Converts an autoscaler to a version. Other objects, and those that have the version, are returned as they are.
pub(super) fn convert(to: &str, object: &Value) -> Value {
    match (object["apiVersion"].as_str(), to) {
        (Some(V1), V2) => second(object),
        (Some(V2), V1) => first(object),
        _ => object.clone(),
    }
}

/// Returns `true` for two different versions of autoscalers, whose fields have other names.
pub(super) fn differ(left: &str, right: &str) -> bool {
    [left, right].iter().all(|version| [V1, V2].contains(version)) && left != right
}

/// Normalizes an autoscaler as a conversion to the internal version and back does: the annotations of version 1 follow
/// its fields, and version 2 has none. An object of version 1 without metrics gets the default metric this way.
pub(super) fn normalize(object: &mut Value) {
    if object["apiVersion"] == V1 {
        *object = first(&second(object));
    } else {
        drop_own(object);
    }
}

/// Removes the annotations of the conversion.
fn drop_own(object: &mut Value) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.retain(|name, _| !OWN.contains(&name.as_str()));
    if annotations.is_empty() {
        meta.remove("annotations");
    }
}

/// Converts version 2 to version 1. A CPU metric whose target is not a utilization is stored with the other metrics, in
/// an annotation. Of several CPU metrics, the first target and the last current value become fields.
fn first(second: &Value) -> Value {
    let mut object = second.clone();
    object["apiVersion"] = V1.into();
    drop_own(&mut object);
    let (spec, status) = (&second["spec"], &second["status"]);
    let list = |part: &Value, field: &str| part[field].as_array().cloned().unwrap_or_default();
    let (metrics, current) = (list(spec, "metrics"), list(status, "currentMetrics"));
    let others: Vec<Value> = metrics.iter().filter(|metric| utilization(metric, "target").is_none()).cloned().collect();
    let (behavior, conditions) = (&spec["behavior"], list(status, "conditions"));
    let annotations = [
        (METRICS, (!others.is_empty()).then(|| metrics::format_metrics(&others, MetricValues::Target))),
        (CURRENT_METRICS, (!current.is_empty()).then(|| metrics::format_metrics(&current, MetricValues::Current))),
        (BEHAVIOR, behavior.is_object().then(|| annotations::behavior_text(behavior))),
        (CONDITIONS, (!conditions.is_empty()).then(|| annotations::conditions_text(&conditions))),
    ];
    for (name, text) in annotations.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        object["metadata"]["annotations"][name] = text.into();
    }
    for (part, field) in
        [("spec", "metrics"), ("spec", "behavior"), ("status", "currentMetrics"), ("status", "conditions")]
    {
        remove(&mut object, part, field);
    }
    if let Some(share) = metrics.iter().find_map(|metric| utilization(metric, "target")) {
        object["spec"]["targetCPUUtilizationPercentage"] = share.into();
    }
    if let Some(share) = current.iter().rev().find_map(|metric| utilization(metric, "current")) {
        object["status"]["currentCPUUtilizationPercentage"] = share.into();
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentReplicas").or_insert_with(|| 0.into());
    }
    object
}

/// Returns the utilization in a metric, if it is the resource metric of CPU. `field` is `target` or `current`.
fn utilization(metric: &Value, field: &str) -> Option<i64> {
    let is_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    metric["resource"][field]["averageUtilization"].as_i64().filter(|_| is_cpu)
}

/// Converts version 1 to version 2. The metric of CPU is added after the metrics of the annotation. An absent target
/// and an absent annotation give the default of 80 %. `currentReplicas: 0` is removed, because version 2 omits it.
fn second(first: &Value) -> Value {
    let mut object = first.clone();
    object["apiVersion"] = V2.into();
    let annotation = |name: &str| first["metadata"]["annotations"][name].as_str();
    remove(&mut object, "spec", "targetCPUUtilizationPercentage");
    remove(&mut object, "status", "currentCPUUtilizationPercentage");
    let target = |share: i64| cpu("target", json!({ "type": "Utilization", "averageUtilization": share }));
    let mut all = annotation(METRICS).and_then(|text| metrics::read(text, MetricValues::Target)).unwrap_or_default();
    all.extend(first["spec"]["targetCPUUtilizationPercentage"].as_i64().map(target));
    if all.is_empty() {
        all.push(target(UTILIZATION));
    }
    set(part(&mut object, "spec"), "metrics", Some(all.into()));
    if let Some(behavior) = annotation(BEHAVIOR).and_then(annotations::behavior) {
        set(part(&mut object, "spec"), "behavior", Some(behavior));
    }
    let current = annotation(CURRENT_METRICS).and_then(|text| metrics::read(text, MetricValues::Current));
    let current = current.unwrap_or_else(|| {
        let share = first["status"]["currentCPUUtilizationPercentage"].as_i64();
        share.map(|share| cpu("current", json!({ "averageUtilization": share }))).into_iter().collect()
    });
    let current = if current.is_empty() { Value::Null } else { current.into() };
    set(part(&mut object, "status"), "currentMetrics", Some(current));
    if let Some(conditions) = annotation(CONDITIONS).and_then(annotations::conditions) {
        set(part(&mut object, "status"), "conditions", Some(conditions));
    }
    if object["status"]["currentReplicas"] == 0 {
        remove(&mut object, "status", "currentReplicas");
    }
    drop_own(&mut object);
    object
}

/// Returns the metric of CPU utilization. `field` is `target` or `current`, and `amount` its value.
fn cpu(field: &str, amount: Value) -> Value {
    let mut resource = json!({ "name": "cpu" });
    resource[field] = amount;
    json!({ "type": "Resource", "resource": resource })
}

#[cfg(test)]
mod tests;
