//! A TLS server that records the connection of each request. Watches remain open; other requests are answered at once.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response, StatusCode, Version};
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
    rustls::{
        self, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
        client::danger::HandshakeSignatureValid,
        pki_types::{CertificateDer, PrivateKeyDer, UnixTime},
        server::danger::{ClientCertVerified, ClientCertVerifier},
    },
};

/// A request, as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenRequest {
    /// Number of the connection, from 0.
    pub(super) connection: usize,
    pub(super) version: Version,
    pub(super) path: String,
    pub(super) agent: String,
    /// The bearer token, or else the name in the client certificate of the connection.
    pub(super) who: String,
}

pub(super) struct TestServer {
    url: String,
    seen: Arc<parking_lot::Mutex<Vec<SeenRequest>>>,
    n_connections: Arc<AtomicUsize>,
    ends: broadcast::Sender<End>,
    /// The only client that gets a response; empty for all.
    accepted: Arc<parking_lot::Mutex<String>>,
}

/// The fate of the open connections.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    /// They remain open, but no more bytes arrive.
    Silent,
}

impl TestServer {
    /// Starts a server with at most `n_streams` HTTP/2 streams per connection, or without HTTP/2 if it is 0.
    pub(super) async fn start(n_streams: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (seen, n_connections): (Arc<parking_lot::Mutex<Vec<SeenRequest>>>, Arc<AtomicUsize>) = Default::default();
        let accepted = Arc::<parking_lot::Mutex<String>>::default();
        let (ends, _) = broadcast::channel(4);
        let protocols: &[&[u8]] = if n_streams > 0 { &[b"h2", b"http/1.1"] } else { &[] };
        let (acceptor, counted, end_sender) = (tls(protocols), n_connections.clone(), ends.clone());
        let notes = Notes { seen: seen.clone(), accepted: accepted.clone() };
        tokio::spawn(async move {
            while let Ok((stream, _peer)) = listener.accept().await {
                let connection = counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(
                    stream,
                    acceptor.clone(),
                    n_streams,
                    connection,
                    notes.clone(),
                    end_sender.subscribe(),
                ));
            }
        });
        Self { url, seen, n_connections, ends, accepted }
    }

    pub(super) fn config(&self) -> Config {
        let mut config = Config::new(self.url.parse().unwrap());
        config.accept_invalid_certs = true;
        config
    }

    pub(super) fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::Relaxed)
    }

    /// Rejects all clients but this one with 401 from now on.
    pub(super) fn accept(&self, who: &str) {
        *self.accepted.lock() = who.into();
    }

    /// Returns the requests since the last call.
    pub(super) fn take(&self) -> Vec<SeenRequest> {
        std::mem::take(&mut self.seen.lock())
    }

    pub(super) fn end(&self, end: End) {
        let _nobody = self.ends.send(end);
    }
}

/// Returns an acceptor that offers these protocols by ALPN.
fn tls(protocols: &[&[u8]]) -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_client_cert_verifier(Arc::new(AnyClientCertificate));
    let mut config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

#[derive(Clone)]
struct Notes {
    seen: Arc<parking_lot::Mutex<Vec<SeenRequest>>>,
    accepted: Arc<parking_lot::Mutex<String>>,
}

/// A verifier that accepts every client certificate, and clients without one.
#[derive(Debug)]
struct AnyClientCertificate;

impl ClientCertVerifier for AnyClientCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Returns the string `client-…` in a certificate, if there is one.
fn name_in(certificate: &[u8]) -> Option<String> {
    let at = certificate.windows(7).position(|window| window == b"client-")?;
    let name = certificate[at..].iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-');
    Some(name.map(|byte| char::from(*byte)).collect())
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    n_streams: u32,
    connection: usize,
    notes: Notes,
    mut ends: broadcast::Receiver<End>,
) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let certificate_name = stream.get_ref().1.peer_certificates().and_then(|chain| name_in(&chain[0]));
    let service = service_fn(move |request: Request<Incoming>| {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let is_streaming = path.contains("watch=") || path.contains("follow=");
        let agent = request.headers().get("user-agent").map(|agent| agent.to_str().unwrap().to_owned());
        let token = request.headers().get("authorization").map(|token| token.to_str().unwrap().to_owned());
        let who = token.or_else(|| certificate_name.clone()).unwrap_or_default();
        let is_rejected = ![String::new(), who.clone()].contains(&notes.accepted.lock());
        let (version, agent) = (request.version(), agent.unwrap_or_default());
        notes.seen.lock().push(SeenRequest { connection, version, path, agent, who });
        let mut response = Response::new(if is_streaming && !is_rejected { open_body() } else { body() });
        if is_rejected {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
        }
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(n_streams);
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ended = &mut serving => {}
        end = ends.recv() => if end == Ok(End::Silent) {
            std::future::pending::<()>().await;
        },
    }
}

/// Returns the body of an answer: one line.
fn body() -> UnsyncBoxBody<Bytes, Infallible> {
    StreamBody::new(line()).boxed_unsync()
}

/// Returns the body of a watch or of followed logs: one line, and no end.
fn open_body() -> UnsyncBoxBody<Bytes, Infallible> {
    StreamBody::new(line().chain(futures::stream::pending())).boxed_unsync()
}

fn line() -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send + 'static {
    futures::stream::once(async { Ok(Frame::data(Bytes::from_static(b"{}\n"))) })
}
