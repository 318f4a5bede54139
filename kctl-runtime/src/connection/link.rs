//! One connection of HTTP/2, made anew when it is lost; several where the server speaks HTTP/1.1 alone.

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

use super::{connector::Connector, ways::Limits};

/// What a stream may have under way before somebody reads it, in bytes. A connection may have it of all its streams, so that one that
/// nobody reads never stops the others.
const WINDOW: u32 = 256 << 10;
/// The first request of a connection goes alone, so that the others find it there instead of making one each: for so long.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
/// Connections of HTTP/1.1 that are kept for later.
const IDLE_MAX: usize = 4;

pub(super) struct Link {
    pool: Client<Connector, Body>,
    /// Streams that are asked for or open.
    pub(super) n_open: AtomicUsize,
    /// Those that are open.
    pub(super) n_answered: AtomicUsize,
    is_there: AtomicBool,
    first: Mutex<()>,
}

impl Link {
    pub(super) fn new(connector: &Connector, limits: Limits) -> Self {
        let streams = u32::try_from(limits.streams).unwrap_or(u32::MAX);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            // A connection whose streams are open is no idle one, and this does not see them.
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
            n_answered: AtomicUsize::default(),
            is_there: AtomicBool::default(),
            first: Mutex::default(),
        }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        if !self.is_there.load(Ordering::Acquire)
            && let Ok(_alone) = timeout(FIRST_WITHIN, self.first.lock()).await
            && !self.is_there.load(Ordering::Acquire)
        {
            let answer = self.pool.request(request).await?;
            self.is_there.store(true, Ordering::Release);
            return Ok(answer);
        }
        let answer = self.pool.request(request).await;
        if answer.is_err() {
            self.lost();
        }
        answer
    }

    /// What comes next makes a connection first.
    pub(super) fn lost(&self) {
        self.is_there.store(false, Ordering::Release);
    }
}
