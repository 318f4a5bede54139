//! A source whose API server is a script: each request gets the next answer, and is written down with its time.

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
    watches::Identity,
};
use kctl_runtime::{source::Source, store::SharedStore};
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
    /// This body, with this HTTP status.
    Whole(u16, String),
    /// These lines of a watch, each after a wait; then, after another wait, the end.
    Lines(Vec<(Duration, String)>, Duration),
    /// The connection breaks.
    Break,
    /// Nothing.
    Never,
}

/// Longer than any test.
pub(crate) const EVER: Duration = Duration::from_secs(100_000);

/// A list at a version, with a token when there are more pages.
pub(crate) fn list(version: &str, items: &[&str], token: &str) -> Answer {
    let items = items.join(",");
    let meta = format!(r#"{{"resourceVersion":"{version}","continue":"{token}"}}"#);
    Answer::Whole(200, format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{meta},"items":[{items}]}}"#))
}

/// A watch that brings these events at once and then nothing, and ends after some seconds.
pub(crate) fn watch(events: &[String], seconds: u64) -> Answer {
    let lines = events.iter().map(|event| (Duration::ZERO, event.clone())).collect();
    Answer::Lines(lines, Duration::from_secs(seconds))
}

/// A watch that brings nothing more.
pub(crate) fn silent() -> Answer {
    Answer::Lines(Vec::new(), EVER)
}

/// A refusal.
pub(crate) fn refuse(code: u16) -> Answer {
    Answer::Whole(code, status(code, "no"))
}

/// A status as refusals and ERROR events carry it.
pub(crate) fn status(code: u16, message: &str) -> String {
    format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code},"message":"{message}"}}"#)
}

/// One line of a watch.
pub(crate) fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

/// A bookmark.
pub(crate) fn bookmark(version: &str) -> String {
    event("BOOKMARK", &format!(r#"{{"kind":"Pod","metadata":{{"resourceVersion":"{version}"}}}}"#))
}

/// The bookmark that ends a streamed state.
pub(crate) fn state_is_whole(version: &str) -> String {
    let mark = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
    event("BOOKMARK", &format!(r#"{{"kind":"Pod","metadata":{{"resourceVersion":"{version}",{mark}}}}}"#))
}

/// A pod as the server sends it.
pub(crate) fn object(name: &str, version: &str) -> String {
    format!(
        r#"{{"metadata":{{"namespace":"default","name":"{name}","uid":"uid-{name}","resourceVersion":"{version}"}}}}"#
    )
}

/// A source of pods at work on a script, with what it asks and what it says.
pub(crate) struct Scripted {
    pub(crate) source: Arc<Source>,
    asked: Log,
    lives: Log,
    changes: Log,
    _tasks: JoinSet<()>,
}

impl Scripted {
    /// Starts on a server that wants pages. A request beyond the script is never answered.
    pub(crate) async fn listing(answers: Vec<Answer>) -> Self {
        let refusal = std::iter::once(Answer::Whole(422, status(422, "only in pages")));
        let scripted = Self::whole(refusal.chain(answers).collect()).await;
        let first = scripted.asked.take();
        assert_eq!(first.first().map(String::as_str), Some("0 whole"));
        first.into_iter().skip(1).for_each(|line| scripted.asked.add(line));
        scripted
    }

    /// Starts on a server that gives its state whole.
    pub(crate) async fn whole(answers: Vec<Answer>) -> Self {
        Self::start(answers, false).await
    }

    /// Starts with the wish that the state is streamed.
    pub(crate) async fn streaming(answers: Vec<Answer>) -> Self {
        Self::start(answers, true).await
    }

    async fn start(answers: Vec<Answer>, streams: bool) -> Self {
        let asked = Log::default();
        let lives = Log::default();
        let server = Server {
            answers: Arc::new(Mutex::new(answers.into())),
            asked: asked.clone(),
            lives: lives.clone(),
            begin: Instant::now(),
        };
        let store = Arc::new(SharedStore::default());
        let source = Source::new(Client::new(server, "default"), Identity::all(Kind::of::<Pod>()), store.clone());
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
        Self { source, asked, lives, changes, _tasks: tasks }
    }

    /// Returns the requests since the last call, with their time in milliseconds.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.take()
    }

    /// The lives that were asked of watches, in seconds.
    pub(crate) fn lives(&self) -> Vec<u64> {
        self.lives.take().iter().map(|seconds| seconds.parse().unwrap()).collect()
    }

    /// Returns the changes that handlers received since the last call.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.changes.take()
    }
}

/// A handler that writes changes down, those of the initial state with a mark.
pub(crate) fn noting(log: &Log) -> kctl_runtime::store::Handler {
    let log = log.clone();
    Arc::new(move |change: &Change<Stored>, initial| {
        let object = change.latest();
        let sign = match change {
            Change::Added(_) => '+',
            Change::Updated { .. } => '~',
            Change::Deleted { .. } => '-',
        };
        let mark = if initial { "initial " } else { "" };
        log.add(format!("{mark}{sign}{}@{}", object.key().name, object.meta().resource_version));
    })
}

#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Log,
    lives: Log,
    begin: Instant,
}

impl Server {
    /// `whole`, `list`, `watch`, `stream` or `probe`, with what it says beyond that.
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
        self.asked.add(line);
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
