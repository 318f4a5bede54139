//! The webhook that Karmada calls: functions behind HTTPS, a path for each kind.

mod configuration;
mod metrics;
mod respond;
mod serve;
mod wire;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

pub use kctl_webhook::server::{Certificate, CertificateError};
use kctl_webhook::server::{Routes, Server, ServerError, ServerOptions};

use self::serve::Shared;
pub use self::{
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
    /// The certificate, or the address.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// Makes the routes of functions, for a server that has others beside.
///
/// # Errors
/// The functions can't be served.
pub fn routes(rules: Vec<Rule>, metrics: &Metrics, options: &WebhookOptions) -> Result<Routes, WebhookError> {
    Ok(Shared::new(functions(rules)?, metrics, options).routes())
}

fn functions(rules: Vec<Rule>) -> Result<Functions, WebhookError> {
    if let Some(about) = rules.iter().map(Rule::about).find(|about| about.operation == Operation::Prune) {
        let (name, location, operation) = (about.name, about.location(), about.operation);
        return Err(WebhookError::NotOnTheWire { name, location, operation });
    }
    Ok(Functions::new(rules)?)
}

/// A webhook that has its address, and answers once [`Webhook::serve`] is polled.
pub struct Webhook {
    shared: Arc<Shared>,
    server: Server,
}

impl Webhook {
    /// Listens.
    ///
    /// # Errors
    /// The functions can't be served, or the certificate or the address can't be used.
    pub async fn listen(rules: Vec<Rule>, options: WebhookOptions) -> Result<Self, WebhookError> {
        let shared = Shared::new(functions(rules)?, &Metrics::default(), &options);
        let mut server = ServerOptions::default();
        server.address = options.address;
        server.certificate = options.certificate;
        server.connections_max = options.connections_max;
        server.stop_within = options.stop_within;
        let server = Server::listen(shared.routes(), server).await?;
        Ok(Self { shared, server })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the authority that clients must trust, as PEM; none where they use the roots of their system.
    pub fn authority(&self) -> Option<&str> {
        self.server.authority()
    }

    /// Returns the functions.
    pub fn functions(&self) -> &Functions {
        &self.shared.functions
    }

    /// Returns its metrics, which can be registered before it serves.
    pub fn metrics(&self) -> Metrics {
        self.shared.metrics.clone()
    }

    /// Serves until the future ends, and then until the requests that run are answered.
    ///
    /// # Errors
    /// TLS can't be set up.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), WebhookError> {
        Ok(self.server.serve(stopped).await?)
    }
}
