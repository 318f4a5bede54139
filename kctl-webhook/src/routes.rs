//! HTTP routes: one path for each admission function, and one for all conversions.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;

use crate::{
    admission::{self, FailurePolicy, Webhook},
    call::RequestState,
    conversion::{self, Conversions},
    metrics::{self, Measurement, Metrics},
    server::{Endpoint, RequestLimits, Routes},
};

/// Maximum number of requests that run at a time, and of further ones whose bodies are being read. At the second bound,
/// the body that has been incomplete for the longest gives way. If all are complete, a new request waits.
const CONCURRENCY_MAX: usize = 64;

/// Returns the routes of admission and conversion functions, for [`Server`](crate::server::Server)
/// or an axum router of your own.
///
/// At most 64 requests run at a time, over all paths. `metrics` counts them.
///
/// ```
/// use axum::{body::{Body, to_bytes}, http::Request};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kctl_webhook::{FunctionInfo, Metrics, admission::{Action, Denial, Options, Webhook}, conversion::Conversions, routes};
/// use serde_json::{Value, json};
/// use tower::ServiceExt;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let webhook = Webhook::object(
///     FunctionInfo::new("frozen", file!(), line!()),
///     Options::new(Action::Validate),
///     |_config: ConfigMap, _request| async { Err(Denial::because("no changes on Fridays")) },
/// );
/// let routes = routes(&[webhook], Conversions::default(), &Metrics::default())?;
/// assert_eq!(routes.paths, ["/validate--v1-configmap"]);
///
/// // An API server sends this:
/// let review = json!({
///     "apiVersion": "admission.k8s.io/v1",
///     "kind": "AdmissionReview",
///     "request": {
///         "uid": "1", "operation": "CREATE", "name": "web", "kind": { "version": "v1", "kind": "ConfigMap" },
///         "object": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "web" } },
///     },
/// });
/// let request = Request::post("/validate--v1-configmap").header("content-type", "application/json");
/// let response = routes.router.oneshot(request.body(Body::from(review.to_string()))?).await?;
/// let answer: Value = serde_json::from_slice(&to_bytes(response.into_body(), 1 << 20).await?)?;
/// assert_eq!(answer["response"]["allowed"], false);
/// assert_eq!(answer["response"]["status"]["message"], "no changes on Fridays");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Two functions handle the same kind in the same way, a selector is invalid, or a kind lacks a subresource.
pub fn routes(
    webhooks: &[Webhook],
    conversions: Conversions,
    metrics: &Metrics,
) -> Result<Routes, admission::RegistrationError> {
    admission::check(webhooks)?;
    let limits = RequestLimits::new(CONCURRENCY_MAX);
    let mut routes = Routes::default();
    for webhook in webhooks {
        let path = webhook.path();
        let endpoint = Admission { webhook: webhook.clone(), path: path.clone(), metrics: metrics.clone() };
        routes = routes.and(limits.route(path, endpoint));
    }
    if !conversions.is_empty() {
        let endpoint = Conversion { conversions: Arc::new(conversions), metrics: metrics.clone() };
        routes = routes.and(limits.route(conversion::PATH.into(), endpoint));
    }
    Ok(routes)
}

struct Admission {
    webhook: Webhook,
    path: String,
    metrics: Metrics,
}

impl Endpoint for Admission {
    type Measurement = Measurement;
    type Response = Value;

    fn body_len_max(&self) -> usize {
        admission::BODY_LEN_MAX
    }

    fn is_optional(&self) -> bool {
        self.webhook.options().failure_policy == FailurePolicy::Ignore
    }

    fn measure(&self) -> Measurement {
        self.metrics.begin(&self.path, metrics::Endpoint::Admission)
    }

    async fn respond(&self, body: &[u8], state: &mut RequestState) -> Value {
        let review = admission::respond(&self.webhook, body, state).await;
        tracing::debug!(path = self.path, response = %review["response"]["status"], "answered");
        review
    }

    fn reject(&self, code: StatusCode, message: String, state: &mut RequestState) -> Value {
        tracing::warn!(path = self.path, uid = state.uid, code = code.as_u16(), "{message}");
        state.measurement.code(code.as_u16());
        admission::failed_response(&state.uid, code, message)
    }
}

/// The endpoint of all conversions.
struct Conversion {
    conversions: Arc<Conversions>,
    metrics: Metrics,
}

impl Endpoint for Conversion {
    type Measurement = Measurement;
    type Response = Value;

    /// Returns a higher bound than for admission: conversions carry many objects at once.
    fn body_len_max(&self) -> usize {
        conversion::BODY_LEN_MAX
    }

    fn measure(&self) -> Measurement {
        self.metrics.begin(conversion::PATH, metrics::Endpoint::Conversion)
    }

    async fn respond(&self, body: &[u8], state: &mut RequestState) -> Value {
        conversion::respond(&self.conversions, body, state).await
    }

    fn reject(&self, code: StatusCode, message: String, state: &mut RequestState) -> Value {
        state.measurement.code(code.as_u16());
        conversion::failure_response(&state.uid, code.as_u16(), &message)
    }
}
