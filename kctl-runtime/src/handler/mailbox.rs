//! The changes that one subscriber has not taken yet: each change while it keeps up, one change per object when it
//! falls behind.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Context, Poll},
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    key::ObjectKey,
    object::Stored,
    store::{Change, Origin},
};

/// Maximum number of separate changes that wait for one subscriber.
///
/// Beyond it, changes of the same object are merged into one, from the last delivered state to the newest. So the
/// number of objects is the bound, and the store never waits for a subscriber.
pub const CHANGES_WAITING_MAX: usize = 1024;

/// A queue of changes with one reader, filled by the writer of a store.
#[derive(Default)]
pub(crate) struct Mailbox {
    waiting: Mutex<Waiting>,
    waker: AtomicWaker,
}

/// A change on its way to a subscriber.
pub(crate) struct QueuedChange {
    pub(crate) change: Change<Stored>,
    pub(crate) origin: Origin,
    /// Is `true` if the object was created and deleted while its change waited, so that the subscriber never learned of
    /// it.
    pub(crate) unseen: bool,
    /// The moment at which it began to wait.
    pub(crate) since: Instant,
}

/// The changes of a mailbox: separate ones first, then one per object.
#[derive(Default)]
struct Waiting {
    /// Changes that are not merged. Invariant: at most [`CHANGES_WAITING_MAX`].
    changes: VecDeque<QueuedChange>,
    /// The order of `merged`. Invariant: each of its keys is here once.
    order: VecDeque<ObjectKey>,
    /// The changes beyond the bound, by object. They are delivered after `changes`.
    merged: HashMap<ObjectKey, Merged>,
    /// Is `true` if states were merged away since the last call of [`Mailbox::has_skipped`].
    skipped: bool,
    /// Numbers of changes that were put and taken since the start; merged changes count as one. Invariant: they differ
    /// by the changes that wait.
    n_put: u64,
    n_taken: u64,
    /// Set when the [`MailboxSender`] is dropped: no more changes come.
    ended: bool,
}

/// All changes of an object since the state that the subscriber saw last.
struct Merged {
    /// The state that the subscriber saw last; `None` if it has not seen the object.
    before: Option<Arc<Stored>>,
    /// The newest state; `None` after a deletion.
    after: Option<Arc<Stored>>,
    /// The newest state, or the last one before the deletion.
    last: Arc<Stored>,
    /// The latest origin of the changes: [`Origin::Live`] if any of them is.
    origin: Origin,
    since: Instant,
}

/// The writing end of a mailbox. Dropping it ends the mailbox.
pub(crate) struct MailboxSender(Arc<Mailbox>);

impl MailboxSender {
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self(mailbox)
    }

    /// Puts a change into the mailbox and wakes its reader. Never waits.
    pub(crate) fn put(&self, change: &Change<Stored>, origin: Origin) {
        self.0.waiting.lock().put(change, origin, Instant::now());
        self.0.waker.wake();
    }
}

impl Drop for MailboxSender {
    fn drop(&mut self) {
        self.0.waiting.lock().ended = true;
        self.0.waker.wake();
    }
}

impl Mailbox {
    /// Takes the next change. Returns `None` once the [`MailboxSender`] is dropped and all changes are taken.
    pub(crate) fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Option<QueuedChange>> {
        // Registered before the lock is taken, so that a change that arrives in between wakes the task.
        self.waker.register(context.waker());
        let mut waiting = self.waiting.lock();
        match waiting.take() {
            Some(queued) => Poll::Ready(Some(queued)),
            None if waiting.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Takes the next change without waiting.
    pub(crate) fn take(&self) -> Option<QueuedChange> {
        self.waiting.lock().take()
    }

    /// Returns the number of changes that wait; merged changes count as one.
    pub(crate) fn len(&self) -> usize {
        let waiting = self.waiting.lock();
        waiting.changes.len() + waiting.order.len()
    }

    /// Returns the moment since which the next change has waited.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        let waiting = self.waiting.lock();
        let merged = || waiting.order.front().and_then(|key| waiting.merged.get(key)).map(|merged| merged.since);
        waiting.changes.front().map(|queued| queued.since).or_else(merged)
    }

    /// Returns the numbers of changes put and taken since the start. If they are equal, the reader has taken
    /// everything.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let waiting = self.waiting.lock();
        (waiting.n_put, waiting.n_taken)
    }

    /// Returns `true` if states were merged away since the last call. A reconcile may have read one of these states
    /// from the store, and no change will report that it has passed.
    pub(crate) fn has_skipped(&self) -> bool {
        std::mem::take(&mut self.waiting.lock().skipped)
    }
}

impl Waiting {
    /// Appends a change. At the bound it is merged with the waiting change of its object.
    ///
    /// Once one change is merged, all later ones are, until the merged ones are taken. Otherwise a separate change of an
    /// object could overtake its merged one.
    fn put(&mut self, change: &Change<Stored>, origin: Origin, now: Instant) {
        if self.order.is_empty() && self.changes.len() < CHANGES_WAITING_MAX {
            self.changes.push_back(QueuedChange { change: change.clone(), origin, unseen: false, since: now });
            self.n_put += 1;
            return;
        }
        debug_assert!(self.changes.len() <= CHANGES_WAITING_MAX, "changes are merged at the bound");
        let (before, after) = match change {
            Change::Added(new) => (None, Some(new)),
            Change::Updated { old, new } => (Some(old), Some(new)),
            Change::Deleted { last } => (Some(last), None),
        };
        let (last, key) = (change.latest(), change.latest().key());
        if let Some(merged) = self.merged.get_mut(key) {
            (merged.after, merged.last) = (after.cloned(), last.clone());
            merged.origin = merged.origin.max(origin);
            self.skipped = true;
        } else {
            let (before, after, last) = (before.cloned(), after.cloned(), last.clone());
            self.order.push_back(key.clone());
            self.merged.insert(key.clone(), Merged { before, after, last, origin, since: now });
            self.n_put += 1;
        }
    }

    /// Takes the oldest change. A merged change is built from the first and the last of its states.
    fn take(&mut self) -> Option<QueuedChange> {
        if let Some(queued) = self.changes.pop_front() {
            self.n_taken += 1;
            // An idle subscriber keeps no buffer: a process may have thousands of them.
            if self.changes.is_empty() {
                self.changes = VecDeque::new();
            }
            return Some(queued);
        }
        debug_assert_eq!(self.order.len(), self.merged.len(), "each merged object is in `order` once");
        let key = self.order.pop_front()?;
        let Merged { before, after, last, origin, since } = self.merged.remove(&key)?;
        let unseen = before.is_none() && after.is_none();
        let change = match (before, after) {
            (None, Some(new)) => Change::Added(new),
            // A successor came and went unseen: the subscriber knows only the object before it.
            (Some(old), None) if old.meta().uid != last.meta().uid => Change::Deleted { last: old },
            (_, None) => Change::Deleted { last },
            (Some(old), Some(new)) if old.meta().uid == new.meta().uid => Change::Updated { old, new },
            // A successor has the name now: the deletion is returned, and its addition is kept in the mailbox.
            (Some(old), Some(new)) => {
                self.order.push_front(key.clone());
                let last = new.clone();
                self.merged.insert(key, Merged { before: None, after: Some(new), last, origin, since });
                self.n_put += 1;
                Change::Deleted { last: old }
            }
        };
        if self.order.is_empty() {
            (self.order, self.merged) = (VecDeque::new(), HashMap::new());
        }
        self.n_taken += 1;
        debug_assert_eq!(
            self.n_put - self.n_taken,
            (self.changes.len() + self.order.len()) as u64,
            "the counts differ by the changes that wait"
        );
        Some(QueuedChange { change, origin, unseen, since })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::Kind;

    fn pod(name: &str, uid: &str, version: usize) -> Arc<Stored> {
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    }

    fn added(version: usize) -> Change<Stored> {
        Change::Added(pod("a", "1", version))
    }

    fn updated(old: usize, new: usize) -> Change<Stored> {
        Change::Updated { old: pod("a", "1", old), new: pod("a", "1", new) }
    }

    fn deleted(version: usize) -> Change<Stored> {
        Change::Deleted { last: pod("a", "1", version) }
    }

    /// Checks the changes after `behind` waiting changes of another object. `!` is an object that was created and deleted
    /// unseen, and `…` at the end means that states were skipped.
    fn check(behind: usize, changes: &[Change<Stored>], expected: &str) {
        let mut waiting = Waiting::default();
        for version in 0..behind {
            waiting.put(&Change::Added(pod("other", "2", version)), Origin::Live, Instant::now());
        }
        for change in changes {
            waiting.put(change, Origin::Live, Instant::now());
        }
        for _ in 0..behind {
            waiting.take().unwrap();
        }
        let out = std::iter::from_fn(|| waiting.take()).map(|queued| match queued.change {
            Change::Added(new) => format!("+{}", new.meta().resource_version),
            Change::Updated { old, new } => format!("{}~{}", old.meta().resource_version, new.meta().resource_version),
            Change::Deleted { last } if queued.unseen => format!("!{}", last.meta().resource_version),
            Change::Deleted { last } => format!("-{}", last.meta().resource_version),
        });
        let mut out: Vec<_> = out.collect();
        out.extend(waiting.skipped.then(|| "…".into()));
        assert_eq!(out.join(" "), expected, "{behind} behind");
        assert_eq!(waiting.n_put, waiting.n_taken, "{behind} behind: what was put was taken");
        assert!(waiting.merged.is_empty(), "nothing is kept of what was taken");
        let buffers = [waiting.changes.capacity(), waiting.order.capacity(), waiting.merged.capacity()];
        assert_eq!(buffers, [0, 0, 0], "{behind} behind: the buffers of the burst are freed");
    }

    #[test]
    fn subscriber_that_keeps_up_gets_each_change() {
        let changes = [added(1), updated(1, 2), deleted(3), added(4)];
        check(0, &changes, "+1 1~2 -3 +4");
        check(CHANGES_WAITING_MAX - 4, &changes, "+1 1~2 -3 +4");
    }

    #[test]
    fn changes_beyond_the_bound_merge_per_object() {
        let cases: [(&[Change<Stored>], &str); 7] = [
            (&[added(1), updated(1, 2), updated(2, 3)], "+3 …"),
            (&[added(1), deleted(2)], "!2 …"),
            (&[updated(1, 2), updated(2, 3)], "1~3 …"),
            (&[updated(1, 2), deleted(3)], "-3 …"),
            (&[deleted(2), Change::Added(pod("a", "3", 4))], "-2 +4 …"),
            (&[deleted(2), Change::Added(pod("a", "3", 4)), Change::Deleted { last: pod("a", "3", 5) }], "-2 …"),
            (&[deleted(2), added(4)], "2~4 …"),
        ];
        for (changes, expected) in cases {
            check(CHANGES_WAITING_MAX, changes, expected);
        }
    }

    #[test]
    fn change_at_the_bound_is_not_merged() {
        check(CHANGES_WAITING_MAX - 1, &[added(1), updated(1, 2), updated(2, 3)], "+1 1~3 …");
    }
}
