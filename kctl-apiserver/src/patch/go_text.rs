//! JSON values as the real server's error texts show them: reads a value, hands on Go's `%v` of it.

use serde_json::{Map, Value};

/// Shows a value as `map[a:1 b:[x y]]`.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items),
        Value::Object(fields) => map(fields),
    }
}

/// Shows the items of a list.
pub(super) fn list(items: &[Value]) -> String {
    format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(" "))
}

/// Shows the fields of an object, sorted by name.
pub(super) fn map(fields: &Map<String, Value>) -> String {
    let mut shown: Vec<String> = fields.iter().map(|(name, field)| format!("{name}:{}", value(field))).collect();
    shown.sort_unstable();
    format!("map[{}]", shown.join(" "))
}

/// Names the JSON type of a value as the errors of Go's decoder do.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Names the Go type that a value is decoded to.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
