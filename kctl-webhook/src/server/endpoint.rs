//! Processes a request of any webhook: body, permit, function, response. The protocols of admission, conversion and
//! interpreters are [`Endpoint`]s.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, Response, StatusCode, header},
    routing::any,
};
use serde::Serialize;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    Routes,
    body::{self, Bodies},
    memory::{Memory, ResponseBody},
    request::{Progress, RequestState},
    running::Description,
};
use crate::client_limiter::ClientLimiter;

/// The protocol of a webhook: how it decodes a request, calls its function, and writes the response.
///
/// An error is a response with status 200 too, because callers do not show the message of any other response. Only a
/// response that can't be serialized has status 500.
pub trait Endpoint: Send + Sync + 'static {
    /// The measurement of a request, from its head to its response.
    type Measurement: Send;
    /// The body of a response.
    type Response: Serialize + Send;

    /// Returns the maximum length of a request body in bytes.
    fn body_len_max(&self) -> usize;

    /// Returns `true` if the API server carries out a request without the response (`failurePolicy: Ignore`). An error that
    /// arrives before its timeout would reject the request instead.
    fn is_optional(&self) -> bool {
        false
    }

    /// Starts the measurement of a request.
    fn measure(&self) -> Self::Measurement;

    /// Decodes the body, calls the function and returns the response. Sets the uid of `state` once it is decoded, and
    /// `running` before a function is called.
    fn respond(
        &self,
        body: &[u8],
        state: &mut RequestState<Self::Measurement>,
    ) -> impl Future<Output = Self::Response> + Send;

    /// Returns the response to a request that was not read to its end, or ran into its timeout.
    fn reject(&self, code: StatusCode, message: String, state: &mut RequestState<Self::Measurement>) -> Self::Response;
}

/// Bounds on the requests of several routes together.
#[derive(Debug)]
pub struct RequestLimits {
    /// The number of permits, for messages.
    concurrency_max: usize,
    /// Permits of running functions.
    running: Arc<Semaphore>,
    /// Bodies that are being read, at most as many as functions may run. A slow client loses its place to the next one,
    /// and never holds a permit of `running`.
    bodies: Bodies,
}

impl RequestLimits {
    /// Creates the bounds. A `concurrency_max` of 0 counts as 1.
    pub fn new(concurrency_max: usize) -> Arc<Self> {
        let concurrency_max = concurrency_max.max(1);
        let bodies = Bodies { limiter: ClientLimiter::new(concurrency_max), memory: Memory::default() };
        Arc::new(Self { concurrency_max, running: Arc::new(Semaphore::new(concurrency_max)), bodies })
    }

    /// Returns the route of an endpoint. It accepts any HTTP method.
    pub fn route(self: &Arc<Self>, path: String, endpoint: impl Endpoint) -> Routes {
        let (limits, endpoint) = (self.clone(), Arc::new(endpoint));
        let handler = any(move |request: Request| async move { limits.handle(endpoint.as_ref(), request).await });
        Routes { router: Router::new().route(&path, handler), paths: vec![path] }
    }

    /// Handles a request within the timeout of its query.
    async fn handle<E: Endpoint>(&self, endpoint: &E, request: Request) -> Response<Body> {
        let within = body::request_timeout(request.uri());
        let mut state = RequestState::new(endpoint.measure());
        // An API server drops a response without the uid, including its message. For an error, the uid is taken from
        // the received part of the body.
        let mut received = Vec::new();
        let mut abandoned = AbandonedCall { running: Some(state.running.clone()) };
        let respond = self.read_and_respond(endpoint, request, &mut state, &mut received);
        let limit = if endpoint.is_optional() { within } else { body::respond_within(within) };
        let answered = timeout(limit, respond).await;
        abandoned.running = None;
        let answered = answered.unwrap_or_else(|_elapsed| Err(self.timeout_response(within, &state)));
        let response = answered.unwrap_or_else(|Rejection { code, message }| {
            if state.uid.is_empty() {
                state.uid = body::uid_of(&received);
            }
            endpoint.reject(code, message, &mut state)
        });
        let (status, json) = match serde_json::to_vec(&response) {
            Ok(json) => (StatusCode::OK, json),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into_bytes()),
        };
        let mut response = Response::new(Body::new(ResponseBody::new(json, state.resources.memory)));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// Reads the body, waits for a permit, and calls the function.
    ///
    /// The body is read before the request takes a permit. A client that stops sending would hold that permit.
    async fn read_and_respond<E: Endpoint>(
        &self,
        endpoint: &E,
        request: Request,
        state: &mut RequestState<E::Measurement>,
        received: &mut Vec<u8>,
    ) -> Result<E::Response, Rejection> {
        let not_json = body::not_json(request.headers());
        let (body, len_max) = (request.into_body(), endpoint.body_len_max());
        let (body_permit, held) =
            self.bodies.read(body, len_max, &mut state.progress, received).await.map_err(|error| {
                error.uid().unwrap_or_default().clone_into(&mut state.uid);
                Rejection { code: error.code(), message: error.to_string() }
            })?;
        state.resources.memory = Some(Arc::new(held));
        if let Some(message) = not_json {
            return Err(Rejection { code: StatusCode::BAD_REQUEST, message });
        }
        let permit = self.running.clone().acquire_owned().await.map_err(|_closed| Rejection {
            code: StatusCode::SERVICE_UNAVAILABLE,
            message: "the webhook stops".into(),
        })?;
        drop(body_permit);
        state.resources.permit = Some(Arc::new(permit));
        state.progress = Progress::Running;
        Ok(endpoint.respond(received, state).await)
    }

    /// Returns the rejection of a request that ran into its timeout, with what it was waiting for.
    fn timeout_response<M>(&self, within: Duration, state: &RequestState<M>) -> Rejection {
        let why = match (state.running.lock().as_ref(), state.progress) {
            (Some(function), _) => format!("{function} takes longer"),
            (None, Progress::Queued) => format!("{} others run, which is the limit", self.concurrency_max),
            (None, Progress::Receiving | Progress::Running) => "the rest of the request did not come".into(),
        };
        Rejection { code: StatusCode::GATEWAY_TIMEOUT, message: format!("no response within {within:?}: {why}") }
    }
}

/// Logs the running function when its request is dropped, which happens when the client closes the connection: no response
/// can name the function then.
struct AbandonedCall {
    /// The description of the running function; `None` once the request has its response.
    running: Option<Description>,
}

impl Drop for AbandonedCall {
    fn drop(&mut self) {
        let running = self.running.take().and_then(|running| running.lock().clone());
        if let Some(function) = running {
            tracing::warn!("request ended without a response: its client or the server stopped while {function} ran");
        }
    }
}

/// The reason why a request got no response of its function.
struct Rejection {
    code: StatusCode,
    message: String,
}
