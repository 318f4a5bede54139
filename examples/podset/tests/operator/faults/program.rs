//! Runs the program as a process, and the API server that it connects to.

use std::{
    io::{BufRead, BufReader},
    ops::Deref,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use kctl::{
    apiserver::{ApiServer, Kubelet, ServeOptions},
    k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{Api, Client, api::PostParams},
};
use podset::PodSet;

/// Longest wait for a line or a state.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub fn podset(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podset"));
    command.args(arguments).env_remove("KUBECONFIG").env_remove("RUST_LOG").env("HOME", "/nonexistent");
    command
}

/// A program that runs until the test stops it, and the lines of its standard error.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
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

    /// Reads lines up to one that contains this text.
    pub fn says(&self, text: &str) -> String {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TIMEOUT) {
            if line.contains(text) {
                return line;
            }
            seen.push(line);
        }
        panic!("nothing printed `{text}`: {seen:#?}");
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits until the program has ended, and returns its exit status.
    pub fn wait_for_exit(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends SIGTERM, waits, and returns the exit status.
    pub fn terminate(self) -> Option<i32> {
        self.signal("TERM");
        self.wait_for_exit()
    }
}

pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("not within {TIMEOUT:?}: {what}"));
}

/// A file in the temporary directory, removed on drop.
pub struct TemporaryFile(String);

impl TemporaryFile {
    /// Returns the file without creating it.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kctl-podset-{}-{name}", std::process::id()));
        Self(path.into_os_string().into_string().unwrap())
    }
}

impl Deref for TemporaryFile {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _left = std::fs::remove_file(&self.0);
    }
}

/// Starts an API server on a socket, and writes an administrator's kubeconfig.
pub async fn start_server(name: &str) -> (ApiServer, TemporaryFile, tokio::task::JoinHandle<()>) {
    let server = ApiServer::on_system_time();
    tokio::spawn(server.controllers());
    tokio::spawn(Kubelet::for_server(&server).run());
    let listening = server.listen(ServeOptions::default()).await.unwrap();
    let kubeconfig = TemporaryFile::new(name);
    listening.write_kubeconfig(std::path::Path::new(&*kubeconfig)).unwrap();
    let serving = tokio::spawn(async move { listening.serve().await.unwrap() });
    (server, kubeconfig, serving)
}

pub async fn install(client: &Client) {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in kctl::manifest::crds(&podset::app().specs(), kctl::manifest::Descriptions::Own).unwrap() {
        crds.create(&PostParams::default(), &crd).await.unwrap();
    }
}

pub async fn ready(client: &Client, replicas: i32) {
    let sets = Api::<PodSet>::default_namespaced(client.clone());
    eventually("the set is ready", || async {
        let set = sets.get("web").await.unwrap();
        set.status.is_some_and(|status| status.ready_replicas == replicas)
    })
    .await;
}
