//! Tests the messages and the behaviour of the program for common mistakes and failures, as a user in a terminal sees
//! them.

mod program;
mod stop;

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::Path,
    process::{Output, Stdio},
};

use self::program::{Running, TemporaryFile, eventually, install, podset, ready, signal, start_server};
use kctl::{
    kube::{
        Api, Client,
        api::{ListParams, PostParams},
    },
    prelude::*,
};
use podset::PodSet;

/// Runs a program that should end by itself. Returns its exit status and its standard error.
fn failed(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = podset(arguments).output().unwrap();
    assert!(stdout.is_empty(), "only objects go to standard output: {}", String::from_utf8_lossy(&stdout));
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn file(name: &str, text: &str) -> TemporaryFile {
    let file = TemporaryFile::new(name);
    std::fs::write(&*file, text).unwrap();
    file
}

#[test]
fn file_of_a_failed_test_is_removed() {
    let failing = || {
        let file = file("failed", "");
        std::panic::resume_unwind(Box::new(String::from(&*file)));
    };
    let path = std::thread::spawn(failing).join().unwrap_err().downcast::<String>().unwrap();
    assert!(path.ends_with("-failed") && !Path::new(&*path).exists(), "{path}");
}

#[test]
fn run_without_a_cluster_suggests_dev() {
    for arguments in [&[][..], &["run"], &["run", "--kubeconfig", "/nonexistent/config"]] {
        let (status, text) = failed(arguments);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("no cluster to run against") && text.contains("cargo run -- dev"), "{text}");
    }
}

#[test]
fn broken_yaml_is_named_by_file_and_line() {
    let broken = file("broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [\n");
    let path: &str = &broken;
    let (status, text) = failed(&["dev", "-f", path, "--until-idle"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains(path) && text.contains("line 4"), "{text}");
}

#[test]
fn malformed_object_is_named_with_its_field() {
    let text = include_str!("../../../web.yaml").replace("replicas: 3", "replicas: three");
    let (status, text) = failed(&["dev", "-f", &file("shape.yaml", &text), "--until-idle"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("PodSet web") && text.contains("spec.replicas"), "{text}");
}

#[test]
fn port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (status, text) = failed(&["dev", "--port", &port, "--until-idle"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains(&port) && text.contains("in use"), "{text}");
}

#[test]
fn misspelt_option_is_rejected_with_a_suggestion() {
    let (status, text) = failed(&["dev", "--until-idel"]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("--until-idle"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn run_reports_missing_crd_and_recovers_after_installation() {
    let (server, kubeconfig, _serving) = start_server("definition").await;
    let client = Client::new(server.service(), "default");
    let program = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    let line = program.says("podsets");
    let remedy = "generate-crds | kubectl apply --server-side -f -`";
    assert!(line.contains("no podsets.apps.example.com/v1") && line.contains(remedy), "{line}");
    install(&client).await;
    let web: PodSet = kctl::from_yaml(include_str!("../../../web.yaml")).unwrap();
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &web).await.unwrap();
    ready(&client, 3).await;
    program.says("works again");
    assert_eq!(program.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn termination_between_writes_leaves_no_partial_set() {
    let (server, kubeconfig, _serving) = start_server("terminated").await;
    let client = Client::new(server.service(), "default");
    install(&client).await;
    let mut web: PodSet = kctl::from_yaml(include_str!("../../../web.yaml")).unwrap();
    web.spec.replicas = 40;
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &web).await.unwrap();
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let n_pods = async || pods.list(&ListParams::default()).await.unwrap().items.len();
    let program = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    eventually("it writes", || async { n_pods().await > 0 }).await;
    assert_eq!(program.terminate(), Some(0), "an orderly end is not a failure");
    let _again = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    ready(&client, 40).await;
    assert_eq!(n_pods().await, 40, "what the first one wrote was neither lost nor done twice");
}

#[test]
fn dev_interrupted_before_idle_exits_with_130() {
    let never = file("never.yaml", &include_str!("../../../web.yaml").replace("replicas: 3", "replicas: 2000"));
    let mut child = podset(&["dev", "-f", &never, "--until-idle", "--timeout", "10m"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The operator is running once the program has printed a write.
    let mut first = [0; 1];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&child, "INT");
    let stderr = child.stderr.take().unwrap();
    std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// The server accepts connections and never responds, so the program waits for it and never becomes ready.
#[tokio::test]
async fn interrupt_before_readiness_exits_130_and_sigterm_0() {
    for (name, status) in [("INT", 130), ("TERM", 0)] {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", silent.local_addr().unwrap());
        let kubeconfig = kctl::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{ "name": "a", "cluster": { "server": server } }],
            "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
            "users": [{ "name": "a", "user": {} }],
        });
        let kubeconfig = file("silent.json", &kubeconfig.to_string());
        let mut child =
            podset(&["run", "--kubeconfig", &kubeconfig]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stderr_lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(stderr_lines.any(|line| line.unwrap().contains("context a")));
        // The program installs its signal handlers before it connects.
        let connection = silent.accept().unwrap();
        signal(&child, name);
        stderr_lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(status), "{name}");
        drop(connection);
    }
}
