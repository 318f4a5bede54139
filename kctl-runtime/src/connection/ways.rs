//! A request → the way that it takes: watches apart from all else, so that neither waits for the other, and long answers by HTTP/1.1.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response, header};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use tracing::{Instrument, field::Empty};

use super::{
    answer::Answer,
    link::Connector,
    links::{Links, Room},
};
use crate::source::is_watch;

/// A connection of HTTP/1.1 that nobody uses is closed after this time: lists come seldom, and its buffers are those of the longest.
const IDLE_MAX: Duration = Duration::from_secs(10);

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
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { streams: 80, ping_every: seconds(30), ping_within: seconds(15), answer_within: seconds(5) }
    }
}

/// All connections to one server. Clones are the same.
#[derive(Clone)]
pub(super) struct Ways {
    watches: Links,
    asks: Links,
    /// HTTP/1.1.
    plain: Client<Connector, Body>,
}

impl Ways {
    pub(super) fn new(both: Connector, http1: Connector, limits: Limits) -> Self {
        let mut plain = Client::builder(TokioExecutor::new());
        plain.timer(TokioTimer::new()).pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_MAX);
        Self {
            watches: Links::new(both.clone(), limits, Room::Learned),
            asks: Links::new(both, limits, Room::Given),
            plain: plain.build(http1),
        }
    }
}

impl tower::Service<Request<Body>> for Ways {
    type Response = Response<Answer>;
    type Error = legacy::Error;
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
        let links = match Way::of(&request) {
            Way::Plain => {
                let answer = self.plain.request(request);
                return Box::pin(async move { Ok(answer.await?.map(Answer::of)) }.instrument(span));
            }
            Way::Watch => self.watches.clone(),
            Way::Ask => self.asks.clone(),
        };
        let answer = async move {
            let answer = links.send(request).await?;
            tracing::Span::current().record("http.status_code", answer.status().as_u16());
            Ok(answer)
        };
        Box::pin(answer.instrument(span))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Way {
    Watch,
    Ask,
    Plain,
}

impl Way {
    fn of(request: &Request<Body>) -> Self {
        let follows = || request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair == "follow=true"));
        // An upgrade is something that HTTP/2 has not.
        if request.extensions().get::<Long>().is_some() || request.headers().contains_key(header::UPGRADE) {
            Self::Plain
        } else if is_watch(request.uri()) || follows() {
            Self::Watch
        } else {
            Self::Ask
        }
    }
}
