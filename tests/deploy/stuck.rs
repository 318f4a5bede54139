//! A program whose reconcile blocks its thread ends all the same.

use std::{process::Stdio, time::Duration};

use kctl::json;
use tokio::process::Command;

use crate::{
    build::{programs, run},
    files::Folder,
    place::{Place, until},
};

/// Longest wait for the end: the grace, what the end may take, and a slow machine.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_program_ends_after_its_grace_although_a_reconcile_blocks_its_thread() {
    let place = Place::embedded().await;
    let files = Folder::new();
    std::fs::write(files.join("kubeconfig"), place.kubeconfig_at("default")).unwrap();
    let mut program = Command::new(programs().join("examples/deploy-replica"));
    program.args(["run", "--graceful-shutdown-timeout=1s"]).env("REPLICA", "one").env("JOURNAL", files.join("journal"));
    program.env("KUBECONFIG", files.join("kubeconfig")).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let running = program.spawn().unwrap();
    let blocks =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web" }, "data": { "state": "block" } });
    place.apply(&blocks, "default").await;
    let journal = || std::fs::read_to_string(files.join("journal")).unwrap_or_default();
    until("the reconcile has begun", || async { journal().contains("begin web block") }).await;

    run(std::process::Command::new("kill").args(["-TERM", &running.id().unwrap().to_string()]));
    let ended = tokio::time::timeout(ENDS_WITHIN, running.wait_with_output()).await.expect("it ends").unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("Error: reconciles of configmap still ran 1s after the stop"), "{said}");
    assert!(said.contains("help: something blocks a thread"), "{said}");
}
