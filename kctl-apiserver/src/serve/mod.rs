//! The server on a loopback socket: TLS, who the client is, and a kubeconfig for it.

mod authenticate;
mod identity;
mod kubeconfig;

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use http::{Request, Response};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::{ApiServer, Body};
use authenticate::Authenticator;
use identity::Identity;

/// A client has this long for its half of the TLS handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// After a failed accept (too many open files) the next one waits.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
    /// The address; loopback unless somebody insists.
    pub address: IpAddr,
    /// The port; 0 is any free one.
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
}

impl ApiServer {
    /// Listens, with a certificate authority of its own that is valid for this start only.
    ///
    /// # Errors
    /// When the address is taken, or the certificates cannot be made.
    pub async fn listen(&self, options: ServeOptions) -> io::Result<Listening> {
        let listener = TcpListener::bind((options.address, options.port)).await?;
        let address = listener.local_addr()?;
        let identity = Identity::new(address.ip()).map_err(io::Error::other)?;
        Ok(Listening { server: self.clone(), listener, identity: Arc::new(identity), address })
    }
}

impl Listening {
    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
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
            let authenticator = Authenticator::new(self.server.clone(), self.identity.clone(), self.address);
            tokio::spawn(connection(acceptor.clone(), socket, authenticator));
        }
    }
}

async fn connection(acceptor: TlsAcceptor, socket: TcpStream, mut authenticator: Authenticator) {
    let _best_effort = socket.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_WITHIN, acceptor.accept(socket)).await else { return };
    authenticator.peer(stream.get_ref().1.peer_certificates());
    let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
        let decided = authenticator.decide(&request);
        async move {
            let response: Response<Body> = match decided {
                Ok(service) => service.oneshot(request).await?,
                Err(refused) => *refused,
            };
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let service = hyper_util::service::TowerToHyperService::new(service);
    // A client that goes away in the middle is no event.
    let _closed = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
