//! Bounds of JSON patches that others send: the number of operations, and how much `copy` may add.
//!
//! A `copy` of a map into itself doubles it, so 40 operations of 60 bytes each would fill any
//! memory. API servers bound both (`JSONPatchMaxCopyBytes` of
//! `k8s.io/apiserver/pkg/server/config.go`, `maxJSONPatchOperations` of its `pkg/endpoints/handlers/patch.go`).
//! Code that applies a patch charges each copy before it makes it.

use std::io;

use serde::Serialize;

/// Maximum number of operations of one JSON patch, as in API servers.
pub const PATCH_OPERATIONS_MAX: usize = 10_000;
/// Maximum number of bytes of JSON that all `copy` operations of one patch may add, as in API
/// servers: 3 MiB.
pub const PATCH_COPIED_LEN_MAX: usize = 3 << 20;

/// The error of a `copy` that exceeds [`PATCH_COPIED_LEN_MAX`], with the message of
/// `evanphx/json-patch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Unable to complete the copy, the accumulated size increase of copy is {len}, exceeding the limit {PATCH_COPIED_LEN_MAX}"
)]
#[non_exhaustive]
pub struct CopyLimitError {
    /// Number of bytes of all copies so far, including this one.
    pub len: usize,
}

/// Counts the bytes that the `copy` operations of one patch have added.
///
/// ```
/// use kctl_webhook::client::CopyBudget;
///
/// let mut budget = CopyBudget::default();
/// assert!(budget.charge(Some(&"x".repeat(1 << 20))).is_ok());
/// assert!(budget.charge(Some(&"x".repeat(2 << 20))).is_err());
/// ```
#[derive(Debug, Default)]
pub struct CopyBudget {
    copied: usize,
}

impl CopyBudget {
    /// Charges the value that a `copy` is about to add. `None`, for a `from` without a value, is
    /// free.
    ///
    /// # Errors
    /// The patch has copied more than [`PATCH_COPIED_LEN_MAX`] bytes; don't make the copy.
    pub fn charge(&mut self, value: Option<&impl Serialize>) -> Result<(), CopyLimitError> {
        let mut counted = Counted(0);
        // Serializing JSON values does not fail. If it did, the bytes written so far would count.
        let _written = value.map(|value| serde_json::to_writer(&mut counted, value));
        self.copied = self.copied.saturating_add(counted.0);
        if self.copied > PATCH_COPIED_LEN_MAX { Err(CopyLimitError { len: self.copied }) } else { Ok(()) }
    }
}

/// Counts bytes as Go writes them: `<`, `>`, `&` and two separators are escapes of six bytes.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let html = bytes.iter().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
        let separators = bytes.windows(3).filter(|three| matches!(three, [0xe2, 0x80, 0xa8 | 0xa9])).count();
        self.0 += bytes.len() + 5 * html + 3 * separators;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn copies_fail_only_beyond_the_limit() {
        let text = |len: usize| Value::from("x".repeat(len - 2));
        for (lens, result) in [
            (vec![PATCH_COPIED_LEN_MAX], Ok(())),
            (vec![1 << 20, 1 << 20, 1 << 20], Ok(())),
            (vec![PATCH_COPIED_LEN_MAX + 1], Err(CopyLimitError { len: PATCH_COPIED_LEN_MAX + 1 })),
            (vec![1 << 20, 1 << 20, (1 << 20) + 1], Err(CopyLimitError { len: PATCH_COPIED_LEN_MAX + 1 })),
        ] {
            let mut budget = CopyBudget::default();
            let found = lens.iter().try_for_each(|len| budget.charge(Some(&text(*len))));
            assert_eq!(found, result, "{lens:?}");
        }
    }

    #[test]
    fn bytes_are_counted_as_go_writes_them() {
        for (value, len) in [
            (json!({ "a": [1, null] }), 14),
            (json!("<"), 8),
            (json!("a&b>"), 16),
            (json!("\u{2028}"), 8),
            (json!("\u{2027}"), 5),
        ] {
            let mut budget = CopyBudget::default();
            budget.charge(Some(&value)).unwrap();
            assert_eq!(budget.copied, len, "{value}");
        }
        let mut budget = CopyBudget::default();
        budget.charge(None::<&Value>).unwrap();
        assert_eq!(budget.copied, 0);
    }
}
