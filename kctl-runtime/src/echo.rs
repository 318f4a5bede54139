//! What a reconcile has written, so that its own echo is told from the events of others.

use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::{
    object::{Stored, Uid},
    queue::ECHOES_MAX,
    store::Change,
};

tokio::task_local! {
    static CURRENT: Arc<Mutex<Vec<u64>>>;
}

/// The seed of the numbers, which never leave the process.
const NUMBERS: FixedState = FixedState::with_seed(0);

/// Runs a future and returns what it wrote, [`ECHOES_MAX`] versions at most. What a task writes that it spawned is not known.
pub(crate) async fn listen<F: Future>(future: F) -> (F::Output, Vec<u64>) {
    let written = Arc::<Mutex<Vec<u64>>>::default();
    let output = CURRENT.scope(written.clone(), future).await;
    let written = std::mem::take(&mut *written.lock());
    (output, written)
}

/// The run that this task is in has written this state.
pub(crate) fn note(object: &Stored) {
    note_number(of_state(object));
}

/// The run that this task is in has deleted the object with this uid.
pub(crate) fn note_end(uid: &Uid) {
    note_number(of_end(uid));
}

fn note_number(number: u64) {
    // Outside of a reconcile nobody asks.
    let _outside = CURRENT.try_with(|written| {
        let mut written = written.lock();
        if written.len() < ECHOES_MAX {
            written.push(number);
        }
    });
}

/// What a change brings, as a number that is the same for the write and for its echo.
pub(crate) fn brought(change: &Change<Stored>) -> u64 {
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

fn number(of: impl Hash) -> u64 {
    NUMBERS.hash_one(of)
}
