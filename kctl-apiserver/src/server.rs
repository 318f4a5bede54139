//! The server: one locked state, and a tower service over it.

use std::{
    convert::Infallible,
    io::{self, Write},
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    clock::Clock,
    controllers::{self, Garbage},
    kinds,
    kubelet::Kubelet,
    openapi,
    request::{Call, User},
    status::{GroupResource, Refusal},
    store::{Key, State},
    verbs::{self, Answer, Payload},
};

/// Longest body of a request, as the real server has it.
pub(crate) const BODY_LEN_MAX: usize = 3 * 1024 * 1024;
/// Requests that are remembered.
const REQUESTS_LEN_MAX: usize = 100_000;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// Who sent it.
    pub user: String,
    /// In the words of RBAC: `get`, `list`, …
    pub verb: &'static str,
    /// The group; empty for the core.
    pub group: String,
    /// The resource, with its subresource: `pods/status`.
    pub resource: String,
    /// Empty for the cluster.
    pub namespace: String,
    /// Empty for several objects.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

/// An API server. Clones share it.
#[derive(Clone)]
pub struct ApiServer {
    state: Arc<Mutex<State>>,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// A server without objects, except for the namespaces that every cluster has. Its times start at
    /// 2026-01-01T00:00:00Z and pass as those of the tokio runtime do.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// The same with a seed for uids and generated names: one seed gives one sequence.
    pub fn seeded(seed: u64) -> Self {
        Self::with(Clock::Simulated(Instant::now()), seed)
    }

    /// A server whose times are those of the machine.
    pub fn on_system_time() -> Self {
        Self::with(Clock::System, jiff::Timestamp::now().as_nanosecond().unsigned_abs().try_into().unwrap_or(0))
    }

    fn with(clock: Clock, seed: u64) -> Self {
        let mut state = State::new(clock, seed);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "uid": state.chance.uid(),
                    "creationTimestamp": clock.seconds(),
                    "labels": { "kubernetes.io/metadata.name": name },
                },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            state.put(&GroupResource::new("", "namespaces"), (String::new(), name.into()), namespace);
        }
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The server as a service, for a user who may do everything.
    pub fn service(&self) -> InProcess {
        self.service_as(User::admin())
    }

    /// The server as a service for one user: what RBAC objects do not allow is refused.
    pub fn service_as(&self, user: User) -> InProcess {
        InProcess { state: self.state.clone(), user }
    }

    /// Runs the garbage collector and the end of namespaces, for ever.
    pub fn controllers(&self) -> impl Future<Output = ()> + Send + 'static {
        Garbage::new(self.state.clone()).run()
    }

    /// A simulated kubelet on this server: `run` it.
    pub fn kubelet(&self) -> Kubelet {
        let clock = self.state.lock().clock;
        Kubelet::on(kube::Client::new(self.service(), "default"), "kctl-node", clock)
    }

    /// How many objects the garbage collector has still to look at.
    pub fn pending(&self) -> usize {
        controllers::pending(&self.state)
    }

    /// The requests that were answered, the oldest first; the last hundred thousand of them.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.state.lock().requests.iter().cloned().collect()
    }

    /// Calls this for each request that is answered, in order. It must not use the server.
    pub fn observe(&self, observer: impl Fn(&RequestRecord) + Send + 'static) {
        self.state.lock().observer = Some(Box::new(observer));
    }

    /// The time that the server writes into objects.
    pub fn now(&self) -> jiff::Timestamp {
        let clock = self.state.lock().clock;
        clock.now()
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// The revision of the last write to a resource.
    pub fn revision_of(&self, group: &str, resource: &str) -> u64 {
        self.state.lock().table(&GroupResource::new(group, resource)).last_change()
    }

    /// An object as it is stored.
    pub fn object(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key: Key = (namespace.into(), name.into());
        self.state.lock().get(&GroupResource::new(group, resource), &key)
    }

    /// Whose token this is: of a service account, by its `token` subresource.
    pub fn user_of_token(&self, token: &str) -> Option<User> {
        self.state.lock().user_of_token(token)
    }

    /// Keeps all objects in a folder from now on; what is in it already is served.
    ///
    /// # Errors
    /// When the folder cannot be written, or another server uses it.
    pub fn keep_in(&self, folder: &Path) -> io::Result<()> {
        self.state.lock().keep_in(folder)
    }

    /// Appends a line of JSON for each request to a file: an event of `audit.k8s.io/v1` at level Metadata.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn audit_to(&self, file: &Path) -> io::Result<()> {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
        self.state.lock().audit = Some(file);
        Ok(())
    }

    /// Forgets the history, as a compaction of etcd does: watches from before and pages of old lists get 410.
    pub fn compact(&self) {
        self.state.lock().compact();
    }
}

/// A server without a socket between it and its client: a tower service for `kube::Client`.
#[derive(Clone)]
pub struct InProcess {
    state: Arc<Mutex<State>>,
    user: User,
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
        let (state, user) = (self.state.clone(), self.user.clone());
        let (parts, body) = request.into_parts();
        Box::pin(async move {
            match Limited::new(body, BODY_LEN_MAX).collect().await {
                Ok(body) => Ok(answer(&state, user, &parts, body.to_bytes())),
                Err(_) => Ok(refuse(&Refusal::too_large())),
            }
        })
    }
}

fn answer(state: &Arc<Mutex<State>>, user: User, parts: &Parts, body: Bytes) -> Response<Body> {
    let mut locked = state.lock();
    let user = match user.or_impersonated(&parts.headers) {
        Ok(user) => user,
        Err(refusal) => return refuse(&refusal),
    };
    let Some(call) = Call::parse(&locked.registry.clone(), user.clone(), parts, body) else {
        return meta(&locked, &user, parts);
    };
    let (call, performed) = match call {
        Ok(call) => {
            let performed = verbs::perform(&mut locked, &call);
            (call, performed)
        }
        Err(refusal) => return refuse(&refusal),
    };
    let code = performed.as_ref().map_or_else(|refusal| refusal.code, |answer| answer.code);
    record(&mut locked, &call, code, performed.as_ref().ok());
    audit(&mut locked, &call, parts, code);
    drop(locked);
    let mut response = match performed {
        Err(refusal) if wants_yaml(&call) => {
            let mut response = refuse(&refusal);
            *response.body_mut() = full(yaml(&refusal.body()));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
            response
        }
        Err(refusal) => refuse(&refusal),
        Ok(Answer { payload: Payload::Watch(start), .. }) => {
            let body = start.stream(state.clone()).map(|bytes| Ok(http_body::Frame::data(bytes)));
            respond(StatusCode::OK, "application/json", StreamBody::new(body).boxed_unsync())
        }
        Ok(Answer { code, payload: Payload::Json(object), warnings }) => {
            let mut response = rendered(&call, code, &object);
            warn(&mut response, warnings);
            response
        }
    };
    warn(&mut response, verbs::deprecation(&call));
    response
}

fn warn(response: &mut Response<Body>, warnings: impl IntoIterator<Item = String>) {
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

fn rendered(call: &Call, code: StatusCode, object: &Value) -> Response<Body> {
    if wants_yaml(call) {
        return respond(code, "application/yaml", full(yaml(object)));
    }
    respond(code, "application/json", full(bytes_of(object)))
}

fn wants_yaml(call: &Call) -> bool {
    call.header("accept").split(',').next().is_some_and(|first| first.trim().starts_with("application/yaml"))
}

fn yaml(object: &Value) -> Vec<u8> {
    serde_saphyr::to_string(object).unwrap_or_default().into_bytes()
}

fn record(state: &mut State, call: &Call, code: StatusCode, answer: Option<&Answer>) {
    let mut resource = call.resource.of.resource.clone();
    if !call.subresource.is_empty() {
        resource += &format!("/{}", call.subresource);
    }
    if state.requests.len() >= REQUESTS_LEN_MAX {
        state.requests.pop_front();
    }
    // A new object with a generated name has it in the answer.
    let generated = match answer {
        Some(Answer { payload: Payload::Json(object), .. }) if call.name.is_empty() => {
            object["metadata"]["name"].as_str().unwrap_or_default()
        }
        _ => "",
    };
    let record = RequestRecord {
        user: call.user.name.clone(),
        verb: call.verb.name(),
        group: call.resource.of.group.clone(),
        resource,
        namespace: call.namespace.clone(),
        name: if call.name.is_empty() { generated.into() } else { call.name.clone() },
        code: code.as_u16(),
    };
    if let Some(observer) = &state.observer {
        observer(&record);
    }
    state.requests.push_back(record);
}

fn audit(state: &mut State, call: &Call, parts: &Parts, code: StatusCode) {
    let now = state.clock.now().to_string();
    let Some(file) = &mut state.audit else { return };
    let event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": parts.uri.path_and_query().map_or("", |path| path.as_str()),
        "verb": call.verb.name(),
        "user": { "username": call.user.name, "groups": call.user.groups },
        "userAgent": call.header("user-agent"),
        "objectRef": {
            "apiGroup": call.resource.of.group,
            "apiVersion": call.resource.version,
            "resource": call.resource.of.resource,
            "subresource": call.subresource,
            "namespace": call.namespace,
            "name": call.name,
        },
        "responseStatus": { "code": code.as_u16() },
        "requestReceivedTimestamp": now,
    });
    if let Err(error) = file.write_all(&bytes_of(&event)) {
        tracing::error!(%error, "requests are no longer audited");
        state.audit = None;
    }
}

/// Paths that are not about objects.
fn meta(state: &State, user: &User, parts: &Parts) -> Response<Body> {
    let (path, verb) = (parts.uri.path(), parts.method.as_str().to_lowercase());
    if !verbs::access::allows_path(state, user, &verb, path) {
        let why = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
        let mut refusal = Refusal::new(StatusCode::FORBIDDEN, "Forbidden", why);
        refusal.details = json!({});
        return refuse(&refusal);
    }
    let path: Vec<&str> = parts.uri.path().trim_matches('/').split('/').collect();
    let registry = &state.registry;
    let document = match path.as_slice() {
        ["version"] => Some(version()),
        ["livez" | "readyz" | "healthz", ..] => return text(StatusCode::OK, "ok"),
        ["api"] => Some(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1" }],
        })),
        ["api", _] if kinds::resources(registry, "", path[1]).is_none() => return refuse(&Refusal::no_such_path()),
        [""] => Some(
            json!({ "paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"] }),
        ),
        ["apis"] => Some(kinds::groups(registry)),
        ["apis", group] => kinds::group(registry, group),
        ["apis", group, version] => kinds::resources(registry, group, version),
        ["api", version] => kinds::resources(registry, "", version),
        ["openapi", "v2"] => Some(openapi::v2(registry)),
        ["openapi", "v3"] => Some(openapi::index(registry)),
        ["openapi", "v3", "api", version] => openapi::v3(registry, "", version),
        ["openapi", "v3", "apis", group, version] => openapi::v3(registry, group, version),
        _ => None,
    };
    let no_version = matches!(path.as_slice(), ["apis", group, _, ..] if registry.is_built_in(group));
    match document {
        None if no_version => refuse(&Refusal::no_such_path()),
        Some(_) if parts.method != Method::GET && parts.method != Method::HEAD => {
            refuse(&Refusal::method_not_allowed())
        }
        Some(document) => respond(StatusCode::OK, "application/json", full(bytes_of(&document))),
        None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

/// The Kubernetes version that is imitated: that of the server which the tests compare with.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": concat!("v1.36.0+kctl-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// In Go's words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn bytes_of(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn full(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

fn text(code: StatusCode, text: &str) -> Response<Body> {
    respond(code, "text/plain; charset=utf-8", full(text.as_bytes().to_vec()))
}

pub(crate) fn refuse(refusal: &Refusal) -> Response<Body> {
    let mut response = respond(refusal.code, "application/json", full(bytes_of(&refusal.body())));
    if let Some(seconds) = refusal.details["retryAfterSeconds"].as_u64() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn respond(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
