//! What Go says of a text that is no JSON (`encoding/json/scanner.go`): reads it as far as that is needed.

use super::DEPTH_MAX;
use crate::go;

/// What is wrong with a text, in Go's words; nothing when it is JSON.
pub(super) fn syntax_error(text: &[u8]) -> Option<String> {
    Scanner { text, at: 0, open: Vec::new() }.all().err()
}

/// What is open around a place, the innermost last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Object,
    List,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// By itself and not on the stack, which others share.
    open: Vec<Open>,
}

type Scanned = Result<(), String>;

impl Scanner<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(|byte| b" \t\r\n".contains(byte)) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn all(&mut self) -> Scanned {
        self.value()?;
        while let Some(open) = self.open.last().copied() {
            let (end, after) = match open {
                Open::Object => (b'}', "after object key:value pair"),
                Open::List => (b']', "after array element"),
            };
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if open == Open::Object {
                        self.key()?;
                    }
                    self.value()?;
                }
                Some(byte) if byte == end => {
                    self.at += 1;
                    self.open.pop();
                }
                _ => return Err(self.unexpected(after)),
            }
        }
        if self.peek().is_some() { Err(self.unexpected("after top-level value")) } else { Ok(()) }
    }

    /// A value, or as far into one as to where the first value in it has ended.
    fn value(&mut self) -> Scanned {
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.enter(Open::Object)?;
                    if self.left(b'}') {
                        return Ok(());
                    }
                    self.key()?;
                }
                Some(b'[') => {
                    self.enter(Open::List)?;
                    if self.left(b']') {
                        return Ok(());
                    }
                }
                Some(b'"') => return self.string(),
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(b't') => return self.literal("true"),
                Some(b'f') => return self.literal("false"),
                Some(b'n') => return self.literal("null"),
                _ => return Err(self.unexpected("looking for beginning of value")),
            }
        }
    }

    fn enter(&mut self, open: Open) -> Scanned {
        if self.open.len() == DEPTH_MAX {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.at += 1;
        self.open.push(open);
        Ok(())
    }

    /// Whether nothing is in what has just been entered.
    fn left(&mut self, end: u8) -> bool {
        let is_empty = self.peek() == Some(end);
        if is_empty {
            self.at += 1;
            self.open.pop();
        }
        is_empty
    }

    /// A key with its colon.
    fn key(&mut self) -> Scanned {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn unexpected(&self, context: &str) -> String {
        let Some(byte) = self.text.get(self.at) else { return "unexpected end of JSON input".into() };
        // Go takes the byte for a character.
        let shown = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => format!("'{}'", go::quote(&char::from(*byte).to_string()).trim_matches('"')),
        };
        format!("invalid character {shown} {context}")
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..0x20) | None => return Err(self.unexpected("in string literal")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        self.at += 1;
        let kind = self.text.get(self.at).copied();
        if !kind.is_some_and(|kind| b"bfnrt\\/\"u".contains(&kind)) {
            return Err(self.unexpected("in string escape code"));
        }
        self.at += 1;
        for _ in 0..if kind == Some(b'u') { 4 } else { 0 } {
            if !self.text.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        // A zero is a number by itself: what follows it comes after a value.
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if self.text.get(self.at).is_some_and(|byte| b"eE".contains(byte)) {
            self.at += 1;
            if self.text.get(self.at).is_some_and(|byte| b"+-".contains(byte)) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self, context: &str) -> Scanned {
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected(context)) } else { Ok(()) }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for letter in word.bytes() {
            if self.text.get(self.at) != Some(&letter) {
                return Err(self.unexpected(&format!("in literal {word} (expecting '{}')", char::from(letter))));
            }
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_is_told_in_the_words_of_go() {
        for (text, expected) in [
            (&b"{\"a\": [1, -2.5e+3, true, null, \"\\u00e9\"]} "[..], None),
            (b"", Some("unexpected end of JSON input")),
            (b"{\"a\":", Some("unexpected end of JSON input")),
            (b"metadata: {}", Some("invalid character 'm' looking for beginning of value")),
            (b"\xff\xfe", Some("invalid character '\u{ff}' looking for beginning of value")),
            (b"{a", Some("invalid character 'a' looking for beginning of object key string")),
            (b"{\"a\" 1}", Some("invalid character '1' after object key")),
            (b"{\"a\":1 \"b\"}", Some("invalid character '\"' after object key:value pair")),
            (b"[1 2]", Some("invalid character '2' after array element")),
            (b"[1,]", Some("invalid character ']' looking for beginning of value")),
            (b"{\"a\":1,}", Some("invalid character '}' looking for beginning of object key string")),
            (b"1 2", Some("invalid character '2' after top-level value")),
            (b"01", Some("invalid character '1' after top-level value")),
            (b"tru ", Some("invalid character ' ' in literal true (expecting 'e')")),
            (b"-x", Some("invalid character 'x' in numeric literal")),
            (b"1.x", Some("invalid character 'x' after decimal point in numeric literal")),
            (b"1ex", Some("invalid character 'x' in exponent of numeric literal")),
            (b"\"\n\"", Some("invalid character '\\n' in string literal")),
            (b"\"\\x\"", Some("invalid character 'x' in string escape code")),
            (b"\"\\u00g0\"", Some("invalid character 'g' in \\u hexadecimal character escape")),
            (b"'a'", Some("invalid character '\\'' looking for beginning of value")),
        ] {
            assert_eq!(syntax_error(text).as_deref(), expected, "{}", String::from_utf8_lossy(text));
        }
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(syntax_error(deep(DEPTH_MAX).as_bytes()), None);
        assert_eq!(
            syntax_error(deep(DEPTH_MAX + 1).as_bytes()).as_deref(),
            Some("invalid character '[' exceeded max depth")
        );
    }
}
