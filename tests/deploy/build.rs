//! The programs, as `cargo build` makes them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// All of them at once: features are united over what is built, and another choice would be another build of everything.
const PROGRAMS: [&str; 7] =
    ["config-restarter", "kctl", "multicluster", "podset", "quickstart", "website", "workload-interpreter"];

/// The folder of the programs. After `cargo test --workspace` there is nothing left to build.
pub(crate) fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut cargo = cargo("build");
        // With a test among the targets, features are those of `cargo test`.
        cargo.args(["--workspace", "--test", "deploy", "--example", "deploy-replica"]);
        cargo.args(PROGRAMS.iter().flat_map(|program| ["--bin", program]));
        run(cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")));
        target().join("debug")
    })
}

/// The folder of everything that is built, this test included.
pub(crate) fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

/// Cargo as people start it.
pub(crate) fn cargo(command: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg(command);
    as_people(cargo)
}

/// A line that people give a shell.
pub(crate) fn shell(line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-ec", line]);
    as_people(shell)
}

/// Removes the variables that Cargo sets for tests, because they would make build scripts run again.
fn as_people(mut command: Command) -> Command {
    command.env("CARGO_TARGET_DIR", target());
    for (name, _value) in std::env::vars() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|own| name.starts_with(own)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its good end, and returns what it prints.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
