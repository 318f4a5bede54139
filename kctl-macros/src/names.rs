//! Names that API servers accept, for literals in attributes. The runtime checks the values of expressions.

/// Characters of a DNS label, and of a qualified name after its prefix.
pub(crate) const LABEL_LEN_MAX: usize = 63;
/// Characters of a DNS subdomain.
const SUBDOMAIN_LEN_MAX: usize = 253;

/// Returns `true` for a DNS label (RFC 1123), which the name of a namespace is.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= LABEL_LEN_MAX && is_part_of_subdomain(text)
}

/// Returns `true` if API servers accept a name as a finalizer or as the name of a match condition (`k8s.io/apimachinery`,
/// `IsQualifiedName`). Only some kinds accept a finalizer without a domain; the app logs a warning at its start.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|prefix| prefix.len() <= SUBDOMAIN_LEN_MAX && prefix.split('.').all(is_part_of_subdomain))
        && is_name_part(name)
}

/// Returns `true` for the value of a label, which may be empty.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// Returns `true` for a qualified name without its prefix.
fn is_name_part(text: &str) -> bool {
    text.len() <= LABEL_LEN_MAX
        && has_alphanumeric_ends(text)
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Returns `true` for the text between two dots of a DNS subdomain.
fn is_part_of_subdomain(text: &str) -> bool {
    has_alphanumeric_ends(text) && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Returns `true` if the first and the last character is a letter or a digit.
fn has_alphanumeric_ends(text: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    is_end(text.chars().next()) && is_end(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_their_characters_and_length() {
        for (text, expected) in [
            ("a", true),
            ("team-1", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("Team_A", false),
            ("a.b", false),
        ] {
            assert_eq!(is_label(text), expected, "{text}");
        }
        assert!(is_label(&"a".repeat(63)) && !is_label(&"a".repeat(64)));
    }

    #[test]
    fn qualified_names_have_an_optional_domain() {
        for (text, expected) in [
            ("not-system", true),
            ("example.com/Not_System", true),
            ("a b", false),
            ("", false),
            ("/a", false),
            ("example.com/", false),
            ("Example.com/a", false),
            ("a/b/c", false),
        ] {
            assert_eq!(is_qualified_name(text), expected, "{text}");
        }
        assert!(is_qualified_name(&"a".repeat(63)) && !is_qualified_name(&"a".repeat(64)));
    }
}
