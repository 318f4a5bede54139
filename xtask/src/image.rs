//! The step `image`: builds the container image of a project from `kctl new`, with the packages of a release in place of those
//! on crates.io.

use std::path::PathBuf;

use crate::{
    Result,
    gate::Gate,
    packages::{self, Builds, copy, read, write},
    process::{Run, cargo, find, root, scratch, target},
    steps::of_workspace,
};

/// The name of the project and of its program.
const NAME: &str = "tea-room";
/// The name of the image. Each run of the step replaces it.
const IMAGE: &str = "kctl-new-project:built";
/// The commit that the build of the image gets.
const COMMIT: &str = "abc1234";
/// The folder of the packages in the project, because a build reads nothing outside of it.
const PACKAGES: &str = "packages";
/// The line of the Dockerfile that copies the files for the layer of dependencies.
const MANIFESTS: &str = "COPY Cargo.toml Cargo.lock ./\n";

/// Builds the image with the commands of the project's README, and runs its program.
///
/// The client of Docker is often installed where no daemon runs. `docker version` fails there.
///
/// # Errors
/// The image can't be built, or its program prints another version or commit.
pub(crate) fn run(gate: &mut Gate) -> Result {
    if find("docker").is_none() || !Run::new("docker").arg("version").succeeds() {
        gate.leave_out("no Docker daemon is available: the image of a new project is not built", &[]);
        return Ok(());
    }
    let version = of_workspace("version")?;
    let project = create_project(&version)?;
    let commit = format!("COMMIT={COMMIT}");
    Run::new("docker").args(["build", "--build-arg", &commit, "--tag", IMAGE, "."]).folder(project).run()?;
    let printed = Run::new("docker").args(["run", "--rm", IMAGE, "--version"]).read()?;
    let expected = format!("{NAME} 0.1.0, commit {COMMIT}\nkctl {version}, release build for ");
    if printed.starts_with(&expected) {
        Ok(())
    } else {
        Err(format!("the image of a new project prints `{printed}`, which does not start with `{expected}`"))
    }
}

/// Creates the project with the packages in it, and a `Cargo.lock` for them. Returns its folder.
fn create_project(version: &str) -> Result<PathBuf> {
    let folder = scratch("image")?;
    let project = folder.join(NAME);
    if project.exists() {
        std::fs::remove_dir_all(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    }
    let kctl = cargo("run").args(["--locked", "--bin", "kctl", "--manifest-path"]).arg(root().join("Cargo.toml"));
    let kctl = kctl.args(["--", "new", NAME, "--vcs", "none"]).folder(&folder);
    // A relative `CARGO_TARGET_DIR` would be below the working directory.
    kctl.env("CARGO_TARGET_DIR", target()).run()?;
    packages::unpack_all(Builds::Together, version, &project.join(PACKAGES))?;

    let (manifest, dockerfile) = (project.join("Cargo.toml"), project.join("Dockerfile"));
    write(&manifest, &with_patches(&read(&manifest)?, version)?)?;
    write(&dockerfile, &with_packages(&read(&dockerfile)?)?)?;
    // The versions that the workspace is tested with. Cargo removes what the project doesn't need.
    copy(&root().join("Cargo.lock"), &project.join("Cargo.lock"))?;
    cargo("update").args(["--workspace", "--offline"]).folder(&project).run()?;
    Ok(project)
}

/// Returns the manifest of a project, with a version of kctl in place of the path that `kctl new` of a checkout writes, and with
/// the packages for that version.
fn with_patches(manifest: &str, version: &str) -> Result<String> {
    let path = format!("path = {:?}", root().join("kctl").display().to_string());
    let manifest = replace(manifest, &path, &format!("version = {version:?}"))?;
    let patches = packages::patches(version, PACKAGES);
    let tables = format!("\n[workspace]\nexclude = [{PACKAGES:?}]\n\n[patch.crates-io]\n{patches}");
    replace(&manifest, "\n[workspace]\n", &tables)
}

/// Returns the Dockerfile, which also copies the packages before it compiles the dependencies.
fn with_packages(dockerfile: &str) -> Result<String> {
    replace(dockerfile, MANIFESTS, &format!("{MANIFESTS}COPY {PACKAGES} {PACKAGES}\n"))
}

/// Returns a file of the project with one part replaced.
///
/// # Errors
/// The file has no such part, or several.
fn replace(file: &str, from: &str, to: &str) -> Result<String> {
    match file.matches(from).count() {
        1 => Ok(file.replace(from, to)),
        n => Err(format!("`{from}` occurs {n} times in a file of a new project, not once: did its template change?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_compiles_dependencies_with_packages() {
        let template = read(&root().join("kctl-cli/templates/dockerfile.tpl")).unwrap();
        let dockerfile = with_packages(&template).unwrap();
        let position = |line: &str| dockerfile.find(line).unwrap();
        assert!(position("\nCOPY packages packages\n") < position("\nRUN mkdir src "));
        assert!(with_packages("FROM scratch\n").is_err());
    }

    #[test]
    fn manifest_takes_kctl_from_packages() {
        let template = read(&root().join("kctl-cli/templates/Cargo.toml.tpl")).unwrap();
        let path = format!("path = {:?}", root().join("kctl").display().to_string());
        // `kctl new` adds the table at the end.
        let created = template.replace("{{kctl}}", &path) + "\n# Not a member of a workspace above it.\n[workspace]\n";
        let manifest = with_patches(&created, "0.1.0").unwrap();
        assert!(manifest.contains("\nkctl = { version = \"0.1.0\", default-features = false"), "{manifest}");
        assert!(manifest.contains("\n[workspace]\nexclude = [\"packages\"]\n\n[patch.crates-io]\n"), "{manifest}");
        assert!(manifest.contains("\nkctl-macros = { path = \"packages/kctl-macros-0.1.0\" }\n"), "{manifest}");
        assert!(with_patches(&template, "0.1.0").is_err());
    }
}
