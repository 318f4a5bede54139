//! Invariants 2 and 9: each store has one writer, and its queue is bounded and measured.

use std::sync::Arc;

use kctl_runtime::store::{DELTAS_MAX, Delta, SharedStore};
use tokio::time::{Duration, timeout};

use crate::world::advance_seconds;

fn delta(revision: usize) -> Delta {
    Delta::Bookmark(None, revision.to_string())
}

#[tokio::test(start_paused = true)]
async fn source_waits_while_the_deltas_are_full() {
    let store = Arc::new(SharedStore::default());
    for n in 1..=DELTAS_MAX {
        store.push(delta(n)).await;
        assert_eq!(store.backlog(), n);
    }
    let one_more = store.push(delta(DELTAS_MAX + 1));
    assert!(timeout(Duration::from_secs(60), one_more).await.is_err());

    tokio::spawn(store.clone().write());
    store.push_and_wait(delta(DELTAS_MAX + 2)).await;
    assert_eq!((store.backlog(), store.revision()), (0, DELTAS_MAX as u64 + 2));
}

#[tokio::test(start_paused = true)]
async fn store_lag_is_age_of_oldest_queued_event() {
    let store = Arc::new(SharedStore::default());
    assert_eq!(store.lag(), Duration::ZERO);
    for n in 1..=DELTAS_MAX {
        store.push(delta(n)).await;
    }
    advance_seconds(7).await;
    // An event that waits for room in the queue counts as well. An event whose `push` was cancelled does not.
    assert!(timeout(Duration::from_secs(3), store.push(delta(DELTAS_MAX + 1))).await.is_err());
    assert_eq!(store.lag(), Duration::from_secs(10));
    tokio::spawn(store.clone().write());
    store.push_and_wait(delta(DELTAS_MAX + 2)).await;
    assert_eq!((store.lag(), store.backlog()), (Duration::ZERO, 0));
}

#[tokio::test(start_paused = true)]
async fn second_writer_of_a_store_does_nothing() {
    let store = Arc::new(SharedStore::default());
    tokio::spawn(store.clone().write());
    advance_seconds(1).await;
    assert!(timeout(Duration::from_secs(1), store.clone().write()).await.is_ok(), "it returns at once");
    store.push_and_wait(delta(7)).await;
    assert_eq!(store.revision(), 7);
}

#[tokio::test(start_paused = true)]
async fn handler_may_read_the_store_that_calls_it() {
    let store = Arc::new(SharedStore::default());
    tokio::spawn(store.clone().write());
    let (lengths, reader) = (Arc::new(parking_lot::Mutex::new(Vec::new())), store.clone());
    let seen = lengths.clone();
    let subscription = store.subscribe(Arc::new(move |_, _| seen.lock().push(reader.len()))).await;
    let object = |name: &str| {
        let json =
            format!(r#"{{"metadata":{{"namespace":"x","name":"{name}","uid":"{name}","resourceVersion":"1"}}}}"#);
        let kind = kctl::object::Kind::of::<kctl::prelude::Pod>();
        Arc::new(kctl::object::Stored::accept(&kind, &json).unwrap())
    };
    store.push(Delta::Replace(None, vec![object("a"), object("b")], "1".into())).await;
    subscription.wait_until_delivered().await;
    assert_eq!(*lengths.lock(), [2, 2], "no lock is held, and the whole delta is there");
}
