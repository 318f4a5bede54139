//! The table row of a `HorizontalPodAutoscaler`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    autoscaling,
    table::{
        age::{UNKNOWN, age},
        fields::{at, int, joined_with_more, list, name, scalar, text},
        labels::NONE,
    },
};

/// Upstream: `formatHPAMetrics`.
const METRICS_SHOWN_MAX: usize = 2;

pub(crate) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let object = &autoscaling::converted(autoscaling::SECOND, object);
    let target = at(object, "/spec/scaleTargetRef");
    let min = at(object, "/spec/minReplicas").as_i64().map_or_else(|| "<unset>".to_owned(), |min| min.to_string());
    vec![
        json!(name(object)),
        json!(format!("{}/{}", text(target, "/kind"), text(target, "/name"))),
        json!(targets(object)),
        json!(min),
        json!(int(object, "/spec/maxReplicas")),
        json!(int(object, "/status/currentReplicas")),
        json!(age(object, now)),
    ]
}

fn targets(object: &Value) -> String {
    let current = list(object, "/status/currentMetrics");
    let metrics = list(object, "/spec/metrics").iter().enumerate();
    let shown: Vec<_> = metrics.map(|(idx, metric)| target(metric, current.get(idx))).collect();
    if shown.is_empty() { NONE.to_owned() } else { joined_with_more(&shown, ", ", METRICS_SHOWN_MAX) }
}

fn target(metric: &Value, current: Option<&Value>) -> String {
    match text(metric, "/type") {
        "External" => amount(metric, current, "external"),
        "Object" => amount(metric, current, "object"),
        "Pods" => average(metric, current, "pods"),
        "Resource" => format!("{}: {}", text(metric, "/resource/name"), usage(metric, current, "resource")),
        "ContainerResource" => {
            format!("{}: {}", text(metric, "/containerResource/name"), usage(metric, current, "containerResource"))
        }
        _ => "<unknown type>".to_owned(),
    }
}

/// A value, or an average that says so.
fn amount(metric: &Value, current: Option<&Value>, source: &str) -> String {
    if at(metric, &format!("/{source}/target/averageValue")).is_null() {
        compared(metric, current, source, "value")
    } else {
        format!("{} (avg)", average(metric, current, source))
    }
}

fn average(metric: &Value, current: Option<&Value>, source: &str) -> String {
    compared(metric, current, source, "averageValue")
}

fn compared(metric: &Value, current: Option<&Value>, source: &str, field: &str) -> String {
    let current = current.and_then(|current| scalar(at(current, &format!("/{source}/current/{field}"))));
    let target = scalar(at(metric, &format!("/{source}/target/{field}")));
    format!("{}/{}", current.as_deref().unwrap_or(UNKNOWN), target.as_deref().unwrap_or("0"))
}

fn usage(metric: &Value, current: Option<&Value>, source: &str) -> String {
    if !at(metric, &format!("/{source}/target/averageValue")).is_null() {
        return average(metric, current, source);
    }
    let current = current.and_then(|current| percent(at(current, &format!("/{source}/current/averageUtilization"))));
    let target = percent(at(metric, &format!("/{source}/target/averageUtilization")));
    format!("{}/{}", current.as_deref().unwrap_or(UNKNOWN), target.as_deref().unwrap_or("<auto>"))
}

fn percent(value: &Value) -> Option<String> {
    value.as_i64().map(|number| format!("{number}%"))
}
