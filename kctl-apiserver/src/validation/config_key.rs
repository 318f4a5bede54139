//! Keys of `ConfigMap`s and Secrets, and the limit of their size.

use crate::field_errors::Errors;

/// Maximum size of all values of a Secret or `ConfigMap`, in bytes (`MaxSecretSize`).
pub(crate) const VALUES_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a key, in bytes.
const KEY_LEN_MAX: usize = 253;

/// Validates a key of a `ConfigMap` or Secret (`IsConfigMapKey`).
pub(crate) fn config_key(key: &str, at: &str, errors: &mut Errors) {
    if key.len() > KEY_LEN_MAX {
        errors.invalid(at, &key.into(), &format!("must be no more than {KEY_LEN_MAX} characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(allowed) {
        let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                      or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        errors.invalid(at, &key.into(), detail);
    } else if key == "." || key == ".." {
        errors.invalid(at, &key.into(), &format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        errors.invalid(at, &key.into(), "must not start with '..'");
    }
}
