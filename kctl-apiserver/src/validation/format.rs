//! The formats of declarative validation (`+k8s:format=…`).
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/validate/strfmt.go`.
//!
//! The same rules serve the functions of `resource.k8s.io`, whose fields are only partly tagged:
//! `validate_driver_name`, `validate_pool_name` and `validate_qualified_name`. All of them report
//! `FieldValueInvalid`, apart from lengths (`FieldValueTooLong`) and empty strings where a value is needed
//! (`FieldValueRequired`).

use kctl_apimachinery::validation::is_extended_resource_name;
use serde::Deserialize;
use serde_json::Value;

use crate::{field::Field, names::NameRule};

/// A format of a string, with the name of its tag.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Format {
    /// A DNS label: up to 63 lowercase letters, digits and dashes.
    #[serde(rename = "k8s-short-name")]
    ShortName,
    /// A DNS subdomain: labels with dots between them, up to 253 characters in all.
    #[serde(rename = "k8s-long-name")]
    LongName,
    /// A DNS subdomain that may have capital letters.
    #[serde(rename = "k8s-long-name-caseless")]
    LongNameCaseless,
    /// A qualified name: an optional DNS subdomain with a slash, and a name of up to 63 characters.
    #[serde(rename = "k8s-label-key")]
    LabelKey,
    /// A UUID in lowercase, with dashes.
    #[serde(rename = "k8s-uuid")]
    Uuid,
    /// The name of an extended resource, such as `example.com/gpu`.
    #[serde(rename = "k8s-extended-resource-name")]
    ExtendedResourceName,
    /// DNS subdomains with slashes between them, as a driver names its pools.
    #[serde(rename = "k8s-resource-pool-name")]
    ResourcePoolName,
    /// An identifier with its domain, such as `example.com/model`.
    #[serde(rename = "k8s-resource-fully-qualified-name")]
    ResourceFullyQualifiedName,
}

/// Validation of one value by its format.
impl Format {
    /// Adds an error unless the value has the format. A value that is not a string is validated as the empty string,
    /// which no format accepts.
    pub(super) fn validate(self, value: &Field<'_>) {
        match self {
            Self::ShortName => value.name(NameRule::Label),
            Self::LongName => value.name(NameRule::Subdomain),
            Self::LongNameCaseless => validate_caseless_subdomain(value),
            Self::LabelKey => value.qualified_name(),
            Self::Uuid => {
                let detail = "must be a lowercase UUID in RFC 4122 normalized form, \
                              `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`";
                value.invalid_if(!is_uuid(value.text()), detail);
            }
            Self::ExtendedResourceName => {
                let is_extended = is_extended_resource_name(value.text());
                value.invalid_if(!is_extended, "must be a valid extended resource name");
            }
            Self::ResourcePoolName => validate_pool_name(value),
            Self::ResourceFullyQualifiedName => validate_fully_qualified_name(value),
        }
    }
}

/// Returns `true` for lowercase hexadecimal digits in groups of 8, 4, 4, 4 and 12. The version and variant digits are
/// not checked.
fn is_uuid(value: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_group = |(group, length): (&str, usize)| group.len() == length && group.bytes().all(is_digit);
    value.split('-').count() == 5 && value.split('-').zip([8, 4, 4, 4, 12]).all(is_group)
}

/// The longest name of a driver, and of a domain of names (`DriverNameMaxLength`). The name of a CSI driver becomes
/// part of paths of kubelet and of labels.
const DRIVER_LEN_MAX: usize = 63;
/// The longest name of an attribute after its domain (`DeviceMaxIDLength`).
const ID_LEN_MAX: usize = 32;
/// The longest name of a pool (`PoolNameMaxLength`).
const POOL_LEN_MAX: usize = 253;
/// The rule for the part of a name after its domain (`IsCIdentifier`).
const C_IDENTIFIER: &str = "must be letters, digits and underscores, and must not start with a digit";

/// Validates the name of a driver, of CSI or of devices, or the domain of an attribute: a DNS subdomain of at most 63
/// bytes, case-insensitive (`ValidateCSIDriverName`).
pub(crate) fn validate_driver_name(name: &Field<'_>) {
    if name.require_value() {
        name.max_bytes(DRIVER_LEN_MAX);
        validate_caseless_subdomain(name);
    }
}

/// Validates a DNS subdomain that may have capital letters.
fn validate_caseless_subdomain(name: &Field<'_>) {
    if let Some(message) = NameRule::Subdomain.check(&name.text().to_lowercase()) {
        name.invalid(message);
    }
}

/// Validates the name of a pool: DNS subdomains with slashes between them, at most 253 bytes. Each invalid part is an
/// error at the whole field.
pub(crate) fn validate_pool_name(name: &Field<'_>) {
    if name.require_value() {
        name.max_bytes(POOL_LEN_MAX);
        name.text().split('/').for_each(|part| name.with(&part.into()).name(NameRule::Subdomain));
    }
}

/// Validates the name of an attribute or capacity, with or without a domain: `model` or `example.com/model`. A name
/// without a domain means the domain of the driver that publishes it.
pub(crate) fn validate_qualified_name(name: &Field<'_>) {
    let parts: Vec<&str> = name.text().split('/').collect();
    match parts[..] {
        [id] => validate_identifier(&name.with(&id.into())),
        [domain, id] => {
            let [domain, id] = [domain, id].map(Value::from);
            let (domain, id) = (name.with(&domain), name.with(&id));
            if domain.is_empty() {
                domain.invalid("the domain must not be empty");
            } else {
                validate_driver_name(&domain);
            }
            if id.is_empty() {
                id.invalid("the name must not be empty");
            } else {
                validate_identifier(&id);
            }
        }
        // As in kube-apiserver, a name with more parts gets no error here.
        _ => {}
    }
}

/// Validates a name that needs its domain, as in selectors that span drivers.
fn validate_fully_qualified_name(name: &Field<'_>) {
    validate_qualified_name(name);
    let has_domain = name.text().contains('/');
    name.invalid_if(!has_domain, "a fully qualified name must be a domain and a name separated by a slash");
}

/// Validates the part after the domain. Length and form are reported independently.
fn validate_identifier(id: &Field<'_>) {
    id.max_bytes(ID_LEN_MAX);
    let begins = id.text().starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let are_letters = id.text().chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    id.invalid_if(!begins || !are_letters, C_IDENTIFIER);
}
