//! Finds and installs the programs that steps need.
//!
//! Tools that fit into a folder are installed in `target/xtask`. Others are installed only with `--install`, because
//! that changes the machine.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use crate::{
    gate::Gate,
    process::{Run, cargo, find, scratch},
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

/// Returns a program of a Python package, such as `typos==1.52.0`, in a separate virtual environment below `target/xtask`.
///
/// The file `installed` has the package of a complete environment, so that an interrupted installation is repeated, and
/// another version is installed over the old one.
fn python_tool(package: &str, program: &str) -> Option<PathBuf> {
    let folder = scratch(package.split("==").next()?).ok()?;
    let _alone = lock(&folder)?;
    let program = folder.join("bin").join(program);
    let installed = folder.join("installed");
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(package) {
        Run::new("python3").args(["-m", "venv"]).arg(&folder).run().ok()?;
        Run::new(folder.join("bin/pip")).args(["install", "--quiet", package]).run().ok()?;
        std::fs::write(installed, package).ok()?;
    }
    Some(program)
}

/// Returns the Python interpreter of an environment with the client of Kubernetes.
pub(crate) fn python_client() -> Option<PathBuf> {
    python_tool(PYTHON_CLIENT, "python")
}

/// Returns the installed `typos`, or the one of its Python package.
pub(crate) fn typos() -> Option<PathBuf> {
    find("typos").or_else(|| python_tool(TYPOS, "typos"))
}

/// Returns `actionlint`, which Go builds if it is not installed.
pub(crate) fn actionlint() -> Option<PathBuf> {
    go_tool("actionlint", ACTIONLINT)
}

/// Returns Helm 4. GitHub's runners have Helm 3, which knows nothing of server-side apply.
pub(crate) fn helm() -> Option<PathBuf> {
    let is_4 = |helm: &PathBuf| {
        let version = Run::new(helm).args(["version", "--short"]).read();
        version.is_ok_and(|version| version.starts_with("v4."))
    };
    find("helm").filter(is_4).or_else(|| built_by_go("helm", "helm", HELM))
}

/// Returns Helm 3, which Go builds.
pub(crate) fn helm_3() -> Option<PathBuf> {
    built_by_go("helm-3", "helm", HELM_3)
}

/// Returns a program in `PATH`, or the one that Go builds.
fn go_tool(name: &str, package: &str) -> Option<PathBuf> {
    find(name).or_else(|| built_by_go(name, name, package))
}

/// Returns a program that Go builds in a folder below `target/xtask`, again if another version is wanted.
fn built_by_go(folder: &str, name: &str, package: &str) -> Option<PathBuf> {
    let folder = scratch(folder).ok()?;
    let _alone = lock(&folder)?;
    let (program, installed) = (folder.join(name), folder.join("installed"));
    if std::fs::read_to_string(&installed).ok().as_deref() != Some(package) {
        find("go")?;
        Run::new("go").args(["install", package]).env("GOBIN", &folder).folder(&folder).run().ok()?;
        std::fs::write(installed, package).ok()?;
    }
    Some(program)
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
