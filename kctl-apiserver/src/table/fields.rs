//! Reads fields of an object without failing: a missing field, or one of another type, reads as empty.
//!
//! Cells are made from these functions, so an incomplete object yields a row instead of a panic.

use serde_json::{Map, Value};

pub(crate) use crate::conditions::{condition, is_true};

/// Represents every missing value, so that readers can return a reference.
static ABSENT: Value = Value::Null;

/// Returns the value at the JSON pointer, or null.
pub(crate) fn value_at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&ABSENT)
}

/// Returns the string at the pointer, or the empty string.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value_at(value, pointer).as_str().unwrap_or_default()
}

/// Returns the string at the pointer, or `otherwise` if it is missing or empty.
pub(crate) fn text_or<'a>(value: &'a Value, pointer: &str, otherwise: &'a str) -> &'a str {
    match text(value, pointer) {
        "" => otherwise,
        found => found,
    }
}

/// Returns the first of the pointers that holds a string that is not empty.
pub(crate) fn first_text<'a>(value: &'a Value, pointers: &[&str]) -> &'a str {
    pointers.iter().map(|pointer| text(value, pointer)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Returns the integer at the pointer, or zero.
pub(crate) fn int(value: &Value, pointer: &str) -> i64 {
    value_at(value, pointer).as_i64().unwrap_or_default()
}

/// Returns the boolean at the pointer, or `false`.
pub(crate) fn flag(value: &Value, pointer: &str) -> bool {
    value_at(value, pointer).as_bool().unwrap_or_default()
}

/// Returns the items at the pointer, or an empty slice.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value_at(value, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// Returns how many entries the object at the pointer has.
pub(crate) fn entries(value: &Value, pointer: &str) -> usize {
    value_at(value, pointer).as_object().map_or(0, Map::len)
}

/// Returns the strings of a list; other items are left out.
pub(crate) fn texts<'a>(value: &'a Value, pointer: &str) -> Vec<&'a str> {
    list(value, pointer).iter().filter_map(Value::as_str).collect()
}

/// Returns a quantity or an int-or-string in its printed form; `None` for other types.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the name of the object.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// Returns `true` if the object has a deletion timestamp.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// Returns the annotation, or the empty string. Its key needs no escape, unlike in a pointer.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    value_at(object, "/metadata/annotations").get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Maximum number of list items that a cell shows (`formatHosts`, `formatEndpoints`, `formatDiscoveryPorts`,
/// `formatDiscoveryEndpoints`).
pub(crate) const SHOWN_MAX: usize = 3;

/// Joins the first `max` items and appends the number of those left out, as `a,b,c + 2 more...`.
pub(crate) fn joined_with_more(items: &[String], separator: &str, max: usize) -> String {
    let shown = items.iter().take(max).map(String::as_str).collect::<Vec<_>>().join(separator);
    match items.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// Makes an object of its fields, by move.
pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
