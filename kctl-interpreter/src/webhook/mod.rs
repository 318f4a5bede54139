//! The webhook that Karmada calls: an HTTPS server for interpreter functions, with one path per kind.
//!
//! Programs usually start it with `App::interpreter` of the crate `kctl`. Use [`Webhook`] for a server without an app, and
//! [`routes`] to add the paths to a server that has other webhooks.

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

pub use kctl_webhook::server::{Certificate, CertificateError, ClientConfig};
use kctl_webhook::server::{Routes, Server, ServerError, ServerOptions};

use self::serve::Shared;
pub use self::{
    configuration::{Configuration, ConfigurationError, TIMEOUT_SECONDS, validate},
    metrics::Metrics,
    wire::API_VERSION,
};
use crate::{
    function::{DuplicateFunctionError, Functions, Rule},
    operation::Operation,
};

/// Options of a [`Webhook`]: address, certificate and bounds.
///
/// ```
/// use kctl_interpreter::webhook::WebhookOptions;
///
/// let mut options = WebhookOptions::default();
/// assert_eq!((options.body_len_max, options.concurrency_max, options.connections_max), (8 << 20, 64, 512));
/// options.address = ([0, 0, 0, 0], 9443).into();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// The address to listen on; `127.0.0.1` and a free port by default.
    pub address: SocketAddr,
    /// The source of the TLS certificate; a self-signed one for `localhost` by default.
    pub certificate: Certificate,
    /// The longest request body, in bytes; 8 MiB by default. A longer one gets code 413 with the uid of the request.
    pub body_len_max: usize,
    /// The maximum number of functions that run at a time, and of further requests whose bodies are being read; 64 by
    /// default. Beyond that, the oldest incomplete request is rejected with code 408. If all are complete, the new one
    /// waits.
    pub concurrency_max: usize,
    /// The maximum number of open connections; 512 by default. At the bound, the connection that has waited for its
    /// client the longest is closed. A new one waits only while all others have requests to answer.
    pub connections_max: usize,
    /// Time for running requests to end after the stop; 30 s by default, the longest timeout of a configuration.
    pub stop_within: Duration,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            certificate: Certificate::SelfSigned(vec!["localhost".into(), "127.0.0.1".into()]),
            // Room for two objects of etcd's maximum size (1.5 MiB), and for the statuses of many clusters.
            body_len_max: 8 << 20,
            concurrency_max: 64,
            connections_max: 512,
            // The longest timeout that a configuration can have.
            stop_within: Duration::from_secs(30),
        }
    }
}

/// The error of starting or serving a [`Webhook`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// Two functions are for the same operation on the same kind: remove one.
    #[error(transparent)]
    Twice(#[from] DuplicateFunctionError),
    /// A function is for `Prune`, which Karmada sends to no webhook. Use it in process instead, as
    /// a layer of a chain.
    #[error(
        "`{name}` ({location}) can't be served: Karmada asks no webhook for {operation}, and rejects a configuration that \
         names it; use the function in process, as a layer of the chain"
    )]
    #[non_exhaustive]
    NotOnTheWire {
        /// The name of the function.
        name: &'static str,
        /// `file:line` of the function.
        location: String,
        /// The operation of the function.
        operation: Operation,
    },
    /// The certificate or the address can't be used.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// Creates the routes of functions, for a server that has other webhooks too.
///
/// Mount [`Routes::router`] in an axum router. Only `body_len_max` and `concurrency_max` of the
/// options matter here; the rest is for the server.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kctl_interpreter::function::{FunctionInfo, IntoHealth, Rule};
/// use kctl_interpreter::operation::Operation;
/// use kctl_interpreter::webhook::{Metrics, WebhookOptions, routes};
///
/// let about = FunctionInfo::new(Operation::InterpretHealth, "is_healthy", file!(), line!());
/// let rule = Rule::read(about, |_: Deployment| async { true.into_result() });
/// let routes = routes(vec![rule], &Metrics::default(), &WebhookOptions::default())?;
/// assert_eq!(routes.paths, ["/interpreter-deployment"]);
/// # Ok::<_, kctl_interpreter::webhook::WebhookError>(())
/// ```
///
/// # Errors
/// [`WebhookError::NotOnTheWire`] and [`WebhookError::Twice`]: the functions can't be served.
pub fn routes(rules: Vec<Rule>, metrics: &Metrics, options: &WebhookOptions) -> Result<Routes, WebhookError> {
    Ok(Shared::new(functions(rules)?, metrics, options).routes())
}

/// Returns the table of rules, which must all be for operations that Karmada sends to webhooks.
fn functions(rules: Vec<Rule>) -> Result<Functions, WebhookError> {
    if let Some(about) = rules.iter().map(Rule::function_info).find(|about| !about.operation.has_webhook()) {
        let (name, location, operation) = (about.name, about.location(), about.operation);
        return Err(WebhookError::NotOnTheWire { name, location, operation });
    }
    Ok(Functions::new(rules)?)
}

/// A webhook server that has bound its address. It answers requests while [`Webhook::serve`] is
/// polled.
///
/// The split lets a program register the address, as a [`Configuration`], before the first request
/// arrives.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kctl_interpreter::function::{FunctionInfo, IntoHealth, Rule};
/// use kctl_interpreter::operation::Operation;
/// use kctl_interpreter::webhook::{ClientConfig, Configuration, Webhook, WebhookOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let about = FunctionInfo::new(Operation::InterpretHealth, "is_healthy", file!(), line!());
/// let rules = vec![Rule::read(about, |_: Deployment| async { true.into_result() })];
/// let webhook = Webhook::listen(rules, WebhookOptions::default()).await?;
/// let configuration = Configuration {
///     name: "workloads",
///     client: ClientConfig::Url(format!("https://{}", webhook.address())),
///     authority: webhook.authority(),
///     timeout_seconds: 5,
/// };
/// let object = configuration.object(webhook.functions().rules())?;
/// assert!(object["webhooks"][0]["clientConfig"]["caBundle"].is_string());
/// // In a program: until the process gets a signal to stop.
/// webhook.serve(std::future::ready(())).await?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct Webhook {
    /// The state of requests.
    shared: Arc<Shared>,
    server: Server,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Binds the address and prepares the certificate. Connections wait in the backlog until
    /// [`Webhook::serve`] is polled.
    ///
    /// # Errors
    /// [`WebhookError::NotOnTheWire`] and [`WebhookError::Twice`] if the functions can't be served,
    /// and [`WebhookError::Server`] if the certificate or the address can't be used.
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

    /// Returns the bound address, with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the certificate authority that clients must trust, as PEM; `None` for a certificate
    /// that they trust already.
    pub fn authority(&self) -> Option<&str> {
        self.server.authority()
    }

    /// Returns the functions that the webhook serves.
    pub fn functions(&self) -> &Functions {
        &self.shared.functions
    }

    /// Returns the metrics. Register them before [`Webhook::serve`] consumes the webhook.
    pub fn metrics(&self) -> Metrics {
        self.shared.metrics.clone()
    }

    /// Serves until `stopped` completes, and then until running requests are answered or
    /// [`WebhookOptions::stop_within`] has passed.
    ///
    /// # Errors
    /// [`WebhookError::Server`] if TLS can't be set up.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections, and running requests get no response.
    pub async fn serve(self, stopped: impl Future<Output = ()>) -> Result<(), WebhookError> {
        Ok(self.server.serve(stopped).await?)
    }
}
