//! Small HTTP servers for health, metrics and debugging.
//!
//! They answer GET and HEAD, speak HTTP/1.1 and HTTP/2, and have bounds on connections and times, so that a
//! slow client cannot keep a kubelet out. [`Manager`](super::Manager) starts them; the functions here serve
//! metrics and probes of a program without a manager.
//!
//! | Server | Paths |
//! |---|---|
//! | health | `/healthz`, `/livez`, `/readyz`, each with `/NAME` for one check, `?verbose` and `?exclude=NAME` |
//! | metrics | `/metrics` |
//! | debug | `/debug/`, `/debug/state.json`, `/debug/slot.json`, `/debug/graph.svg` |
//!
//! Bounds of a listener: 64 connections with 8 requests each at a time, and 64 KiB for the head of a request. Sending
//! it may take 32 s, reading a page 32 s, a connection may be idle for 90 s and last an hour.

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
use kctl_webhook::connections::{Connection, Connections, Limits, Pieces, accept};
use kube::Client;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{health::Check, metrics::Metrics};

#[doc(hidden)] // `kctl` alone checks an address before it binds it
pub use address::check_address;
pub use address::{BindError, bind};
pub(crate) use guard::Guard;
pub(crate) use pages::{health, metrics};
pub(crate) use tls::Tls;
pub use tls::{Certificate, TlsError};

/// Bounds of each listener. At the bound on connections the one that has waited longest for its client is
/// closed. The times come from controller-runtime, `internal/httpserver`.
const LIMITS: Limits = Limits {
    connections: 64,
    head_within: Duration::from_secs(32),
    // No page reads a body: it is the time to read a page.
    body_within: Duration::from_secs(32),
    idle_max: Duration::from_secs(90),
};
/// Longest head of a request, in bytes.
const HEAD_LEN_MAX: u32 = 64 << 10;
/// Maximum number of requests of an HTTP/2 connection at a time. Each may have a page in memory that its client does not
/// read.
const STREAMS_MAX: u32 = 8;
/// Longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the API server to authenticate and authorize a reader of metrics.
const AUTHORIZE_TIMEOUT: Duration = Duration::from_secs(30);
/// Lifetime of a connection; scrapers and kubelets open a new one.
const CONNECTION_MAX: Duration = Duration::from_secs(3_600);

/// Answers `/metrics` over plain HTTP, to every client that can reach the listener. Never returns.
///
/// ```no_run
/// # async fn serve() -> Result<(), kctl_runtime::manager::serve::BindError> {
/// use kctl_runtime::manager::{metrics::Metrics, serve};
///
/// let metrics = Metrics::default();
/// if let Some(listener) = serve::bind("--metrics-bind-address", "127.0.0.1:8080").await? {
///     tokio::spawn(serve::serve_metrics(listener, metrics.clone()));
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// Dropping the future closes the listener and all connections.
pub async fn serve_metrics(listener: TcpListener, registered: Metrics) {
    Server::open(metrics(registered)).serve(listener).await;
}

/// Answers `/healthz`, `/livez` and `/readyz` over plain HTTP, for a program without a manager. Never returns.
///
/// The program is ready if `is_ready` returns `Ok`, as for [`Manager::ready_when`](super::Manager::ready_when). It is alive
/// as long as the future is polled.
///
/// # Cancel safety
/// Dropping the future closes the listener and all connections.
#[doc(hidden)] // `kctl` alone serves webhooks without a manager
pub async fn serve_probes(
    listener: TcpListener,
    name: &'static str,
    is_ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
) {
    let ping = || Check { name: "ping".into(), result: Ok(String::new()) };
    let ready = move || vec![Check { name: name.into(), result: is_ready() }, ping()];
    Server::open(pages::probes(move || vec![ping()], ready)).serve(listener).await;
}

/// Serves `/metrics` over TLS to authorized clients, for a program without a manager.
///
/// [`Manager::serve_metrics_securely`](super::Manager::serve_metrics_securely) describes the authorization.
/// Poll the returned future next to your program; it also reloads the certificate.
///
/// # Errors
/// [`TlsError`] if the certificate cannot be read or created.
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

pub(crate) type Page = Response<String>;

/// Answers requests without bodies.
pub(crate) type Pages = Arc<dyn Fn(&Request<()>) -> Page + Send + Sync>;

/// Returns a page of plain text that is not cached.
pub(crate) fn text(status: StatusCode, body: impl Into<String>) -> Page {
    let mut page = Response::new(body.into());
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    page
}

/// The pages of one listener, with its authorization and TLS.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) pages: Pages,
    /// `None` admits every client.
    pub(crate) guard: Option<Arc<Guard>>,
    /// `None` speaks plain HTTP.
    pub(crate) tls: Option<TlsAcceptor>,
}

impl Server {
    /// Returns a server that admits every client over plain HTTP.
    pub(crate) fn open(pages: Pages) -> Self {
        Self { pages, guard: None, tls: None }
    }

    /// Accepts connections until the future is dropped.
    ///
    /// At the bound of 64 connections a new one takes the place of the one that has waited longest for its client. So a
    /// flood of idle connections does not lock out a kubelet.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let connections = Connections::new(LIMITS);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let socket = accept(&listener).await;
            let connection = connections.enter().await;
            let serve = self.clone().connection(socket, connection.clone());
            tasks.spawn(async move {
                let _over = timeout(CONNECTION_MAX, connection.limit(serve)).await;
            });
        }
    }

    /// Performs the TLS handshake, if there is TLS, and serves the connection.
    async fn connection(self, socket: TcpStream, connection: Connection) {
        let Some(tls) = self.tls.clone() else { return self.serve_http(socket, connection).await };
        if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, tls.accept(socket)).await {
            self.serve_http(stream, connection).await;
        }
    }

    /// Speaks HTTP/1.1 or HTTP/2 on a connection, without reading bodies.
    async fn serve_http(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, connection: Connection) {
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let server = self.clone();
            // The body is not read, so the connection counts as waiting for the response at once.
            let (running, _body) = connection.begin(http_body_util::Empty::<&[u8]>::new());
            async move {
                let is_head = request.method() == Method::HEAD;
                let mut page = server.respond(&request.map(|_body| ())).await;
                if is_head {
                    remove_body(&mut page);
                }
                Ok::<_, Infallible>(page.map(|body| running.until_sent(Pieces::new(body))))
            }
        });
        let mut server = auto::Builder::new(TokioExecutor::new());
        server
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(LIMITS.idle_max)
            .max_buf_size(HEAD_LEN_MAX as usize);
        server.http2().max_concurrent_streams(STREAMS_MAX).max_header_list_size(HEAD_LEN_MAX);
        // A client that closes the connection early needs no log line.
        let _closed = server.serve_connection(TokioIo::new(stream), service).await;
    }

    /// Checks the request with the guard, if there is one, and returns the page.
    async fn respond(&self, request: &Request<()>) -> Page {
        match &self.guard {
            Some(guard) => match timeout(AUTHORIZE_TIMEOUT, guard.admit(request)).await {
                Ok(Ok(())) => respond(&self.pages, request),
                Ok(Err(rejected)) => rejected,
                Err(_elapsed) => {
                    let text = format!("the API server did not answer within {AUTHORIZE_TIMEOUT:?}; ask again\n");
                    self::text(StatusCode::GATEWAY_TIMEOUT, text)
                }
            },
            None => respond(&self.pages, request),
        }
    }
}

/// Removes the body of the response to a HEAD request, and keeps its length in the header. hyper does so for HTTP/1.1
/// only. Over HTTP/2 a body is an error for the client.
fn remove_body(page: &mut Page) {
    let body = std::mem::take(page.body_mut());
    page.headers_mut().insert(header::CONTENT_LENGTH, body.len().into());
}

fn respond(pages: &Pages, request: &Request<()>) -> Page {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut page = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n");
        page.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        return page;
    }
    pages(request)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Returns the value of a setting that the server announces to an HTTP/2 client.
    async fn setting(id: u16) -> Option<u32> {
        let (mut client, served) = tokio::io::duplex(1 << 16);
        let connection = Connections::new(LIMITS).enter().await;
        let server = Server::open(Arc::new(|_request| text(StatusCode::OK, "ok")));
        let serving = tokio::spawn(server.serve_http(served, connection));
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        // The head of a frame: three bytes of length, its type, flags and the stream.
        let mut head = [0; 9];
        client.read_exact(&mut head).await.unwrap();
        assert_eq!(head[3], 4, "the first frame has the settings");
        let mut settings = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        client.read_exact(&mut settings).await.unwrap();
        serving.abort();
        let found = settings.chunks_exact(6).find(|pair| pair[..2] == id.to_be_bytes())?;
        Some(found[2..].iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    #[tokio::test(start_paused = true)]
    async fn head_over_http2_has_length_without_body() {
        let (client, served) = tokio::io::duplex(1 << 16);
        let connection = Connections::new(LIMITS).enter().await;
        let server = Server::open(Arc::new(|_request| text(StatusCode::OK, "page")));
        tokio::spawn(server.serve_http(served, connection));
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(client));
        let (mut sender, driver) = handshake.await.unwrap();
        tokio::spawn(driver);
        let request = Request::head("http://localhost/metrics").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_LENGTH], "4");
        assert!(response.into_body().collect().await.unwrap().to_bytes().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn http2_clients_get_few_streams_and_bounded_heads() {
        let (concurrent_streams, header_list) = (3, 6);
        assert_eq!(setting(concurrent_streams).await, Some(STREAMS_MAX));
        assert_eq!(setting(header_list).await, Some(64 << 10));
    }
}
