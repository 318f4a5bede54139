//! The HTTP handler: routes, the bounds of requests, and the timeout. [`respond`](super::respond)
//! does the rest.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Request, Response, StatusCode, header},
    routing::any,
};
use kctl_webhook::{
    server::{
        Routes,
        body::{self, Bodies, BodyError},
        memory::{Answer, Memory},
    },
    slots::Slots,
};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Metrics, WebhookOptions,
    configuration::path_of,
    respond::{Place, Progress, respond},
    wire::{self, ResponseContext},
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
    /// Permits for running functions.
    requests: Arc<Semaphore>,
    /// Bodies that are being received, as many as functions run.
    bodies: Bodies,
    /// The number of permits, for messages.
    concurrency_max: usize,
}

impl Shared {
    /// Creates the state. A `concurrency_max` of 0 counts as 1.
    pub(super) fn new(functions: Functions, metrics: &Metrics, options: &WebhookOptions) -> Arc<Self> {
        let concurrency_max = options.concurrency_max.max(1);
        let requests = Arc::new(Semaphore::new(concurrency_max));
        let bodies = Bodies { slots: Slots::new(concurrency_max), memory: Memory::default() };
        let (metrics, body_len_max) = (metrics.clone(), options.body_len_max);
        Arc::new(Self { functions, metrics, body_len_max, requests, bodies, concurrency_max })
    }

    /// Returns one route per kind, for any HTTP method, as Karmada's own server accepts it.
    pub(super) fn routes(self: &Arc<Self>) -> Routes {
        let mut paths: Vec<_> = self.functions.rules().iter().map(|rule| path_of(&rule.kind().kind)).collect();
        paths.sort();
        paths.dedup();
        let router = paths.iter().fold(Router::new(), |router, path| router.route(path, any(interpret)));
        Routes { router: router.with_state(self.clone()), paths }
    }
}

/// Handles a request within the timeout of its query, at most 30 s.
///
/// The response always has the status 200, because Karmada does not read the body of any other. A
/// body is received before the request waits for a permit: a client that never sends the rest would
/// otherwise keep a permit. Errors are logged as warnings with their uid.
async fn interpret(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let within = body::time_of(request.uri());
    let refuse = |code: StatusCode, text: String| {
        shared.metrics.refused(code.as_u16());
        wire::Response::failed(code.as_u16(), text)
    };
    let mut progress = Progress::default();
    let mut read = body::Progress::default();
    // Karmada drops a response without the uid, with its message. For an error, the uid is taken from the received part
    // of the body.
    let mut received = Vec::new();
    let mut memory = None;
    let answered = timeout(within, async {
        let not_json = body::not_json(request.headers());
        // The body is read before the request takes a slot among the running ones. A client that stops sending would
        // hold that slot.
        let body = request.into_body();
        let len_max = shared.body_len_max;
        let (slot, held) = match shared.bodies.read(body, len_max, &mut read, &mut received).await {
            Ok(read) => read,
            Err(error) => {
                let (code, uid) = match &error {
                    BodyError::TooLong { uid, .. } => (StatusCode::PAYLOAD_TOO_LARGE, uid.clone()),
                    BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, body::uid_of(&received)),
                    BodyError::NoRoom { .. } => (StatusCode::TOO_MANY_REQUESTS, body::uid_of(&received)),
                    _ => (StatusCode::BAD_REQUEST, body::uid_of(&received)),
                };
                return wire::Response { uid, ..refuse(code, error.to_string()) };
            }
        };
        memory = Some(Arc::new(held));
        if let Some(text) = not_json {
            return wire::Response { uid: body::uid_of(&received), ..refuse(StatusCode::BAD_REQUEST, text) };
        }
        let Ok(permit) = shared.requests.clone().acquire_owned().await else {
            let uid = body::uid_of(&received);
            return wire::Response { uid, ..refuse(StatusCode::SERVICE_UNAVAILABLE, "the webhook stops".into()) };
        };
        drop(slot);
        read = body::Progress::Running;
        let place = Place { _permit: permit, _memory: memory.clone() };
        respond(&shared.functions, &shared.metrics, &received, place, &mut progress).await
    });
    let response = answered.await.unwrap_or_else(|_elapsed| {
        let code = StatusCode::GATEWAY_TIMEOUT;
        let late = |why: String| format!("no answer within {within:?}: {why}");
        if let Some(called) = &progress.called {
            let text = late(format!("{called} takes longer"));
            return wire::Response { uid: progress.uid.clone(), ..wire::Response::failed(code.as_u16(), text) };
        }
        // The request reached no function, so only `refuse` counts it in the metrics.
        let why = match read {
            body::Progress::Queued => format!("{} others run, which is the limit", shared.concurrency_max),
            _ => "the rest of the request did not come".into(),
        };
        wire::Response { uid: body::uid_of(&received), ..refuse(code, late(why)) }
    });
    if !response.successful {
        let wire::Response { uid, status, .. } = &response;
        // The message of a timeout already names the function.
        let called = progress.called.as_deref().filter(|called| !status.message.contains(called));
        tracing::warn!(uid, code = status.code, called, "{}", status.message);
    }
    let json = serde_json::to_vec(&ResponseContext::from(response)).unwrap_or_default();
    let mut response = Response::new(Body::new(Answer::new(json, memory)));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}
