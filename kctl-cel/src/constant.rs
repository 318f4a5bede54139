//! Conversions of constants at compile time: `int('a')` fails before any object is evaluated.
//!
//! Upstream: `maybeOptimizeConstUnary` in `interpreter/decorators.go` of cel-go, and the types of `common/types`.

use kctl_apimachinery::{duration, strconv, time};

/// Run-time name of timestamps.
const TIMESTAMP: &str = "google.protobuf.Timestamp";
/// Run-time name of durations.
const DURATION: &str = "google.protobuf.Duration";
/// Bounds between which cel-go converts a double to an integer.
const INT: f64 = 9_223_372_036_854_775_807.0;
/// The same for unsigned integers.
const UINT: f64 = 18_446_744_073_709_551_615.0;

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
#[expect(clippy::cast_possible_truncation, reason = "it is within the bounds")]
fn to_int(constant: Constant) -> Result<Option<Constant>, String> {
    let overflow = || "integer overflow".to_owned();
    Ok(Some(Constant::Int(match constant {
        Constant::Int(number) => number,
        Constant::Uint(number) => i64::try_from(number).map_err(|_| overflow())?,
        Constant::Double(number) if number.abs() < INT => number as i64,
        Constant::Double(_) => return Err(overflow()),
        Constant::Text(text) => text.parse().or_else(|_| conversion_error("string", "int"))?,
        Constant::UnknownText => return conversion_error("string", "int"),
        // No later conversion depends on the number.
        Constant::Other(TIMESTAMP | DURATION) => 0,
        _ => return Ok(None),
    })))
}

/// Converts to `uint`. Unlike `int`, it accepts no plus sign (`strconv.ParseUint`), and fails for negative numbers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within the bounds")]
fn to_uint(constant: Constant) -> Result<Option<Constant>, String> {
    let overflow = || "unsigned integer overflow".to_owned();
    Ok(Some(Constant::Uint(match constant {
        Constant::Uint(number) => number,
        Constant::Int(number) => u64::try_from(number).map_err(|_| overflow())?,
        Constant::Double(number) if (0.0..UINT).contains(&number) => number as u64,
        Constant::Double(_) => return Err(overflow()),
        Constant::Text(text) => strconv::parse_uint(&text).map_or_else(|| conversion_error("string", "uint"), Ok)?,
        Constant::UnknownText => return conversion_error("string", "uint"),
        _ => return Ok(None),
    })))
}

/// Converts to `double`. Large integers lose digits, which is not an error.
#[expect(clippy::cast_precision_loss, reason = "as upstream has it")]
fn to_double(constant: Constant) -> Result<Option<Constant>, String> {
    Ok(Some(Constant::Double(match constant {
        Constant::Double(number) => number,
        Constant::Int(number) => number as f64,
        Constant::Uint(number) => number as f64,
        Constant::Text(text) => double(&text).map_or_else(|| conversion_error("string", "double"), Ok)?,
        Constant::UnknownText => return conversion_error("string", "double"),
        _ => return Ok(None),
    })))
}

/// Parses a number as Go's `strconv.ParseFloat` does, including hexadecimal ones (`0x1p-2`) and underscores.
///
/// Returns `None` for a number that is out of range.
///
/// ```
/// assert_eq!(kctl_cel::double("0x1.8p3"), Some(12.0));
/// assert_eq!(kctl_cel::double("1_000.5"), Some(1000.5));
/// assert_eq!(kctl_cel::double("1__0"), None);
/// assert_eq!(kctl_cel::double("1e400"), None);
/// ```
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned.starts_with(['-', '+']) || !are_underscores_valid(unsigned) {
        return None;
    }
    let plain = unsigned.replace('_', "").to_ascii_lowercase();
    if let Some(digits) = plain.strip_prefix("0x") {
        return hexadecimal(digits).map(|number| sign * number);
    }
    // A number that is not one has no sign.
    if plain == "nan" && unsigned.len() < text.len() {
        return None;
    }
    let number: f64 = plain.parse().ok()?;
    (plain.starts_with("inf") || !number.is_infinite()).then_some(sign * number)
}

/// Returns `true` if each underscore is between two digits, or between the prefix `0x` and a digit (`underscoreOK` of
/// Go's `strconv`).
fn are_underscores_valid(unsigned: &str) -> bool {
    let bytes = unsigned.as_bytes();
    let is_hexadecimal = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let is_digit = |idx: usize| {
        bytes.get(idx).is_some_and(|byte| if is_hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() })
    };
    let mut underscores = unsigned.match_indices('_').map(|(idx, _)| idx);
    underscores.all(|idx| {
        let follows_prefix = is_hexadecimal && idx == 2;
        is_digit(idx + 1) && (follows_prefix || idx > 0 && is_digit(idx - 1))
    })
}

#[expect(clippy::cast_precision_loss, reason = "more digits than a number has are not written")]
/// Parses the digits and the binary exponent of a hexadecimal number.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = format!("{whole}{fraction}");
    // `from_str_radix` accepts a sign.
    let mantissa = u64::from_str_radix(&mantissa, 16).ok().filter(|_| !mantissa.starts_with('+'))?;
    let exponent: i32 = exponent.parse().ok()?;
    let number = mantissa as f64 * 2_f64.powi(exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?);
    number.is_finite().then_some(number)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_parsed_as_go_parses_them() {
        for (text, expected) in [
            ("1_23.50_0_0e+1_2", Some(1.235e14)),
            ("-1.5", Some(-1.5)),
            ("+1.", Some(1.0)),
            (".5", Some(0.5)),
            ("-Inf", Some(f64::NEG_INFINITY)),
            ("+infinity", Some(f64::INFINITY)),
            ("0x_1p0", Some(1.0)),
            ("0X1_0P+1_0", Some(16384.0)),
            ("0x.8p1", Some(1.0)),
            ("-0x1p-2", Some(-0.25)),
        ] {
            assert_eq!(double(text), expected, "{text}");
        }
        assert!(double("NaN").is_some_and(f64::is_nan));
        for text in [
            "", "+", "_1", "1_", "1__0", "1_.5", "1._5", "1.5_e1", "1e_5", "1e+_5", "1e5_", "--1", "+-1", "in_f",
            "infi", "-nan", "+NaN", "0x", "0x1", "0x+1p0", "0x.+1p0", "0x-1p0", "0_x1p0", "0x1_p0", "0x1p_1", "0x1p0_",
            "0xp1", "0b1", "1 ",
        ] {
            assert_eq!(double(text), None, "{text}");
        }
    }
}
