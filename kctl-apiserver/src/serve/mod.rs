//! The server on a loopback socket: TLS, who the client is, and a kubeconfig for it.

mod authenticate;
mod identity;
mod kubeconfig;
mod names;
mod port;
mod sec1;
mod speech;
mod websocket;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use http::{Request, Response, header};
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
use identity::Identity;
use names::Names;
use speech::{Version, speak};

/// A client has this long for its half of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// After a failed accept (too many open files) the next one waits.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// The address; loopback unless somebody insists.
    pub address: IpAddr,
    /// The port; 0 is any free one: for a server that keeps its objects, the one that it had last where that is still free.
    pub port: u16,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { address: Ipv4Addr::LOCALHOST.into(), port: 0 }
    }
}

/// A server that listens.
pub struct Listening {
    server: ApiServer,
    listener: TcpListener,
    identity: Arc<Identity>,
    address: SocketAddr,
    names: Arc<Names>,
    faults: Option<Faults>,
}

impl ApiServer {
    /// Listens. The certificate authority and the administrator are for this start only, or those of the folder that the server
    /// keeps its objects in: then kubeconfigs of earlier starts, and tokens of service accounts, are good for this one.
    ///
    /// # Errors
    /// When the address is taken, which the error says with what to do, or the certificates cannot be made or read.
    pub async fn listen(&self, options: ServeOptions) -> io::Result<Listening> {
        self.listen_as(options, &[]).await
    }

    /// Listens as [`ApiServer::listen`] does, with further DNS names and addresses in the server's certificate: those by which
    /// clients call it through a proxy, a container's network or a name of their own. The certificate always has `localhost` and the
    /// address; for `0.0.0.0` and `::` also the machine's name and all of its addresses.
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
    /// As [`ApiServer::listen`], and where one of the names can't be in a certificate.
    pub async fn listen_as(&self, options: ServeOptions, names: &[String]) -> io::Result<Listening> {
        let folder = self.folder();
        let listener = port::bind(options, folder.as_deref()).await?;
        let address = listener.local_addr()?;
        let names = Arc::new(Names::of(address.ip(), names));
        let identity = Identity::new(&names, folder.as_deref()).map_err(io::Error::other)?;
        self.state.lock().trust(&identity.authority_pem);
        Ok(Listening { server: self.clone(), listener, identity: Arc::new(identity), address, names, faults: None })
    }
}

impl Listening {
    /// All clients are under this plan of faults. The name of each is that of its program: what its `User-Agent` begins with,
    /// up to the version (`kubectl`). A reset or a crash breaks the connection, with all requests on it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use kctl_apiserver::{ApiServer, ServeOptions, faults::{Faults, RequestFault, Rule}};
    ///
    /// let faults = Faults::seeded(7);
    /// faults.add(Rule::request(RequestFault::Half, |asked| asked.client == "kubectl" && asked.verb == "list").nth(1));
    /// let listening = ApiServer::on_system_time().listen(ServeOptions::default()).await?.under(&faults);
    /// tokio::spawn(listening.serve());
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn under(mut self, faults: &Faults) -> Self {
        self.faults = Some(faults.clone());
        self
    }

    /// `https://127.0.0.1:PORT`: where clients on this machine reach the server, also one that listens on every address.
    pub fn url(&self) -> String {
        format!("https://{}", names::local(self.address))
    }

    /// A kubeconfig with the administrator's certificate, as YAML.
    pub fn kubeconfig(&self) -> String {
        self.kubeconfig_with(&[])
    }

    /// The same with a context for each of other servers, by name.
    fn kubeconfig_with(&self, others: &[(&str, &Self)]) -> String {
        let own = (kubeconfig::OWN, self);
        let servers = std::iter::once(&own).chain(others);
        let servers: Vec<_> = servers.map(|(name, server)| (*name, server.url(), &*server.identity)).collect();
        kubeconfig::text(&servers)
    }

    /// Writes the kubeconfig, readable for its owner only. A file that was not written by kctl is never replaced.
    ///
    /// # Errors
    /// When the file is somebody else's, or cannot be written.
    pub fn write_kubeconfig(&self, file: &Path) -> io::Result<()> {
        self.write_kubeconfig_with(file, &[])
    }

    /// The same with a context for each of other servers, by name: `kubectl --context NAME`.
    ///
    /// # Errors
    /// As [`Listening::write_kubeconfig`].
    pub fn write_kubeconfig_with(&self, file: &Path, others: &[(&str, &Self)]) -> io::Result<()> {
        kubeconfig::write(file, &self.kubeconfig_with(others))
    }

    /// Serves until it is dropped.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub async fn serve(self) -> io::Result<()> {
        let acceptor = TlsAcceptor::from(self.identity.tls().map_err(io::Error::other)?);
        loop {
            let socket = match self.listener.accept().await {
                Ok((socket, _peer)) => socket,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_AGAIN_AFTER).await;
                    continue;
                }
            };
            let authenticator = Authenticator::new(self.server.clone(), self.identity.clone(), self.names.clone());
            tokio::spawn(connection(acceptor.clone(), socket, authenticator, self.faults.clone()));
        }
    }
}

async fn connection(
    acceptor: TlsAcceptor,
    socket: TcpStream,
    mut authenticator: Authenticator,
    faults: Option<Faults>,
) {
    let _best_effort = socket.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(socket)).await else { return };
    let session = stream.get_ref().1;
    authenticator.peer(session.peer_certificates());
    let version = if session.alpn_protocol() == Some(b"h2") { Version::Two } else { Version::One };
    let broken = Arc::new(Notify::new());
    let breaks = broken.clone();
    let service = tower::service_fn(move |mut request: Request<hyper::body::Incoming>| {
        let opening = websocket::wanted(&mut request);
        let decided = authenticator.decide(&request);
        let client = faults.as_ref().map(|faults| faults.connection(program(&request)));
        let breaks = breaks.clone();
        async move {
            let response: Response<Body> = match (decided, client) {
                (Ok(service), None) => service.oneshot(request).await?,
                (Ok(service), Some(client)) => answered(service, client, request, &breaks).await,
                (Err(refused), _) => *refused,
            };
            Ok::<_, std::convert::Infallible>(match opening {
                Some(opening) => opening.answer(response),
                None => response,
            })
        }
    });
    let service = hyper_util::service::TowerToHyperService::new(service);
    tokio::select! {
        () = speak(stream, version, service) => {}
        () = broken.notified() => {}
    }
}

/// The answer to a client under faults. One that there is none to is never given: the connection breaks.
async fn answered(
    service: InProcess,
    client: Connection,
    request: Request<hyper::body::Incoming>,
    breaks: &Notify,
) -> Response<Body> {
    let answer = tokio::select! {
        answer = Faulty::new(service, client.clone()).oneshot(request) => answer.ok(),
        () = client.crashed() => None,
    };
    let Some(answer) = answer else {
        breaks.notify_one();
        return std::future::pending().await;
    };
    answer
}

/// The name of the program that sends a request.
fn program<B>(request: &Request<B>) -> &str {
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.split(['/', ' ']).next().unwrap_or_default()
}
