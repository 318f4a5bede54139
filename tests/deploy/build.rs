//! Builds the programs with `cargo build`.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// All programs are built by one command, because Cargo unifies features over the packages of a build. Another
/// selection would rebuild everything.
const PROGRAMS: [&str; 7] =
    ["config-restarter", "kctl", "multicluster", "podset", "quickstart", "website", "workload-interpreter"];

/// Builds the programs and returns their folder. After `cargo test --workspace` the build is up to date.
pub(crate) fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut cargo = cargo("build");
        // A test among the targets selects the same features as `cargo test`.
        cargo.args(["--workspace", "--test", "deploy", "--example", "deploy-replica"]);
        cargo.args(PROGRAMS.iter().flat_map(|program| ["--bin", program]));
        run(cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")));
        target().join("debug")
    })
}

/// Returns Cargo's target folder, which also contains this test.
pub(crate) fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Returns a Cargo command as a user would run it.
pub(crate) fn cargo(command: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg(command);
    without_cargo_env(cargo)
}

/// Returns a shell command as a user would run it.
pub(crate) fn shell(line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-ec", line]);
    without_cargo_env(shell)
}

/// Removes the variables that Cargo sets for tests, because they would make build scripts run again.
fn without_cargo_env(mut command: Command) -> Command {
    command.env("CARGO_TARGET_DIR", target());
    for (name, _value) in std::env::vars() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|own| name.starts_with(own)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command, checks that it succeeds, and returns its standard output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
