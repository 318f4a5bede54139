//! Files of the project, with their paths in errors.

use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
};

use super::error::AddFailure;

/// Reads a file, with its path in the error.
pub(super) fn read(path: &Path) -> Result<String, AddFailure> {
    std::fs::read_to_string(path).map_err(|source| AddFailure::File { path: path.into(), source })
}

/// The byte order mark with which some editors begin a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns source without its byte order mark and without a first line such as `#!/usr/bin/env`. The offsets of its syntax
/// count neither.
pub(super) fn without_start(text: &str) -> &str {
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let Some(line) = syn::parse_file(text).ok().and_then(|file| file.shebang) else { return text };
    let rest = &text[line.len()..];
    rest.strip_prefix('\n').unwrap_or(rest)
}

/// Replaces a file of the user. The new text is renamed over it when it is complete, so that a full disk or a crash leaves
/// the old one.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), AddFailure> {
    let failed = |source| AddFailure::File { path: path.into(), source };
    // A link remains: its target is replaced.
    let target = path.canonicalize().map_err(failed)?;
    // A file that the user protects is not replaced by a rename.
    let old =
        std::fs::OpenOptions::new().append(true).open(&target).and_then(|file| file.metadata()).map_err(failed)?;
    let new = new_name(&target);
    let written = std::fs::write(&new, text)
        .and_then(|()| std::fs::set_permissions(&new, old.permissions()))
        .and_then(|()| std::fs::rename(&new, &target));
    written.map_err(|error| {
        let _absent = std::fs::remove_file(&new);
        failed(error)
    })
}

/// Returns the path of a file until it is complete, in the same folder, because a rename can't leave the file system.
fn new_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".kctl");
    path.with_file_name(name)
}

/// Writes a file that does not exist, and creates its folders. A file that can't be completed is removed.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), AddFailure> {
    let failed = |source| AddFailure::File { path: path.into(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(|error| {
        let _absent = std::fs::remove_file(path);
        failed(error)
    })
}

/// Returns the Rust files of a folder by name. Hidden ones are not modules: Emacs links `.#main.rs` to nothing while
/// `main.rs` has unsaved changes.
pub(super) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, AddFailure> {
    let failed = |source| AddFailure::File { path: folder.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    let is_hidden = |file: &Path| file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs") && !is_hidden(file));
    files.sort();
    Ok(files)
}
