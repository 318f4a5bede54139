//! Rows a to m of `tests/loop/BEHAVIOURS.md` on kube's own `Controller`. Each test passes as long as kube lacks the
//! behaviour.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Pod, Secret},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kctl_tests::{Fault, RequestSummary};
use kube::{
    Api, CustomResource, CustomResourceExt, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use kube_controller::{Log, World, seconds};
use kube_runtime::{
    Controller, PredicateConfig, WatchStreamExt,
    controller::{Action, Config, applier},
    predicates,
    reflector::{self, ObjectRef},
    watcher,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

fn config(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.into()), namespace: Some("default".into()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// Returns a store that contains these objects, without a server.
fn store_of(names: &[&str]) -> (reflector::Store<ConfigMap>, reflector::store::Writer<ConfigMap>) {
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&watcher::Event::Init);
    for name in names {
        writer.apply_watcher_event(&watcher::Event::InitApply(config(name)));
    }
    writer.apply_watcher_event(&watcher::Event::InitDone);
    (store, writer)
}

#[expect(clippy::unnecessary_wraps, reason = "kube's scheduler takes streams of results")]
fn reference(name: &str) -> Result<ObjectRef<ConfigMap>, std::convert::Infallible> {
    Ok(ObjectRef::new(name).within("default"))
}

/// Tests the stream that `Controller::owns` maps to owners. In a complete controller, the relist of the owners would
/// also queue them and hide the gap.
#[tokio::test(start_paused = true)]
async fn missed_child_deletion_during_outage_queues_no_owner() {
    let mut world = World::empty();
    world.faults.lists_only = true;
    for name in ["a", "b"] {
        let owner = world.set(name, "1").await.unwrap();
        world.create_pod_of(&owner).await.unwrap();
    }
    let log = Log::default();
    let pods = Api::<Pod>::default_namespaced(world.own_client());
    let touched = watcher(pods, watcher::Config::default()).touched_objects().default_backoff();
    tokio::spawn(touched.for_each({
        let log = log.clone();
        move |item| {
            if let Ok(pod) = item {
                log.add(pod.name_any());
            }
            std::future::ready(())
        }
    }));
    seconds(5).await;
    assert_eq!(log.take(), ["a", "b"]);
    world.faults.add(Fault::Break, |request: &RequestSummary| request.reads("pods"));
    world.faults.cut_watches();
    world.pods().delete("a", &DeleteParams::default()).await.unwrap();
    world.server.compact();
    seconds(10).await;
    world.faults.clear();
    seconds(120).await;
    assert_eq!(log.take(), ["b"], "kube queues the owner of a deleted child now");
}

#[tokio::test(start_paused = true)]
async fn b_forbidden_kind_delays_events_of_other_kinds() {
    let world = World::empty();
    world.set("a", "1").await.unwrap();
    world.faults.add(Fault::Reject(403), |request: &RequestSummary| request.reads("pods"));
    let log = Log::default();
    world.run_logging(&log, Config::default());
    let mut slowest = Duration::ZERO;
    // The backoff between the retries is random. It grows to half a minute if no other event arrives.
    for version in 2..32 {
        seconds(120).await;
        log.take();
        let begun = Instant::now();
        world.set("a", &version.to_string()).await.unwrap();
        while log.take().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        slowest = slowest.max(begun.elapsed());
    }
    assert!(slowest > Duration::from_secs(5), "kube delays no other kind now: {slowest:?}");
}

#[tokio::test(start_paused = true)]
async fn delete_passes_no_predicate_whose_value_is_unchanged() {
    let world = World::empty();
    world.set("a", "1").await.unwrap();
    let configs = Api::<ConfigMap>::default_namespaced(world.own_client());
    let touched = watcher(configs, watcher::Config::default())
        .touched_objects()
        .predicate_filter(predicates::labels, PredicateConfig::default());
    let log = Log::default();
    tokio::spawn(touched.for_each({
        let log = log.clone();
        move |item| {
            log.add(item.map_or_else(|error| error.to_string(), |config| config.name_any()));
            std::future::ready(())
        }
    }));
    seconds(5).await;
    assert_eq!(log.take(), ["a"]);
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    seconds(60).await;
    assert_eq!(log.take(), Vec::<String>::new(), "a delete passes now");
}

#[tokio::test(start_paused = true)]
async fn d_panic_of_one_key_ends_the_controller() {
    let world = World::empty();
    world.set("a", "panic").await.unwrap();
    let controller =
        Controller::new(Api::<ConfigMap>::default_namespaced(world.own_client()), watcher::Config::default());
    let reconcile = |config: Arc<ConfigMap>, _context: Arc<()>| async move {
        assert_ne!(config.name_any(), "a", "planted");
        Ok::<_, std::convert::Infallible>(Action::await_change())
    };
    let items = controller.run(reconcile, |_, never, _| match *never {}, Arc::new(()));
    let ended = AssertUnwindSafe(items.for_each(|_item| std::future::ready(()))).catch_unwind();
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await;
    assert!(matches!(ended, Ok(Err(_panic))), "the controller continues now");
}

#[tokio::test(start_paused = true)]
async fn e_shared_cache_sends_no_deletes() {
    let (_store, writer) = reflector::store_shared::<ConfigMap>(16);
    let subscriber = writer.subscribe().unwrap();
    let log = Log::default();
    tokio::spawn(subscriber.for_each({
        let log = log.clone();
        move |config| {
            log.add(config.name_any());
            std::future::ready(())
        }
    }));
    let events = stream::iter([
        Ok::<_, watcher::Error>(watcher::Event::Apply(config("a"))),
        Ok(watcher::Event::Delete(config("a"))),
        Ok(watcher::Event::Apply(config("b"))),
    ]);
    events.reflect_shared(writer).for_each(|_event| std::future::ready(())).await;
    seconds(5).await;
    assert!(!log.take().contains(&"a".to_owned()), "a delete is reported now");
}

/// Adds keys in this order, reconciles one at a time, and returns the order of the reconciles. `hot` is added again
/// each time it runs.
async fn order_with_a_hot_key(names: &[String]) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (store, _writer) = store_of(&names);
    let (again, added) = futures::channel::mpsc::unbounded();
    let log = Log::default();
    let reconcile = {
        let log = log.clone();
        move |config: Arc<ConfigMap>,
              _context: Arc<()>|
              -> BoxFuture<'static, Result<Action, std::convert::Infallible>> {
            log.add(config.name_any());
            if config.name_any() == HOT {
                again.unbounded_send(reference(HOT)).unwrap();
            }
            async {
                seconds(1).await;
                Ok(Action::await_change())
            }
            .boxed()
        }
    };
    let queue = stream::iter(names.iter().map(|name| reference(name)).collect::<Vec<_>>()).chain(added);
    let config = Config::default().concurrency(1);
    let items = applier(reconcile, |_, never, _| match *never {}, Arc::new(()), store, queue, config);
    let time = Duration::from_secs(10 * names.len() as u64);
    let _elapsed = tokio::time::timeout(time, items.for_each(|_item| std::future::ready(()))).await;
    log.take()
}

const HOT: &str = "hot";

#[tokio::test(start_paused = true)]
async fn f_hot_key_starves_keys_that_wait() {
    let mut starved = Vec::new();
    for round in 0..10 {
        let mut names: Vec<String> = (0..20).map(|n| format!("round-{round}-key-{n}")).collect();
        names.insert(0, HOT.into());
        let order = order_with_a_hot_key(&names).await;
        assert!(order.len() > 200, "the hot key runs all the time: {order:?}");
        starved.push(names.iter().filter(|name| !order.contains(name)).count());
    }
    // The hashes of keys decide which of them starve. A single round with 21 keys may starve none.
    assert!(starved.iter().any(|n| *n > 0), "each of 20 keys has its turn within 200 runs now");
}

/// An error policy receives the object, the error and the context, and nothing else: the test would not compile
/// otherwise. The logged lines show that none of them contains the number of failures.
#[tokio::test(start_paused = true)]
async fn g_error_policy_receives_no_failure_count() {
    type Policy = fn(Arc<ConfigMap>, &std::fmt::Error, Arc<Log>) -> Action;
    let (store, _writer) = store_of(&["a"]);
    let log_lines = Arc::new(Log::default());
    let reconcile =
        |_config: Arc<ConfigMap>, _context: Arc<Log>| -> BoxFuture<'static, Result<Action, std::fmt::Error>> {
            async { Err(std::fmt::Error) }.boxed()
        };
    let policy: Policy = |object, error, log_lines| {
        log_lines.add(format!("{object:?}: {error:?}"));
        Action::requeue(Duration::from_secs(1))
    };
    let queue = stream::iter([reference("a")]).chain(stream::pending());
    let items = applier(reconcile, policy, log_lines.clone(), store, queue, Config::default());
    let _elapsed = tokio::time::timeout(Duration::from_secs(20), items.for_each(|_item| std::future::ready(()))).await;
    let log_lines = log_lines.take();
    assert!(
        log_lines.len() > 15 && log_lines.iter().all(|line| *line == log_lines[0]),
        "failures are distinguished now: {log_lines:?}"
    );
}

#[test]
fn h_owner_reference_of_other_version_is_ignored() {
    let reference = |version: &str| OwnerReference {
        api_version: version.into(),
        kind: "Deployment".into(),
        name: "web".into(),
        uid: "1".into(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    let owner = |version: &str| ObjectRef::<Deployment>::from_owner_ref(Some("default"), &reference(version), ());
    assert!(owner("apps/v1").is_some());
    assert_eq!(owner("apps/v1beta2"), None, "the version does not matter now");
}

#[tokio::test(start_paused = true)]
async fn i_ten_year_requeue_runs_within_one() {
    let (store, _writer) = store_of(&["a"]);
    let n = Arc::new(AtomicUsize::new(0));
    let reconcile = {
        let n = n.clone();
        move |_config: Arc<ConfigMap>,
              _context: Arc<()>|
              -> BoxFuture<'static, Result<Action, std::convert::Infallible>> {
            n.fetch_add(1, Ordering::Relaxed);
            async { Ok(Action::requeue(Duration::from_secs(10 * 365 * 86_400))) }.boxed()
        }
    };
    let queue = stream::iter([reference("a")]).chain(stream::pending());
    let items = applier(reconcile, |_, never, _| match *never {}, Arc::new(()), store, queue, Config::default());
    let year = Duration::from_secs(365 * 86_400);
    let _elapsed = tokio::time::timeout(year, items.for_each(|_item| std::future::ready(()))).await;
    assert!(n.load(Ordering::Relaxed) > 1, "it waits as long as it is asked to now");
}

#[tokio::test(start_paused = true)]
async fn j_unchanged_status_is_sent_each_time() {
    let world = World::empty();
    let deployments = Api::<Deployment>::default_namespaced(world.client.clone());
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
            },
        },
    });
    deployments.patch("web", &PatchParams::apply("test"), &Patch::Apply(web)).await.unwrap();
    let own = Api::<Deployment>::default_namespaced(world.own_client());
    let reconcile = {
        let own = own.clone();
        move |deployment: Arc<Deployment>, _context: Arc<()>| {
            let own = own.clone();
            async move {
                let status =
                    Patch::Merge(json!({ "status": { "observedGeneration": deployment.metadata.generation } }));
                own.patch_status(&deployment.name_any(), &PatchParams::default(), &status).await?;
                Ok::<_, kube::Error>(Action::await_change())
            }
        }
    };
    let items =
        Controller::new(own, watcher::Config::default()).run(reconcile, |_, _, _| Action::await_change(), Arc::new(()));
    tokio::spawn(items.for_each(|_item| std::future::ready(())));
    seconds(60).await;
    let patches = world.server.requests().into_iter().filter(|request| request.verb == "patch").count() - 1;
    assert!(patches > 1, "a status that says the same is not sent now");
}

#[tokio::test(start_paused = true)]
async fn controllers_of_one_kind_list_and_watch_separately() {
    let world = World::empty();
    world.set("a", "1").await.unwrap();
    let log = Log::default();
    world.run_logging(&log, Config::default());
    world.run_logging(&log, Config::default());
    seconds(60).await;
    assert!(world.n_requests("watch", "configmaps") >= 2, "they share a watch now");
}

#[tokio::test(start_paused = true)]
async fn no_permission_review_before_the_first_forbidden_request() {
    let world = World::empty();
    world.set("a", "1").await.unwrap();
    // Simulates a hand-written role that lacks a verb that the reconcile needs.
    let log = Log::default();
    let asks = log.clone();
    world.faults.add(Fault::Reject(403), move |request: &RequestSummary| {
        let resource = request.path.rsplit('/').next().unwrap_or_default();
        asks.add(format!("{} {resource}", if request.is_watch { "WATCH" } else { request.method.as_str() }));
        resource == "secrets"
    });
    let secrets = Api::<Secret>::default_namespaced(world.own_client());
    let reconcile = move |config: Arc<ConfigMap>, _context: Arc<()>| {
        let secrets = secrets.clone();
        async move {
            let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
            let secret = Secret { metadata, ..Secret::default() };
            secrets.create(&kube::api::PostParams::default(), &secret).await?;
            Ok::<_, kube::Error>(Action::await_change())
        }
    };
    let policy = |_object: Arc<ConfigMap>, _error: &kube::Error, _context: Arc<()>| Action::await_change();
    let configs = Api::<ConfigMap>::default_namespaced(world.own_client());
    let items = Controller::new(configs, watcher::Config::default()).run(reconcile, policy, Arc::new(()));
    tokio::spawn(items.for_each(|_item| std::future::ready(())));
    seconds(60).await;
    let request = ["GET configmaps", "WATCH configmaps", "POST secrets"];
    assert_eq!(log.take()[..3], request, "it asks what it may before it begins now");
}

/// Two variants give one field two types.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Odd", namespaced)]
struct OddSpec {
    shape: Shape,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Shape {
    /// By number.
    Round { size: u32 },
    /// By name.
    Named { size: String },
}

#[test]
fn m_definition_whose_schema_contradicts_itself_panics() {
    let made = catch_unwind(Odd::crd);
    assert!(made.is_err(), "it is not a panic now");
}
