//! Tests which clusters `kctl kubelet` accepts.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use k8s_openapi::api::core::v1::Node;
use kctl_apiserver::{ApiServer, ServeOptions};
use kube::{Api, Client, api::PostParams};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Returns a `kctl kubelet` command with `KUBECONFIG` set. The command must not use it unless an option names the
/// cluster.
fn kubelet(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kctl"));
    command.env("KUBECONFIG", kubeconfig).arg("kubelet").args(arguments);
    command
}

fn error_output(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a server with one Node of this container runtime. Returns the server and its kubeconfig file, which the
/// caller removes.
async fn cluster(test: &str, runtime: &str) -> (ApiServer, std::path::PathBuf) {
    let server = ApiServer::on_system_time();
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    let file = std::env::temp_dir().join(format!("kctl-kubelet-{test}-{}", std::process::id()));
    listening.write_kubeconfig(&file).unwrap();
    tokio::spawn(listening.serve());
    let info = json!({ "architecture": "", "bootID": "", "containerRuntimeVersion": runtime, "kernelVersion": "",
        "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "" });
    let node = json!({ "metadata": { "name": "worker-1" }, "status": { "nodeInfo": info } });
    let nodes = Api::<Node>::all(Client::new(server.service(), "default"));
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    (server, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn current_context_is_not_taken_by_default() {
    let (server, file) = cluster("default", "containerd://2.1").await;
    let mut command = kubelet(&file, &[]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let error = error_output(&output);
    assert!(error.starts_with("kctl: no cluster given") && error.contains("--kubeconfig FILE"), "{error}");
    assert!(server.object("", "nodes", "", "kctl-node").is_none());
    std::fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelet_rejects_real_nodes_without_beside_real_nodes() {
    let (server, file) = cluster("real", "containerd://2.1").await;
    for arguments in [["--kubeconfig", file.to_str().unwrap()], ["--context", "kctl"]] {
        let mut command = kubelet(&file, &arguments);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let error = error_output(&output);
        assert!(error.contains("has real nodes (worker-1)") && error.contains("--beside-real-nodes"), "{error}");
    }
    assert!(server.object("", "nodes", "", "kctl-node").is_none());
    starts(&file, &["--context", "kctl", "--beside-real-nodes"]).await;
    std::fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_file_of_kubeconfig_list_is_skipped() {
    let (_server, file) = cluster("list", "containerd://2.1").await;
    let list = std::env::join_paths([Path::new("/nonexistent/config"), &file]).unwrap();
    let mut command = kubelet(Path::new(&list), &["--context", "kctl"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let error = error_output(&output);
    assert!(error.contains("has real nodes (worker-1)"), "{error}");
    std::fs::remove_file(file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelet_starts_beside_nodes_without_real_runtime() {
    for (test, runtime) in [("simulated", "simulated://1"), ("bare", "")] {
        let (_server, file) = cluster(test, runtime).await;
        starts(&file, &["--kubeconfig", file.to_str().unwrap()]).await;
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn invalid_node_name_is_rejected_up_front() {
    let mut command = kubelet(Path::new("/nonexistent"), &["--context", "kctl", "--node", "A B"]);
    let error = error_output(&command.output().unwrap());
    assert!(error.starts_with("kctl: invalid node name \"A B\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_user_reads_message_without_status() {
    let (_server, file) = cluster("rejected", "containerd://2.1").await;
    let mut kubeconfig: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = json!({ "token": "wrong" });
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    let mut command = kubelet(&file, &["--kubeconfig", file.to_str().unwrap()]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let error = error_output(&output);
    assert!(error.starts_with("kctl: failed to list nodes of https://"), "{error}");
    assert!(error.contains("Unauthorized") && !error.contains("Status {"), "{error}");
    std::fs::remove_file(file).unwrap();
}

/// Starts `kctl kubelet` and checks that its first line of output says that it simulates Pods.
async fn starts(kubeconfig: &Path, arguments: &[&str]) {
    let mut command = tokio::process::Command::from(kubelet(kubeconfig, arguments));
    let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.starts_with("kctl: simulating pods of https://"), "{first}");
}
