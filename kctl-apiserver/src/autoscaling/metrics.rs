//! Converts metrics between fields (version 2) and the annotation of version 1. One table names the fields of each
//! source.
//!
//! The names of version 1 differ by source, and its order of fields decides the bytes of the
//! annotation. A row of the tables is a name in version 1, the JSON pointer in version 2, and the
//! form of the value:
//!
//! ```text
//! ("targetAverageValue", "/target/averageValue", Shape::MaybeAmount)
//! ```

use serde_json::{Value, json};

use super::annotations::{self, Shape, ordered};
use crate::quantity;

/// A source of metrics: its type and field, and its fields in version 1 with their pointer in version 2, in the order
/// in which Go writes them.
///
/// The first string is the type, as in `"type": "Pods"`, and the second the field, as in
/// `"pods": {...}`.
type Source = (&'static str, &'static str, &'static [(&'static str, &'static str, Shape)]);

/// Sources of `spec.metrics`: the target values.
pub(super) const SPEC: [Source; 5] = [
    (
        "Object",
        "object",
        &[
            ("target", "/describedObject", Shape::Reference),
            ("metricName", "/metric/name", Shape::Text),
            ("targetValue", "/target/value", Shape::Amount),
            ("selector", "/metric/selector", Shape::Selector),
            ("averageValue", "/target/averageValue", Shape::MaybeAmount),
        ],
    ),
    (
        "Pods",
        "pods",
        &[
            ("metricName", "/metric/name", Shape::Text),
            ("targetAverageValue", "/target/averageValue", Shape::Amount),
            ("selector", "/metric/selector", Shape::Selector),
        ],
    ),
    (
        "Resource",
        "resource",
        &[
            ("name", "/name", Shape::Text),
            ("targetAverageUtilization", "/target/averageUtilization", Shape::MaybeNumber),
            ("targetAverageValue", "/target/averageValue", Shape::MaybeAmount),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            ("name", "/name", Shape::Text),
            ("targetAverageUtilization", "/target/averageUtilization", Shape::MaybeNumber),
            ("targetAverageValue", "/target/averageValue", Shape::MaybeAmount),
            ("container", "/container", Shape::Text),
        ],
    ),
    (
        "External",
        "external",
        &[
            ("metricName", "/metric/name", Shape::Text),
            ("metricSelector", "/metric/selector", Shape::Selector),
            ("targetValue", "/target/value", Shape::MaybeAmount),
            ("targetAverageValue", "/target/averageValue", Shape::MaybeAmount),
        ],
    ),
];

/// Sources of `status.currentMetrics`: the values that the controller has observed.
pub(super) const STATUS: [Source; 5] = [
    (
        "Object",
        "object",
        &[
            ("target", "/describedObject", Shape::Reference),
            ("metricName", "/metric/name", Shape::Text),
            ("currentValue", "/current/value", Shape::Amount),
            ("selector", "/metric/selector", Shape::Selector),
            ("averageValue", "/current/averageValue", Shape::MaybeAmount),
        ],
    ),
    (
        "Pods",
        "pods",
        &[
            ("metricName", "/metric/name", Shape::Text),
            ("currentAverageValue", "/current/averageValue", Shape::Amount),
            ("selector", "/metric/selector", Shape::Selector),
        ],
    ),
    (
        "Resource",
        "resource",
        &[
            ("name", "/name", Shape::Text),
            ("currentAverageUtilization", "/current/averageUtilization", Shape::MaybeNumber),
            ("currentAverageValue", "/current/averageValue", Shape::Amount),
        ],
    ),
    (
        "ContainerResource",
        "containerResource",
        &[
            ("name", "/name", Shape::Text),
            ("currentAverageUtilization", "/current/averageUtilization", Shape::MaybeNumber),
            ("currentAverageValue", "/current/averageValue", Shape::Amount),
            ("container", "/container", Shape::Text),
        ],
    ),
    (
        "External",
        "external",
        &[
            ("metricName", "/metric/name", Shape::Text),
            ("metricSelector", "/metric/selector", Shape::Selector),
            ("currentValue", "/current/value", Shape::Amount),
            ("currentAverageValue", "/current/averageValue", Shape::MaybeAmount),
        ],
    ),
];

/// Formats metrics as an annotation.
///
/// `sources` is `SPEC` or `STATUS`.
pub(super) fn written(metrics: &[Value], sources: &[Source]) -> String {
    let all: Vec<String> = metrics.iter().map(|metric| one_written(metric, sources)).collect();
    annotations::escaped(&format!("[{}]", all.join(",")))
}

/// Formats one metric.
///
/// `type` comes first, and each source that is present follows in the order of `sources`.
fn one_written(metric: &Value, sources: &[Source]) -> String {
    let mut parts = vec![("type", Some(annotations::text(&metric["type"])))];
    for (_, field, fields) in sources {
        let source = &metric[*field];
        let inner = fields.iter().map(|(name, pointer, shape)| (*name, shape.written(source.pointer(pointer))));
        parts.push((*field, source.is_object().then(|| ordered(inner))));
    }
    ordered(parts)
}

/// Parses metrics; `None` if the annotation is invalid.
///
/// One metric that cannot be read makes the whole annotation invalid.
pub(super) fn read(annotation: &str, sources: &[Source]) -> Option<Vec<Value>> {
    let metrics: Vec<Value> = serde_json::from_str(annotation).ok()?;
    metrics.iter().map(|metric| one_read(metric, sources)).collect()
}

/// Parses one metric.
///
/// Unknown fields are ignored. A source that is present is read even if `type` names another one.
fn one_read(metric: &Value, sources: &[Source]) -> Option<Value> {
    let kind = Shape::Text.read(&metric["type"]).ok()?;
    let mut object = json!({ "type": kind });
    let present = sources.iter().filter(|(_, field, _)| metric.get(field).is_some_and(|source| !source.is_null()));
    for (_, field, fields) in present {
        let source = metric[*field].as_object()?;
        let mut converted = json!({});
        for (name, pointer, shape) in *fields {
            if let Some(value) = shape.read(source.get(*name).unwrap_or(&Value::Null)).ok()? {
                put(&mut converted, pointer, value);
            }
        }
        aim(field, &mut converted);
        object[*field] = converted;
    }
    Some(object)
}

/// Sets a value at a pointer of one or two names.
///
/// Parents are created if they are absent.
fn put(object: &mut Value, path: &str, value: Value) {
    let names = path.trim_start_matches('/').split_once('/');
    match names {
        Some((part, field)) => object[part][field] = value,
        None => object[path.trim_start_matches('/')] = value,
    }
}

/// Sets `target.type`, which version 1 does not have, by the amounts that are present.
///
/// | source | type |
/// |---|---|
/// | Object | `AverageValue` with an average, otherwise `Value` |
/// | External | `Value` with a value, otherwise `AverageValue` |
/// | Resource, `ContainerResource` | `Utilization` with a utilization, otherwise `AverageValue` |
/// | Pods | `AverageValue` |
///
/// Current values have no type.
fn aim(source: &str, converted: &mut Value) {
    if converted.get("current").is_some() {
        return;
    }
    let target = &mut converted["target"];
    let has = |field: &str| !target[field].is_null();
    let kind = match source {
        "object" if !has("averageValue") => "Value",
        "external" if has("value") => "Value",
        "resource" | "containerResource" if has("averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    // Version 1 always has a value, so 0 stands for an absent one.
    let is_nothing = target["value"].as_str().and_then(quantity::amount) == Some(0);
    if source == "object"
        && kind == "AverageValue"
        && is_nothing
        && let Some(fields) = target.as_object_mut()
    {
        fields.remove("value");
    }
    target["type"] = kind.into();
}
