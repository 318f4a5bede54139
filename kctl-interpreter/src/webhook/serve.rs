//! The routes, and the limits of requests: from HTTP to [`respond`](super::respond) and back.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Request, Response, StatusCode, header},
    routing::any,
};
use kctl_webhook::server::{
    Routes,
    body::{self, BodyError},
};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Metrics, WebhookOptions,
    configuration::path_of,
    respond::respond,
    wire::{self, ResponseContext},
};
use crate::function::Functions;

/// What all requests share.
pub(super) struct Shared {
    pub(super) functions: Functions,
    pub(super) metrics: Metrics,
    body_len_max: usize,
    requests: Semaphore,
}

impl Shared {
    pub(super) fn new(functions: Functions, metrics: &Metrics, options: &WebhookOptions) -> Arc<Self> {
        let requests = Semaphore::new(options.concurrency_max.max(1));
        Arc::new(Self { functions, metrics: metrics.clone(), body_len_max: options.body_len_max, requests })
    }

    pub(super) fn routes(self: &Arc<Self>) -> Routes {
        let mut paths: Vec<_> = self.functions.rules().iter().map(|rule| path_of(rule.kind())).collect();
        paths.sort();
        paths.dedup();
        let router = paths.iter().fold(Router::new(), |router, path| router.route(path, any(interpret)));
        Routes { router: router.with_state(self.clone()), paths }
    }
}

/// Answers a request. Every failure is an answer of status 200: of any other, Karmada loses the text.
async fn interpret(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let within = body::time_of(request.uri());
    let refuse = |code: StatusCode, text: String| {
        shared.metrics.refused(code.as_u16());
        wire::Response::failed(code.as_u16(), text)
    };
    let mut is_counted = false;
    let answered = timeout(within, async {
        if let Some(text) = body::not_json(request.headers()) {
            return refuse(StatusCode::BAD_REQUEST, text);
        }
        // Before the body is read: waiting requests hold no memory.
        let _permit = shared.requests.acquire().await;
        match body::read(request.into_body(), shared.body_len_max).await {
            Ok(body) => {
                is_counted = true;
                respond(&shared.functions, &shared.metrics, &body).await
            }
            Err(error @ BodyError::TooLong(_)) => refuse(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            Err(error) => refuse(StatusCode::BAD_REQUEST, error.to_string()),
        }
    });
    let response = answered.await.unwrap_or_else(|_elapsed| {
        let code = StatusCode::GATEWAY_TIMEOUT.as_u16();
        // One that waited for its turn, or for the rest of its body, reached no function that would count it.
        if !is_counted {
            shared.metrics.refused(code);
        }
        wire::Response::failed(code, format!("no answer within {within:?}"))
    });
    if !response.successful {
        tracing::warn!(uid = response.uid, code = response.status.code, "{}", response.status.message);
    }
    let json = serde_json::to_vec(&ResponseContext::from(response)).unwrap_or_default();
    let mut response = Response::new(Body::from(json));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}
