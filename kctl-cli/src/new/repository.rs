//! Repositories of Git, Mercurial and Jujutsu around a new project.

use std::{
    path::Path,
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
    let folder = std::path::absolute(folder).unwrap_or_else(|_error| folder.into());
    folder.ancestors().any(has_repository)
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
