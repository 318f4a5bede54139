//! Checks values against the type of their field.

use base64::{Engine, prelude::BASE64_STANDARD};
use kctl_apimachinery::time::{self, Layout};
use serde_json::Value;

use crate::{json_path::JsonPath, quantity, schema::Schema};

/// Checks that a value has the type and the format of its field. Null fits every type: it means absent.
pub(super) fn check(schema: Schema<'_>, value: &Value, path: &JsonPath<'_>) -> Result<(), String> {
    if fits(schema, value) {
        return Ok(());
    }
    let name = schema.reference().or_else(|| schema.format()).or_else(|| schema.type_name()).unwrap_or_default();
    Err(type_error(&path.to_string(), &format!("of type {name}"), value))
}

/// Returns the bytes that were sent as a list of numbers, in base64 as JSON has them. Go accepts this form for
/// `[]byte`, and a null item as 0.
///
/// # Errors
/// Fails if an item is not a byte.
pub(super) fn bytes(list: &Value, path: &JsonPath<'_>) -> Result<Value, String> {
    let byte = |item: &Value| {
        let number = if item.is_null() { Some(0) } else { item.as_u64() };
        let byte = number.and_then(|number| u8::try_from(number).ok());
        byte.ok_or_else(|| type_error(&path.to_string(), "a list of bytes", item))
    };
    let bytes: Result<Vec<u8>, String> = list.as_array().into_iter().flatten().map(byte).collect();
    Ok(BASE64_STANDARD.encode(bytes?).into())
}

/// Returns the error for a value at a path that is not of the expected type. It shows a scalar, and names the type of
/// another value.
pub(crate) fn type_error(path: &str, expected: &str, found: &Value) -> String {
    let found = match found {
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        scalar => scalar.to_string(),
    };
    format!("{path}: must be {expected}, found {found}")
}

/// Returns `true` for base64 as Go reads it: line breaks and leftover bits are ignored.
fn is_base64(text: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let bytes: Vec<u8> = text.bytes().filter(|byte| !b"\r\n".contains(byte)).collect();
    let n_digits = bytes.iter().take_while(|byte| is_digit(byte)).count();
    let padding: &[u8] = match n_digits % 4 {
        0 => b"",
        2 => b"==",
        3 => b"=",
        _ => return false,
    };
    &bytes[n_digits..] == padding
}

/// Returns `true` if a value has the type of the field.
fn fits(schema: Schema<'_>, value: &Value) -> bool {
    let format = schema.format().unwrap_or_default();
    let Some(type_name) = schema.type_name() else { return true };
    let is_quantity = schema.reference() == Some("Quantity");
    match (type_name, value) {
        ("string", Value::String(text)) => match format {
            "byte" => is_base64(text),
            "date-time" if schema.reference() == Some("MicroTime") => time::matches(text, Layout::Rfc3339Micro),
            "date-time" => time::matches(text, Layout::Rfc3339),
            _ => !is_quantity || quantity::canonical(text).is_some(),
        },
        ("string", Value::Number(number)) if format == "int-or-string" => is_int32(number),
        ("string", Value::Number(_)) => is_quantity,
        // A JSON number with a point or an exponent is not an integer, even if its value is. YAML was converted
        // earlier.
        ("integer", Value::Number(number)) if format == "int32" => is_int32(number),
        ("integer", Value::Number(number)) => number.is_i64(),
        (_, Value::Null)
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    }
}

/// Returns `true` for a number in the range of 32 bits.
fn is_int32(number: &serde_json::Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}
