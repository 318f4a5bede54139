//! The server on a TCP socket: TLS, client authentication, and a kubeconfig.
//!
//! `Listening::serve` accepts a connection, waits for a permit (`enter`), and starts a task (`connection`). The task does
//! the TLS handshake, reads the client certificate, and serves HTTP. Each request is authenticated (`authenticate.rs`)
//! and goes to the same in-process service that tests call directly.

mod authenticate;
mod http_connection;
mod identity;
mod kubeconfig;
mod names;
mod port;
mod sec1;
mod websocket;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::{Method, Request, Response, header};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kctl_webhook::connections::{self, Connections, Received, loopback_if_unspecified};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::{
    ApiServer, Body, InProcess,
    faults::{Connection, Faults, Faulty},
};
use authenticate::Authenticator;
use http_connection::{HttpVersion, LIMITS, remove_body, serve_http};
use identity::Identity;
use names::CertificateNames;

/// The time for the TLS handshake of a client. A client that sends nothing holds a permit no longer than this.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The address and port to listen on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The address to listen on. The default is loopback. With `0.0.0.0` or `::` the server is open to other machines;
    /// they still need credentials.
    pub address: IpAddr,
    /// The port. 0 chooses a free one; a server that keeps its objects in a folder uses its last port if that is free.
    pub port: u16,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { address: Ipv4Addr::LOCALHOST.into(), port: 0 }
    }
}

impl ServeOptions {
    /// Listens on this address instead of on loopback, for example on `0.0.0.0` for clients in containers.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Self {
        self.address = address;
        self
    }

    /// Listens on this port. 0, the default, chooses a free one.
    ///
    /// ```
    /// use kctl_apiserver::ServeOptions;
    ///
    /// assert_eq!(ServeOptions::default().port(6443).port, 6443);
    /// ```
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }
}

/// A server that listens on a socket.
///
/// The socket is bound already, so clients may connect before `serve` is called: they wait in the backlog.
pub struct Listening {
    /// The server whose objects clients see.
    server: ApiServer,
    /// The bound socket.
    listener: TcpListener,
    /// The certificates of this start.
    identity: Arc<Identity>,
    /// The bound address, with the port that was chosen.
    address: SocketAddr,
    /// The names in the server's certificate.
    names: Arc<CertificateNames>,
    /// The plan of faults for all clients; `None` for a server without faults.
    faults: Option<Faults>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Listens on a socket. The certificate authority and the administrator's certificate are new for each start,
    /// unless the server keeps its objects in a folder. Then they come from the folder, and kubeconfigs and service
    /// account tokens from earlier starts remain valid.
    ///
    /// # Errors
    /// Fails if the address is in use (the message says what to do), or if the certificates can't be created or read.
    pub async fn listen(&self, options: ServeOptions) -> io::Result<Listening> {
        self.listen_as(options, &[]).await
    }

    /// Listens as [`ApiServer::listen`] does, with additional DNS names and IP addresses in the server's certificate.
    /// Use them if clients connect through a proxy, a container network or another DNS name. The certificate always
    /// has `localhost` and the address; for `0.0.0.0` and `::`, also the host name and all addresses of the machine.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use kctl_apiserver::{ApiServer, ServeOptions};
    ///
    /// let names = ["api.example.com".to_owned(), "192.0.2.7".to_owned()];
    /// let listening = ApiServer::on_system_time().listen_as(ServeOptions::default(), &names).await?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Fails like [`ApiServer::listen`], and if a name is not valid in a certificate.
    pub async fn listen_as(&self, options: ServeOptions, names: &[String]) -> io::Result<Listening> {
        let folder = self.folder();
        let listener = port::bind(options, folder.as_deref()).await?;
        let address = listener.local_addr()?;
        let names = Arc::new(CertificateNames::for_address(address.ip(), names));
        let identity = Identity::new(&names, folder.as_deref()).map_err(io::Error::other)?;
        self.state.lock().trust(&identity.authority_pem);
        Ok(Listening { server: self.clone(), listener, identity: Arc::new(identity), address, names, faults: None })
    }
}

impl Listening {
    /// Puts all clients under a plan of faults. The name of a client is the program in its `User-Agent`, up to the
    /// version: `kubectl`. A reset or crash closes the connection with all its requests.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use kctl_apiserver::{ApiServer, ServeOptions, faults::{Faults, RequestFault, Rule}};
    ///
    /// let faults = Faults::seeded(7);
    /// faults.add(Rule::request(RequestFault::Half, |asked| asked.client == "kubectl" && asked.verb == "list").nth(1));
    /// let listening = ApiServer::on_system_time().listen(ServeOptions::default()).await?.with_faults(&faults);
    /// tokio::spawn(listening.serve());
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn with_faults(mut self, faults: &Faults) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    /// Returns the URL for clients on this machine: `https://127.0.0.1:PORT`, even if the server listens on every
    /// address.
    pub fn url(&self) -> String {
        format!("https://{}", loopback_if_unspecified(self.address))
    }

    /// Returns a kubeconfig with the administrator's certificate, as YAML.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_with(&[])
    }

    /// Returns a kubeconfig with one more context for each other server, by name.
    fn kubeconfig_with(&self, others: &[(&str, &Self)]) -> String {
        let own = (kubeconfig::OWN, self);
        let servers = std::iter::once(&own).chain(others);
        let servers: Vec<_> = servers.map(|(name, server)| (*name, server.url(), &*server.identity)).collect();
        kubeconfig::text(&servers)
    }

    /// Writes the kubeconfig, readable only by its owner. Never replaces a file that kctl did not write.
    ///
    /// # Errors
    /// Fails if the file exists and was not written by kctl, or if it can't be written.
    pub fn write_kubeconfig(&self, file: &Path) -> io::Result<()> {
        self.write_kubeconfig_with(file, &[])
    }

    /// Writes the kubeconfig with one more context for each of the other servers: `kubectl --context NAME`.
    ///
    /// # Errors
    /// Fails like [`Listening::write_kubeconfig`].
    pub fn write_kubeconfig_with(&self, file: &Path, others: &[(&str, &Self)]) -> io::Result<()> {
        kubeconfig::write(file, &self.kubeconfig_with(others))
    }

    /// Serves requests until the future is dropped.
    ///
    /// At most 768 connections are served at a time. At that limit, the connection that has been idle longest is
    /// closed; while all of them have requests, further clients wait. As by kube-apiserver, a connection without
    /// requests is closed after 90 s, and one that has not sent the head of its first request after 32 s.
    ///
    /// # Errors
    /// Fails if TLS can't be set up.
    pub async fn serve(self) -> io::Result<()> {
        let acceptor = TlsAcceptor::from(self.identity.tls().map_err(io::Error::other)?);
        let connections = Connections::new(LIMITS);
        loop {
            let socket = connections::accept(&self.listener).await;
            let authenticator = Authenticator::new(self.server.clone(), self.identity.clone(), self.names.clone());
            let client = enter(&connections).await;
            let (acceptor, faults) = (acceptor.clone(), self.faults.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = connection(acceptor, socket, authenticator, faults, &client) => {}
                    () = client.wait_until_evicted() => {}
                }
            });
        }
    }
}

/// Takes a permit for a connection, and logs if it has to wait for one.
async fn enter(connections: &Connections) -> connections::Connection {
    let mut entered = pin!(connections.enter());
    if let Poll::Ready(client) = futures::poll!(entered.as_mut()) {
        return client;
    }
    tracing::warn!(
        connections = LIMITS.connections,
        "all connections have requests: a new client waits for one to end"
    );
    entered.await
}

/// Serves one connection: TLS handshake, authentication, then requests. Nagle's algorithm is switched off: watches send
/// small pieces, which should each arrive at once. A request whose response has no end yet, such as a watch, counts as
/// running until the end of its body. So its connection is not idle.
async fn connection(
    acceptor: TlsAcceptor,
    socket: TcpStream,
    mut authenticator: Authenticator,
    faults: Option<Faults>,
    client: &connections::Connection,
) {
    let _best_effort = socket.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(socket)).await else { return };
    let session = stream.get_ref().1;
    authenticator.peer(session.peer_certificates());
    let version = if session.alpn_protocol() == Some(b"h2") { HttpVersion::Two } else { HttpVersion::One };
    let broken = Arc::new(Notify::new());
    let breaks = broken.clone();
    let requests = client.clone();
    let service = tower::service_fn(move |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let (running, body) = requests.begin(body);
        let mut request = Request::from_parts(head, body);
        let opening = websocket::handshake(&mut request);
        let decided = authenticator.decide(&request);
        let client = faults.as_ref().map(|faults| faults.connection(program(&request)));
        let breaks = breaks.clone();
        let is_head = request.method() == Method::HEAD;
        async move {
            let mut response: Response<Body> = match (decided, client) {
                (Ok(service), None) => service.oneshot(request).await?,
                (Ok(service), Some(client)) => respond_under_faults(service, client, request, &breaks).await,
                (Err(rejected), _) => *rejected,
            };
            if is_head {
                remove_body(&mut response);
            }
            let response = response.map(|body| match body.size_hint().exact() {
                // A response of known length is complete, so its request no longer counts as running.
                Some(_) => body,
                None => running.until_end_of(body).boxed_unsync(),
            });
            Ok::<_, std::convert::Infallible>(match opening {
                Some(opening) => opening.respond(response),
                None => response,
            })
        }
    });
    let service = hyper_util::service::TowerToHyperService::new(service);
    tokio::select! {
        () = serve_http(client, stream, version, service) => {}
        () = broken.notified() => {}
    }
}

/// Returns the response to a client under faults. If a fault breaks the connection, this never returns and `breaks` is
/// notified. A crash ends all requests of the client, also those that the server has begun to handle.
async fn respond_under_faults(
    service: InProcess,
    client: Connection,
    request: Request<Received<Incoming>>,
    breaks: &Notify,
) -> Response<Body> {
    tokio::select! {
        response = Faulty::new(service, client.clone()).oneshot(request) => {
            if let Ok(response) = response {
                return response;
            }
        }
        () = client.wait_until_crashed() => {}
    }
    breaks.notify_one();
    std::future::pending().await
}

/// Returns the program in `User-Agent`, up to its version. kubectl sends `kubectl/v1.34.0 (linux/amd64) kubernetes/…`,
/// which gives `kubectl`. Without the header it is empty.
fn program<B>(request: &Request<B>) -> &str {
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default()
}
