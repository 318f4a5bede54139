//! Tests that subscribers can join and leave at any time. A dropped subscriber receives no further changes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::task::yield_now;

use super::{Change, Delta, Handler, SharedStore};
use crate::{
    key::ObjectKey,
    object::{Kind, Stored},
};

fn pod(name: &str, version: usize) -> Arc<Stored> {
    let metadata = format!(r#""name":"{name}","namespace":"a","uid":"{name}","resourceVersion":"{version}""#);
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &format!(r#"{{"metadata":{{{metadata}}}}}"#)).unwrap())
}

fn list(version: usize) -> Delta {
    Delta::Replace(None, ["a", "b", "c"].map(|name| pod(name, version)).into(), version.to_string())
}

/// The value that keeps a subscription alive. Taking it ends the subscription.
type Held = Arc<Mutex<Option<Arc<()>>>>;

/// Subscribes a handler that records names, and ends its subscription at the first change of this name.
async fn leaves_at(store: &SharedStore, name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Weak<Mutex<Vec<String>>> {
    let alive = Arc::new(());
    let held = Held::new(Mutex::new(Some(alive.clone())));
    let own = Arc::new(Mutex::new(Vec::new()));
    let (all, kept) = (log.clone(), Arc::downgrade(&own));
    let watched = Arc::downgrade(&alive);
    drop(alive);
    let handler: Handler = Arc::new(move |change, _origin| {
        let name_of_change = change.latest().key().name.to_string();
        all.lock().push(name_of_change.clone());
        own.lock().push(name_of_change.clone());
        if name_of_change == name {
            *held.lock() = None;
        }
    });
    let _subscription = store.subscribe_while(handler, watched).await;
    kept
}

#[tokio::test(start_paused = true)]
async fn subscriber_dropped_during_a_list_gets_nothing_more() {
    // The subscriber joins before the list or after it.
    for comes_late in [false, true] {
        let store = Arc::new(SharedStore::default());
        let writer = tokio::spawn(store.clone().write());
        let (goes, stays) = <(Arc<Mutex<Vec<_>>>, Arc<Mutex<Vec<_>>>)>::default();
        if comes_late {
            store.push_and_wait(list(1)).await;
        }
        let kept = leaves_at(&store, "b", &goes).await;
        let _other = leaves_at(&store, "nobody", &stays).await;
        if !comes_late {
            store.push_and_wait(list(1)).await;
        }
        store.push_and_wait(list(2)).await;
        assert_eq!(*goes.lock(), ["a", "b"], "late: {comes_late}");
        assert_eq!(*stays.lock(), ["a", "b", "c", "a", "b", "c"], "late: {comes_late}");
        assert_eq!(kept.strong_count(), 0, "nothing keeps the handler of a dropped subscriber");
        writer.abort();
    }
}

/// The versions that follow from the changes that a subscriber got, and the changes that contradicted them.
#[derive(Default)]
struct Known {
    versions: BTreeMap<ObjectKey, String>,
    complaints: Vec<String>,
}

fn learn(known: &mut Known, change: &Change<Stored>) {
    let version = |object: &Stored| object.meta().resource_version.to_string();
    let object = change.latest();
    let before = known.versions.get(object.key()).cloned();
    let fits = match change {
        Change::Added(_) => before.is_none(),
        Change::Updated { old, .. } => before == Some(version(old)),
        Change::Deleted { .. } => before.is_some(),
    };
    if !fits {
        known.complaints.push(format!("{change:?} after {before:?}"));
    }
    match change {
        Change::Deleted { .. } => known.versions.remove(object.key()),
        Change::Added(new) | Change::Updated { new, .. } => known.versions.insert(object.key().clone(), version(new)),
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn subscribers_under_load_miss_nothing() {
    let store = Arc::new(SharedStore::default());
    let writer = tokio::spawn(store.clone().write());
    store.push_and_wait(Delta::Replace(None, Vec::new(), "0".into())).await;
    let writing = tokio::spawn({
        let store = store.clone();
        async move {
            for version in 1..4_000 {
                let object = pod(&format!("object-{}", version % 7), version);
                store.push(if version % 5 == 0 { Delta::Delete(object) } else { Delta::Apply(object) }).await;
                if version % 50 == 0 {
                    yield_now().await;
                }
            }
        }
    });
    let (mut stays, mut gone) = (Vec::new(), Vec::new());
    for n in 0..60 {
        let (alive, known) = (Arc::new(()), Arc::new(Mutex::new(Known::default())));
        let learns = known.clone();
        let handler: Handler = Arc::new(move |change, _origin| learn(&mut learns.lock(), change));
        store.subscribe_while(handler, Arc::downgrade(&alive)).await.wait_until_delivered().await;
        if n % 2 == 0 {
            stays.push((alive, known));
        } else {
            drop(alive);
            gone.push(known);
        }
    }
    writing.await.unwrap();
    store.push_and_wait(Delta::Bookmark(None, "5000".into())).await;
    let version = |object: &Arc<Stored>| (object.key().clone(), object.meta().resource_version.to_string());
    let expected: BTreeMap<ObjectKey, String> = store.all().iter().map(version).collect();
    assert!(expected.len() > 3, "{expected:?}");
    for (_alive, known) in &stays {
        let known = known.lock();
        assert_eq!((&known.versions, &known.complaints[..]), (&expected, &[][..]));
    }
    for known in gone {
        assert_eq!(known.lock().complaints, [""; 0], "the changes that it received until it left fit together");
        assert_eq!(Arc::strong_count(&known), 1, "nothing keeps the handler of a dropped subscriber");
    }
    writer.abort();
}
