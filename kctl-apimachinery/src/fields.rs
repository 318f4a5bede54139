//! Field selectors in their string form, as in `kubectl get --field-selector`: their syntax.
//!
//! API servers know which fields a kind can be selected by.
//!
//! Upstream: `k8s.io/apimachinery/pkg/fields/selector.go`.

/// Returns `true` for a field selector that an API server can parse; empty terms count as nothing.
///
/// Upstream: `ParseSelector`. It keeps spaces, which no field's name has.
///
/// ```
/// use kctl_apimachinery::fields::is_field_selector;
///
/// assert!(is_field_selector("metadata.namespace!=system,spec.nodeName=a"));
/// assert!(!is_field_selector("spec.nodeName"));
/// ```
#[must_use]
pub fn is_field_selector(text: &str) -> bool {
    terms(text).iter().all(|term| term.is_empty() || is_field_term(term))
}

/// Splits a field selector at the commas without a backslash before them.
fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start) = (Vec::new(), 0);
    for (at, c) in unescaped_chars(text) {
        if c == ',' {
            terms.push(&text[start..at]);
            start = at + 1;
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Returns the characters that are neither a backslash nor behind one, with their offsets.
fn unescaped_chars(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_escaped = false;
    text.char_indices().filter(move |(_, c)| {
        let is_plain = !is_escaped && *c != '\\';
        is_escaped = !is_escaped && *c == '\\';
        is_plain
    })
}

/// Returns `true` for `field=value`, `field==value` or `field!=value`.
fn is_field_term(term: &str) -> bool {
    let parts = unescaped_chars(term).find_map(|(at, _)| {
        let value = ["!=", "==", "="].iter().find_map(|operator| term[at..].strip_prefix(*operator))?;
        Some((&term[..at], value))
    });
    parts.is_some_and(|(field, value)| {
        let is_field = !field.is_empty() && !field.contains(char::is_whitespace);
        is_field && is_field_value(value)
    })
}

/// Returns `true` if commas and equals signs in a value are escaped, and nothing else is.
fn is_field_value(value: &str) -> bool {
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        let is_valid = match c {
            '\\' => characters.next().is_some_and(|escaped| "\\,=".contains(escaped)),
            c => c != ',' && c != '=',
        };
        if !is_valid {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_selectors_are_parsed_as_by_kubectl() {
        for selector in ["", "metadata.name=a", "a==b,c!=d", "a=", "a=b,", r"a=b\,c\=d\\", "spec.color=dark red"] {
            assert!(is_field_selector(selector), "{selector}");
        }
        for selector in ["spec.nodeName", "=a", "a=b=c", "a=b, c=d", "a in (b)", r"a=b\c", r"a=b\", "…"] {
            assert!(!is_field_selector(selector), "{selector}");
        }
    }
}
