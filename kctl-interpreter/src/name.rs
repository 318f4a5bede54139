//! Names of labels and resources, by the rules of `k8s.io/apimachinery/pkg/util/validation`.

/// The longest label value, and the longest name behind a prefix.
const NAME_LEN_MAX: usize = 63;
/// The longest prefix.
const PREFIX_LEN_MAX: usize = 253;

/// Returns `true` for a qualified name: `name` or `prefix/name` (`IsQualifiedName`).
pub(crate) fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Returns `true` for the value of a label (`IsValidLabelValue`).
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn is_subdomain(prefix: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        label.bytes().all(inner) && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    prefix.len() <= PREFIX_LEN_MAX && prefix.split('.').all(is_label)
}

fn is_name(name: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= NAME_LEN_MAX && name.starts_with(ends) && name.ends_with(ends) && name.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_63_characters_at_most_and_prefix_253() {
        let (name, prefix) = ("n".repeat(NAME_LEN_MAX), "p".repeat(PREFIX_LEN_MAX));
        let cases = [
            ("a", true),
            ("A_b.c-9", true),
            ("", false),
            ("-a", false),
            ("a.", false),
            ("a b", false),
            ("example.com/a", true),
            ("Example.com/a", false),
            ("example..com/a", false),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            (&name, true),
            (&format!("{name}n"), false),
            (&format!("{prefix}/n"), true),
            (&format!("{prefix}p/n"), false),
        ];
        for (text, valid) in cases {
            assert_eq!(is_qualified(text), valid, "{text}");
        }
        assert!(is_label_value("") && is_label_value("a") && !is_label_value("a/b"));
    }
}
