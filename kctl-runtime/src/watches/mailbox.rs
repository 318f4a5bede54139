//! What one subscriber has not taken yet: each change while it keeps up, one change an object when it falls behind.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    task::{Context, Poll},
};

use futures::task::AtomicWaker;
use parking_lot::Mutex;

use crate::{key::ObjectKey, object::Stored, store::Change};

/// Changes that wait for a subscriber as they are. Of what comes beyond it, one change waits for each object, from the state
/// that the subscriber was told of to the newest: the number of objects bounds it, and the store never waits.
pub const CHANGES_WAITING_MAX: usize = 1024;

/// Filled by the writer of a store, emptied by one subscriber.
#[derive(Default)]
pub(super) struct Mailbox {
    waiting: Mutex<Waiting>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Waiting {
    changes: VecDeque<Change<Stored>>,
    /// The order of `merged`. Invariant: each of its keys is here once.
    order: VecDeque<ObjectKey>,
    merged: HashMap<ObjectKey, Merged>,
    ended: bool,
}

/// All that happened to an object since the subscriber was told of `before`.
struct Merged {
    before: Option<Arc<Stored>>,
    after: Option<Arc<Stored>>,
    last: Arc<Stored>,
}

/// The end of a mailbox that fills it: nothing more comes once it is dropped.
pub(super) struct Inlet(Arc<Mailbox>);

impl Inlet {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        Self(mailbox)
    }

    pub(super) fn put(&self, change: &Change<Stored>) {
        self.0.waiting.lock().put(change);
        self.0.waker.wake();
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.0.waiting.lock().ended = true;
        self.0.waker.wake();
    }
}

impl Mailbox {
    pub(super) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Change<Stored>>> {
        // Before the look: a change that comes between the two wakes.
        self.waker.register(context.waker());
        let mut waiting = self.waiting.lock();
        match waiting.take() {
            Some(change) => Poll::Ready(Some(change)),
            None if waiting.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    pub(super) fn len(&self) -> usize {
        let waiting = self.waiting.lock();
        waiting.changes.len() + waiting.order.len()
    }
}

impl Waiting {
    fn put(&mut self, change: &Change<Stored>) {
        if self.order.is_empty() && self.changes.len() < CHANGES_WAITING_MAX {
            self.changes.push_back(change.clone());
            return;
        }
        let (before, after) = match change {
            Change::Added(new) => (None, Some(new)),
            Change::Updated { old, new } => (Some(old), Some(new)),
            Change::Deleted { last } => (Some(last), None),
        };
        let (last, key) = (change.latest(), change.latest().key());
        if let Some(merged) = self.merged.get_mut(key) {
            (merged.after, merged.last) = (after.cloned(), last.clone());
        } else {
            self.order.push_back(key.clone());
            let merged = Merged { before: before.cloned(), after: after.cloned(), last: last.clone() };
            self.merged.insert(key.clone(), merged);
        }
    }

    fn take(&mut self) -> Option<Change<Stored>> {
        if let Some(change) = self.changes.pop_front() {
            return Some(change);
        }
        while let Some(key) = self.order.pop_front() {
            let Merged { before, after, last } = self.merged.remove(&key)?;
            return Some(match (before, after) {
                // Came and went unseen.
                (None, None) => continue,
                (None, Some(new)) => Change::Added(new),
                (Some(_), None) => Change::Deleted { last },
                (Some(old), Some(new)) if old.meta().uid == new.meta().uid => Change::Updated { old, new },
                // Another object has the name now: two changes, of which the second stays.
                (Some(old), Some(new)) => {
                    self.order.push_front(key.clone());
                    let last = new.clone();
                    self.merged.insert(key, Merged { before: None, after: Some(new), last });
                    Change::Deleted { last: old }
                }
            });
        }
        None
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

    /// What comes out after so many changes of another object were not taken.
    fn check(behind: usize, changes: &[Change<Stored>], expected: &str) {
        let mut waiting = Waiting::default();
        for version in 0..behind {
            waiting.put(&Change::Added(pod("other", "2", version)));
        }
        for change in changes {
            waiting.put(change);
        }
        for _ in 0..behind {
            waiting.take().unwrap();
        }
        let out = std::iter::from_fn(|| waiting.take()).map(|change| match change {
            Change::Added(new) => format!("+{}", new.meta().resource_version),
            Change::Updated { old, new } => format!("{}~{}", old.meta().resource_version, new.meta().resource_version),
            Change::Deleted { last } => format!("-{}", last.meta().resource_version),
        });
        assert_eq!(out.collect::<Vec<_>>().join(" "), expected, "{behind} behind");
        assert!(waiting.merged.is_empty(), "nothing is kept of what was taken");
    }

    #[test]
    fn subscriber_that_keeps_up_gets_each_change() {
        let changes = [added(1), updated(1, 2), deleted(3), added(4)];
        check(0, &changes, "+1 1~2 -3 +4");
        check(CHANGES_WAITING_MAX - 4, &changes, "+1 1~2 -3 +4");
    }

    #[test]
    fn changes_beyond_the_bound_are_merged_for_each_object() {
        let cases: [(&[Change<Stored>], &str); 6] = [
            (&[added(1), updated(1, 2), updated(2, 3)], "+3"),
            (&[added(1), deleted(2)], ""),
            (&[updated(1, 2), updated(2, 3)], "1~3"),
            (&[updated(1, 2), deleted(3)], "-3"),
            (&[deleted(2), Change::Added(pod("a", "3", 4))], "-2 +4"),
            (&[deleted(2), added(4)], "2~4"),
        ];
        for (changes, expected) in cases {
            check(CHANGES_WAITING_MAX, changes, expected);
        }
    }

    #[test]
    fn change_at_the_bound_is_the_last_that_is_kept_as_it_is() {
        check(CHANGES_WAITING_MAX - 1, &[added(1), updated(1, 2), updated(2, 3)], "+1 1~3");
    }
}
