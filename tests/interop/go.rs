//! The Go programs in the folders next to this file, each against a kctl program or server on a loopback socket.

mod contend;
mod controller;
mod markers;
mod scrape;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use kctl_apiserver::{ApiServer, ServeOptions, faults::Faults};
use tokio::process::Command;

/// Builds a Go program, so that its timeouts do not include the build.
async fn program(folder: &str) -> Command {
    program_of(folder, ".").await
}

/// Builds a package of the Go module in this folder.
async fn program_of(folder: &str, package: &str) -> Command {
    let binary = Folder::build_folder().join(folder);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop").join(folder);
    let built = Command::new("go").arg("build").arg("-o").arg(&binary).arg(package).current_dir(source).output().await;
    let built = built.expect("go is there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut program = Command::new(binary);
    program.stdin(Stdio::null()).kill_on_drop(true);
    program
}

/// Runs a program, checks that it succeeds, and returns its standard output.
pub(crate) async fn run_and_read(program: &mut Command) -> String {
    let output = program.output().await.expect("the program starts");
    let (stdout, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{wrong}");
    stdout.into_owned()
}

/// A temporary folder that is removed at the end of the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Returns the folder of built programs, which have different names.
    fn build_folder() -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop");
        std::fs::create_dir_all(&folder).expect("the folder is made");
        folder
    }

    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kctl-interop-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder is made");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts an embedded API server on a socket. Returns it and the kubeconfig file of its administrator.
async fn start_server(folder: &Folder) -> (ApiServer, PathBuf) {
    start_server_with_faults(folder, None).await
}

/// Does the same with injected faults.
async fn start_server_with_faults(folder: &Folder, faults: Option<&Faults>) -> (ApiServer, PathBuf) {
    let server = ApiServer::on_system_time();
    server.audit_to(&folder.0.join("audit")).expect("the audit log is begun");
    tokio::spawn(server.controllers());
    let mut listening = server.listen(ServeOptions::default()).await.expect("a port is free");
    if let Some(faults) = faults {
        listening = listening.with_faults(faults);
    }
    let kubeconfig = folder.0.join("kubeconfig");
    listening.write_kubeconfig(&kubeconfig).expect("the kubeconfig is written");
    tokio::spawn(listening.serve());
    (server, kubeconfig)
}

/// Returns the URIs in the audit log.
fn audited_uris(folder: &Folder) -> Vec<String> {
    let text = std::fs::read_to_string(folder.0.join("audit")).expect("requests were audited");
    let uri = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        event["requestURI"].as_str().unwrap_or_default().to_owned()
    };
    text.lines().map(uri).collect()
}

/// Checks that these resources were read by a streaming watch (`sendInitialEvents`) and never listed.
fn assert_streamed(folder: &Folder, resources: &[&str]) {
    let audited = audited_uris(folder);
    for resource in resources {
        let is_resource =
            |uri: &&String| uri.split('?').next().is_some_and(|path| path.ends_with(&format!("/{resource}")));
        let matching: Vec<&String> = audited.iter().filter(is_resource).collect();
        let streams = matching.iter().any(|uri| uri.contains("watch=true") && uri.contains("sendInitialEvents=true"));
        assert!(streams, "no watch of {resource} began with what is there: {matching:?}");
        let is_list =
            |uri: &&&String| uri.contains("limit=") || uri.contains("resourceVersion=0&") && !uri.contains("watch");
        let lists: Vec<_> = matching.iter().filter(is_list).collect();
        assert!(lists.is_empty(), "{resource} were listed: {lists:?}");
    }
}
