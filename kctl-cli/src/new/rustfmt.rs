//! Formats generated code with rustfmt.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// Formats a file, since line lengths depend on the names. Without rustfmt it prints a note: `cargo fmt --check` of the
/// project's workflow would fail.
pub(crate) fn format_file(file: &Path) {
    let formatted = std::fs::read_to_string(file).ok().and_then(|source| format_source(&source));
    if formatted.is_none_or(|formatted| std::fs::write(file, formatted).is_err()) {
        say!("note: rustfmt could not format {}; run `cargo fmt` before you commit", file.display());
    }
}

/// Returns source as rustfmt formats it; `None` without rustfmt, or if it cannot be parsed.
///
/// rustfmt gets it on standard input, because it would format the modules of a named file as well. It runs outside of the
/// project, whose `rust-toolchain.toml` may name a version of Rust that is not installed.
pub(crate) fn format_source(source: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(std::env::temp_dir());
    rustfmt.args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = rustfmt.spawn().ok()?;
    // rustfmt reads all of its input before it writes, so neither side waits for the other.
    child.stdin.take()?.write_all(source.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8(output.stdout).ok().filter(|_| output.status.success())
}
