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
pub(crate) enum Answer {
    /// A body with this HTTP status.
    Whole(u16, String),
    /// Lines of a watch, each after a delay, and the delay before the end.
    Lines(Vec<(Duration, String)>, Duration),
    /// The connection fails.
    Break,
    /// No response.
    Never,
}

/// Longer than any test.
pub(crate) const EVER: Duration = Duration::from_secs(100_000);

/// Returns a list at this version, with a continue token if there are more pages.
pub(crate) fn list(version: &str, items: &[&str], token: &str) -> Answer {
    let items = items.join(",");
    let meta = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    Answer::Whole(200, format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{meta},"items":[{items}]}}"#))
}

/// Returns a watch that delivers these events at once, and ends after this many seconds.
pub(crate) fn watch(events: &[String], seconds: u64) -> Answer {
    let lines = events.iter().map(|event| (Duration::ZERO, event.clone())).collect();
    Answer::Lines(lines, Duration::from_secs(seconds))
}

/// Returns a watch without events.
pub(crate) fn silent() -> Answer {
    Answer::Lines(Vec::new(), EVER)
}

/// Returns an error response.
pub(crate) fn reject(code: u16) -> Answer {
    Answer::Whole(code, status(code, "no"))
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
    lives: Log,
    changes: Log,
    _tasks: JoinSet<()>,
}

impl Scripted {
    /// Starts with a server that rejects lists without a limit. A request beyond the script is never answered.
    pub(crate) async fn listing(answers: Vec<Answer>) -> Self {
        let rejection = std::iter::once(Answer::Whole(422, status(422, "only in pages")));
        let scripted = Self::whole(rejection.chain(answers).collect()).await;
        let first = scripted.requests.take();
        assert_eq!(first.first().map(String::as_str), Some("0 whole"));
        first.into_iter().skip(1).for_each(|line| scripted.requests.add(line));
        scripted
    }

    /// Starts with a server that lists without a limit.
    pub(crate) async fn whole(answers: Vec<Answer>) -> Self {
        Self::start(answers, false).await
    }

    /// Starts a source that reads its initial state from a watch.
    pub(crate) async fn streaming(answers: Vec<Answer>) -> Self {
        Self::start(answers, true).await
    }

    async fn start(answers: Vec<Answer>, streams: bool) -> Self {
        let requests = Log::default();
        let lives = Log::default();
        let server = Server {
            answers: Arc::new(Mutex::new(answers.into())),
            requests: requests.clone(),
            lives: lives.clone(),
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
        let _initial = store.subscribe(noting(&changes)).await;
        tasks.spawn({
            let source = source.clone();
            async move { source.run().await }
        });
        sleep(Duration::from_millis(1)).await;
        Self { source, requests, lives, changes, _tasks: tasks }
    }

    /// Returns the requests since the last call, with their time in milliseconds.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.take()
    }

    /// Returns the `timeoutSeconds` of the watches since the last call.
    pub(crate) fn lives(&self) -> Vec<u64> {
        self.lives.take().iter().map(|seconds| seconds.parse().unwrap()).collect()
    }

    /// Returns the changes that handlers received since the last call.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.changes.take()
    }
}

/// Returns a handler that logs changes, and marks those of the initial state.
pub(crate) fn noting(log: &Log) -> kctl_runtime::store::Handler {
    let log = log.clone();
    Arc::new(move |change: &Change<Stored>, origin| {
        let object = change.latest();
        let sign = match change {
            Change::Added(_) => '+',
            Change::Updated { .. } => '~',
            Change::Deleted { .. } => '-',
        };
        let mark = if origin == Origin::InitialList { "initial " } else { "" };
        log.add(format!("{mark}{sign}{}@{}", object.key().name, object.meta().resource_version));
    })
}

#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Log,
    lives: Log,
    begin: Instant,
}

impl Server {
    /// Logs the type of a request (`whole`, `list`, `watch`, `stream` or `probe`) with its version and continue token.
    fn note(&self, query: &str) {
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
            self.lives.add(seconds);
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
        self.note(request.uri().query().unwrap_or_default());
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            match answer {
                None | Some(Answer::Never) => std::future::pending().await,
                Some(Answer::Break) => Err("the connection broke".into()),
                Some(Answer::Whole(code, body)) => {
                    let mut response = Response::new(Full::from(body).boxed_unsync());
                    *response.status_mut() = http::StatusCode::from_u16(code)?;
                    Ok(response)
                }
                Some(Answer::Lines(lines, open)) => {
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
