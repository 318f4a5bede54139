//! The formats of declarative validation (`+k8s:format=…`).
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/validate/strfmt.go`.

use serde::Deserialize;
use serde_json::Value;

use super::{Errors, device, resources, text};
use crate::names::NameRule;

/// A format of a string, with the name of its tag.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// A label of DNS.
    K8sShortName,
    /// A subdomain of DNS.
    K8sLongName,
    /// A subdomain of DNS that may have capital letters.
    K8sLongNameCaseless,
    /// A qualified name.
    K8sLabelKey,
    K8sUuid,
    /// The name of an extended resource, such as `example.com/gpu`.
    K8sExtendedResourceName,
    /// Subdomains with slashes between them.
    K8sResourcePoolName,
    /// An identifier with its domain, such as `example.com/model`.
    K8sResourceFullyQualifiedName,
}

impl Format {
    pub(super) fn validate(self, value: &Value, at: &str, errors: &mut Errors) {
        match self {
            Self::K8sShortName => errors.name(at, value, NameRule::Label),
            Self::K8sLongName => errors.name(at, value, NameRule::Subdomain),
            Self::K8sLongNameCaseless => {
                for message in NameRule::Subdomain.check(&text(value).to_lowercase()) {
                    errors.invalid(at, value, &message);
                }
            }
            Self::K8sLabelKey => errors.qualified_name(at, text(value)),
            Self::K8sUuid if !is_uuid(text(value)) => {
                let detail = "must be a lowercase UUID in RFC 4122 normalized form, \
                              `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`";
                errors.invalid(at, value, detail);
            }
            Self::K8sUuid => {}
            Self::K8sExtendedResourceName if !resources::is_extended(text(value)) => {
                errors.invalid(at, value, "must be a valid extended resource name");
            }
            Self::K8sExtendedResourceName => {}
            Self::K8sResourcePoolName => device::pool_name(value, at, errors),
            Self::K8sResourceFullyQualifiedName => device::fully_qualified(value, at, errors),
        }
    }
}

/// Returns `true` for lowercase hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn is_uuid(value: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_group = |(group, length): (&str, usize)| group.len() == length && group.bytes().all(is_digit);
    value.split('-').count() == 5 && value.split('-').zip([8, 4, 4, 4, 12]).all(is_group)
}
