//! An API server with resource versions that can't be compared: a reconcile waits until its watch delivers own writes.

use bytes::Bytes;
use futures::StreamExt;
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use kctl::{
    kube::{Client, client::Body},
    prelude::*,
};
use kctl_tests::Fault;
use tower::service_fn;

use crate::world::{Log, With, World, advance_seconds, app, pod, text};

/// Returns the body with a `v` in front of each resource version.
fn with_opaque_versions(bytes: &Bytes) -> Bytes {
    let text = String::from_utf8_lossy(bytes).replace(r#""resourceVersion":""#, r#""resourceVersion":"v"#);
    text.replace(r#""resourceVersion":"v""#, r#""resourceVersion":"""#).into()
}

/// Returns a client that sees opaque resource versions, and whose watch events are delayed.
fn client(world: &World, late: Duration) -> Client {
    let inner = world.faults.client(&world.server);
    let service = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let (mut head, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&bytes).replace(r#""resourceVersion":"v"#, r#""resourceVersion":""#);
            let uri = head.uri.to_string().replace("resourceVersion=v", "resourceVersion=");
            let is_watch = uri.contains("watch=true");
            head.uri = uri.parse()?;
            let response = inner.send(Request::from_parts(head, Body::from(body.into_bytes()))).await?;
            let frames = response.into_parts();
            let chunks = frames.1.into_data_stream().then(move |chunk| async move {
                if is_watch {
                    tokio::time::sleep(late).await;
                }
                chunk.map(|bytes| http_body::Frame::data(with_opaque_versions(&bytes)))
            });
            let body = StreamBody::new(Box::pin(chunks));
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(http::Response::from_parts(frames.0, body))
        }
    });
    Client::new(service, "default")
}

/// Keeps as many Pods as each `ConfigMap` says, and logs their number before and after.
fn counting(log: &Log) -> App {
    let log = log.clone();
    app().configs(move |config, cx| {
        let log = log.clone();
        async move {
            let (wanted, pods) = (text(&config).parse()?, cx.owned::<Pod>());
            for _ in pods.len()..wanted {
                let metadata = ObjectMeta { generate_name: Some("p-".into()), ..ObjectMeta::default() };
                pods.create(Pod { metadata, ..pod("") }).await?;
            }
            for pod in pods.iter().skip(wanted) {
                pods.delete(&pod).await?;
            }
            log.add(format!("{} {}", pods.len(), cx.owned::<Pod>().len()));
            Ok(Action::await_change())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_awaited_with_opaque_versions() {
    let (mut world, log) = (World::new(), Log::default());
    world.run_on(client(&world, Duration::from_millis(100)), counting(&log)).await;
    advance_seconds(1).await;
    world.set("a", "3").await;
    advance_seconds(5).await;
    assert_eq!(log.take()[0], "0 3");
    world.set("a", "1").await;
    advance_seconds(5).await;
    assert_eq!(log.take()[0], "3 1");
    assert_eq!(world.pod_names().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn own_write_wait_times_out_and_lists() {
    let (mut world, log) = (World::new(), Log::default());
    world.run_on(client(&world, Duration::ZERO), counting(&log)).await;
    advance_seconds(1).await;
    world.faults.add(Fault::Break, |request| request.reads("pods") && request.is_watch);
    world.faults.cut_watches();
    world.set("a", "1").await;
    advance_seconds(9).await;
    assert_eq!(log.take(), [""; 0], "it waits");
    advance_seconds(2).await;
    assert_eq!(log.take().len(), 1, "but not indefinitely");
    world.set("a", "01").await;
    advance_seconds(15).await;
    assert_eq!(log.take().last().unwrap(), "1 1");
    assert_eq!(world.n_requests("create", "pods"), 1);
}

/// Simulates `run --dry-run`: an object that was not stored has no `resourceVersion`.
#[tokio::test(start_paused = true)]
async fn dry_run_create_does_not_wait_for_watch() {
    let (mut world, log) = (World::new(), Log::default());
    let inner = world.faults.client(&world.server);
    let tried = service_fn(move |mut request: Request<Body>| {
        let inner = inner.clone();
        async move {
            if request.method() != http::Method::GET {
                *request.uri_mut() = format!("{}&dryRun=All", request.uri()).parse()?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(inner.send(request).await?)
        }
    });
    world.run_on(Client::new(tried, "default"), counting(&log)).await;
    advance_seconds(1).await;
    let n_lists = world.n_requests("list", "pods");
    world.set("a", "2").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["0 0"]);
    world.set("a", "02").await;
    advance_seconds(1).await;
    assert_eq!(log.take(), ["0 0"]);
    assert_eq!((world.n_requests("create", "pods"), world.n_requests("list", "pods")), (4, n_lists));
    assert!(world.pod_names().await.is_empty());
}
