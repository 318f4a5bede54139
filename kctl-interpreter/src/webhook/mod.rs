//! The webhook that Karmada calls: functions behind HTTPS, a path for each kind.

mod certificate;
mod configuration;
mod metrics;
mod respond;
mod serve;
mod wire;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::net::TcpListener;

use self::{certificate::Identity, serve::Server};
pub use self::{
    certificate::{Certificate, CertificateError},
    configuration::{ClientConfig, Configuration, ConfigurationInvalid, TIMEOUT_SECONDS, validate},
    metrics::Metrics,
    wire::API_VERSION,
};
use crate::{
    function::{FunctionTwice, Functions, Rule},
    operation::Operation,
};

/// How and where the webhook is served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The address; port 0 is any free one.
    pub address: SocketAddr,
    /// Where the certificate comes from.
    pub certificate: Certificate,
    /// The longest body, in bytes. A longer one is refused in words; Karmada's own server cuts it at 1 MiB.
    pub body_len_max: usize,
    /// How many requests are answered at a time; others wait.
    pub concurrency_max: usize,
    /// How many connections there are at a time; others wait to be accepted.
    pub connections_max: usize,
    /// How long requests that run may take to end after the stop.
    pub stop_within: Duration,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            certificate: Certificate::SelfMade(vec!["localhost".into(), "127.0.0.1".into()]),
            // Two objects of the size that etcd takes (1.5 MiB), and statuses of many clusters.
            body_len_max: 8 << 20,
            concurrency_max: 64,
            connections_max: 512,
            // The longest timeout that a configuration can have.
            stop_within: Duration::from_secs(30),
        }
    }
}

/// Why the webhook does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// Two functions are for the same.
    #[error(transparent)]
    Twice(#[from] FunctionTwice),
    /// A function is for what no webhook is asked for.
    #[error(
        "`{name}` ({location}) can't be served: Karmada asks no webhook for {operation}, and refuses a configuration that \
         names it; use the function in process, as a layer of the chain"
    )]
    NotOnTheWire {
        /// The function.
        name: &'static str,
        /// Where it stands.
        location: String,
        /// What it is for.
        operation: Operation,
    },
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

/// A webhook that has its address, and answers once [`Webhook::serve`] is polled.
pub struct Webhook {
    server: Arc<Server>,
    listener: TcpListener,
    identity: Identity,
    address: SocketAddr,
}

impl Webhook {
    /// Listens.
    ///
    /// # Errors
    /// The functions can't be served, or the certificate or the address can't be used.
    pub async fn listen(rules: Vec<Rule>, options: WebhookOptions) -> Result<Self, WebhookError> {
        if let Some(about) = rules.iter().map(Rule::about).find(|about| about.operation == Operation::Prune) {
            let (name, location, operation) = (about.name, about.location(), about.operation);
            return Err(WebhookError::NotOnTheWire { name, location, operation });
        }
        let functions = Functions::new(rules)?;
        let identity = Identity::new(&options.certificate)?;
        let unusable = |source| WebhookError::AddressUnusable { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        Ok(Self { server: Arc::new(Server::new(functions, options)), listener, identity, address })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the authority that clients must trust, as PEM; none where they use the roots of their system.
    pub fn authority(&self) -> Option<&str> {
        self.identity.authority.as_deref()
    }

    /// Returns the functions.
    pub fn functions(&self) -> &Functions {
        &self.server.functions
    }

    /// Returns its metrics, which can be registered before it serves.
    pub fn metrics(&self) -> Metrics {
        self.server.metrics.clone()
    }

    /// Serves until the future ends, and then until the requests that run are answered.
    ///
    /// # Errors
    /// TLS can't be set up.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), WebhookError> {
        let tls = self.identity.tls()?;
        tokio::select! {
            () = serve::serve(self.server, self.listener, tls, stopped) => Ok(()),
            () = self.identity.reload() => Ok(()),
        }
    }
}
