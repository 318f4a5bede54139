//! Conversions between the types of CEL.
//!
//! `kube-cel` has these conversions too, with other errors and other bounds.

use std::sync::Arc;

use kctl_apimachinery::strconv;
use kctl_cel::{double_to_int, double_to_uint};
use kube_cel::cel::Value as Cel;

use super::{EvalResult, NO_OVERLOAD, OVERFLOW};

/// Returns the result of a type conversion such as `int(x)`; `None` if `name` is not a conversion of this module.
pub(super) fn to(name: &str, value: &Cel) -> Option<EvalResult> {
    Some(match (name, value) {
        ("int", _) => to_int(value),
        ("uint", _) => to_uint(value),
        ("double", _) => to_double(value),
        ("string", _) => return to_string(value),
        ("bytes", Cel::String(text)) => Ok(Cel::Bytes(Arc::new(text.as_bytes().to_vec()))),
        ("bytes", Cel::Bytes(_)) => Ok(value.clone()),
        _ => return None,
    })
}

/// Returns the error of a string that does not parse as the expected type.
fn invalid(text: &str, expected: &str) -> String {
    format!("{text:?} is not a valid {expected}")
}

/// Converts to `int`: timestamps to Unix seconds, durations to nanoseconds, floats by truncation.
fn to_int(value: &Cel) -> EvalResult {
    Ok(Cel::Int(match value {
        Cel::Int(number) => *number,
        Cel::UInt(number) => i64::try_from(*number).map_err(|_| OVERFLOW)?,
        Cel::Float(number) => double_to_int(*number).ok_or(OVERFLOW)?,
        Cel::String(text) => text.parse().map_err(|_| invalid(text, "int"))?,
        Cel::Timestamp(time) => time.timestamp(),
        Cel::Duration(duration) => duration.num_nanoseconds().ok_or(OVERFLOW)?,
        _ => return Err(NO_OVERLOAD.into()),
    }))
}

/// Converts to `uint`; a negative number overflows. Strings have no sign (`strconv.ParseUint`).
fn to_uint(value: &Cel) -> EvalResult {
    Ok(Cel::UInt(match value {
        Cel::UInt(number) => *number,
        Cel::Int(number) => u64::try_from(*number).map_err(|_| OVERFLOW)?,
        Cel::Float(number) => double_to_uint(*number).ok_or(OVERFLOW)?,
        Cel::String(text) => strconv::parse_uint(text).ok_or_else(|| invalid(text, "uint"))?,
        _ => return Err(NO_OVERLOAD.into()),
    }))
}

/// Converts to `double`. Strings are parsed as by Go's `ParseFloat`.
#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_double(value: &Cel) -> EvalResult {
    Ok(Cel::Float(match value {
        Cel::Float(number) => *number,
        Cel::Int(number) => *number as f64,
        Cel::UInt(number) => *number as f64,
        Cel::String(text) => strconv::parse_float(text).ok_or_else(|| invalid(text, "double"))?,
        _ => return Err(NO_OVERLOAD.into()),
    }))
}

/// Converts to `string`; `None` for values of libraries. Timestamps are RFC 3339 with as many digits as needed,
/// durations seconds with the suffix `s`, such as `1.5s`.
#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_string(value: &Cel) -> Option<EvalResult> {
    let text = match value {
        Cel::String(_) => return Some(Ok(value.clone())),
        Cel::Bool(value) => value.to_string(),
        Cel::Int(number) => number.to_string(),
        Cel::UInt(number) => number.to_string(),
        Cel::Float(number) => strconv::format_float(*number),
        Cel::Bytes(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => text,
            Err(_) => return Some(Err("the bytes are not valid UTF-8".into())),
        },
        Cel::Timestamp(time) => {
            let local = with_fraction(&time.format("%Y-%m-%dT%H:%M:%S").to_string(), time.timestamp_subsec_nanos());
            let zone = if time.offset().local_minus_utc() == 0 { "Z".to_owned() } else { time.offset().to_string() };
            local + &zone
        }
        Cel::Duration(duration) => {
            let (seconds, nanoseconds) = (duration.num_seconds(), f64::from(duration.subsec_nanos()));
            format!("{}s", seconds as f64 + nanoseconds / 1e9)
        }
        _ => return None,
    };
    Some(Ok(Cel::String(Arc::new(text))))
}

/// Returns the value as the CEL function `string` converts it; `None` if it cannot be converted.
pub(super) fn text(value: &Cel) -> Option<String> {
    if let Some(Ok(Cel::String(text))) = to_string(value) { Some(text.to_string()) } else { None }
}

/// Appends the fraction of a second without trailing zeros.
fn with_fraction(whole: &str, nanoseconds: u32) -> String {
    let digits = format!("{nanoseconds:09}");
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() { whole.to_owned() } else { format!("{whole}.{digits}") }
}
