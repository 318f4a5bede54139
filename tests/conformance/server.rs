//! Sends a request to either of the two servers, and returns status code, headers and body.

use std::path::Path;

use http::{HeaderMap, Request, header::AUTHORIZATION};
use http_body_util::BodyExt;
use kctl_apiserver::{ApiServer, ControllerOptions, FeatureGates, InProcess};
use kube::client::Body;
use tower::ServiceExt;

use crate::hook::{self, Hook};

/// Time limit of a request.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Pause after a write of a webhook configuration or a policy, because the real server reads them from a cache.
const CONFIG_CACHE_DELAY: std::time::Duration = std::time::Duration::from_millis(2_500);

/// Pause after a write of a Namespace, because the real server's `PodSecurity` plugin reads its labels from a cache.
const LABEL_CACHE_DELAY: std::time::Duration = std::time::Duration::from_millis(300);

/// The server under test, and the webhook that it calls.
pub(crate) struct Server {
    connection: Connection,
    pub(crate) hook: Hook,
    pub(crate) hook_url: String,
    pub(crate) hook_trusted: String,
}

enum Connection {
    Embedded(ApiServer),
    /// A client with the administrator's certificate, and one without credentials for requests with a token. A client
    /// certificate would take precedence over a token.
    Real(kube::Client, kube::Client),
}

impl Server {
    /// Starts an embedded server with its controllers.
    pub(crate) fn embedded() -> Self {
        let server = ApiServer::new();
        server.set_feature_gates(FeatureGates::default().sharded_list_and_watch(true));
        // Like the recorded server, this one has no ServiceAccount controllers and does not use the `ServiceAccount`
        // admission plugin.
        tokio::spawn(server.controllers_with(&ControllerOptions::default().without_service_accounts()));
        let hook = Hook::default();
        let answering = hook.clone();
        server.serve_webhook(hook::IN_PROCESS, move |request| {
            let hook = answering.clone();
            async move { hook.handle(request).await }
        });
        Self {
            connection: Connection::Embedded(server),
            hook,
            hook_url: format!("https://{}", hook::IN_PROCESS),
            hook_trusted: String::new(),
        }
    }

    pub(crate) async fn real(kubeconfig: &Path) -> Self {
        let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).expect("REAL_SERVER names a kubeconfig file");
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.expect("the kubeconfig is valid");
        // Errors are responses to compare, so the client must not retry them.
        config.default_retry = false;
        let hook = Hook::default();
        let (hook_url, hook_trusted) = hook.serve().await;
        let mut anonymous = config.clone();
        anonymous.auth_info = kube::config::AuthInfo::default();
        let client = |config| kube::Client::try_from(config).expect("TLS is set up");
        let connection = Connection::Real(client(config), client(anonymous));
        Self { connection, hook, hook_url, hook_trusted }
    }

    /// Returns `true` for a real kube-apiserver.
    pub(crate) fn is_real(&self) -> bool {
        matches!(self.connection, Connection::Real(..))
    }

    /// Sends a request and returns status code, headers and body. Panics after `TIMEOUT`.
    pub(crate) async fn send(&self, request: Request<Vec<u8>>) -> (u16, HeaderMap, Vec<u8>) {
        let what = format!("{} {}", request.method(), request.uri());
        let configures = request.method() != http::Method::GET
            && request.uri().path().starts_with("/apis/admissionregistration.k8s.io/")
            && !request.uri().query().unwrap_or_default().contains("dryRun=All");
        let namespace = request.uri().path().strip_prefix("/api/v1/namespaces/");
        let labels =
            ["PATCH", "PUT"].contains(&request.method().as_str()) && namespace.is_some_and(|name| !name.contains('/'));
        let response = tokio::time::timeout(TIMEOUT, self.exchange(request.map(Body::from))).await;
        let is_done = response.as_ref().is_ok_and(|(code, ..)| *code < 300);
        let pauses = [(configures && is_done, CONFIG_CACHE_DELAY), (labels, LABEL_CACHE_DELAY)];
        for (_, pause) in pauses.into_iter().filter(|(is_needed, _)| *is_needed && self.is_real()) {
            tokio::time::sleep(pause).await;
        }
        response.unwrap_or_else(|_| panic!("no response to {what} within {TIMEOUT:?}"))
    }

    async fn exchange(&self, request: Request<Body>) -> (u16, HeaderMap, Vec<u8>) {
        match &self.connection {
            Connection::Embedded(server) => {
                let response = service(server, &request).oneshot(request).await.unwrap_or_else(|never| match never {});
                let (head, body) = response.into_parts();
                let bytes = body.collect().await.unwrap_or_else(|never| match never {}).to_bytes();
                (head.status.as_u16(), head.headers, bytes.to_vec())
            }
            Connection::Real(admin, anonymous) => {
                let client = if token(&request).is_some() { anonymous } else { admin };
                let (head, body) = client.send(request).await.expect("the real server responds").into_parts();
                let bytes = body.collect().await.expect("the response body is complete").to_bytes();
                (head.status.as_u16(), head.headers, bytes.to_vec())
            }
        }
    }
}

/// Returns the bearer token of a request. Requests without one are sent as the administrator.
fn token(request: &Request<Body>) -> Option<&str> {
    request.headers().get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn service(server: &ApiServer, request: &Request<Body>) -> InProcess {
    let Some(token) = token(request) else { return server.service() };
    let user = server.authenticate(token).expect("the token of a request is one of a service account");
    server.service_as(user)
}
