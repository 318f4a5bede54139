//! Validation of object names, label keys and label values.
//!
//! Behaviour: `k8s.io/apimachinery/pkg/api/validation` and `pkg/api/validation/path`.

use std::net::IpAddr;

use kctl_apimachinery::validation::{
    SUBDOMAIN_LEN_MAX, is_dns1035_label, is_dns1123_label, is_dns1123_subdomain, is_label_value, is_qualified_name,
};

/// Maximum number of bytes of the name of a `CronJob`: a label without the 11 characters of the time.
const CRON_JOB_LEN_MAX: usize = 52;

/// The error for a string that is not an IP address.
const ADDRESS_INVALID: &str = "must be an IP address such as 10.9.8.7 or 2001:db8::ffff";
const SUBDOMAIN: &str =
    "must be a lower-case RFC 1123 subdomain of at most 253 characters, such as my-name.example.com";
const SEARCH_DOMAIN: &str = "must be a lower-case subdomain of at most 253 characters, whose parts may begin with '_'";
const LABEL: &str = "must be a lower-case RFC 1123 label of at most 63 characters, such as my-name or 123-abc";
const LABEL_1035: &str =
    "must be a lower-case RFC 1035 label of at most 63 characters that begins with a letter, such as my-name";
const CRON_JOB: &str = "must be a lower-case RFC 1123 subdomain of at most 52 characters";
const PATH_SEGMENT: &str = "must not be '.' or '..', and must not contain '/' or '%'";
const QUALIFIED: &str = "must be a name of at most 63 letters, digits, '-', '_' and '.' that begins and ends with a letter or digit, which may follow a subdomain and '/', such as example.com/MyName";
const LABEL_VALUE: &str =
    "must be empty, or at most 63 letters, digits, '-', '_' and '.' that begin and end with a letter or digit";

/// The rule that a kind has for the names of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// A DNS subdomain (RFC 1123): most built-in kinds, and custom resources.
    Subdomain,
    /// A DNS label (RFC 1123): `Namespace`, `StatefulSet` and `Service`.
    Label,
    /// A DNS label (RFC 1035), which starts with a letter: the names in a `CustomResourceDefinition`.
    Label1035,
    /// A DNS subdomain, but the prefix in `generateName` is not validated: kinds whose declarative validation sees only
    /// the complete name.
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
    /// Validates a name. Returns the error message; `None` if it is valid.
    pub(crate) fn check(self, name: &str) -> Option<&'static str> {
        let is_path_segment = || ![".", ".."].contains(&name) && !name.contains(['/', '%']);
        let (is_valid, message) = match self {
            Self::Subdomain | Self::SubdomainOnceWhole => (is_dns1123_subdomain(name), SUBDOMAIN),
            Self::CronJob => (is_dns1123_subdomain(name) && name.len() <= CRON_JOB_LEN_MAX, CRON_JOB),
            Self::Label => (is_dns1123_label(name), LABEL),
            Self::Label1035 => (is_dns1035_label(name), LABEL_1035),
            Self::PathSegment | Self::WholePathSegment => (is_path_segment(), PATH_SEGMENT),
            Self::Address => (parse_address(name).is_some(), ADDRESS_INVALID),
        };
        (!is_valid).then_some(message)
    }

    /// Validates a prefix from `generateName`. As in kube-apiserver, the dash at its end and the character before it
    /// are replaced by a letter first.
    pub(crate) fn check_prefix(self, prefix: &str) -> Option<&'static str> {
        let masked = prefix.strip_suffix('-').and_then(|rest| {
            let (last, _) = rest.char_indices().next_back()?;
            Some(format!("{}a", &rest[..last]))
        });
        match (self, masked) {
            (Self::SubdomainOnceWhole, _) => None,
            (Self::Address | Self::WholePathSegment, _) => self.check(prefix),
            (Self::CronJob, _) => Self::Subdomain.check_prefix(prefix),
            (Self::PathSegment, _) => prefix.contains(['/', '%']).then_some(PATH_SEGMENT),
            (_, Some(masked)) => self.check(&masked),
            (_, None) => self.check(prefix),
        }
    }
}

/// Validates a label key, an annotation key or a finalizer. Returns the error message; `None` if it is valid.
pub(crate) fn check_qualified_name(name: &str) -> Option<&'static str> {
    (!is_qualified_name(name)).then_some(QUALIFIED)
}

/// Validates a search domain: a subdomain whose parts may begin with an underscore.
pub(crate) fn check_search_domain(domain: &str) -> Option<&'static str> {
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        is_dns1123_subdomain(&part.replace('_', "-")) && !part.starts_with('_') && !part.ends_with('_')
    };
    let is_valid = domain.len() <= SUBDOMAIN_LEN_MAX && domain.split('.').all(is_part);
    (!is_valid).then_some(SEARCH_DOMAIN)
}

/// Validates a label value. Returns the error message; `None` if it is valid.
pub(crate) fn check_label_value(value: &str) -> Option<&'static str> {
    (!is_label_value(value)).then_some(LABEL_VALUE)
}

/// Parses an address as Go's older parser does.
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
