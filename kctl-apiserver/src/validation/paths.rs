//! Validation of file paths and file modes.
//!
//! A path in a volume is joined to a directory of the host by kubelet. Rejecting absolute paths and
//! `..` keeps the result inside the volume. Paths are split at `/` only, as in upstream: backslashes
//! are ordinary characters, also in Pods for Windows.

use serde_json::Value;

use crate::field_errors::{Errors, text};

/// The highest mode of a file: 0777.
///
/// Permission bits only: set-uid, set-gid and the sticky bit are rejected.
const MODE_MAX: i64 = 0o777;

/// Validates a relative path without `..` (`FieldValueInvalid`; `validateLocalDescendingPath`).
///
/// An absent path is valid, and so is the empty one: both name the volume itself.
pub(crate) fn descending(path: &Value, field_path: &str, errors: &mut Errors) {
    if text(path).starts_with('/') {
        errors.invalid(field_path, path, "must be a relative path");
    }
    without_backsteps(path, field_path, errors);
}

/// Validates that no part of a path is `..` (`FieldValueInvalid`; `validatePathNoBacksteps`).
///
/// Used for absolute paths, too, such as those of `hostPath`.
pub(crate) fn without_backsteps(path: &Value, field_path: &str, errors: &mut Errors) {
    if has_backsteps(path) {
        errors.invalid(field_path, path, "must not contain '..'");
    }
}

/// Returns `true` if a part of the path is `..`. A part such as `..data` does not count.
pub(crate) fn has_backsteps(path: &Value) -> bool {
    text(path).split('/').any(|part| part == "..")
}

/// Validates a relative path that does not start with `..`, which is reserved for kubelet
/// (`validateLocalNonReservedPath`).
///
/// An absent path counts as empty. `..` itself and paths below it are already rejected by the first rule; the second
/// one catches names such as `..data`. The second rule only looks at the start, so `a/..data` is valid.
pub(crate) fn not_reserved(path: &Value, field_path: &str, errors: &mut Errors) {
    let path = if path.is_null() { &Value::from("") } else { path };
    descending(path, field_path, errors);
    if text(path).starts_with("..") && !text(path).starts_with("../") {
        errors.invalid(field_path, path, "must not start with '..'");
    }
}

/// Validates a file mode, 0 to 0777 (`FieldValueInvalid`).
///
/// JSON has no octal numbers, so a client writes 511 for 0777 in JSON; YAML reads `0777` as octal.
/// An absent mode is valid and defaults to 0644 at the volume.
pub(crate) fn mode(mode: &Value, path: &str, errors: &mut Errors) {
    if mode.as_i64().is_some_and(|mode| !(0..=MODE_MAX).contains(&mode)) {
        errors.invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
