//! Serves sockets: TLS handshake, HTTP, and the bounds on connections.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::Router;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tower::ServiceExt as _;

use super::{ServerOptions, body::TIMEOUT_MAX};
use crate::connections::{Connection, Connections, Limits, accept};

/// Time that a client has for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a handshake in progress has after the stop. A port probe that opens connections and sends nothing must not
/// delay the end of the process.
const HANDSHAKE_TIMEOUT_AFTER_STOP: Duration = Duration::from_secs(1);
/// Time from the accept to the complete head of the first request (controller-runtime,
/// `ReadHeaderTimeout` in `pkg/internal/httpserver/server.go`).
const HEAD_TIMEOUT: Duration = Duration::from_secs(32);
/// Longest idle time of a connection. Go's clients close theirs after 90 s (`IdleConnTimeout` of `DefaultTransport` in
/// `net/http/transport.go`), so the client closes first.
const IDLE_MAX: Duration = Duration::from_secs(120);

pub(super) async fn serve(
    router: Router,
    options: &ServerOptions,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    stopped: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let connections = Connections::new(Limits {
        connections: options.connections_max,
        head_within: HEAD_TIMEOUT,
        // API servers wait for a response no longer than this.
        body_within: TIMEOUT_MAX,
        idle_max: IDLE_MAX,
    });
    let graceful = graceful::GracefulShutdown::new();
    let (stop, stopping) = watch::channel(());
    let accepting = async {
        loop {
            let socket = accept(&listener).await;
            let connection = connections.enter().await;
            let serving = serve_http(
                acceptor.clone(),
                socket,
                router.clone(),
                connection.clone(),
                stopping.clone(),
                graceful.watcher(),
            );
            tokio::spawn(async move { connection.limit(serving).await });
        }
    };
    tokio::select! {
        () = stopped => {}
        () = accepting => {}
    }
    drop((listener, stop));
    if timeout(options.stop_within, graceful.shutdown()).await.is_err() {
        tracing::warn!("cut off requests that did not end within {:?}", options.stop_within);
    }
}

async fn serve_http(
    acceptor: TlsAcceptor,
    socket: TcpStream,
    router: Router,
    connection: Connection,
    mut stopping: watch::Receiver<()>,
    watcher: graceful::Watcher,
) {
    let _best_effort = socket.set_nodelay(true);
    let too_late = async {
        // No value is ever sent: this returns once the sender is dropped.
        let _stopped = stopping.changed().await;
        tokio::time::sleep(HANDSHAKE_TIMEOUT_AFTER_STOP).await;
    };
    let stream = tokio::select! {
        stream = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(socket)) => stream,
        () = too_late => return,
    };
    let Ok(Ok(stream)) = stream else { return };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_MAX);
    let service = service_fn(move |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let (running, body) = connection.begin(body);
        let response = router.clone().oneshot(Request::from_parts(head, body));
        async move {
            let response = response.await?;
            Ok::<_, Infallible>(response.map(|body| running.until_sent(body)))
        }
    });
    let served = builder.serve_connection(TokioIo::new(stream), service);
    // A client that closes the connection early is not an error.
    let _closed = watcher.watch(served.into_owned()).await;
}
