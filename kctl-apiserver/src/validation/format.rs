//! The formats of declarative validation (`+k8s:format=…`).
//!
//! Upstream: `k8s.io/apimachinery/pkg/api/validate/strfmt.go`.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::resources,
};

/// A format of a string, with the name of its tag.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum Format {
    /// A label of DNS.
    #[serde(rename = "k8s-short-name")]
    ShortName,
    /// A subdomain of DNS.
    #[serde(rename = "k8s-long-name")]
    LongName,
    /// A subdomain of DNS that may have capital letters.
    #[serde(rename = "k8s-long-name-caseless")]
    LongNameCaseless,
    /// A qualified name.
    #[serde(rename = "k8s-label-key")]
    LabelKey,
    #[serde(rename = "k8s-uuid")]
    Uuid,
    /// The name of an extended resource, such as `example.com/gpu`.
    #[serde(rename = "k8s-extended-resource-name")]
    ExtendedResourceName,
    /// Subdomains with slashes between them.
    #[serde(rename = "k8s-resource-pool-name")]
    ResourcePoolName,
    /// An identifier with its domain, such as `example.com/model`.
    #[serde(rename = "k8s-resource-fully-qualified-name")]
    ResourceFullyQualifiedName,
}

impl Format {
    pub(super) fn validate(self, value: &Value, at: &str, errors: &mut Errors) {
        match self {
            Self::ShortName => errors.name(at, value, NameRule::Label),
            Self::LongName => errors.name(at, value, NameRule::Subdomain),
            Self::LongNameCaseless => {
                if let Some(message) = NameRule::Subdomain.check(&text(value).to_lowercase()) {
                    errors.invalid(at, value, message);
                }
            }
            Self::LabelKey => errors.qualified_name(at, text(value)),
            Self::Uuid if !is_uuid(text(value)) => {
                let detail = "must be a lowercase UUID in RFC 4122 normalized form, \
                              `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`";
                errors.invalid(at, value, detail);
            }
            Self::ExtendedResourceName if !resources::is_extended(text(value)) => {
                errors.invalid(at, value, "must be a valid extended resource name");
            }
            Self::Uuid | Self::ExtendedResourceName => {}
            Self::ResourcePoolName => pool_name(value, at, errors),
            Self::ResourceFullyQualifiedName => fully_qualified(value, at, errors),
        }
    }
}

/// Returns `true` for lowercase hexadecimal digits in groups of 8, 4, 4, 4 and 12.
fn is_uuid(value: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_group = |(group, length): (&str, usize)| group.len() == length && group.bytes().all(is_digit);
    value.split('-').count() == 5 && value.split('-').zip([8, 4, 4, 4, 12]).all(is_group)
}

/// The longest name of a driver, and of a domain of names (`DriverNameMaxLength`).
const DRIVER_LEN_MAX: usize = 63;
/// The longest name of an attribute behind its domain (`DeviceMaxIDLength`).
const ID_LEN_MAX: usize = 32;
/// The longest name of a pool (`PoolNameMaxLength`).
const POOL_LEN_MAX: usize = 253;
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

/// The name of a driver, which may have capital letters here.
pub(crate) fn driver(name: &Value, at: &str, errors: &mut Errors) {
    if text(name).is_empty() {
        return errors.required(at, "");
    }
    if text(name).len() > DRIVER_LEN_MAX {
        errors.too_long(at, DRIVER_LEN_MAX);
    }
    if let Some(message) = NameRule::Subdomain.check(&text(name).to_lowercase()) {
        errors.invalid(at, name, message);
    }
}

/// The name of a pool: names of domains, with slashes between them.
pub(crate) fn pool_name(name: &Value, at: &str, errors: &mut Errors) {
    let name = text(name);
    if name.is_empty() {
        return errors.required(at, "");
    }
    if name.len() > POOL_LEN_MAX {
        errors.too_long(at, POOL_LEN_MAX);
    }
    name.split('/').for_each(|part| errors.name(at, &part.into(), NameRule::Subdomain));
}

/// The name of an attribute or a capacity, with or without a domain.
pub(crate) fn qualified(name: &Value, at: &str, errors: &mut Errors) {
    let parts: Vec<&str> = text(name).split('/').collect();
    match parts[..] {
        [id] => identifier(id, at, errors),
        [domain, id] => {
            if domain.is_empty() {
                errors.invalid(at, &"".into(), "the domain must not be empty");
            } else {
                driver(&domain.into(), at, errors);
            }
            if id.is_empty() {
                errors.invalid(at, &"".into(), "the name must not be empty");
            } else {
                identifier(id, at, errors);
            }
        }
        // The real server says nothing of more parts.
        _ => {}
    }
}

/// A name that needs its domain.
pub(crate) fn fully_qualified(name: &Value, at: &str, errors: &mut Errors) {
    qualified(name, at, errors);
    if !text(name).contains('/') {
        errors.invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash");
    }
}

fn identifier(id: &str, at: &str, errors: &mut Errors) {
    if id.len() > ID_LEN_MAX {
        errors.too_long(at, ID_LEN_MAX);
    }
    let begins = id.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if !begins || !id.chars().all(|one| one.is_ascii_alphanumeric() || one == '_') {
        errors.invalid(at, &id.into(), C_IDENTIFIER);
    }
}
