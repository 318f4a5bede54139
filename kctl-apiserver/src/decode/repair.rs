//! Repairs JSON that Go accepts and `serde_json` rejects: invalid UTF-8, and unpaired surrogates.

use std::borrow::Cow;

/// Replaces each invalid byte and each unpaired surrogate by U+FFFD (`unquoteBytes` of Go's `encoding/json`). Borrows
/// the input if nothing has to be replaced.
pub(super) fn repair_json(json: &[u8]) -> Cow<'_, [u8]> {
    let text = valid(json);
    let Some(start) = unpaired_surrogate(&text, 0) else { return text };
    let mut mended = text[..start].to_vec();
    let mut position = start;
    while let Some(next) = unpaired_surrogate(&text, position) {
        mended.extend_from_slice(&text[position..next]);
        mended.extend_from_slice(b"\\ufffd");
        position = next + ESCAPE_LEN;
    }
    mended.extend_from_slice(&text[position..]);
    mended.into()
}

/// The length of an escape such as `\u0000`.
const ESCAPE_LEN: usize = 6;

/// Replaces invalid bytes.
fn valid(json: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(json).is_ok() {
        return json.into();
    }
    let mut text = Vec::with_capacity(json.len() + 16);
    for chunk in json.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        for _byte in chunk.invalid() {
            text.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    text.into()
}

/// Returns the offset of the next escape of an unpaired surrogate. Pairs of surrogates are skipped together.
fn unpaired_surrogate(text: &[u8], from: usize) -> Option<usize> {
    let mut position = from;
    while position < text.len() {
        if text[position] != b'\\' {
            position += 1;
            continue;
        }
        match (code(text, position), code(text, position + ESCAPE_LEN)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => position += 2 * ESCAPE_LEN,
            (Some(0xd800..0xe000), _) => return Some(position),
            // An escaped backslash does not start an escape.
            _ => position += 2,
        }
    }
    None
}

/// Returns the code unit of a `\u` escape. `None` for any other bytes.
fn code(text: &[u8], position: usize) -> Option<u32> {
    let digits = text.get(position..position + ESCAPE_LEN)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_becomes_replacement_character() {
        for (json, expected) in [
            (&b"{\"a\":\"b\"}"[..], "{\"a\":\"b\"}"),
            (b"\"\xff\"", "\"\u{fffd}\""),
            (b"\"a\xe2\x82\"", "\"a\u{fffd}\u{fffd}\""),
            (br#""\ud800""#, r#""\ufffd""#),
            (br#""\udc00\ud800\u0041""#, r#""\ufffd\ufffd\u0041""#),
            (br#""\ud83d\ude00\ud83d""#, r#""\ud83d\ude00\ufffd""#),
            (br#""\\ud800""#, r#""\\ud800""#),
            (br#""\ud8"#, r#""\ud8"#),
        ] {
            assert_eq!(String::from_utf8_lossy(&repair_json(json)), expected);
        }
    }
}
