//! Replaces a file as a whole: a reader sees the old text or the new one.

use std::{ffi::OsString, path::Path};

/// Replaces an existing file. The new text is renamed over it when it is complete, so that a full disk or a crash leaves the
/// old one.
pub(super) fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // A link remains: its target is replaced.
    let target = file.canonicalize()?;
    // A file that the user protects is not replaced by a rename.
    let old = std::fs::OpenOptions::new().append(true).open(&target)?.metadata()?;
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".kctl");
    let new = target.with_file_name(name);
    let written = std::fs::write(&new, text)
        .and_then(|()| std::fs::set_permissions(&new, old.permissions()))
        .and_then(|()| std::fs::rename(&new, &target));
    written.inspect_err(|_error| {
        let _absent = std::fs::remove_file(&new);
    })
}
