//! Parses field selectors.
//!
//! Upstream: `splitTerms`, `splitTerm` and `UnescapeValue` of `k8s.io/apimachinery/pkg/fields/selector.go`.

/// A field and what it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) path: String,
    pub(super) value: String,
    pub(super) equal: bool,
}

/// Reads all terms.
///
/// # Errors
/// Fails with a message about the first invalid term.
pub(super) fn terms(text: &str) -> Result<Vec<Term>, String> {
    let parts = parts(text).into_iter().filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let not_understood = || format!("invalid selector: '{text}'; can't understand '{part}'");
            let at = part.find('=').ok_or_else(not_understood)?;
            // The first operator counts. `!=` starts before its equals sign.
            let (end, equal) = if part[..at].ends_with('!') { (at - 1, false) } else { (at, true) };
            let rest = &part[at + 1..];
            let value = if equal { rest.strip_prefix('=').unwrap_or(rest) } else { rest };
            Ok(Term { path: part[..end].trim().to_owned(), value: unescaped(value)?, equal })
        })
        .collect()
}

/// The parts between commas that no backslash stands before.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        if letter == ',' && !is_escaped {
            parts.push(&text[start..at]);
            start = at + 1;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Removes the escapes of a value.
fn unescaped(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(special @ ('\\' | ',' | '=')) => plain.push(special),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            // Go prints the code of the character.
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(letter)));
            }
            _ => plain.push(letter),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[(&str, &str, bool)], &str>) {
        let found = terms(text);
        let found = found.as_deref().map_err(String::as_str).map(|terms| {
            terms.iter().map(|term| (term.path.as_str(), term.value.as_str(), term.equal)).collect::<Vec<_>>()
        });
        assert_eq!(found, expected.map(<[_]>::to_vec), "{text}");
    }

    #[test]
    fn the_first_operator_counts_and_values_are_escaped() {
        check("", Ok(&[]));
        check("a=b,,c==d,e!=f", Ok(&[("a", "b", true), ("c", "d", true), ("e", "f", false)]));
        check(r"a=b\,c,d=\=\\", Ok(&[("a", "b,c", true), ("d", r"=\", true)]));
        check("a=", Ok(&[("a", "", true)]));
        check("a=b!=c", Err("invalid field selector: unescaped character in value: 61"));
        check("a===b", Err("invalid field selector: unescaped character in value: 61"));
        check(r"a=b\c", Err(r"invalid field selector: invalid escape sequence: \c"));
        check(r"a=b\", Err(r"invalid field selector: invalid escape sequence: \"));
        check(r"a=b,c\,d", Err(r"invalid selector: 'a=b,c\,d'; can't understand 'c\,d'"));
    }
}
