//! Opens connections to the host of a URI, or to an address that replaces it.

use std::{
    error::Error,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

/// Returns the `host:port` to connect to for a URI, or `None` for its own host.
///
/// It is called for each new connection and must not block.
/// [`ClientError::resolver_error`](super::ClientError::resolver_error) finds its error. An API server uses it
/// to map `name.namespace.svc` to the address of a Service.
pub type Resolve = Arc<dyn Fn(&Uri) -> Result<Option<String>, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Opens the sockets of one webhook. The name in the request and in the certificate remains the URI's.
#[derive(Clone)]
pub(super) struct Connect {
    http: HttpConnector,
    resolve: Resolve,
}

impl Connect {
    pub(super) fn new(resolve: Resolve) -> Self {
        let mut http = HttpConnector::new();
        // The TLS layer above checks the scheme, so `https` URIs are accepted here.
        http.enforce_http(false);
        http.set_nodelay(true);
        Self { http, resolve }
    }
}

impl Service<Uri> for Connect {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let target = (self.resolve)(&uri).and_then(|endpoint| match endpoint {
            None => Ok(uri),
            Some(endpoint) => Ok(format!("https://{endpoint}").parse()?),
        });
        match target {
            Ok(target) => {
                let connecting = self.http.call(target);
                Box::pin(async { connecting.await.map_err(Into::into) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
