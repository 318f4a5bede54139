//! Annotations of `HorizontalPodAutoscalers`, formatted as Go's `encoding/json` does: fields in the order of their
//! type, and `<`, `>`, `&` escaped.
//! A real kube-apiserver reads the annotations that this server writes, and vice versa. Their bytes matter, too: a
//! client that compares objects must not see a change.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use crate::{go, quantity};

/// The type of a field in an annotation.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// A string; an absent one is written as `""`.
    Text,
    /// A number that may be absent.
    MaybeNumber,
    /// A quantity; an absent one is written as `0`.
    Amount,
    /// A quantity that may be absent.
    MaybeAmount,
    /// A label selector.
    Selector,
    /// A reference to an object.
    Reference,
}

impl Shape {
    /// Formats a value as JSON; `None` leaves the field out.
    pub(super) fn format(self, value: Option<&Value>) -> Option<String> {
        let value = value.unwrap_or(&Value::Null);
        match self {
            Self::Text => Some(text(value)),
            Self::Amount if value.is_null() => Some(text(&"0".into())),
            _ if value.is_null() => None,
            Self::Amount | Self::MaybeAmount | Self::MaybeNumber => Some(value.to_string()),
            Self::Selector => Some(selector(value)),
            Self::Reference => Some(format_object([
                ("kind", Some(text(&value["kind"]))),
                ("name", Some(text(&value["name"]))),
                ("apiVersion", non_empty(&value["apiVersion"])),
            ])),
        }
    }

    /// Reads a value of an annotation; `None` if the field was left out. Quantities get their canonical form, and may
    /// be JSON numbers.
    pub(super) fn read(self, value: &Value) -> Result<Option<Value>, AnnotationTypeError> {
        let amount = |text: &str| quantity::canonical(text).map(Value::from).ok_or(AnnotationTypeError);
        Ok(match (self, value) {
            (Self::Text, Value::Null) => Some("".into()),
            (Self::Amount, Value::Null) => Some("0".into()),
            (_, Value::Null) => None,
            (Self::Amount | Self::MaybeAmount, Value::String(text)) => Some(amount(text)?),
            (Self::Amount | Self::MaybeAmount, Value::Number(number)) => Some(amount(&number.to_string())?),
            (Self::MaybeNumber, Value::Number(number)) => {
                number.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or(AnnotationTypeError)?;
                Some(value.clone())
            }
            (Self::Text, Value::String(_)) | (Self::Selector | Self::Reference, Value::Object(_)) => {
                Some(value.clone())
            }
            _ => return Err(AnnotationTypeError),
        })
    }

    /// Returns the value that `read` returns, treating a wrong type as absent.
    fn read_valid(self, value: &Value) -> Option<Value> {
        self.read(value).ok().flatten()
    }
}

/// The error about a value in an annotation that has another type than its field. The whole annotation is then ignored,
/// as upstream ignores one that cannot be decoded.
pub(super) struct AnnotationTypeError;

/// Formats a label selector. Empty parts are left out; the empty selector is `{}`.
fn selector(value: &Value) -> String {
    let some = |field: &str, is_empty: bool| (!is_empty).then(|| value[field].to_string());
    let labels = value["matchLabels"].as_object().is_none_or(Map::is_empty);
    let expressions = value["matchExpressions"].as_array().is_none_or(Vec::is_empty);
    format_object([
        ("matchLabels", some("matchLabels", labels)),
        ("matchExpressions", some("matchExpressions", expressions)),
    ])
}

/// Returns a JSON object with its fields in this order; absent ones are left out.
pub(super) fn format_object(fields: impl IntoIterator<Item = (impl Display, Option<String>)>) -> String {
    let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", value?)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Formats a string; an absent one is empty.
pub(super) fn text(value: &Value) -> String {
    if value.is_string() { value.to_string() } else { "\"\"".to_owned() }
}

/// Formats a string, or returns `None` for `omitempty`.
fn non_empty(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(|_| value.to_string())
}

/// Formats conditions. `reason` and `message` are left out if they are empty; `lastTransitionTime` may be `null`.
pub(super) fn conditions_text(conditions: &[Value]) -> String {
    let condition_text = |condition: &Value| {
        format_object([
            ("type", Some(text(&condition["type"]))),
            ("status", Some(text(&condition["status"]))),
            ("lastTransitionTime", Some(condition["lastTransitionTime"].to_string())),
            ("reason", non_empty(&condition["reason"])),
            ("message", non_empty(&condition["message"])),
        ])
    };
    go::escape_html(format!("[{}]", conditions.iter().map(condition_text).collect::<Vec<_>>().join(",")))
}

/// Parses conditions; `None` if the annotation is invalid. A list without conditions counts as absent.
pub(super) fn conditions(annotation: &str) -> Option<Value> {
    let conditions: Vec<Value> = serde_json::from_str(annotation).ok()?;
    let read_condition = |condition: &Value| {
        let mut read = json!({ "lastTransitionTime": condition["lastTransitionTime"] });
        for field in ["type", "status", "reason", "message"] {
            let value = Shape::Text.read_valid(&condition[field])?;
            if value != "" || ["type", "status"].contains(&field) {
                read[field] = value;
            }
        }
        Some(read)
    };
    let all: Option<Vec<Value>> = conditions.iter().map(read_condition).collect();
    all.filter(|all| !all.is_empty()).map(Value::Array)
}

/// Returns `behavior` as JSON with the field names of Go's internal type, which has no JSON tags. Absent numbers are
/// `null` there, except for the numbers of a policy, which are 0.
pub(super) fn behavior_text(behavior: &Value) -> String {
    let policy = |policy: &Value| {
        let number = |field: &str| Some(policy[field].as_i64().unwrap_or(0).to_string());
        format_object([
            ("Type", Some(text(&policy["type"]))),
            ("Value", number("value")),
            ("PeriodSeconds", number("periodSeconds")),
        ])
    };
    let rules = |rules: &Value| {
        if rules.is_null() {
            return Some("null".to_owned());
        }
        let policies = rules["policies"].as_array();
        let policies = policies.map(|all| format!("[{}]", all.iter().map(policy).collect::<Vec<_>>().join(",")));
        Some(format_object([
            ("StabilizationWindowSeconds", Some(rules["stabilizationWindowSeconds"].to_string())),
            ("SelectPolicy", Some(rules["selectPolicy"].to_string())),
            ("Policies", Some(policies.unwrap_or_else(|| "null".to_owned()))),
            ("Tolerance", Some(rules["tolerance"].to_string())),
        ]))
    };
    let whole = format_object([("ScaleUp", rules(&behavior["scaleUp"])), ("ScaleDown", rules(&behavior["scaleDown"]))]);
    go::escape_html(whole)
}

/// Parses the behavior; `None` if the annotation is invalid. Go ignores the case of names.
pub(super) fn behavior(annotation: &str) -> Option<Value> {
    let written: Value = serde_json::from_str(annotation).ok()?;
    let mut behavior = json!({});
    for name in ["scaleUp", "scaleDown"] {
        let rules = field(&written, name);
        if !rules.is_null() {
            behavior[name] = scaling_rules(rules)?;
        }
    }
    behavior.as_object().is_some_and(|fields| !fields.is_empty()).then_some(behavior)
}

/// Returns a field whose name matches in any case, as Go's decoder does. The last of several fields is used.
fn field<'a>(object: &'a Value, name: &str) -> &'a Value {
    let mut fields = object.as_object().into_iter().flatten();
    fields.rfind(|(key, _)| key.eq_ignore_ascii_case(name)).map_or(&Value::Null, |(_, value)| value)
}

/// Parses the rules of one direction. Numbers of a policy that are absent are 0.
fn scaling_rules(written: &Value) -> Option<Value> {
    let mut rules = json!({});
    written.as_object()?;
    let shapes = [
        ("stabilizationWindowSeconds", Shape::MaybeNumber),
        ("selectPolicy", Shape::Text),
        ("tolerance", Shape::MaybeAmount),
    ];
    for (name, shape) in shapes {
        let value = field(written, name);
        if !value.is_null() {
            rules[name] = shape.read_valid(value)?;
        }
    }
    let policies = field(written, "policies");
    if !policies.is_null() {
        let read = |policy: &Value| {
            let number = |name: &str| match field(policy, name) {
                Value::Null => Some(0.into()),
                number => Shape::MaybeNumber.read_valid(number),
            };
            let kind = Shape::Text.read_valid(field(policy, "type"))?;
            Some(json!({ "type": kind, "value": number("value")?, "periodSeconds": number("periodSeconds")? }))
        };
        let policies: Option<Vec<Value>> = policies.as_array()?.iter().map(read).collect();
        rules["policies"] = policies?.into();
    }
    Some(rules)
}
