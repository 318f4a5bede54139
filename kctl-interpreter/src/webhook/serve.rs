//! The endpoint that all kinds share: bounds, metrics and logs. [`respond`](super::respond) does the rest.

use std::sync::Arc;

use axum::http::StatusCode;
use kctl_webhook::server::{Endpoint, RequestLimits, Routes};

use super::{
    Metrics, WebhookOptions,
    configuration::path_of,
    respond::{RequestState, respond},
    wire::{Response, ResponseContext},
};
use crate::function::Functions;

/// The state that all requests share.
pub(super) struct Shared {
    /// The functions by operation and kind.
    pub(super) functions: Functions,
    /// The metrics, which the registry shares.
    pub(super) metrics: Metrics,
    /// The longest body, in bytes.
    body_len_max: usize,
    limits: Arc<RequestLimits>,
}

impl Shared {
    /// Creates the state. A `concurrency_max` of 0 counts as 1.
    pub(super) fn new(functions: Functions, metrics: &Metrics, options: &WebhookOptions) -> Arc<Self> {
        let limits = RequestLimits::new(options.concurrency_max);
        Arc::new(Self { functions, metrics: metrics.clone(), body_len_max: options.body_len_max, limits })
    }

    /// Returns one route per kind, for any HTTP method, as Karmada's own server accepts it (`ServeHTTP` in
    /// `pkg/webhook/interpreter/http.go`).
    pub(super) fn routes(self: &Arc<Self>) -> Routes {
        let mut paths: Vec<_> = self.functions.rules().iter().map(|rule| path_of(&rule.kind().kind)).collect();
        paths.sort();
        paths.dedup();
        let route = |path| self.limits.route(path, Interpreter(self.clone()));
        paths.into_iter().map(route).fold(Routes::default(), Routes::and)
    }
}

/// The endpoint of Karmada's requests.
///
/// Errors are logged as warnings with their uid: Karmada shows them only to the operator of the control plane.
struct Interpreter(Arc<Shared>);

impl Endpoint for Interpreter {
    type Measurement = ();
    type Response = ResponseContext;

    fn body_len_max(&self) -> usize {
        self.0.body_len_max
    }

    fn measure(&self) {}

    async fn respond(&self, body: &[u8], state: &mut RequestState) -> ResponseContext {
        let response = respond(&self.0.functions, &self.0.metrics, body, state).await;
        if !response.successful {
            let (uid, code, called) = (&response.uid, response.status.code, state.running.lock().clone());
            let message = response.logged.as_ref().unwrap_or(&response.status.message);
            tracing::warn!(uid, code, called, "{message}");
        }
        response.into()
    }

    fn reject(&self, code: StatusCode, message: String, state: &mut RequestState) -> ResponseContext {
        let (uid, code) = (state.uid.clone(), code.as_u16());
        tracing::warn!(uid, code, "{message}");
        // A request that reached its function is counted with the labels of that.
        if state.running.lock().is_none() {
            self.0.metrics.count_rejected(code);
        }
        Response { uid, ..Response::failure(code, message) }.into()
    }
}
