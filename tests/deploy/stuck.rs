//! A program whose reconcile blocks its thread still exits.

use std::{process::Stdio, time::Duration};

use kctl::json;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{
    build::{programs, run},
    cluster::{Cluster, until},
    files::Folder,
};

/// Time limit of an exit: the grace period, the shutdown, and a margin for a slow machine.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the program with this number of worker threads, and waits until a reconcile blocks one of them.
async fn start_blocked(cluster: &Cluster, files: &Folder, n_threads: &str, flags: &[&str]) -> Child {
    std::fs::write(files.join("kubeconfig"), cluster.kubeconfig_at("default")).unwrap();
    let mut program = Command::new(programs().join("examples/deploy-replica"));
    program.arg("run").args(flags).env("REPLICA", "one").env("JOURNAL", files.join("journal"));
    program.env("TOKIO_WORKER_THREADS", n_threads).env("KUBECONFIG", files.join("kubeconfig"));
    let running = program.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let blocks =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web" }, "data": { "state": "block" } });
    cluster.apply(&blocks, "default").await;
    let journal = || std::fs::read_to_string(files.join("journal")).unwrap_or_default();
    until("the reconcile has begun", || async { journal().contains("begin web block") }).await;
    running
}

fn terminate(running: &Child) {
    run(std::process::Command::new("kill").args(["-TERM", &running.id().unwrap().to_string()]));
}

/// Waits until a program exits, checks its exit status, and returns its standard error.
async fn wait_for_exit(running: Child, code: i32) -> String {
    let ended = tokio::time::timeout(EXIT_TIMEOUT, running.wait_with_output()).await.expect("it ends").unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(code), "{stderr}");
    stderr
}

#[tokio::test(flavor = "multi_thread")]
async fn process_with_blocked_thread_exits_after_shutdown_timeout() {
    let (cluster, files) = (Cluster::embedded().await, Folder::new());
    let running = start_blocked(&cluster, &files, "2", &["--graceful-shutdown-timeout=1s"]).await;
    terminate(&running);
    let stderr = wait_for_exit(running, 1).await;
    assert!(stderr.contains("Error: reconciles of configmap (default/web) still ran 1s after the stop"), "{stderr}");
    assert!(stderr.contains("help: a function blocks its thread"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_ends_a_fully_blocked_program() {
    let (cluster, files) = (Cluster::embedded().await, Folder::new());
    let mut running = start_blocked(&cluster, &files, "1", &["--graceful-shutdown-timeout=-1s"]).await;
    terminate(&running);
    let mut stderr_lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let stops = async {
        while !stderr_lines
            .next_line()
            .await
            .unwrap()
            .expect("it continues")
            .contains("another signal ends the process at once")
        {}
    };
    tokio::time::timeout(EXIT_TIMEOUT, stops).await.expect("it has received the signal");
    terminate(&running);
    wait_for_exit(running, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fully_blocked_process_exits_and_logs_json_error() {
    for format in ["text", "json"] {
        let (cluster, files) = (Cluster::embedded().await, Folder::new());
        let log = format!("--log-format={format}");
        let running = start_blocked(&cluster, &files, "1", &["--graceful-shutdown-timeout=1s", &log]).await;
        terminate(&running);
        let stderr = wait_for_exit(running, 1).await;
        let error = "all threads were still blocked 1s after the stop";
        assert!(stderr.contains("help: a function blocks its thread"), "{stderr}");
        if format == "text" {
            assert!(stderr.contains(&format!("\nError: {error}")), "{stderr}");
            continue;
        }
        let levels = stderr.lines().map(|line| {
            let line: Value = serde_json::from_str(line).expect(line);
            (line["level"].as_str().unwrap().to_owned(), line["message"].as_str().unwrap().to_owned())
        });
        assert!(levels.into_iter().any(|(level, message)| level == "ERROR" && message.starts_with(error)), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fully_blocked_leader_renews_its_lease() {
    let (cluster, files) = (Cluster::embedded().await, Folder::new());
    let _running = start_blocked(&cluster, &files, "1", &["--leader-elect", "--leader-election-id=rolling"]).await;
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "rolling" } });
    let renewed_at = || async { cluster.get(&lease, "default").await.unwrap()["spec"]["renewTime"].clone() };
    for _ in 0..2 {
        let before = renewed_at().await;
        until("the Lease is renewed", || async { renewed_at().await != before }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn final_error_is_last_json_log_line() {
    let files = Folder::new();
    let mut program = Command::new(programs().join("examples/deploy-replica"));
    program.args(["run", "--log-format=json", "--kubeconfig"]).arg(files.join("nowhere"));
    program.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let stderr = wait_for_exit(program.spawn().unwrap(), 1).await;
    let last: Value = serde_json::from_str(stderr.lines().last().unwrap()).expect(&stderr);
    assert_eq!(last["level"], "ERROR", "{stderr}");
    assert!(last["message"].as_str().unwrap().contains("no cluster to run against"), "{stderr}");
    assert_eq!(stderr.matches("no cluster to run against").count(), 1, "it is printed once: {stderr}");
}
