//! Value parsers for names in manifests: names that an API server would reject are usage errors.

/// Maximum length of a DNS label and of a label's value.
const LABEL_LEN_MAX: usize = 63;
/// Maximum length of the prefix of a label's key.
const PREFIX_LEN_MAX: usize = 253;

/// Parses the name of a namespace: a DNS label.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    if is_dns(text) && !text.contains('.') {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid namespace name: write at most {LABEL_LEN_MAX} of `a-z`, `0-9` and `-`, for example `web`"
    ))
}

/// Parses the name of the service account and the roles.
pub(super) fn name(text: &str) -> Result<String, String> {
    if is_dns(text) {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a valid name: write at most {LABEL_LEN_MAX} of `a-z`, `0-9`, `-` and `.`, for example `web`"
    ))
}

/// Parses an image reference; only what can't be one is rejected.
pub(super) fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(format!("`{text}` is not an image reference: write for example `example.com/web:1`"));
    }
    Ok(text.into())
}

/// Parses a label, `key=value`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, value)| is_key(key) && (value.is_empty() || is_part(value)));
    let (key, value) = parts.ok_or_else(|| {
        format!(
            "`{text}` is not a label: write `key=value`, each at most {LABEL_LEN_MAX} of letters, digits, `-`, `_` and `.`"
        )
    })?;
    Ok((key.into(), value.into()))
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => prefix.len() <= PREFIX_LEN_MAX && prefix.split('.').all(is_dns_label) && is_part(name),
        None => is_part(key),
    }
}

/// Returns `true` for a qualified name of a label: letters and digits at its ends.
fn is_part(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= LABEL_LEN_MAX
        && text.chars().all(is_inner)
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
}

fn is_dns(text: &str) -> bool {
    text.len() <= LABEL_LEN_MAX && text.split('.').all(is_dns_label)
}

fn is_dns_label(text: &str) -> bool {
    is_part(text) && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_invalid_for_an_api_server_are_usage_errors() {
        let (long, too_long) = ("a".repeat(63), "a".repeat(64));
        for (text, is_namespace, is_name) in [
            ("web", true, true),
            ("kube-system", true, true),
            ("web.v1", false, true),
            (&long, true, true),
            (&too_long, false, false),
            ("", false, false),
            ("Web", false, false),
            ("a b", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("a..b", false, false),
            ("a_b", false, false),
        ] {
            assert_eq!((namespace(text).is_ok(), name(text).is_ok()), (is_namespace, is_name), "{text:?}");
        }
        assert_eq!((image("").is_ok(), image("a b").is_ok(), image("a/b:1@sha256:0").is_ok()), (false, false, true));
    }

    #[test]
    fn labels_are_those_of_kubernetes() {
        for text in ["a=b", "a=", "example.com/A_b.c=D-e", "rbac.authorization.k8s.io/aggregate-to-view=true"] {
            assert!(label(text).is_ok(), "{text}");
        }
        for text in ["a", "=b", "a b=c", "a=b c", "/a=b", "Ex.com/a=b", "a/b/c=d", "a=b=c", "a=-b"] {
            assert!(label(text).unwrap_err().contains("is not a label: write `key=value`"), "{text}");
        }
    }
}
