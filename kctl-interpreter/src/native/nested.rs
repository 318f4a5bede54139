//! Access to fields of an object by path, by the rules of
//! `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`.
//!
//! The functions work on the JSON as it is, without a Go type. A missing path gives `None`. A value of another JSON
//! type is an error in Go's words, because Karmada returns it to the user. Each function is named after its Go
//! counterpart: [`int64`] is `NestedInt64`, [`slice`] is `NestedSlice`.

use serde_json::{Map, Value};

use super::error::NativeError;

type Result<T> = std::result::Result<T, NativeError>;

/// Returns the value at a path; `None` if a part of the path is absent or its parent is null
/// (`NestedFieldNoCopy`).
///
/// # Errors
/// A parent is neither an object nor null.
pub(super) fn field<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Value>> {
    let mut value = object;
    for (idx, name) in path.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(*name) {
                Some(inner) => value = inner,
                None => return Ok(None),
            },
            other => return Err(type_mismatch(&path[..=idx], other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

/// Returns the integer at a path. A null and a number with a fraction are errors.
pub(super) fn int64(object: &Value, path: &[&str]) -> Result<Option<i64>> {
    let read = |value: &Value| value.as_i64().ok_or_else(|| type_mismatch(path, value, "int64"));
    field(object, path)?.map(read).transpose()
}

/// Returns the string at a path. A null is an error.
pub(super) fn string<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a str>> {
    let read = |value: &'a Value| value.as_str().ok_or_else(|| type_mismatch(path, value, "string"));
    field(object, path)?.map(read).transpose()
}

/// Returns the object at a path. A null is an error.
pub(super) fn map<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Map<String, Value>>> {
    let read = |value: &'a Value| value.as_object().ok_or_else(|| type_mismatch(path, value, "map[string]interface{}"));
    field(object, path)?.map(read).transpose()
}

/// Returns the object at a path, all of whose values must be strings, such as labels.
pub(super) fn string_map<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a Map<String, Value>>> {
    let found = map(object, path)?;
    match found.iter().flat_map(|map| map.values()).find(|value| !value.is_string()) {
        Some(value) => Err(type_mismatch(path, value, "string")),
        None => Ok(found),
    }
}

/// Returns the list at a path. A null is an error.
pub(super) fn slice<'a>(object: &'a Value, path: &[&str]) -> Result<Option<&'a [Value]>> {
    let read = |value: &'a Value| value.as_array().ok_or_else(|| type_mismatch(path, value, "[]interface{}"));
    Ok(field(object, path)?.map(read).transpose()?.map(Vec::as_slice))
}

/// Sets the value at a path, and creates the objects on the way that are absent (`SetNestedField`).
///
/// # Errors
/// A parent exists and is not an object.
pub(super) fn set(object: &mut Value, path: &[&str], value: Value) -> Result<()> {
    let Some((last, parents)) = path.split_last() else { return Ok(()) };
    let mut map = object.as_object_mut();
    for (idx, name) in parents.iter().enumerate() {
        let inner = map.map(|map| map.entry(*name).or_insert_with(|| Value::Object(Map::new())));
        map = inner.and_then(Value::as_object_mut);
        if map.is_none() {
            return Err(NativeError::ParentNotMap { path: json_path(&path[..=idx]) });
        }
    }
    let map = map.ok_or_else(|| NativeError::ParentNotMap { path: json_path(&[]) })?;
    map.insert((*last).to_owned(), value);
    Ok(())
}

/// Removes the value at a path (`RemoveNestedField`). A path that leads nowhere is fine.
pub(super) fn remove(object: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, name| value.get_mut(*name));
    if let Some(map) = parent.and_then(Value::as_object_mut) {
        map.remove(*last);
    }
}

/// Returns `Kind namespace/name` of an object, as Karmada's messages have it. Absent parts are
/// empty.
pub(super) fn describe(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// Returns the error of a value with another JSON type, with Go's names of both types.
fn type_mismatch(path: &[&str], value: &Value, expected: &'static str) -> NativeError {
    let found = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        // `found` is printed by Go, with a space in `interface {}`. Expected types are written by hand, without it.
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    NativeError::FieldOfOtherType { path: json_path(path), value: value.to_string(), found, expected }
}

/// Returns a path as messages show it, such as `.spec.replicas`.
fn json_path(path: &[&str]) -> String {
    format!(".{}", path.join("."))
}
