//! Runs a program with interpreters, and connects to its webhook.

use std::{fs, path::Path, process::Stdio, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

/// Environment variable of started programs. With it, a binary that is both test and program knows its role.
pub(crate) const AS_PROGRAM: &str = "WORKLOAD_INTERPRETER_AS_PROGRAM";
/// Longest wait for anything except the end of the process. A machine under load is slow.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// The running example and its address. It is killed when the test ends.
pub(crate) struct Example {
    pub(crate) child: Child,
    pub(crate) address: String,
    tls: TlsConnector,
}

impl Example {
    /// Starts a program that serves interpreters, and waits for its webhook configuration. `name` is part of a file
    /// name.
    pub(crate) async fn start(program: &Path, name: &str, arguments: &[&str]) -> Self {
        let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stop-{name}.yaml"));
        drop(fs::remove_file(&config));
        let child = Command::new(program)
            .args(arguments)
            .arg("--write-webhook-config")
            .arg(&config)
            .env(AS_PROGRAM, "1")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let written = async {
            loop {
                match fs::read_to_string(&config) {
                    Ok(text) if text.ends_with('\n') => return text,
                    _ => sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let text = timeout(TIMEOUT, written).await.expect("the example writes its configuration");
        // A long YAML string is folded, and continues until the next field.
        let field = |name: &str| {
            let mut lines = text.lines().map(str::trim).skip_while(|line| !line.starts_with(name));
            let first = lines.next().expect(name)[name.len()..].trim().trim_matches(['"', '\'', '>', '|', '-']);
            let more: String = lines.take_while(|line| !line.contains([':', '-'])).collect();
            format!("{first}{more}")
        };
        let (url, authority) = (field("url:"), STANDARD.decode(field("caBundle:")).unwrap());
        let address = url.trim_start_matches("https://").split('/').next().unwrap().to_owned();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { child, address, tls: TlsConnector::from(Arc::new(tls)) }
    }

    pub(crate) async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpStream::connect(&self.address).await?;
        self.tls.connect(ServerName::try_from("localhost").unwrap(), socket).await
    }

    /// Returns the response of `/readyz`, with its status line and body.
    pub(crate) async fn ready(&self) -> std::io::Result<String> {
        let mut stream = self.connect().await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        stream.flush().await?;
        Ok(read(&mut stream).await)
    }

    pub(crate) async fn terminate(&self) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    }

    pub(crate) async fn ends(&mut self, within: Duration) -> Option<i32> {
        timeout(within, self.child.wait()).await.expect("the process ends in time").unwrap().code()
    }
}

/// Reads until the server closes the connection.
pub(crate) async fn read(stream: &mut TlsStream<TcpStream>) -> String {
    let mut bytes = Vec::new();
    // The response is complete even if the server closes the connection without a TLS `close_notify`.
    let _closed = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("an answer");
    String::from_utf8_lossy(&bytes).into_owned()
}
