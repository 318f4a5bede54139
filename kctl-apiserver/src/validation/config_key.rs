//! Keys of `ConfigMap`s and Secrets, and the limit of their size.
//!
//! A key becomes a file name when the object is mounted as a volume, and a variable name with `envFrom`, which limits
//! its characters. Names that begin with `..` are rejected, because kubelet uses them for symbolic links by which it
//! swaps the contents of a volume atomically.

use crate::field_errors::Errors;

/// Maximum size of all values of a Secret or `ConfigMap`, in bytes (`MaxSecretSize`).
///
/// The sum counts values only, not keys and metadata. For a Secret the decoded values count, not
/// their base64 form. An object at exactly this size is valid.
pub(crate) const VALUES_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a key, in bytes.
///
/// The same bound as for a DNS subdomain (`DNS1123SubdomainMaxLength`).
const KEY_LEN_MAX: usize = 253;

/// Validates a key of a `ConfigMap` or Secret (`IsConfigMapKey`).
///
/// All errors are `FieldValueInvalid`. A key that is too long can get a second error about its
/// characters. The forms `.`, `..` and `..data` are only reported for keys with valid characters.
/// `...` at the start of a key is rejected too, because it starts with `..`.
pub(crate) fn config_key(key: &str, path: &str, errors: &mut Errors) {
    if key.len() > KEY_LEN_MAX {
        errors.invalid(path, &key.into(), &format!("must be no more than {KEY_LEN_MAX} characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(allowed) {
        errors.invalid(path, &key.into(), "must be letters, digits, hyphens, underscores and dots");
    } else if key == "." || key == ".." {
        errors.invalid(path, &key.into(), &format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        errors.invalid(path, &key.into(), "must not start with '..'");
    }
}
