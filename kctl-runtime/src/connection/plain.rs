//! HTTP/1.1: a connection for each request that is under way, kept for the next.

use std::{
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Request, Response, Uri, header, uri::Scheme};
use hyper::client::conn::{TrySendError, http1};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until},
};
use tower::{BoxError, Service as _, ServiceExt as _};

use super::{
    answer::Answer,
    connector::{Connector, Stream},
    driven::Driven,
};

/// A connection that nobody uses is closed after this time: before kube-apiserver does it, after 90 s, perhaps just when a
/// request is on its way.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Connections that are kept for later.
const N_IDLE_MAX: usize = 32;

/// Connections of HTTP/1.1 to one server. Clones are the same.
#[derive(Clone)]
pub(super) struct Plain {
    connector: Connector,
    idle: Arc<Idle>,
}

impl Plain {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, idle: Arc::default() }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let to = request.uri().clone();
        let mut request = named(request)?;
        while let Some(mut connection) = self.idle.take() {
            match connection.send(request).await {
                Ok(answer) => return Ok(answer.map(|body| Answer::of(body).over(self.used(connection)))),
                // The server closed it just now: nothing of the request was sent.
                Err(mut closed) => match closed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(closed.into_error().into()),
                },
            }
        }
        let mut connection = Driven::over(self.connect(to).await?).await?;
        let answer = connection.send(request).await.map_err(TrySendError::into_error)?;
        Ok(answer.map(|body| Answer::of(body).over(self.used(connection))))
    }

    fn used(&self, connection: Driven) -> Used {
        Used { connection: Some(connection), idle: self.idle.clone() }
    }

    /// For a request whose connection becomes something else: it is never kept.
    pub(super) async fn upgrade(&self, request: Request<Body>) -> Result<Response<Answer>, BoxError> {
        let stream = self.connect(request.uri().clone()).await?;
        let (mut sender, connection) = http1::handshake(stream).await?;
        // It ends with what it has become.
        tokio::spawn(connection.with_upgrades());
        Ok(sender.send_request(named(request)?).await?.map(Answer::of))
    }

    async fn connect(&self, to: Uri) -> Result<Stream, BoxError> {
        self.connector.clone().ready().await?.call(to).await
    }
}

/// As requests are written that go to the server itself: the host in its header, and the path alone.
fn named(mut request: Request<Body>) -> Result<Request<Body>, BoxError> {
    let uri = request.uri();
    if !request.headers().contains_key(header::HOST) {
        let host = uri.host().ok_or("the URL of the API server names no host")?;
        let usual = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        let host = match uri.port_u16().filter(|port| *port != usual) {
            Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
            None => HeaderValue::try_from(host),
        };
        request.headers_mut().insert(header::HOST, host?);
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse()?;
    *request.uri_mut() = path;
    Ok(request)
}

/// A connection over which an answer comes; it is kept at the end of that.
pub(super) struct Used {
    /// None only while it is dropped.
    connection: Option<Driven>,
    idle: Arc<Idle>,
}

impl Used {
    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        what: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.connection.as_mut().map_or(Poll::Pending, |connection| connection.poll(context, what))
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.idle.keep(connection);
        }
    }
}

/// Connections that wait for a request, the last used last.
#[derive(Default)]
struct Idle(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    all: Vec<(Driven, Instant)>,
    /// Whether [`close_unused`] looks after them.
    is_watched: bool,
}

impl Idle {
    /// One that the server has not closed as far as is known here.
    fn take(&self) -> Option<Driven> {
        loop {
            let (mut connection, _since) = self.0.lock().all.pop()?;
            if connection.is_free() {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection, if it can be used again: its answer has come to an end, and the server has not closed it.
    fn keep(self: &Arc<Self>, mut connection: Driven) {
        // Without a runtime nothing can be read any more.
        let Ok(runtime) = Handle::try_current() else { return };
        if !connection.is_free() {
            return;
        }
        let mut waiting = self.0.lock();
        if waiting.all.len() == N_IDLE_MAX {
            return;
        }
        waiting.all.push((connection, Instant::now()));
        if !std::mem::replace(&mut waiting.is_watched, true) {
            runtime.spawn(close_unused(Arc::downgrade(self)));
        }
    }

    /// Closes those that have waited long enough; when to look again, if there are others.
    fn close_old(&self) -> Option<Instant> {
        let mut waiting = self.0.lock();
        let n_old = waiting.all.partition_point(|(_, since)| since.elapsed() >= IDLE_MAX);
        let old: Vec<_> = waiting.all.drain(..n_old).collect();
        let next = waiting.all.first().map(|(_, since)| *since + IDLE_MAX);
        waiting.is_watched = next.is_some();
        drop(waiting);
        drop(old);
        next
    }
}

/// Ends with the last idle connection: the next one that comes begins it again.
async fn close_unused(idle: Weak<Idle>) {
    while let Some(next) = idle.upgrade().and_then(|idle| idle.close_old()) {
        sleep_until(next).await;
    }
}
