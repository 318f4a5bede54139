//! Values as Go prints them: messages of the real server contain `%q` and `%v` of what was sent.

use serde_json::Value;

/// Quotes text as `strconv.Quote` does.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
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

/// Combining marks print in Go; Rust escapes them only where a text begins, hence the letter before.
fn is_printable(c: char) -> bool {
    !format!("a{c}").escape_debug().to_string().contains("\\u{")
}

/// Prints a float as `%v` does: the shortest digits, with an exponent below 1e-4 and from 1e21.
pub(super) fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number}")
}

/// Prints a value as it stands in field errors: quoted text, plain numbers, and JSON for the rest.
pub(super) fn value(value: &Value) -> String {
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

/// JSON as `json.Marshal` writes it.
pub(super) fn json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_in_go() {
        assert_eq!(quote("x\"\n\u{2028}é\u{1}"), "\"x\\\"\\n\\u2028é\\x01\"");
        assert_eq!(quote("e\u{301}\u{7f}"), "\"e\u{301}\\x7f\"");
    }

    #[test]
    fn floats_have_an_exponent_only_at_the_ends() {
        for (number, text) in
            [(0.5, "0.5"), (1.0, "1"), (-1e21, "-1e+21"), (1e20, "100000000000000000000"), (1e-5, "1e-05")]
        {
            assert_eq!(float(number), text);
        }
    }
}
