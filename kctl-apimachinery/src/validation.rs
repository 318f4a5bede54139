//! Names in objects: DNS labels and subdomains, qualified names, label values.
//!
//! Upstream: `k8s.io/apimachinery/pkg/util/validation`. The functions return `true` if a string is valid. The caller
//! writes its own error message.
//!
//! ```
//! use kctl_apimachinery::validation::{is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name};
//!
//! assert!(is_dns1123_label("kube-system"));
//! assert!(is_dns1123_subdomain("web.example.com"));
//! assert!(is_qualified_name("app.kubernetes.io/name") && is_label_value("Web_1"));
//! ```

/// Maximum number of bytes of a DNS label, of a label value, and of a qualified name after its prefix.
///
/// ```
/// use kctl_apimachinery::validation::{LABEL_LEN_MAX, is_dns1123_label};
///
/// assert!(!is_dns1123_label(&"a".repeat(LABEL_LEN_MAX + 1)));
/// ```
pub const LABEL_LEN_MAX: usize = 63;

/// Maximum number of bytes of a DNS subdomain, and of the prefix of a qualified name.
///
/// ```
/// use kctl_apimachinery::validation::{SUBDOMAIN_LEN_MAX, is_dns1123_subdomain};
///
/// assert!(is_dns1123_subdomain(&"a".repeat(SUBDOMAIN_LEN_MAX)));
/// ```
pub const SUBDOMAIN_LEN_MAX: usize = 253;

/// Returns `true` for a DNS label of RFC 1123 (`IsDNS1123Label`), such as the name of a Namespace.
///
/// ```
/// use kctl_apimachinery::validation::is_dns1123_label;
///
/// assert!(is_dns1123_label("0-web"));
/// assert!(!is_dns1123_label("web.v1") && !is_dns1123_label("Web") && !is_dns1123_label("web-"));
/// ```
#[must_use]
pub fn is_dns1123_label(text: &str) -> bool {
    text.len() <= LABEL_LEN_MAX && has_label_form(text)
}

/// Returns `true` for a DNS label of RFC 1035 (`IsDNS1035Label`), which starts with a letter.
///
/// The plural, the versions and the lower-case kind of a CRD have this form.
///
/// ```
/// use kctl_apimachinery::validation::is_dns1035_label;
///
/// assert!(is_dns1035_label("v1beta1"));
/// assert!(!is_dns1035_label("1v"));
/// ```
#[must_use]
pub fn is_dns1035_label(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && is_dns1123_label(text)
}

/// Returns `true` for a DNS subdomain of RFC 1123 (`IsDNS1123Subdomain`), such as the name of most objects.
///
/// As upstream, only the whole name has a maximum length; its labels have none.
///
/// ```
/// use kctl_apimachinery::validation::is_dns1123_subdomain;
///
/// assert!(is_dns1123_subdomain("web.example.com"));
/// assert!(!is_dns1123_subdomain("web..com") && !is_dns1123_subdomain(""));
/// ```
#[must_use]
pub fn is_dns1123_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LEN_MAX && text.split('.').all(has_label_form)
}

/// Returns `true` for the API groups `k8s.io`, `kubernetes.io` and their subdomains, such as `gateway.networking.k8s.io`.
///
/// API servers reject a CRD in such a group without the annotation `api-approved.kubernetes.io` (`IsProtectedCommunityGroup`).
///
/// ```
/// use kctl_apimachinery::validation::is_protected_group;
///
/// assert!(is_protected_group("web.k8s.io") && is_protected_group("kubernetes.io"));
/// assert!(!is_protected_group("webk8s.io") && !is_protected_group("k8s.io.example.com"));
/// ```
#[must_use]
pub fn is_protected_group(group: &str) -> bool {
    let is_below = |owner: &str| group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_below("k8s.io") || is_below("kubernetes.io")
}

/// Returns `true` for a qualified name, `name` or `prefix/name` (`IsQualifiedName`): keys of labels and annotations,
/// finalizers.
///
/// Annotations are validated in lower case, so their prefixes may have upper-case letters.
///
/// ```
/// use kctl_apimachinery::validation::is_qualified_name;
///
/// assert!(is_qualified_name("example.com/My_Name.1") && is_qualified_name("cleanup"));
/// assert!(!is_qualified_name("Example.com/a") && !is_qualified_name("a/b/c") && !is_qualified_name("/a"));
/// ```
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns1123_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// Returns `true` for the name of an extended resource, such as a device (`IsExtendedResourceName` in
/// `pkg/apis/core/v1/helper` of Kubernetes): a qualified name without `kubernetes.io/`. The name of its quota, which
/// begins with `requests.`, has to be valid too.
///
/// ```
/// use kctl_apimachinery::validation::is_extended_resource_name;
///
/// assert!(is_extended_resource_name("example.com/gpu"));
/// assert!(!is_extended_resource_name("cpu") && !is_extended_resource_name("kubernetes.io/gpu"));
/// ```
#[must_use]
pub fn is_extended_resource_name(name: &str) -> bool {
    const QUOTA_PREFIX: &str = "requests.";
    let has_other_domain = name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with(QUOTA_PREFIX);
    has_other_domain && is_qualified_name(&format!("{QUOTA_PREFIX}{name}"))
}

/// Returns `true` for the value of a label (`IsValidLabelValue`), which may be empty.
///
/// ```
/// use kctl_apimachinery::validation::is_label_value;
///
/// assert!(is_label_value("") && is_label_value("v1.2_3"));
/// assert!(!is_label_value("a/b") && !is_label_value("-a"));
/// ```
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// Returns `true` for the type of a condition by the pattern of `metav1.Condition`, in which labels may have any
/// length.
///
/// ```
/// use kctl_apimachinery::validation::is_condition_type;
///
/// assert!(is_condition_type("Ready") && is_condition_type("example.com/Ready_1"));
/// assert!(!is_condition_type("") && !is_condition_type("a b") && !is_condition_type("Example.com/Ready"));
/// ```
#[must_use]
pub fn is_condition_type(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    domain.is_none_or(|domain| domain.split('.').all(has_label_form))
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.ends_with(|last: char| last.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Returns `true` for the reason of a condition (`IsValidConditionReason`), of any length.
///
/// ```
/// use kctl_apimachinery::validation::is_condition_reason;
///
/// assert!(is_condition_reason("PodsReady") && is_condition_reason("A:b,C_"));
/// assert!(!is_condition_reason("") && !is_condition_reason("1st") && !is_condition_reason("Pods ready"));
/// ```
#[must_use]
pub fn is_condition_reason(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte))
}

/// Returns `true` for lower-case letters, digits and dashes, with a letter or digit at both ends. The length is not
/// checked.
fn has_label_form(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
}

/// Returns `true` for letters and digits, with `-`, `_` and `.` between them.
fn is_name_part(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= LABEL_LEN_MAX && name.starts_with(is_end) && name.ends_with(is_end) && name.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_name_limits_are_63_and_253_characters() {
        let (name, prefix) = ("n".repeat(LABEL_LEN_MAX), "p".repeat(SUBDOMAIN_LEN_MAX));
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
            assert_eq!(is_qualified_name(text), valid, "{text}");
        }
        assert!(is_label_value("") && is_label_value("a") && !is_label_value("a/b"));
    }

    #[test]
    fn labels_and_subdomains_match_upstream() {
        let (longest, too_long) = ("a".repeat(LABEL_LEN_MAX), "a".repeat(LABEL_LEN_MAX + 1));
        for (text, label, label_1035, subdomain) in [
            ("a", true, true, true),
            ("a-1", true, true, true),
            ("1a", true, false, true),
            ("a.b", false, false, true),
            ("", false, false, false),
            ("A", false, false, false),
            ("-a", false, false, false),
            ("a-", false, false, false),
            ("a_b", false, false, false),
            ("a..b", false, false, false),
            ("a.b.", false, false, false),
            ("é", false, false, false),
            (&longest, true, true, true),
            (&too_long, false, false, true),
            (&"a.".repeat(127), false, false, false),
        ] {
            let found = (is_dns1123_label(text), is_dns1035_label(text), is_dns1123_subdomain(text));
            assert_eq!(found, (label, label_1035, subdomain), "{text:?}");
        }
    }
}
