//! Tests of `exec` plugins that return one credential after another.

use std::{fs, path::PathBuf};

use http::StatusCode;
use kube::{
    Config,
    config::{ExecConfig, ExecInteractiveMode},
};
use serde_json::{Value, json};

use super::*;

const V1: &str = "client.authentication.k8s.io/v1";

/// A plugin that prints the content of a file, and appends a line to another file at each start.
struct Plugin {
    folder: PathBuf,
}

impl Plugin {
    fn new(name: &str, status: &Value) -> Self {
        let folder = std::env::temp_dir().join(format!("kctl-plugin-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let plugin = Self { folder };
        plugin.set_output(status);
        plugin
    }

    fn set_output(&self, status: &Value) {
        let credential = json!({ "apiVersion": V1, "kind": "ExecCredential", "status": status });
        fs::write(self.folder.join("said"), credential.to_string()).unwrap();
    }

    fn n_starts(&self) -> usize {
        fs::read_to_string(self.folder.join("starts")).unwrap_or_default().lines().count()
    }

    /// Returns a client that runs its plugin at most once per `plugin_every`.
    fn client(&self, server: &TestServer, plugin_every: Duration) -> Client {
        with_limits(self.config(server), Limits { plugin_every, ..Limits::default() }).unwrap().build()
    }

    fn config(&self, server: &TestServer) -> Config {
        let mut config = server.config();
        let script = "cd $0; echo once >> starts; cat said".to_owned();
        config.auth_info.exec = Some(ExecConfig {
            api_version: Some(V1.into()),
            command: Some("sh".into()),
            args: Some(vec!["-c".into(), script, self.folder.display().to_string()]),
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..ExecConfig::default()
        });
        config
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

async fn status(by: &Client) -> StatusCode {
    timeout(SOON, by.send(get("/version"))).await.expect("an answer").unwrap().status()
}

fn certificate(name: &str) -> Value {
    let made = rcgen::generate_simple_self_signed(vec![name.into()]).unwrap();
    json!({ "clientCertificateData": made.cert.pem(), "clientKeyData": made.signing_key.serialize_pem() })
}

#[tokio::test]
async fn rejected_token_runs_the_shared_plugin_again() {
    let (server, plugin) = (TestServer::start(100).await, Plugin::new("rejected", &json!({"token": "one"})));
    let by = plugin.client(&server, Duration::ZERO);
    let another = plugin.client(&server, Duration::ZERO);
    server.accept("Bearer one");
    assert_eq!((status(&by).await, status(&another).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(plugin.n_starts(), 1, "two clients");
    server.accept("Bearer two");
    plugin.set_output(&json!({"token": "two"}));
    assert_eq!(status(&by).await, StatusCode::UNAUTHORIZED);
    assert_eq!((status(&another).await, status(&by).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(plugin.n_starts(), 2);
    assert_eq!(server.n_connections(), 2, "a token needs no new connections");
}

#[tokio::test]
async fn plugin_with_rejected_credentials_runs_at_intervals() {
    let (server, plugin) = (TestServer::start(100).await, Plugin::new("always", &json!({"token": "one"})));
    let by = plugin.client(&server, Duration::from_secs(3_600));
    server.accept("Bearer two");
    for _ in 0..5 {
        assert_eq!(status(&by).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(plugin.n_starts(), 1);
}

#[tokio::test]
async fn expired_credential_is_renewed_before_use() {
    let (server, plugin) = (
        TestServer::start(100).await,
        Plugin::new("ran-out", &json!({"token": "one", "expirationTimestamp": "2020-01-01T00:00:00Z"})),
    );
    let by = plugin.client(&server, Duration::ZERO);
    plugin.set_output(&json!({"token": "two", "expirationTimestamp": "2020-01-01T00:00:00Z"}));
    server.accept("Bearer two");
    assert_eq!(status(&by).await, StatusCode::OK);
    plugin.set_output(&json!({}));
    assert_eq!(status(&by).await, StatusCode::OK, "what it gave last");
    assert_eq!(plugin.n_starts(), 3);
    plugin.set_output(&json!({"token": "three", "expirationTimestamp": "2999-01-01T00:00:00Z"}));
    server.accept("Bearer three");
    assert_eq!((status(&by).await, status(&by).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(plugin.n_starts(), 4);
}

#[tokio::test]
async fn new_certificate_uses_new_connections() {
    let (server, plugin) = (TestServer::start(100).await, Plugin::new("certificate", &certificate("client-one")));
    let by = plugin.client(&server, Duration::ZERO);
    server.accept("client-one");
    let mut open = watch(&by).await;
    assert_eq!(status(&by).await, StatusCode::OK);
    let n_before = server.n_connections();
    server.accept("client-two");
    plugin.set_output(&certificate("client-two"));
    assert_eq!((status(&by).await, status(&by).await), (StatusCode::UNAUTHORIZED, StatusCode::OK));
    assert_eq!(server.n_connections(), n_before + 1);
    let _again = watch(&by).await;
    let seen: Vec<_> = server.take().into_iter().map(|seen| seen.who).collect();
    assert_eq!(seen, ["client-one", "client-one", "client-one", "client-two", "client-two"]);
    let next = timeout(Duration::from_millis(20), open.frame()).await;
    assert!(!matches!(next, Ok(None | Some(Err(_)))), "it continues: {next:?}");
}

#[tokio::test]
async fn plugin_that_fails_at_start_is_named() {
    let server = TestServer::start(100).await;
    let plugin = Plugin::new("nothing", &json!({}));
    let error = with_limits(plugin.config(&server), Limits::default()).err().unwrap();
    let text = format!("{error}: {}", std::error::Error::source(&error).map_or(String::new(), ToString::to_string));
    assert!(text.contains("the plugin `sh` of the kubeconfig"), "{text}");
}
