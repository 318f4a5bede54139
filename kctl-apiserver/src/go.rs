//! Values as Go writes and parses them, where that decides what is stored or how an expression evaluates.

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

/// Parses a number as `strconv.ParseUint` does, which takes no signs.
pub(crate) fn parse_uint(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
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

/// Returns the character of a one-letter escape such as `\n`, in Go and in CEL; `None` for other letters.
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
    fn floats_have_an_exponent_only_at_the_ends() {
        for (number, text) in
            [(0.5, "0.5"), (1.0, "1"), (-1e6, "-1e+06"), (999_999.0, "999999"), (1e-4, "0.0001"), (1e-5, "1e-05")]
        {
            assert_eq!(float(number), text);
        }
    }
}
