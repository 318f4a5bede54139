//! Constants that are converted before there is a value: reads one and the function that it is given to, hands on what comes out,
//! or the error of cel-go.
//!
//! Upstream: `maybeOptimizeConstUnary` in `interpreter/decorators.go` of cel-go, and the types of `common/types`.

use crate::{pattern, times};

const TRUTHS: [&str; 12] = ["1", "t", "T", "true", "TRUE", "True", "0", "f", "F", "false", "FALSE", "False"];
const TIMESTAMP: &str = "google.protobuf.Timestamp";
const DURATION: &str = "google.protobuf.Duration";
/// The numbers between which upstream converts one with a point.
const INT: f64 = 9_223_372_036_854_775_807.0;
const UINT: f64 = 18_446_744_073_709_551_615.0;

/// A value that is known before there is one.
#[derive(Debug)]
pub(crate) enum Constant {
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A text that is no number and no truth.
    Words,
    /// Of another type, by its name.
    Other(&'static str),
}

impl Constant {
    /// Whether it is a pattern, if it is a text.
    pub(crate) fn is_pattern(&self) -> bool {
        if let Self::Text(text) = self { pattern::pattern(text).is_ok() } else { true }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) | Self::Words => "string",
            Self::Bytes(_) => "bytes",
            Self::Other(name) => name,
        }
    }
}

/// What a function makes of a constant; none where it converts nothing.
///
/// # Errors
/// It makes nothing of this one.
pub(crate) fn converted(function: &str, constant: Constant) -> Result<Option<Constant>, String> {
    let from = constant.type_name();
    let made = match function {
        "dyn" => Some(constant),
        "type" => Some(Constant::Other("type")),
        "int" => to_int(constant)?,
        "uint" => to_uint(constant)?,
        "double" => to_double(constant)?,
        "string" => to_string(constant)?,
        "bool" => to_bool(constant)?,
        "bytes" => match constant {
            Constant::Text(text) => Some(Constant::Bytes(text.into_bytes())),
            Constant::Bytes(_) => Some(constant),
            Constant::Words => Some(Constant::Bytes(Vec::new())),
            _ => None,
        },
        "timestamp" => to_timestamp(constant)?,
        "duration" => to_duration(constant)?,
        _ => return Ok(None),
    };
    made.map(Some).ok_or_else(|| format!("no such overload: {function}({from})"))
}

fn wrong<T>(from: &str, to: &str) -> Result<T, String> {
    Err(format!("type conversion error from '{from}' to '{to}'"))
}

#[expect(clippy::cast_possible_truncation, reason = "it is within the bounds")]
fn to_int(constant: Constant) -> Result<Option<Constant>, String> {
    let overflow = || "integer overflow".to_owned();
    Ok(Some(Constant::Int(match constant {
        Constant::Int(number) => number,
        Constant::Uint(number) => i64::try_from(number).map_err(|_| overflow())?,
        Constant::Double(number) if number.abs() < INT => number as i64,
        Constant::Double(_) => return Err(overflow()),
        Constant::Text(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return wrong("string", "int"),
        },
        Constant::Words => return wrong("string", "int"),
        // Which number that is decides nothing that follows.
        Constant::Other(TIMESTAMP | DURATION) => 0,
        _ => return Ok(None),
    })))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the bounds")]
fn to_uint(constant: Constant) -> Result<Option<Constant>, String> {
    let overflow = || "unsigned integer overflow".to_owned();
    Ok(Some(Constant::Uint(match constant {
        Constant::Uint(number) => number,
        Constant::Int(number) => u64::try_from(number).map_err(|_| overflow())?,
        Constant::Double(number) if (0.0..UINT).contains(&number) => number as u64,
        Constant::Double(_) => return Err(overflow()),
        Constant::Text(text) => match text.parse() {
            Ok(number) if !text.starts_with('+') => number,
            _ => return wrong("string", "uint"),
        },
        Constant::Words => return wrong("string", "uint"),
        _ => return Ok(None),
    })))
}

#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_double(constant: Constant) -> Result<Option<Constant>, String> {
    Ok(Some(Constant::Double(match constant {
        Constant::Double(number) => number,
        Constant::Int(number) => number as f64,
        Constant::Uint(number) => number as f64,
        Constant::Text(text) => match double(&text) {
            Some(number) => number,
            None => return wrong("string", "double"),
        },
        Constant::Words => return wrong("string", "double"),
        _ => return Ok(None),
    })))
}

/// The number that Go's `ParseFloat` reads, which knows digits of sixteen, too (`0x1p-2`).
///
/// ```
/// assert_eq!(kctl_cel::double("0x1.8p3"), Some(12.0));
/// assert_eq!(kctl_cel::double("1e400"), None);
/// ```
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        return of_sixteen(digits).map(|number| sign * number);
    }
    if unsigned.starts_with(['_', '-', '+']) || unsigned.ends_with('_') {
        return None;
    }
    let is_named = unsigned.to_ascii_lowercase().starts_with("inf");
    let number: f64 = unsigned.replace('_', "").parse().ok()?;
    (is_named || !number.is_infinite()).then_some(sign * number)
}

#[expect(clippy::cast_precision_loss, reason = "more digits than a number has are not written")]
fn of_sixteen(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let number = mantissa as f64 * 2_f64.powi(exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?);
    number.is_finite().then_some(number)
}

fn to_string(constant: Constant) -> Result<Option<Constant>, String> {
    Ok(Some(Constant::Text(match constant {
        Constant::Text(text) => text,
        Constant::Int(number) => number.to_string(),
        Constant::Uint(number) => number.to_string(),
        Constant::Double(number) => number.to_string(),
        Constant::Bytes(bytes) => {
            String::from_utf8(bytes).map_err(|_| "invalid UTF-8 in bytes, cannot convert to string".to_owned())?
        }
        Constant::Words | Constant::Other(TIMESTAMP | DURATION | "bool") => return Ok(Some(Constant::Words)),
        Constant::Other(_) => return Ok(None),
    })))
}

fn to_bool(constant: Constant) -> Result<Option<Constant>, String> {
    match constant {
        Constant::Text(text) if TRUTHS.contains(&text.as_str()) => Ok(Some(Constant::Other("bool"))),
        Constant::Text(_) => wrong("string", "bool"),
        Constant::Other("bool") => Ok(Some(constant)),
        // It may be one that was written so.
        Constant::Words => Ok(Some(Constant::Other("bool"))),
        _ => Ok(None),
    }
}

fn to_timestamp(constant: Constant) -> Result<Option<Constant>, String> {
    match constant {
        Constant::Text(text) if times::timestamp(&text).is_none() => wrong("string", TIMESTAMP),
        Constant::Int(seconds) if !times::SECONDS.contains(&seconds) => Err("timestamp overflow".into()),
        Constant::Text(_) | Constant::Int(_) | Constant::Words | Constant::Other(TIMESTAMP) => {
            Ok(Some(Constant::Other(TIMESTAMP)))
        }
        _ => Ok(None),
    }
}

fn to_duration(constant: Constant) -> Result<Option<Constant>, String> {
    match constant {
        Constant::Text(text) if times::duration(&text).is_none() => wrong("string", DURATION),
        Constant::Int(_) => wrong("int", DURATION),
        Constant::Text(_) | Constant::Words | Constant::Other(DURATION) => Ok(Some(Constant::Other(DURATION))),
        _ => Ok(None),
    }
}
