//! `cargo xtask soak`: runs the soak test of `examples/podset` on a real kube-apiserver that crashes.

use clap::Args;

use crate::{
    Result,
    gate::Gate,
    process::cargo,
    real_server::{Servers, Version},
};

/// The options of `cargo xtask soak`.
#[derive(Args)]
pub(crate) struct Soak {
    /// Minutes during which the operator is killed, sets are scaled and Pods are deleted. Afterwards, every set has to settle
    /// within ten minutes.
    #[arg(long, default_value_t = 5)]
    minutes: u32,
    /// Number of sets.
    #[arg(long, default_value_t = 1_000)]
    sets: u32,
    /// Number of Pods of all sets at the beginning.
    #[arg(long, default_value_t = 10_000)]
    pods: u32,
    /// Seed of the random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    version: Version,
}

/// Runs the soak test, with a release build of the operator.
///
/// # Errors
/// The server does not start, or the test fails.
pub(crate) fn run(gate: &mut Gate, size: &Soak) -> Result {
    let Some(mut servers) = Servers::prepare(gate, size.version.complete()?.as_deref())? else { return Ok(()) };
    let kubeconfig = servers.up("soak")?;
    let crash = servers.crash_command("soak");
    cargo("test")
        .args(["--release", "-p", "podset", "--test", "operator", "soak::", "--", "--ignored", "--nocapture"])
        .env("KUBECONFIG", kubeconfig)
        .env("KCTL_CRASH_API_SERVER", crash)
        .env("KCTL_SOAK_SETS", size.sets.to_string())
        .env("KCTL_SOAK_PODS", size.pods.to_string())
        .env("KCTL_SOAK_SECONDS", (size.minutes * 60).to_string())
        .env("KCTL_SOAK_SEED", size.seed.to_string())
        .tests(&mut gate.ledger, 1)
}
