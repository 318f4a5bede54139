//! Connections with a plugin's credential. A new token is sent with the next request; a new certificate needs
//! new connections.
//!
//! A token is a header, so connections outlive it. A certificate is part of the TLS handshake, so its successor
//! needs a new set of connections. client-go closes the old ones at once (`plugin/pkg/client/auth/exec/exec.go`),
//! which breaks every watch at the same moment. Here they remain open until their requests end, and watches move over
//! as the server times them out, within minutes.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header::AUTHORIZATION};
use kube::{Config, client::Body};
use parking_lot::Mutex;
use tower::{BoxError, Service};

use super::{
    limits::Limits,
    plugin::{Credential, Plugin},
    response_body::ResponseBody,
    router::Router,
};

/// A service that authenticates with a plugin. Clones share the state.
///
/// It is between the layers of `kube` and the router. `kube`'s own auth layer does nothing here, because the
/// plugin was taken out of the configuration.
#[derive(Clone)]
pub(super) struct PluginAuth {
    plugin: Arc<Plugin>,
    /// The configuration without the plugin.
    ///
    /// Kept, because each new certificate builds a TLS setup from it.
    config: Arc<Config>,
    limits: Limits,
    current: Arc<Mutex<CurrentCredential>>,
}

/// The connections of the current credential. Watches with an older credential keep their connection until they end.
struct CurrentCredential {
    /// The credential that requests send now.
    credential: Arc<Credential>,
    /// Connections whose handshakes showed the certificate of `credential`.
    router: Router,
}

impl PluginAuth {
    /// Returns the current credential and its connections.
    ///
    /// Waits for a plugin that runs. The comparison is by pointer first: most requests find the credential unchanged
    /// and take one short lock.
    ///
    /// # Errors
    /// Certificates, keys or the server name cannot be read.
    async fn router(&self) -> kube::Result<(Arc<Credential>, Router)> {
        let credential = self.plugin.credential().await;
        let mut current = self.current.lock();
        if !Arc::ptr_eq(&current.credential, &credential) {
            if !current.credential.has_identity_of(&credential) {
                current.router = connect(&self.config, &credential, self.limits)?;
            }
            current.credential = credential.clone();
        }
        Ok((credential, current.router.clone()))
    }

    /// Creates the service with the credential that the plugin returned when the client was built.
    ///
    /// # Errors
    /// Returns the errors of [`router`](Self::router).
    pub(super) fn new(plugin: Arc<Plugin>, config: Config, limits: Limits) -> kube::Result<Self> {
        let credential = plugin.last_credential();
        let router = connect(&config, &credential, limits)?;
        Ok(Self {
            plugin,
            config: Arc::new(config),
            limits,
            current: Arc::new(Mutex::new(CurrentCredential { credential, router })),
        })
    }
}

/// Builds the router for a certificate. Connections are opened by the first requests.
fn connect(config: &Config, credential: &Credential, limits: Limits) -> kube::Result<Router> {
    let mut config = config.clone();
    credential.identify(&mut config.auth_info);
    Router::from_config(&config, limits)
}

impl Service<Request<Body>> for PluginAuth {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a request with the current token.
    ///
    /// A 401 is returned to the caller and marks the credential as rejected. The request is not repeated here: its
    /// body may be a stream, and every caller in this crate retries anyway.
    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (credential, mut router) = this.router().await?;
            if let Some(token) = &credential.token {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            let response = router.call(request).await?;
            if response.status() == StatusCode::UNAUTHORIZED {
                this.plugin.invalidate(&credential);
            }
            Ok(response)
        })
    }
}
