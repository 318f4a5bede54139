//! Chooses connections per request: watches share HTTP/2 connections, everything else uses HTTP/1.1.
//!
//! A watch is idle most of the time, and a program has one per kind and namespace. As HTTP/1.1 connections each
//! would cost a socket, a TLS session and buffers. As streams of one connection they share all three.
//!
//! Lists and writes are short and busy. HTTP/2 frames, flow control and the task that drives the connection cost
//! CPU that HTTP/1.1 does not. On a shared connection a watch event also waits behind the bytes of a large list.
//!
//! kube's tracing layer is not used, since this service replaces it: [`Router`] opens the span `HTTP` at debug level
//! with the same fields, except `otel.status_code`.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response, header};
use kube::{Config, client::Body};
use tokio::sync::Semaphore;
use tower::BoxError;
use tracing::{Instrument, field::Empty};

use super::{
    connector::{Alpn, Connector},
    h1_pool::H1Pool,
    h2_pool::{H2Pool, StreamLimit},
    is_streaming::is_streaming,
    limits::Limits,
    response_body::ResponseBody,
};

/// Maximum number of long responses over HTTP/1.1 at once.
///
/// More of them, at the start of a program with many kinds, use HTTP/2 streams. A hundred connections at once would
/// take memory that is not returned.
const N_LONG_MAX: usize = 8;

/// Request extension: the response is long, a list of all objects of a kind.
///
/// Every list of a whole kind carries it, to fill a cache or to compare one with the newest state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongResponse;

/// All connections to one server. Clones share them.
#[derive(Clone)]
pub(super) struct Router {
    /// Streams that do not end by themselves.
    watches: H2Pool,
    /// For long responses when HTTP/1.1 has no free permit.
    overflow: H2Pool,
    /// Everything else.
    h1: H1Pool,
    /// Permits for long responses over HTTP/1.1. No request waits for one: beyond the bound `overflow` is used.
    long: Arc<Semaphore>,
}

impl Router {
    /// Builds three pools without opening a connection. The two of HTTP/2 share one TLS setup.
    ///
    /// # Errors
    /// Certificates, keys, the server name or the proxy cannot be read.
    pub(super) fn from_config(config: &Config, limits: Limits) -> kube::Result<Self> {
        let (both, http1) = (Connector::from_config(config, Alpn::Both)?, Connector::from_config(config, Alpn::Http1)?);
        Ok(Self {
            watches: H2Pool::new(both.clone(), limits, StreamLimit::Learned),
            overflow: H2Pool::new(both, limits, StreamLimit::Given),
            h1: H1Pool::new(http1, limits),
            long: Arc::new(Semaphore::new(N_LONG_MAX)),
        })
    }

    /// Sends a request over the route that [`Route::for_request`] chooses.
    async fn send(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        match Route::for_request(&request) {
            Route::Watch => Ok(self.watches.send(request).await?),
            Route::Http1 => self.h1.send(request).await,
            Route::Long => match self.long.try_acquire_owned() {
                Ok(permit) => Ok(self.h1.send(request).await?.map(|response| response.with_list_permit(permit))),
                Err(_all_taken) => Ok(self.overflow.send(request).await?),
            },
            Route::Upgrade => self.h1.upgrade(request).await,
        }
    }
}

impl tower::Service<Request<Body>> for Router {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a request inside a span `HTTP`, whose `otel.name` is the request extension that kube sets.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let span = tracing::debug_span!(
            "HTTP",
            http.method = %request.method(),
            http.url = %request.uri(),
            http.status_code = Empty,
            otel.name = request.extensions().get::<&'static str>().unwrap_or(&"HTTP"),
            otel.kind = "client",
        );
        let router = self.clone();
        let response = async move {
            let response = router.send(request).await?;
            tracing::Span::current().record("http.status_code", response.status().as_u16());
            Ok(response)
        };
        Box::pin(response.instrument(span))
    }
}

/// The kind of connection that a request uses.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    /// An HTTP/2 stream: the response does not end.
    Watch,
    /// HTTP/1.1 if a permit is free, an HTTP/2 stream otherwise.
    Long,
    /// HTTP/1.1.
    Http1,
    /// An HTTP/1.1 connection that becomes something else.
    Upgrade,
}

impl Route {
    /// Chooses the route of a request by its headers, extensions and query.
    ///
    /// An `Upgrade` header counts first: `exec` with `follow=true` in its query looks like a followed log.
    fn for_request(request: &Request<Body>) -> Self {
        if request.headers().contains_key(header::UPGRADE) {
            // HTTP/2 has no `Upgrade`, and `exec` may look like a followed log.
            Self::Upgrade
        } else if request.extensions().get::<LongResponse>().is_some() {
            Self::Long
        } else if is_streaming(request.uri()) {
            Self::Watch
        } else {
            Self::Http1
        }
    }
}
