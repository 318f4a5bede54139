//! The files that `dev` applies.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use kctl_runtime::reconcile::{Error, Result, ResultExt};

use super::files::{FromFile, parse};

/// Reads files, the `.yaml`, `.yml` and `.json` files of folders sorted by name, and standard input
/// for `-`.
///
/// # Errors
/// A path can't be read, is not YAML or JSON, or has no objects; kubectl rejects an empty file as
/// well.
fn read(paths: &[PathBuf]) -> Result<Vec<FromFile>> {
    let mut objects = Vec::new();
    for path in paths {
        let before = objects.len();
        if path.as_os_str() == "-" {
            let mut text = String::new();
            read_bounded(std::io::stdin(), "standard input", &mut text)?;
            parse(&text, "standard input", &mut objects)?;
        } else if path.is_dir() {
            for file in files_of(path)? {
                read_file(&file, &mut objects)?;
            }
        } else {
            read_file(path, &mut objects)?;
        }
        if objects.len() == before {
            return Err(Error::from(no_objects_error(path)));
        }
    }
    Ok(objects)
}

/// Returns the error message for a path without objects.
fn no_objects_error(path: &Path) -> String {
    match (path.is_dir(), path.as_os_str() == "-") {
        (true, _) => format!("{}: no objects in it: name a folder with .yaml, .yml or .json files", path.display()),
        (false, true) => "standard input: no objects in it".to_owned(),
        (false, false) => format!("{}: no objects in it", path.display()),
    }
}

/// Reads files, or the app's own objects if no files are named.
pub(super) fn read_or(paths: &[PathBuf], yaml: Option<&str>) -> Result<Vec<FromFile>> {
    let mut objects = read(paths)?;
    if let Some(yaml) = yaml.filter(|_| paths.is_empty()) {
        parse(yaml, "the objects of the app", &mut objects)?;
    }
    Ok(objects)
}

/// Returns the manifests of a folder by name, not including subfolders, as `kubectl apply -f DIR`.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).context(flag(folder))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| {
        file.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|known| ending == *known))
    });
    files.sort();
    Ok(files)
}

/// Maximum number of bytes of a file or of standard input. Devices and pipes may have no end.
const FILE_LEN_MAX: u64 = 256 << 20;

/// Formats the option that names a file, for errors.
fn flag(path: &Path) -> String {
    format!("-f {}", path.display())
}

/// Reads a file that the user has named.
fn text_of(path: &Path) -> Result<String> {
    let mut text = String::new();
    read_bounded(std::fs::File::open(path).context(flag(path))?, &path.display().to_string(), &mut text)?;
    Ok(text)
}

/// Reads a string of at most [`FILE_LEN_MAX`] bytes.
///
/// # Errors
/// The source is longer, can't be read, or is not UTF-8.
fn read_bounded(source: impl Read, origin: &str, text: &mut String) -> Result<()> {
    let len = source.take(FILE_LEN_MAX + 1).read_to_string(text).context(origin)?;
    if len as u64 > FILE_LEN_MAX {
        return Err(Error::from(format!("{origin}: longer than {FILE_LEN_MAX} bytes; is it a device?")));
    }
    Ok(())
}

fn read_file(path: &Path, objects: &mut Vec<FromFile>) -> Result<()> {
    let text = text_of(path)?;
    parse(&text, &path.display().to_string(), objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_without_objects_is_rejected_by_name() {
        let folder = std::env::temp_dir().join(format!("kctl-files-{}", std::process::id()));
        let (empty, other) = (folder.join("empty.yaml"), folder.join("other"));
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(&empty, "---\n# nothing\n").unwrap();
        for (path, expected) in [(&empty, "no objects in it"), (&other, "a folder with .yaml, .yml or .json files")] {
            let error = read(std::slice::from_ref(path)).err().unwrap().to_string();
            assert!(error.starts_with(&path.display().to_string()) && error.ends_with(expected), "{error}");
        }
        let error = read(&[folder.join("missing.yaml")]).err().unwrap().to_string();
        assert!(error.starts_with(&format!("-f {}: ", folder.join("missing.yaml").display())), "{error}");
        std::fs::write(other.join("a.yml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: a}").unwrap();
        assert_eq!(read(&[other]).unwrap().len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
