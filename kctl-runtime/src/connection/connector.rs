//! A connection within a time, its TLS included: a server that takes it and says nothing is none.

use std::{
    io,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{net::TcpStream, time::timeout};
use tower::{BoxError, Service};

/// What goes to and fro.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector>,
    /// For ever, if none.
    within: Option<Duration>,
}

impl Connector {
    pub(super) fn new(https: HttpsConnector<HttpConnector>, within: Option<Duration>) -> Self {
        Self { https, within }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.https.call(to);
        let Some(within) = self.within else { return Box::pin(connecting) };
        Box::pin(async move {
            let late = |_elapsed| Err(io::Error::new(io::ErrorKind::TimedOut, "the connection timed out").into());
            timeout(within, connecting).await.unwrap_or_else(late)
        })
    }
}
