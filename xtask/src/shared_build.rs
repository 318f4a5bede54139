//! A second target folder that begins with what the first has built. Clippy and rustdoc need the same procedural macros
//! and build scripts as the tests, in a separate folder, because Cargo locks its target folder. So do the packages.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::Result;

/// The folder of Cargo's records of finished builds.
const FINGERPRINTS: &str = ".fingerprint";
/// The folder of compiled crates, which are nearly all of a build.
const COMPILED: &str = "deps";

/// Fills the target folder `to` with the development build of `from`. Does nothing if `to` has a build already, or if
/// `from` has none.
///
/// Cargo compares the modification times of its records with the times of the sources, so they are kept. Compiled
/// crates are hard links, which take no space: compilers replace a file instead of writing to it. Records and the
/// output of build scripts are written in place, so they are copied.
///
/// # Errors
/// A file cannot be read, or `to` is on another file system.
pub(crate) fn seed(from: &Path, to: &Path) -> Result {
    let (from, to) = (from.join("debug"), to.join("debug"));
    if to.exists() || !from.join(FINGERPRINTS).exists() {
        return Ok(());
    }
    for folder in [FINGERPRINTS, "build", COMPILED] {
        let copy = if folder == COMPILED { link } else { copy_with_time };
        for_each_file(&from.join(folder), &to.join(folder), copy)
            .map_err(|error| format!("failed to copy {}: {error}", from.join(folder).display()))?;
    }
    Ok(())
}

/// Calls `copy` with the two paths of each file below a folder, and creates the folders.
///
/// A compiler that runs concurrently deletes its temporary files and folders, so what disappears during the copy is left out.
/// Cargo builds again what a record lacks.
fn for_each_file(from: &Path, to: &Path, copy: fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
    let mut folders: Vec<PathBuf> = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let Some(entries) = if_still_there(fs::read_dir(from.join(&folder)))? else { continue };
        fs::create_dir_all(to.join(&folder))?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            match if_still_there(entry.file_type())? {
                Some(file_type) if file_type.is_dir() => folders.push(path),
                Some(_file) => {
                    if_still_there(copy(&from.join(&path), &to.join(&path)))?;
                }
                None => {}
            }
        }
    }
    Ok(())
}

/// Returns `None` if a file or folder no longer exists.
fn if_still_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Makes a second name for a file.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)
}

/// Copies a file with its modification time.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::File::options().append(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::scratch;

    #[test]
    fn records_are_copied_and_compiled_crates_linked() -> Result {
        let folder = scratch("seed")?;
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        let (from, to) = (folder.join("from"), folder.join("to"));
        for file in [".fingerprint/one/dep", "deps/one.rlib", "build/one/out/text"] {
            let path = from.join("debug").join(file);
            fs::create_dir_all(path.parent().expect("a file has a folder")).map_err(|error| error.to_string())?;
            fs::write(path, "before").map_err(|error| error.to_string())?;
        }
        seed(&from, &to)?;
        for (file, expected) in
            [(".fingerprint/one/dep", "before"), ("deps/one.rlib", "after"), ("build/one/out/text", "before")]
        {
            let (first, second) = (from.join("debug").join(file), to.join("debug").join(file));
            let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).expect("it has a time");
            assert_eq!(modified(&first), modified(&second), "{file}");
            fs::write(first, "after").map_err(|error| error.to_string())?;
            assert_eq!(fs::read_to_string(second).map_err(|error| error.to_string())?, expected, "{file}");
        }
        Ok(())
    }

    #[test]
    fn disappearing_files_are_left_out() -> Result {
        /// Copies a file while a compiler deletes a temporary folder.
        fn copy_while_compiling(from: &Path, to: &Path) -> io::Result<()> {
            fs::remove_dir_all(from.with_file_name("rmeta1"))?;
            link(from, to)
        }
        let folder = scratch("seed-deleted")?;
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::create_dir_all(folder.join("from/rmeta1")).map_err(|error| error.to_string())?;
        fs::write(folder.join("from/one.rlib"), "").map_err(|error| error.to_string())?;
        let copied = for_each_file(&folder.join("from"), &folder.join("to"), copy_while_compiling);
        copied.map_err(|error| error.to_string())?;
        assert!(folder.join("to/one.rlib").exists() && !folder.join("to/rmeta1").exists());
        Ok(())
    }

    #[test]
    fn existing_build_is_not_overwritten() -> Result {
        let folder = scratch("seed-existing")?;
        let (from, to) = (folder.join("from"), folder.join("to"));
        for target in [&from, &to] {
            fs::create_dir_all(target.join("debug/.fingerprint")).map_err(|error| error.to_string())?;
        }
        fs::write(from.join("debug/.fingerprint/new"), "").map_err(|error| error.to_string())?;
        seed(&from, &to)?;
        assert!(!to.join("debug/.fingerprint/new").exists());
        Ok(())
    }
}
