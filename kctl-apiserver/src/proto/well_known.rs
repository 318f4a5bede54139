//! Messages whose JSON differs from their fields: times, quantities, raw JSON, unions.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{fields, last, read_fields, table::Message, wire::WireValue, wire_type_error};

/// Returns a message as JSON, in the form of the `MarshalJSON` of its Go type, if it has one. Upstream: `MarshalJSON`
/// of the types in `k8s.io/apimachinery`.
pub(super) fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    // The short names of types with a special form are unique.
    match name.rsplit('.').next().unwrap_or(name) {
        "FieldsV1" | "RawExtension" | "JSON" => json(bytes),
        "Time" | "MicroTime" if bytes.is_empty() => Ok(Value::Null),
        "Time" => time(name, bytes, depth, kctl_apimachinery::time::seconds),
        "MicroTime" => time(name, bytes, depth, kctl_apimachinery::time::micros),
        "Quantity" => Ok(fields(name, bytes, depth)?.remove("string").unwrap_or_else(|| "0".into())),
        "IntOrString" => fields(name, bytes, depth).map(int_or_string),
        "JSONSchemaPropsOrArray" => fields(name, bytes, depth).map(|map| either(map, "jSONSchemas", "schema")),
        "JSONSchemaPropsOrStringArray" => fields(name, bytes, depth).map(|map| either(map, "property", "schema")),
        "JSONSchemaPropsOrBool" => {
            let mut map = fields(name, bytes, depth)?;
            map.entry("allows").or_insert(Value::Bool(false));
            Ok(either(map, "schema", "allows"))
        }
        _ => match Message::find(name).and_then(|message| message.items) {
            Some(number) => decode_strings(number, bytes),
            None => fields(name, bytes, depth).map(Value::Object),
        },
    }
}

/// Returns the value of the field that is set. Null if neither is set.
fn either(mut map: Map<String, Value>, first: &str, second: &str) -> Value {
    map.remove(first).or_else(|| map.remove(second)).unwrap_or_default()
}

/// Returns an `IntOrString`: type 1 is a string (`k8s.io/apimachinery/pkg/util/intstr`).
fn int_or_string(mut map: Map<String, Value>) -> Value {
    if map.get("type").and_then(Value::as_i64) == Some(1) {
        return map.remove("strVal").unwrap_or_else(|| "".into());
    }
    map.remove("intVal").unwrap_or_else(|| 0.into())
}

/// Returns the raw JSON in field 1, or null if it is absent.
fn json(bytes: &[u8]) -> Result<Value, String> {
    let raw = last(&read_fields(bytes)?, 1)?;
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|error| format!("invalid JSON: {error}"))
}

/// Formats a time. Whole seconds, or microseconds for `MicroTime`, always in UTC.
fn time(name: &str, bytes: &[u8], depth: usize, format: fn(Timestamp) -> String) -> Result<Value, String> {
    let map = fields(name, bytes, depth)?;
    let part = |key: &str| map.get(key).and_then(Value::as_i64).unwrap_or_default();
    let nanos = i32::try_from(part("nanos")).unwrap_or_default();
    let time = Timestamp::new(part("seconds"), nanos).map_err(|error| error.to_string())?;
    Ok(format(time).into())
}

/// Returns the list of strings that a message represents.
fn decode_strings(number: u32, bytes: &[u8]) -> Result<Value, String> {
    let mut texts = Vec::new();
    for wire in read_fields(bytes)?.remove(&number).unwrap_or_default() {
        let WireValue::Bytes(text) = wire else { return Err(wire_type_error(&wire)) };
        texts.push(String::from_utf8_lossy(text).into());
    }
    Ok(Value::Array(texts))
}
