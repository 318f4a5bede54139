//! Connections with a plugin's credential. A new token is sent with the next request; a new certificate needs
//! new connections.

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
    answer::Answer,
    plugin::{Credential, Plugin},
    ways::{Limits, Ways},
};

/// A service that authenticates with a plugin. Clones share the state.
#[derive(Clone)]
pub(super) struct Renewed {
    plugin: Arc<Plugin>,
    /// The configuration without the plugin.
    config: Arc<Config>,
    limits: Limits,
    now: Arc<Mutex<Now>>,
}

/// The connections of the current credential. Watches of an older one stay open until they end.
struct Now {
    of: Arc<Credential>,
    ways: Ways,
}

impl Renewed {
    /// Returns the current credential and its connections.
    ///
    /// # Errors
    /// Certificates, keys or the server name cannot be read.
    async fn ways(&self) -> kube::Result<(Arc<Credential>, Ways)> {
        let credential = self.plugin.credential().await;
        let mut now = self.now.lock();
        if !Arc::ptr_eq(&now.of, &credential) {
            if !now.of.has_identity_of(&credential) {
                now.ways = connect(&self.config, &credential, self.limits)?;
            }
            now.of = credential.clone();
        }
        Ok((credential, now.ways.clone()))
    }

    pub(super) fn new(plugin: Arc<Plugin>, config: Config, limits: Limits) -> kube::Result<Self> {
        let of = plugin.held();
        let ways = connect(&config, &of, limits)?;
        Ok(Self { plugin, config: Arc::new(config), limits, now: Arc::new(Mutex::new(Now { of, ways })) })
    }
}

fn connect(config: &Config, credential: &Credential, limits: Limits) -> kube::Result<Ways> {
    let mut config = config.clone();
    credential.identify(&mut config.auth_info);
    Ways::of(&config, limits)
}

impl Service<Request<Body>> for Renewed {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (credential, mut ways) = this.ways().await?;
            if let Some(token) = &credential.token {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            let answer = ways.call(request).await?;
            if answer.status() == StatusCode::UNAUTHORIZED {
                this.plugin.refused(&credential);
            }
            Ok(answer)
        })
    }
}
