//! Opens a TCP connection: directly, or through an HTTP or SOCKS proxy with the user and password of its URL.
//!
//! | `proxy-url` of the cluster | Connection |
//! |---|---|
//! | none | direct |
//! | `http://` | `CONNECT` in plain text, then TLS to the API server inside the tunnel |
//! | `https://` | TLS to the proxy, then the same |
//! | `socks5://`, `socks5h://` | SOCKS 5; the proxy resolves the name of the API server |
//!
//! kube reads `HTTPS_PROXY` and the kubeconfig into one field, so both arrive here. It compares `NO_PROXY` with the
//! address of the proxy; the `kctl` crate compares it with the server's. kube's own connector needs a crate feature for
//! each kind of proxy, and does not know `socks5h`. Escapes such as `%40` are decoded as Go's
//! `net/url` does.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{
        HttpConnector,
        proxy::{SocksV5, Tunnel},
    },
    rt::TokioIo,
};
use kube::{Config, client::ConfigExt};
use tokio::net::TcpStream;
use tower::{BoxError, Service};

/// TCP keep-alive: interval of probes on an idle connection, and the number of lost ones after which it
/// ends. Go's `net` package probes every 15 s, nine times.
///
/// A peer that vanished without a `FIN` is therefore noticed after a minute at most, whatever the layers above do.
const KEEPALIVE: (Duration, u32) = (Duration::from_secs(15), 3);
/// Unacknowledged data ends a connection after this time, so that a write on a dead one fails early.
///
/// It is the socket option `TCP_USER_TIMEOUT`. Without it Linux resends for about 15 minutes
/// (`tcp_retries2`), and the caller gets no error until then.
///
/// It is shorter than the time after which a `WritePermit` counts a write as over, 9.55 s for slots by default.
/// Otherwise the kernel could resend a write when another replica owns its slot. The difference is a reserve: Linux
/// counts from the first retransmission, which comes up to a second after the data was sent.
#[cfg(target_os = "linux")]
pub(crate) const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(7);

/// Default port of SOCKS proxies (Go, `portMap` in `net/http/transport.go`).
const SOCKS_PORT: u16 = 1080;

/// Longest user name and password, in bytes: their length is sent in one byte (RFC 1929).
const SOCKS_USER_LEN_MAX: usize = 255;

/// The way to the server.
#[derive(Clone)]
pub(super) enum Dial {
    /// No proxy.
    Direct(HttpConnector),
    /// An HTTP proxy: `CONNECT host:port`, with `Proxy-Authorization: Basic` if the URL has a user.
    Tunnel(Tunnel<HttpConnector>),
    /// An HTTP proxy that is reached over TLS.
    TlsTunnel(Tunnel<HttpsConnector<HttpConnector>>),
    /// A SOCKS 5 proxy. Both schemes resolve names at the proxy, as Go's client does for `socks5` too.
    Socks(SocksV5<HttpConnector>),
}

impl Dial {
    /// Reads the proxy from a configuration.
    ///
    /// # Errors
    /// The URL's scheme is not one of a proxy, user or password are too long, or certificates cannot be read.
    pub(super) fn from_config(config: &Config) -> kube::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let (every, retries) = KEEPALIVE;
        tcp.set_keepalive(Some(every));
        tcp.set_keepalive_interval(Some(every));
        tcp.set_keepalive_retries(Some(retries));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
        let Some(proxy) = config.proxy_url.clone() else { return Ok(Self::Direct(tcp)) };
        let Some((plain, user)) = without_user(&proxy) else { return Err(unknown(&proxy)) };
        let with_auth = |user: &User| {
            let text = STANDARD.encode(format!("{}:{}", user.name, user.password));
            // Base64 is valid in a header, so the fallback is never used.
            HeaderValue::try_from(format!("Basic {text}")).unwrap_or(HeaderValue::from_static("Basic"))
        };
        match proxy.scheme_str() {
            Some("http") => {
                let tunnel = Tunnel::new(plain, tcp);
                Ok(Self::Tunnel(match &user {
                    Some(user) => tunnel.with_auth(with_auth(user)),
                    None => tunnel,
                }))
            }
            Some("https") => {
                let tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
                let tunnel = Tunnel::new(plain, tls.enable_http1().wrap_connector(tcp));
                Ok(Self::TlsTunnel(match &user {
                    Some(user) => tunnel.with_auth(with_auth(user)),
                    None => tunnel,
                }))
            }
            // The proxy resolves host names.
            Some("socks5" | "socks5h") => {
                let socks = SocksV5::new(plain, tcp).local_dns(false);
                if user.as_ref().is_some_and(|user| user.name.len().max(user.password.len()) > SOCKS_USER_LEN_MAX) {
                    let text = format!("user and password of a SOCKS proxy have {SOCKS_USER_LEN_MAX} bytes at most");
                    return Err(kube::Error::Service(text.into()));
                }
                Ok(Self::Socks(match user {
                    Some(user) => socks.with_auth(user.name, user.password),
                    None => socks,
                }))
            }
            _ => Err(unknown(&proxy)),
        }
    }
}

/// Creates the error of kube for a proxy whose scheme is unknown, or whose URL has no host.
fn unknown(proxy: &Uri) -> kube::Error {
    kube::Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) }
}

/// User and password of a proxy, with percent escapes decoded.
#[derive(PartialEq, Eq)]
struct User {
    name: String,
    password: String,
}

/// Without the password.
impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns the URL of a proxy with its port, and its user.
///
/// The connectors of hyper-util take no URL without a port, and would send the user as part of the host. The
/// default ports are 80, 443 and 1080. `None` if the URL has no scheme or no host.
fn without_user(proxy: &Uri) -> Option<(Uri, Option<User>)> {
    let (scheme, authority) = (proxy.scheme_str()?, proxy.authority()?);
    let user = authority.as_str().rsplit_once('@').map(|(user, _host)| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        User { name: decode_percent(name), password: decode_percent(password) }
    });
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => SOCKS_PORT,
    };
    let port = authority.port_u16().unwrap_or(default);
    let plain = format!("{scheme}://{}:{port}", authority.host()).parse().ok()?;
    Some((plain, user))
}

/// Decodes percent escapes (`%40` is `@`); everything else is kept.
///
/// A `%` that no two hexadecimal digits follow is kept, so a password with a bare `%` works. Bytes that are not
/// UTF-8 become `U+FFFD`.
fn decode_percent(text: &str) -> String {
    let hex = |byte: &u8| char::from(*byte).to_digit(16).and_then(|n| u8::try_from(n).ok());
    let escaped = |rest: &[u8]| {
        let [b'%', high, low, ..] = rest else { return None };
        Some(hex(high)? << 4 | hex(low)?)
    };
    let (mut rest, mut out) = (text.as_bytes(), Vec::with_capacity(text.len()));
    while let Some(first) = rest.first() {
        let byte = escaped(rest);
        out.push(byte.unwrap_or(*first));
        rest = &rest[if byte.is_some() { 3 } else { 1 }..];
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl Service<Uri> for Dial {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(context).map_err(BoxError::from),
            Self::Tunnel(tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
            Self::TlsTunnel(tunnel) => tunnel.poll_ready(context).map_err(BoxError::from),
            Self::Socks(socks) => socks.poll_ready(context).map_err(BoxError::from),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let stream = tcp.call(to);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(stream.await?)) })
            }
            Self::Tunnel(tunnel) => {
                let stream = tunnel.call(to);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(stream.await?)) })
            }
            Self::TlsTunnel(tunnel) => {
                let stream = tunnel.call(to);
                Box::pin(async move { Ok(stream.await?) })
            }
            Self::Socks(socks) => {
                let stream = socks.call(to);
                Box::pin(async move { Ok(MaybeHttpsStream::Http(stream.await?)) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_credentials_are_unescaped() {
        let user = |name: &str, password: &str| Some(User { name: name.into(), password: password.into() });
        let cases = [
            ("http://proxy", "http://proxy:80/", None),
            ("https://proxy", "https://proxy:443/", None),
            ("socks5://proxy", "socks5://proxy:1080/", None),
            ("socks5h://u:p@[::1]:9", "socks5h://[::1]:9/", user("u", "p")),
            ("socks5://me%40corp:a%3Ab%2Fc@proxy:9", "socks5://proxy:9/", user("me@corp", "a:b/c")),
            ("http://only@proxy:9", "http://proxy:9/", user("only", "")),
            ("http://a%zz%4:%C3%BC@proxy:9", "http://proxy:9/", user("a%zz%4", "ü")),
        ];
        for (url, plain, expected) in cases {
            let (found, user) = without_user(&url.parse().unwrap()).unwrap();
            assert_eq!((found.to_string().as_str(), user), (plain, expected), "{url}");
        }
    }

    #[test]
    fn debug_output_leaves_out_proxy_passwords() {
        let (_, user) = without_user(&"http://me:hunter2@proxy".parse().unwrap()).unwrap();
        assert_eq!(format!("{:?}", user.unwrap()), "User { name: \"me\", .. }");
    }
}
