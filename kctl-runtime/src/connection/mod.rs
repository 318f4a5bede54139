//! Connections to an API server: HTTP/2 where it is spoken, so that a watch takes a stream and not a connection of its own with
//! all its buffers. Comes before everything: clients are made of it.

mod links;

use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use kube::{
    Config,
    client::{Body, ClientBuilder, ConfigExt, DynBody},
};
use tower::{BoxError, ServiceBuilder, ServiceExt as _, util::BoxService};

use links::Links;

type Service = BoxService<http::Request<Body>, http::Response<Box<DynBody>>, BoxError>;

/// A client of the API server that a configuration names, as [`ClientBuilder::try_from`] makes one, but for HTTP/2: up to
/// 80 watches share a connection, and all else that is asked has one to itself. Where the server speaks HTTP/1.1 alone, or a proxy is between,
/// each watch has a connection of its own. Nothing is sent again by itself, and nothing is compressed.
///
/// # Errors
/// When certificates, keys or tokens of the configuration cannot be read.
pub fn builder(mut config: Config) -> kube::Result<ClientBuilder<Service>> {
    if config.proxy_url.is_some() {
        config.default_retry = false;
        return ClientBuilder::try_from(config);
    }
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Links::new(connector(&config)?))
        .map_response(|response: http::Response<_>| {
            response.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
        })
        .boxed();
    Ok(ClientBuilder::new(service, config.default_namespace))
}

fn connector(config: &Config) -> kube::Result<HttpsConnector<HttpConnector>> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    let name = config.tls_server_name.as_ref().and_then(|name| name.clone().try_into().ok());
    let builder = match name {
        Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
        None => builder,
    };
    Ok(builder.enable_all_versions().wrap_connector(tcp))
}
