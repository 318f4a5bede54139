//! Validation of file paths and file modes.
//!
//! A path in a volume is joined to a directory of the host by kubelet. Rejecting absolute paths and
//! `..` keeps the result inside the volume. Paths are split at `/` only, as in upstream: backslashes
//! are ordinary characters, also in Pods for Windows.

use serde_json::Value;

use crate::{field::Field, field_errors::text};

/// The highest mode of a file. Set-uid, set-gid and the sticky bit are rejected. JSON has no octal numbers, so a client
/// writes 511 for 0777 in JSON; YAML reads `0777` as octal.
pub(crate) const MODE_MAX: i64 = 0o777;

/// Validates a relative path without `..` (`validateLocalDescendingPath`). An absent path is valid, and so is the empty
/// one: both name the volume itself.
pub(crate) fn validate_descending(path: &Field<'_>) {
    let is_descending = !path.text().starts_with('/') && !has_backsteps(path);
    path.invalid_if(!is_descending, "must be a relative path without '..'");
}

/// Validates that no part of a path is `..` (`validatePathNoBacksteps`). Used for absolute paths, too, such as in
/// `hostPath`.
pub(crate) fn without_backsteps(path: &Field<'_>) {
    path.invalid_if(has_backsteps(path), "must not contain '..'");
}

/// Returns `true` if a part of the path is `..`. A part such as `..data` does not count.
pub(crate) fn has_backsteps(path: &Value) -> bool {
    text(path).split('/').any(|part| part == "..")
}

/// Validates a relative path that does not start with `..`, which is reserved for kubelet
/// (`ValidateLocalNonReservedPath`). Only the start is reserved: `a/..data` is valid.
pub(crate) fn validate_not_reserved(path: &Field<'_>) {
    let is_wrong = path.text().starts_with('/') || path.text().starts_with("..") || has_backsteps(path);
    path.invalid_if(is_wrong, "must be a relative path without '..' segments, and not start with '..'");
}
