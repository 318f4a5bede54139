//! The table row of a `HorizontalPodAutoscaler`.
//!
//! Upstream: `printHorizontalPodAutoscaler` and `formatHPAMetrics` in `pkg/printers/internalversion/printers.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    kinds::autoscaling::conversion,
    table::{
        age::{UNKNOWN, age},
        fields::{int, joined_with_more, list, name, scalar, text, value_at},
        labels::{NONE, UNSET},
    },
};

/// Maximum number of metrics that the column Targets shows; the rest is counted, as in `cpu: 5%/80% + 1 more...`.
const METRICS_SHOWN_MAX: usize = 2;

/// Returns the cells of an autoscaler of either version.
pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let object = &conversion::convert(conversion::V2, object);
    let target = value_at(object, "/spec/scaleTargetRef");
    let min = scalar(value_at(object, "/spec/minReplicas"));
    vec![
        json!(name(object)),
        json!(format!("{}/{}", text(target, "/kind"), text(target, "/name"))),
        json!(targets(object)),
        json!(min.as_deref().unwrap_or(UNSET)),
        json!(int(object, "/spec/maxReplicas")),
        json!(int(object, "/status/currentReplicas")),
        json!(age(object, now)),
    ]
}

/// Returns the column Targets; `<none>` without metrics. Metrics of the spec and of the status are paired by their
/// index, as the controller writes them.
fn targets(object: &Value) -> String {
    let current = list(object, "/status/currentMetrics");
    let metrics = list(object, "/spec/metrics").iter().enumerate();
    let shown: Vec<_> = metrics.map(|(idx, metric)| target(metric, current.get(idx))).collect();
    if shown.is_empty() { NONE.to_owned() } else { joined_with_more(&shown, ", ", METRICS_SHOWN_MAX) }
}

/// Returns one metric. The current value is `<unknown>` until the controller has read the metric.
fn target(metric: &Value, current: Option<&Value>) -> String {
    match text(metric, "/type") {
        "External" => amount(metric, current, "external"),
        "Object" => amount(metric, current, "object"),
        "Pods" => current_and_target(metric, current, "pods", "averageValue"),
        "Resource" => usage(metric, current, "resource"),
        "ContainerResource" => usage(metric, current, "containerResource"),
        _ => "<unknown type>".to_owned(),
    }
}

/// Returns a metric of type Object or External: its value, or the average per Pod, which is marked by `(avg)`.
fn amount(metric: &Value, current: Option<&Value>, source: &str) -> String {
    if value_at(metric, &format!("/{source}/target/averageValue")).is_null() {
        current_and_target(metric, current, source, "value")
    } else {
        format!("{} (avg)", current_and_target(metric, current, source, "averageValue"))
    }
}

/// Returns `current/target` of a field below `source`; an absent target is `0`.
fn current_and_target(metric: &Value, current: Option<&Value>, source: &str, field: &str) -> String {
    let current = current.and_then(|current| scalar(value_at(current, &format!("/{source}/current/{field}"))));
    let target = scalar(value_at(metric, &format!("/{source}/target/{field}")));
    format!("{}/{}", current.as_deref().unwrap_or(UNKNOWN), target.as_deref().unwrap_or("0"))
}

/// Returns a resource metric with its name: an average amount if the target is one, otherwise a percentage of the
/// requests.
fn usage(metric: &Value, current: Option<&Value>, source: &str) -> String {
    let name = text(metric, &format!("/{source}/name"));
    if !value_at(metric, &format!("/{source}/target/averageValue")).is_null() {
        return format!("{name}: {}", current_and_target(metric, current, source, "averageValue"));
    }
    let percent = |metric: &Value, values: &str| {
        let share = value_at(metric, &format!("/{source}/{values}/averageUtilization")).as_i64();
        share.map(|share| format!("{share}%"))
    };
    let (current, target) = (current.and_then(|current| percent(current, "current")), percent(metric, "target"));
    format!("{name}: {}/{}", current.as_deref().unwrap_or(UNKNOWN), target.as_deref().unwrap_or("<auto>"))
}
