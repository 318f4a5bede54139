//! A source whose API server is scripted: each request gets the next response, and is recorded with its time.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kctl::{
    kube::{self, Client},
    object::{Kind, Stored},
    prelude::*,
    watches::WatchConfig,
};
use kctl_runtime::{
    source::Source,
    store::{Origin, SharedStore},
};
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tower::Service;

use crate::world::Log;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The response to one request.
pub(crate) enum ScriptedResponse {
    /// A body with this HTTP status.
    Full(u16, String),
    /// Lines of a watch, each after a delay, and the delay before the end.
    WatchLines(Vec<(Duration, String)>, Duration),
    /// The connection fails.
    ConnectionError,
    /// No response.
    Pending,
}

/// Longer than any test.
pub(crate) const FOREVER: Duration = Duration::from_secs(100_000);

/// Returns a list at this version, with a continue token if there are more pages.
pub(crate) fn list(version: &str, items: &[&str], token: &str) -> ScriptedResponse {
    let items = items.join(",");
    let meta = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    ScriptedResponse::Full(
        200,
        format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{meta},"items":[{items}]}}"#),
    )
}

/// Returns a watch that delivers these events at once, and ends after this many seconds.
pub(crate) fn watch(events: &[String], seconds: u64) -> ScriptedResponse {
    let lines = events.iter().map(|event| (Duration::ZERO, event.clone())).collect();
    ScriptedResponse::WatchLines(lines, Duration::from_secs(seconds))
}

/// Returns a watch without events.
pub(crate) fn idle_watch() -> ScriptedResponse {
    ScriptedResponse::WatchLines(Vec::new(), FOREVER)
}

/// Returns an error response.
pub(crate) fn reject(code: u16) -> ScriptedResponse {
    ScriptedResponse::Full(code, status(code, "no"))
}

/// Returns a `Status` object, as in error responses and ERROR events.
pub(crate) fn status(code: u16, message: &str) -> String {
    format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code},"message":"{message}"}}"#)
}

/// Returns one line of a watch.
pub(crate) fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

/// Returns a bookmark event.
pub(crate) fn bookmark(version: &str) -> String {
    event("BOOKMARK", &format!(r#"{{"kind":"Pod","metadata":{{"resourceVersion":"{version}"}}}}"#))
}

/// Returns the bookmark that ends the initial events.
pub(crate) fn state_is_whole(version: &str) -> String {
    let mark = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
    event("BOOKMARK", &format!(r#"{{"kind":"Pod","metadata":{{"resourceVersion":"{version}",{mark}}}}}"#))
}

/// Returns a Pod as the server sends it.
pub(crate) fn object(name: &str, version: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"default","name":"{name}","uid":"uid-{name}","resourceVersion":"{version}"}}}}"#
    )
}

/// A source of Pods that runs against a script, with its requests and changes.
pub(crate) struct Scripted {
    pub(crate) source: Arc<Source>,
    requests: Log,
    timeouts: Log,
    changes: Log,
    _tasks: JoinSet<()>,
}

impl Scripted {
    /// Starts with a server that rejects lists without a limit. A request beyond the script is never answered.
    pub(crate) async fn paged(responses: Vec<ScriptedResponse>) -> Self {
        let rejection = std::iter::once(ScriptedResponse::Full(422, status(422, "only in pages")));
        let scripted = Self::unpaged(rejection.chain(responses).collect()).await;
        let first = scripted.requests.take();
        assert_eq!(first.first().map(String::as_str), Some("0 whole"));
        first.into_iter().skip(1).for_each(|line| scripted.requests.add(line));
        scripted
    }

    /// Starts with a server that lists without a limit.
    pub(crate) async fn unpaged(responses: Vec<ScriptedResponse>) -> Self {
        Self::start(responses, false).await
    }

    /// Starts a source that reads its initial state from a watch.
    pub(crate) async fn streaming(responses: Vec<ScriptedResponse>) -> Self {
        Self::start(responses, true).await
    }

    async fn start(responses: Vec<ScriptedResponse>, streams: bool) -> Self {
        let requests = Log::default();
        let timeouts = Log::default();
        let server = Server {
            responses: Arc::new(Mutex::new(responses.into())),
            requests: requests.clone(),
            timeouts: timeouts.clone(),
            begin: Instant::now(),
        };
        let store = Arc::new(SharedStore::default());
        let source = Source::new(Client::new(server, "default"), WatchConfig::new(Kind::of::<Pod>()), store.clone());
        if streams {
            source.stream_state();
        }
        let (source, mut tasks) = (Arc::new(source), JoinSet::new());
        let _pods: Store<Pod> = source.view();
        tasks.spawn(store.clone().write());
        let changes = Log::default();
        let _initial = store.subscribe(log_changes(&changes)).await;
        tasks.spawn({
            let source = source.clone();
            async move { source.run().await }
        });
        sleep(Duration::from_millis(1)).await;
        Self { source, requests, timeouts, changes, _tasks: tasks }
    }

    /// Returns the requests since the last call, with their time in milliseconds.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.take()
    }

    /// Returns the `timeoutSeconds` of the watches since the last call.
    pub(crate) fn timeouts(&self) -> Vec<u64> {
        self.timeouts.take().iter().map(|seconds| seconds.parse().unwrap()).collect()
    }

    /// Returns the changes that handlers received since the last call.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.changes.take()
    }
}

/// Returns a handler that logs changes, and marks the changes of the initial state.
pub(crate) fn log_changes(log: &Log) -> kctl_runtime::store::Handler {
    let log = log.clone();
    Arc::new(move |change: &Change<Stored>, origin| {
        let object = change.latest();
        let sign = match change {
            Change::Added(_) => '+',
            Change::Updated { .. } => '~',
            Change::Deleted { .. } => '-',
        };
        let mark = if origin == Origin::Live { "" } else { "initial " };
        log.add(format!("{mark}{sign}{}@{}", object.key().name, object.meta().resource_version));
    })
}

#[derive(Clone)]
struct Server {
    responses: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    requests: Log,
    timeouts: Log,
    begin: Instant,
}

impl Server {
    /// Logs the type of a request (`whole`, `list`, `watch`, `stream` or `probe`) with its version and continue token.
    fn log_request(&self, query: &str) {
        let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let verb = match (value("sendInitialEvents"), value("watch"), value("limit")) {
            (Some("true"), Some("true"), None) => "stream",
            (None, Some("true"), None) => "watch",
            (None, None, None) => "whole",
            (None, None, Some("500")) => "list",
            (None, None, Some("1")) => "probe",
            other => panic!("no such request: {other:?}"),
        };
        let mut line = format!("{} {verb}", self.begin.elapsed().as_millis());
        for (name, word) in [("resourceVersion", "from"), ("continue", "page")] {
            if let Some(value) = value(name).filter(|value| !value.is_empty()) {
                line += &format!(" {word} {value}");
            }
        }
        self.requests.add(line);
        if let Some(seconds) = value("timeoutSeconds") {
            self.timeouts.add(seconds);
        }
    }
}

impl Service<Request<kube::client::Body>> for Server {
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        self.log_request(request.uri().query().unwrap_or_default());
        let scripted = self.responses.lock().pop_front();
        Box::pin(async move {
            match scripted {
                None | Some(ScriptedResponse::Pending) => std::future::pending().await,
                Some(ScriptedResponse::ConnectionError) => Err("the connection broke".into()),
                Some(ScriptedResponse::Full(code, body)) => {
                    let mut response = Response::new(Full::from(body).boxed_unsync());
                    *response.status_mut() = http::StatusCode::from_u16(code)?;
                    Ok(response)
                }
                Some(ScriptedResponse::WatchLines(lines, open)) => {
                    let lines = stream::iter(lines).then(|(wait, line)| async move {
                        sleep(wait).await;
                        Ok(http_body::Frame::data(Bytes::from(line + "\n")))
                    });
                    let end = stream::once(sleep(open)).filter_map(|()| async { None });
                    Ok(Response::new(StreamBody::new(lines.chain(end)).boxed_unsync()))
                }
            }
        })
    }
}
