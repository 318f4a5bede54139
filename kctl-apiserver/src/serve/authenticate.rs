//! Authenticates requests on a socket: the administrator's client certificate, a service account token, or anonymous.
//!
//! These are all credentials that a client on a socket may have. Clients inside this process skip this file:
//! `service_of` accepts their user without authentication. Impersonation comes later, in `impersonation.rs`.
//!
//! | credentials | caller |
//! | --- | --- |
//! | the administrator's certificate | `kubernetes-admin`, with the digest as `credential-id` |
//! | `Authorization: Bearer TOKEN`, valid | the service account |
//! | a token that is not valid | 401 |
//! | none | 401, or anonymous for a public path |

use std::sync::Arc;

use http::{HeaderMap, Request, Response, StatusCode, header};
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::{identity::Identity, names::CertificateNames};
use crate::{ApiServer, Body, InProcess, User, request::Caller, status::StatusError};

/// Paths that anonymous requests may read (`system:public-info-viewer`). Paths below them are public too, such as
/// `/readyz/etcd`. kube-apiserver passes all anonymous requests to RBAC; here those for other paths are rejected.
const PUBLIC: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Returns the bearer token of a request (`k8s.io/apiserver/pkg/authentication/request/bearertoken`). The word `Bearer`
/// may have any case. A header with another scheme, such as `Basic`, counts as no token.
fn token(headers: &HeaderMap) -> Option<&str> {
    let shown = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let mut words = shown.trim().splitn(3, ' ');
    let is_bearer = words.next().is_some_and(|word| word.eq_ignore_ascii_case("bearer"));
    words.next().filter(|token| is_bearer && !token.is_empty())
}

/// Authenticates the requests of one connection. The certificate belongs to the connection, the token to each request.
#[derive(Clone)]
pub(super) struct Authenticator {
    /// Validates tokens, and creates the service for a caller.
    server: ApiServer,
    /// Identifies the administrator's certificate.
    identity: Arc<Identity>,
    /// The hosts that a request may name.
    names: Arc<CertificateNames>,
    /// `true` if the client of this connection presented the administrator's certificate.
    admin: bool,
}

impl Authenticator {
    /// Creates the authenticator of a connection whose client has presented no certificate.
    pub(super) fn new(server: ApiServer, identity: Arc<Identity>, names: Arc<CertificateNames>) -> Self {
        Self { server, identity, names, admin: false }
    }

    /// Records the client certificates of the connection, which TLS has verified. Another certificate of the authority
    /// than the administrator's does not authenticate its client: the request then needs a token.
    pub(super) fn peer(&mut self, certificates: Option<&[CertificateDer<'_>]>) {
        self.admin = certificates.is_some_and(|certificates| self.identity.is_admin(certificates));
    }

    /// Returns a service for the caller of this request.
    ///
    /// # Errors
    /// Returns the response to send: 403 for a `Host` that the server does not have, 401 without valid credentials.
    pub(super) fn decide<B>(&self, request: &Request<B>) -> Result<InProcess, Box<Response<Body>>> {
        let reject = |code, reason, why| Box::new(self.server.reject(request, &StatusError::new(code, reason, why)));
        if !self.has_allowed_host(request) {
            let why = "Host is not a name of this server: it answers to localhost, to its own addresses and to the names of --tls-san";
            return Err(reject(StatusCode::FORBIDDEN, "Forbidden", why));
        }
        let path = request.uri().path();
        let public = PUBLIC
            .iter()
            .any(|prefix| path == *prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')));
        // A request with an invalid token is rejected, even for a public path.
        let has_no_token = token(request.headers()).is_none();
        match self.caller(request.headers()) {
            Some(caller) => Ok(self.server.service_of(caller)),
            None if public && has_no_token => Ok(self.server.service_as(User::anonymous())),
            None => Err(reject(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")),
        }
    }

    /// Returns the caller of a request, or `None` without valid credentials. The certificate takes precedence over a
    /// token, as in kube-apiserver, which tries x509 first.
    fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        if self.admin {
            let id = format!("X509SHA256={}", self.identity.admin_digest());
            let extra = [("authentication.kubernetes.io/credential-id".to_owned(), vec![id])].into();
            return Some(Caller { extra, ..User::admin().into() });
        }
        self.server.caller_of_token(token(headers)?)
    }

    /// Returns `true` if `Host` is a name of this server. This prevents DNS rebinding: a web page whose name was
    /// rebound to 127.0.0.1 sends its own name. HTTP/2 has the host in the URI (`:authority`), HTTP/1.1 in the header.
    /// A request with neither is rejected. The port is ignored, because forwarding may change it.
    fn has_allowed_host<B>(&self, request: &Request<B>) -> bool {
        let header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let Some(host) = request.uri().authority().map(http::uri::Authority::as_str).or(header) else { return false };
        let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = host.rsplit_once(':').filter(|(_, port)| has_port(port)).map_or(host, |(name, _port)| name);
        ["localhost", "127.0.0.1", "[::1]"].contains(&name) || self.names.has(name.trim_matches(['[', ']']))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[tokio::test]
    async fn invalid_token_is_rejected_on_every_path() {
        let server = ApiServer::on_system_time();
        let names = Arc::new(CertificateNames::for_address(std::net::Ipv4Addr::LOCALHOST.into(), &[]));
        let identity = Arc::new(Identity::new(&names, None).unwrap());
        let authenticator = Authenticator::new(server, identity, names);
        for (path, shown, is_let_in) in [
            ("/livez", None, true),
            ("/readyz/ping", None, true),
            ("/healthz", None, true),
            ("/version", None, true),
            ("/api", None, false),
            ("/livez", Some("Bearer x"), false),
            ("/version", Some("bearer x"), false),
            ("/version", Some("Basic x"), true),
            ("/version", Some("Bearer "), true),
        ] {
            let mut request = Request::get(path).header(header::HOST, "localhost").body(()).unwrap();
            if let Some(shown) = shown {
                request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(shown));
            }
            match authenticator.decide(&request) {
                Ok(_) => assert!(is_let_in, "{path} {shown:?}"),
                Err(rejected) => {
                    assert!(!is_let_in, "{path} {shown:?}");
                    assert_eq!(rejected.status(), 401, "{path} {shown:?}");
                    assert!(rejected.headers().contains_key("audit-id"), "{path} {shown:?}");
                }
            }
        }
    }
}
