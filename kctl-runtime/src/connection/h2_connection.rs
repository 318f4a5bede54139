//! One HTTP/2 connection, reopened when it is lost; several HTTP/1.1 ones if the server speaks no HTTP/2.
//!
//! hyper-util's pool holds the connection and opens it on demand. This file adds two things: it counts streams,
//! and it sends the first request alone. Without the second, the watches of a starting program would each open their
//! own connection. The pool learns only from the first handshake that HTTP/2 is spoken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{connector::Connector, limits::Limits};

/// Flow-control window of a stream, in bytes. A connection has one of this size for each of its streams, so
/// an unread stream never stops the others.
const WINDOW: u32 = 256 << 10;
/// Longest time for which the first request of a connection is alone, so that others find the connection
/// instead of opening their own.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
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
    is_established: AtomicBool,
    /// Held by the request that opens the connection.
    first: Mutex<()>,
    /// The last bound that was learned on this connection, to take it back if the connection was dead.
    learned: parking_lot::Mutex<Option<LearnedLimit>>,
    /// Longest time until pings have closed a dead connection, with a margin for a busy process.
    dead_within: Duration,
}

/// A bound on streams that was lowered.
struct LearnedLimit {
    since: Instant,
    /// The bound before.
    before: usize,
    n_responded: usize,
    /// The bound, shared with the pool.
    n_max: Arc<AtomicUsize>,
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
            is_established: AtomicBool::default(),
            first: Mutex::default(),
            learned: parking_lot::Mutex::default(),
            dead_within: 2 * (limits.ping_every + limits.ping_within),
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
        if !self.is_established.load(Ordering::Acquire)
            && let Ok(_alone) = timeout(FIRST_REQUEST_TIMEOUT, self.first.lock()).await
            && !self.is_established.load(Ordering::Acquire)
        {
            let response = self.pool.request(request).await?;
            self.is_established.store(true, Ordering::Release);
            return Ok(response);
        }
        let response = self.pool.request(request).await;
        if response.is_err() {
            self.mark_lost();
        }
        response
    }

    /// Marks the connection as lost: the next request opens one first. Takes back a bound that was learned just before,
    /// because a dead connection leaves each stream without a response.
    pub(super) fn mark_lost(&self) {
        self.is_established.store(false, Ordering::Release);
        let learned = self.learned.lock().take();
        if let Some(learned) = learned.filter(|learned| learned.since.elapsed() <= self.dead_within) {
            let LearnedLimit { before, n_responded, n_max, .. } = learned;
            let _changed_meanwhile = n_max.compare_exchange(n_responded, before, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Lowers the bound to the streams that the server responded to: it did not respond to one more.
    pub(super) fn lower_limit(&self, n_max: &Arc<AtomicUsize>) {
        let n_responded = self.n_responded.load(Ordering::Relaxed);
        if n_responded == 0 {
            return;
        }
        let mut learned = self.learned.lock();
        let before = n_max.fetch_min(n_responded, Ordering::Relaxed);
        if n_responded >= before {
            return;
        }
        // Several streams of a dead connection may lower it one after the other.
        let recent = learned.take().filter(|earlier| earlier.since.elapsed() <= self.dead_within);
        let before = recent.map_or(before, |earlier| earlier.before.max(before));
        *learned = Some(LearnedLimit { since: Instant::now(), before, n_responded, n_max: n_max.clone() });
        tracing::info!(
            streams = n_responded,
            "watch timed out on a shared HTTP/2 connection; lowering streams per connection"
        );
    }
}
