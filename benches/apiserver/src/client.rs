//! A client that costs little: one HTTP/1.1 connection over TLS with a client certificate.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, rustls};

use crate::Failure;

/// Where a server is, and who its clients are.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    tls: Arc<rustls::ClientConfig>,
}

impl Target {
    pub(crate) async fn read(kubeconfig: &Path) -> Result<Self, Failure> {
        use kube::client::ConfigExt;

        let config = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let mut tls = config.rustls_client_config()?;
        // What Go's clients speak is HTTP/2; here one connection a client is wanted.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let url = &config.cluster_url;
        let host = url.host().ok_or("the kubeconfig names no host")?.to_owned();
        Ok(Self { host, port: url.port_u16().ok_or("the kubeconfig names no port")?, tls: Arc::new(tls) })
    }

    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await?;
        socket.set_nodelay(true)?;
        let name = rustls::pki_types::ServerName::try_from(self.host.clone())?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, socket).await?;
        let (send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Client { host: self.host.clone(), send })
    }
}

/// One connection.
pub(crate) struct Client {
    host: String,
    send: SendRequest<Full<Bytes>>,
}

/// What is sent with a body, by its method.
fn content_type(method: &Method, path: &str) -> &'static str {
    match *method {
        Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    }
}

impl Client {
    /// Sends a request; the body of the answer is still to come.
    pub(crate) async fn open(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = Request::builder()
            .header("host", &self.host)
            .header("accept", "application/json")
            .header("content-type", content_type(&method, path))
            .header("user-agent", "apiserver-bench")
            .method(method)
            .uri(path)
            .body(Full::new(body))?;
        self.send.ready().await?;
        Ok(self.send.send_request(request).await?)
    }

    /// Sends a request and reads the answer, which must be a success.
    pub(crate) async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let response = self.open(method, path, body).await?;
        let code = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if code.is_success() {
            return Ok(body);
        }
        Err(format!("{path} was answered {code}: {}", String::from_utf8_lossy(&body)).into())
    }

    pub(crate) async fn post(&mut self, path: &str, object: &Value) -> Result<Bytes, Failure> {
        self.send(Method::POST, path, object.to_string().into()).await
    }
}
