//! Notes which reconcile a thread polls, so that the simulator and tests can name one that never returns.
//!
//! The simulator runs all processes on one thread, and a test usually runs its app on its own. A reconcile that loops
//! without an end keeps that thread, and nothing on it can report that any more. So the note is readable from another
//! thread.

use std::{cell::RefCell, sync::Arc};

use parking_lot::Mutex;

use crate::{freezer::Freezer, key::ObjectKey};

thread_local! {
    /// The note of this thread, in a simulation or a test.
    static WATCHED: RefCell<Option<PolledReconcile>> = const { RefCell::new(None) };
}

/// The reconcile that a thread polls now, or has polled last. Clones share the note.
#[derive(Debug, Clone, Default)]
pub struct PolledReconcile(Arc<Mutex<Note>>);

#[derive(Debug, Default)]
struct Note {
    /// Controller, key and process.
    name: String,
    n_polls: u64,
    is_polled: bool,
}

/// Records the end of a poll, also by a panic.
struct EndPoll(PolledReconcile);

impl Drop for EndPoll {
    fn drop(&mut self) {
        self.0.0.lock().is_polled = false;
    }
}

impl PolledReconcile {
    /// Notes the polls of reconciles on this thread from now on.
    pub fn watch(&self) {
        WATCHED.set(Some(self.clone()));
    }

    /// Returns the note of this thread, and notes the polls of reconciles on it from now on. A test with two apps on one
    /// thread shares it.
    pub fn of_thread() -> Self {
        WATCHED.with_borrow_mut(|watched| watched.get_or_insert_with(Self::default).clone())
    }

    /// Returns the number of polls so far.
    pub fn n_polls(&self) -> u64 {
        self.0.lock().n_polls
    }

    /// Returns the reconcile that is polled now, or that was polled last if there were more than `n_before` polls. Otherwise
    /// something else keeps the thread busy.
    pub fn busy_since(&self, n_before: u64) -> Option<String> {
        let note = self.0.lock();
        (note.is_polled || note.n_polls > n_before).then(|| note.name.clone())
    }

    fn begin(&self, controller: &str, key: &ObjectKey) {
        let process = Freezer::current_process();
        let mut note = self.0.lock();
        note.name = match process {
            Some(process) => format!("{controller} {key} in {process}"),
            None => format!("{controller} {key}"),
        };
        note.n_polls += 1;
        note.is_polled = true;
    }
}

/// Polls a reconcile, and notes that if the simulator or a test watches this thread.
pub(crate) fn poll_reconcile<T>(controller: &str, key: &ObjectKey, poll: impl FnOnce() -> T) -> T {
    let watched = WATCHED.with_borrow(Clone::clone);
    let _end = watched.map(|watched| {
        watched.begin(controller, key);
        EndPoll(watched)
    });
    poll()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail() {
        panic!("on purpose")
    }

    #[test]
    fn reconcile_is_named_during_and_after_polls() {
        let (polled, key) = (PolledReconcile::default(), ObjectKey::new(Some("default"), "a"));
        poll_reconcile("labels", &key, || ());
        assert_eq!(polled.n_polls(), 0, "no watchdog watches this thread yet");
        polled.watch();
        poll_reconcile("labels", &key, || assert_eq!(polled.busy_since(1), Some("labels default/a".into())));
        assert_eq!(polled.busy_since(0), Some("labels default/a".into()), "polled since then");
        assert_eq!(polled.busy_since(1), None, "not polled since then");
        let panics = std::panic::catch_unwind(|| poll_reconcile("labels", &key, fail));
        assert!(panics.is_err() && polled.busy_since(2).is_none());
    }

    #[test]
    fn watchers_of_one_thread_share_the_note() {
        let polled = [PolledReconcile::of_thread(), PolledReconcile::of_thread()];
        poll_reconcile("labels", &ObjectKey::new(Some("default"), "a"), || ());
        assert_eq!(polled.each_ref().map(PolledReconcile::n_polls), [1, 1]);
    }
}
