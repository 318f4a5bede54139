//! Tests of writes that end objects, and of writes to namespaces that are removed during the write.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};
use tower::service_fn;

use super::{
    objects::{APPLY_PATCH, MERGE_PATCH},
    target::Target,
    *,
};
use crate::{
    object::{Kind, Readable},
    source::{Source, WatchConfig},
    store::Delta,
};

#[tokio::test(start_paused = true)]
async fn namespace_removed_during_wait_gets_no_write() {
    let n_requests = Arc::<AtomicUsize>::default();
    let counted = n_requests.clone();
    let server = service_fn(move |_request: http::Request<Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(http::Response::new(Body::from(b"{}".to_vec()))) }
    });
    let source = Arc::new(Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default()));
    tokio::spawn(source.store().clone().write());
    let lease = |seconds| LeaseState::HeldUntil(Instant::now() + Duration::from_secs(seconds));
    let (election, state) = watch::channel(lease(2));
    let permit = WritePermit::from_lease(state, Duration::from_secs(5), Duration::from_secs(1));
    let writer = Writer::new("test").permit(permit.clone());
    let key = ObjectKey::new(Some("a"), "web");
    let target = Target { by: &key, source: &source, namespace: Some("a"), name: "web" };
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let remove = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        source.store().push_and_wait(Delta::Close(Some("a".into()))).await;
        election.send_replace(lease(60));
    };
    let (written, ()) = tokio::join!(writer.patch_stored(&target, "", MERGE_PATCH, &patch), remove);
    assert!(matches!(written, Err(ApiError::NotWatched { .. })), "{written:?}");
    assert_eq!(n_requests.load(Ordering::Relaxed), 0);
    assert!(permit.unresolved_until().is_none(), "no write is in flight");
}

#[tokio::test]
async fn get_without_a_name_is_not_sent() {
    let server =
        service_fn(|_request: http::Request<Body>| async { Ok::<_, Infallible>(http::Response::new(Body::empty())) });
    let (client, key) = (Client::new(server, "default"), ObjectKey::new(Some("a"), ""));
    let error = Writer::new("test").get::<Pod>(&client, "", &Kind::of::<Pod>(), &key).await.unwrap_err();
    assert_eq!(error.to_string(), "get Pod a/: not sent: the name is empty");
}

#[tokio::test]
async fn write_without_a_name_is_not_sent() {
    let source = answering::<Pod>(&json!({ "kind": "Status" })).await;
    let (writer, key, patch) = (Writer::new("test"), ObjectKey::new(Some("a"), "web"), json!({}));
    let target = Target { by: &key, source: &source, namespace: Some("a"), name: "" };
    let results = [
        ("delete", writer.delete(&target, "1", None).await),
        ("patch", writer.patch_stored(&target, "", MERGE_PATCH, &patch).await.map(drop)),
        ("patch", writer.patch_unreadable(&target, MERGE_PATCH, &patch).await),
        ("apply", writer.patch::<Pod>(&target, "", APPLY_PATCH, &patch).await.map(drop)),
        ("update", writer.update(&target, &Pod::default()).await.map(drop)),
    ];
    for (verb, result) in results {
        assert_eq!(result.unwrap_err().to_string(), format!("{verb} Pod a/: not sent: the name is empty"));
    }
}

/// Returns a source of a server with this response to each request. Its cache has the object `x`.
async fn answering<K: Readable>(response: &Value) -> Arc<Source> {
    let text = response.to_string();
    let server = service_fn(move |_request: http::Request<Body>| {
        let body = Body::from(text.clone().into_bytes());
        async { Ok::<_, Infallible>(http::Response::new(body)) }
    });
    let source =
        Arc::new(Source::new(Client::new(server, "default"), WatchConfig::new(Kind::of::<K>()), Arc::default()));
    let _readers = source.view::<K>();
    tokio::spawn(source.store().clone().write());
    let x = json!({ "metadata": { "name": "x", "uid": "1", "resourceVersion": "5" }, "spec": { "containers": [] } });
    let x = source.accept(&x.to_string()).unwrap();
    source.store().push_and_wait(Delta::Replace(None, vec![x], "5".into())).await;
    source
}

/// Returns a terminating object with these further fields.
fn terminating(meta: &Value, spec: &Value) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let base = json!({ "name": "x", "uid": "1", "resourceVersion": "5", "deletionTimestamp": time });
    let mut object = json!({ "metadata": base, "spec": spec });
    for (name, value) in meta.as_object().into_iter().flatten() {
        object["metadata"][name] = value.clone();
    }
    object
}

/// Checks if the cache has the object after a delete with this response.
async fn check_delete<K: Readable>(response: &Value, stays: bool) {
    let (source, key) = (answering::<K>(response).await, ObjectKey::new(None, "x"));
    let target = Target { by: &key, source: &source, namespace: None, name: "x" };
    Writer::new("test").delete(&target, "1", None).await.unwrap();
    assert_eq!(source.store().get(&key).is_some(), stays, "{response}");
    assert_eq!(source.store().tombstones(), usize::from(!stays), "{response}");
}

#[tokio::test]
async fn deleted_object_remains_until_grace_and_finalizers_end() {
    let containers = || json!({ "containers": [] });
    check_delete::<Pod>(&json!({ "kind": "Status", "metadata": {}, "status": "Success" }), false).await;
    check_delete::<Pod>(&terminating(&json!({ "deletionGracePeriodSeconds": 0 }), &containers()), false).await;
    check_delete::<Pod>(&terminating(&json!({ "deletionGracePeriodSeconds": 30 }), &containers()), true).await;
    check_delete::<Pod>(&terminating(&json!({ "finalizers": ["a/b"] }), &containers()), true).await;
    // It does not fit its type, and may do so again.
    check_delete::<Pod>(&terminating(&json!({ "finalizers": ["a/b"] }), &json!(false)), true).await;
    check_delete::<Pod>(&terminating(&json!({ "deletionGracePeriodSeconds": 0 }), &json!(false)), false).await;
    check_delete::<Namespace>(&terminating(&json!({}), &json!({ "finalizers": ["kubernetes"] })), true).await;
    check_delete::<Namespace>(&terminating(&json!({}), &json!({ "finalizers": [] })), false).await;
    // An object that is deleted at once may be returned without a mark.
    let last = json!({ "metadata": { "name": "x", "uid": "1", "resourceVersion": "9" }, "spec": { "containers": [] } });
    check_delete::<Pod>(&last, false).await;
}

#[tokio::test]
async fn write_that_ends_object_removes_cached_state() {
    let key = ObjectKey::new(None, "x");
    let patch = json!({ "metadata": { "finalizers": [] } });
    for (meta, stays) in [(json!({}), false), (json!({ "finalizers": ["a/b"] }), true)] {
        let source = answering::<Pod>(&terminating(&meta, &json!({ "containers": [] }))).await;
        let target = Target { by: &key, source: &source, namespace: None, name: "x" };
        let writer = Writer::new("test");
        let written = writer.patch::<Pod>(&target, "", MERGE_PATCH, &patch).await.unwrap();
        assert_eq!(written.metadata.name.as_deref(), Some("x"), "the caller gets the last state");
        assert_eq!(source.store().get(&key).is_some(), stays);
        writer.patch_unreadable(&target, MERGE_PATCH, &patch).await.unwrap();
        assert_eq!(source.store().get(&key).is_some(), stays);
    }
    let source = answering::<Pod>(&terminating(&json!({}), &json!(false))).await;
    let target = Target { by: &key, source: &source, namespace: None, name: "x" };
    Writer::new("test").patch_unreadable(&target, MERGE_PATCH, &patch).await.unwrap();
    assert!(source.store().is_empty());
}
