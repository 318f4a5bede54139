//! A pool of HTTP/1.1 connections: one per request in flight, kept for the next.
//!
//! An idle connection may be dead without a sign: a load balancer dropped its entry, or a node is gone. A request
//! that was sent over it is lost, and only a GET may be sent twice. The pool therefore trusts a connection for
//! a short time only:
//!
//! - After [`Limits::reuse_within`] idle time it is closed.
//! - Before each reuse it is polled once, which finds a connection that the server closed.
//! - A GET over a reused connection gets [`Limits::first_byte_within`] for its response head. After that all idle
//!   connections are dropped, and the GET goes over a new one.
//!
//! The number of busy connections has no bound here. The stages above bound it: workers by their concurrency,
//! lists by the `ListLimiter` of `source`.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, Uri, header, uri::Scheme};
use hyper::client::conn::{TrySendError, http1};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until, timeout},
};
use tower::{BoxError, Service as _, ServiceExt as _};

use super::{
    connector::{Connector, Stream},
    h1_connection::H1Connection,
    response_body::ResponseBody,
    router::Limits,
};

/// Maximum number of idle connections; further ones are closed.
const N_IDLE_MAX: usize = 32;

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
        let idle = Idle { reuse_within: limits.reuse_within, waiting: Mutex::default() };
        Self { connector, first_byte_within: limits.first_byte_within, idle: Arc::new(idle) }
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
            let retry = clone_retryable(&request);
            let sent = match retry {
                None => Ok(connection.send(request).await),
                Some(retry) => match timeout(self.first_byte_within, connection.send(request)).await {
                    Ok(answered) => Ok(answered),
                    Err(_elapsed) => Err(retry),
                },
            };
            match sent {
                Ok(Ok(response)) => {
                    return Ok(response.map(|body| ResponseBody::new(body).with_connection(self.check_out(connection))));
                }
                // The server closed the connection just now. The error returns the request if nothing of it was sent.
                Ok(Err(mut closed)) => match closed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(closed.into_error().into()),
                },
                Err(retry) => {
                    // The other idle connections were idle for longer, and are probably dead too.
                    self.idle.clear();
                    request = retry;
                }
            }
        }
        let mut connection = H1Connection::handshake(self.connect(to).await?).await?;
        let response = connection.send(request).await.map_err(TrySendError::into_error)?;
        Ok(response.map(|body| ResponseBody::new(body).with_connection(self.check_out(connection))))
    }

    /// Ties a connection to a response, so that it returns to the pool with the end of the body.
    fn check_out(&self, connection: H1Connection) -> UsedConnection {
        UsedConnection { connection: Some(connection), idle: self.idle.clone() }
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

/// A connection with a response in flight. It returns to the pool when dropped.
pub(super) struct UsedConnection {
    /// `None` only while it is being dropped.
    connection: Option<H1Connection>,
    idle: Arc<Idle>,
}

impl UsedConnection {
    /// Polls a body and its connection; see [`H1Connection::poll`].
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        what: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.connection.as_mut().map_or(Poll::Pending, |connection| connection.poll(context, what))
    }
}

impl Drop for UsedConnection {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.idle.put_idle(connection);
        }
    }
}

/// Idle connections, the last used last.
///
/// The newest one is taken first, so that a burst's extra connections age and are closed.
struct Idle {
    /// A connection that was idle for longer is closed.
    reuse_within: Duration,
    waiting: Mutex<Waiting>,
}

/// Idle connections with the time since which they are idle, oldest first.
#[derive(Default)]
struct Waiting {
    all: Vec<(H1Connection, Instant)>,
    /// `true` while [`close_unused`] runs.
    is_watched: bool,
}

impl Idle {
    /// Returns a connection that the server has not closed, as far as is known.
    fn take(&self) -> Option<H1Connection> {
        loop {
            let (mut connection, since) = self.waiting.lock().all.pop()?;
            if since.elapsed() < self.reuse_within && connection.is_free() {
                return Some(connection);
            }
        }
    }

    /// Closes all idle connections. They are dropped after the lock, because closing a TLS stream takes time.
    fn clear(&self) {
        let all = std::mem::take(&mut self.waiting.lock().all);
        drop(all);
    }

    /// Keeps a connection that can be used again: its response has ended and the server has not closed it.
    ///
    /// A body that was not read to its end makes a connection unusable. A full pool ([`N_IDLE_MAX`]) closes it too.
    fn put_idle(self: &Arc<Self>, mut connection: H1Connection) {
        // Outside of a runtime, during its shutdown for example, the connection can no longer be used.
        let Ok(runtime) = Handle::try_current() else { return };
        if !connection.is_free() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.all.len() == N_IDLE_MAX {
            return;
        }
        waiting.all.push((connection, Instant::now()));
        if !std::mem::replace(&mut waiting.is_watched, true) {
            runtime.spawn(close_unused(Arc::downgrade(self)));
        }
    }

    /// Closes old connections. Returns the time of the next check if a connection is left.
    fn close_old(&self) -> Option<Instant> {
        let mut waiting = self.waiting.lock();
        let n_old = waiting.all.partition_point(|(_, since)| since.elapsed() >= self.reuse_within);
        let old: Vec<_> = waiting.all.drain(..n_old).collect();
        let next = waiting.all.first().map(|(_, since)| *since + self.reuse_within);
        waiting.is_watched = next.is_some();
        drop(waiting);
        drop(old);
        next
    }
}

/// Closes idle connections. Ends with the last one; the next one that is kept starts it again.
///
/// It holds a weak reference, so it ends with the last client too. One task serves a whole pool: a timer per
/// connection would be reset with each request.
async fn close_unused(idle: Weak<Idle>) {
    while let Some(next) = idle.upgrade().and_then(|idle| idle.close_old()) {
        sleep_until(next).await;
    }
}
