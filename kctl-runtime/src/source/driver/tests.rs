//! Tests of a source: unreadable objects, removed scopes and lost slots.

use std::{
    convert::Infallible,
    future::{pending, ready},
    pin::pin,
};

use futures::{future::AbortHandle, stream::FuturesUnordered};
use k8s_openapi::api::core::v1::Pod;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tower::service_fn;

use super::{
    super::filter::BelongsTo,
    run::{Handles, Start, drive_until},
    *,
};
use crate::{
    object::Stored,
    source::{
        check::Arrival,
        reflector::{Input, Reflector, Request},
    },
    store::{AllSlots, DELTAS_MAX, Delta, Share},
    transport::ApiError,
};

/// Returns a source of Pods whose requests get an empty response.
fn source() -> Source {
    let nobody =
        service_fn(|_request: http::Request<Body>| async { Ok::<_, Infallible>(http::Response::new(Body::empty())) });
    Source::new(Client::new(nobody, "default"), WatchConfig::new(Kind::of::<Pod>()), Arc::default())
}

#[tokio::test]
async fn only_objects_of_events_remain_decoded() {
    let source = source();
    let _readers = source.view::<Pod>();
    let json = |name: &str| format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"containers":[]}}}}"#);
    let line = format!(r#"{{"type":"ADDED","object":{}}}"#, json("alone"));
    let reflector = Reflector::default();
    let Some(Input::Applied(alone)) = source.read_event(line.as_bytes(), &reflector, &mut Vec::new()).unwrap() else {
        panic!("an event");
    };
    let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#, json("listed"));
    let Input::Page { objects, .. } =
        source.read_list(&"list pods".into(), Body::from(list.into_bytes()), Arrival::Listed).await.unwrap()
    else {
        panic!("a list");
    };
    assert!(alone.is_decoded(), "its handlers read it at once");
    assert!(objects.len() == 1 && !objects[0].is_decoded(), "those behind it would push it out");
}

#[tokio::test]
async fn scope_removed_before_the_source_looks_is_closed() {
    let config = WatchConfig::of::<Pod>().in_namespaces(["a"]);
    let store = SharedStore::for_namespaces(&config.namespaces);
    let source = Source::new(source().client, config, Arc::new(store));
    tokio::spawn(source.store().clone().write());
    let (a, b): (NamespaceScope, NamespaceScope) = (Some("a".into()), Some("b".into()));
    let empty = |scope: &NamespaceScope| Delta::Replace(scope.clone(), Vec::new(), "1".into());
    source.store().push(Delta::Incomplete(b.clone())).await;
    source.scopes().add(b.clone());
    source.scopes().remove(&b);
    let mut handles = Handles::new();
    assert_eq!(source.update_scopes(&mut handles, Start::First).await, std::slice::from_ref(&a));
    source.store().push_and_wait(empty(&a)).await;
    assert!(source.store().is_synced(), "it waits for no list of `b`");
    handles.insert(a.clone(), AbortHandle::new_pair().0);
    source.scopes().remove(&a);
    source.scopes().add(a.clone());
    assert_eq!(source.update_scopes(&mut handles, Start::Later).await, std::slice::from_ref(&a));
    source.store().push_and_wait(Delta::Bookmark(None, "1".into())).await;
    assert!(handles.is_empty() && !source.store().is_synced());
    source.store().push_and_wait(empty(&a)).await;
    assert!(source.store().is_synced(), "its list is applied");
}

#[tokio::test]
async fn namespace_added_before_the_start_is_listed() {
    let config = WatchConfig::of::<Pod>().in_namespaces(["a"]);
    let store = SharedStore::for_namespaces(&config.namespaces);
    let source = Source::new(source().client, config, Arc::new(store));
    tokio::spawn(source.store().clone().write());
    let (a, b): (NamespaceScope, NamespaceScope) = (Some("a".into()), Some("b".into()));
    // The queue of the store was full, so that the store does not know `b`.
    source.scopes().add(b.clone());
    assert_eq!(source.update_scopes(&mut Handles::new(), Start::First).await, [a.clone(), b.clone()]);
    for (scope, is_synced) in [(a, false), (b, true)] {
        source.store().push_and_wait(Delta::Replace(scope, Vec::new(), "1".into())).await;
        assert_eq!(source.store().is_synced(), is_synced);
    }
}

#[tokio::test(start_paused = true)]
async fn scopes_are_polled_while_others_change() {
    let config = WatchConfig::of::<Pod>().in_namespaces(["a"]);
    let store = SharedStore::for_namespaces(&config.namespaces);
    let source = Source::new(source().client, config, Arc::new(store));
    let bookmark = || Delta::Bookmark(None, "1".into());
    for _ in 0..DELTAS_MAX {
        source.store().push(bookmark()).await;
    }
    // As many scopes ask for room as the store has in all, and the change asks after them.
    let mut running: FuturesUnordered<_> = (0..DELTAS_MAX).map(|_| source.store().push(bookmark())).collect();
    let moment = Duration::from_secs(1);
    assert!(timeout(moment, drive_until(&mut running, pin!(pending::<()>()))).await.is_err());
    source.scopes().remove(&Some("a".into()));
    let mut handles = Handles::new();
    let update = source.update_scopes(&mut handles, Start::Later);
    tokio::spawn(source.store().clone().write());
    let added = timeout(moment, drive_until(&mut running, pin!(update))).await;
    assert!(added.expect("the store makes room").is_empty());
}

/// Returns the time until a source is synced whose replica gains slots during its first lists, and the number of lists.
async fn sync_while_gaining(n_gained: u64) -> (Duration, usize) {
    let n_lists = Arc::<Mutex<usize>>::default();
    let counted = n_lists.clone();
    let service = service_fn(move |request: http::Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        *counted.lock() += usize::from(!is_watch);
        async move {
            if is_watch {
                pending::<()>().await;
            }
            let list = br#"{"metadata":{"resourceVersion":"10"},"items":[]}"#;
            Ok::<_, Infallible>(http::Response::new(Body::from(list.to_vec())))
        }
    });
    let source = Arc::new(Source::new(Client::new(service, "default"), WatchConfig::of::<Pod>(), Arc::default()));
    let rules = vec![BelongsTo::Itself { namespaced: true }];
    source.select(Filter::new(Arc::new(AllSlots::gaining(n_gained)), rules, None));
    let begun = Instant::now();
    tokio::spawn(source.store().clone().write());
    let runs = source.clone();
    tokio::spawn(async move { runs.run().await });
    timeout(Duration::from_secs(60), source.store().wait_until_synced()).await.expect("the Pods are listed");
    let n_lists = *n_lists.lock();
    (begun.elapsed(), n_lists)
}

#[tokio::test(start_paused = true)]
async fn slot_gained_during_list_repeats_it_without_wait() {
    // The filter is asked twice per list.
    for (n_gained, n_lists, waits) in [(0, 1, false), (1, 2, false), (3, 3, false), (9, 6, true)] {
        let (took, n_sent) = sync_while_gaining(n_gained).await;
        assert_eq!(n_sent, n_lists, "{n_gained} slots");
        assert_eq!(took > Duration::from_millis(100), waits, "{n_gained} slots: {took:?}");
    }
}

/// Returns the times of the requests of a process with this seed. None of them gets a response.
async fn request_times(seed: u64) -> Vec<Duration> {
    let (begun, times) = (Instant::now(), Arc::<Mutex<Vec<Duration>>>::default());
    let noted = times.clone();
    let unreachable = service_fn(move |_request: http::Request<Body>| {
        noted.lock().push(begun.elapsed());
        ready(Err::<http::Response<Body>, _>(std::io::Error::other("unreachable")))
    });
    let source = Source::new(Client::new(unreachable, "default"), WatchConfig::of::<Pod>(), Arc::default());
    source.seed_jitter(seed);
    assert!(timeout(Duration::from_secs(30), source.run()).await.is_err(), "it retries");
    times.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn replicas_retry_at_different_times() {
    let (a, b) = (request_times(1).await, request_times(2).await);
    assert_eq!((a[0], b[0]), (Duration::ZERO, Duration::ZERO));
    // Timers have a resolution of a millisecond.
    let n_apart = a.iter().zip(&b).filter(|(a, b)| a.abs_diff(**b) > Duration::from_millis(5)).count();
    assert!(n_apart > 0, "{a:?} {b:?}");
}

#[tokio::test(start_paused = true)]
async fn version_of_another_api_is_escaped() {
    let queries = Arc::<Mutex<Vec<String>>>::default();
    let noted = queries.clone();
    // The version of an aggregated API is any string. The watch expires, so that the next list names the version as well.
    let server = service_fn(move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let response = if query.contains("watch=true") {
            http::Response::builder().status(410).body(Body::empty())
        } else {
            let list = r#"{"metadata":{"resourceVersion":"a+b&limit=1"},"items":[]}"#;
            http::Response::builder().body(Body::from(list.as_bytes().to_vec()))
        };
        noted.lock().push(query);
        ready(Ok::<_, Infallible>(response.unwrap()))
    });
    let source = Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default());
    assert!(timeout(Duration::from_millis(500), source.run()).await.is_err(), "it retries");
    let queries = queries.lock();
    let is_escaped = |query: &String| query.contains("resourceVersion=a%2Bb%26limit%3D1");
    assert!(queries.len() >= 3 && queries[0].is_empty(), "{queries:?}");
    assert!(queries[1..].iter().all(is_escaped), "{queries:?}");
}

#[tokio::test]
async fn watch_continues_behind_unreadable_events() {
    let source = source();
    let _readers = source.view::<Pod>();
    tokio::spawn(source.store().clone().write());
    let mut reflector = Reflector::default();
    let pod = |name: &str, version: u64, spec: &str| {
        let meta = format!(r#"{{"name":"{name}","namespace":"a","uid":"{name}","resourceVersion":"{version}"}}"#);
        format!(r#"{{"metadata":{meta},"spec":{spec}}}"#)
    };
    let objects = vec![source.accept(&pod("x", 4, r#"{"containers":[]}"#)).unwrap()];
    source.perform(&mut reflector, Input::Page { objects, version: "5".into(), token: None }).await;
    source.store().push_and_wait(Delta::Bookmark(None, "5".into())).await;
    for (kind, name, version) in [("MODIFIED", "x", 9), ("ADDED", "y", 10), ("DELETED", "x", 11)] {
        let line = format!(r#"{{"type":"{kind}","object":{}}}"#, pod(name, version, "false"));
        let (rest, _goes_on) = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
        assert!(rest.is_none(), "the store has room");
        let next = Request::Watch { version: version.to_string() };
        assert_eq!(*reflector.request(), next, "{kind} {name}");
        source.store().push_and_wait(Delta::Bookmark(None, "5".into())).await;
        assert_eq!(source.store().revision(), version, "{kind} {name}");
    }
    assert!(source.store().is_empty());
    assert_eq!(source.num_unreadable(), 1, "`y` is still there");
}

#[tokio::test(start_paused = true)]
async fn streamed_state_forgets_unreadable_objects_it_lacks() {
    let n_streams = Arc::new(AtomicU32::new(0));
    let server = service_fn(move |request: http::Request<Body>| {
        let streams = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents=true"));
        let response = if streams {
            let n = n_streams.fetch_add(1, Ordering::Relaxed);
            let meta =
                format!(r#"{{"resourceVersion":"{}","annotations":{{"k8s.io/initial-events-end":"true"}}}}"#, n + 5);
            let end = format!(r#"{{"type":"BOOKMARK","object":{{"metadata":{meta}}}}}"#);
            let added = format!(r#"{{"type":"ADDED","object":{}}}"#, json("x", "x", 4, "false"));
            let lines = if n == 0 { format!("{added}\n{end}\n") } else { format!("{end}\n") };
            http::Response::builder().body(Body::from(lines.into_bytes()))
        } else {
            http::Response::builder().status(410).body(Body::empty())
        };
        ready(Ok::<_, Infallible>(response.unwrap()))
    });
    let source = Source::new(Client::new(server, "default"), WatchConfig::of::<Pod>(), Arc::default());
    let _readers = source.view::<Pod>();
    source.stream_state();
    assert!(timeout(Duration::from_millis(500), source.run()).await.is_err(), "it watches");
    assert_eq!(source.health().undecodable, 1);
    assert_eq!(source.num_unreadable(), 0, "it was deleted before the second stream");
}

fn json(name: &str, uid: &str, version: u64, spec: &str) -> String {
    let meta = format!(r#"{{"name":"{name}","namespace":"a","uid":"{uid}","resourceVersion":"{version}"}}"#);
    format!(r#"{{"metadata":{meta},"spec":{spec}}}"#)
}

/// Returns a Pod as the source accepts it.
fn pod(source: &Source, name: &str, version: u64) -> Arc<Stored> {
    source.accept(&json(name, name, version, r#"{"containers":[]}"#)).unwrap()
}

fn last_page(objects: Vec<Arc<Stored>>, version: &str) -> Input {
    Input::Page { objects, version: version.into(), token: None }
}

/// Returns a source that reads whole Pods, and a reflector that watches from version 5.
async fn watching_from_5(objects: impl FnOnce(&Source) -> Vec<Arc<Stored>>) -> (Source, Reflector) {
    let (source, mut reflector) = (source(), Reflector::default());
    let _readers = source.view::<Pod>();
    tokio::spawn(source.store().clone().write());
    let objects = objects(&source);
    source.perform(&mut reflector, last_page(objects, "5")).await;
    source.store().flush().await;
    (source, reflector)
}

#[tokio::test]
async fn unreadable_successor_does_not_keep_its_predecessor() {
    let (source, mut reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
    let list = format!(r#"{{"metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#, json("x", "successor", 9, "false"));
    let input = source.read_list(&"list pods".into(), Body::from(list.into_bytes()), Arrival::Listed).await.unwrap();
    source.perform(&mut reflector, input).await;
    source.store().flush().await;
    assert!(source.store().is_empty(), "its predecessor is gone");
}

#[tokio::test]
async fn last_state_of_unreadable_item_undoes_no_write() {
    let (source, mut reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
    let list = format!(r#"{{"metadata":{{"resourceVersion":"12"}},"items":[{}]}}"#, json("x", "x", 9, "false"));
    let input = source.read_list(&"list pods".into(), Body::from(list.into_bytes()), Arrival::Listed).await.unwrap();
    // The response to a write from before the unreadable state is late.
    source.store().push_and_wait(Delta::Written(pod(&source, "x", 7))).await;
    source.perform(&mut reflector, input).await;
    source.store().flush().await;
    let version = source.store().all().first().map(|cached| cached.meta().resource_version.to_string());
    assert_eq!((source.store().n_restores(), version.as_deref()), (0, Some("7")));
}

#[tokio::test]
async fn unreadable_deletion_keeps_a_newer_state() {
    let (source, mut reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
    source.store().push_and_wait(Delta::Written(pod(&source, "x", 13))).await;
    // Another client removes the label of the selector at 11, and this process restores it at 13.
    let line = format!(r#"{{"type":"DELETED","object":{}}}"#, json("x", "x", 11, "false"));
    let _applied = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
    source.store().flush().await;
    assert_eq!((source.store().len(), source.store().revision()), (1, 11));
    let line = format!(r#"{{"type":"ADDED","object":{}}}"#, json("y", "y", 12, r#"{"containers":[]}"#));
    let _applied = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
    source.store().flush().await;
    assert_eq!(source.store().len(), 2, "the watch has just reported it");
}

/// Reads a list of one item during the watch, and returns the number of unreadable objects after it.
async fn unreadable_after(source: &Source, version: u64, item: &str) -> usize {
    let list = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"items":[{item}]}}"#);
    let body = Body::from(list.into_bytes());
    source.read_list(&"list pods".into(), body, Arrival::ListedDuringWatch).await.unwrap();
    source.num_unreadable()
}

#[tokio::test]
async fn outdated_unreadable_item_is_not_remembered() {
    let (source, _reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
    source.store().push_and_wait(Delta::Written(pod(&source, "x", 12))).await;
    let item = json("x", "x", 9, "false");
    assert_eq!(unreadable_after(&source, 10, &item).await, 0, "the cache has a later state");
    assert_eq!(unreadable_after(&source, 20, &item).await, 1, "the API server was restored from a backup");
}

#[tokio::test]
async fn outdated_readable_item_ends_no_unreadable_state() {
    let (source, reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
    let line = format!(r#"{{"type":"MODIFIED","object":{}}}"#, json("x", "x", 12, "false"));
    source.read_event(line.as_bytes(), &reflector, &mut Vec::new()).unwrap();
    let item = json("x", "x", 9, r#"{"containers":[]}"#);
    assert_eq!(unreadable_after(&source, 10, &item).await, 1, "the unreadable state is later");
    assert_eq!(unreadable_after(&source, 20, &item).await, 0, "the API server was restored from a backup");
}

#[tokio::test]
async fn list_of_a_removed_scope_remembers_nothing() {
    let config = WatchConfig::of::<Pod>().in_namespaces(["a", "b"]);
    let source = Source::new(source().client, config, Arc::default());
    let _readers = source.view::<Pod>();
    let item = json("x", "x", 9, "false");
    assert_eq!(unreadable_after(&source, 10, &item).await, 1);
    source.scopes().remove(&Some("a".into()));
    assert_eq!(source.update_scopes(&mut Handles::new(), Start::Later).await.len(), 1, "`b` is left");
    assert_eq!(unreadable_after(&source, 11, &item).await, 0);
}

/// The one slot of a replica, which it may lose.
struct OneSlot(AtomicBool);

impl Share for OneSlot {
    fn has(&self, _key: &ObjectKey) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn has_namespace(&self, _namespace: &str) -> bool {
        false
    }

    fn is_empty(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }

    fn n_gained(&self) -> u64 {
        1
    }
}

fn sharded_source() -> (Source, Arc<OneSlot>) {
    let (source, slot) = (source(), Arc::new(OneSlot(AtomicBool::new(true))));
    source.select(Filter::new(slot.clone(), vec![BelongsTo::Itself { namespaced: true }], None));
    (source, slot)
}

#[tokio::test]
async fn list_during_slot_loss_keeps_no_lost_objects() {
    let (source, slot) = sharded_source();
    tokio::spawn(source.store().clone().write());
    let mut reflector = Reflector::default();
    source.perform(&mut reflector, Input::Failed(ApiError::rejected("list pods", 413, None, "{}"))).await;
    let objects = vec![pod(&source, "x", 4)];
    source.perform(&mut reflector, Input::Page { objects, version: "5".into(), token: Some("more".into()) }).await;
    let objects = vec![pod(&source, "y", 4)];
    slot.0.store(false, Ordering::Relaxed);
    source.drop_lost().await;
    source.perform(&mut reflector, last_page(objects, "5")).await;
    source.store().flush().await;
    assert!(source.store().is_empty());
}

#[tokio::test]
async fn own_delete_reported_after_slot_loss_is_forgotten() {
    let (source, slot) = sharded_source();
    tokio::spawn(source.store().clone().write());
    let mut reflector = Reflector::default();
    let x = pod(&source, "x", 4);
    source.perform(&mut reflector, last_page(vec![x.clone()], "5")).await;
    source.store().push_and_wait(Delta::Gone(x.key().clone(), x.meta().uid.clone())).await;
    slot.0.store(false, Ordering::Relaxed);
    source.drop_lost().await;
    assert_eq!(source.store().tombstones(), 1, "the watch has not reported the delete");
    let line = format!(r#"{{"type":"DELETED","object":{}}}"#, json("x", "x", 9, r#"{"containers":[]}"#));
    let _applied = source.apply_line(&mut reflector, line.as_bytes(), Instant::now());
    source.store().flush().await;
    assert_eq!(source.store().tombstones(), 0);
}

#[tokio::test]
async fn waiting_events_leave_with_their_slot() {
    let (source, slot) = sharded_source();
    let mut reflector = Reflector::default();
    source.perform(&mut reflector, last_page(vec![pod(&source, "x", 4)], "5")).await;
    tokio::spawn(source.store().clone().write());
    slot.0.store(false, Ordering::Relaxed);
    source.drop_lost().await;
    source.store().flush().await;
    assert!(source.store().is_synced() && source.store().is_empty());
}

/// Returns the line of a watch event of the Pod `x` whose controller has this name, if any.
fn line_of_x(event: &str, version: u64, controller: Option<&str>) -> String {
    let owner = |name| {
        format!(
            r#","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"{name}","uid":"c","controller":true}}]"#
        )
    };
    let owners = controller.map(owner).unwrap_or_default();
    let meta = format!(r#"{{"name":"x","namespace":"a","uid":"x","resourceVersion":"{version}"{owners}}}"#);
    format!(r#"{{"type":"{event}","object":{{"metadata":{meta},"spec":{{"containers":[]}}}}}}"#)
}

/// Returns a source of the Pods that a `ConfigMap` controls, and a reflector that watches from version 5. The cache has the Pod
/// `x` in these versions.
async fn watching_children_from_5(cached: &[u64]) -> (Source, Reflector) {
    let (source, mut reflector) = (source(), Reflector::default());
    let kind = Kind::of::<k8s_openapi::api::core::v1::ConfigMap>();
    let share = Arc::new(OneSlot(AtomicBool::new(true)));
    source.select(Filter::new(share, vec![BelongsTo::Controller { kind, namespaced: true }], None));
    tokio::spawn(source.store().clone().write());
    source.perform(&mut reflector, last_page(Vec::new(), "5")).await;
    apply_lines(&source, &mut reflector, cached.iter().map(|version| line_of_x("MODIFIED", *version, Some("c"))));
    source.store().flush().await;
    (source, reflector)
}

/// Applies lines of a watch, before the writer applies the first one.
fn apply_lines(source: &Source, reflector: &mut Reflector, lines: impl IntoIterator<Item = String>) {
    for line in lines {
        let (rest, _goes_on) = source.apply_line(reflector, line.as_bytes(), Instant::now());
        assert!(rest.is_none(), "the store has room");
    }
}

#[tokio::test]
async fn released_child_leaves_with_its_waiting_events() {
    let child = |event, version| line_of_x(event, version, Some("c"));
    for (cached, selected, end) in [
        (&[][..], child("ADDED", 6), line_of_x("MODIFIED", 7, None)),
        (&[6], child("MODIFIED", 7), line_of_x("MODIFIED", 8, None)),
        (&[6], child("MODIFIED", 7), line_of_x("DELETED", 8, None)),
    ] {
        let (source, mut reflector) = watching_children_from_5(cached).await;
        assert_eq!(source.store().len(), cached.len());
        apply_lines(&source, &mut reflector, [selected, end.clone()]);
        source.store().flush().await;
        assert!(source.store().is_empty(), "{cached:?} {end}");
    }
}

#[tokio::test]
async fn released_child_leaves_after_a_waiting_list() {
    let (source, mut reflector) = watching_children_from_5(&[]).await;
    source.store().push_and_wait(Delta::Listing(None)).await;
    let x = source.accept(&json("x", "x", 10, r#"{"containers":[]}"#)).unwrap();
    source.store().push(Delta::Join(None, vec![x], "10".into())).await;
    apply_lines(&source, &mut reflector, [line_of_x("MODIFIED", 12, None)]);
    source.store().flush().await;
    assert!(source.store().is_empty());
}

#[tokio::test]
async fn child_adopted_by_own_write_survives_earlier_event() {
    let (source, mut reflector) = watching_children_from_5(&[]).await;
    let x = source.accept(&json("x", "x", 10, r#"{"containers":[]}"#)).unwrap();
    source.store().push(Delta::Written(x)).await;
    apply_lines(&source, &mut reflector, [line_of_x("MODIFIED", 8, None)]);
    source.store().flush().await;
    assert_eq!(source.store().len(), 1);
}

/// The final state is unreadable, so the last readable one has to leave: here, one that waits for the writer.
#[tokio::test]
async fn unreadable_deletion_ends_waiting_state() {
    let (source, mut reflector) = watching_from_5(|source| vec![pod(source, "x", 4)]).await;
    let readable = format!(r#"{{"type":"MODIFIED","object":{}}}"#, json("x", "x", 7, r#"{"containers":[]}"#));
    let end = format!(r#"{{"type":"DELETED","object":{}}}"#, json("x", "x", 9, "false"));
    apply_lines(&source, &mut reflector, [readable, end]);
    source.store().flush().await;
    assert!(source.store().is_empty());
}

#[tokio::test]
async fn unselected_events_do_not_wait_for_the_writer() {
    let (source, mut reflector) = watching_children_from_5(&[]).await;
    let spaced = line_of_x("MODIFIED", 8, None).replacen(':', ": ", 1);
    let invalid_spec = line_of_x("MODIFIED", 9, None).replace("[]", "");
    for (version, line) in [(7, line_of_x("ADDED", 7, None)), (8, spaced), (9, invalid_spec)] {
        apply_lines(&source, &mut reflector, [line.clone()]);
        assert_eq!(source.store().revision(), version, "{line}");
    }
    // The watch passes an own write without reporting it, so its object leaves, which handlers have to see.
    let x = source.accept(&json("x", "x", 10, r#"{"containers":[]}"#)).unwrap();
    source.store().push_and_wait(Delta::Written(x)).await;
    apply_lines(&source, &mut reflector, [line_of_x("MODIFIED", 12, None)]);
    assert_eq!((source.store().revision(), source.store().len()), (9, 1));
    source.store().flush().await;
    assert_eq!((source.store().revision(), source.store().len()), (12, 0));
}
