//! The tokens of Lua that matter for rewriting a source: names, labels and single characters; comments, strings and
//! numbers are passed over.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    /// A name or keyword, a label with its colons, or one character.
    pub(super) text: &'a str,
}

impl Token<'_> {
    pub(super) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }
}

/// Splits a source into tokens. For invalid Lua the tokens have no meaning; Lua itself reports the error.
pub(super) fn tokens(source: &str) -> impl Iterator<Item = Token<'_>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &source[offset..];
            let first = rest.chars().next()?;
            let (start, n_bytes, is_token) = (offset, length(rest, first), is_token(rest, first));
            offset += n_bytes;
            if is_token {
                return Some(Token { start, end: offset, text: &source[start..offset] });
            }
        }
    })
}

fn is_token(rest: &str, first: char) -> bool {
    !(first.is_whitespace()
        || matches!(first, '"' | '\'')
        || first.is_ascii_digit()
        || rest.starts_with("--")
        || long_bracket(rest).is_some())
}

/// Returns the length in bytes of the first token: spaces, a comment, a string, a number, a name, a label or a character.
fn length(rest: &str, first: char) -> usize {
    let while_name = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    match first {
        _ if rest.starts_with("--") => match long_bracket(&rest[2..]) {
            Some(n_bytes) => 2 + n_bytes,
            None => rest.find('\n').unwrap_or(rest.len()),
        },
        '[' => long_bracket(rest).unwrap_or(1),
        '"' | '\'' => quoted_len(rest, first),
        'a'..='z' | 'A'..='Z' | '_' => while_name(rest),
        '0'..='9' => rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len()),
        ':' if rest.starts_with("::") => {
            let name = rest[2..].trim_start();
            let after = name[while_name(name)..].trim_start();
            if after.starts_with("::") { rest.len() - after.len() + 2 } else { 2 }
        }
        first => first.len_utf8(),
    }
}

/// Returns the length in bytes of `[[…]]` or `[=[…]=]`, up to the end of the source if it is not closed.
fn long_bracket(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('[')?;
    let level = after.len() - after.trim_start_matches('=').len();
    let body = after[level..].strip_prefix('[')?;
    let close = format!("]{}]", "=".repeat(level));
    Some(body.find(&close).map_or(rest.len(), |offset| rest.len() - body.len() + offset + close.len()))
}

/// Returns the length in bytes of a quoted string; an unclosed one ends with its line.
fn quoted_len(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (offset, char) in rest.char_indices().skip(1) {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' => return offset,
            char if char == quote => return offset + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A change of a source: start and end in bytes, and the replacement.
pub(super) type Edit = (usize, usize, String);

/// Applies changes that do not overlap. Line breaks of replaced parts are kept, so that lines keep their numbers in
/// errors.
pub(super) fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(start, end, _)| (*start, *end));
    let (mut rewritten, mut copied) = (String::with_capacity(source.len() + 64), 0);
    for (start, end, text) in edits {
        rewritten.push_str(&source[copied..start]);
        rewritten.push_str(&text);
        rewritten.extend(source[start..end].chars().filter(|c| *c == '\n'));
        copied = end;
    }
    rewritten.push_str(&source[copied..]);
    rewritten
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn comments_strings_and_numbers_have_no_tokens() {
        for (source, expected) in [
            ("a = 'b' -- c\nd", vec!["a", "=", "d"]),
            ("a[b] [[c]] [=[ ]] d]=] e", vec!["a", "[", "b", "]", "e"]),
            ("--[[ a\nb ]] c --[==[ d", vec!["c"]),
            ("'a\\'b' \"c\\\nd\" e", vec!["e"]),
            ("1e5 0xff 1..2 x1", vec!["x1"]),
            ("::a:: :: b :: c:d", vec!["::a::", ":: b ::", "c", ":", "d"]),
            ("'open\nnext", vec!["next"]),
            ("é = 1", vec!["é", "="]),
        ] {
            let found: Vec<&str> = tokens(source).map(|token| token.text).collect();
            assert_eq!(found, expected, "{source:?}");
        }
    }
}
