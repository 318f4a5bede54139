//! Prints and parses values as Go does.

use serde_json::Value;

/// Writes numbers without a fraction as Go writes them in JSON: `1.0` is `1`.
pub(crate) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            // The shortest digits, then zeros: `1.2345678901234567e18` is 1234567890123456800.
            let text = whole.map(|whole| (whole + 0.0).to_string()).unwrap_or_default();
            if let Ok(whole) = text.parse::<i64>() {
                *value = whole.into();
            } else if let Ok(large) = text.parse::<u64>() {
                *value = large.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Names the type that a value is decoded to, as `%T` does.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Names the JSON type of a value as the errors of Go's decoder do.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Parses a number as `strconv.ParseUint` does, which accepts no sign.
///
/// # Errors
/// Fails if Go rejects it, too.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or_else(|| {
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing {}: {why}", quote(text))
    })
}

/// Parses a duration in nanoseconds, as `time.ParseDuration` does.
///
/// # Errors
/// Fails if Go rejects it, too.
pub(crate) fn parse_duration(text: &str) -> Result<i64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let invalid = || format!("time: invalid duration {}", quote(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1 } else { 1 };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanos = 0_i64;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        if number.matches('.').count() > 1 || !number.contains(|letter: char| letter.is_ascii_digit()) {
            return Err(invalid());
        }
        let end = after.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(text)));
        }
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
        };
        nanos = part(number, *length).and_then(|part| nanos.checked_add(part)).ok_or_else(invalid)?;
        rest = after;
    }
    Ok(sign * nanos)
}

/// A decimal number of units; nothing when it is too large.
fn part(number: &str, length: u64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let mut nanos = whole.checked_mul(length)?;
    let mut place = length;
    for digit in fraction.bytes() {
        place /= 10;
        nanos = nanos.checked_add(u64::from(digit - b'0') * place)?;
    }
    i64::try_from(nanos).ok()
}

/// Quotes a string as `strconv.Quote` does.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\x00"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            _ if is_printable(c) => out.push(c),
            _ if c.is_ascii() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            _ if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Returns `true` if Go prints a character in quotes. Combining marks are printed by Go; Rust escapes them at the
/// start of a string, hence the letter before.
fn is_printable(c: char) -> bool {
    c != '\0' && !format!("a{c}").escape_debug().to_string().contains("\\u{")
}

/// Prints a float as `%v` does: the shortest digits, with an exponent below 1e-4 and from 1e21.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e6).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number}")
}

/// Prints a value as in field errors: quoted strings, plain numbers, and JSON for everything else.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.to_string(),
            (None, Some(number)) => float(number),
            (None, None) => number.to_string(),
        },
        _ => json(value),
    }
}

/// Returns the character of a backslash escape, in Go and in CEL.
pub(crate) fn escaped(letter: char) -> Option<char> {
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

/// Characters that `json.Marshal` escapes although JSON does not require it: they could end a script in HTML.
const ESCAPED: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// Serializes JSON as `json.Marshal` does.
pub(crate) fn json(value: &Value) -> String {
    let mut text = value.to_string();
    for (sign, escaped) in ESCAPED {
        if text.contains(sign) {
            text = text.replace(sign, escaped);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_in_go() {
        assert_eq!(quote("x\"\n\u{2028}é\u{1}"), "\"x\\\"\\n\\u2028é\\x01\"");
        assert_eq!(quote("a\0"), "\"a\\x00\"");
        assert_eq!(quote("e\u{301}\u{7f}"), "\"e\u{301}\\x7f\"");
    }

    #[test]
    fn durations_are_read_as_in_go() {
        for (text, nanos) in
            [("0", 0), ("5s", 5_000_000_000), ("-1.5h", -5_400_000_000_000), ("1m.5s", 60_500_000_000), ("1ns", 1)]
        {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        }
        for (text, why) in [
            ("x", "invalid duration \"x\""),
            ("", "invalid duration \"\""),
            (".s", "invalid duration \".s\""),
            ("\"", "invalid duration \"\\\"\""),
            ("5", "missing unit in duration \"5\""),
            ("5 s", "unknown unit \" s\" in duration \"5 s\""),
            ("1e3s", "unknown unit \"e\" in duration \"1e3s\""),
            ("999999999999h", "invalid duration \"999999999999h\""),
        ] {
            assert_eq!(parse_duration(text), Err(format!("time: {why}")), "{text}");
        }
    }

    #[test]
    fn floats_have_an_exponent_only_at_the_ends() {
        for (number, text) in
            [(0.5, "0.5"), (1.0, "1"), (-1e6, "-1e+06"), (999_999.0, "999999"), (1e-4, "0.0001"), (1e-5, "1e-05")]
        {
            assert_eq!(float(number), text);
        }
    }
}
