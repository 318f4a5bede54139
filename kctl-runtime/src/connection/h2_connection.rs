//! One HTTP/2 connection, reopened when it is lost; several HTTP/1.1 ones if the server speaks no HTTP/2.
//!
//! hyper-util's pool holds the connection and opens it on demand. This file adds two things: it counts streams,
//! and it sends the first request alone. Without the second, the watches of a starting program would each open their
//! own connection. The pool learns only from the first handshake that HTTP/2 is spoken.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use tokio::{sync::Mutex, time::timeout};

use super::{connector::Connector, router::Limits};

/// Flow-control window of a stream, in bytes. A connection has one of this size for each of its streams, so
/// an unread stream never stops the others.
const WINDOW: u32 = 256 << 10;
/// Longest time for which the first request of a connection is alone, so that others find the connection
/// instead of opening their own.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
/// Maximum number of idle HTTP/1.1 connections, for servers without HTTP/2. Further ones are closed.
const IDLE_MAX: usize = 4;

/// A connection with counts of its streams.
///
/// `n_open` is at least `n_responded`. The difference is the number of streams that wait for a response head.
/// For a watch the head comes at once unless the server has no room for the stream.
pub(super) struct H2Connection {
    /// hyper-util's client, used as a pool of one server.
    pool: Client<Connector, Body>,
    /// Streams that are requested or open.
    pub(super) n_open: AtomicUsize,
    /// Streams with a response.
    pub(super) n_responded: AtomicUsize,
    /// `true` once a request was answered, until a connection error.
    is_there: AtomicBool,
    /// Held by the request that opens the connection.
    first: Mutex<()>,
}

impl H2Connection {
    /// Creates the client without opening a connection. `limits.streams` sizes the flow-control window of the whole connection.
    pub(super) fn new(connector: &Connector, limits: Limits) -> Self {
        let streams = u32::try_from(limits.streams).unwrap_or(u32::MAX);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            // hyper counts a connection as idle although streams on it are open, so its timeout would close live watches.
            .pool_idle_timeout(None)
            .pool_max_idle_per_host(IDLE_MAX)
            .http2_keep_alive_interval(limits.ping_every)
            .http2_keep_alive_timeout(limits.ping_within)
            .http2_keep_alive_while_idle(true)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW.saturating_mul(streams));
        Self {
            pool: builder.build(connector.clone()),
            n_open: AtomicUsize::default(),
            n_responded: AtomicUsize::default(),
            is_there: AtomicBool::default(),
            first: Mutex::default(),
        }
    }

    /// Sends a request. The first request opens the connection, and the others wait for it.
    ///
    /// Others wait for at most a second. After that they proceed, and may each open a connection, which is better than
    /// waiting indefinitely.
    ///
    /// # Errors
    /// No connection could be opened, or it was lost before the head of the response. The caller decides about a
    /// retry, since a watch starts again anyway.
    ///
    /// # Cancel safety
    /// Safe: dropping the future resets the stream, and other streams of the connection are unaffected.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        if !self.is_there.load(Ordering::Acquire)
            && let Ok(_alone) = timeout(FIRST_WITHIN, self.first.lock()).await
            && !self.is_there.load(Ordering::Acquire)
        {
            let response = self.pool.request(request).await?;
            self.is_there.store(true, Ordering::Release);
            return Ok(response);
        }
        let response = self.pool.request(request).await;
        if response.is_err() {
            self.mark_lost();
        }
        response
    }

    /// Marks the connection as lost: the next request opens one first.
    pub(super) fn mark_lost(&self) {
        self.is_there.store(false, Ordering::Release);
    }
}
