//! A configuration → a client of the API server that it names. Comes before the loop: every stage asks through one.
//!
//! Watches by HTTP/2 where it is spoken: one takes a stream, and not a connection of its own with all its buffers. All else goes by
//! HTTP/1.1, which costs less, lists above all. `benches/README.md` has the figures; kube's own client, whose place this takes,
//! speaks HTTP/1.1 alone.

mod agent;
mod answer;
mod connector;
mod driven;
mod lasts;
mod link;
mod links;
mod plain;
#[cfg(test)]
mod tests;
mod ways;

use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt, DynBody},
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _, util::BoxService};

pub use agent::name;
use connector::Connector;
pub use lasts::lasts;
pub(crate) use ways::Long;
use ways::{Limits, Ways};

/// What a client of [`builder`] sends its requests through.
pub type Connected = BoxService<http::Request<Body>, http::Response<Box<DynBody>>, BoxError>;

/// A client of the API server that a configuration names, for all its watches and writes: as few connections as HTTP/2 needs for
/// them. kube's own client works as well, with a connection for each watch.
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
/// # Errors
/// When certificates, keys, tokens or the name of the server in the configuration cannot be read.
pub fn client(config: Config) -> kube::Result<Client> {
    Ok(builder(config)?.build())
}

/// As [`client`], for layers around it.
///
/// Up to 80 watches share a connection of HTTP/2. All else goes by HTTP/1.1, over a connection that whoever waits for the answer
/// drives; of lists of whole caches eight at a time do, and further ones take streams. Where a server speaks HTTP/1.1 alone, or a proxy is between, everything does. A connection of watches that is silent for 30 s is asked whether it is there, and given up 15 s later, as client-go does. Nothing is
/// sent again by itself, and nothing is compressed.
///
/// # Errors
/// As [`client`].
pub fn builder(config: Config) -> kube::Result<ClientBuilder<Connected>> {
    with_limits(config, Limits::default())
}

fn with_limits(mut config: Config, limits: Limits) -> kube::Result<ClientBuilder<Connected>> {
    agent::name_if_unnamed(&mut config);
    if config.proxy_url.is_some() {
        // kube's layer repeats a POST after a 504, which may create an object twice.
        config.default_retry = false;
        return ClientBuilder::try_from(config);
    }
    let ways = Ways::new(connector(&config, Speaks::Both)?, connector(&config, Speaks::Http1)?, limits);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(ways)
        .map_response(|response: http::Response<_>| {
            response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
        })
        .boxed();
    Ok(ClientBuilder::new(service, config.default_namespace))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http1,
    /// The newer of those that the server offers.
    Both,
}

/// Certificates, the name of the server and the time for a connection are those of the configuration. It is not asked for how
/// long reads and writes may wait: pings and whoever waits for an answer know when there will be none.
fn connector(config: &Config, speaks: Speaks) -> kube::Result<Connector> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    let builder = match &config.tls_server_name {
        Some(name) => {
            let wrong = |_error| {
                let text = format!("tls-server-name `{name}` is neither a DNS name nor an IP address");
                kube::Error::Service(text.into())
            };
            builder.with_server_name_resolver(FixedServerNameResolver::new(name.clone().try_into().map_err(wrong)?))
        }
        None => builder,
    };
    let https = match speaks {
        Speaks::Http1 => builder.enable_http1().wrap_connector(tcp),
        Speaks::Both => builder.enable_all_versions().wrap_connector(tcp),
    };
    Ok(Connector::new(https, config.connect_timeout))
}
