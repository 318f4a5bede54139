//! Writes to standard output. A reader that closed the pipe, such as `head`, is not an error.

use std::io::Write;

use kctl_runtime::reconcile::Result;

/// Writes to standard output. A closed pipe is not an error.
pub(super) fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
