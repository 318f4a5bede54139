//! Numbers and escapes as Go reads and prints them.
//!
//! Upstream: `strconv` (`FormatFloat`, `ParseBool`, `ParseFloat`, `ParseUint`), the verb `%v` of `fmt`, `floatEncoder` of
//! `encoding/json`.
//!
//! ```
//! use kctl_apimachinery::strconv;
//!
//! assert_eq!(strconv::format_float(1e6), "1e+06");
//! assert_eq!(strconv::format_json_float(1e6), "1000000");
//! ```

/// Formats a float as the verb `%v` does: the shortest digits, with an exponent of at least two digits below 1e-4 and
/// from 1e6.
///
/// ```
/// use kctl_apimachinery::strconv::format_float;
///
/// assert_eq!((format_float(999_999.0).as_str(), format_float(1e-5).as_str()), ("999999", "1e-05"));
/// assert_eq!(format_float(f64::INFINITY), "+Inf");
/// ```
#[must_use]
pub fn format_float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    if number == 0.0 || (1e-4..1e6).contains(&number.abs()) {
        return number.to_string();
    }
    go_exponent(&format!("{number:e}"))
}

/// Converts an exponent of Rust to one of Go, with a sign and at least two digits: `1.5e-7` to `1.5e-07`.
///
/// ```
/// assert_eq!(kctl_apimachinery::strconv::go_exponent("1.5e7"), "1.5e+07");
/// ```
#[must_use]
pub fn go_exponent(scientific: &str) -> String {
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific.to_owned() };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Prints a float as `json.Marshal` does: the shortest digits, with an exponent below 1e-6 and from 1e21.
///
/// JSON has neither infinity nor NaN; for them the result is not JSON.
///
/// ```
/// use kctl_apimachinery::strconv::format_json_float;
///
/// assert_eq!((format_json_float(2.0).as_str(), format_json_float(1e21).as_str(), format_json_float(1e-7).as_str()), ("2", "1e+21", "1e-7"));
/// ```
#[must_use]
pub fn format_json_float(number: f64) -> String {
    if number == 0.0 || (1e-6..1e21).contains(&number.abs()) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// Parses a boolean from the strings that Go accepts (`strconv.ParseBool`).
///
/// ```
/// use kctl_apimachinery::strconv::parse_bool;
///
/// assert_eq!((parse_bool("T"), parse_bool("0"), parse_bool("yes")), (Some(true), Some(false), None));
/// ```
#[must_use]
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Parses an unsigned integer, which has no sign (`strconv.ParseUint`).
///
/// ```
/// use kctl_apimachinery::strconv::parse_uint;
///
/// assert_eq!((parse_uint("07"), parse_uint("+7"), parse_uint("-7")), (Some(7), None, None));
/// ```
#[must_use]
pub fn parse_uint(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Parses a floating-point number, which may be hexadecimal (`0x1p-2`) and have underscores (`strconv.ParseFloat`).
/// Returns `None` for a number that is out of range.
///
/// ```
/// use kctl_apimachinery::strconv::parse_float;
///
/// assert_eq!((parse_float("0x1.8p3"), parse_float("1_000.5")), (Some(12.0), Some(1000.5)));
/// assert_eq!((parse_float("1__0"), parse_float("1e400")), (None, None));
/// ```
#[must_use]
pub fn parse_float(text: &str) -> Option<f64> {
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

/// Parses the digits and the binary exponent of a hexadecimal number.
#[expect(clippy::cast_precision_loss, reason = "more digits than a number has are not written")]
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

/// Returns the character of a one-letter escape in a string literal of Go or CEL, such as `\n`; `None` for other
/// letters.
///
/// ```
/// use kctl_apimachinery::strconv::unescape_letter;
///
/// assert_eq!((unescape_letter('n'), unescape_letter('\\'), unescape_letter('x')), (Some('\n'), Some('\\'), None));
/// ```
#[must_use]
pub fn unescape_letter(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_an_exponent_only_at_the_ends() {
        for (number, text) in [
            (0.5, "0.5"),
            (1.0, "1"),
            (0.0, "0"),
            (-0.0, "-0"),
            (-1e6, "-1e+06"),
            (999_999.0, "999999"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1e100, "1e+100"),
            (1_234_567.5, "1.2345675e+06"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(format_float(number), text);
        }
    }

    #[test]
    fn only_extreme_json_floats_have_an_exponent() {
        for (number, text) in [
            (2.0, "2"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.5e300, "-1.5e+300"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(format_json_float(number), text);
        }
    }

    #[test]
    fn floats_are_parsed_as_go_parses_them() {
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
            assert_eq!(parse_float(text), expected, "{text}");
        }
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
        for text in [
            "", "+", "_1", "1_", "1__0", "1_.5", "1._5", "1.5_e1", "1e_5", "1e+_5", "1e5_", "--1", "+-1", "in_f",
            "infi", "-nan", "+NaN", "0x", "0x1", "0x+1p0", "0x.+1p0", "0x-1p0", "0_x1p0", "0x1_p0", "0x1p_1", "0x1p0_",
            "0xp1", "0b1", "1 ",
        ] {
            assert_eq!(parse_float(text), None, "{text}");
        }
    }
}
