//! Opens a connection, TLS included, within the connect timeout.
//!
//! The timeout covers the handshake: a server that accepts a connection and sends nothing counts as down.
//!
//! kube's connector has three timeouts: connect, read and write. A read timeout would also close a watch that is
//! merely quiet, so only the first is used here. A dead HTTP/2 connection is found by pings, a dead HTTP/1.1 one by
//! [`Limits::first_byte_within`](super::limits::Limits::first_byte_within).

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

/// A connection: TLS to the proxy, if any, and TLS through it to the server.
pub(super) type Stream = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;

/// The HTTP versions that a connection offers in the TLS handshake (ALPN).
///
/// Without TLS nothing is negotiated, and both speak HTTP/1.1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Alpn {
    /// For connections that one request uses at a time.
    Http1,
    /// The newest version that the server offers as well.
    Both,
}

/// Opens connections with the TLS settings of a configuration.
#[derive(Clone)]
pub(super) struct Connector {
    /// Does the TLS handshake over the stream that [`Dial`] opens.
    https: HttpsConnector<Dial>,
    /// Connect timeout; `None` waits forever.
    within: Option<Duration>,
}

impl Connector {
    /// Reads certificates, server name, proxy and connect timeout from a configuration.
    ///
    /// Its read and write timeouts are not used: pings and the callers' own timeouts cover them.
    ///
    /// `tls_server_name` replaces the host of the URL in the handshake and in the check of the certificate. It is for
    /// a server that is reached by an address its certificate does not name, such as a tunnel.
    ///
    /// # Errors
    /// Certificates, keys, the server name or the proxy cannot be read.
    pub(super) fn from_config(config: &Config, alpn: Alpn) -> kube::Result<Self> {
        let dial = Dial::from_config(config)?;
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
        let https = match alpn {
            Alpn::Http1 => builder.enable_http1().wrap_connector(dial),
            Alpn::Both => builder.enable_all_versions().wrap_connector(dial),
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

    /// Opens a connection to the host and port of this URL.
    ///
    /// # Errors
    /// The connection or the handshake fails, or both together take longer than the connect timeout.
    ///
    /// # Cancel safety
    /// Safe: dropping the future closes the half-open connection.
    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.https.call(to);
        let Some(within) = self.within else { return Box::pin(connecting) };
        Box::pin(async move {
            let late = |_elapsed| Err(io::Error::new(io::ErrorKind::TimedOut, "the connection timed out").into());
            timeout(within, connecting).await.unwrap_or_else(late)
        })
    }
}
