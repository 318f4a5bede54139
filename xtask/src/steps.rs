//! Steps of the gate that run one or two commands, and the commands outside of the gate.

use std::{ffi::OsString, path::Path};

use crate::{
    Result, features,
    gate::Gate,
    process::{Run, cargo, find, root, scratch},
    tools,
};

/// Default number of requests of the step `fuzz`. The ordinary tests send a few thousand, and the nightly workflow ten
/// times as many.
///
/// `cargo xtask fuzz` takes another number.
pub(crate) const FUZZ_REQUESTS: u32 = 30_000;
/// The kubectl version whose output `tests/kubectl` has recorded. Other versions print different messages.
pub(crate) const KUBECTL: &str = "v1.32.";

pub(crate) fn fmt() -> Result {
    cargo("fmt").args(["--all", "--check"]).run()
}

/// Runs clippy over everything. After a failure, the crates that don't need the failed one are still linted.
pub(crate) fn clippy() -> Result {
    cargo("clippy").args(["--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"]).run()
}

/// Returns the features that the manifests enable for docs.rs, such as `kctl/otel`, separated by commas. The pages link to
/// items behind features that are off by default.
fn docs_features() -> Result<String> {
    let mut all = Vec::new();
    for krate in features::CRATES {
        all.extend(features::of_docs(krate)?.split(',').map(|feature| format!("{krate}/{feature}")));
    }
    Ok(all.join(","))
}

/// Builds the documentation with the features of docs.rs. Warnings are errors, so a broken link fails the step.
pub(crate) fn docs() -> Result {
    let doc = cargo("doc").args(["--workspace", "--no-deps", "--features", &docs_features()?]);
    doc.env("RUSTDOCFLAGS", "-D warnings").run()
}

/// Builds the documentation with a nightly compiler and `--cfg docsrs`, as docs.rs does. Warnings are errors. It is not a
/// step of the gate, because it can fail without a change in this repository: nightly features and lints change.
pub(crate) fn docs_rs(gate: &mut Gate) -> Result {
    if !has_toolchain(gate, "nightly") {
        return Ok(());
    }
    let doc = Run::new("rustup").args(["run", "nightly", "cargo", "doc", "--workspace", "--no-deps", "--locked"]);
    let doc = doc.args(["--features", &docs_features()?]).env("CARGO_TARGET_DIR", scratch("docs-rs")?);
    doc.env("RUSTDOCFLAGS", "--cfg docsrs -D warnings").run()
}

/// Returns `cargo test` for the whole workspace.
///
/// `-p` would select other features, and Cargo would rebuild all dependencies for them.
pub(crate) fn cargo_test(arguments: &[&str]) -> Run {
    cargo("test").arg("--workspace").args(arguments)
}

pub(crate) fn build_tests() -> Result {
    cargo_test(&["--no-run"]).run()
}

/// Runs `cargo test`. Without arguments, at least 2,800 tests have to pass, otherwise at least one.
///
/// The bound detects a workspace that lost a crate, or a filter that matches nothing. After a failed test the others still
/// run, so that one run reports all failures.
pub(crate) fn test(gate: &mut Gate, arguments: &[String]) -> Result {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let at_least = if arguments.is_empty() { 2800 } else { 1 };
    cargo("test").args(["--workspace", "--no-fail-fast"]).args(arguments).tests(&mut gate.ledger, at_least)
}

/// Sends random requests to the embedded API server, which must not panic or break an invariant.
///
/// The test prints its progress (`--nocapture`), because a long run would be silent otherwise.
pub(crate) fn fuzz(gate: &mut Gate, n_requests: u32) -> Result {
    let test = cargo_test(&["--test", "fuzz", "--", "--nocapture"]);
    test.env("FUZZ_REQUESTS", n_requests.to_string()).tests(&mut gate.ledger, 1)
}

/// Returns `true` if kubectl is installed in the version [`KUBECTL`].
pub(crate) fn has_recorded_kubectl() -> bool {
    let version = find("kubectl").and_then(|_| Run::new("kubectl").args(["version", "--client"]).read().ok());
    version.is_some_and(|version| version.contains(KUBECTL))
}

/// Compares the output of kubectl against the embedded server with that against a real one.
///
/// It needs the exact minor version in [`KUBECTL`]. Any other version is reported and not compared.
pub(crate) fn kubectl(gate: &mut Gate) -> Result {
    if !has_recorded_kubectl() {
        gate.leave_out(format!("kubectl {KUBECTL}x is not installed: its output is not compared"), &["needs kubectl"]);
        return Ok(());
    }
    cargo_test(&["--test", "kubectl", "--", "--ignored"]).tests(&mut gate.ledger, 7)
}

/// Opens the page of `dev` in a browser. npm provides the accessibility checker.
///
/// Without npm, all tests except the accessibility test run.
pub(crate) fn browser(gate: &mut Gate) -> Result {
    if !tools::has_browser(gate) {
        gate.leave_out("chromedriver is not installed: the page is not tried in a browser", &["needs chromedriver"]);
        return Ok(());
    }
    let test = cargo_test(&["--test", "browser", "--", "--ignored"]);
    if let Some(file) = tools::axe() {
        return test.env("KCTL_AXE", file).tests(&mut gate.ledger, 10);
    }
    gate.leave_out("npm cannot install axe-core: accessibility is not checked", &["axe-core"]);
    test.args(["--skip", "accessibility"]).tests(&mut gate.ledger, 9)
}

/// The clients in other languages that this machine has installed.
pub(crate) struct Clients {
    /// Arguments `--skip TEST` for libtest, which skip the tests of missing clients.
    pub(crate) skips: Vec<&'static str>,
    /// Environment variables for the tests.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Number of skipped tests among those that need no real server.
    n_skipped: usize,
}

/// Finds the installed clients, and records the missing ones in the gate.
pub(crate) fn clients(gate: &mut Gate) -> Clients {
    let mut found = Clients { skips: Vec::new(), variables: Vec::new(), n_skipped: 0 };
    let programs: [(&str, &str, &'static [&'static str], usize); 5] = [
        ("curl", "clients::curl_", &["needs curl"], 1),
        ("openssl", "clients::openssl_", &["needs openssl"], 1),
        ("python3", "clients::python_", &["needs Python"], 1),
        ("node", "clients::node_", &["needs Node.js"], 1),
        ("java", "clients::java_", &["needs Java"], 1),
    ];
    for (program, tests, reasons, n_tests) in programs {
        if find(program).is_none() {
            gate.leave_out(format!("{program} is not installed: its client is not tried"), reasons);
            found.skips.extend(["--skip", tests]);
            found.n_skipped += n_tests;
        }
    }
    if find("go").is_none() {
        gate.leave_out("Go is not installed: programs in Go are not tried", &["needs Go"]);
        found.skips.extend(["--skip", "go::"]);
        found.n_skipped += N_GO;
    }
    if let Some(class_path) = tools::fabric8() {
        found.variables.push(("FABRIC8_CLASSPATH", class_path.into()));
    } else {
        gate.leave_out("Maven or fabric8's Java client is not available: that client is not tried", &["needs fabric8"]);
        found.skips.extend(["--skip", "fabric8::"]);
        found.n_skipped += 1;
    }
    // The Kubernetes client for Python runs with the interpreter of its virtual environment.
    if let Some(python) = tools::python_client() {
        found.variables.extend(path_with(&python).map(|path| ("PATH", path)));
    } else {
        gate.leave_out(
            "the Python client of Kubernetes is not available: it is not tried",
            &["needs the Python client"],
        );
        found.skips.extend(["--skip", "clients::kubernetes_of_pypi_"]);
        found.n_skipped += 1;
    }
    found
}

/// Number of tests of Go programs in `tests/interop` that need no real server.
const N_GO: usize = 5;
/// Number of ignored tests of `tests/interop` that need no real server.
const N_INTEROP: usize = N_GO + 7;

/// Runs the clients in other languages, and an OTLP collector in Go, against the embedded server.
pub(crate) fn interop(gate: &mut Gate) -> Result {
    let clients = clients(gate);
    cargo_test(&["--test", "interop", "--", "--ignored", "--skip", "real_server"])
        .args(&clients.skips)
        .envs(&clients.variables)
        .tests(&mut gate.ledger, N_INTEROP - clients.n_skipped)?;
    if find("go").is_some() {
        let name = "foreign_collector_receives_the_spans";
        cargo_test(&["--lib", name, "--", "--ignored"]).tests(&mut gate.ledger, 1)?;
    }
    Ok(())
}

/// Returns `PATH` with the folder of Helm in front. If Helm is not available, records that and returns `None`.
pub(crate) fn path_with_helm(gate: &mut Gate) -> Option<OsString> {
    let Some(helm) = tools::helm() else {
        gate.leave_out("Helm is not available (Go builds it): charts are not installed", &["needs Helm"]);
        return None;
    };
    path_with(&helm)
}

/// Returns `PATH` with the folder of a program in front.
fn path_with(program: &Path) -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Into::into).into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).ok()
}

/// Installs the charts of the examples on the embedded API server.
pub(crate) fn helm(gate: &mut Gate) -> Result {
    let Some(path) = path_with_helm(gate) else { return Ok(()) };
    cargo_test(&["--test", "deploy", "helm::", "--", "--ignored", "--skip", "on_a_real_server"])
        .env("PATH", path)
        .tests(&mut gate.ledger, 10)
}

/// Renders the charts of the examples with Helm 3. It is not a step of the gate, because Go takes minutes to build a second
/// Helm, and templates mean the same in both.
pub(crate) fn helm_3(gate: &mut Gate) -> Result {
    let Some(path) = tools::helm_3().and_then(|helm| path_with(&helm)) else {
        gate.leave_out("Helm 3 is not available (Go builds it): charts are not rendered with it", &[]);
        return Ok(());
    };
    let tests = [
        "helm::charts_render",
        "helm::wrong_values",
        "helm::numbers_in_values",
        "helm::values_for_particular",
        "helm::values::each_value",
        "helm::values::values_turn",
        "helm::hand_edits",
    ];
    cargo_test(&["--test", "deploy", "--", "--ignored"])
        .args(tests)
        .env("PATH", path)
        .tests(&mut gate.ledger, tests.len())
}

/// Builds the book. mdbook exits with 0 despite warnings, so the step searches its output for them.
pub(crate) fn book(gate: &mut Gate) -> Result {
    let Some(mdbook) = tools::cargo_tool(gate, &tools::MDBOOK) else { return Ok(()) };
    let (succeeded, output) = Run::new(mdbook).args(["build", "guide"]).output()?;
    let is_warning = |line: &str| line.contains("WARN") || line.contains("ERROR");
    if succeeded && !output.lines().any(is_warning) { Ok(()) } else { Err("the book has warnings or errors".into()) }
}

/// Checks the spelling of code and prose. `_typos.toml` lists the exceptions.
pub(crate) fn spelling(gate: &mut Gate) -> Result {
    let Some(typos) = tools::typos() else {
        gate.leave_out("typos is not available: spelling is not checked", &[]);
        return Ok(());
    };
    Run::new(typos).run()
}

/// Lints `.github/workflows`.
pub(crate) fn workflows(gate: &mut Gate) -> Result {
    let Some(actionlint) = tools::actionlint() else {
        gate.leave_out("actionlint is not available (Go builds it): workflows are not checked", &[]);
        return Ok(());
    };
    Run::new(actionlint).run()
}

/// Checks bans, licences and sources of all dependencies (`deny.toml`). Only the initial fetch uses the network.
pub(crate) fn deny(gate: &mut Gate) -> Result {
    let Some(_deny) = tools::cargo_tool(gate, &tools::CARGO_DENY) else { return Ok(()) };
    // cargo-deny reads the whole dependency graph, including dependencies for other platforms.
    cargo("fetch").arg("--locked").run()?;
    cargo("deny").args(["--offline", "check", "bans", "licenses", "sources"]).run()
}

/// Downloads the `RustSec` database, and checks the dependencies against it. It is not a step of the gate, because it
/// can fail without a change in this repository.
pub(crate) fn advisories(gate: &mut Gate) -> Result {
    let Some(_deny) = tools::cargo_tool(gate, &tools::CARGO_DENY) else { return Ok(()) };
    cargo("deny").args(["check", "advisories"]).run()
}

/// Returns a string field of `[workspace.package]`, such as `version`.
pub(crate) fn of_workspace(field: &str) -> Result<String> {
    let manifest =
        std::fs::read_to_string(root().join("Cargo.toml")).map_err(|error| format!("Cargo.toml: {error}"))?;
    let value = manifest.lines().find_map(|line| line.strip_prefix(field)?.trim_start().strip_prefix("= \""));
    value.and_then(|rest| rest.split('"').next()).map(str::to_owned).ok_or_else(|| format!("Cargo.toml has no {field}"))
}

/// Returns `true` if rustup has a toolchain. With `--install`, installs a missing one; otherwise records what is missing.
fn has_toolchain(gate: &mut Gate, name: &str) -> bool {
    let rustup = |command: &str| Run::new("rustup").args([command, name]);
    if rustup("run").args(["rustc", "--version"]).env("RUSTUP_AUTO_INSTALL", "0").succeeds() {
        return true;
    }
    let install = Run::new("rustup").args(["toolchain", "install", name, "--profile", "minimal"]);
    let is_installed = gate.install && install.run().is_ok();
    if !is_installed {
        gate.leave_out(format!("Rust {name} is not installed: `rustup toolchain install {name}`"), &[]);
    }
    is_installed
}

/// Compiles the workspace with the Rust version that the manifests declare (`rust-version`), in a separate target folder.
///
/// The features of docs.rs are on. Otherwise, code behind features that are off by default, such as `otel`, might not
/// compile with that version.
pub(crate) fn msrv(gate: &mut Gate) -> Result {
    let version = of_workspace("rust-version")?;
    if !has_toolchain(gate, &version) {
        return Ok(());
    }
    let check = Run::new("rustup").args(["run", &version, "cargo", "check", "--workspace", "--locked"]);
    check.args(["--features", &docs_features()?]).env("CARGO_TARGET_DIR", scratch("msrv")?).run()
}

/// Returns `true` if `cargo info` found kctl, by its success and its output.
///
/// # Errors
/// It failed for another reason than that the registry has no kctl, for example without a network.
fn is_released((succeeded, output): &(bool, String)) -> Result<bool> {
    if !succeeded && !output.contains("could not find `kctl` in registry") {
        return Err("crates.io could not be asked for the last release of kctl".into());
    }
    Ok(*succeeded)
}

/// Checks the public API of each published library against its last release, with the features that docs.rs shows.
///
/// Macro crates and programs have no library to compare.
pub(crate) fn semver(gate: &mut Gate) -> Result {
    let info = cargo("info").args(["kctl", "--registry", "crates-io"]).env("CARGO_TERM_COLOR", "never").output()?;
    if !is_released(&info)? {
        gate.leave_out("kctl has no release to compare with", &[]);
        return Ok(());
    }
    let Some(_program) = tools::cargo_tool(gate, &tools::SEMVER_CHECKS) else { return Ok(()) };
    for name in features::CRATES {
        let features = features::of_docs(name)?;
        let check = cargo("semver-checks").args(["--package", name, "--only-explicit-features"]);
        check.args(["--features", &features]).run()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreachable_registry_is_not_a_missing_release() {
        let of = |succeeded, output: &str| is_released(&(succeeded, output.to_owned()));
        assert_eq!(of(true, "kctl #kubernetes\nversion: 0.1.0\n"), Ok(true));
        let missing = "error: could not find `kctl` in registry `https://github.com/rust-lang/crates.io-index`\n";
        assert_eq!(of(false, missing), Ok(false));
        assert!(of(false, "error: failed to query replaced source registry `crates-io`\n").is_err());
    }
}
