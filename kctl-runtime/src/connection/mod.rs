//! A configuration → a client of the API server that it names. Comes before the loop: every stage asks through one.
//!
//! Watches by HTTP/2 where it is spoken: one takes a stream, and not a connection of its own with all its buffers. All else goes by
//! HTTP/1.1, which costs less, lists above all. `benches/README.md` has the figures; kube's own client, whose place this takes,
//! speaks HTTP/1.1 alone.

mod agent;
mod answer;
mod connector;
mod dial;
mod driven;
pub mod kubeconfig;
mod lasts;
mod link;
mod links;
mod plain;
mod plugin;
mod renewed;
#[cfg(test)]
mod tests;
mod trust;
mod ways;

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
pub use lasts::lasts;
use plugin::Plugin;
use renewed::Renewed;
pub(crate) use ways::Long;
use ways::{Limits, Ways};

/// The HTTP service below a client of [`builder`].
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

/// Returns a builder for [`client`], to add tower layers.
///
/// Up to 80 watches share a connection of HTTP/2. Other requests use HTTP/1.1, over a connection that the waiting task polls. Of the
/// lists that fill caches, eight at a time use HTTP/1.1 and further ones HTTP/2 streams. With a server that speaks only HTTP/1.1, all
/// requests use it. Nothing is compressed.
///
/// A watch connection that is silent for 30 s gets a ping, and is closed 15 s later without a response, as in client-go. HTTP/1.1 has no
/// ping: a connection is not reused after 5 idle seconds, and a GET without a response within 5 s over a reused connection is retried over
/// a new one. Other requests are sent once. Unacknowledged data closes a connection after 20 s (Linux).
///
/// Of several credentials, the one that kubectl uses counts, and empty strings count as unset ([`kubeconfig::choose_credentials`]).
///
/// An `exec` plugin of the kubeconfig runs here, and again when its credentials expire or are rejected, at most every five seconds.
/// Clients share the credentials of a plugin.
///
/// # Errors
/// As [`client`], and if a plugin fails.
pub fn builder(config: Config) -> kube::Result<ClientBuilder<Connected>> {
    with_limits(config, Limits::default())
}

fn with_limits(mut config: Config, limits: Limits) -> kube::Result<ClientBuilder<Connected>> {
    agent::name_if_unnamed(&mut config);
    config.tls_server_name.take_if(|name| name.is_empty());
    kubeconfig::choose_credentials(&mut config.auth_info).map_err(|error| kube::Error::Service(error.into()))?;
    let plugin = Plugin::take(&mut config, limits.plugin_every).map_err(|error| kube::Error::Service(error.into()))?;
    let ways = match plugin {
        Some(plugin) => Either::Left(Renewed::new(plugin, config.clone(), limits)?),
        None => Either::Right(Ways::of(&config, limits)?),
    };
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
