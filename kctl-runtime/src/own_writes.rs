//! Own writes of a reconcile, to recognize their watch events.
//!
//! A write of a reconcile comes back as a watch event. For a key that succeeded this is harmless: the next reconcile
//! finds nothing to do. For a key that failed or met a conflict, the event would end the backoff, and the controller
//! would run in a loop on its own writes. So a reconcile records a number for each version that it wrote, the handlers
//! compute the same number for each change, and the [queue](crate::queue) compares the two.

use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::{
    object::{Stored, Uid},
    queue::OWN_WRITES_MAX,
    store::Change,
};

tokio::task_local! {
    static CURRENT: Arc<Mutex<Vec<u64>>>;
}

/// A fixed seed is enough: the numbers never leave the process.
const NUMBERS: FixedState = FixedState::with_seed(0);

/// Runs a future and returns its output with the numbers of the versions that it wrote, at most [`OWN_WRITES_MAX`]. Writes
/// of tasks that it spawned are not among them, because the list is a task-local value.
pub(crate) async fn record<F: Future>(future: F) -> (F::Output, Vec<u64>) {
    let written = Arc::<Mutex<Vec<u64>>>::default();
    let output = CURRENT.scope(written.clone(), future).await;
    let written = std::mem::take(&mut *written.lock());
    (output, written)
}

/// Records that the reconcile in this task wrote `object`. Does nothing outside of a reconcile.
pub(crate) fn record_write(object: &Stored) {
    record_number(of_state(object));
}

/// Records that the reconcile in this task deleted the object with this uid. Does nothing outside of a reconcile.
pub(crate) fn record_delete(uid: &Uid) {
    record_number(of_end(uid));
}

fn record_number(number: u64) {
    // Fails outside of a reconcile, for example in the Lease election, where nothing reads the numbers.
    let _outside = CURRENT.try_with(|written| {
        let mut written = written.lock();
        if written.len() < OWN_WRITES_MAX {
            written.push(number);
        }
    });
}

/// Returns the number of a change: the same that [`record_write`] or [`record_delete`] recorded if this process caused it.
pub(crate) fn version_number(change: &Change<Stored>) -> u64 {
    match change {
        Change::Added(new) | Change::Updated { new, .. } => of_state(new),
        Change::Deleted { last } => of_end(&last.meta().uid),
    }
}

fn of_state(object: &Stored) -> u64 {
    number((&object.meta().uid, Some(&object.meta().resource_version)))
}

fn of_end(uid: &Uid) -> u64 {
    number((uid, None::<&crate::object::Version>))
}

fn number(value: impl Hash) -> u64 {
    NUMBERS.hash_one(value)
}
