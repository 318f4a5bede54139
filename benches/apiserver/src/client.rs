//! A lightweight client: one HTTP/1.1 connection over TLS with a client certificate.
//!
//! It shares the cores with the server, so the cost of a full Kubernetes client would distort the results.

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

/// The address of a server, and the credentials for it.
#[derive(Clone)]
pub(crate) struct Target {
    host: String,
    port: u16,
    tls: Arc<rustls::ClientConfig>,
}

impl Target {
    /// Reads a kubeconfig.
    ///
    /// # Errors
    /// The kubeconfig can't be read, or its server URL lacks a host or a port.
    pub(crate) async fn read(kubeconfig: &Path) -> Result<Self, Failure> {
        use kube::client::ConfigExt;

        let config = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let mut tls = config.rustls_client_config()?;
        // Go's clients use HTTP/2. Here each client has its own connection, so HTTP/1.1 suffices.
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let url = &config.cluster_url;
        let host = url.host().ok_or("the kubeconfig names no host")?.to_owned();
        Ok(Self { host, port: url.port_u16().ok_or("the kubeconfig names no port")?, tls: Arc::new(tls) })
    }

    /// Opens a connection. The TLS handshake is not part of a measurement.
    ///
    /// # Errors
    /// The server is unreachable, or its certificate is not signed by the CA of the kubeconfig.
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

/// A client with its connection. Requests are sent one after the other.
pub(crate) struct Client {
    host: String,
    send: SendRequest<Full<Bytes>>,
}

/// Returns the content type of a request, which is an apply, a merge patch, or a JSON object.
fn content_type(method: &Method, path: &str) -> &'static str {
    match *method {
        Method::PATCH if path.contains("fieldManager=") => "application/apply-patch+yaml",
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    }
}

impl Client {
    /// Sends a request, and returns the response without waiting for its body.
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

    /// Sends a request and reads the response.
    ///
    /// # Errors
    /// The connection breaks, or the status is not a success.
    pub(crate) async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let response = self.open(method, path, body).await?;
        let code = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if code.is_success() {
            return Ok(body);
        }
        Err(format!("{path} was answered {code}: {}", String::from_utf8_lossy(&body)).into())
    }

    /// Creates an object by a POST to the path of its collection. Returns the body of the response.
    pub(crate) async fn post(&mut self, path: &str, object: &Value) -> Result<Bytes, Failure> {
        self.send(Method::POST, path, object.to_string().into()).await
    }
}
