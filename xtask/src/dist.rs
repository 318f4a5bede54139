//! `cargo xtask dist`: builds the archive of the `kctl` tool that users download.

use std::path::Path;

use crate::{
    Result,
    process::{Run, cargo, root, target as built},
    steps::of_workspace,
};

/// Copies a file into a folder and keeps its name.
fn copy(from: &Path, folder: &Path) -> Result {
    let name = from.file_name().ok_or("a file has a name")?;
    std::fs::copy(from, folder.join(name)).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// Builds the tool for a target triple, and packs it with its licences into `target/dist`.
///
/// The archive is named `kctl-VERSION-TARGET.tar.gz` and has one folder of that name.
///
/// # Errors
/// The target is not installed, the build fails, or `tar` is missing.
pub(crate) fn run(target: &str) -> Result {
    cargo("build")
        .args(["--release", "--locked", "--package", "kctl-cli", "--bin", "kctl", "--target", target])
        .run()?;
    let name = format!("kctl-{}-{target}", of_workspace("version")?);
    let dist = root().join("target/dist");
    let folder = built().join("xtask").join(&name);
    for folder in [&dist, &folder] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let program = if target.contains("windows") { "kctl.exe" } else { "kctl" };
    copy(&built().join(target).join("release").join(program), &folder)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE", "README.md"] {
        copy(&root().join(file), &folder)?;
    }
    let archive = dist.join(format!("{name}.tar.gz"));
    Run::new("tar").arg("-czf").arg(archive).arg("-C").arg(folder.parent().unwrap_or(&folder)).arg(&name).run()
}
