//! A pool of HTTP/1.1 connections: one per request in flight, kept for the next.
//!
//! An idle connection may be dead without a sign: a load balancer dropped its entry, or a node is gone. A request
//! that was sent over it is lost, and only a GET may be sent twice. The pool therefore trusts a connection for
//! a short time only:
//!
//! - After [`Limits::reuse_within`] idle time it is closed.
//! - Before each reuse it is polled once, which finds a connection that the server closed.
//! - A GET over a reused connection gets [`Limits::first_byte_within`] for its response head. After that, or if the
//!   connection breaks off before, all idle connections are dropped, and the GET goes over a new one. Go's client
//!   repeats a GET over a connection that broke off, too (`net/http/transport.go`, `shouldRetryRequest`).
//!
//! The number of busy connections has no bound here. The stages above bound it: workers by their concurrency,
//! lists by the `ListLimiter` of `source`, elections by the `ElectionLimiter` of `manager::lease`.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, Response, Uri, header, uri::Scheme};
use hyper::client::conn::{TrySendError, http1};
use kube::client::Body;
use tokio::time::timeout;
use tower::{BoxError, Service as _, ServiceExt as _};

use super::{
    connector::{Connector, Stream},
    h1_connection::H1Connection,
    h1_idle::{Idle, UsedConnection},
    limits::Limits,
    response_body::ResponseBody,
};

/// HTTP/1.1 connections to one server. Clones share them.
#[derive(Clone)]
pub(super) struct H1Pool {
    /// Offers HTTP/1.1 alone, even to a server that prefers HTTP/2.
    connector: Connector,
    /// Time for the response head of a GET over a reused connection.
    first_byte_within: Duration,
    idle: Arc<Idle>,
}

impl H1Pool {
    /// Creates an empty pool. The task that closes idle connections starts with the first of them.
    pub(super) fn new(connector: Connector, limits: Limits) -> Self {
        let idle = Arc::new(Idle::new(limits.reuse_within));
        Self { connector, first_byte_within: limits.first_byte_within, idle }
    }

    /// Sends a request over an idle connection, or over a new one.
    ///
    /// A request is moved to the next connection only if nothing of it was sent, or if it may be repeated.
    ///
    /// # Errors
    /// No connection can be opened, it broke off, or the URL names no host. A write that fails after its first byte
    /// may have happened: `writer` finds out by reading the object.
    ///
    /// # Cancel safety
    /// Safe for the pool: a connection whose request was dropped is not used again. The request itself may still be
    /// carried out by the server.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let to = request.uri().clone();
        let mut request = to_origin_form(request)?;
        while let Some(mut connection) = self.idle.take() {
            // The inner result has the request that the next connection carries.
            let sent = match clone_retryable(&request) {
                // The server may have closed the connection just now. Then the error returns the request, unless a part
                // of it was sent.
                None => connection
                    .send(request)
                    .await
                    .map_err(|mut closed| closed.take_message().ok_or_else(|| closed.into_error())),
                Some(retry) => match timeout(self.first_byte_within, connection.send(request)).await {
                    Ok(answered) => answered
                        .map_err(|mut closed| Ok(closed.take_message().unwrap_or_else(|| self.after_loss(retry)))),
                    Err(_elapsed) => Err(Ok(self.after_loss(retry))),
                },
            };
            request = match sent {
                Ok(response) => {
                    return Ok(response.map(|body| ResponseBody::new(body).with_connection(self.check_out(connection))));
                }
                Err(unsent) => unsent?,
            };
        }
        let mut connection = H1Connection::handshake(self.connect(to).await?).await?;
        let response = connection.send(request).await.map_err(TrySendError::into_error)?;
        Ok(response.map(|body| ResponseBody::new(body).with_connection(self.check_out(connection))))
    }

    /// Returns the copy of a GET that was lost with its connection, and closes the other idle connections. They were idle
    /// for longer, and are probably dead too. So a GET is sent twice at most.
    fn after_loss(&self, retry: Request<Body>) -> Request<Body> {
        self.idle.clear();
        retry
    }

    /// Ties a connection to a response, so that it returns to the pool with the end of the body.
    fn check_out(&self, connection: H1Connection) -> UsedConnection {
        UsedConnection::new(connection, self.idle.clone())
    }

    /// Sends a request whose connection becomes something else, such as `exec`. The connection is not kept.
    pub(super) async fn upgrade(&self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let stream = self.connect(request.uri().clone()).await?;
        let (mut sender, connection) = http1::handshake(stream).await?;
        // The task ends with the upgraded protocol.
        tokio::spawn(connection.with_upgrades());
        Ok(sender.send_request(to_origin_form(request)?).await?.map(ResponseBody::new))
    }

    /// Opens a connection within the connect timeout.
    async fn connect(&self, to: Uri) -> Result<Stream, BoxError> {
        self.connector.clone().ready().await?.call(to).await
    }
}

/// Returns a copy of a request that may be sent twice. Only a GET may, because it has no effect.
///
/// The copy has no body and no extensions. A GET of the Kubernetes API has no body, and the router has already used the
/// extensions.
fn clone_retryable(request: &Request<Body>) -> Option<Request<Body>> {
    if request.method() != Method::GET {
        return None;
    }
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = Method::GET;
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}

/// Rewrites a request for the origin server: the host moves to a header, and the URI becomes the path alone.
///
/// A port other than the scheme's default is part of the header, as RFC 9110 requires. A `Host` that a caller set is
/// kept.
fn to_origin_form(mut request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let uri = request.uri();
    if !request.headers().contains_key(header::HOST) {
        let host = uri.host().ok_or("the URL of the API server names no host")?;
        let usual = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        let host = match uri.port_u16().filter(|port| *port != usual) {
            Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
            None => HeaderValue::try_from(host),
        };
        request.headers_mut().insert(header::HOST, host?);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse()?;
    *request.uri_mut() = path;
    Ok(request)
}
