//! Small HTTP servers beside the loop: health and metrics. Each answers GET alone, from what it can see of the manager.

mod address;
mod guard;
mod pages;
mod tls;

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use kctl_webhook::connections::{Connection, Connections, Limits};
use kube::Client;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::metrics::Metrics;

pub use address::{BindError, bind, check_address};
pub(crate) use guard::Guard;
pub(crate) use pages::{health, metrics};
pub(crate) use tls::Tls;
pub use tls::{Certificate, TlsError};

/// The bounds of each listener. At the bound on connections the one that has waited for its client for longest is closed, so that
/// clients that say nothing keep no kubelet out. The times are those of controller-runtime, `internal/httpserver`.
const LIMITS: Limits = Limits {
    connections: 64,
    head_within: Duration::from_secs(32),
    // Nothing here reads a body.
    body_within: Duration::from_secs(32),
    idle_max: Duration::from_secs(90),
};
/// Longest head of a request.
const HEAD_LEN_MAX: usize = 64 << 10;
/// A client has this long for its half of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The API server has this long to say who a reader of metrics is, and what they may read.
const ADMIT_WITHIN: Duration = Duration::from_secs(30);
/// A connection ends after this time; scrapers and kubelets open a new one.
const CONNECTION_MAX: Duration = Duration::from_secs(3_600);
/// After a failed accept (too many open files) the next one waits.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Answers `/metrics` to everybody who can reach the listener, for a program without a manager.
pub async fn serve_metrics(listener: TcpListener, registered: Metrics) {
    Server::open(metrics(registered)).serve(listener).await;
}

/// Serves `/metrics` like [`Manager::serve_metrics_securely`](super::Manager::serve_metrics_securely), for a program without a manager.
///
/// # Errors
/// There is no usable certificate.
pub fn serve_metrics_securely(
    listener: TcpListener,
    registered: Metrics,
    certificate: Certificate,
    client: Client,
) -> Result<impl Future<Output = ()> + Send, TlsError> {
    let tls = Tls::new(certificate)?;
    tls.count_in(&registered);
    let (guard, acceptor) = (Some(Arc::new(Guard::new(client))), Some(tls.acceptor.clone()));
    let server = Server { pages: metrics(registered), guard, tls: acceptor };
    Ok(async move {
        tokio::join!(tls.refresh(), server.serve(listener));
    })
}

/// An answer.
pub(crate) type Page = Response<String>;

/// Answers requests without bodies.
pub(crate) type Pages = Arc<dyn Fn(&Request<()>) -> Page + Send + Sync>;

/// A page of plain text.
pub(crate) fn text(status: StatusCode, body: impl Into<String>) -> Page {
    let mut page = Response::new(body.into());
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    page
}

/// What is served on one listener, and to whom.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) pages: Pages,
    /// Without it, everybody is admitted.
    pub(crate) guard: Option<Arc<Guard>>,
    /// Without it, plain HTTP.
    pub(crate) tls: Option<TlsAcceptor>,
}

impl Server {
    /// Pages for everybody, by plain HTTP.
    pub(crate) fn open(pages: Pages) -> Self {
        Self { pages, guard: None, tls: None }
    }

    /// Serves until it is dropped.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let connections = Connections::new(LIMITS);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let socket = match listener.accept().await {
                Ok((socket, _peer)) => socket,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                    continue;
                }
            };
            let connection = connections.enter().await;
            let serve = self.clone().connection(socket, connection.clone());
            tasks.spawn(async move {
                let _over = timeout(CONNECTION_MAX, connection.limit(serve)).await;
            });
        }
    }

    async fn connection(self, socket: TcpStream, connection: Connection) {
        let Some(tls) = self.tls.clone() else { return self.speak(socket, connection).await };
        if let Ok(Ok(stream)) = timeout(HANDSHAKE_WITHIN, tls.accept(socket)).await {
            self.speak(stream, connection).await;
        }
    }

    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, connection: Connection) {
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let server = self.clone();
            // A body is not read: the client may go on to the answer.
            let (running, _body) = connection.begin(http_body_util::Empty::<&[u8]>::new());
            async move {
                let page = server.answer(&request.map(|_body| ())).await;
                drop(running);
                Ok::<_, Infallible>(page)
            }
        });
        let mut server = auto::Builder::new(TokioExecutor::new());
        server.http1().timer(TokioTimer::new()).header_read_timeout(LIMITS.idle_max).max_buf_size(HEAD_LEN_MAX);
        // A client that goes away in the middle is no event.
        let _closed = server.serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, request: &Request<()>) -> Page {
        match &self.guard {
            Some(guard) => match timeout(ADMIT_WITHIN, guard.admit(request)).await {
                Ok(Ok(())) => answer(&self.pages, request),
                Ok(Err(refused)) => refused,
                Err(_elapsed) => {
                    let text = format!("the API server did not answer within {ADMIT_WITHIN:?}; ask again\n");
                    self::text(StatusCode::GATEWAY_TIMEOUT, text)
                }
            },
            None => answer(&self.pages, request),
        }
    }
}

fn answer(pages: &Pages, request: &Request<()>) -> Page {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut page = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n");
        page.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        return page;
    }
    pages(request)
}
