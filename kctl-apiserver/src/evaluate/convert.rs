//! Conversions between types, with the errors of upstream.

use std::sync::Arc;

use kube_cel::cel::Value as Cel;

use super::{NO_OVERLOAD, Said};
use crate::go;

/// What a function makes of a value if it is a conversion that is done here.
pub(super) fn to(name: &str, value: &Cel) -> Option<Said> {
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

fn wrong<T>(from: &str, to: &str) -> Result<T, String> {
    Err(format!("type conversion error from '{from}' to '{to}'"))
}

#[expect(clippy::cast_possible_truncation, reason = "it is within the bounds")]
fn to_int(value: &Cel) -> Said {
    let overflow = || "integer overflow".to_owned();
    Ok(Cel::Int(match value {
        Cel::Int(number) => *number,
        Cel::UInt(number) => i64::try_from(*number).map_err(|_| overflow())?,
        // The bounds of upstream, which are beyond what a float can tell apart.
        Cel::Float(number) if number.abs() < 9_223_372_036_854_775_807.0 => *number as i64,
        Cel::Float(_) => return Err(overflow()),
        Cel::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return wrong("string", "int"),
        },
        Cel::Timestamp(time) => time.timestamp(),
        Cel::Duration(duration) => duration.num_nanoseconds().ok_or_else(overflow)?,
        _ => return Err(NO_OVERLOAD.into()),
    }))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the bounds")]
fn to_uint(value: &Cel) -> Said {
    let overflow = || "unsigned integer overflow".to_owned();
    Ok(Cel::UInt(match value {
        Cel::UInt(number) => *number,
        Cel::Int(number) => u64::try_from(*number).map_err(|_| overflow())?,
        Cel::Float(number) if (0.0..18_446_744_073_709_551_615.0).contains(number) => *number as u64,
        Cel::Float(_) => return Err(overflow()),
        Cel::String(text) => match text.parse() {
            Ok(number) if !text.starts_with('+') => number,
            _ => return wrong("string", "uint"),
        },
        _ => return Err(NO_OVERLOAD.into()),
    }))
}

#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_double(value: &Cel) -> Said {
    Ok(Cel::Float(match value {
        Cel::Float(number) => *number,
        Cel::Int(number) => *number as f64,
        Cel::UInt(number) => *number as f64,
        Cel::String(text) => match kctl_cel::double(text) {
            Some(number) => number,
            None => return wrong("string", "double"),
        },
        _ => return Err(NO_OVERLOAD.into()),
    }))
}

/// None for the values of libraries.
#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_string(value: &Cel) -> Option<Said> {
    let text = match value {
        Cel::String(_) => return Some(Ok(value.clone())),
        Cel::Bool(value) => value.to_string(),
        Cel::Int(number) => number.to_string(),
        Cel::UInt(number) => number.to_string(),
        Cel::Float(number) => go::float(*number),
        Cel::Bytes(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => text,
            Err(_) => return Some(Err("invalid UTF-8 in bytes, cannot convert to string".into())),
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

fn with_fraction(whole: &str, nanoseconds: u32) -> String {
    let digits = format!("{nanoseconds:09}");
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() { whole.to_owned() } else { format!("{whole}.{digits}") }
}
