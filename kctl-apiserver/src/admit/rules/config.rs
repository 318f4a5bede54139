//! Rules of config maps, secrets and leases.

use crate::field_errors::Errors;

/// Bytes of all values of a secret or a config map: `MaxSecretSize`.
pub(crate) const VALUES_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a key.
const KEY_LEN_MAX: usize = 253;

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
