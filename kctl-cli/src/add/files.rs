//! Files of the project, with their paths in errors.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use super::error::AddFailure;

/// Reads a file, with its path in the error.
pub(super) fn read(path: &Path) -> Result<String, AddFailure> {
    std::fs::read_to_string(path).map_err(|source| AddFailure::File { path: path.into(), source })
}

/// Writes a file and creates its folders. Replaces what is there: callers check first.
pub(super) fn write(path: &Path, text: &str) -> Result<(), AddFailure> {
    let failed = |source| AddFailure::File { path: path.into(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::write(path, text).map_err(failed)
}

/// Writes a file that does not exist, and creates its folders.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), AddFailure> {
    let failed = |source| AddFailure::File { path: path.into(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    std::fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}

/// Returns the Rust files of a folder by name.
pub(super) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, AddFailure> {
    let failed = |source| AddFailure::File { path: folder.into(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    Ok(files)
}
