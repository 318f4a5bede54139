//! A program reaches its API server through a proxy that a flag, the kubeconfig or an environment variable names.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kctl::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::{
    build::programs,
    cluster::Cluster,
    files::Folder,
    program::{DeployOptions, Program},
};

/// Time limit for the program's first log line and first request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a proxy that only supports CONNECT. Returns its URL and the number of its tunnels.
async fn proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let n_tunnels = Arc::new(AtomicUsize::new(0));
    let counted = n_tunnels.clone();
    tokio::spawn(async move {
        while let Ok((client, _peer)) = listener.accept().await {
            tokio::spawn(tunnel(client, counted.clone()));
        }
    });
    (url, n_tunnels)
}

async fn tunnel(client: TcpStream, counted: Arc<AtomicUsize>) -> std::io::Result<()> {
    let (mut client, mut head) = (BufReader::new(client), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(client.read_line(&mut head).await? > 0, "{head}");
    }
    let to = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).expect("a CONNECT");
    let mut server = TcpStream::connect(to).await?;
    counted.fetch_add(1, Ordering::SeqCst);
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn api_server_is_reached_through_the_named_proxy() {
    let cluster = Cluster::embedded().await;
    let (url, n_tunnels) = proxy().await;
    let options = DeployOptions { args: vec![format!("--proxy-url={url}")], ..DeployOptions::default() };
    let program = Program::deploy(&cluster, "quickstart", options).await;
    assert!(n_tunnels.load(Ordering::SeqCst) > 0);
    program.assert_never_forbidden().await;
}

/// Runs a program with this server and these variables. Returns the first request that it sends to the proxy; `None` if
/// it sends none.
async fn first_proxied_request(server: &str, kubeconfig_proxy: bool, no_proxy: &str) -> Option<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut entry = json!({ "server": server });
    let (of_kubeconfig, of_variable) =
        if kubeconfig_proxy { (url.as_str(), "http://127.0.0.1:1") } else { ("", url.as_str()) };
    entry["proxy-url"] = of_kubeconfig.into();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }], "clusters": [{ "name": "a", "cluster": entry }],
    });
    let files = Folder::new();
    std::fs::write(files.join("kubeconfig"), kubeconfig.to_string()).unwrap();
    let mut program = Command::new(programs().join("quickstart"));
    // Only the second of the two files exists.
    let files_of_variable = format!("{}:{}", files.join("missing").display(), files.join("kubeconfig").display());
    program.arg("run").env("KUBECONFIG", files_of_variable).env("HTTPS_PROXY", of_variable).env("NO_PROXY", no_proxy);
    let mut running = program.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut stderr_lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let mut first = stderr_lines.next_line().await.unwrap().unwrap_or_default();
    // Warnings about unknown variables come first.
    while !first.is_empty() && !first.contains(": context ") {
        first = stderr_lines.next_line().await.unwrap().unwrap_or_default();
    }
    if !first.contains(", through the proxy ") {
        return None;
    }
    assert!(first.contains(&url), "{first}");
    let (client, _peer) = listener.accept().await.unwrap();
    let mut head = String::new();
    BufReader::new(client).read_line(&mut head).await.unwrap();
    Some(head.trim_end().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_variables_and_no_proxy_are_obeyed() {
    let (server, connect) =
        ("https://api.example.test:6443", Some("CONNECT api.example.test:6443 HTTP/1.1".to_owned()));
    programs();
    let cases = [
        (server, false, "", connect.clone()),
        (server, false, "127.0.0.1,localhost", connect.clone()),
        (server, false, ".example.test", None),
        // `NO_PROXY` applies only to the proxy of the environment, not to the kubeconfig's.
        (server, true, ".example.test", connect),
        ("https://127.0.0.1:6443", false, "", None),
    ];
    for (server, of_kubeconfig, no_proxy, expected) in cases {
        let reached = tokio::time::timeout(TIMEOUT, first_proxied_request(server, of_kubeconfig, no_proxy)).await;
        assert_eq!(reached.expect("it says where it goes"), expected, "{server}, {of_kubeconfig}, NO_PROXY={no_proxy}");
    }
}
