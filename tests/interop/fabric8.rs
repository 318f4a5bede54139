//! Runs fabric8's Kubernetes client, on which the Java Operator SDK and Quarkus build, against the embedded API server
//! and, with `KUBECONFIG`, against a real one. The Java program fails at the first result that differs from the
//! expected one.

use std::path::{Path, PathBuf};

use kctl_apiserver::{ApiServer, ServeOptions};
use tokio::process::Command;

use crate::go::{Folder, run_and_read};

/// Returns the class path of the client, which `cargo xtask interop` resolves with Maven.
fn class_path() -> String {
    std::env::var("FABRIC8_CLASSPATH").expect("`mvn dependency:build-classpath` in tests/interop/fabric8 prints it")
}

async fn assert_agrees(class_path: &str, kubeconfig: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/fabric8/Main.java");
    let mut program = Command::new("java");
    program.args(["-cp", class_path]).arg(source).env("KUBECONFIG", kubeconfig).kill_on_drop(true);
    let output = run_and_read(&mut program).await;
    assert!(output.contains("fabric8: all as expected"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs fabric8 and Java: cargo xtask interop"]
async fn java_client_works_with_the_embedded_server() {
    let class_path = class_path();
    let folder = Folder::new("fabric8");
    let server = ApiServer::on_system_time();
    tokio::spawn(server.controllers());
    let listening = server.listen(ServeOptions::default()).await.expect("a port is free");
    let kubeconfig = folder.0.join("kubeconfig");
    listening.write_kubeconfig(&kubeconfig).expect("the kubeconfig is written");
    tokio::spawn(listening.serve());
    assert_agrees(&class_path, &kubeconfig).await;
}

#[tokio::test]
#[ignore = "needs fabric8, Java and KUBECONFIG: cargo xtask real-server"]
async fn java_client_works_with_a_real_server() {
    let kubeconfig = std::env::var_os("KUBECONFIG").expect("KUBECONFIG names an API server");
    assert_agrees(&class_path(), &PathBuf::from(kubeconfig)).await;
}
