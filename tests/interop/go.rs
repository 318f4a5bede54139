//! The Go program in `controller-runtime/`, against a server on a loopback socket.

use std::{path::Path, process::Stdio, time::Duration};

use kctl_apiserver::{ApiServer, ServeOptions};
use tokio::process::Command;

/// Building the program may need its modules first.
const WITHIN: Duration = Duration::from_secs(600);

/// Go is not everywhere, and the build takes a minute: `INTEROP=1` asks for it.
#[test]
fn a_controller_on_controller_runtime_converges() {
    if std::env::var("INTEROP").is_ok_and(|asked| asked == "1") {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime is made");
        runtime.block_on(converge());
    }
}

async fn converge() {
    let server = ApiServer::on_system_time();
    tokio::spawn(server.controllers());
    let listening = server.listen(ServeOptions::default()).await.expect("a port is free");
    let folder = std::env::temp_dir().join(format!("kctl-interop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder is made");
    let kubeconfig = folder.join("kubeconfig");
    listening.write_kubeconfig(&kubeconfig).expect("the kubeconfig is written");
    tokio::spawn(listening.serve());
    let program = Command::new("go")
        .args(["run", "."])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/controller-runtime"))
        .env("KUBECONFIG", &kubeconfig)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(WITHIN, program).await.expect("the program ends").expect("go is there");
    let (told, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{wrong}");
    assert!(told.contains("the informer has seen"), "{told}\n{wrong}");
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
}
