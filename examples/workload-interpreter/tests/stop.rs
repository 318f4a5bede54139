//! Tests SIGTERM under load: running requests are answered, readiness fails for load balancers, and the process exits
//! with 0.
#![cfg(unix)]

mod program;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use program::{Example, TIMEOUT, read};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_workload-interpreter");
/// Maximum time from the last response to the end of the process. Without the server's timeouts it would be ten seconds
/// or more.
const EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// Returns a request, split into two halves.
fn request() -> (String, String) {
    let body = r#"{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{"uid":"u-1",
        "kind":{"group":"workload.example.io","version":"v1alpha1","kind":"Workload"},"name":"web","namespace":"d","operation":"InterpretReplica",
        "object":{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{"name":"web","namespace":"d"},
        "spec":{"replicas":7,"template":{}}}}}"#;
    let (first, second) = body.split_at(body.len() / 2);
    let head = format!(
        "POST /interpreter-workload?timeout=30s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (format!("{head}{first}"), second.to_owned())
}

fn certificates() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stop-certificates");
    fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (file, pem) in
        [("tls.crt", made.cert.pem()), ("ca.crt", made.cert.pem()), ("tls.key", made.signing_key.serialize_pem())]
    {
        fs::write(folder.join(file), pem).unwrap();
    }
    folder
}

#[tokio::test]
async fn running_request_is_answered_before_exit_with_0() {
    for (name, arguments) in [("dev", &["dev"][..]), ("run", &["run"])] {
        let mut example = Example::start(PROGRAM.as_ref(), name, arguments).await;
        assert!(example.ready().await.unwrap().starts_with("HTTP/1.1 200 "), "{name}");
        let (first, second) = request();
        let mut stream = example.connect().await.unwrap();
        stream.write_all(first.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        // Neither an unused TLS connection nor a TCP connection without a handshake delays the end of the process.
        let _idle = example.connect().await.unwrap();
        let _silent = TcpStream::connect(&example.address).await.unwrap();
        // The server has received the headers when it asks for the body.
        let mut interim_response = [0; 25];
        timeout(TIMEOUT, stream.read_exact(&mut interim_response)).await.expect("it asks for the body").unwrap();
        assert_eq!(&interim_response, b"HTTP/1.1 100 Continue\r\n\r\n", "{name}");
        example.terminate().await;
        let rejected = async {
            while TcpStream::connect(&example.address).await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(TIMEOUT, rejected).await.expect("no other connection is accepted");
        assert_eq!(example.child.try_wait().unwrap(), None, "{name}: it waits for the request");
        stream.write_all(second.as_bytes()).await.unwrap();
        let response = read(&mut stream).await;
        assert!(response.starts_with("HTTP/1.1 200 ") && response.contains(r#""replicas":7"#), "{name}: {response}");
        assert_eq!(example.ends(EXIT_TIMEOUT).await, Some(0), "{name}");
    }
}

#[tokio::test]
async fn server_in_a_cluster_rejects_only_once_unready() {
    let folder = certificates();
    let mut example =
        Example::start(PROGRAM.as_ref(), "cluster", &["run", "--webhook-cert-dir", folder.to_str().unwrap()]).await;
    assert!(example.ready().await.unwrap().starts_with("HTTP/1.1 200 "));
    example.terminate().await;
    let unready = async {
        loop {
            let response = example.ready().await.expect("it still accepts");
            if response.starts_with("HTTP/1.1 503 ") {
                return response;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let response = timeout(TIMEOUT, unready).await.expect("it says that it stops");
    assert!(response.ends_with("stopping"), "{response}");
    // Clients that have not noticed the shutdown yet still get a response.
    let (first, second) = request();
    let mut stream = example.connect().await.unwrap();
    stream
        .write_all(format!("{first}{second}").replace("Host:", "Connection: close\r\nHost:").as_bytes())
        .await
        .unwrap();
    assert!(read(&mut stream).await.contains(r#""replicas":7"#));
    assert_eq!(example.ends(TIMEOUT).await, Some(0));
}
