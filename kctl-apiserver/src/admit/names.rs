//! The rules for names, label keys and label values: reads a text, hands on the messages of the real server.
//!
//! Behaviour: `k8s.io/apimachinery/pkg/util/validation` and `pkg/api/validation/path`.

use super::rules::address;

/// Bytes of a DNS label, of the name part of a qualified name and of a label value.
const LABEL_LEN_MAX: usize = 63;
/// Bytes of a DNS subdomain: RFC 1123.
const SUBDOMAIN_LEN_MAX: usize = 253;
/// Bytes of the name of a `CronJob`: a label without the 11 characters of the time.
const CRON_JOB_LEN_MAX: usize = 52;

const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SEARCH_DOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What a kind demands of the names of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower case parts with dots between them: most kinds, and custom resources.
    Subdomain,
    /// One lower case part: `Namespace`, `StatefulSet`, and in 1.36 `Service`.
    Label,
    /// One lower case part that begins with a letter: the names in a `CustomResourceDefinition`.
    Label1035,
    /// The same, and nobody looks at the beginning of a generated one: kinds whose declared rules know the name alone.
    SubdomainOnceWhole,
    /// Anything that can stand in a path: `Event`, `PodDisruptionBudget` and `CertificateSigningRequest`.
    PathSegment,
    /// The same, also of the beginning of a generated one: the kinds of RBAC.
    WholePathSegment,
    /// An address: `IPAddress`.
    Address,
    /// Lower case parts with dots between them, and short: the names of Jobs add 11 characters to that of a `CronJob`.
    CronJob,
}

impl NameRule {
    /// The rule of a built-in kind; that of custom resources for any other.
    pub fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("rbac.authorization.k8s.io", _) => Self::WholePathSegment,
            ("", "Event")
            | ("policy", "PodDisruptionBudget")
            | ("certificates.k8s.io", "CertificateSigningRequest") => Self::PathSegment,
            ("networking.k8s.io", "IPAddress") => Self::Address,
            ("", "ReplicationController") | ("resource.k8s.io", "DeviceClass") => Self::SubdomainOnceWhole,
            ("", "Namespace" | "Service") | ("apps", "StatefulSet") => Self::Label,
            ("batch", "CronJob") => Self::CronJob,
            _ => Self::Subdomain,
        }
    }

    /// What is wrong with a name.
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
            Self::Address if address::parse(name).is_none() => vec![address::INVALID.to_owned()],
            Self::Address => Vec::new(),
        }
    }

    /// What is wrong with the beginning of a name. A letter stands for a dash at its end and for what is before the
    /// dash, as in the real server.
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

/// What is wrong with the key of a label or of an annotation, or with a finalizer.
pub fn check_qualified_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut parts = name.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                // Names are measured in characters, prefixes in bytes: the texts differ, the measure does not.
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

/// What is wrong with a domain that names are looked for in: as names of objects, and underscores may begin a part.
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

/// What is wrong with the value of a label.
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

fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_LEN_MAX);
    if !is_subdomain(name) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

fn label(name: &str, is_valid: fn(&str) -> bool, text: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_LEN_MAX);
    if !is_valid(name) {
        let has_dots = text == LABEL && is_subdomain(name);
        wrong.push(if has_dots { "must not contain dots" } else { text }.to_owned());
    }
    wrong
}

fn path_segment(name: &str) -> Vec<String> {
    let found = ['/', '%'].into_iter().filter(|unsafe_char| name.contains(*unsafe_char));
    found.map(|unsafe_char| format!("may not contain '{unsafe_char}'")).collect()
}

fn too_long(name: &str, len_max: usize) -> Vec<String> {
    if name.len() > len_max { vec![format!("must be no more than {len_max} characters")] } else { Vec::new() }
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_label(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_label_1035(name: &str) -> bool {
    is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Letters and digits, with `-`, `_` and `.` between them.
fn is_mixed(name: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_end(name.bytes().next()) && is_end(name.bytes().last()) && name.bytes().all(is_inner)
}
