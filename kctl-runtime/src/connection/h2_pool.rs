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
//! The bound only falls, and is shared by all connections of the pool. A slow server that answers nothing does
//! not lower it, because a connection without an answered stream proves nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper_util::client::legacy;
use kube::client::Body;
use tokio::time::Instant;

use super::{connector::Connector, h2_connection::H2Connection, response_body::ResponseBody, router::Limits};

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
            stream.limit_guard = Some(Box::new(StreamLimitGuard { since, slow, n_max: self.n_max.clone() }));
        }
        let response = connection.send(request).await?;
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

/// A stream, which takes room from its request to the end of its response.
pub(super) struct Stream {
    /// The connection that counts it.
    connection: Arc<H2Connection>,
    /// Boxed, because nearly all streams are answered.
    limit_guard: Option<Box<StreamLimitGuard>>,
    /// `true` after the head of the response; then `n_responded` counts it too.
    has_response: bool,
}

/// The bound that a stream lowers if it gets no response for too long.
struct StreamLimitGuard {
    /// Time of the request.
    since: Instant,
    /// Shortest wait without a response that lowers the bound, [`Limits::response_within`].
    slow: Duration,
    /// The bound to lower, shared with the pool.
    n_max: Arc<AtomicUsize>,
}

impl Stream {
    /// Creates a stream of a connection whose `n_open` counts it already.
    fn new(connection: Arc<H2Connection>) -> Self {
        Self { connection, limit_guard: None, has_response: false }
    }

    /// Reports that the response broke off.
    pub(super) fn mark_lost(&self) {
        self.connection.mark_lost();
    }

    /// Notes the head of the response. From now on a drop lowers no bound.
    fn response_received(&mut self) {
        (self.has_response, self.limit_guard) = (true, None);
        self.connection.n_responded.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.connection.n_open.fetch_sub(1, Ordering::Relaxed);
        if self.has_response {
            self.connection.n_responded.fetch_sub(1, Ordering::Relaxed);
        } else if let Some(limit_guard) = &self.limit_guard
            && limit_guard.since.elapsed() >= limit_guard.slow
        {
            // The server responded to this many streams of the connection and not one more: this is the new bound.
            let n_responded = self.connection.n_responded.load(Ordering::Relaxed);
            if n_responded > 0 && n_responded < limit_guard.n_max.fetch_min(n_responded, Ordering::Relaxed) {
                tracing::info!(
                    streams = n_responded,
                    "watch timed out on a shared HTTP/2 connection; lowering streams per connection"
                );
            }
        }
    }
}
