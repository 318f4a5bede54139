//! One call of a webhook: a POST over TLS, bounded in time and size.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::Uri;
pub use kctl_webhook::client::RESPONSE_LEN_MAX;
use kctl_webhook::client::{self, Client, ClientError};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    configuration::{ClientConfig as At, WebhookEntry},
    dial::{self, ServiceError, Services},
    error::{CallError, WebhookClientError},
    patch, request, verify,
};
use crate::operation::{Inputs, Operation};

/// The timeout of a webhook without `timeoutSeconds`: 10 s, as the documentation of Karmada's API
/// says.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
const USER_AGENT: &str = concat!("kctl-interpreter/", env!("CARGO_PKG_VERSION"));

pub(super) struct Caller {
    /// The full name `configuration/webhook`.
    name: String,
    /// The versions of `ResourceInterpreterContext` that the webhook accepts.
    versions: Vec<String>,
    /// The time for a whole call, redirects included.
    timeout: Duration,
    /// The configuration from which the target was made, for comparison with a changed one.
    at: At,
    /// The HTTP client, or the error that each call returns because the address is unusable.
    target: Result<Client, String>,
}

impl Caller {
    /// Creates the client. An unusable address is not an error here, but the error of each call.
    pub(super) fn new(name: &str, webhook: &WebhookEntry, services: Arc<dyn Services>) -> Self {
        let seconds = webhook.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        Self {
            name: name.to_owned(),
            versions: webhook.interpreter_context_versions.clone(),
            timeout: seconds.unwrap_or(TIMEOUT_DEFAULT),
            at: webhook.client_config.clone(),
            target: target(webhook, seconds.unwrap_or(TIMEOUT_DEFAULT), services),
        }
    }

    /// Returns `true` if the client fits a webhook of a changed configuration, so that its
    /// connections can be kept.
    pub(super) fn is_of(&self, name: &str, webhook: &WebhookEntry) -> bool {
        let seconds = webhook.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        self.name == name
            && self.versions == webhook.interpreter_context_versions
            && self.timeout == seconds.unwrap_or(TIMEOUT_DEFAULT)
            && self.at == webhook.client_config
    }

    /// Sends an operation, and returns the result in the form of
    /// [`Op::encode`](crate::operation::Op::encode).
    ///
    /// # Errors
    /// [`WebhookClientError::Call`] without a valid response, and [`WebhookClientError::Patch`] if its patch does not
    /// apply.
    ///
    /// # Cancel safety
    /// Dropping the future closes the request. The webhook may have received it by then.
    pub(super) async fn call(&self, operation: Operation, inputs: &Inputs) -> Result<Value, WebhookClientError> {
        let failed = |reason| WebhookClientError::Call { name: self.name.clone(), reason };
        let until = Instant::now() + self.timeout;
        let reply = self.exchange(operation, inputs, until).await.map_err(failed)?;
        let object = inputs.object().unwrap_or(&Value::Null);
        let result = patch::apply_patch(operation, object, reply, until);
        result.map_err(|problem| WebhookClientError::Patch { name: self.name.clone(), problem })
    }

    /// Sends the request and verifies the response. An error of the Service lookup keeps its type,
    /// although it occurs inside the connection.
    async fn exchange(
        &self,
        operation: Operation,
        inputs: &Inputs,
        until: Instant,
    ) -> Result<verify::WebhookReply, CallError> {
        let uid = request::uid()?;
        let body = request::body(&uid, &self.versions, operation, inputs)?;
        let target = self.target.as_ref().map_err(|problem| CallError::ClientUnusable(problem.clone()))?;
        let response = target.call(&body.into(), until).await;
        let answer: Result<Bytes, ClientError> = response
            .and_then(|response| client::check_response(&response).map_err(|rejected| rejected.to_string().into()));
        let answer = answer.map_err(|failed| match failed.resolver_error::<ServiceError>() {
            Some(unusable) => CallError::Service(unusable.clone()),
            None => CallError::Request(failed.to_string()),
        })?;
        verify::verify(&uid, operation, &answer)
    }
}

/// Creates the HTTP client of a webhook.
///
/// The URL of a Service is `https://<name>.<namespace>.svc:<port>/<path>`; its host name is the one
/// in the certificate. The query carries the timeout, as Karmada's requests do (`callHook` in
/// `pkg/resourceinterpreter/customized/webhook/customized.go`).
///
/// # Errors
/// The configuration has neither a Service nor a URL, or the URL or the CA bundle is invalid.
fn target(webhook: &WebhookEntry, timeout: Duration, services: Arc<dyn Services>) -> Result<Client, String> {
    let config = &webhook.client_config;
    // As in Karmada, a Service takes precedence over a URL (`HookClient` in
    // `k8s.io/apiserver/pkg/util/webhook/client.go`).
    let (url, service) = match (&config.service, &config.url) {
        (Some(service), _) => {
            let (name, namespace, port) = (&service.name, &service.namespace, service.port);
            let path = service.path.trim_start_matches('/');
            (format!("https://{name}.{namespace}.svc:{port}/{path}"), Some(service.clone()))
        }
        (None, Some(url)) => (url.clone(), None),
        (None, None) => return Err("webhook configuration must have either service or URL".into()),
    };
    let uri: Uri = url.parse().map_err(|error| format!("Unparsable webhook URL {url:?}: {error}"))?;
    if uri.scheme_str() != Some("https") || uri.host().is_none_or(str::is_empty) {
        return Err(format!("webhook URL {url:?} must begin with https:// and a host"));
    }
    let query = format!("{}?timeout={}s", uri.path(), timeout.as_secs());
    let mut parts = uri.into_parts();
    parts.path_and_query = Some(query.parse().map_err(|error| format!("webhook path {query:?}: {error}"))?);
    let uri = Uri::from_parts(parts).map_err(|error| error.to_string())?;
    let resolve = move |uri: &Uri| match &service {
        Some(reference) if dial::matches_service(reference, uri) => {
            Ok(Some(dial::endpoint(services.as_ref(), reference)?))
        }
        // The configuration has no Service, or a redirect leads to another host.
        _ => Ok(None),
    };
    Client::new(uri, &config.ca_bundle, USER_AGENT, Arc::new(resolve))
}
