//! HTTP/1.1 connections that wait for their next request, and those whose response is read.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until},
};

use super::h1_connection::H1Connection;

/// Maximum number of idle connections; further ones are closed.
const N_IDLE_MAX: usize = 32;

/// A connection with a response in flight. It returns to the pool when dropped.
pub(super) struct UsedConnection {
    /// `None` only while it is being dropped.
    connection: Option<H1Connection>,
    idle: Arc<Idle>,
}

impl UsedConnection {
    /// Ties a connection to a response.
    pub(super) fn new(connection: H1Connection, idle: Arc<Idle>) -> Self {
        Self { connection: Some(connection), idle }
    }

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
pub(super) struct Idle {
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
    /// Creates an empty list. The task that closes connections starts with the first of them.
    pub(super) fn new(reuse_within: Duration) -> Self {
        Self { reuse_within, waiting: Mutex::default() }
    }

    /// Returns a connection that the server has not closed, as far as is known.
    pub(super) fn take(&self) -> Option<H1Connection> {
        loop {
            let (mut connection, since) = self.waiting.lock().all.pop()?;
            if since.elapsed() < self.reuse_within && connection.is_free() {
                return Some(connection);
            }
        }
    }

    /// Closes all idle connections. They are dropped after the lock, because closing a TLS stream takes time.
    pub(super) fn clear(&self) {
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
