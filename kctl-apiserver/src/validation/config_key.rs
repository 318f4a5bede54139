//! Keys of `ConfigMap`s and Secrets, and the limit of their size.
//!
//! A key becomes a file name when the object is mounted as a volume, and a variable name with `envFrom`, which limits
//! its characters. Names that begin with `..` are rejected, because kubelet uses them for symbolic links that swap the
//! contents of a volume atomically.

use crate::field::Field;

/// Maximum size of all values of a Secret or `ConfigMap`, in bytes (`MaxSecretSize`). For a Secret the decoded values
/// count.
pub(crate) const VALUES_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a key, in bytes (`DNS1123SubdomainMaxLength`).
const KEY_LEN_MAX: usize = 253;

/// Returns the number of bytes that a base64 string without line breaks decodes to.
pub(crate) fn decoded_len(base64: &str) -> usize {
    let n_padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(n_padding)
}

/// Validates a key of a `ConfigMap` or Secret (`IsConfigMapKey`).
pub(crate) fn validate_config_key(key: &Field<'_>) {
    let text = key.text();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_valid = (1..=KEY_LEN_MAX).contains(&text.len()) && text.bytes().all(is_allowed);
    key.invalid_if(
        !is_valid || text == "." || text.starts_with(".."),
        format_args!(
            "must be 1 to {KEY_LEN_MAX} letters, digits, hyphens, underscores and dots, not '.', and not start with '..'"
        ),
    );
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_STANDARD};

    use super::decoded_len;

    /// A Secret of exactly 1 MiB is rejected if its padding counts.
    #[test]
    fn padding_of_base64_is_not_counted() {
        for n_bytes in 0..8 {
            let text = BASE64_STANDARD.encode(vec![0_u8; n_bytes]);
            assert_eq!(decoded_len(&text), n_bytes, "{text}");
        }
    }
}
