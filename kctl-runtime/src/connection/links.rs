//! Which connection a request takes. One of HTTP/2 has a bound of streams, and what is beyond it waits for ever where watches never
//! end: so there are as many as the watches need, and all else has one to itself.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{self, Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use tokio::{sync::Mutex, time::timeout};

/// Watches of one connection. kube-apiserver takes 100 streams on each (`--http2-max-streams-per-connection`), others 250.
const WATCHES_MAX: usize = 80;
/// A connection that says nothing is asked so often whether it is there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// And is given up when it does not answer within this: as long as client-go waits.
const PING_WITHIN: Duration = Duration::from_secs(15);
/// What a stream may have under way before somebody reads it, and all streams of a connection.
const WINDOW: u32 = 1 << 20;
const WINDOW_OF_ALL: u32 = 16 << 20;
/// The first request of a connection goes alone, so that the others find it there: for so long.
const FIRST_WITHIN: Duration = Duration::from_secs(1);

type Connector = HttpsConnector<HttpConnector>;

/// Connections to one server. Clones are the same.
#[derive(Clone)]
pub(super) struct Links {
    connector: Connector,
    /// For what is no watch.
    asking: Link,
    watching: Arc<parking_lot::Mutex<Vec<Link>>>,
}

#[derive(Clone)]
struct Link {
    client: Client<Connector, Body>,
    /// Watches that are open.
    n_open: Arc<AtomicUsize>,
    is_there: Arc<Mutex<bool>>,
}

impl Links {
    pub(super) fn new(connector: Connector) -> Self {
        Self { asking: Link::new(&connector), connector, watching: Arc::default() }
    }

    /// The link of one more watch: the first that has room.
    fn watching(&self) -> (Link, Open) {
        let mut watching = self.watching.lock();
        let roomy = watching.iter().find(|link| link.n_open.load(Ordering::Relaxed) < WATCHES_MAX);
        let link = roomy.cloned().unwrap_or_else(|| {
            let link = Link::new(&self.connector);
            watching.push(link.clone());
            link
        });
        let open = Open::one_of(&link.n_open);
        (link, open)
    }
}

impl Link {
    fn new(connector: &Connector) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_EVERY)
            .http2_keep_alive_timeout(PING_WITHIN)
            .http2_keep_alive_while_idle(true)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW_OF_ALL);
        Self { client: builder.build(connector.clone()), n_open: Arc::default(), is_there: Arc::default() }
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, legacy::Error> {
        let Ok(mut is_there) = timeout(FIRST_WITHIN, self.is_there.lock()).await else {
            return self.client.request(request).await;
        };
        if *is_there {
            drop(is_there);
            return self.client.request(request).await;
        }
        let answer = self.client.request(request).await?;
        *is_there = true;
        Ok(answer)
    }
}

impl tower::Service<Request<Body>> for Links {
    type Response = Response<Counted>;
    type Error = legacy::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (link, open) = match is_watch(&request).then(|| self.watching()) {
            Some((link, open)) => (link, Some(open)),
            None => (self.asking.clone(), None),
        };
        Box::pin(async move { Ok(link.send(request).await?.map(|body| Counted { body, _open: open })) })
    }
}

fn is_watch(request: &Request<Body>) -> bool {
    let options = request.uri().query().unwrap_or_default().split('&');
    options.into_iter().any(|option| matches!(option, "watch" | "watch=1" | "watch=true" | "follow=true"))
}

/// A watch that is open, from its request to the end of its answer.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn one_of(n_open: &Arc<AtomicUsize>) -> Self {
        n_open.fetch_add(1, Ordering::Relaxed);
        Self(n_open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer, and that it is open.
pub(super) struct Counted {
    body: Incoming,
    _open: Option<Open>,
}

impl http_body::Body for Counted {
    type Data = <Incoming as http_body::Body>::Data;
    type Error = <Incoming as http_body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
