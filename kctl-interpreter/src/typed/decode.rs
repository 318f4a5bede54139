//! Decoding: turns JSON into a value of a Go type, by the rules of the two decoders that Karmada uses: `fromUnstructured` in
//! `k8s.io/apimachinery/pkg/runtime/converter.go`, and `encoding/json/decode.go`.
//!
//! | | `runtime.DefaultUnstructuredConverter` | `encoding/json` |
//! |---|---|---|
//! | used for | objects | statuses that clusters reported, Pod templates, parts of answers such as label selectors |
//! | names of fields | exact | in any case |
//! | number that is too large | wraps | error |
//! | number with a point, such as `4.0` | an integer if it is whole | error for integer fields |

use serde_json::{Map, Number, Value};

use super::{
    table::{self, Field, Type},
    time,
};
use crate::quantity::{self, QuantityError};

/// The error of a value that does not have its type. The messages are close to Go's, which do not name the field.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {problem}", field = if field.is_empty() { "the object" } else { field })]
pub(crate) struct DecodeError {
    /// The path from the decoded value, such as `spec.replicas`.
    field: String,
    /// The mismatch.
    problem: Problem,
}

/// The mismatch between a JSON value and a Go type. Each variant is one message of one of Go's
/// decoders.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    /// The converter has no conversion between two scalars, for example from a string to a number.
    #[error("cannot convert {found} to {expected}")]
    NotConvertible { found: &'static str, expected: &'static str },
    // Go's message has a colon for structs only.
    /// The converter expects a struct, slice or map.
    #[error("cannot restore {expected} from{} {found}", if *expected == "struct" { ":" } else { "" })]
    NotRestorable { found: &'static str, expected: &'static str },
    /// The converter does not know how to read the type from this value.
    #[error("unrecognized type: {expected}, and the field has a {found}")]
    NotRecognized { found: &'static str, expected: &'static str },
    /// `encoding/json` found another type, or a number out of range.
    #[error("json: cannot unmarshal {found} into a field of type {expected}")]
    NotOfType { found: String, expected: &'static str },
    /// The string is not an RFC 3339 time.
    #[error("{0}")]
    TimeInvalid(String),
    /// The value is not a quantity.
    #[error(transparent)]
    QuantityInvalid(#[from] QuantityError),
}

/// The decoder whose rules apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// `runtime.DefaultUnstructuredConverter`.
    Converter,
    /// `encoding/json`.
    Json,
}

/// Fields to keep, by struct. A struct that is not listed keeps all fields.
///
/// Fields that are not kept are also checked, which costs a fraction of decoding them.
pub(crate) type Parts = &'static [(&'static str, &'static [&'static str])];

/// Decodes an object (`fromUnstructured` in `k8s.io/apimachinery/pkg/runtime/converter.go`).
pub(super) fn convert(r#type: &Type, value: &Value, parts: Parts) -> Result<Value, DecodeError> {
    decode(Rules::Converter, parts, r#type, value)
}

/// Decodes JSON as `encoding/json` does.
pub(super) fn unmarshal(r#type: &Type, value: &Value, parts: Parts) -> Result<Value, DecodeError> {
    decode(Rules::Json, parts, r#type, value)
}

/// Decodes a value of any type. Null is the zero value of every type.
fn decode(rules: Rules, parts: Parts, r#type: &Type, value: &Value) -> Result<Value, DecodeError> {
    if value.is_null() {
        return Ok(table::zero(r#type));
    }
    match (r#type, value) {
        (Type::Pointer(inner), _) => decode(rules, parts, inner, value),
        (Type::Struct(name), Value::Object(object)) => decode_struct(rules, parts, name, object),
        (Type::List(item), Value::Array(items)) => {
            let decoded = items.iter().enumerate().map(|(idx, value)| {
                decode(rules, parts, item, value).map_err(|error| error.prefix_path(&format!("[{idx}]")))
            });
            decoded.collect()
        }
        (Type::Map(item), Value::Object(entries)) => {
            let decoded = entries.iter().map(|(name, value)| {
                let value = decode(rules, parts, item, value).map_err(|error| error.prefix_path(name))?;
                Ok((name.clone(), value))
            });
            decoded.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        _ => decode_scalar(rules, r#type, value).map_err(DecodeError::from_problem),
    }
}

/// Returns the error that [`decode`] would return, without building a value.
fn check(rules: Rules, r#type: &Type, value: &Value) -> Result<(), DecodeError> {
    match (r#type, value) {
        (_, Value::Null)
        | (Type::Any, _)
        | (Type::Bool, Value::Bool(_))
        | (Type::String | Type::IntOrString, Value::String(_)) => Ok(()),
        (Type::Pointer(inner), _) => check(rules, inner, value),
        (Type::Struct(name), Value::Object(object)) => {
            let fields = table::fields(name);
            let values = fields.iter().zip(field_values(rules, fields, object));
            values.filter_map(|(field, value)| Some((field, value?))).try_for_each(|(field, value)| {
                check(rules, &field.r#type, value).map_err(|error| error.prefix_path(field.name))
            })
        }
        (Type::List(item), Value::Array(items)) => items.iter().enumerate().try_for_each(|(idx, value)| {
            check(rules, item, value).map_err(|error| error.prefix_path(&format!("[{idx}]")))
        }),
        (Type::Map(item), Value::Object(entries)) => entries
            .iter()
            .try_for_each(|(name, value)| check(rules, item, value).map_err(|error| error.prefix_path(name))),
        _ => decode_scalar(rules, r#type, value).map(drop).map_err(DecodeError::from_problem),
    }
}

/// Returns the given value of each field of a struct, in the order of the fields.
///
/// It iterates over the given names, because most fields of a type are absent. With the rules of
/// `encoding/json` a second pass looks for names in another case.
fn field_values<'a>(rules: Rules, fields: &[Field], object: &'a Map<String, Value>) -> Vec<Option<&'a Value>> {
    let mut values = vec![None; fields.len()];
    let mut is_folded = false;
    for (name, value) in object {
        match fields.iter().position(|field| field.name == name) {
            Some(index) => values[index] = Some(value),
            None => is_folded = rules == Rules::Json,
        }
    }
    // Names match in any case too. Nearly all objects only have names in the spelling of the type, so this second pass
    // is rare.
    if is_folded {
        for (field, value) in fields.iter().zip(&mut values).filter(|(_, value)| value.is_none()) {
            *value = object.iter().find(|(name, _)| name.eq_ignore_ascii_case(field.name)).map(|(_, value)| value);
        }
    }
    values
}

/// Decodes a struct: kept fields are built, all others are checked, and nil fields are left out.
fn decode_struct(rules: Rules, parts: Parts, name: &str, object: &Map<String, Value>) -> Result<Value, DecodeError> {
    let fields = table::fields(name);
    let given = field_values(rules, fields, object);
    let wanted_fields = parts.iter().find(|(of, _)| *of == name).map(|(_, wanted_fields)| *wanted_fields);
    let mut decoded = Vec::with_capacity(wanted_fields.map_or(fields.len(), <[_]>::len));
    for (field, value) in fields.iter().zip(given) {
        let is_wanted = wanted_fields.is_none_or(|wanted_fields| wanted_fields.contains(&field.name));
        let value = match value {
            Some(value) if is_wanted => {
                decode(rules, parts, &field.r#type, value).map_err(|error| error.prefix_path(field.name))?
            }
            Some(value) => {
                check(rules, &field.r#type, value).map_err(|error| error.prefix_path(field.name))?;
                continue;
            }
            None if is_wanted => table::zero(&field.r#type),
            None => continue,
        };
        if !value.is_null() {
            decoded.push((field.name.to_owned(), value));
        }
    }
    Ok(Value::Object(decoded.into_iter().collect()))
}

/// Decodes a value that is not a struct, slice, map or pointer.
fn decode_scalar(rules: Rules, r#type: &Type, value: &Value) -> Result<Value, Problem> {
    match (r#type, value) {
        (Type::Any, value) => Ok(value.clone()),
        (Type::Bool, Value::Bool(_)) | (Type::String | Type::IntOrString, Value::String(_)) => Ok(value.clone()),
        (Type::Int32 | Type::Int64, Value::Number(number)) => integer(rules, r#type, number),
        (Type::IntOrString, Value::Number(number)) => {
            integer(Rules::Json, &Type::Int32, &convert_number(rules, number))
        }
        (Type::Time, Value::String(text)) => {
            let time = time::parse(text).map_err(Problem::TimeInvalid)?;
            Ok(time.map_or(Value::Null, |time| time.to_string().into()))
        }
        (Type::Quantity, Value::String(text)) => Ok(quantity::reserialize(text.trim())?.into()),
        (Type::Quantity, Value::Number(number)) => {
            Ok(quantity::reserialize(&convert_number(rules, number).to_string())?.into())
        }
        (Type::Quantity, _) => Err(QuantityError::FormatWrong.into()),
        _ => Err(mismatch(rules, r#type, value)),
    }
}

/// Returns a number as a custom decoder of Go receives it. The converter passes 4.0 as 4, because
/// it has only the value; `encoding/json` passes the digits.
#[expect(clippy::cast_possible_truncation, reason = "only numbers that fit are converted")]
fn convert_number(rules: Rules, number: &Number) -> Number {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0; // 2^53: up to here every whole float is that number
    match number.as_f64() {
        Some(float)
            if rules == Rules::Converter && number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT_MAX =>
        {
            Number::from(float as i64)
        }
        _ => number.clone(),
    }
}

/// Decodes an integer. The converter wraps a number that is too large, as a Go conversion does;
/// `encoding/json` rejects it.
#[expect(clippy::cast_possible_truncation, reason = "that is what Go does, too")]
fn integer(rules: Rules, r#type: &Type, number: &Number) -> Result<Value, Problem> {
    let expected = type_name(r#type);
    let narrow = |number: i64| if *r#type == Type::Int32 { i64::from(number as i32) } else { number };
    match (number.as_i64(), rules) {
        (Some(whole), Rules::Converter) => Ok(narrow(whole).into()),
        (Some(whole), Rules::Json) if narrow(whole) == whole => Ok(whole.into()),
        (_, Rules::Json) => Err(Problem::NotOfType { found: format!("number {number}"), expected }),
        (None, Rules::Converter) => match number.as_f64() {
            // 2^63 is the first number that does not fit. Go's result depends on the processor; on amd64 it is the
            // least `int64`.
            Some(float) if float >= 9_223_372_036_854_775_808.0 => Ok(narrow(i64::MIN).into()),
            Some(float) if float.trunc().total_cmp(&float).is_eq() => Ok(narrow(float as i64).into()),
            _ => Err(Problem::NotConvertible { found: "float64", expected }),
        },
    }
}

/// Returns the error of a value with another type, in the words of the decoder.
fn mismatch(rules: Rules, r#type: &Type, value: &Value) -> Problem {
    let expected = type_name(r#type);
    let json = rules == Rules::Json || matches!(r#type, Type::Time | Type::IntOrString);
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) if json => "number",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) if json => "array",
        Value::Array(_) => "slice",
        Value::Object(_) if json => "object",
        Value::Object(_) => "map",
    };
    match r#type {
        _ if json => Problem::NotOfType { found: found.to_owned(), expected },
        Type::Struct(_) | Type::List(_) | Type::Map(_) => Problem::NotRestorable { found, expected },
        // Go can convert a number to a string, so the converter fails at a later step, with another message.
        Type::String if found == "int64" => Problem::NotConvertible { found, expected },
        _ => Problem::NotRecognized { found, expected },
    }
}

fn type_name(r#type: &Type) -> &'static str {
    match r#type {
        Type::Any => "any",
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::IntOrString => "IntOrString",
        Type::Quantity => "Quantity",
        Type::String => "string",
        Type::Time => "Time",
        Type::List(_) => "slice",
        Type::Map(_) => "map",
        Type::Pointer(inner) => type_name(inner),
        Type::Struct(_) => "struct",
    }
}

impl DecodeError {
    /// Returns the problem of the decoded value itself.
    fn from_problem(problem: Problem) -> Self {
        Self { field: String::new(), problem }
    }

    /// Puts the name of an outer field, or `[index]`, before the path.
    fn prefix_path(mut self, outer: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{outer}{dot}{}", self.field);
        self
    }
}
