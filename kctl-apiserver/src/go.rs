//! JSON as Go writes it, where its form decides what is stored, and quoted strings as Go reads them.

use std::io;

use kctl_apimachinery::strconv;
use serde::Serialize;
use serde_json::{Serializer, Value, ser::Formatter};

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

/// Returns `true` for the values that `omitempty` omits if the Go field is not a pointer.
pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        other => is_empty(other),
    }
}

/// Returns `true` for null, and for strings, lists and maps of length zero.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Characters that `json.Marshal` escapes although JSON does not require it: they could end a script in HTML.
const ESCAPED: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// Writes floats as `json.Marshal` does: `2.0` is `2`.
struct GoFloatFormatter;

impl Formatter for GoFloatFormatter {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(strconv::format_json_float(value).as_bytes())
    }
}

/// Serializes JSON as `json.Marshal` does.
pub(crate) fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, GoFloatFormatter)).expect("values are valid JSON");
    escape_html(String::from_utf8(bytes).expect("JSON is UTF-8"))
}

/// Escapes the characters in [`ESCAPED`], which occur only in the strings of JSON.
pub(crate) fn escape_html(mut json: String) -> String {
    for (character, escaped) in ESCAPED {
        if json.contains(character) {
            json = json.replace(character, escaped);
        }
    }
    json
}

/// Resolves the escapes in a string between quotation marks: Go's, except numeric ones, and the escaped mark. A backslash
/// before a line break, or at the end, is literal. `None` for another escape.
pub(crate) fn unquote(quoted: &str, mark: char) -> Option<String> {
    let mut plain = String::with_capacity(quoted.len());
    let mut letters = quoted.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' || letters.peek().is_none_or(|&next| next == '\n') {
            plain.push(letter);
            continue;
        }
        let escaped = letters.next()?;
        plain.push(if escaped == mark { mark } else { strconv::unescape_letter(escaped)? });
    }
    Some(plain)
}
