//! Identifiers in CEL: reserved words, and how the names of fields are escaped.
//!
//! Upstream: `reservedIds` of `cel-go/parser/parser.go`, `apiserver/pkg/cel/escaping.go`.

/// Words that can't be identifiers.
const RESERVED: &str = "as break const continue else false for function if import in let \
                        loop namespace null package return true var void while";

/// Escapes of characters in field names. Underscores come first, or the escapes of the others would be escaped again.
const WRITTEN: [(&str, &str); 4] = [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// Returns `true` for a word that can't be an identifier.
///
/// ```
/// assert!(kctl_cel::is_reserved("namespace"));
/// assert!(!kctl_cel::is_reserved("int")); // the name of a type, which a variable may shadow
/// ```
pub fn is_reserved(word: &str) -> bool {
    RESERVED.split(' ').any(|reserved| reserved == word)
}

/// Returns the name of a field as expressions write it: reserved words and special characters are escaped.
///
/// `self.spec.my__dash__name` selects the field `my-name`. `plain_name` is the inverse.
///
/// ```
/// assert_eq!(kctl_cel::escape("my-name"), "my__dash__name");
/// assert_eq!(kctl_cel::escape("in"), "__in__");
/// ```
#[must_use]
pub fn escape(name: &str) -> String {
    if is_reserved(name) {
        return format!("__{name}__");
    }
    WRITTEN.iter().fold(name.to_owned(), |name, (plain, written)| name.replace(plain, written))
}

/// Returns `true` if expressions can select a field. Other characters, or a leading digit, have no escape.
#[cfg(feature = "check")]
pub(crate) fn has_name(field: &str) -> bool {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || ['_', '.', '-', '/'].contains(&letter);
    !field.is_empty() && !field.starts_with(|first: char| first.is_ascii_digit()) && field.chars().all(is_known)
}

/// Returns the name of a field from its escaped form, the inverse of [`escape`].
///
/// ```
/// assert_eq!(kctl_cel::plain_name("my__dash__name"), "my-name");
/// assert_eq!(kctl_cel::plain_name("__in__"), "in");
/// ```
#[cfg(feature = "check")]
#[must_use]
pub fn plain_name(name: &str) -> String {
    let word = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = word.filter(|word| is_reserved(word)) {
        return word.to_owned();
    }
    // One pass: in `a__underscores__dash__underscores__b` the underscores of two escapes surround `dash`.
    let (mut plain, mut rest) = (String::new(), name);
    while let Some(start) = rest.find("__") {
        let (before, escaped) = rest.split_at(start);
        plain.push_str(before);
        let found = WRITTEN.iter().find_map(|(plain, written)| Some((*plain, escaped.strip_prefix(written)?)));
        let (character, after) = found.unwrap_or_else(|| escaped.split_at(1));
        plain.push_str(character);
        rest = after;
    }
    plain + rest
}

#[cfg(all(test, feature = "check"))]
mod tests {
    use super::*;

    #[test]
    fn fields_that_cel_cannot_read_are_written_out() {
        for (name, escaped) in [
            ("name", "name"),
            ("in", "__in__"),
            ("while", "__while__"),
            ("a-b", "a__dash__b"),
            ("a__b", "a__underscores__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__dash__b", "a__underscores__dash__underscores__b"),
            ("__a__", "__underscores__a__underscores__"),
            ("a___b", "a__underscores___b"),
            ("_-", "___dash__"),
        ] {
            assert_eq!((escape(name).as_str(), plain_name(escaped).as_str()), (escaped, name));
        }
    }

    #[test]
    fn some_fields_have_no_name() {
        for (field, has) in [("a", true), ("a-b.c/d_e", true), ("", false), ("1a", false), ("é", false), ("a b", false)]
        {
            assert_eq!(has_name(field), has, "{field}");
        }
    }
}
