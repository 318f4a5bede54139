//! A stream of an HTTP/2 connection, counted from its request to the end of its response.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::h2_connection::H2Connection;

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
pub(super) struct StreamLimitGuard {
    /// Time of the request.
    pub(super) since: Instant,
    /// Shortest wait without a response that lowers the bound, [`super::limits::Limits::response_within`].
    pub(super) slow: Duration,
    /// The bound to lower, shared with the pool.
    pub(super) n_max: Arc<AtomicUsize>,
}

impl Stream {
    /// Creates a stream of a connection whose `n_open` counts it already.
    pub(super) fn new(connection: Arc<H2Connection>) -> Self {
        Self { connection, limit_guard: None, has_response: false }
    }

    /// Lowers the bound if the stream is dropped without a response for too long.
    pub(super) fn guard_limit(&mut self, limit_guard: StreamLimitGuard) {
        self.limit_guard = Some(Box::new(limit_guard));
    }

    /// Keeps the bound if the stream is dropped: a request that fails with its connection proves nothing.
    pub(super) fn keep_limit(&mut self) {
        self.limit_guard = None;
    }

    /// Reports that the response broke off.
    pub(super) fn mark_lost(&self) {
        self.connection.mark_lost();
    }

    /// Notes the head of the response. From now on a drop lowers no bound.
    pub(super) fn response_received(&mut self) {
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
            self.connection.lower_limit(&limit_guard.n_max);
        }
    }
}
