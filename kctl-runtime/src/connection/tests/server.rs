//! A server over TLS that says over which connection each request came: watches stay open, all else is answered at once.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use kube::Config;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::broadcast,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};

/// A request, as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// Counted from 0.
    pub(super) connection: usize,
    pub(super) version: Version,
    pub(super) path: String,
    pub(super) agent: String,
}

pub(super) struct Server {
    url: String,
    seen: Arc<parking_lot::Mutex<Vec<Seen>>>,
    n_connections: Arc<AtomicUsize>,
    ends: broadcast::Sender<End>,
}

/// What becomes of the connections that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    /// They stay, and nothing goes over them any more.
    Silent,
}

impl Server {
    /// With so many streams on each connection at most; none of HTTP/2 if 0.
    pub(super) async fn start(n_streams: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (seen, n_connections): (Arc<parking_lot::Mutex<Vec<Seen>>>, Arc<AtomicUsize>) = Default::default();
        let (ends, _) = broadcast::channel(4);
        let (acceptor, noted, counted, told) = (tls(n_streams > 0), seen.clone(), n_connections.clone(), ends.clone());
        tokio::spawn(async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                let connection = counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, acceptor.clone(), n_streams, connection, noted.clone(), told.subscribe()));
            }
        });
        Self { url, seen, n_connections, ends }
    }

    pub(super) fn config(&self) -> Config {
        let mut config = Config::new(self.url.parse().unwrap());
        config.accept_invalid_certs = true;
        config
    }

    pub(super) fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::Relaxed)
    }

    /// What came since the last time.
    pub(super) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock())
    }

    pub(super) fn end(&self, end: End) {
        let _nobody = self.ends.send(end);
    }
}

fn tls(speaks_http2: bool) -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    if speaks_http2 {
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    }
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    n_streams: u32,
    connection: usize,
    noted: Arc<parking_lot::Mutex<Vec<Seen>>>,
    mut ends: broadcast::Receiver<End>,
) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let answer = service_fn(move |request: Request<Incoming>| {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let lasts = path.contains("watch=") || path.contains("follow=");
        let agent = request.headers().get("user-agent").map(|agent| agent.to_str().unwrap().to_owned());
        noted.lock().push(Seen { connection, version: request.version(), path, agent: agent.unwrap_or_default() });
        async move { Ok::<_, Infallible>(Response::new(body(lasts))) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(n_streams);
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), answer));
    tokio::select! {
        _ended = &mut serving => {}
        end = ends.recv() => if end == Ok(End::Silent) {
            std::future::pending::<()>().await;
        },
    }
}

fn body(lasts: bool) -> UnsyncBoxBody<Bytes, Infallible> {
    let first = futures::stream::once(async { Ok(Frame::data(Bytes::from_static(b"{}\n"))) });
    if lasts {
        StreamBody::new(first.chain(futures::stream::pending())).boxed_unsync()
    } else {
        StreamBody::new(first).boxed_unsync()
    }
}
