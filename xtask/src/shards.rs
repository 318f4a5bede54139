//! Several active replicas: their cost compared with a single one, and a chaos run on a real kube-apiserver
//! (`benches/shards`).

use std::path::PathBuf;

use clap::Args;

use crate::{
    Result, kubernetes_version,
    process::{Run, cargo, root, target},
};

/// Options of the gate's short chaos run: fewer objects, and Leases short enough to expire several times in half a
/// minute.
const SHORT: [&str; 8] = ["--seconds", "30", "--sets", "100", "--pods", "5", "--lease-seconds", "6"];

/// The options of `cargo xtask chaos`.
#[derive(Args)]
pub(crate) struct Chaos {
    /// Minutes during which replicas are killed, stopped and frozen.
    #[arg(long, default_value_t = 5)]
    minutes: u32,
    /// Further options, for example `--seed 2 --sets 100` or `--shard-by namespace-range`; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the benchmark and the operator of the chaos test, and returns the command.
fn build() -> Result<Run> {
    cargo("build").args(["--release", "-p", "shards-bench"]).run()?;
    Ok(Run::new(target().join("release/shards-bench")))
}

/// Compares 1, 2 and 3 replicas.
pub(crate) fn figures(arguments: &[String]) -> Result {
    // By itself, because Cargo would give it the features that the benchmark needs.
    cargo("build").args(["--release", "-p", "shards-replica"]).run()?;
    build()?.arg("figures").args(["--folder"]).arg(target().join("bench-shards")).args(arguments).run()
}

/// Runs the chaos test.
pub(crate) fn chaos(options: &Chaos) -> Result {
    let seconds = (options.minutes * 60).to_string();
    in_target(build()?.args(["chaos", "--seconds", &seconds])).args(&options.arguments).run()
}

/// Runs the short chaos test with the debug build of the tests.
pub(crate) fn short_chaos(version: Option<&str>) -> Result {
    // Adding a test target selects the same dependency features as `cargo test --workspace`, so nothing is built twice.
    cargo("build")
        .args(["--workspace", "--test", "browser", "--bin", "shards-bench", "--bin", "shards-podset"])
        .run()?;
    let run = in_target(Run::new(target().join("debug/shards-bench")).arg("chaos").args(SHORT));
    let run = run.env("GOGC", kubernetes_version::GOGC);
    match version {
        Some(version) => run.env(kubernetes_version::VERSION, version),
        None => run,
    }
    .run()
}

/// Adds the options for the server scripts and for the folder of its files.
fn in_target(run: Run) -> Run {
    run.arg("--envtest").arg(root().join("tests/envtest")).arg("--folder").arg(folder())
}

/// Returns the folder of the chaos test.
fn folder() -> PathBuf {
    target().join("chaos")
}

/// Returns the folder in which the chaos test starts its server.
pub(crate) fn server() -> PathBuf {
    folder().join("server")
}
