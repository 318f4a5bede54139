//! A pool of HTTP/2 connections, as many as its streams need.
//!
//! A server bounds the streams of a connection. One beyond the bound waits for another to end, which for
//! watches means forever. So the pool opens further connections and learns the bound from unanswered
//! streams.
//!
//! Go's client opens a further connection when the server's `SETTINGS_MAX_CONCURRENT_STREAMS` is reached. hyper
//! does not show that number to its users. A proxy in between may enforce a smaller one as well, so the
//! pool watches what happens instead:
//!
//! 1. A watch on a connection with other answered streams waits for its response head.
//! 2. The caller gives up after its own timeout and drops the request.
//! 3. If that took at least [`Limits::response_within`], the number of streams with a response becomes the new bound.
//! 4. The retry finds no room on that connection, and opens a new one.
//!
//! The bound is shared by all connections of the pool. A slow server that answers nothing does not lower it, because a
//! connection without an answered stream proves nothing. Neither does a request that fails with its connection. If the
//! connection turns out to have been dead, its pings fail soon after, and the bound rises again.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{Request, Response};
use hyper_util::client::legacy;
use kube::client::Body;
use tokio::time::Instant;

use super::{
    connector::Connector,
    h2_connection::H2Connection,
    h2_stream::{Stream, StreamLimitGuard},
    limits::Limits,
    response_body::ResponseBody,
};

/// Connections of one purpose to one server. Clones share them.
#[derive(Clone)]
pub(super) struct H2Pool {
    /// Opens the TCP and TLS connection of each [`H2Connection`].
    connector: Connector,
    limits: Limits,
    /// Decides whether unanswered streams lower `n_max`.
    limit: StreamLimit,
    /// Maximum number of streams of one connection, as far as it is known.
    n_max: Arc<AtomicUsize>,
    /// Connections in the order in which they were opened. They are never removed: a program that once needed three
    /// connections keeps three, and an idle one carries only pings.
    all: Arc<parking_lot::Mutex<Vec<Arc<H2Connection>>>>,
}

/// The source of the bound on streams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamLimit {
    /// The bound is always [`Limits::streams`]. Used for lists, whose first byte may take long.
    Given,
    /// Streams without a response lower the bound. Used for watches, which are answered at once and remain open.
    Learned,
}

impl H2Pool {
    /// Creates an empty pool with [`Limits::streams`] as its bound.
    pub(super) fn new(connector: Connector, limits: Limits, limit: StreamLimit) -> Self {
        let n_max = Arc::new(AtomicUsize::new(limits.streams));
        Self { connector, limits, limit, n_max, all: Arc::default() }
    }

    /// Sends a request on the first connection with room, opening one if there is no such connection.
    ///
    /// # Errors
    /// As [`H2Connection::send`]. A failed request gives its room back.
    ///
    /// # Cancel safety
    /// Safe, and meaningful: a dropped watch without a response may lower the bound, as the module page says.
    pub(super) async fn send(self, request: Request<Body>) -> Result<Response<ResponseBody>, legacy::Error> {
        let connection = self.connection();
        let mut stream = Stream::new(connection.clone());
        if self.limit == StreamLimit::Learned {
            let (since, slow) = (Instant::now(), self.limits.response_within);
            stream.guard_limit(StreamLimitGuard { since, slow, n_max: self.n_max.clone() });
        }
        // A request that failed says nothing about the number of streams: its connection was lost.
        let response = connection.send(request).await.inspect_err(|_lost| stream.keep_limit())?;
        stream.response_received();
        Ok(response.map(|body| ResponseBody::new(body).with_stream(stream)))
    }

    /// Returns the first connection with room, so that streams that end leave the last ones empty.
    ///
    /// The count is raised under the lock, so two requests never get the last free stream of a connection.
    fn connection(&self) -> Arc<H2Connection> {
        let mut all = self.all.lock();
        let n_max = self.n_max.load(Ordering::Relaxed);
        let free = all.iter().find(|connection| connection.n_open.load(Ordering::Relaxed) < n_max);
        let connection = free.cloned().unwrap_or_else(|| {
            let connection = Arc::new(H2Connection::new(&self.connector, self.limits));
            all.push(connection.clone());
            connection
        });
        connection.n_open.fetch_add(1, Ordering::Relaxed);
        connection
    }
}
