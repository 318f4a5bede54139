//! Small files that only their owner may read: keys, certificates, the port, a kubeconfig.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Writes a file with mode 0600, completely or not at all. A temporary file of a killed process is replaced.
///
/// The temporary file is always a new file, so its mode does not depend on an older file. It is synced before the
/// rename: after a crash the path has the old or the new contents.
///
/// # Errors
/// The folder can't be written, or the disk is full.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    write_with_suffix(path, ".new", text)
}

/// Writes a file as [`write`] does, with another suffix of the temporary file.
///
/// # Errors
/// The same as of [`write`].
pub fn write_with_suffix(path: &Path, suffix: &str, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    let temporary = path.with_file_name(name);
    let mut file = create(&temporary)?;
    let written =
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The error of the write is the one to report.
        let _removed = fs::remove_file(&temporary);
    }
    written
}

/// Creates an empty file with mode 0600. An older file of the name is removed first, so that its mode has no effect.
///
/// # Errors
/// The folder can't be written.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns the remedy for a failed write, for messages.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space on the disk",
        _ => "make the folder writable",
    }
}

/// Returns the contents of a file, or `None` if it does not exist.
///
/// # Errors
/// Any other error: an unreadable file must not be mistaken for an absent one and replaced.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn file_is_private_even_over_a_readable_leftover() {
        let folder = std::env::temp_dir().join(format!("kctl-private-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("key");
        for name in ["key", "key.new"] {
            fs::write(folder.join(name), "old").unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o644)).unwrap();
        }
        write(&path, "new").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("new"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&folder.join("key.new")).unwrap(), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn failed_write_leaves_no_temporary_file() {
        let folder = std::env::temp_dir().join(format!("kctl-private-failed-{}", std::process::id()));
        let path = folder.join("key");
        // A file can't replace a folder.
        fs::create_dir_all(&path).unwrap();
        write(&path, "new").unwrap_err();
        assert!(!folder.join("key.new").exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn remedy_for_a_full_disk_is_space() {
        assert_eq!(remedy(&io::ErrorKind::StorageFull.into()), "free some space on the disk");
        assert_eq!(remedy(&io::ErrorKind::PermissionDenied.into()), "make the folder writable");
    }
}
