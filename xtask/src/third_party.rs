//! A crate that depends on the third-party crates of this workspace, with the features that the workspace enables.
//!
//! Cargo compiles a crate once for each set of features. A project outside the workspace enables fewer features of a few
//! crates, such as `syn`, so everything that depends on those would be compiled again. With this crate among its
//! dependencies, the project reuses what the workspace has compiled. The step `packages` builds the quickstart without
//! it, with the features of a user.
//!
//! It has no crate of kctl: Cargo identifies a path dependency by its path relative to the root of the workspace. Outside of
//! the workspace the path is absolute, so Cargo compiles these crates again even with the same features.

use std::collections::BTreeSet;

use crate::{
    Result,
    process::{Run, cargo, scratch},
};

/// The environment variable with tables for the manifest of a project that a test creates.
pub(crate) const VARIABLE: &str = "KCTL_THIRD_PARTY";
/// The name of the crate.
const NAME: &str = "third-party";
/// The macro crate of the workspace. Its dependencies are compiled for the host, although it is a member.
const MACROS: &str = "kctl-macros";

/// The packages that the workspace depends on, as lines such as `syn v2.0.1|full,visit`.
pub(crate) struct Dependencies {
    /// The packages that are compiled for the target.
    target: BTreeSet<String>,
    /// The packages of target and host together.
    all: BTreeSet<String>,
}

impl Dependencies {
    /// Reads the dependencies with `cargo tree`.
    ///
    /// # Errors
    /// Cargo cannot read them.
    pub(crate) fn read() -> Result<Self> {
        let tree = || {
            cargo("tree").args(["--workspace", "--locked", "--prefix", "none", "--no-dedupe", "--format", "{p}|{f}"])
        };
        let target = lines(tree().args(["--exclude", MACROS, "--edges", "normal,dev,no-proc-macro"]))?;
        let all = lines(tree().args(["--edges", "normal,build,dev"]))?;
        Ok(Self { target, all })
    }

    /// Writes the crate into `target/xtask`. Returns a table for the end of a manifest that depends on it. The manifest has
    /// `[dependencies]` already, and a second one would be an error.
    ///
    /// With a version of Kubernetes such as `v1_33`, `k8s-openapi` has that one instead of the workspace's, because it
    /// compiles with exactly one. Then Cargo compiles `k8s-openapi` and what depends on it again.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, version: Option<&str>) -> Result<String> {
        let select = |lines: &BTreeSet<String>| match version {
            Some(version) => lines.iter().map(|line| with_version(line, version)).collect(),
            None => lines.clone(),
        };
        let folder = scratch(NAME)?;
        std::fs::create_dir_all(folder.join("src")).map_err(|error| format!("{}: {error}", folder.display()))?;
        for (file, text) in [
            ("Cargo.toml", manifest(&select(&self.target), &select(&self.all))),
            ("build.rs", "fn main() {}\n".to_owned()),
            ("src/lib.rs", String::new()),
        ] {
            let file = folder.join(file);
            // Cargo builds the crate again if a file is newer than the build.
            if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
        Ok(format!("\n[target.'cfg(all())'.dependencies]\n{NAME} = {{ path = '{}' }}\n", folder.display()))
    }
}

/// Returns the different lines that `cargo tree` prints.
fn lines(tree: Run) -> Result<BTreeSet<String>> {
    Ok(tree.read()?.lines().map(str::to_owned).collect())
}

/// Returns the line of a package, in which `k8s-openapi` has another version of Kubernetes.
fn with_version(line: &str, version: &str) -> String {
    match line.split_once('|') {
        Some((package, features)) if package.starts_with("k8s-openapi v") => {
            let features = features.split(',');
            let features = features.map(|feature| if feature.starts_with("v1_") { version } else { feature });
            format!("{package}|{}", features.collect::<Vec<_>>().join(","))
        }
        _ => line.to_owned(),
    }
}

/// Returns the manifest of the crate for the packages of the target, and for the packages of target and host together.
///
/// A package with the same features on both is only a dependency for the target.
fn manifest(target: &BTreeSet<String>, all: &BTreeSet<String>) -> String {
    let table = |lines: Vec<&String>| lines.iter().filter_map(|line| entry(line)).collect::<String>();
    let dependencies = table(target.iter().collect());
    let build_dependencies = table(all.difference(target).collect());
    format!(
        "[package]\nname = \"{NAME}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{dependencies}\n[build-dependencies]\n{build_dependencies}"
    )
}

/// Returns the entry for a line such as `syn v2.0.1|full,visit`. Returns `None` for a crate of the workspace, whose path
/// follows in parentheses, and for a procedural macro, which other packages enable with the same features.
fn entry(line: &str) -> Option<String> {
    let (package, features) = line.split_once('|')?;
    let (name, version) = package.split_once(" v")?;
    if version.contains(' ') {
        return None;
    }
    let version = version.split('+').next()?;
    let key = format!("{name}-{}", version.replace('.', "-"));
    let features: Vec<String> =
        features.split(',').filter(|feature| !feature.is_empty()).map(|f| format!("\"{f}\"")).collect();
    Some(format!(
        "{key} = {{ package = \"{name}\", version = \"={version}\", default-features = false, features = [{}] }}\n",
        features.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(lines: &[&str]) -> BTreeSet<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn manifest_separates_target_and_host() {
        let target = set(&["syn v2.0.1|full", "kctl v0.1.0 (/kctl)|dev", "lua v5.1.0+abc|"]);
        let all = set(&["syn v2.0.1|full", "syn v2.0.1|full,visit", "macros v1.0.0 (proc-macro)|", "lua v5.1.0+abc|"]);
        let (_head, tables) =
            manifest(&target, &all).split_once("[dependencies]\n").map(|(a, b)| (a.len(), b.to_owned())).unwrap();
        assert_eq!(
            tables,
            "lua-5-1-0 = { package = \"lua\", version = \"=5.1.0\", default-features = false, features = [] }\n\
             syn-2-0-1 = { package = \"syn\", version = \"=2.0.1\", default-features = false, features = [\"full\"] }\n\n\
             [build-dependencies]\n\
             syn-2-0-1 = { package = \"syn\", version = \"=2.0.1\", default-features = false, features = [\"full\", \"visit\"] }\n"
        );
    }

    #[test]
    fn k8s_openapi_gets_the_selected_version() {
        assert_eq!(
            with_version("k8s-openapi v0.29.0|default,schemars,std,v1_37", "v1_33"),
            "k8s-openapi v0.29.0|default,schemars,std,v1_33"
        );
        for other in ["kctl v0.1.0 (/kctl)|dev,v1_37", "kube v5.0.0|client", "macros v1.0.0 (proc-macro)|"] {
            assert_eq!(with_version(other, "v1_33"), other);
        }
    }
}
