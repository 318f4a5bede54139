//! From a socket to the routes: the handshake, and bounds on connections.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::ServerOptions;

/// A client has this long for its half of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// After the stop, a handshake that has begun has this long: what opens connections and asks nothing (a probe of the port) holds
/// no process up.
const HANDSHAKE_AFTER_STOP: Duration = Duration::from_secs(1);
/// The next request of a connection must have begun by then. Clients in Go close theirs after 90 s.
const HEADERS_WITHIN: Duration = Duration::from_secs(120);
/// After a failed accept (too many open files) the next one waits.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn serve(
    router: Router,
    options: &ServerOptions,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    stopped: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let connections = Arc::new(Semaphore::new(options.connections_max.max(1)));
    let graceful = graceful::GracefulShutdown::new();
    let (stop, stopping) = watch::channel(());
    let accept = async {
        loop {
            let Ok(permit) = connections.clone().acquire_owned().await else { return };
            let socket = match listener.accept().await {
                Ok((socket, _peer)) => socket,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                    continue;
                }
            };
            let connection = connection(acceptor.clone(), socket, router.clone(), stopping.clone(), graceful.watcher());
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
    drop((listener, stop));
    if timeout(options.stop_within, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were cut off: they took longer than {:?} to end", options.stop_within);
    }
}

async fn connection(
    acceptor: TlsAcceptor,
    socket: TcpStream,
    router: Router,
    mut stopping: watch::Receiver<()>,
    watcher: graceful::Watcher,
) {
    let _best_effort = socket.set_nodelay(true);
    let too_late = async {
        // Nothing is ever sent: it ends where the sender is dropped.
        let _stopped = stopping.changed().await;
        tokio::time::sleep(HANDSHAKE_AFTER_STOP).await;
    };
    let stream = tokio::select! {
        stream = timeout(HANDSHAKE_WITHIN, acceptor.accept(socket)) => stream,
        () = too_late => return,
    };
    let Ok(Ok(stream)) = stream else { return };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS_WITHIN);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // A client that goes away in the middle is no event.
    let _closed = watcher.watch(connection.into_owned()).await;
}
