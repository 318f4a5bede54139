//! Converts metrics between fields (version 2) and the annotation of version 1.
//!
//! One table names the fields of each source.

use serde_json::{Value, json};

use super::annotations::{self, Shape, format_object};
use crate::{go, json_path::set, quantity};

/// A field of a source: its name in version 1, its JSON pointer in version 2, and its form in a target and in a current
/// value. `{}` in name and pointer is replaced by `target` or `current`.
type Row = (&'static str, &'static str, Shape, Shape);

/// The sources of metrics by their field, as in `"pods": {...}`. The fields are in the order of Go, which decides the
/// bytes of the annotation.
const SOURCES: [(&str, &[Row]); 5] = [
    (
        "object",
        &[
            ("target", "/describedObject", Shape::Reference, Shape::Reference),
            ("metricName", "/metric/name", Shape::Text, Shape::Text),
            ("{}Value", "/{}/value", Shape::Amount, Shape::Amount),
            ("selector", "/metric/selector", Shape::Selector, Shape::Selector),
            ("averageValue", "/{}/averageValue", Shape::MaybeAmount, Shape::MaybeAmount),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name", Shape::Text, Shape::Text),
            ("{}AverageValue", "/{}/averageValue", Shape::Amount, Shape::Amount),
            ("selector", "/metric/selector", Shape::Selector, Shape::Selector),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name", Shape::Text, Shape::Text),
            ("{}AverageUtilization", "/{}/averageUtilization", Shape::MaybeNumber, Shape::MaybeNumber),
            ("{}AverageValue", "/{}/averageValue", Shape::MaybeAmount, Shape::Amount),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name", Shape::Text, Shape::Text),
            ("{}AverageUtilization", "/{}/averageUtilization", Shape::MaybeNumber, Shape::MaybeNumber),
            ("{}AverageValue", "/{}/averageValue", Shape::MaybeAmount, Shape::Amount),
            ("container", "/container", Shape::Text, Shape::Text),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name", Shape::Text, Shape::Text),
            ("metricSelector", "/metric/selector", Shape::Selector, Shape::Selector),
            ("{}Value", "/{}/value", Shape::MaybeAmount, Shape::Amount),
            ("{}AverageValue", "/{}/averageValue", Shape::MaybeAmount, Shape::MaybeAmount),
        ],
    ),
];

/// The values in a list of metrics.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricValues {
    /// The targets of `spec.metrics`.
    Target,
    /// The values of `status.currentMetrics`, which the controller has observed.
    Current,
}

impl MetricValues {
    /// Returns name, pointer and form of a field.
    fn field(self, &(name, pointer, target, current): &Row) -> (String, String, Shape) {
        let (word, shape) = match self {
            Self::Target => ("target", target),
            Self::Current => ("current", current),
        };
        (name.replace("{}", word), pointer.replace("{}", word), shape)
    }
}

/// Formats metrics as an annotation.
pub(super) fn format_metrics(metrics: &[Value], values: MetricValues) -> String {
    let all: Vec<String> = metrics.iter().map(|metric| format_metric(metric, values)).collect();
    go::escape_html(format!("[{}]", all.join(",")))
}

/// Formats one metric. `type` comes first, and each source that is present follows.
fn format_metric(metric: &Value, values: MetricValues) -> String {
    let mut parts = vec![("type", Some(annotations::text(&metric["type"])))];
    for (field, rows) in SOURCES {
        let source = &metric[field];
        let inner = rows.iter().map(|row| {
            let (name, pointer, shape) = values.field(row);
            (name, shape.format(source.pointer(&pointer)))
        });
        parts.push((field, source.is_object().then(|| format_object(inner))));
    }
    format_object(parts)
}

/// Parses metrics; `None` if the annotation is invalid.
pub(super) fn read(annotation: &str, values: MetricValues) -> Option<Vec<Value>> {
    let metrics: Vec<Value> = serde_json::from_str(annotation).ok()?;
    metrics.iter().map(|metric| parse_metric(metric, values)).collect()
}

/// Parses one metric. Unknown fields are ignored. A source that is present is read even if `type` names another source.
fn parse_metric(metric: &Value, values: MetricValues) -> Option<Value> {
    let kind = Shape::Text.read(&metric["type"]).ok()?;
    let mut object = json!({ "type": kind });
    for (field, rows) in SOURCES.iter().filter(|(field, _)| !metric[*field].is_null()) {
        let source = metric[*field].as_object()?;
        let mut converted = json!({});
        for row in *rows {
            let (name, pointer, shape) = values.field(row);
            if let Some(value) = shape.read(source.get(&name).unwrap_or(&Value::Null)).ok()? {
                *pointer[1..].split('/').fold(&mut converted, |part, name| &mut part[name]) = value;
            }
        }
        if values == MetricValues::Target {
            set_target_type(field, &mut converted["target"]);
        }
        object[*field] = converted;
    }
    Some(object)
}

/// Sets the type of a target, which version 1 does not have, by the amounts that are present.
fn set_target_type(source: &str, target: &mut Value) {
    let has = |field: &str| !target[field].is_null();
    let kind = match source {
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    // Version 1 always has a value, so 0 represents an absent value.
    let is_nothing = target["value"].as_str().and_then(quantity::amount) == Some(0);
    if source == "object" && kind == "AverageValue" && is_nothing {
        set(target, "value", None);
    }
    target["type"] = kind.into();
}
