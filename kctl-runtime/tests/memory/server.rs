//! A fake API server without storage: it generates list items on demand, and ends watches when a test calls `expire`.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::{Client, client::Body as RequestBody};
use tokio::sync::watch;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Counters of the server so far.
#[derive(Clone, Copy, Default)]
struct Counts {
    lists: usize,
    watches: usize,
    /// Watches with a lower number than this have expired.
    expired: usize,
}

pub(crate) struct Fake {
    n_objects: usize,
    make: fn(usize) -> String,
    counts: Arc<watch::Sender<Counts>>,
}

impl Fake {
    pub(crate) fn of(n_objects: usize, make: fn(usize) -> String) -> Self {
        Self { n_objects, make, counts: Arc::new(watch::Sender::new(Counts::default())) }
    }

    pub(crate) fn client(&self) -> Client {
        let Self { n_objects, make, counts } = self;
        let (n_objects, make, counts) = (*n_objects, *make, counts.clone());
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let query = request.uri().query().unwrap_or_default();
            let response = if query.contains("sendInitialEvents") {
                Response::builder().status(422).body(body(stream::empty()))
            } else if query.contains("watch=true") {
                Response::builder().body(watch_body(&counts))
            } else {
                counts.send_modify(|counts| counts.lists += 1);
                Response::builder().body(list(n_objects, make))
            };
            std::future::ready(response)
        });
        Client::new(service, "default")
    }

    pub(crate) fn n_lists(&self) -> usize {
        self.counts.borrow().lists
    }

    /// Waits until this many watches have begun.
    pub(crate) async fn wait_for_watches(&self, n_watches: usize) {
        self.counts.subscribe().wait_for(|counts| counts.watches >= n_watches).await.unwrap();
    }

    /// Expires all watches, and waits until a new watch begins.
    pub(crate) async fn expire(&self) {
        let before = self.counts.borrow().watches;
        self.counts.send_modify(|counts| counts.expired = counts.watches);
        self.wait_for_watches(before + 1).await;
    }
}

fn body(chunks: impl stream::Stream<Item = Bytes> + Send + 'static) -> Body {
    let frames = chunks.map(|chunk| Ok::<_, Infallible>(Frame::data(chunk)));
    StreamBody::new(frames).boxed_unsync()
}

fn list(n_objects: usize, make: fn(usize) -> String) -> Body {
    let head = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"900000"},"items":["#;
    let items = (0..n_objects).map(move |n| Bytes::from(format!("{}{}", if n == 0 { "" } else { "," }, make(n))));
    let (head, end) = (stream::iter([Bytes::from(head)]), stream::iter([Bytes::from("]}\n")]));
    body(head.chain(stream::iter(items)).chain(end))
}

fn watch_body(counts: &Arc<watch::Sender<Counts>>) -> Body {
    let mut number = 0;
    counts.send_modify(|counts| {
        number = counts.watches;
        counts.watches += 1;
    });
    let mut counts = counts.subscribe();
    body(stream::once(async move {
        let _ended = counts.wait_for(|counts| counts.expired > number).await;
        let status = r#"{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","message":"too old"}"#;
        Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n"))
    }))
}

/// Returns a Pod of one of many sets of ten, as kube-apiserver lists it, with two entries of managedFields.
pub(crate) fn pod(n: usize) -> String {
    pod_of(n / 10, n)
}

/// Returns a Pod whose set has no other Pod, so that no other object has equal labels or owner references.
pub(crate) fn single_pod(n: usize) -> String {
    pod_of(n, n)
}

fn pod_of(set: usize, n: usize) -> String {
    let uid = format!("{:08x}-0000-4000-8000-{n:012x}", n * 0x9E37 + 7);
    let (ip, node, version) = (format!("10.0.{}.{}", n / 250 % 250, n % 250), n % 100, 100_000 + n);
    include_str!("pod.json")
        .trim()
        .replace("$NAME", &format!("web-{set:05}-6d4b75cb6d-{:05x}", n * 7919 % 0xFFFFF))
        .replace("$SET", &set.to_string())
        .replace("$UID", &uid)
        .replace("$VERSION", &version.to_string())
        .replace("$NODE", &node.to_string())
        .replace("$IP", &ip)
}

/// Returns a `ConfigMap` with 2 KB of data. Hardly any two of them have the same data.
pub(crate) fn config_map(n: usize) -> String {
    let lines: Vec<_> = (0..40).map(|line| format!("key.{line} = {:016x}, of {n}\\n", n * 31 + line * 7919)).collect();
    let lines = lines.concat();
    let fields = r#"[{"manager":"app","operation":"Update","apiVersion":"v1","time":"2026-11-20T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:settings":{}}}}]"#;
    format!(
        r#"{{"metadata":{{"name":"config-{n}","namespace":"default","uid":"{n:036}","resourceVersion":"{}","creationTimestamp":"2026-11-20T00:00:00Z","labels":{{"app":"web"}},"managedFields":{fields}}},"data":{{"settings":"{lines}"}}}}"#,
        100_000 + n
    )
}
