//! Makes a new project the root of its workspace, or a member of one above it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{error::NewFailure, write};

/// The tables of a package that is the root of a workspace.
///
/// Cargo otherwise rejects a package below a workspace that does not list it. In a member Cargo would ignore the profiles,
/// with a warning.
const ROOT_TABLES: &str = "
[profile.dev]
# Shorter builds and less disk; backtraces still name lines. Remove it for a debugger that shows variables.
debug = \"line-tables-only\"

# A smaller program that takes less CPU time, for a longer build.
[profile.release]
lto = \"thin\"
codegen-units = 1

# Not a member of a workspace above it.
[workspace]
";

/// Makes the package the root of a workspace, unless it is a member of one above it.
pub(super) fn set_workspace(folder: &Path) -> Result<(), NewFailure> {
    if let Some(root) = workspace_of(folder) {
        say!(
            "note: the project is a member of the workspace {}, whose Cargo.lock its Dockerfile does not see",
            root.display()
        );
        return Ok(());
    }
    let manifest = folder.join("Cargo.toml");
    let failed = |source| NewFailure::Write { path: manifest.clone(), source };
    let text = std::fs::read_to_string(&manifest).map_err(failed)?;
    write(&manifest, &(text + ROOT_TABLES))
}

/// Returns the folder of the workspace that has a package among its members; `None` without Cargo.
///
/// Cargo evaluates `members` and `exclude`, and fails for a package that is in neither of them.
fn workspace_of(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().skip(1).find(|above| above.join("Cargo.toml").exists())?;
    let mut cargo = Command::new("cargo");
    // From the folder above: within the project, rustup might first download the toolchain that the project pins.
    cargo.args(["locate-project", "--workspace", "--message-format", "plain", "--manifest-path"]);
    cargo.arg(folder.join("Cargo.toml")).current_dir(folder.parent()?);
    let output = cargo.stderr(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let root = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()).parent()?.canonicalize().ok()?;
    (root != folder).then_some(root)
}
