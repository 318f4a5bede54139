//! `Expect: 100-continue` on writes: a server that reads the body says so, and one that says nothing is silent.
//!
//! HTTP/1.1 has no ping, and a write can't be sent again, so a connection that went silent just after its last use would keep a write
//! waiting for its whole timeout, as a slow webhook may. client-go tells the two apart by pings of HTTP/2. The body is sent without
//! waiting for the response, so this costs no round trip.

use std::{
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use kube::client::Body;
use tokio::time::timeout;

/// State shared by all writes to a server. Clones share it.
#[derive(Clone)]
pub(super) struct Expectations {
    read_within: Duration,
    server: Arc<Server>,
}

#[derive(Default)]
struct Server {
    /// It has sent `100 Continue` before. A proxy that never does may be slow, but is not silent.
    continues: AtomicBool,
    /// It has answered 417.
    refuses: AtomicBool,
}

/// One write that waits for its response; `None` in it for a request that expects nothing.
pub(super) struct Expected {
    all: Expectations,
    is_read: Option<Arc<AtomicBool>>,
}

impl Expectations {
    pub(super) fn new(read_within: Duration) -> Self {
        Self { read_within, server: Arc::default() }
    }

    /// Adds the header to a write with a body. Go's server sends no `100 Continue` for a request without one.
    pub(super) fn of(&self, request: &mut Request<Body>) -> Expected {
        let is_write = ![Method::GET, Method::HEAD].contains(request.method());
        let has_body = request.body().size_hint().exact() != Some(0);
        let expects = is_write && has_body && !self.server.refuses.load(Ordering::Relaxed);
        let is_read = expects.then(|| {
            request.headers_mut().insert(header::EXPECT, HeaderValue::from_static("100-continue"));
            let is_read = Arc::new(AtomicBool::default());
            let (read, server) = (is_read.clone(), self.server.clone());
            hyper::ext::on_informational(request, move |response| {
                if response.status() == StatusCode::CONTINUE {
                    read.store(true, Ordering::Relaxed);
                    server.continues.store(true, Ordering::Relaxed);
                }
            });
            is_read
        });
        Expected { all: self.clone(), is_read }
    }
}

impl Expected {
    /// Waits for the response.
    ///
    /// # Errors
    /// The server has not begun to read the request, though it says so otherwise. Whether the write happened is unknown.
    ///
    /// # Cancel safety
    /// As that of the future.
    pub(super) async fn wait<B, E>(
        &self,
        response: impl Future<Output = Result<Response<B>, E>>,
    ) -> Result<Result<Response<B>, E>, io::Error> {
        let mut response = pin!(response);
        let answered = match (&self.is_read, timeout(self.all.read_within, response.as_mut()).await) {
            (_, Ok(answered)) => answered,
            (Some(is_read), Err(_elapsed)) if self.is_silent(is_read) => {
                let within = self.all.read_within;
                let text = format!(
                    "the API server did not begin to read the request within {within:?}: the connection is silent, and \
                     whether the write happened is unknown"
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            (_, Err(_elapsed)) => response.await,
        };
        if self.is_read.is_some() && answered.as_ref().is_ok_and(|it| it.status() == StatusCode::EXPECTATION_FAILED) {
            self.all.server.refuses.store(true, Ordering::Relaxed);
        }
        Ok(answered)
    }

    fn is_silent(&self, is_read: &AtomicBool) -> bool {
        !is_read.load(Ordering::Relaxed) && self.all.server.continues.load(Ordering::Relaxed)
    }
}
