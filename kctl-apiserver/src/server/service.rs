//! The in-process service. Each request runs under the server's lock, and is suspended while it waits for a webhook.
//!
//! A request is processed in these steps: read the body (`read_body`), find the user to impersonate, parse a
//! [`RequestInfo`], and run the verb under the lock (`run_once`). A run that needs a webhook ends; its calls are sent
//! without the lock and the request runs again (`handle`). Finally the response is built (`build_response`), and then
//! indented or compressed.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::{
    audit::{AuditId, Received, audit, audit_other},
    compress::compress,
    deadline, pretty,
    record::{record, trace},
};
use crate::{
    authorizer,
    faults::Connection,
    impersonation,
    limits::BODY_LEN_MAX,
    nonresource,
    request::{Caller, RequestInfo},
    response::{Body, bytes_of, full, reject, respond, warn, yaml},
    state::State,
    status::StatusError,
    store::ChangeOrigin,
    transport::Transport,
    verbs::{self, Payload, VerbResponse, wants_yaml},
    webhook_round::{WebhookCall, WebhookRound},
};

/// The time for the body to arrive, and then the time for all webhook calls of the request: the default of
/// `--request-timeout`. 60 s each. A parameter `timeout` in the query shortens both.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A tower service for `kube::Client` that sends requests to the server without a socket. As on a socket, responses
/// of more than 128 KiB are compressed for clients that send `Accept-Encoding: gzip`.
#[derive(Clone)]
pub struct InProcess {
    /// The state of the server, which all services share.
    state: Arc<Mutex<State>>,
    /// The identity of all requests through this service, which are not authenticated.
    caller: Caller,
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}

impl InProcess {
    /// Creates a service whose requests are from this caller.
    pub(super) fn new(state: Arc<Mutex<State>>, caller: Caller) -> Self {
        Self { state, caller }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (state, caller) = (self.state.clone(), self.caller.clone());
        let (mut parts, body) = request.into_parts();
        Box::pin(async move {
            let (clock, id, _handling) = {
                let mut state = state.lock();
                let id = AuditId::for_request(&mut state.core, &parts.headers);
                (state.store.clock, id, state.core.counts.begin(&parts.method))
            };
            parts.extensions.insert(Received::now(clock));
            parts.extensions.insert(id.clone());
            let read = async {
                let within =
                    deadline::requested_timeout(&parts)?.map_or(REQUEST_TIMEOUT, |time| time.min(REQUEST_TIMEOUT));
                Ok::<_, StatusError>((read_body(body, within).await?, within))
            };
            let response = match read.await {
                Ok((body, within)) => handle(&state, &caller, &parts, body, within).await,
                Err(status_error) => reject_audited(&mut state.lock(), &caller, &parts, &status_error),
            };
            let response = pretty::pretty_print(&parts.uri, &parts.headers, response);
            Ok(id.add_to(compress(&parts, response)))
        })
    }
}

/// Returns the body once it is complete.
///
/// # Errors
/// `Timeout` if it is not complete in time, and `RequestEntityTooLarge` beyond [`BODY_LEN_MAX`].
async fn read_body<B>(body: B, within: Duration) -> Result<Bytes, StatusError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let mut collected = std::pin::pin!(Limited::new(body, BODY_LEN_MAX).collect());
    // Bodies of clients in the process are complete at once: they need no timer.
    let read = match futures::poll!(collected.as_mut()) {
        Poll::Ready(read) => read,
        Poll::Pending => tokio::time::timeout(within, collected).await.map_err(|_late| StatusError::timed_out())?,
    };
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(StatusError::too_large()),
        // The client closed the connection and does not see the message.
        Err(error) => Err(StatusError::bad_request(error.to_string())),
    }
}

/// The outcome of one run of a request.
enum RunOutcome {
    /// The run has ended with this response.
    Done(Response<Body>),
    /// The request runs again after these calls; each has the uid of its review.
    Waits(Transport, Vec<(WebhookCall, String)>),
}

/// Runs a request, from its start each time, until it needs no further webhook call. The replies are collected in
/// `round`. A later run finds the replies to earlier calls, so it takes the same path up to the first open call. All
/// open calls of a run are sent at the same time. A request that runs out of time has written nothing.
async fn handle(
    state: &Arc<Mutex<State>>,
    caller: &Caller,
    parts: &Parts,
    body: Bytes,
    within: Duration,
) -> Response<Body> {
    let impersonated =
        impersonation::impersonate(&*state.lock(), caller, parts).map_err(StatusError::into_filter_error);
    let caller = match impersonated {
        Ok(caller) => caller,
        Err(status_error) => return reject_audited(&mut state.lock(), caller, parts, &status_error),
    };
    let round = Arc::new(WebhookRound::default());
    let end = Instant::now() + within;
    loop {
        let (transport, calls) = match run_once(state, &caller, parts, &body, &round) {
            RunOutcome::Done(response) => return response,
            RunOutcome::Waits(transport, calls) => (transport, calls),
        };
        let sent = calls.into_iter().map(|(call, uid)| {
            let transport = &transport;
            async move {
                let reply = transport.send(&call, uid).await;
                (call, reply)
            }
        });
        match tokio::time::timeout_at(end, futures::future::join_all(sent)).await {
            Ok(replies) => round.add_replies(replies),
            Err(_) => return reject_audited(&mut state.lock(), &caller, parts, &StatusError::timed_out()),
        }
    }
}

/// Audits and rejects a request that reached no verb, or whose webhooks did not reply in time.
fn reject_audited(state: &mut State, caller: &Caller, parts: &Parts, status_error: &StatusError) -> Response<Body> {
    audit_other(state, &parts.into(), Some(caller), status_error.code);
    nonresource::error_response(parts, status_error)
}

/// Runs a request once, under the lock. Afterwards the request was either performed, or it has written nothing and
/// waits. A rejected path is authorized before the client learns why it was rejected, so that a user without permission
/// gets 403 and not 404.
fn run_once(
    state: &Arc<Mutex<State>>,
    caller: &Caller,
    parts: &Parts,
    body: &Bytes,
    round: &Arc<WebhookRound>,
) -> RunOutcome {
    let mut locked = state.lock();
    let registry = locked.store.registry.clone();
    // An APIService may forward the path to another server: it is not parsed as a resource of this one.
    let is_own = !registry.is_remote(parts.uri.path());
    let parsed = is_own.then(|| RequestInfo::parse(&registry, caller.clone(), parts, body.clone(), round));
    let Some(info) = parsed.flatten() else {
        return RunOutcome::Done(run_nonresource(&mut locked, caller, parts));
    };
    let mut info = match info {
        Ok(info) => info,
        Err(status_error) => {
            let status_error =
                authorizer::authorize_unknown(&*locked, &caller.user, parts).err().unwrap_or(status_error);
            return RunOutcome::Done(reject_audited(&mut locked, caller, parts, &status_error));
        }
    };
    if !locked.core.feature_gates.sharded_list_and_watch {
        info.params.remove("shardSelector");
    }
    if info.resource.kind.requests.needs_complete_namespace {
        locked.complete_namespace(&info.namespace);
    }
    let before = locked.store.revision;
    let connection: Option<&Connection> = parts.extensions.get();
    let by = connection.map_or(caller.user.name.as_str(), Connection::client).into();
    locked.store.origin = ChangeOrigin { by, trace: trace(&info).into() };
    let performed = locked.run_repeatably(round, |state| verbs::perform(state, &info));
    locked.store.origin = ChangeOrigin::default();
    let open = round.take_pending();
    if open.is_empty() {
        locked.after_request();
        return RunOutcome::Done(build_response(state, locked, parts, &info, performed));
    }
    debug_assert_eq!(locked.store.revision, before, "a request that waits has written nothing");
    let with_uids = open.into_iter().map(|call| (call, locked.store.rng.uid())).collect();
    RunOutcome::Waits(locked.core.transport.clone(), with_uids)
}

/// Runs a request for a path without a resource of this server, such as `/version`, and audits it.
fn run_nonresource(state: &mut State, caller: &Caller, parts: &Parts) -> Response<Body> {
    // `/readyz` reports whether the disk works, so changes that it rejected earlier are written first.
    if parts.uri.path().starts_with("/readyz") {
        let _checked_below = state.store.write_missed();
    }
    let document = match authorizer::authorize_unknown(&*state, &caller.user, parts) {
        Ok(()) => nonresource::handle(state, &caller.user, parts),
        Err(status_error) => reject(&status_error),
    };
    audit_other(state, &parts.into(), Some(caller), document.status());
    document
}

/// Records a completed request, and builds its response. Only watches use the state after this. The lock is released
/// before a body is serialized, so a large list does not hold up other requests. A watch gets its first events when its
/// body is read.
fn build_response(
    state: &Arc<Mutex<State>>,
    mut locked: MutexGuard<'_, State>,
    parts: &Parts,
    info: &RequestInfo,
    performed: Result<VerbResponse, StatusError>,
) -> Response<Body> {
    let performed = performed.map_err(|status_error| deadline::within(parts, status_error));
    let code = performed.as_ref().map_or_else(|status_error| status_error.code, |response| response.code);
    let connection: Option<&Connection> = parts.extensions.get();
    let client = connection.map(|connection| connection.client().to_owned());
    record(&mut locked.core, info, client, code, performed.as_ref().ok());
    audit(&mut locked, info, parts, code);
    drop(locked);
    let mut response = match performed {
        Err(status_error) => nonresource::error_response(parts, &status_error),
        Ok(VerbResponse { payload: Payload::Watch(start), .. }) => {
            let start = start.with_faults(connection);
            let body = start.stream(state.clone()).map(|bytes| Ok(http_body::Frame::data(bytes)));
            respond(StatusCode::OK, "application/json", StreamBody::new(body).boxed_unsync())
        }
        Ok(VerbResponse { code, payload: Payload::Json(object) }) if wants_yaml(info) => {
            respond(code, "application/yaml", full(yaml(&object)))
        }
        Ok(VerbResponse { code, payload: Payload::Json(object) }) => {
            respond(code, "application/json", full(bytes_of(&object)))
        }
        Ok(VerbResponse { code, payload: Payload::Plain(log) }) => {
            let mut response = respond(code, "text/plain", full(log.into_bytes()));
            if code == StatusCode::NO_CONTENT {
                response.headers_mut().remove(header::CONTENT_TYPE);
            }
            response
        }
        Ok(VerbResponse { code, payload: Payload::Text { line, .. } }) => {
            respond(code, "application/json", Full::new(line).boxed_unsync())
        }
    };
    warn(&mut response, info.round.warnings());
    response
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;
    use crate::ApiServer;

    /// Returns a body that arrives in this many pieces, each after a pause.
    fn slow(
        n_pieces: usize,
        pause: Duration,
    ) -> impl http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static {
        let pieces = futures::stream::iter(0..n_pieces).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(http_body::Frame::data(Bytes::from_static(b" ")))
        });
        StreamBody::new(pieces.chain(futures::stream::once(async {
            Ok(http_body::Frame::data(Bytes::from_static(br#"{"metadata":{"name":"a"}}"#)))
        })))
    }

    #[tokio::test(start_paused = true)]
    async fn slow_body_times_out() {
        let server = ApiServer::new();
        for (n_pieces, pause, expected) in [(59, 1, 201), (61, 1, 504), (1, 3_600, 504)] {
            let request = Request::post("/api/v1/namespaces").body(slow(n_pieces, Duration::from_secs(pause))).unwrap();
            let start = Instant::now();
            let code = server.service().oneshot(request).await.unwrap().status().as_u16();
            assert_eq!(code, expected, "{n_pieces} pieces");
            assert!(start.elapsed() <= REQUEST_TIMEOUT, "{n_pieces} pieces: {:?}", start.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_answer_has_the_id_of_its_request() {
        let ask = async |server: &ApiServer, path: &str, id: Option<&str>| {
            let request = Request::get(path).header("audit-id", id.unwrap_or_default());
            let response = server.service().oneshot(request.body(Full::<Bytes>::default()).unwrap()).await.unwrap();
            response.headers()["audit-id"].to_str().unwrap().to_owned()
        };
        let (first, same, other) = (ApiServer::seeded(1), ApiServer::seeded(1), ApiServer::seeded(2));
        for path in ["/api/v1/namespaces", "/livez", "/nope", "/api/v1/pods/x?timeout=x", "/api/v1/pods?watch=true"] {
            let id = ask(&first, path, None).await;
            assert_eq!(id.len(), 36, "{path}");
            assert_eq!(id, ask(&same, path, None).await, "{path}");
            assert_ne!(id, ask(&other, path, None).await, "{path}");
            assert_eq!(ask(&first, path, Some("mine")).await, "mine", "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn request_times_out_after_its_timeout_parameter() {
        let server = ApiServer::new();
        let namespaces = "/api/v1/namespaces";
        for (query, code, message) in [
            ("timeout=x", 400, "timeout: "),
            ("timeout=5", 400, "timeout: "),
            ("timeout=-1s", 200, ""),
            ("timeout=0", 200, ""),
            ("timeout=", 200, ""),
            ("timeout=x&watch=true", 200, ""),
            ("resourceVersion=999999&timeout=500ms", 504, "the request took longer"),
            ("resourceVersion=999999&timeout=5s", 504, "Timeout: Too large resource version: 999999"),
        ] {
            let request = Request::get(format!("{namespaces}?{query}")).body(Full::<Bytes>::default()).unwrap();
            let response = server.service().oneshot(request).await.unwrap();
            assert_eq!(response.status(), code, "{query}");
            if code != 200 {
                let body = response.into_body().collect().await.unwrap().to_bytes();
                let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                assert!(body["message"].as_str().unwrap().starts_with(message), "{query}: {body}");
            }
        }
        let slow = Request::post(format!("{namespaces}?timeout=2s")).body(slow(9, Duration::from_secs(1))).unwrap();
        let start = Instant::now();
        assert_eq!(server.service().oneshot(slow).await.unwrap().status(), 504);
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn every_request_is_audited_with_its_latency() {
        let server = ApiServer::new();
        let file = std::env::temp_dir().join(format!("kctl-audit-{}.log", std::process::id()));
        let _absent = std::fs::remove_file(&file);
        server.audit_to(&file).unwrap();
        let jane = || server.service_as(crate::User { name: "jane".into(), groups: Vec::new() });
        let empty = || Full::<Bytes>::default();
        let request = |path: &str| Request::get(path).body(empty()).unwrap();
        let posted = Request::post("/api/v1/namespaces").body(slow(2, Duration::from_secs(1))).unwrap();
        server.service().oneshot(posted).await.unwrap();
        server.service().oneshot(request("/api/v1/nothings")).await.unwrap();
        server.service().oneshot(request("/version")).await.unwrap();
        let other = Request::get("/api/v1/pods").header("impersonate-user", "john").body(empty()).unwrap();
        jane().oneshot(other).await.unwrap();
        let late = Request::post("/api/v1/namespaces").body(slow(100, Duration::from_secs(1))).unwrap();
        server.service().oneshot(late).await.unwrap();
        let log = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let events: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (event, (verb, path, code, user, took)) in events.iter().zip([
            ("create", "/api/v1/namespaces", 201, "kubernetes-admin", 2),
            ("get", "/api/v1/nothings", 404, "kubernetes-admin", 0),
            ("get", "/version", 200, "kubernetes-admin", 0),
            ("get", "/api/v1/pods", 403, "jane", 0),
            ("post", "/api/v1/namespaces", 504, "kubernetes-admin", 60),
        ]) {
            assert_eq!((&event["verb"], &event["requestURI"]), (&verb.into(), &path.into()), "{event}");
            assert_eq!((&event["responseStatus"]["code"], &event["user"]["username"]), (&code.into(), &user.into()));
            let time = |name: &str| event[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
            let passed = time("stageTimestamp").as_second() - time("requestReceivedTimestamp").as_second();
            assert_eq!(passed, took, "{event}");
            let latency = event["annotations"]["apiserver.latency.k8s.io/total"].as_str().unwrap();
            assert_eq!(event["auditID"].as_str().unwrap().len(), 36, "{event}");
            assert!(latency.starts_with(&(took * 1000).to_string()) && latency.ends_with("ms"), "{latency}");
        }
        assert_eq!(events.len(), 5);
    }
}
