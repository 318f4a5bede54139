//! Values that are not of the type of their field, told in the words of Go.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{
    Words, go_types,
    path::Path,
    times::{self, Layout},
};
use crate::{go, quantity, schema::Schema};

/// # Errors
/// What Go says of a value that is of a wrong type, or not in the right form.
pub(super) fn check(
    words: Words,
    schema: Schema<'_>,
    value: &Value,
    owner: &str,
    path: &Path<'_>,
) -> Result<(), String> {
    if let Some(why) = wrong_text(schema, value) {
        let reads_again = words == Words::OfConverter && schema.format() == Some("byte");
        return Err(if reads_again { format!("error decoding from json: {why}") } else { why });
    }
    if is_of_wrong_type(schema, value) {
        return Err(match words {
            Words::OfJson => cannot_unmarshal(schema, value, owner, path),
            Words::OfConverter => cannot_convert(schema, value, path),
        });
    }
    Ok(())
}

/// Bytes that were sent as a list of numbers, as JSON has them: in base64.
///
/// # Errors
/// The first item that is no byte, in Go's words.
pub(super) fn bytes(list: &Value, owner: &str, path: &Path<'_>) -> Result<Value, String> {
    let byte = |item: &Value| {
        let number = if item.is_null() { Some(0) } else { item.as_u64() };
        number.and_then(|number| u8::try_from(number).ok()).ok_or_else(|| is_not_of(item, "uint8", owner, path))
    };
    let bytes: Result<Vec<u8>, String> = list.as_array().into_iter().flatten().map(byte).collect();
    Ok(BASE64_STANDARD.encode(bytes?).into())
}

fn cannot_unmarshal(schema: Schema<'_>, value: &Value, owner: &str, path: &Path<'_>) -> String {
    if let Some(why) = no_time(schema, value) {
        return why;
    }
    is_not_of(value, &go_types::at(path).unwrap_or_else(|| go_types::plain(schema)), owner, path)
}

/// What Go says of a text that is no time.
fn no_time(schema: Schema<'_>, value: &Value) -> Option<String> {
    let text = value.as_str().filter(|_| schema.format() == Some("date-time"))?;
    times::problem(text, Layout::Seconds)
}

fn cannot_convert(schema: Schema<'_>, value: &Value, path: &Path<'_>) -> String {
    let name = go_types::at(path).unwrap_or_else(|| go_types::plain(schema));
    // These read JSON themselves.
    if ["date-time", "int-or-string"].contains(&schema.format().unwrap_or_default()) {
        let found = match value {
            Value::Number(number) if name == "int32" => format!("number {number}"),
            other => go::json_type(other).to_owned(),
        };
        let why = || format!("json: cannot unmarshal {found} into Go value of type {name}");
        return no_time(schema, value).unwrap_or_else(why);
    }
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        _ => "map",
    };
    let kind = go_types::plain(schema);
    match (found, kind.as_str()) {
        _ if schema.type_name() == Some("array") || schema.format() == Some("byte") => {
            format!("cannot restore slice from {found}")
        }
        _ if schema.has_properties() => format!("cannot restore struct from: {found}"),
        _ if schema.type_name() == Some("object") => format!("cannot restore map from {found}"),
        ("int64", "string") | ("float64", "int32" | "int64") => format!("cannot convert {found} to {name}"),
        _ => format!("unrecognized type: {kind}"),
    }
}

fn is_not_of(value: &Value, expected: &str, owner: &str, path: &Path<'_>) -> String {
    let found = match value {
        Value::Bool(_) => "bool".into(),
        Value::Number(number) if ["int32", "int64", "uint8"].contains(&expected) => format!("number {number}"),
        Value::Number(_) => "number".into(),
        Value::String(_) => "string".into(),
        Value::Array(_) => "array".into(),
        _ => "object".to_owned(),
    };
    let fields = path.fields().join(".");
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{fields} of type {expected}")
}

/// What Go says of a text that is of the right type and not in the right form.
fn wrong_text(schema: Schema<'_>, value: &Value) -> Option<String> {
    const QUANTITY: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let is = |name: &str| schema.reference() == Some(name);
    let text = match value {
        Value::String(text) => text,
        Value::Array(_) | Value::Object(_) | Value::Bool(_) if is("Quantity") => return Some(QUANTITY.into()),
        _ => return None,
    };
    if schema.format() == Some("byte") {
        return illegal_base64(text).map(|at| format!("illegal base64 data at input byte {at}"));
    }
    if is("MicroTime") {
        return times::problem(text, Layout::Micros);
    }
    if is("Quantity") && quantity::canonical(text).is_none() {
        let why = if quantity::has_unknown_suffix(text) { "unable to parse quantity's suffix" } else { QUANTITY };
        return Some(why.into());
    }
    None
}

/// Where a text stops being base64.
pub(crate) fn illegal_base64(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let n_digits = bytes.iter().take_while(|(_, byte)| byte.is_ascii_alphanumeric() || b"+/".contains(byte)).count();
    let padding = &bytes[n_digits..];
    let at = |nth: usize| padding.get(nth).map(|(at, _)| *at);
    match (padding.first(), n_digits % 4) {
        (None, 0) => None,
        (None, _) => Some(text.len() - text.len() % 4),
        (Some((_, b'=')), 2) => match padding.get(1) {
            None => Some(text.len()),
            Some((_, b'=')) => at(2),
            Some((at, _)) => Some(*at),
        },
        (Some((_, b'=')), 3) => at(1),
        (Some((at, _)), _) => Some(*at),
    }
}

fn is_of_wrong_type(schema: Schema<'_>, value: &Value) -> bool {
    let format = schema.format().unwrap_or_default();
    let Some(type_name) = schema.type_name() else { return false };
    let fits = match (type_name, value) {
        ("string", Value::String(_)) => format != "date-time" || no_time(schema, value).is_none(),
        ("string", Value::Number(number)) => match format {
            "int-or-string" => is_int32(number),
            _ => schema.reference().is_some_and(|name| name == "Quantity"),
        },
        // One with a point or an exponent is none, whatever it is worth; where YAML is read it has neither by now.
        ("integer", Value::Number(number)) => {
            if format == "int32" {
                is_int32(number)
            } else {
                number.is_i64()
            }
        }
        (_, Value::Null)
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    };
    !fits
}

fn is_int32(number: &serde_json::Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}
