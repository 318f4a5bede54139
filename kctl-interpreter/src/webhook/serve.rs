//! Connections, limits and the routes: from a socket to [`respond`](super::respond) and back.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Request, Response, StatusCode, Uri, header},
    routing::{any, get},
};
use http_body_util::BodyExt;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::{
    Metrics, WebhookOptions,
    configuration::path_of,
    respond::respond,
    wire::{self, ResponseContext},
};
use crate::function::Functions;

/// A client has this long for its half of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The next request of a connection must have begun by then. Clients in Go close theirs after 90 s.
const HEADERS_WITHIN: Duration = Duration::from_secs(120);
/// After a failed accept (too many open files) the next one waits.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// A request without a timeout gets the longest that a configuration can have.
const TIMEOUT_MAX: Duration = Duration::from_secs(super::TIMEOUT_SECONDS.1 as u64);
/// What of a body that is too long is read and thrown away, so that the client gets to read why it was refused.
const REFUSED_LEN_MAX: usize = 64 << 20;

/// What all connections share.
pub(super) struct Server {
    pub(super) functions: Functions,
    pub(super) metrics: Metrics,
    options: WebhookOptions,
    requests: Semaphore,
    connections: Arc<Semaphore>,
}

impl Server {
    pub(super) fn new(functions: Functions, options: WebhookOptions) -> Self {
        let requests = Semaphore::new(options.concurrency_max.max(1));
        let connections = Arc::new(Semaphore::new(options.connections_max.max(1)));
        Self { functions, metrics: Metrics::default(), options, requests, connections }
    }

    fn router(self: &Arc<Self>) -> Router {
        let mut paths: Vec<_> = self.functions.rules().iter().map(|rule| path_of(rule.kind())).collect();
        paths.sort();
        paths.dedup();
        let known = paths.join(", ");
        let router = Router::new().route("/readyz", get(async || "ok"));
        let router = paths.iter().fold(router, |router, path| router.route(path, any(interpret)));
        let unknown = async move || (StatusCode::NOT_FOUND, format!("no interpreter here: the paths are {known}\n"));
        router.fallback(unknown).with_state(self.clone())
    }
}

pub(super) async fn serve(
    server: Arc<Server>,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    stopped: impl Future<Output = ()>,
) {
    let (acceptor, router) = (TlsAcceptor::from(tls), server.router());
    let graceful = graceful::GracefulShutdown::new();
    let accept = async {
        loop {
            let Ok(permit) = server.connections.clone().acquire_owned().await else { return };
            let socket = match listener.accept().await {
                Ok((socket, _peer)) => socket,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                    continue;
                }
            };
            let connection = connection(acceptor.clone(), socket, router.clone(), graceful.watcher());
            tokio::spawn(async move {
                connection.await;
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = stopped => {}
        () = accept => {}
    }
    drop(listener);
    if timeout(server.options.stop_within, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were cut off: they took longer than {:?} to end", server.options.stop_within);
    }
}

async fn connection(acceptor: TlsAcceptor, socket: TcpStream, router: Router, watcher: graceful::Watcher) {
    let _best_effort = socket.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE_WITHIN, acceptor.accept(socket)).await else { return };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that goes away in the middle is no event.
    let _closed = watcher.watch(connection.into_owned()).await;
}

/// Answers a request. Every failure is an answer of status 200: of any other, Karmada loses the text.
async fn interpret(State(server): State<Arc<Server>>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let within = time_of(request.uri()).unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX);
    let answered = timeout(within, async {
        if let Some(refused) = not_json(request.headers()) {
            server.metrics.refused(refused.status.code);
            return refused;
        }
        // Before the body is read: waiting requests hold no memory.
        let _permit = server.requests.acquire().await;
        match body(request.into_body(), server.options.body_len_max).await {
            Ok(body) => respond(&server.functions, &server.metrics, &body).await,
            Err(refused) => {
                server.metrics.refused(refused.status.code);
                refused
            }
        }
    });
    let response = answered.await.unwrap_or_else(|_elapsed| {
        wire::Response::failed(StatusCode::GATEWAY_TIMEOUT.as_u16(), format!("no answer within {within:?}"))
    });
    if !response.successful {
        tracing::warn!(uid = response.uid, code = response.status.code, "{}", response.status.message);
    }
    let json = serde_json::to_vec(&ResponseContext::from(response)).unwrap_or_default();
    let mut response = Response::new(Body::from(json));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The refusal of what is not JSON. A charset may stand behind it; Karmada's own server refuses one.
fn not_json(headers: &HeaderMap) -> Option<wire::Response> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = given.split(';').next().unwrap_or_default().trim();
    let text = format!("contentType={given}, expected application/json");
    let is_json = media.eq_ignore_ascii_case("application/json");
    (!is_json).then(|| wire::Response::failed(StatusCode::BAD_REQUEST.as_u16(), text))
}

async fn body(mut body: Body, len_max: usize) -> Result<Vec<u8>, wire::Response> {
    let mut read = Vec::new();
    let mut len = 0_usize;
    while let Some(frame) = body.frame().await {
        let data = match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(_trailers)) => continue,
            Err(error) => {
                let text = format!("the request can't be read: {error}");
                return Err(wire::Response::failed(StatusCode::BAD_REQUEST.as_u16(), text));
            }
        };
        len = len.saturating_add(data.len());
        match len {
            len if len <= len_max => read.extend_from_slice(&data),
            len if len > REFUSED_LEN_MAX => break,
            _ => read = Vec::new(),
        }
    }
    if len <= len_max {
        return Ok(read);
    }
    let text = format!("the request has more than {len_max} bytes: the webhook reads no larger ones");
    Err(wire::Response::failed(StatusCode::PAYLOAD_TOO_LARGE.as_u16(), text))
}

/// `?timeout=3s`, as Karmada's client writes it: whole seconds, in the form of a duration of Go.
fn time_of(uri: &Uri) -> Option<Duration> {
    let text = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("timeout="))?;
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match &rest[digits..end] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(u32::try_from(number).ok()?)?)?;
        rest = &rest[end..];
    }
    (!total.is_zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_duration_of_go_and_anything_else_is_none() {
        let cases = [
            ("/a", None),
            ("/a?timeout=3s", Some(3_000)),
            ("/a?x=1&timeout=1m30s", Some(90_000)),
            ("/a?timeout=500ms", Some(500)),
            ("/a?timeout=", None),
            ("/a?timeout=0s", None),
            ("/a?timeout=3", None),
            ("/a?timeout=3x", None),
            ("/a?timeout=-3s", None),
            ("/a?timeout=99999999999999999999s", None),
        ];
        for (uri, millis) in cases {
            assert_eq!(time_of(&uri.parse().unwrap()), millis.map(Duration::from_millis), "{uri}");
        }
    }
}
