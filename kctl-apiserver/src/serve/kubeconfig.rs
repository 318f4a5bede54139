//! Writes a kubeconfig for the server.
//!
//! The file is written as text and not by a serializer: its fields are few, and their order is always the same.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use kctl_webhook::private_file;

use super::identity::Identity;

/// The first line of a file that kctl has written and may replace. A user who wants to keep the file removes this line;
/// the next write then fails instead.
const MARK: &str = "# Written by kctl; replaced at the next start.";

/// The name of the first server, and of its context. It does not depend on the server: `kubectl --context kctl`.
pub(super) const OWN: &str = "kctl";

/// Returns a kubeconfig with one context per server. The first is the current one. All values are embedded, so the file
/// works from any folder. The namespace of each context is `default`.
pub(super) fn text(servers: &[(&str, String, &Identity)]) -> String {
    let encoded = |pem: &str| BASE64_STANDARD.encode(pem);
    let current = servers.first().map_or(OWN, |(name, _, _)| name);
    let mut text = format!("{MARK}\napiVersion: v1\nkind: Config\ncurrent-context: {current}\nclusters:\n");
    for (name, url, identity) in servers {
        let authority = encoded(&identity.authority_pem);
        text +=
            &format!("- name: {name}\n  cluster:\n    server: {url}\n    certificate-authority-data: {authority}\n");
    }
    text += "contexts:\n";
    for (name, _, _) in servers {
        let user = user(name);
        text += &format!("- name: {name}\n  context:\n    cluster: {name}\n    user: {user}\n    namespace: default\n");
    }
    text += "users:\n";
    for (name, _, identity) in servers {
        let (certificate, key) = (encoded(&identity.admin_pem), encoded(&identity.admin_key_pem));
        text += &format!("- name: {}\n  user:\n    client-certificate-data: {certificate}\n", user(name));
        text += &format!("    client-key-data: {key}\n");
    }
    text
}

/// Returns the name of a server's administrator. The first has the name that kubeadm uses; the names of the others have
/// the server behind it.
fn user(server: &str) -> String {
    if server == OWN { "kubernetes-admin".into() } else { format!("kubernetes-admin-{server}") }
}

/// Writes the kubeconfig with mode 0600, if the file is absent or was written by kctl. The name of the temporary file
/// contains the process id, so that two servers do not write into the same file.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    if !may_write(file)? {
        let why = "it was not written by kctl and is not replaced; name another file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    private_file::write_with_suffix(file, &format!(".{}", std::process::id()), text)
}

/// Returns `true` if the file does not exist or kctl has written it. Reads only the first line.
///
/// # Errors
/// Fails if the file can't be read, or if it is a device, a pipe or a folder. Those are never replaced, and reading one
/// may never end.
fn may_write(file: &Path) -> io::Result<bool> {
    let kind = match fs::metadata(file) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if !kind.is_file() {
        let what = if kind.is_dir() { "folder" } else { "device or pipe" };
        let why = format!("it is a {what}; name a file, which is written and replaced at each start");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut start = Vec::new();
    fs::File::open(file)?.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(start == MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn kubeconfig_not_written_by_kctl_is_kept() {
        let folder = TestFolder::new("kubeconfig");
        let file = folder.join("config");
        fs::write(&file, "apiVersion: v1\nkind: Config\n").unwrap();
        let error = write(&file, MARK).unwrap_err();
        assert!(error.to_string().contains("not written by kctl"), "{error}");
        fs::remove_file(&file).unwrap();
        write(&file, MARK).unwrap();
        write(&file, &format!("{MARK}\nagain")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{MARK}\nagain"));
    }

    #[cfg(unix)]
    #[test]
    fn key_goes_into_a_new_private_file() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = TestFolder::new("kubeconfig-private");
        let (file, stolen) = (folder.join("config"), folder.join("stolen"));
        let beside = folder.join(format!("config.{}", std::process::id()));
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        // Another user guessed the name of the temporary file.
        symlink(&stolen, &beside).unwrap();
        write(&file, MARK).unwrap();
        assert_eq!((mode(), stolen.exists()), (0o600, false));
        fs::write(&beside, "old").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
        write(&file, MARK).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn devices_pipes_and_folders_are_rejected_at_once() {
        let folder = TestFolder::new("kubeconfig-kinds");
        let pipe = folder.join("pipe");
        // POSIX has the command, so this machine has it.
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (file, what) in [
            (Path::new("/dev/zero"), "device or pipe"),
            (Path::new("/dev/null"), "device or pipe"),
            (&*folder, "folder"),
            (pipe.as_path(), "device or pipe"),
        ] {
            let error = write(file, MARK).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("name a file"), "{}: {error}", file.display());
        }
    }
}
