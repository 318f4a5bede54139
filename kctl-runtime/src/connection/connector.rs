//! A connection within a time, its TLS included: a server that takes it and says nothing is none.

use std::{
    io,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use kube::{Config, client::ConfigExt};
use tokio::{net::TcpStream, time::timeout};
use tower::{BoxError, Service};

use super::{dial::Dial, trust};

/// What goes to and fro; by TLS to the proxy, and through it to the server.
pub(super) type Stream = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Http1,
    /// The newer of those that the server offers.
    Both,
}

#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Dial>,
    /// For ever, if none.
    within: Option<Duration>,
}

impl Connector {
    /// Certificates, the name of the server, the proxy and the time for a connection are those of the configuration. It is not
    /// asked for how long reads and writes may wait: pings and whoever waits for an answer know when there will be none.
    ///
    /// # Errors
    /// When certificates, keys or the name of the server cannot be read, or the proxy is none.
    pub(super) fn of(config: &Config, speaks: Speaks) -> kube::Result<Self> {
        let dial = Dial::of(config)?;
        let tls = trust::with_serving_certificates(config, config.rustls_client_config()?);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
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
            Speaks::Http1 => builder.enable_http1().wrap_connector(dial),
            Speaks::Both => builder.enable_all_versions().wrap_connector(dial),
        };
        Ok(Self { https, within: config.connect_timeout })
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.https.call(to);
        let Some(within) = self.within else { return Box::pin(connecting) };
        Box::pin(async move {
            let late = |_elapsed| Err(io::Error::new(io::ErrorKind::TimedOut, "the connection timed out").into());
            timeout(within, connecting).await.unwrap_or_else(late)
        })
    }
}
