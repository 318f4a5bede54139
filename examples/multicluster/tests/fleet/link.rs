//! A connection to a member that tests can cut.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures::StreamExt;
use http::{Request, Response};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use kctl::{
    apiserver::{Body, InProcess},
    kube::{Client, client},
};
use tokio::sync::watch;

/// A connection that is either working or cut. Clones share its state.
#[derive(Clone)]
pub(crate) struct Link(watch::Sender<bool>);

impl Link {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Cuts the connection: new requests fail, and open watches end.
    pub(crate) fn disconnect(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.0.send_replace(false);
    }

    /// Creates a client that uses this connection.
    pub(crate) fn client(&self, server: InProcess) -> Client {
        Client::new(Linked { server, cut: self.0.subscribe() }, "default")
    }
}

#[derive(Clone)]
struct Linked {
    server: InProcess,
    cut: watch::Receiver<bool>,
}

impl tower::Service<Request<client::Body>> for Linked {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<client::Body>) -> Self::Future {
        let mut cut = self.cut.clone();
        let is_cut = *cut.borrow_and_update();
        let answer = self.server.call(request);
        Box::pin(async move {
            if is_cut {
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the way to the member is cut"));
            }
            let response = answer.await.unwrap_or_else(|never: Infallible| match never {});
            let end = async move {
                let _gone = cut.wait_for(|is_cut| *is_cut).await;
            };
            Ok(response.map(|body| StreamBody::new(BodyStream::new(body).take_until(Box::pin(end))).boxed_unsync()))
        })
    }
}
