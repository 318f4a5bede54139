//! One TLS port for all webhooks of a program.
//!
//! [`Server::listen`] binds the port and prepares the certificate; [`Server::serve`] accepts
//! connections until a future ends. The split lets a program register the address before the first
//! request arrives. HTTP/1.1 and HTTP/2 are supported.
//!
//! In addition to the routes there is `GET /readyz`: 200 while it serves, 503 once it stops. Unknown paths get a 404
//! that lists the known ones.
//!
//! | bound | value |
//! |---|---|
//! | connections | `connections_max`, 512 by default |
//! | TLS handshake | 10 s |
//! | accept to complete head of the first request | 32 s |
//! | body of a request | 30 s |
//! | response, until its client has read it | 30 s |
//! | idle connection | 120 s |
//! | running requests after the stop | `stop_within`, 30 s by default |

mod body;
mod certificate;
mod client_config;
mod connection;
mod endpoint;
mod memory;
pub(crate) mod request;
mod request_metrics;
pub(crate) mod running;
mod uid;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::get};
use tokio::net::TcpListener;

use self::certificate::Identity;
#[cfg(feature = "function")] // of the rotation
pub(crate) use self::certificate::{has_key, serving_params};
#[doc(hidden)] // shared with the other crates of kctl
pub use self::{
    body::uid_of,
    endpoint::{Endpoint, RequestLimits},
    request::RequestState,
    request_metrics::{InFlight, MetricNames, RequestMeasurement, RequestMetrics},
    running::{Description, RunningFunction, RunningFunctions},
};
pub use self::{
    certificate::{Certificate, CertificateError, Pair, Served},
    client_config::ClientConfig,
};

/// The address, the certificate and the bounds of a server.
///
/// ```
/// use std::{net::Ipv4Addr, path::Path};
/// use kctl_webhook::server::{Certificate, ServerOptions};
///
/// let mut options = ServerOptions::default();
/// options.address = (Ipv4Addr::UNSPECIFIED, 9443).into();
/// options.certificate = Certificate::in_folder(Path::new("/var/run/webhook-tls"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The address to listen on, by default `127.0.0.1` and any free port (0).
    pub address: SocketAddr,
    /// The source of the certificate, by default one that is created at the start for `localhost`.
    pub certificate: Certificate,
    /// The host names and addresses that clients use to call the server, by default none. A certificate of
    /// [`Certificate::Files`] that does not cover all of them is logged as a warning.
    pub hosts: Vec<String>,
    /// Maximum number of connections, by default 512. At the bound, the connection that has waited for its client the
    /// longest is closed. It waits for a request, for the rest of a body, or until a response is read.
    pub connections_max: usize,
    /// Time that running requests have after the stop, by default 30 seconds: the longest timeout
    /// of a webhook configuration.
    pub stop_within: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            certificate: Certificate::SelfSigned(vec!["localhost".into(), "127.0.0.1".into()]),
            hosts: Vec::new(),
            connections_max: 512,
            // The longest timeout that a configuration can have.
            stop_within: Duration::from_secs(30),
        }
    }
}

/// The reason why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The certificate can't be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS can't be set up.
    #[error("the webhook has no TLS")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The address is in use, or does not belong to this machine.
    #[error("the webhook can't listen on {address}")]
    #[non_exhaustive]
    AddressUnusable {
        /// The address and port to listen on.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The routes of a server, with the list of paths for the 404 response.
///
/// [`routes`](crate::routes) creates them from functions. An empty value is a server that answers
/// 404.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// An axum router without a fallback.
    pub router: Router,
    /// The path of each route.
    pub paths: Vec<String>,
}

impl Routes {
    /// Joins two sets of routes.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use kctl_webhook::server::Routes;
    ///
    /// let status = Routes {
    ///     router: Router::new().route("/status", get(async || "fine")),
    ///     paths: vec!["/status".into()],
    /// };
    /// let all = Routes::default().and(status);
    /// assert_eq!(all.paths, ["/status"]);
    /// ```
    ///
    /// # Panics
    /// Both have the same path; axum's `Router::merge` panics.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.paths.extend(other.paths);
        self
    }

    /// Adds `/readyz` and the 404 response.
    fn into_router(mut self, is_stopping: Arc<AtomicBool>) -> Router {
        self.paths.sort();
        let paths = self.paths.join(", ");
        let unknown = async move || (StatusCode::NOT_FOUND, format!("no webhook here: the paths are {paths}\n"));
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

/// A server that has its address, and answers once [`serve`](Self::serve) is polled.
///
/// ```
/// use kctl_webhook::server::{Routes, Server, ServerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), kctl_webhook::server::ServerError> {
/// let server = Server::listen(Routes::default(), ServerOptions::default()).await?;
/// assert!(server.address().ip().is_loopback());
/// // Put the authority into `caBundle` of a webhook configuration:
/// assert!(server.authority().is_some_and(|pem| pem.starts_with("-----BEGIN CERTIFICATE-----")));
/// assert!(server.certificate().is_set());
/// server.serve(async {}).await
/// # }
/// ```
pub struct Server {
    router: Router,
    listener: TcpListener,
    identity: Identity,
    address: SocketAddr,
    options: ServerOptions,
    is_stopping: Arc<AtomicBool>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Binds the port and loads or creates the certificate. Connections wait until
    /// [`serve`](Self::serve) is polled.
    ///
    /// # Errors
    /// The certificate or the address can't be used.
    pub async fn listen(routes: Routes, options: ServerOptions) -> Result<Self, ServerError> {
        let identity = Identity::new(&options.certificate, &options.hosts)?;
        let unusable = |source| ServerError::AddressUnusable { address: options.address, source };
        let listener = match TcpListener::bind(options.address).await {
            // The machine has no IPv6 (97 is `EAFNOSUPPORT`), and all of its addresses are IPv4.
            Err(error) if options.address.ip() == Ipv6Addr::UNSPECIFIED && error.raw_os_error() == Some(97) => {
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, options.address.port())).await
            }
            other => other,
        };
        let listener = listener.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let is_stopping = Arc::<AtomicBool>::default();
        Ok(Self { router: routes.into_router(is_stopping.clone()), listener, identity, address, options, is_stopping })
    }

    /// Returns the address, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the authority that clients have to trust, as PEM.
    ///
    /// `None` if they use the roots of their system ([`Certificate::Files`] without an authority),
    /// or if it changes while the server runs ([`Certificate::Provided`]).
    ///
    /// The file of [`Certificate::Files`] is read only at the start. After a rotation of the
    /// authority, read it again and update `caBundle` of each configuration.
    pub fn authority(&self) -> Option<&str> {
        self.identity.authority.as_deref()
    }

    /// Returns the certificate in use, with its read counters.
    pub fn certificate(&self) -> Arc<Served> {
        self.identity.current.clone()
    }

    /// Serves until `stopped` ends, and then until the running requests are answered, at most
    /// `stop_within`.
    ///
    /// # Errors
    /// TLS can't be set up.
    ///
    /// # Cancel safety
    /// Dropping the future cuts off all requests.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), ServerError> {
        self.serve_lingering(stopped, std::future::ready(())).await
    }

    /// Serves like [`serve`](Self::serve), but continues to accept after `stopped` ended, until
    /// `linger` has ended too.
    ///
    /// During that time `/readyz` answers 503, so that load balancers stop sending requests before
    /// connections are refused. `linger` is polled from the stop on: a sleep, or the end of what
    /// still needs the responses.
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
        let tls = self.identity.tls().map_err(|error| ServerError::Tls(error.into()))?;
        tokio::select! {
            () = connection::serve(self.router, &self.options, self.listener, tls, stopped) => Ok(()),
            () = self.identity.reload() => Ok(()),
        }
    }
}
