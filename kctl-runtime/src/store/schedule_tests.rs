//! Tests the store under any schedule: its source and own writes change it, while other tasks read and subscribe.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use k8s_openapi::api::core::v1::Pod;
use shuttle::future::{block_on, spawn, yield_now};

use super::{Change, Delta, SharedStore};
use crate::{
    key::ObjectKey,
    object::{Kind, Stored},
    sync::any_schedule,
};

const LAST: u64 = 5;

fn pod(version: u64) -> Arc<Stored> {
    let metadata = format!(r#""name":"x","namespace":"a","uid":"1","resourceVersion":"{version}""#);
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &format!(r#"{{"metadata":{{{metadata}}}}}"#)).unwrap())
}

fn version(object: &Stored) -> u64 {
    object.meta().revision().unwrap()
}

/// The process writes versions 3 and 5; the watch reports all of them, and a relist of version 2 comes late.
async fn write(store: Arc<SharedStore>) {
    let key = pod(3).key().clone();
    for own in [3, LAST] {
        yield_now().await;
        store.push_and_wait(Delta::Written(pod(own))).await;
        let seen = store.get(&key).map_or(0, |object| version(&object));
        assert!(seen >= own, "version {own} was written, {seen} is read");
    }
}

async fn report(store: Arc<SharedStore>) {
    store.push(Delta::Replace(None, vec![pod(1)], "1".into())).await;
    store.push(Delta::Apply(pod(2))).await;
    yield_now().await;
    store.push(Delta::Replace(None, vec![pod(2)], "2".into())).await;
    for number in 3..=LAST {
        store.push(Delta::Apply(pod(number))).await;
    }
}

async fn read(store: Arc<SharedStore>) {
    let (key, mut last) = (pod(1).key().clone(), 0);
    while last < LAST {
        if let Some(object) = store.get(&key) {
            assert!(version(&object) >= last, "version {} is read after {last}", version(&object));
            last = version(&object);
        }
        let listed = store.all().first().map_or(0, |object| version(object));
        assert!(listed >= last, "version {listed} is listed after {last}");
        yield_now().await;
    }
}

#[test]
fn any_schedule_keeps_versions_monotonic_for_readers() {
    any_schedule(|| {
        block_on(async {
            let store = Arc::new(SharedStore::default());
            drop(spawn(store.clone().write()));
            let tasks = [spawn(report(store.clone())), spawn(write(store.clone())), spawn(read(store.clone()))];
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
}

/// The versions that follow from the changes that a subscriber got.
type DeliveredVersions = Arc<Mutex<BTreeMap<ObjectKey, u64>>>;

fn notify(versions: &DeliveredVersions, change: &Change<Stored>) {
    let mut versions = versions.lock().unwrap();
    let key = change.latest().key().clone();
    match change {
        Change::Added(new) => assert_eq!(versions.insert(key, version(new)), None, "added twice"),
        Change::Updated { old, new } => {
            assert_eq!(versions.insert(key, version(new)), Some(version(old)), "another state came before");
        }
        Change::Deleted { .. } => drop(versions.remove(&key).expect("deleted, but never added")),
    }
}

#[test]
fn any_schedule_gives_late_subscribers_each_change_once() {
    any_schedule(|| {
        block_on(async {
            let store = Arc::new(SharedStore::default());
            drop(spawn(store.clone().write()));
            let tasks = [spawn(report(store.clone())), spawn(write(store.clone()))];
            yield_now().await;
            let versions = DeliveredVersions::default();
            let recorded = versions.clone();
            let subscription = store.subscribe(Arc::new(move |change, _| notify(&recorded, change))).await;
            subscription.wait_until_delivered().await;
            for task in tasks {
                task.await.unwrap();
            }
            // All earlier deltas are applied when this returns.
            store.push_and_wait(Delta::Bookmark(None, LAST.to_string())).await;
            assert_eq!(versions.lock().unwrap().values().copied().collect::<Vec<_>>(), [LAST]);
        });
    });
}
