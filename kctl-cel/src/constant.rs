//! Conversions of constants at compile time: `int('a')` fails before any object is evaluated.
//!
//! Upstream: `maybeOptimizeConstUnary` in `interpreter/decorators.go` of cel-go, and the types of `common/types`.

use kctl_apimachinery::{duration, strconv, time};

/// Run-time name of timestamps.
const TIMESTAMP: &str = "google.protobuf.Timestamp";
/// Run-time name of durations.
const DURATION: &str = "google.protobuf.Duration";

/// The value of a constant expression, as far as later conversions depend on it.
#[derive(Debug)]
pub(crate) enum Constant {
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A double, which may be infinite or not a number.
    Double(f64),
    /// A string whose value is known.
    Text(String),
    /// Bytes, which need not be UTF-8.
    Bytes(Vec<u8>),
    /// A string whose value was not computed, such as `string(duration('1h'))`. Conversions to numbers fail for it.
    UnknownText,
    /// A value of another type, by the name of the type.
    Other(&'static str),
}

impl Constant {
    /// Returns the run-time name of the type.
    fn type_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) | Self::UnknownText => "string",
            Self::Bytes(_) => "bytes",
            Self::Other(name) => name,
        }
    }
}

/// Applies a conversion to a constant. Returns `None` if the function is not a conversion.
///
/// # Errors
/// The conversion fails: a rule with such a call can't be compiled.
pub(crate) fn convert(function: &str, constant: Constant) -> Result<Option<Constant>, String> {
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
            Constant::UnknownText => Some(Constant::Bytes(Vec::new())),
            _ => None,
        },
        "timestamp" => to_timestamp(constant)?,
        "duration" => to_duration(constant)?,
        _ => return Ok(None),
    };
    made.map(Some).ok_or_else(|| format!("no such overload: {function}({from})"))
}

/// Returns the error for a string that can't be parsed.
fn conversion_error<T>(from: &str, to: &str) -> Result<T, String> {
    Err(format!("type conversion error from '{from}' to '{to}'"))
}

/// Converts to `int`. Strings are decimal (`strconv.ParseInt`); doubles are truncated towards zero, and fail out of
/// range.
fn to_int(constant: Constant) -> Result<Option<Constant>, String> {
    let overflow = || "integer overflow".to_owned();
    Ok(Some(Constant::Int(match constant {
        Constant::Int(number) => number,
        Constant::Uint(number) => i64::try_from(number).map_err(|_| overflow())?,
        Constant::Double(number) => double_to_int(number).ok_or_else(overflow)?,
        Constant::Text(text) => text.parse().or_else(|_| conversion_error("string", "int"))?,
        Constant::UnknownText => return conversion_error("string", "int"),
        // No later conversion depends on the number.
        Constant::Other(TIMESTAMP | DURATION) => 0,
        _ => return Ok(None),
    })))
}

/// Converts to `uint`. Unlike `int`, it accepts no plus sign (`strconv.ParseUint`), and fails for negative numbers.
fn to_uint(constant: Constant) -> Result<Option<Constant>, String> {
    let overflow = || "unsigned integer overflow".to_owned();
    Ok(Some(Constant::Uint(match constant {
        Constant::Uint(number) => number,
        Constant::Int(number) => u64::try_from(number).map_err(|_| overflow())?,
        Constant::Double(number) => double_to_uint(number).ok_or_else(overflow)?,
        Constant::Text(text) => strconv::parse_uint(&text).map_or_else(|| conversion_error("string", "uint"), Ok)?,
        Constant::UnknownText => return conversion_error("string", "uint"),
        _ => return Ok(None),
    })))
}

/// Converts a double to `int`, truncated towards zero; `None` out of range. The bounds are cel-go's, for constants and
/// for values at run time: it excludes `i64::MIN` too.
///
/// ```
/// assert_eq!((kctl_cel::double_to_int(-1.9), kctl_cel::double_to_int(1e19)), (Some(-1), None));
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "it is within the bounds")]
pub fn double_to_int(number: f64) -> Option<i64> {
    (number.abs() < 9_223_372_036_854_775_808.0).then_some(number as i64)
}

/// Converts a double to `uint`, truncated towards zero; `None` out of range. The bounds are cel-go's, for constants and
/// for values at run time: it excludes all negative numbers.
///
/// ```
/// assert_eq!((kctl_cel::double_to_uint(1.9), kctl_cel::double_to_uint(-0.5)), (Some(1), None));
/// ```
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the bounds")]
pub fn double_to_uint(number: f64) -> Option<u64> {
    (0.0..18_446_744_073_709_551_616.0).contains(&number).then_some(number as u64)
}

/// Converts to `double`. Large integers lose digits, which is not an error.
#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_double(constant: Constant) -> Result<Option<Constant>, String> {
    Ok(Some(Constant::Double(match constant {
        Constant::Double(number) => number,
        Constant::Int(number) => number as f64,
        Constant::Uint(number) => number as f64,
        Constant::Text(text) => strconv::parse_float(&text).map_or_else(|| conversion_error("string", "double"), Ok)?,
        Constant::UnknownText => return conversion_error("string", "double"),
        _ => return Ok(None),
    })))
}

/// Converts to `string`. Bytes have to be UTF-8.
///
/// The result of times, durations and booleans is a string whose value is not needed.
fn to_string(constant: Constant) -> Result<Option<Constant>, String> {
    Ok(Some(Constant::Text(match constant {
        Constant::Text(text) => text,
        Constant::Int(number) => number.to_string(),
        Constant::Uint(number) => number.to_string(),
        Constant::Double(number) => strconv::format_float(number),
        Constant::Bytes(bytes) => {
            String::from_utf8(bytes).map_err(|_| "invalid UTF-8 in bytes, cannot convert to string".to_owned())?
        }
        Constant::UnknownText | Constant::Other(TIMESTAMP | DURATION | "bool") => {
            return Ok(Some(Constant::UnknownText));
        }
        Constant::Other(_) => return Ok(None),
    })))
}

/// Converts to `bool` from the strings of `strconv.ParseBool`.
fn to_bool(constant: Constant) -> Result<Option<Constant>, String> {
    match constant {
        Constant::Text(text) if strconv::parse_bool(&text).is_some() => Ok(Some(Constant::Other("bool"))),
        Constant::Text(_) => conversion_error("string", "bool"),
        Constant::Other("bool") => Ok(Some(constant)),
        // `string(true)` converts back, so an unknown string may be valid.
        Constant::UnknownText => Ok(Some(Constant::Other("bool"))),
        _ => Ok(None),
    }
}

/// Converts to a timestamp, from RFC 3339 or from seconds since 1970 within the years 1 to 9999.
fn to_timestamp(constant: Constant) -> Result<Option<Constant>, String> {
    match constant {
        Constant::Text(text) if time::parse_with_offset(&text).is_none() => conversion_error("string", TIMESTAMP),
        Constant::Int(seconds) if !time::SECONDS.contains(&seconds) => Err("timestamp overflow".into()),
        Constant::Text(_) | Constant::Int(_) | Constant::UnknownText | Constant::Other(TIMESTAMP) => {
            Ok(Some(Constant::Other(TIMESTAMP)))
        }
        _ => Ok(None),
    }
}

/// Converts to a duration from Go's notation. An integer has no unit, so it fails.
fn to_duration(constant: Constant) -> Result<Option<Constant>, String> {
    match constant {
        Constant::Text(text) if duration::parse(&text).is_none() => conversion_error("string", DURATION),
        Constant::Int(_) => conversion_error("int", DURATION),
        Constant::Text(_) | Constant::UnknownText | Constant::Other(DURATION) => Ok(Some(Constant::Other(DURATION))),
        _ => Ok(None),
    }
}
