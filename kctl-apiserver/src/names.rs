//! Validates object names, label keys and label values.
//!
//! Behaviour: `k8s.io/apimachinery/pkg/util/validation` and `pkg/api/validation/path`.

use std::net::IpAddr;

/// Bytes of a DNS label, of the name part of a qualified name and of a label value.
const LABEL_LEN_MAX: usize = 63;
/// Bytes of a DNS subdomain: RFC 1123.
const SUBDOMAIN_LEN_MAX: usize = 253;
/// Bytes of the name of a `CronJob`: a label without the 11 characters of the time.
const CRON_JOB_LEN_MAX: usize = 52;

/// The error for a string that is not an IP address.
pub(crate) const ADDRESS_INVALID: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SEARCH_DOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The rule that a kind has for the names of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123): most built-in kinds, and custom resources.
    Subdomain,
    /// A DNS label (RFC 1123): `Namespace`, `StatefulSet`, and in 1.36 `Service`.
    Label,
    /// A DNS label (RFC 1035), which starts with a letter: the names in a `CustomResourceDefinition`.
    Label1035,
    /// A DNS subdomain, but the prefix in `generateName` is not validated: kinds whose declarative validation sees
    /// only the complete name.
    SubdomainOnceWhole,
    /// Any string that is a valid path segment: `Event`, `PodDisruptionBudget` and `CertificateSigningRequest`.
    PathSegment,
    /// A path segment; the prefix in `generateName` is validated in the same way: the RBAC kinds.
    WholePathSegment,
    /// An IP address: `IPAddress`.
    Address,
    /// A DNS subdomain of at most 52 bytes: a `CronJob` adds 11 characters to its name for the names of its Jobs.
    CronJob,
}

impl NameRule {
    /// Validates a name. Returns the error messages; none if it is valid.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain | Self::SubdomainOnceWhole => subdomain(name),
            Self::CronJob => subdomain(name).into_iter().chain(too_long(name, CRON_JOB_LEN_MAX)).collect(),
            Self::Label => label(name, is_label, LABEL),
            Self::Label1035 => label(name, is_label_1035, LABEL_1035),
            Self::PathSegment | Self::WholePathSegment if name == "." || name == ".." => {
                vec![format!("may not be '{name}'")]
            }
            Self::PathSegment | Self::WholePathSegment => path_segment(name),
            Self::Address if parse_address(name).is_none() => vec![ADDRESS_INVALID.to_owned()],
            Self::Address => Vec::new(),
        }
    }

    /// Validates a prefix from `generateName`. As in kube-apiserver, the dash at its end and the character before it
    /// are replaced by a letter first.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        let masked = prefix.strip_suffix('-').and_then(|rest| {
            let (last, _) = rest.char_indices().next_back()?;
            Some(format!("{}a", &rest[..last]))
        });
        match (self, masked) {
            (Self::SubdomainOnceWhole, _) => Vec::new(),
            (Self::Address | Self::WholePathSegment, _) => self.check(prefix),
            (Self::CronJob, _) => Self::Subdomain.check_prefix(prefix),
            (Self::PathSegment, _) => path_segment(prefix),
            (_, Some(masked)) => self.check(&masked),
            (_, None) => self.check(prefix),
        }
    }
}

/// Validates a label key, an annotation key or a finalizer. Returns the error messages.
pub fn check_qualified_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut parts = name.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                // Names are limited in characters and prefixes in bytes. The messages differ, the limit does not.
                let messages = subdomain(prefix).into_iter();
                wrong.extend(
                    messages.map(|message| format!("prefix part {}", message.replace("3 characters", "3 bytes"))),
                );
            }
            name
        }
        (Some(name), None, _) => name,
        _ => {
            let suffix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {QUALIFIED} {suffix}")];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LEN_MAX {
        wrong.push(format!("name part must be no more than {LABEL_LEN_MAX} bytes"));
    }
    if !is_mixed(name) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// Validates a DNS search domain: like a subdomain, but parts may start with an underscore.
pub(crate) fn check_search_domain(domain: &str) -> Vec<String> {
    let mut wrong = too_long(domain, SUBDOMAIN_LEN_MAX);
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        is_label(&part.replace('_', "-")) && !part.starts_with('_') && !part.ends_with('_')
    };
    if !domain.split('.').all(is_part) {
        wrong.push(SEARCH_DOMAIN.to_owned());
    }
    wrong
}

/// Validates a label value. Returns the error messages.
pub fn check_label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > LABEL_LEN_MAX {
        wrong.push(format!("must be no more than {LABEL_LEN_MAX} bytes"));
    }
    if !value.is_empty() && !is_mixed(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// Validates an RFC 1123 subdomain.
fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_LEN_MAX);
    if !is_subdomain(name) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// Validates a DNS label.
fn label(name: &str, is_valid: fn(&str) -> bool, text: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_LEN_MAX);
    if !is_valid(name) {
        let has_dots = text == LABEL && is_subdomain(name);
        wrong.push(if has_dots { "must not contain dots" } else { text }.to_owned());
    }
    wrong
}

/// Validates a path segment.
fn path_segment(name: &str) -> Vec<String> {
    let found = ['/', '%'].into_iter().filter(|unsafe_char| name.contains(*unsafe_char));
    found.map(|unsafe_char| format!("may not contain '{unsafe_char}'")).collect()
}

/// Checks the length of a name.
fn too_long(name: &str, len_max: usize) -> Vec<String> {
    if name.len() > len_max { vec![format!("must be no more than {len_max} characters")] } else { Vec::new() }
}

/// Returns `true` for an RFC 1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// Returns `true` for an RFC 1123 label.
fn is_label(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Returns `true` for an RFC 1035 label.
fn is_label_1035(name: &str) -> bool {
    is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Letters and digits, with `-`, `_` and `.` between them.
fn is_mixed(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_end(name.bytes().next()) && is_end(name.bytes().last()) && name.bytes().all(is_inner)
}

/// An address as Go's older parser reads it.
pub(crate) fn parse_address(address: &str) -> Option<IpAddr> {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    if address.contains(':') {
        return address.parse().ok();
    }
    let parts: Vec<String> = address.split('.').map(plain).collect();
    parts.join(".").parse().ok()
}
