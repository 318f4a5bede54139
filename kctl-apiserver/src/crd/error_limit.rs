//! The bound of the errors of a custom resource.

use crate::field_errors::Errors;

/// The bytes of the paths of errors. Beyond them, no further items and fields are checked. A path repeats the keys
/// above it, so the paths of the errors of a 3 MB object could take hundreds of gigabytes.
const ERROR_PATHS_SIZE_MAX: usize = 10 * 1024 * 1024;

/// Returns `true` if so many errors with at least the path of a value are found that none is added below it.
pub(super) fn is_limit_reached(errors: &Errors, path: &str) -> bool {
    errors.len().saturating_mul(path.len()) > ERROR_PATHS_SIZE_MAX
}
