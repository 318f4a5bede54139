//! What the program says and does when something is wrong, as the person at the terminal meets it.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use kctl::{
    apiserver::{ApiServer, ServeOptions},
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{
        Api, Client,
        api::{ListParams, PostParams},
    },
    prelude::*,
};
use podset::PodSet;

/// Longest wait for a line or a state.
const WITHIN: Duration = Duration::from_secs(30);

fn podset(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podset"));
    command.args(arguments).env_remove("KUBECONFIG").env_remove("RUST_LOG").env("HOME", "/nonexistent");
    command
}

/// Status and standard error of a program that is to end by itself.
fn failed(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = podset(arguments).output().unwrap();
    assert!(stdout.is_empty(), "only objects go to standard output: {}", String::from_utf8_lossy(&stdout));
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kctl-podset-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn without_a_cluster_run_says_so_and_names_dev() {
    for arguments in [&[][..], &["run"], &["run", "--kubeconfig", "/nonexistent/config"]] {
        let (status, text) = failed(arguments);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("no cluster to run against") && text.contains("cargo run -- dev"), "{text}");
    }
}

#[test]
fn broken_yaml_is_named_by_file_and_line() {
    let broken = file("broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [\n");
    let path = broken.to_str().unwrap();
    let (status, text) = failed(&["dev", "-f", path, "--until-idle"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains(path) && text.contains("line 4"), "{text}");
}

#[test]
fn object_of_the_wrong_shape_is_named_with_its_field() {
    let text = include_str!("../web.yaml").replace("replicas: 3", "replicas: three");
    let (status, text) = failed(&["dev", "-f", file("shape.yaml", &text).to_str().unwrap(), "--until-idle"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("PodSet web") && text.contains(".spec.replicas"), "{text}");
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
fn misspelt_option_is_wrong_usage_with_the_right_one() {
    let (status, text) = failed(&["dev", "--until-idel"]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("--until-idle"), "{text}");
}

/// A program that runs until the test ends it, and the lines that it prints to standard error.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = podset(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let _gone = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits for a line with this text, and for each line before it.
    fn says(&self, text: &str) -> String {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(WITHIN) {
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("nothing said `{text}`: {seen:#?}");
    }

    /// Sends SIGTERM and returns the status.
    fn terminate(mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WITHIN, wait).await.unwrap_or_else(|_| panic!("not within {WITHIN:?}: {what}"));
}

/// An API server on a socket, with an administrator's kubeconfig.
async fn served(name: &str) -> (ApiServer, String, tokio::task::JoinHandle<()>) {
    let server = ApiServer::on_system_time();
    tokio::spawn(server.controllers());
    tokio::spawn(server.kubelet().run());
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    let kubeconfig = std::env::temp_dir().join(format!("kctl-podset-{}-{name}", std::process::id()));
    listening.write_kubeconfig(&kubeconfig).unwrap();
    let serving = tokio::spawn(async move { listening.serve().await.unwrap() });
    (server, kubeconfig.to_str().unwrap().into(), serving)
}

async fn install(client: &Client) {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in kctl::manifest::crds(&podset::app().specs(), kctl::manifest::Descriptions::Own).unwrap() {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
}

async fn ready(client: &Client, replicas: i32) {
    let sets = Api::<PodSet>::default_namespaced(client.clone());
    eventually("the set is ready", || async {
        let set = sets.get("web").await.unwrap();
        set.status.is_some_and(|status| status.ready_replicas == replicas)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_definition_is_named_and_its_installation_starts_the_work() {
    let (server, kubeconfig, _serving) = served("definition").await;
    let client = Client::new(server.service(), "default");
    let program = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    let said = program.says("podsets");
    assert!(said.contains("no podsets.apps.example.com/v1") && said.contains("generate-crds"), "{said}");
    install(&client).await;
    let web: PodSet = kctl::from_yaml(include_str!("../web.yaml")).unwrap();
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &web).await.unwrap();
    ready(&client, 3).await;
    program.says("works again");
    assert_eq!(program.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn program_that_is_terminated_in_the_middle_of_its_writes_leaves_nothing_half_done() {
    let (server, kubeconfig, _serving) = served("terminated").await;
    let client = Client::new(server.service(), "default");
    install(&client).await;
    let mut web: PodSet = kctl::from_yaml(include_str!("../web.yaml")).unwrap();
    web.spec.replicas = 40;
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &web).await.unwrap();
    let pods = Api::<Pod>::default_namespaced(client.clone());
    let n_pods = async || pods.list(&ListParams::default()).await.unwrap().items.len();
    let program = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    eventually("it writes", || async { n_pods().await > 0 }).await;
    assert_eq!(program.terminate(), Some(0), "an orderly end is no failure");
    let _again = Running::start(&["run", "--kubeconfig", &kubeconfig]);
    ready(&client, 40).await;
    assert_eq!(n_pods().await, 40, "what the first one wrote was neither lost nor done twice");
}

#[test]
fn dev_ends_with_130_when_it_is_interrupted_before_it_is_idle() {
    let never = file("never.yaml", &include_str!("../web.yaml").replace("replicas: 3", "replicas: 2000"));
    let mut child = podset(&["dev", "-f", never.to_str().unwrap(), "--until-idle", "--timeout", "10m"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // It works once it has printed a write.
    let mut first = [0; 1];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let stderr = child.stderr.take().unwrap();
    std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
