//! `cargo xtask kubernetes`: moves the embedded API server to another Kubernetes version.
//!
//! It regenerates the data of the built-in kinds, and records the responses of a real server again.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;

use crate::{
    Options, Result,
    gate::Gate,
    kubernetes_version::resolve,
    process::{REAL_SERVER, Run, cargo, find, root},
    real_server::{self, Servers},
    steps,
};

/// Arguments of `cargo xtask kubernetes`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The version, for example 1.37.2, or 1.37 for the newest patch version that the Go proxy serves.
    version: String,
    /// Regenerates the data alone, and keeps the answers that are recorded.
    #[arg(long)]
    keep_recorded: bool,
}

/// Makes a version the default of `cargo xtask server` by copying the Go module of its binaries.
fn make_default(version: &str) -> Result {
    let module = PathBuf::from(real_server::script("assets", Some(version)).arg("--module").read()?);
    let folder = root().join("tests/envtest");
    if module == folder {
        return Ok(());
    }
    for file in ["go.mod", "go.sum"] {
        std::fs::copy(module.join(file), folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}

/// Records the responses of a real server again. Returns `false` if tests fail.
///
/// Tests are expected to fail where the embedded server differs. The failures are the list of work for the new version.
fn record(kubeconfig: &OsString) -> Result<bool> {
    let recording = |arguments: &[&str]| {
        let test = cargo("test").args(["--workspace", "--no-fail-fast"]).args(arguments);
        let test = test.env("KUBECONFIG", kubeconfig).env(REAL_SERVER, kubeconfig);
        test.env("RECORD", "1").output().map(|(succeeded, _output)| succeeded)
    };
    let suites = recording(&["--test", "conformance", "--test", "definitions", "--", "--include-ignored"])?;
    if !steps::has_recorded_kubectl() {
        eprintln!("left out: the output of kubectl, which is recorded with kubectl {}x", steps::KUBECTL);
        return Ok(suites);
    }
    Ok(recording(&["--test", "kubectl", "--", "--include-ignored"])? && suites)
}

/// Regenerates data and recordings for a version, and prints the changes by kind and by test case.
///
/// # Errors
/// A real server can't be built, a generator fails, or the embedded server differs from the new recordings.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let version = resolve(&arguments.version)?;
    let version = version.as_str();
    // The generator needs it, after minutes of building.
    if find("kubectl").is_none() {
        return Err("kubectl was not found in PATH: it reads the data from the server".into());
    }
    let mut gate = Gate::new(Options::default());
    let Some(mut servers) = Servers::prepare(&mut gate, Some(version))? else {
        return Err("a real kube-apiserver is needed".into());
    };
    make_default(version)?;
    // The scripts read protobuf messages, tags and feature gates from the Go modules of the same version.
    Run::new("go").args(["mod", "download"]).folder(root().join("tests/envtest")).run()?;
    let python = |script: &str| Run::new("python3").arg(root().join("kctl-apiserver/data").join(script));
    let kubeconfig = servers.up("data")?;
    python("generate.py").env("KUBECONFIG", &kubeconfig).run()?;
    servers.down("data");
    let agrees = arguments.keep_recorded || record(&servers.up("record")?)?;
    python("changes.py").run()?;
    Run::new("git").args(["diff", "--stat"]).run()?;
    eprintln!("UPDATING.md lists the manual steps that are left.");
    if agrees { Ok(()) } else { Err("the embedded API server differs from the recorded responses".into()) }
}
