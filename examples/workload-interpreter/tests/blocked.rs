//! Tests SIGTERM while functions block their threads forever. Until then, other requests are answered. The process
//! ends, and its error names the cause. The test binary is also the tested program, because no example has a function
//! that blocks.
#![cfg_attr(not(unix), expect(unused, reason = "there is no SIGTERM"))]

mod program;

use std::{sync::OnceLock, time::Duration};

use kctl::{karmada::prelude::*, prelude::*};
use program::{AS_PROGRAM, Example, TIMEOUT, read};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use workload_interpreter::Workload;

/// Never set. Functions that wait for it block their threads forever.
static NEVER: OnceLock<()> = OnceLock::new();
/// Number of blocking calls per webhook: more than a small machine has threads, and fewer than the limit on concurrent
/// calls.
const N_BLOCKED: usize = 48;
/// The paths of the two webhooks.
const INTERPRETER: &str = "/interpreter-workload";
const ADMISSION: &str = "/validate-workload-example-io-v1alpha1-workload";
/// Maximum time from the signal to the end of the process.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

#[interpreter(op = InterpretHealth)]
fn health(workload: &Workload) -> Result<bool> {
    if workload.name_any() == "blocks" {
        NEVER.wait();
    }
    Ok(true)
}

#[admission(validate)]
fn validate(workload: &Workload) -> Result<()> {
    health(workload).map(drop)
}

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::var_os(AS_PROGRAM).is_some() {
        return App::new("blocked").interpreter::<health>().admission::<validate>().main().await;
    }
    for command in ["run", "dev"] {
        others_are_answered_before_exit_code_1(command).await;
    }
    Ok(())
}

async fn others_are_answered_before_exit_code_1(command: &str) {
    let program = std::env::current_exe().unwrap();
    let mut example = Example::start(&program, &format!("blocked-{command}"), &[command]).await;
    let blocked = (0..N_BLOCKED).flat_map(|_| [(INTERPRETER, "`health` ("), (ADMISSION, "`validate` (")]);
    let blocked = blocked.map(async |(path, called)| (call(&example, path, "blocks", 2).await, called));
    for (response, called) in futures::future::join_all(blocked).await {
        assert!(response.contains(&format!("no response within 2s: {called}")), "{command}: {response}");
    }
    for (path, good) in [(INTERPRETER, r#""healthy":true"#), (ADMISSION, r#""allowed":true"#)] {
        let response = call(&example, path, "web", 10).await;
        assert!(response.contains(good), "{command}: {response}");
    }
    assert!(example.ready().await.unwrap().starts_with("HTTP/1.1 200 "), "{command}");

    example.terminate().await;
    assert_eq!(example.ends(EXIT_TIMEOUT).await, Some(1), "{command}");
    let mut stderr = String::new();
    example.child.stderr.take().unwrap().read_to_string(&mut stderr).await.unwrap();
    let expected = format!("Error: {} webhook functions are cut off: they block their threads", 2 * N_BLOCKED);
    let line = stderr.lines().find(|line| line.starts_with(&expected)).unwrap_or_else(|| panic!("{command}: {stderr}"));
    let n_others = 2 * N_BLOCKED - 3;
    assert!(line.contains(": `health` (") && line.ends_with(&format!(" and {n_others} more")), "{command}: {line}");
}

async fn call(example: &Example, path: &str, name: &str, seconds: u64) -> String {
    let (kind, operation) = if path == ADMISSION {
        (r#""AdmissionReview","apiVersion":"admission.k8s.io/v1""#, "CREATE")
    } else {
        (r#""ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1""#, "InterpretHealth")
    };
    let body = format!(
        r#"{{"kind":{kind},"request":{{"uid":"u-1",
        "kind":{{"group":"workload.example.io","version":"v1alpha1","kind":"Workload"}},"name":"{name}","operation":"{operation}",
        "object":{{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{{"name":"{name}"}},
        "spec":{{"replicas":7,"template":{{}}}}}}}}}}"#
    );
    let request = format!(
        "POST {path}?timeout={seconds}s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = example.connect().await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    // Send the part of the request that may still be buffered.
    stream.flush().await.unwrap();
    timeout(TIMEOUT, read(&mut stream)).await.expect("an answer, whatever blocks")
}
