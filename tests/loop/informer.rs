//! Handlers receive each change of a store once and in order, until they are dropped.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};

use kctl::{
    key::ObjectKey,
    object::{Kind, Stored},
    prelude::*,
};
use kctl_runtime::store::{Delta, Handler, Origin, SharedStore};
use kctl_tests::Fault;
use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    task::{AbortHandle, yield_now},
    time::timeout,
};

use crate::{
    script::{event, list, log_changes, object, watch},
    world::{Log, World, advance_seconds, app},
};

/// Creates a store with a running writer.
fn store() -> (Arc<SharedStore>, AbortHandle) {
    let store = Arc::new(SharedStore::default());
    let writer = tokio::spawn(store.clone().write());
    (store, writer.abort_handle())
}

fn stored(name: &str, version: usize) -> Arc<Stored> {
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &object(name, &version.to_string())).unwrap())
}

fn replace(objects: &[(&str, usize)], version: &str) -> Delta {
    Delta::Replace(None, objects.iter().map(|(name, version)| stored(name, *version)).collect(), version.into())
}

#[tokio::test(start_paused = true)]
async fn late_handler_gets_initial_objects_then_each_change() {
    let (store, _writer) = store();
    let (early, late) = (Log::default(), Log::default());
    let _delivered = store.subscribe(log_changes(&early)).await;
    store.push(replace(&[("a", 1), ("b", 2)], "2")).await;
    store.push(Delta::Apply(stored("a", 3))).await;
    let _delivered = store.subscribe(log_changes(&late)).await;
    store.push(Delta::Apply(stored("b", 4))).await;
    store.push_and_wait(Delta::Delete(stored("a", 5))).await;
    assert_eq!(early.take(), ["initial +a@1", "initial +b@2", "~a@3", "~b@4", "-a@5"]);
    assert_eq!(late.take(), ["initial +a@3", "initial +b@2", "~b@4", "-a@5"]);
}

/// Returns a handler that replays changes and logs each one that does not fit the previous state.
fn replay_changes(known: &Arc<Mutex<BTreeMap<ObjectKey, String>>>, complaints: &Log) -> Handler {
    let (known, complaints) = (known.clone(), complaints.clone());
    Arc::new(move |change, _origin| {
        let (mut known, object) = (known.lock(), change.latest());
        let before = match change {
            Change::Added(_) => None,
            Change::Updated { old, .. } => Some(old.meta().resource_version.to_string()),
            Change::Deleted { .. } => known.get(object.key()).cloned(),
        };
        if known.get(object.key()) != before.as_ref() {
            complaints.add(format!("{change:?} after {:?}", known.get(object.key())));
        }
        match change {
            Change::Deleted { .. } => known.remove(object.key()),
            _ => known.insert(object.key().clone(), object.meta().resource_version.to_string()),
        };
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_added_under_load_miss_and_repeat_nothing() {
    let (store, _writer) = store();
    store.push_and_wait(replace(&[], "0")).await;
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for version in 1..4_000 {
                let name = format!("object-{}", version % 7);
                let gone = version % 5 == 0;
                let object = stored(&name, version);
                store.push(if gone { Delta::Delete(object) } else { Delta::Apply(object) }).await;
                if version % 100 == 0 {
                    yield_now().await;
                }
            }
        }
    });
    let (complaints, mut all) = (Log::default(), Vec::new());
    for _ in 0..50 {
        let known = Arc::default();
        store.subscribe(replay_changes(&known, &complaints)).await.wait_until_delivered().await;
        all.push(known);
    }
    writing.await.unwrap();
    store.push_and_wait(Delta::Bookmark(None, "5000".into())).await;
    let expected: BTreeMap<ObjectKey, String> =
        store.all().iter().map(|object| (object.key().clone(), object.meta().resource_version.to_string())).collect();
    assert!(expected.len() > 3, "{expected:?}");
    assert_eq!(complaints.take(), [""; 0]);
    for known in all {
        assert_eq!(*known.lock(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn handler_has_synced_after_its_last_initial_object() {
    let (store, _writer) = store();
    let log = Log::default();
    let mut delivered = Box::pin(store.subscribe(log_changes(&log)).await.wait_until_delivered());
    store.push_and_wait(Delta::Bookmark(None, "1".into())).await;
    assert!(timeout(Duration::from_secs(60), &mut delivered).await.is_err(), "nothing was listed");
    store.push(replace(&[("a", 1), ("b", 2)], "2")).await;
    delivered.await;
    assert_eq!(log.take(), ["initial +a@1", "initial +b@2"]);
    // An empty list also completes the initial state.
    let (empty, _writer) = self::store();
    let delivered = empty.subscribe(log_changes(&log)).await.wait_until_delivered();
    empty.push(replace(&[], "2")).await;
    timeout(Duration::from_secs(60), delivered).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_the_first_list_is_initial() {
    let (store, _writer) = store();
    let log = Log::default();
    let _delivered = store.subscribe(log_changes(&log)).await;
    store.push(replace(&[("a", 1)], "2")).await;
    store.push_and_wait(replace(&[("a", 1), ("b", 3)], "4")).await;
    assert_eq!(log.take(), ["initial +a@1", "+b@3"]);
    store.push(Delta::Incomplete(None)).await;
    store.push_and_wait(replace(&[("a", 5), ("b", 3)], "6")).await;
    assert_eq!(log.take(), ["~a@5"], "the first list after a 404 brings changes");
    for delta in [Delta::Incomplete(None), Delta::Clear(None)] {
        store.push(delta).await;
    }
    store.push_and_wait(replace(&[("a", 7)], "8")).await;
    assert_eq!(log.take(), ["-a@5", "-b@3", "initial +a@7"], "the kind was deleted, and is installed again");
}

#[tokio::test(start_paused = true)]
async fn first_list_of_each_namespace_is_initial() {
    let store = Arc::new(SharedStore::for_namespaces(&["default".into(), "other".into()]));
    let _writer = tokio::spawn(store.clone().write());
    let log = Log::default();
    let _delivered = store.subscribe(log_changes(&log)).await;
    let listed =
        |version: usize| Delta::Replace(Some("default".into()), vec![stored("a", version)], version.to_string());
    store.push(listed(1)).await;
    store.push_and_wait(listed(3)).await;
    assert_eq!(log.take(), ["initial +a@1", "~a@3"], "though the other namespace is not listed yet");
}

#[tokio::test(start_paused = true)]
async fn changes_are_delivered_one_by_one_in_order() {
    let (store, _writer) = store();
    let log = Log::default();
    let _delivered = store.subscribe(log_changes(&log)).await;
    let deltas = [replace(&[], "1"), Delta::Apply(stored("a", 2)), Delta::Apply(stored("a", 3))];
    for delta in deltas {
        store.push(delta).await;
    }
    store.push_and_wait(Delta::Delete(stored("a", 4))).await;
    assert_eq!(log.take(), ["+a@2", "~a@3", "-a@4"]);
}

#[tokio::test(start_paused = true)]
async fn delete_of_unknown_object_is_not_reported() {
    let (store, _writer) = store();
    let log = Log::default();
    let _delivered = store.subscribe(log_changes(&log)).await;
    store.push(replace(&[], "1")).await;
    store.push_and_wait(Delta::Delete(stored("a", 4))).await;
    assert!(log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn handlers_see_the_whole_list_with_deletes_first() {
    let (store, _writer) = store();
    store.push_and_wait(replace(&[("a", 1), ("b", 2), ("c", 3)], "3")).await;
    let (log, reader) = (Log::default(), store.clone());
    let seen = log.clone();
    let handler: Handler = Arc::new(move |change, origin| {
        if origin == Origin::Live {
            let names: Vec<_> = ["a", "b", "c", "d"].into_iter().filter(|name| is_in(&reader, name)).collect();
            let deleted = matches!(change, Change::Deleted { .. });
            seen.add(format!("{} {} of {}", change.latest().key().name, deleted, names.concat()));
        }
    });
    store.subscribe(handler).await.wait_until_delivered().await;
    store.push_and_wait(replace(&[("d", 9), ("b", 8), ("c", 3)], "9")).await;
    assert_eq!(log.take(), ["a true of bcd", "d false of bcd", "b false of bcd"]);
}

fn is_in(store: &SharedStore, name: &str) -> bool {
    store.get(&ObjectKey::new(Some("default"), name)).is_some()
}

#[tokio::test(start_paused = true)]
async fn panicking_handler_alone_misses_one_change() {
    let (store, _writer) = store();
    let (bad, good) = (Log::default(), Log::default());
    let note = log_changes(&bad);
    let panicking: Handler = Arc::new(move |change, origin| {
        assert!(&*change.latest().key().name != "b", "planted");
        note(change, origin);
    });
    store.push(replace(&[("a", 1), ("b", 2)], "2")).await;
    store.subscribe(panicking).await.wait_until_delivered().await;
    let _delivered = store.subscribe(log_changes(&good)).await;
    store.push(Delta::Apply(stored("b", 3))).await;
    store.push_and_wait(Delta::Apply(stored("a", 4))).await;
    assert_eq!(bad.take(), ["initial +a@1", "~a@4"]);
    assert_eq!(good.take(), ["initial +a@1", "initial +b@2", "~b@3", "~a@4"]);
}

#[tokio::test(start_paused = true)]
async fn stopped_store_reports_nothing_and_blocks_no_caller() {
    let (store, writer) = store();
    store.push_and_wait(replace(&[("a", 1)], "1")).await;
    writer.abort();
    yield_now().await;
    let log = Log::default();
    let late = async { store.subscribe(log_changes(&log)).await.wait_until_delivered().await };
    assert!(timeout(Duration::from_secs(1), late).await.is_ok());
    assert!(timeout(Duration::from_secs(1), store.push_and_wait(Delta::Apply(stored("b", 2)))).await.is_ok());
    assert!(log.take().is_empty());
    assert_eq!(store.len(), 1, "what it had can still be read");
    // A caller that waits when it stops returns as well.
    let (store, writer) = self::store();
    let waiting = store.subscribe(log_changes(&log)).await.wait_until_delivered();
    yield_now().await;
    writer.abort();
    assert!(timeout(Duration::from_secs(1), waiting).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn store_version_follows_applied_events_not_own_writes() {
    let (store, writer) = store();
    for (delta, version) in [
        (replace(&[("a", 1)], "5"), 5),
        (Delta::Apply(stored("a", 7)), 7),
        (Delta::Bookmark(None, "9".into()), 9),
        (Delta::Delete(stored("a", 11)), 11),
        // An own write does not prove that earlier changes by others were seen.
        (Delta::Written(stored("b", 13)), 11),
    ] {
        store.push_and_wait(delta).await;
        assert_eq!(store.revision(), version);
    }
    writer.abort();
    yield_now().await;
    store.push(Delta::Bookmark(None, "20".into())).await;
    assert_eq!(store.revision(), 11, "no delta has been applied");
}

#[tokio::test(start_paused = true)]
async fn missed_changes_are_reported_and_unchanged_objects_not() {
    let responses = vec![
        list("7", &[&object("a", "1"), &object("b", "2"), &object("c", "3")], ""),
        watch(&[event("ERROR", r#"{"kind":"Status","code":410}"#)], 0),
        list("9", &[&object("a", "1"), &object("b", "8"), &object("d", "9")], ""),
    ];
    let scripted = crate::script::Scripted::paged(responses).await;
    advance_seconds(1).await;
    let initial = ["initial +a@1", "initial +b@2", "initial +c@3"];
    assert_eq!(scripted.changes(), [&initial[..], &["-c@3", "~b@8", "+d@9"]].concat());
}

static MINUTELY: AtomicU32 = AtomicU32::new(0);
static SLOWER: AtomicU32 = AtomicU32::new(0);
static NEVER: AtomicU32 = AtomicU32::new(0);

fn count(counter: &AtomicU32) -> Action {
    counter.fetch_add(1, Ordering::Relaxed);
    Action::await_change()
}

/// Counts its reconciles.
#[controller(name = "minutely", resync = "1m")]
async fn minutely(_config: Arc<ConfigMap>, _cx: Context<minutely>) -> Result<Action> {
    Ok(count(&MINUTELY))
}

/// Counts its reconciles.
#[controller(name = "slower", resync = "3m")]
async fn slower(_config: Arc<ConfigMap>, _cx: Context<slower>) -> Result<Action> {
    Ok(count(&SLOWER))
}

/// Counts its reconciles.
#[controller]
async fn never(_config: Arc<ConfigMap>, _cx: Context<never>) -> Result<Action> {
    Ok(count(&NEVER))
}

#[tokio::test(start_paused = true)]
async fn controllers_of_one_kind_resync_independently() {
    let mut world = World::new();
    world.set("a", "1").await;
    world.run(app().controller::<minutely>().controller::<slower>().controller::<never>()).await;
    advance_seconds(630).await;
    let counted = [&MINUTELY, &SLOWER, &NEVER].map(|counter| counter.load(Ordering::Relaxed));
    assert_eq!(counted, [11, 4, 1]);
    assert_eq!((world.n_requests("list", "configmaps"), world.n_requests("get", "configmaps")), (1, 0));
}

static PROMPT: AtomicU32 = AtomicU32::new(0);

/// Never returns.
#[controller(name = "hanging")]
async fn hanging(_config: Arc<ConfigMap>, _cx: Context<hanging>) -> Result<Action> {
    std::future::pending().await
}

/// Counts its reconciles.
#[controller]
async fn prompt(_config: Arc<ConfigMap>, _cx: Context<prompt>) -> Result<Action> {
    Ok(count(&PROMPT))
}

#[tokio::test(start_paused = true)]
async fn hanging_controller_does_not_delay_same_kind_controllers() {
    let mut world = World::new();
    world.run(app().controller::<hanging>().controller::<prompt>()).await;
    for version in 0..20 {
        world.set("a", &version.to_string()).await;
        advance_seconds(1).await;
    }
    assert_eq!(PROMPT.load(Ordering::Relaxed), 20);
}

/// Checks that a stopped manager ends at once, leaves no task, and sends no further request.
async fn check_stop(fault: Option<Fault>, from_the_start: bool) {
    let world = World::new();
    // Wait for tasks that earlier runs left.
    advance_seconds(1).await;
    let n_tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let n_before = n_tasks();
    let add = |world: &World| {
        if let Some(fault) = fault {
            world.faults.add(fault, |request| request.reads("configmaps"));
        }
    };
    if from_the_start {
        add(&world);
    }
    let manager = app().controller::<never>().manager(world.faults.client(&world.server)).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run(async { drop(stopped.await) }));
    advance_seconds(20).await;
    if !from_the_start {
        add(&world);
        world.faults.cut_watches();
        advance_seconds(20).await;
    }
    stop.send(()).unwrap();
    let stopped = timeout(Duration::from_secs(1), running).await;
    stopped.unwrap_or_else(|_| panic!("it does not stop with {fault:?}")).unwrap().unwrap();
    yield_now().await;
    assert_eq!(n_tasks(), n_before, "{fault:?}");
    let n_requests = world.server.requests().len();
    advance_seconds(1_000).await;
    assert_eq!(world.server.requests().len(), n_requests, "{fault:?}");
}

#[tokio::test(start_paused = true)]
async fn manager_stops_at_once_and_leaves_no_task() {
    let slow = Fault::Delay(Duration::from_secs(1000));
    for fault in [None, Some(slow), Some(Fault::Break), Some(Fault::Reject(500))] {
        check_stop(fault, false).await;
        check_stop(fault, true).await;
    }
}
