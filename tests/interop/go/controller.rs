//! A controller on controller-runtime, against the embedded API server.

use std::time::Duration;

use super::{Folder, assert_streamed, program, run_and_read, start_server, start_server_with_faults};
use crate::plan::{assert_acted, plan};

const TIMEOUT: Duration = Duration::from_secs(240);
/// Number of fault plans to run.
const N_SEEDS: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: cargo xtask interop"]
async fn controller_runtime_controller_converges() {
    let folder = Folder::new("controller");
    let (_server, kubeconfig) = start_server(&folder).await;
    let mut program = program("controller-runtime").await;
    let output = tokio::time::timeout(TIMEOUT, run_and_read(program.env("KUBECONFIG", &kubeconfig))).await;
    let output = output.expect("the program ends");
    assert!(output.contains("the informer has seen"), "{output}");
    // A client-go informer reads Secrets, and controller-runtime's cache reads ConfigMaps.
    assert_streamed(&folder, &["secrets", "configmaps"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Go: cargo xtask interop"]
async fn controller_runtime_converges_under_faults_of_any_seed() {
    for seed in 0..N_SEEDS {
        let (folder, faults) = (Folder::new(&format!("faults-{seed}")), plan(seed));
        let (_server, kubeconfig) = start_server_with_faults(&folder, Some(&faults)).await;
        let mut program = program("controller-runtime").await;
        let output = tokio::time::timeout(TIMEOUT, run_and_read(program.env("KUBECONFIG", &kubeconfig))).await;
        let output = output.unwrap_or_else(|_| panic!("seed {seed}: {:?}", faults.counts()));
        assert!(output.contains("the informer has seen"), "seed {seed}: {output}");
        assert_acted(&faults);
    }
}
