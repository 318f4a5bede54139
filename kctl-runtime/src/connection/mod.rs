//! Creates clients of an API server from a kubeconfig.
//!
//! Every stage of the loop sends its requests through one client. [`client`] returns a `kube::Client` that
//! differs from kube's own in how it uses connections:
//!
//! - Watches share HTTP/2 connections, up to 80 each. With kube's client every watch holds an HTTP/1.1
//!   connection with its buffers.
//! - Other requests use HTTP/1.1, which costs less CPU, lists above all. `benches/README.md` has the
//!   measurements.
//! - Dead connections are noticed: by pings for watches, and by a short reuse time for HTTP/1.1.
//! - Credentials follow kubectl's rules where a user of the kubeconfig has several
//!   ([`kubeconfig::choose_credentials`]), and `exec` plugins are shared between clients.
//!
//! kube's own client works with every other stage as well. Use [`builder`] to add tower layers, for example
//! [`RequestCounter`](crate::manager::metrics::RequestCounter).
//!
//! # From kubeconfig to client
//!
//! A kubeconfig is read in three steps, and each can be replaced:
//!
//! ```
//! use kctl_runtime::connection;
//! use kube::{Config, config::{Kubeconfig, KubeConfigOptions}};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let mut kubeconfig = Kubeconfig::from_yaml(r#"
//! current-context: dev
//! contexts: [{name: dev, context: {cluster: dev, user: me, namespace: ""}}]
//! clusters: [{name: dev, cluster: {server: "http://127.0.0.1:1"}}]
//! users: [{name: me, user: {token: secret}}]
//! "#)?;
//!
//! // 1. Empty strings count as unset, as for kubectl.
//! connection::kubeconfig::unset_empty(&mut kubeconfig);
//! // 2. kube reads files and the current context.
//! let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
//! // 3. The API server's audit log shows this name.
//! connection::name(&mut config, "podset", "0.1.0");
//!
//! let client = connection::client(config)?;
//! assert_eq!(client.default_namespace(), "default");
//! # Ok::<_, Box<dyn std::error::Error>>(()) })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # The path of a request
//!
//! Headers, extensions and query of a request choose its connection:
//!
//! | Request | Connection | Bound |
//! |---|---|---|
//! | watch or followed log ([`is_streaming()`]) | stream of a shared HTTP/2 connection | 80 streams per connection at most |
//! | list that fills a cache | HTTP/1.1, or an HTTP/2 stream beyond the bound | 8 at once over HTTP/1.1 |
//! | `Upgrade` header, such as `exec` and `port-forward` | HTTP/1.1 connection for it alone | not kept afterwards |
//! | any other request | HTTP/1.1, reused within 5 idle seconds | 32 idle connections |
//!
//! Requests are not rate-limited by the client. client-go allows 5 per second by default (`rest/config.go`), and
//! controller-runtime switches that off: API priority and fairness limits each client in the API server.
//!
//! Inside, `router` chooses a pool per request: `h2_pool` or `h1_pool`.
//! `dial` and `connector` open connections, through a proxy if there is one, and `plugin` runs `exec`
//! plugins.

mod agent;
mod connector;
mod dial;
mod h1_connection;
mod h1_idle;
mod h1_pool;
mod h2_connection;
mod h2_pool;
mod h2_stream;
mod is_streaming;
pub mod kubeconfig;
mod limits;
mod plugin;
mod plugin_auth;
mod plugin_process;
mod response_body;
mod router;
#[cfg(test)]
mod tests;
mod trust;

use http_body_util::BodyExt;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt, DynBody},
};
use tower::{
    BoxError, ServiceBuilder, ServiceExt as _,
    util::{BoxService, Either},
};

pub use agent::name;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use dial::UNACKNOWLEDGED_MAX;
pub use is_streaming::is_streaming;
use limits::Limits;
use plugin::Plugin;
use plugin_auth::PluginAuth;
pub(crate) use router::LongResponse;
use router::Router;

/// The HTTP service below a client of [`builder`]: boxed, so that layers have a name for it.
///
/// A layer that is generic over its inner service does not need it. Name it in a struct or in a return type:
///
/// ```
/// use kctl_runtime::connection::{Connected, builder};
/// use kube::{Config, client::ClientBuilder};
///
/// fn for_tests(address: &str) -> Result<ClientBuilder<Connected>, Box<dyn std::error::Error>> {
///     Ok(builder(Config::new(address.parse()?))?)
/// }
/// assert!(for_tests("http://127.0.0.1:1").is_ok());
/// ```
pub type Connected = BoxService<http::Request<Body>, http::Response<Box<DynBody>>, BoxError>;

/// Returns a client of the API server that a configuration names.
///
/// ```no_run
/// # async fn client() -> kube::Result<()> {
/// use kctl_runtime::connection;
/// use kube::Config;
///
/// let client = connection::client(Config::infer().await.map_err(kube::Error::InferConfig)?)?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// No request is sent yet. `Config::infer` reads the kubeconfig or, in a Pod, the service account.
///
/// # Errors
/// Certificates, keys, tokens, the proxy or the server name in the configuration cannot be read, the
/// credentials contradict each other, or an `exec` plugin fails.
pub fn client(config: Config) -> kube::Result<Client> {
    Ok(builder(config)?.build())
}

/// Returns a builder for [`client`], to add tower layers.
///
/// Connections:
///
/// - Up to 80 watches share an HTTP/2 connection. If the server allows fewer streams, that is noticed and
///   the number lowered.
/// - Other requests use HTTP/1.1, over a connection that the waiting task polls.
/// - Of the lists that fill caches, eight at a time use HTTP/1.1 and further ones HTTP/2 streams.
/// - With a server that speaks only HTTP/1.1, all requests use it. Nothing is compressed.
///
/// Failures:
///
/// - A watch connection that is silent for 30 s gets a ping, and is closed 15 s later without a response,
///   as in client-go.
/// - An HTTP/1.1 connection is not reused after 5 idle seconds. A GET over a reused connection that breaks off, or
///   that has no response within 5 s, is retried over a new one. Other requests are sent once.
/// - Unacknowledged data closes a connection after 7 s (Linux).
///
/// Credentials:
///
/// - If a user has several credentials, the one that kubectl would use is used. Empty strings count as unset
///   ([`kubeconfig::choose_credentials`]).
/// - An `exec` plugin of the kubeconfig runs here, and again when its credentials expire or are rejected, at
///   most every five seconds. Clients share the credentials of a plugin.
///
/// ```no_run
/// # async fn client() -> Result<(), Box<dyn std::error::Error>> {
/// use kctl_runtime::{connection, manager::metrics::RequestCounter};
/// use kube::Config;
///
/// let counter = RequestCounter::new("127.0.0.1:6443");
/// let client = connection::builder(Config::infer().await?)?.with_layer(&counter).build();
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`client`].
pub fn builder(config: Config) -> kube::Result<ClientBuilder<Connected>> {
    with_limits(config, Limits::default())
}

/// Returns a [`builder`] without blocking the thread while an `exec` plugin of the kubeconfig runs.
///
/// A plugin that needs a server may hang, and one that asks the user takes minutes. Other tasks of the runtime are not
/// blocked by it, such as signal handlers. A plugin that has run for 5 s is logged.
///
/// ```no_run
/// # async fn client() -> Result<(), Box<dyn std::error::Error>> {
/// use kctl_runtime::connection;
/// use kube::Config;
///
/// let client = connection::nonblocking_builder(Config::infer().await?).await?.build();
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`client`].
///
/// # Cancel safety
/// Dropping the future kills the plugin.
#[doc(hidden)] // kctl alone needs it
pub async fn nonblocking_builder(config: Config) -> kube::Result<ClientBuilder<Connected>> {
    let (mut first, limits) = (config.clone(), Limits::default());
    kubeconfig::choose_credentials(&mut first.auth_info).map_err(|error| kube::Error::Service(error.into()))?;
    let plugin = Plugin::take_on_thread(&mut first, limits.plugin_every).await;
    let _shared_with_builder = plugin.map_err(|error| kube::Error::Service(error.into()))?;
    with_limits(config, limits)
}

/// Builds the client with other bounds, for tests.
///
/// The order of layers matters: the base URL comes first, so that the layers below see the whole URL. A
/// plugin's token is added below them, for each request.
fn with_limits(mut config: Config, limits: Limits) -> kube::Result<ClientBuilder<Connected>> {
    agent::set_default_user_agent(&mut config);
    config.tls_server_name.take_if(|name| name.is_empty());
    kubeconfig::choose_credentials(&mut config.auth_info).map_err(|error| kube::Error::Service(error.into()))?;
    let plugin =
        Plugin::take_from(&mut config, limits.plugin_every).map_err(|error| kube::Error::Service(error.into()))?;
    let router = match plugin {
        Some(plugin) => Either::Left(PluginAuth::new(plugin, config.clone(), limits)?),
        None => Either::Right(Router::from_config(&config, limits)?),
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(router)
        .map_response(|response: http::Response<_>| {
            response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
        })
        .boxed();
    Ok(ClientBuilder::new(service, config.default_namespace))
}
