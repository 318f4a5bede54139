//! One port with TLS for all webhooks of a program: routes come in, connections and their limits are here.

pub mod body;
mod certificate;
mod connection;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::get};
use tokio::net::TcpListener;

use self::certificate::Identity;
pub use self::certificate::{Certificate, CertificateError, Pair, Served};

/// Where and how webhooks are served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The address; port 0 is any free one.
    pub address: SocketAddr,
    /// Where the certificate comes from.
    pub certificate: Certificate,
    /// How many connections there are at a time; others wait to be accepted.
    pub connections_max: usize,
    /// How long requests that run may take to end after the stop.
    pub stop_within: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            certificate: Certificate::SelfMade(vec!["localhost".into(), "127.0.0.1".into()]),
            connections_max: 512,
            // The longest timeout that a configuration can have.
            stop_within: Duration::from_secs(30),
        }
    }
}

/// Why webhooks are not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS can't be set up.
    #[error("the webhook has no TLS")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// The address is taken, or not one of this machine.
    #[error("the webhook can't listen on {address}")]
    AddressUnusable {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// The routes of a server, with the list of paths for the 404 response.
#[derive(Clone, Default)]
pub struct Routes {
    /// Without a fallback.
    pub router: Router,
    /// Each path.
    pub paths: Vec<String>,
}

impl Routes {
    /// Both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.paths.extend(other.paths);
        self
    }

    /// With `/readyz`, which tells when the server stops, and an answer to all other paths that names those that there are.
    fn whole(mut self, is_stopping: Arc<AtomicBool>) -> Router {
        self.paths.sort();
        let known = self.paths.join(", ");
        let unknown = async move || (StatusCode::NOT_FOUND, format!("no webhook here: the paths are {known}\n"));
        let ready = async move || {
            if is_stopping.load(Ordering::Relaxed) {
                (StatusCode::SERVICE_UNAVAILABLE, "stopping")
            } else {
                (StatusCode::OK, "ok")
            }
        };
        self.router.route("/readyz", get(ready)).fallback(unknown)
    }
}

/// A server that has its address, and answers once [`Server::serve`] is polled.
pub struct Server {
    router: Router,
    listener: TcpListener,
    identity: Identity,
    address: SocketAddr,
    options: ServerOptions,
    is_stopping: Arc<AtomicBool>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// The certificate or the address can't be used.
    pub async fn listen(routes: Routes, options: ServerOptions) -> Result<Self, ServerError> {
        let identity = Identity::new(&options.certificate)?;
        let unusable = |source| ServerError::AddressUnusable { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let is_stopping = Arc::<AtomicBool>::default();
        Ok(Self { router: routes.whole(is_stopping.clone()), listener, identity, address, options, is_stopping })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the authority that clients must trust, as PEM; none where they use the roots of their system, or where it
    /// changes while the server runs.
    pub fn authority(&self) -> Option<&str> {
        self.identity.authority.as_deref()
    }

    /// Returns the certificate in use, with how often it was read.
    pub fn certificate(&self) -> Arc<Served> {
        self.identity.current.clone()
    }

    /// Serves until the future ends, and then until the requests that run are answered.
    ///
    /// # Errors
    /// TLS can't be set up.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), ServerError> {
        self.serve_lingering(stopped, std::future::ready(())).await
    }

    /// Serves as [`Server::serve`], but goes on to accept after the future ended, until `linger` has ended too. `/readyz`
    /// answers 503 by then, so that who sends requests here learns of the stop before connections are refused. `linger` is
    /// polled from the stop on: a sleep, or the end of what still needs the answers.
    ///
    /// # Errors
    /// TLS can't be set up.
    pub async fn serve_lingering(
        self,
        stopped: impl Future<Output = ()>,
        linger: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        let stopped = async {
            stopped.await;
            self.is_stopping.store(true, Ordering::Relaxed);
            linger.await;
        };
        let tls = self.identity.tls()?;
        tokio::select! {
            () = connection::serve(self.router, &self.options, self.listener, tls, stopped) => Ok(()),
            () = self.identity.reload() => Ok(()),
        }
    }
}
