//! Finds and installs the programs that steps need.
//!
//! Programs of one file are built once per version in the cache folder of the user, where each clone finds them. Other tools
//! that fit into a folder are installed in `target/xtask`. The rest is installed only with `--install`, because that
//! changes the machine.

use std::{
    env::consts::EXE_SUFFIX,
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
};

use crate::{
    Result,
    gate::Gate,
    process::{Run, cargo, find, root, scratch, target},
};

/// The linter for GitHub workflows, as a Go module.
const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";
/// Helm, as a Go module. Its major version determines how charts are applied: Helm 4 uses server-side apply.
const HELM: &str = "helm.sh/helm/v4/cmd/helm@v4.3.1";
/// Helm 3, which many clusters are still managed with.
const HELM_3: &str = "helm.sh/helm/v3/cmd/helm@v3.22.0";
/// The accessibility checker, as an npm package. Its major version determines the rules.
const AXE: &str = "axe-core@4";
/// The spelling checker, as a Python package. A newer version knows more misspellings, and would fail without a change here.
const TYPOS: &str = "typos==1.52.0";
/// The Python client of Kubernetes.
const PYTHON_CLIENT: &str = "kubernetes==37.0.2";

/// A program that `cargo install` provides, in the version that `--install` installs.
///
/// The newest version may need a newer compiler than the pinned toolchain, or have new rules. A version that is already
/// installed is used as it is.
pub(crate) struct CargoTool {
    /// The name of the crate and of its program.
    name: &'static str,
    /// The version to install.
    version: &'static str,
    /// More arguments of `cargo install`.
    arguments: &'static [&'static str],
}

/// Builds the book.
pub(crate) const MDBOOK: CargoTool =
    CargoTool { name: "mdbook", version: "0.5.4", arguments: &["--no-default-features"] };
/// Checks dependencies.
pub(crate) const CARGO_DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2", arguments: &[] };
/// Compares a public API with the API of a release. Each version reads the rustdoc output of certain compilers alone.
pub(crate) const SEMVER_CHECKS: CargoTool =
    CargoTool { name: "cargo-semver-checks", version: "0.51.0", arguments: &[] };

/// Returns a program that `cargo install` provides, and installs it first with `--install`. If it is missing, records
/// that and returns `None`.
///
/// It is built without optimization, because these tools run for only seconds.
pub(crate) fn cargo_tool(gate: &mut Gate, tool: &CargoTool) -> Option<PathBuf> {
    let CargoTool { name, version, arguments } = tool;
    if find(name).is_none() && gate.install {
        let package = format!("{name}@{version}");
        let install = cargo("install").args(["--locked", "--debug", "--quiet", &package]).args(*arguments);
        if let Err(error) = install.run() {
            eprintln!("{error}");
        }
    }
    // `cargo install` may write to a folder outside of PATH.
    let in_home = || {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))?;
        Some(home.join("bin").join(name)).filter(|path| path.is_file())
    };
    let found = find(name).or_else(in_home);
    if found.is_none() {
        gate.leave_out(
            format!("{name} is not installed; `--install` or `cargo install --locked {name}@{version}`"),
            &[],
        );
    }
    found
}

/// Waits until no other process installs into a folder, and returns the lock: two lanes of the gate may need one tool.
/// Dropping it unlocks.
fn lock(folder: &Path) -> Option<File> {
    let file = File::create(folder.join("lock")).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Returns the folder of built programs in the cache folder of the user, next to the servers of `tests/envtest/assets`.
/// Both use the value of `XDG_CACHE_HOME`, and `.cache` in the home folder if it is unset or empty.
fn cache(xdg_cache_home: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let folder = xdg_cache_home.filter(|folder| !folder.is_empty()).map(|folder| root().join(folder));
    Some(folder.or_else(|| Some(home?.join(".cache")))?.join("kctl-tools"))
}

/// Returns the name of the folder with a program of a package: `helm-v4.3.1` for `helm.sh/helm/v4/cmd/helm@v4.3.1`, and
/// `typos-1.52.0` for `typos==1.52.0`.
fn versioned_name(name: &str, package: &str) -> String {
    let version = package.rsplit(['@', '=']).next().unwrap_or_default();
    format!("{name}-{version}")
}

/// Returns a program of a package from the cache folder of the user, or from `target/xtask` if that can't be written. If it
/// is missing, `build` builds it first, as [`build_once`] says.
fn build_in_cache(name: &str, package: &str, build: impl FnOnce(&Path) -> Option<PathBuf>) -> Option<PathBuf> {
    let of_user = cache(std::env::var_os("XDG_CACHE_HOME"), std::env::home_dir());
    let mut folders = of_user.into_iter().chain([target().join("xtask")]);
    let folder = folders.find_map(|folder| {
        let folder = folder.join(versioned_name(name, package));
        std::fs::create_dir_all(&folder).is_ok().then_some(folder)
    })?;
    build_once(&folder, &format!("{name}{EXE_SUFFIX}"), build)
}

/// Returns the program `file` in a folder. If it is missing, `build` gets an empty folder, and returns the path of the program
/// that it has built there.
///
/// The program gets its name when it is complete, so an interrupted build leaves none.
fn build_once(folder: &Path, file: &str, build: impl FnOnce(&Path) -> Option<PathBuf>) -> Option<PathBuf> {
    let program = folder.join(file);
    if program.is_file() {
        return Some(program);
    }
    let _alone = lock(folder)?;
    // Another process may have built it before it released the lock.
    if !program.is_file() {
        let building = folder.join("building");
        if building.exists() {
            std::fs::remove_dir_all(&building).ok()?;
        }
        std::fs::create_dir(&building).ok()?;
        std::fs::rename(build(&building)?, &program).ok()?;
        let _removed = std::fs::remove_dir_all(&building);
    }
    Some(program)
}

/// Installs a Python package, such as `typos==1.52.0`, into a virtual environment in a folder.
fn install_python(package: &str, folder: &Path) -> Result {
    Run::new("python3").args(["-m", "venv"]).arg(folder).run()?;
    Run::new(folder.join("bin/pip")).args(["install", "--quiet", package]).run()
}

/// Returns the Python interpreter of an environment with the client of Kubernetes. The environment is below `target/xtask`,
/// because it depends on the version of Python.
///
/// The file `installed` has the package of a complete environment, so that an interrupted installation is repeated, and
/// another version is installed over the old one.
pub(crate) fn python_client() -> Option<PathBuf> {
    let folder = scratch("kubernetes").ok()?;
    let _alone = lock(&folder)?;
    let installed = folder.join("installed");
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(PYTHON_CLIENT) {
        install_python(PYTHON_CLIENT, &folder).ok()?;
        std::fs::write(installed, PYTHON_CLIENT).ok()?;
    }
    Some(folder.join("bin/python"))
}

/// Returns the installed `typos`, or the one of its Python package, which is a program that needs no Python.
pub(crate) fn typos() -> Option<PathBuf> {
    find("typos").or_else(|| {
        build_in_cache("typos", TYPOS, |folder| {
            install_python(TYPOS, folder).ok()?;
            Some(folder.join("bin").join(format!("typos{EXE_SUFFIX}")))
        })
    })
}

/// Returns `actionlint`, which Go builds if it is not installed.
pub(crate) fn actionlint() -> Option<PathBuf> {
    find("actionlint").or_else(|| built_by_go("actionlint", ACTIONLINT))
}

/// Returns Helm 4. GitHub's runners have Helm 3, which knows nothing of server-side apply.
pub(crate) fn helm() -> Option<PathBuf> {
    let is_4 = |helm: &PathBuf| {
        let version = Run::new(helm).args(["version", "--short"]).read();
        version.is_ok_and(|version| version.starts_with("v4."))
    };
    find("helm").filter(is_4).or_else(|| built_by_go("helm", HELM))
}

/// Returns Helm 3, which Go builds.
pub(crate) fn helm_3() -> Option<PathBuf> {
    built_by_go("helm", HELM_3)
}

/// Returns a program that Go builds once for each version.
fn built_by_go(name: &str, package: &str) -> Option<PathBuf> {
    build_in_cache(name, package, |folder| {
        find("go")?;
        Run::new("go").args(["install", package]).env("GOBIN", folder).folder(folder).run().ok()?;
        Some(folder.join(format!("{name}{EXE_SUFFIX}")))
    })
}

/// Returns `true` if chromedriver is installed. With `--install`, it first installs chromedriver and a browser if
/// missing.
pub(crate) fn has_browser(gate: &Gate) -> bool {
    let is_missing = find("chromedriver").is_none();
    if is_missing && gate.install && find("apt-get").is_some() {
        let install = ["install", "-y", "--no-install-recommends", "chromium", "chromium-driver"];
        let done =
            Run::new("apt-get").args(["update", "-q"]).run().and_then(|()| Run::new("apt-get").args(install).run());
        if let Err(error) = done {
            eprintln!("{error}");
        }
    }
    find("chromedriver").is_some()
}

/// Returns the script of axe-core, which npm downloads once.
pub(crate) fn axe() -> Option<PathBuf> {
    let folder = scratch("axe").ok()?;
    let file = folder.join("node_modules/axe-core/axe.min.js");
    if !file.exists() {
        find("npm")?;
        Run::new("npm").args(["install", "--silent", "--no-save", "--prefix"]).arg(&folder).arg(AXE).run().ok()?;
    }
    Some(file).filter(|file| file.exists())
}

/// Returns the class path of fabric8's Java client, as Maven resolves it. Returns `None` without Java, Maven or network
/// access.
pub(crate) fn fabric8() -> Option<String> {
    find("java")?;
    find("mvn")?;
    let folder = scratch("fabric8").ok()?;
    let _alone = lock(&folder)?;
    let file = folder.join("classpath");
    let output = format!("-Dmdep.outputFile={}", file.display());
    Run::new("mvn")
        .args(["-q", "-B", "-f", "tests/interop/fabric8", "dependency:build-classpath"])
        .arg(output)
        .run()
        .ok()?;
    std::fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a builder that writes a program with the given text.
    fn writes(text: &'static str) -> impl FnOnce(&Path) -> Option<PathBuf> {
        move |folder| {
            // A file that an interrupted build has left would be an error here.
            File::create_new(folder.join("built")).unwrap();
            std::fs::write(folder.join("built"), text).unwrap();
            Some(folder.join("built"))
        }
    }

    #[test]
    fn interrupted_build_is_repeated_and_complete_one_kept() {
        let folder = scratch("built-once").unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let interrupted = |folder: &Path| {
            let _unfinished = writes("half")(folder);
            None
        };
        assert_eq!(build_once(&folder, "tool", interrupted), None);
        for text in ["complete", "other"] {
            let program = build_once(&folder, "tool", writes(text)).unwrap();
            assert_eq!(program, folder.join("tool"));
            assert_eq!(std::fs::read_to_string(program).unwrap(), "complete");
        }
        assert!(!folder.join("building").exists());
    }

    #[test]
    fn cache_folder_is_xdg_or_in_home() {
        let home = || Some(PathBuf::from("/home/me"));
        assert_eq!(cache(Some("/cache".into()), home()), Some("/cache/kctl-tools".into()));
        assert_eq!(cache(Some("cache".into()), home()), Some(root().join("cache/kctl-tools")));
        assert_eq!(cache(Some(OsString::new()), home()), Some("/home/me/.cache/kctl-tools".into()));
        assert_eq!(cache(None, home()), Some("/home/me/.cache/kctl-tools".into()));
        assert_eq!(cache(None, None), None);
    }

    #[test]
    fn each_version_has_a_folder() {
        let names =
            [("helm", HELM), ("helm", HELM_3), ("typos", TYPOS)].map(|(name, package)| versioned_name(name, package));
        let [helm, helm_3, typos] = &names;
        assert!(helm.starts_with("helm-v4.") && helm_3.starts_with("helm-v3."), "{names:?}");
        assert!(TYPOS.ends_with(&typos.replace('-', "==")), "{names:?}");
    }
}
