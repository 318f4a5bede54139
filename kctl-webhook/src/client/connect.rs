//! Where a connection goes: to the host of the address, or somewhere that stands for it.

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

/// The `host:port` that stands for an address; nothing where it stands for itself. It is asked for each new connection and must not wait.
/// An error is what [`AskFailed::unresolved`](super::AskFailed::unresolved) finds.
pub type Resolve = Arc<dyn Fn(&Uri) -> Result<Option<String>, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// Opens the sockets of one webhook. The name in the request and in the certificate stays that of its address.
#[derive(Clone)]
pub(super) struct Connect {
    http: HttpConnector,
    resolve: Resolve,
}

impl Connect {
    pub(super) fn new(resolve: Resolve) -> Self {
        let mut http = HttpConnector::new();
        // The scheme is that of what is put on top.
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
