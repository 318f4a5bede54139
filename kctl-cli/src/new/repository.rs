//! Repositories of Git, Mercurial and Jujutsu around a new project.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Folders of the repositories of Git, Mercurial and Jujutsu.
pub(super) const REPOSITORIES: [&str; 3] = [".git", ".hg", ".jj"];

/// Returns `true` if a folder is the root of a repository.
pub(super) fn has_repository(folder: &Path) -> bool {
    REPOSITORIES.iter().any(|name| folder.join(name).exists())
}

/// Returns `true` if the folder is to be within a repository of git, Mercurial or Jujutsu.
pub(super) fn is_in_repository(folder: &Path) -> bool {
    real_path(folder).ancestors().any(has_repository)
}

/// Returns the path of a folder without `..` and links, also of one that does not exist yet.
///
/// The folders above `/web/../shop` would otherwise include the folders above `/web`.
pub(super) fn real_path(folder: &Path) -> PathBuf {
    let folder = std::path::absolute(folder).unwrap_or_else(|_error| folder.into());
    let existing = folder.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let real = existing.and_then(|(above, real)| Some(real.join(folder.strip_prefix(above).ok()?)));
    real.unwrap_or(folder)
}

/// Makes the folder a git repository. The project works without one, so a failure is only a note.
pub(super) fn init_git(folder: &Path) {
    // The workflow runs for this branch. Versions of Git without the setting ignore it.
    let init = ["-c", "init.defaultBranch=main", "init", "--quiet"];
    let done = Command::new("git").args(init).current_dir(folder).stderr(Stdio::null()).status();
    if !done.is_ok_and(|status| status.success()) {
        say!("note: git could not create a repository; `--vcs none` leaves it out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_in_a_sibling_folder_does_not_count() {
        let folder = std::env::temp_dir().join(format!("kctl-repository-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("web/.git")).unwrap();
        for (path, expected) in
            [("web/shop", true), ("web/a/../shop", true), ("web/../shop", false), ("web/../a/../shop", false)]
        {
            assert_eq!(is_in_repository(&folder.join(path)), expected, "{path}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
