//! A connection to an embedded API server with injected faults. Requests without a fault are forwarded.

mod real_server;
mod rng;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kctl_apiserver::{ApiServer, InProcess};
use kube::Client;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tower::Service;

pub use real_server::{real_client, real_server};
pub use rng::Rng;

/// A fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server rejects the request with this HTTP status.
    Reject(u16),
    /// The server rejects the request with this HTTP status and message, without a reason.
    RejectWith(u16, &'static str),
    /// The server rejects the request with this HTTP status, and `Retry-After` with this many seconds.
    RejectFor(u16, u32),
    /// The connection fails before the server receives the request.
    Break,
    /// The server executes the request, but the connection fails before the response.
    LoseResponse,
    /// The server receives the request after this time.
    Delay(Duration),
    /// The server executes the request at once, but the response arrives after this time.
    DelayResponse(Duration),
}

/// The parts of a request that a fault selects it by.
#[derive(Clone, Debug)]
pub struct RequestSummary {
    /// The HTTP method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query string, or an empty string.
    pub query: String,
    /// `true` for a watch.
    pub is_watch: bool,
    /// The header `traceparent`, or an empty string.
    pub trace: String,
    /// The header `accept`, or an empty string.
    pub accept: String,
}

impl RequestSummary {
    fn new<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (trace, accept) = (header("traceparent").to_owned(), header("accept").to_owned());
        let (method, path) = (request.method().clone(), request.uri().path().into());
        Self { method, path, query, is_watch, trace, accept }
    }

    /// Returns `true` for a list of objects without a limit.
    fn is_whole_list(&self) -> bool {
        let is_resource_path = self.path.starts_with("/api/v1/") || self.path.matches('/').count() > 3;
        let is_part =
            ["watch=true", "limit=", "continue=", "fieldSelector="].iter().any(|part| self.query.contains(part));
        self.method == Method::GET && is_resource_path && self.path.ends_with('s') && !is_part
    }

    /// Returns `true` for a list or a watch of the resource with this plural.
    pub fn reads(&self, plural: &str) -> bool {
        self.method == Method::GET && self.path.ends_with(&format!("/{plural}"))
    }
}

type Concerns = Box<dyn Fn(&RequestSummary) -> bool + Send>;

/// Injected faults of a connection, which can be changed while it is used. Clones share them.
#[derive(Clone, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<(Concerns, Fault)>>>,
    /// Ends watches in the order in which they were opened. tokio's `watch` channel would wake them in any order.
    cut: Arc<Notify>,
    /// Replaces the server of the clients.
    backup: Arc<Mutex<Option<InProcess>>>,
    /// The server rejects streaming lists (`sendInitialEvents`), like those before Kubernetes 1.32.
    pub lists_only: bool,
    /// Simulates a proxy in front of the server that rejects lists without a limit.
    pub pages_only: bool,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults")
            .field("lists_only", &self.lists_only)
            .field("pages_only", &self.pages_only)
            .finish_non_exhaustive()
    }
}

impl Faults {
    /// Returns a client of the server with these faults.
    pub fn client(&self, server: &ApiServer) -> Client {
        Client::new(Connection { server: server.service(), faults: self.clone() }, "default")
    }

    /// Adds a fault to all requests that the function selects. The first of several matching faults is used.
    pub fn add(&self, fault: Fault, concerns: impl Fn(&RequestSummary) -> bool + Send + 'static) {
        self.rules.lock().push((Box::new(concerns), fault));
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.rules.lock().clear();
    }

    /// Ends all open watches, like a server that stops.
    pub fn cut_watches(&self) {
        self.cut.notify_waiters();
    }

    /// Sends all further requests to this server, which has the state of a backup. Open watches end.
    pub fn restore(&self, backup: &ApiServer) {
        *self.backup.lock() = Some(backup.service());
        self.cut_watches();
    }

    fn find(&self, request: &RequestSummary) -> Option<Fault> {
        self.rules.lock().iter().find(|(concerns, _)| concerns(request)).map(|(_, fault)| *fault)
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
struct Connection {
    server: InProcess,
    faults: Faults,
}

impl Service<Request<kube::client::Body>> for Connection {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let Self { server, faults } = self.clone();
        let mut server = faults.backup.lock().clone().unwrap_or(server);
        Box::pin(async move {
            let summary = RequestSummary::new(&request);
            let cut = faults.cut.clone().notified_owned();
            let is_rejected = (faults.pages_only && summary.is_whole_list())
                || (faults.lists_only && summary.query.contains("sendInitialEvents"));
            if is_rejected {
                return Ok(rejection(422, &summary));
            }
            let fault = faults.find(&summary);
            match fault {
                Some(Fault::Reject(code)) => return Ok(rejection(code, &summary)),
                Some(Fault::RejectWith(code, message)) => return Ok(status_response(code, "", message)),
                Some(Fault::RejectFor(code, seconds)) => {
                    let mut rejection = rejection(code, &summary);
                    rejection.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
                    return Ok(rejection);
                }
                Some(Fault::Break) => return Err("the connection broke".into()),
                Some(Fault::Delay(wait)) => tokio::time::sleep(wait).await,
                Some(Fault::LoseResponse | Fault::DelayResponse(_)) | None => {}
            }
            let response = server.call(request).await.unwrap_or_else(|never| match never {});
            match fault {
                Some(Fault::LoseResponse) => return Err("the connection broke".into()),
                Some(Fault::DelayResponse(wait)) => tokio::time::sleep(wait).await,
                _ => {}
            }
            if !summary.is_watch {
                return Ok(response);
            }
            let (head, body) = response.into_parts();
            let frames = body.into_data_stream().take_until(Box::pin(cut));
            let body = StreamBody::new(frames.map(|bytes| bytes.map(http_body::Frame::data))).boxed_unsync();
            Ok(Response::from_parts(head, body))
        })
    }
}

fn rejection(code: u16, request: &RequestSummary) -> Response<Body> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        _ => "InternalError",
    };
    status_response(code, reason, &format!("{} {} is rejected", request.method, request.path))
}

fn status_response(code: u16, reason: &str, message: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    });
    let mut response = Response::new(Full::from(status.to_string()).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
}
