//! Resolves plain scalars of YAML 1.1.
//!
//! Upstream: `resolve` of `go.yaml.in/yaml/v2`.
//!
//! Configuration files written for YAML 1.1 depend on these rules: `on` and `yes` are booleans, `0777` is octal, and
//! `1_000` is a number.

use serde_json::{Number, Value};

/// Words for `true`. They are also accepted capitalized, and in upper case.
const YES: [&str; 4] = ["y", "yes", "true", "on"];
/// Words for `false`.
const NO: [&str; 4] = ["n", "no", "false", "off"];

/// YAML numbers that JSON has no form for. Infinity may have a sign; `.nan` with a sign is a string.
const NOT_JSON: [&str; 12] =
    [".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"];

/// Returns the value of a scalar without quotes and tags. A scalar of no other type is a string.
///
/// # Errors
/// Fails for a number that JSON cannot express.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    let is = |word: &str| {
        let mut capital = word.to_owned();
        capital[..1].make_ascii_uppercase();
        text == word || text == capital || text == word.to_ascii_uppercase()
    };
    Ok(match text.as_bytes().first() {
        None => Value::Null,
        Some(_) if text == "~" || is("null") => Value::Null,
        Some(_) if YES.iter().any(|word| is(word)) => true.into(),
        Some(_) if NO.iter().any(|word| is(word)) => false.into(),
        Some(_) if NOT_JSON.contains(&text) => {
            return Err(format!("yaml: {text} is not a number of JSON"));
        }
        Some(b'.') => float(text).unwrap_or_else(|| text.into()),
        Some(b'+' | b'-' | b'0'..=b'9') => number(text).unwrap_or_else(|| text.into()),
        Some(_) => text.into(),
    })
}

/// Parses a number with or without a base prefix. Underscores are ignored, as in YAML 1.1. Beyond 64 bits an integer
/// becomes a float.
fn number(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    let (is_negative, digits) = match plain.strip_prefix(['+', '-']) {
        Some(digits) => (plain.starts_with('-'), digits),
        None => (false, plain.as_str()),
    };
    let based = |prefixes: [&str; 2], radix| {
        let digits = prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix))?;
        u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
    };
    let is_octal = digits.len() > 1 && digits.starts_with('0');
    let whole = based(["0x", "0X"], 16)
        .or_else(|| based(["0o", "0O"], 8))
        .or_else(|| based(["0b", "0B"], 2))
        .or_else(|| based(["0", "0"], 8).filter(|_| is_octal))
        .or_else(|| digits.parse().ok().filter(|_| !is_octal && !digits.starts_with('+')));
    let signed = whole.and_then(|whole| {
        if is_negative { 0_i64.checked_sub_unsigned(whole).map(Value::from) } else { Some(whole.into()) }
    });
    signed.or_else(|| float(&plain))
}

/// Parses a decimal number, but not the words that Rust accepts as floats.
fn float(text: &str) -> Option<Value> {
    let text = text.replace('_', "");
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let has_digits = text.trim_start_matches(['+', '-', '.']).starts_with(|letter: char| letter.is_ascii_digit());
    let number: f64 = text.parse().ok().filter(|number: &f64| is_decimal && has_digits && number.is_finite())?;
    Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_follow_yaml_1_1() {
        for (texts, value) in [
            (&["", "~", "Null"][..], json!(null)),
            (&["yes", "y"], json!(true)),
            (&["Off"], json!(false)),
            (&["0"], json!(0)),
            (&["10", "+10"], json!(10)),
            (&["-10"], json!(-10)),
            (&["010", "0o10"], json!(8)),
            (&["08"], json!(8.0)),
            (&["0x1F"], json!(31)),
            (&["-0x10"], json!(-16)),
            (&["0b11"], json!(3)),
            (&["1_000"], json!(1000)),
            (&["1e3"], json!(1000.0)),
            (&["1.0"], json!(1.0)),
            (&[".5"], json!(0.5)),
            (&["-.5"], json!(-0.5)),
            (&["99999999999999999999"], json!(1e20)),
            (&["9223372036854775808"], json!(9_223_372_036_854_775_808_u64)),
        ] {
            for text in texts {
                assert_eq!(resolve(text), Ok(value.clone()), "{text}");
            }
        }
        for text in ["nULL", "oN", "1:30", "1e400", "2020-01-01", "1.2.3", "-", "...", "inf", "nan", "é"] {
            assert_eq!(resolve(text), Ok(text.into()));
        }
        for text in ["-.nan", "+.NaN", "--.inf"] {
            assert_eq!(resolve(text), Ok(text.into()));
        }
        for text in [".inf", "+.Inf", "-.INF", ".nan", ".NaN"] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }
}
