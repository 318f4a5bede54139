//! A request → the way that it takes: watches share connections of HTTP/2, all else goes by HTTP/1.1.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response, header};
use kube::{Config, client::Body};
use tokio::sync::Semaphore;
use tower::BoxError;
use tracing::{Instrument, field::Empty};

use super::{
    answer::Answer,
    connector::{Connector, Speaks},
    lasts::lasts,
    links::{Links, Room},
    plain::Plain,
};

/// So many long answers come by HTTP/1.1 at a time. More of them, at the start of a program with many kinds, take streams: a
/// hundred connections at once would take memory that does not come back.
const N_LONG_MAX: usize = 8;

/// Says of a request that its answer is long: all objects of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Long;

/// How many streams share a connection, and when one is given up.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Streams of one connection. kube-apiserver takes 100 (`--http2-max-streams-per-connection`), the usual proxies 100 to 250.
    pub(super) streams: usize,
    /// A connection that says nothing is asked so often whether it is there.
    pub(super) ping_every: Duration,
    /// And is given up when it does not answer within this.
    pub(super) ping_within: Duration,
    /// A watch that is not answered within this, beside others that are, was one too many for the server.
    pub(super) answer_within: Duration,
    /// A connection of HTTP/1.1 that was not used for so long is not used again: it may have gone silent, and a write that is lost on
    /// it can't be repeated.
    pub(super) reuse_within: Duration,
    /// A GET that is not answered within this, over a connection that was used before, is sent again over a new one.
    pub(super) first_byte_within: Duration,
    /// A plugin is asked once in this time at most: one that gives what a server refuses, or fails, is not started for each
    /// request.
    pub(super) plugin_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            streams: 80,
            ping_every: seconds(30),
            ping_within: seconds(15),
            answer_within: seconds(5),
            reuse_within: seconds(5),
            first_byte_within: seconds(5),
            plugin_every: seconds(5),
        }
    }
}

/// All connections to one server. Clones are the same.
#[derive(Clone)]
pub(super) struct Ways {
    watches: Links,
    /// Long answers for which HTTP/1.1 has no place.
    further: Links,
    plain: Plain,
    long: Arc<Semaphore>,
}

impl Ways {
    /// # Errors
    /// When certificates, keys or the name of the server cannot be read, or the proxy is none.
    pub(super) fn of(config: &Config, limits: Limits) -> kube::Result<Self> {
        let (both, http1) = (Connector::of(config, Speaks::Both)?, Connector::of(config, Speaks::Http1)?);
        Ok(Self {
            watches: Links::new(both.clone(), limits, Room::Learned),
            further: Links::new(both, limits, Room::Given),
            plain: Plain::new(http1, limits),
            long: Arc::new(Semaphore::new(N_LONG_MAX)),
        })
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        match Way::of(&request) {
            Way::Watch => Ok(self.watches.send(request).await?),
            Way::Ask => self.plain.send(request).await,
            Way::Long => match self.long.try_acquire_owned() {
                Ok(place) => Ok(self.plain.send(request).await?.map(|answer| answer.at(place))),
                Err(_all_taken) => Ok(self.further.send(request).await?),
            },
            Way::Upgrade => self.plain.upgrade(request).await,
        }
    }
}

impl tower::Service<Request<Body>> for Ways {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let span = tracing::debug_span!(
            "HTTP",
            http.method = %request.method(),
            http.url = %request.uri(),
            http.status_code = Empty,
            otel.name = request.extensions().get::<&'static str>().unwrap_or(&"HTTP"),
            otel.kind = "client",
        );
        let ways = self.clone();
        let answer = async move {
            let answer = ways.send(request).await?;
            tracing::Span::current().record("http.status_code", answer.status().as_u16());
            Ok(answer)
        };
        Box::pin(answer.instrument(span))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// Lasts.
    Watch,
    /// By HTTP/1.1 if there is a place.
    Long,
    Ask,
    /// Its connection becomes something else.
    Upgrade,
}

impl Way {
    fn of(request: &Request<Body>) -> Self {
        if request.headers().contains_key(header::UPGRADE) {
            // HTTP/2 has none, and what asks for one may look like a watch.
            Self::Upgrade
        } else if request.extensions().get::<Long>().is_some() {
            Self::Long
        } else if lasts(request.uri()) {
            Self::Watch
        } else {
            Self::Ask
        }
    }
}
