//! HTTP routes: one path for each admission function, and one for all conversions.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Response, StatusCode, header},
    routing::any,
};
use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    admission::{self, Rule},
    call::RequestState,
    conversion::{self, Conversions},
    metrics::{Endpoint, Metrics},
    server::{
        Routes,
        body::{self, Bodies, BodyError, Progress},
        memory::{Answer, Memory},
    },
    slots::Slots,
};

/// Maximum number of requests that run at a time, and of bodies that are read at a time; others
/// wait.
const CONCURRENCY_MAX: usize = 64;

/// State that all routes share.
struct RouteState {
    metrics: Metrics,
    /// Permits of running functions: [`CONCURRENCY_MAX`] over all paths.
    requests: Arc<Semaphore>,
    /// Bodies that are being read. A slow client loses its slot to the next one, and never holds a permit.
    bodies: Bodies,
}

/// One path and its handler.
#[derive(Clone)]
struct Route {
    path: Arc<str>,
    handler: Handler,
    shared: Arc<RouteState>,
}

/// The handler of a path.
#[derive(Clone)]
enum Handler {
    Admission(Arc<Rule>),
    Conversion(Arc<Conversions>),
}

/// Returns the routes of admission and conversion functions, for [`Server`](crate::server::Server)
/// or an axum router of your own.
///
/// At most 64 requests run at a time, over all paths. `metrics` counts them.
///
/// ```
/// use axum::{body::{Body, to_bytes}, http::Request};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kctl_webhook::{About, Metrics, admission::{Action, Denial, Options, Rule}, conversion::Conversions, routes};
/// use serde_json::{Value, json};
/// use tower::ServiceExt;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rule = Rule::object(
///     About::new("frozen", file!(), line!()),
///     Options::of(Action::Validate),
///     |_config: ConfigMap, _request| async { Err(Denial::because("no changes on Fridays")) },
/// );
/// let routes = routes(&[rule], Conversions::default(), &Metrics::default())?;
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
/// Two functions handle the same kind in the same way, or a selector is invalid.
pub fn routes(rules: &[Rule], conversions: Conversions, metrics: &Metrics) -> Result<Routes, admission::FunctionTwice> {
    admission::check(rules)?;
    let requests = Arc::new(Semaphore::new(CONCURRENCY_MAX));
    let bodies = Bodies { slots: Slots::new(CONCURRENCY_MAX), memory: Memory::default() };
    let shared = Arc::new(RouteState { metrics: metrics.clone(), requests, bodies });
    let mut routes = Routes::default();
    let mut add = |path: String, handler: Handler| {
        let route = Route { path: path.as_str().into(), handler, shared: shared.clone() };
        routes.router =
            std::mem::take(&mut routes.router).merge(Router::new().route(&path, any(answer)).with_state(route));
        routes.paths.push(path);
    };
    for rule in rules {
        add(rule.path(), Handler::Admission(Arc::new(rule.clone())));
    }
    if !conversions.is_empty() {
        add(conversion::PATH.into(), Handler::Conversion(Arc::new(conversions)));
    }
    Ok(routes)
}

impl Handler {
    /// Returns the label that metrics use for the path.
    fn endpoint(&self) -> Endpoint {
        match self {
            Self::Admission(_) => Endpoint::Admission,
            Self::Conversion(_) => Endpoint::Conversion,
        }
    }

    /// Returns the maximum length of a request body in bytes. Conversions carry many objects at once.
    fn len_max(&self) -> usize {
        match self {
            Self::Admission(_) => admission::BODY_LEN_MAX,
            Self::Conversion(_) => conversion::BODY_LEN_MAX,
        }
    }

    /// Calls the function and returns the review with its response.
    async fn respond(&self, body: &[u8], state: &mut RequestState) -> Value {
        match self {
            Self::Admission(rule) => admission::respond(rule, body, state).await,
            Self::Conversion(conversions) => conversion::respond(conversions, body, state).await,
        }
    }

    /// Returns the response to a request whose body was not read to its end.
    fn unread(&self, uid: &str, code: StatusCode, text: String) -> Value {
        match self {
            Self::Admission(_) => admission::given_up(uid, code, text),
            Self::Conversion(_) => conversion::failed(uid, &text),
        }
    }

    /// Returns the response to a request that ran into its timeout, with what it was waiting for.
    fn late(&self, within: Duration, state: &RequestState) -> Value {
        let called = state.running.lock().clone();
        let why = match (called, state.progress) {
            (Some(called), _) => format!("{called} takes longer"),
            (None, Progress::Queued) => format!("{CONCURRENCY_MAX} others run, which is the limit"),
            (None, Progress::Receiving | Progress::Running) => "the rest of the request did not come".to_owned(),
        };
        let text = format!("no answer within {within:?}: {why}");
        match self {
            Self::Admission(_) => {
                tracing::warn!(uid = state.uid, "{text}");
                admission::given_up(&state.uid, StatusCode::GATEWAY_TIMEOUT, text)
            }
            Self::Conversion(_) => conversion::failed(&state.uid, &text),
        }
    }
}

/// Answers a request. Each failure is a response with status 200: an API server does not show the
/// message of any other one.
async fn answer(State(route): State<Route>, request: Request<Body>) -> Response<Body> {
    let Route { path, handler, shared } = route;
    let within = body::time_of(request.uri());
    let measurement = shared.metrics.begin(&path, handler.endpoint());
    let mut state = RequestState {
        measurement,
        uid: String::new(),
        running: Arc::default(),
        permit: None,
        memory: None,
        progress: Progress::default(),
    };
    let mut received = Vec::new();
    let answered = timeout(within, read_and_answer(&handler, &shared, request, &mut state, &mut received)).await;
    let value = answered.unwrap_or_else(|_elapsed| {
        if state.uid.is_empty() {
            state.uid = body::uid_of(&received);
        }
        handler.late(within, &state)
    });
    tracing::debug!(%path, response = %value["response"]["status"], "answered");
    let mut response = Response::new(Body::new(Answer::new(value.to_string(), state.memory)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Reads the body, waits for a permit to run, and calls the function.
///
/// `received` gets the bytes of the body, from which an error response takes the uid. An API server drops a response
/// without it, including its message.
async fn read_and_answer(
    handler: &Handler,
    shared: &RouteState,
    request: Request<Body>,
    state: &mut RequestState,
    received: &mut Vec<u8>,
) -> Value {
    let not_json = body::not_json(request.headers());
    // The body is read before the request takes a permit. A client that stops sending would hold that permit.
    let (body, len_max) = (request.into_body(), handler.len_max());
    let (slot, held) = match shared.bodies.read(body, len_max, &mut state.progress, received).await {
        Ok(read) => read,
        Err(error) => {
            let (code, uid) = match &error {
                BodyError::TooLong { uid, .. } => (StatusCode::PAYLOAD_TOO_LARGE, uid.clone()),
                BodyError::Broken(_) => (StatusCode::BAD_REQUEST, body::uid_of(received)),
                BodyError::TooSlow => (StatusCode::REQUEST_TIMEOUT, body::uid_of(received)),
                BodyError::NoRoom { .. } => (StatusCode::TOO_MANY_REQUESTS, body::uid_of(received)),
            };
            state.measurement.code(code.as_u16());
            return handler.unread(&uid, code, error.to_string());
        }
    };
    state.memory = Some(Arc::new(held));
    if let Some(text) = not_json {
        state.measurement.code(StatusCode::BAD_REQUEST.as_u16());
        return handler.unread(&body::uid_of(received), StatusCode::BAD_REQUEST, text);
    }
    let Ok(permit) = shared.requests.clone().acquire_owned().await else {
        let uid = body::uid_of(received);
        return handler.unread(&uid, StatusCode::SERVICE_UNAVAILABLE, "the webhook stops".into());
    };
    drop(slot);
    state.permit = Some(Arc::new(permit));
    state.progress = Progress::Running;
    handler.respond(received, state).await
}
