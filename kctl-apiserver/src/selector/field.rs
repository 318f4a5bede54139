//! Parses field selectors.
//!
//! Upstream: `splitTerms`, `splitTerm` and `UnescapeValue` of `k8s.io/apimachinery/pkg/fields/selector.go`.

/// A field and the value that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// The path with dots, such as `metadata.name`.
    pub(super) path: String,
    /// The value without its escapes; may be empty.
    pub(super) value: String,
    /// `false` for `!=`.
    pub(super) equal: bool,
}

/// Parses all terms; returns `None` if one is not valid. Empty terms are skipped, so a comma at the end is allowed. A
/// term without `=` is not.
pub(super) fn terms(text: &str) -> Option<Vec<Term>> {
    let parts = parts(text).into_iter().filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let position = part.find('=')?;
            // The first operator splits the term, and `!=` begins before its equals sign.
            let (end, equal) = if part[..position].ends_with('!') { (position - 1, false) } else { (position, true) };
            let rest = &part[position + 1..];
            let value = if equal { rest.strip_prefix('=').unwrap_or(rest) } else { rest };
            Some(Term { path: part[..end].trim().to_owned(), value: unescape(value)?, equal })
        })
        .collect()
}

/// Splits a string at the commas that are not escaped with a backslash. Escapes are kept in the parts.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (position, letter) in text.char_indices() {
        if letter == ',' && !is_escaped {
            parts.push(&text[start..position]);
            start = position + 1;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Resolves the escapes `\\`, `\,` and `\=` in a value. `None` if one of these characters is not escaped, or if another
/// character is.
fn unescape(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => letters.next().filter(|special| ['\\', ',', '='].contains(special))?,
            ',' | '=' => return None,
            _ => letter,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&[(&str, &str, bool)]>) {
        let term = |term: &Term| (term.path.clone(), term.value.clone(), term.equal);
        let expected = expected.map(|all| all.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), *c)).collect());
        assert_eq!(terms(text).map(|terms| terms.iter().map(term).collect::<Vec<_>>()), expected, "{text}");
    }

    #[test]
    fn first_operator_splits_and_values_are_unescaped() {
        check("", Some(&[]));
        check("a=b,,c==d,e!=f", Some(&[("a", "b", true), ("c", "d", true), ("e", "f", false)]));
        check(r"a=b\,c,d=\=\\", Some(&[("a", "b,c", true), ("d", r"=\", true)]));
        check("a=", Some(&[("a", "", true)]));
        for text in ["a=b!=c", "a===b", r"a=b\c", r"a=b\", r"a=b,c\,d"] {
            check(text, None);
        }
    }
}
