//! What this process deleted and the watch has not told of yet: events and lists of before do not bring it back.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::BuildHasher,
};

use foldhash::fast::FixedState;

use crate::{key::ObjectKey, object::Uid};

/// How many uids of deleted objects are remembered at most; beyond it the oldest knowledge goes, and only a
/// relist older than that delete could show the object again.
pub const TOMBSTONES_MAX: usize = 100_000;

/// How many uids stay barred after the watch has told of an end of theirs: enough for what a process deletes while a watch is late.
const ENDED_MAX: usize = 1_000;

struct Tombstone {
    key: ObjectKey,
    /// Its last version that was known: what is older cannot say whether it is gone.
    revision: Option<u64>,
}

/// Objects that this process deleted, by uid.
#[derive(Default)]
pub(super) struct Tombstones {
    by_uid: HashMap<Uid, Tombstone, FixedState>,
    /// The last one of each name. Invariant: each is in `by_uid`.
    by_key: HashMap<ObjectKey, Uid, FixedState>,
    /// Of those whose last version is an own write that list and watch have not reported: its revision. When the watch passes
    /// by it, the object is outside of the selector, and nobody would tell of its end.
    unreported: BTreeMap<u64, Uid>,
    ended: Ended,
}

/// Uids that this process has seen the end of, the last so many. What list and watch say of an end may be another one: an object
/// that left the selector, came back into it and was deleted by this process comes once more before its last end is told.
#[derive(Default)]
struct Ended {
    uids: HashSet<Uid, FixedState>,
    order: VecDeque<Uid>,
}

impl Ended {
    fn add(&mut self, uid: &Uid) {
        // Without a uid nothing tells an object from its successor.
        if uid.is_empty() || !self.uids.insert(uid.clone()) {
            return;
        }
        self.order.push_back(uid.clone());
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }
}

impl Tombstones {
    pub(super) fn len(&self) -> usize {
        self.by_uid.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_uid.is_empty() && self.unreported.is_empty()
    }

    pub(super) fn has(&self, uid: &Uid) -> bool {
        self.by_uid.contains_key(uid) || self.ended.uids.contains(uid)
    }

    /// Whether a state is of before a delete: of the object itself, or of one that had its name before it.
    pub(super) fn bars(&self, uid: &Uid, key: &ObjectKey, revision: Option<u64>) -> bool {
        let successor = || self.by_uid.get(self.by_key.get(key)?)?.revision;
        self.has(uid) || successor().zip(revision).is_some_and(|(last, revision)| last > revision)
    }

    /// Remembers the delete of what was never known, or is not any more.
    pub(super) fn add_unknown(&mut self, uid: &Uid) {
        self.ended.add(uid);
    }

    /// Remembers a delete. `reported` is false where the last version was an own write that nobody has told of yet.
    pub(super) fn add(&mut self, uid: Uid, key: ObjectKey, revision: Option<u64>, reported: bool) {
        self.ended.add(&uid);
        if self.by_uid.len() >= TOMBSTONES_MAX {
            return;
        }
        if let Some(revision) = revision.filter(|_| !reported) {
            self.unreported.insert(revision, uid.clone());
        }
        self.by_key.insert(key.clone(), uid.clone());
        self.by_uid.insert(uid, Tombstone { key, revision });
    }

    fn remove(&mut self, uid: &Uid) {
        if let Some(Tombstone { key, .. }) = self.by_uid.remove(uid)
            && self.by_key.get(&key).is_some_and(|last| last == uid)
        {
            self.by_key.remove(&key);
        }
    }

    /// The watch tells of this version.
    pub(super) fn reported(&mut self, revision: u64) {
        self.unreported.remove(&revision);
    }

    /// The watch tells of an end, and whether this process was its cause. One of before the last version was no end: the
    /// object ceased to match the selector for a while.
    pub(super) fn ended(&mut self, uid: &Uid, revision: Option<u64>) -> bool {
        let Some(known) = self.by_uid.get(uid) else { return self.ended.uids.contains(uid) };
        if known.revision.zip(revision).is_none_or(|(last, end)| last <= end) {
            self.remove(uid);
        }
        true
    }

    /// Everything that is `here` has been reported up to this revision.
    pub(super) fn passed(&mut self, mark: u64, here: impl Fn(&ObjectKey) -> bool) {
        let is_here = |uid: &Uid| self.by_uid.get(uid).is_none_or(|known| here(&known.key));
        let passed = self.unreported.range(..=mark).filter(|(_, uid)| is_here(uid)).map(|(revision, _)| *revision);
        for revision in passed.collect::<Vec<_>>() {
            if let Some(uid) = self.unreported.remove(&revision) {
                self.remove(&uid);
            }
        }
    }

    /// Everything that is `here` was listed: what is not among it is gone, unless the list is older.
    pub(super) fn listed<S: BuildHasher>(
        &mut self,
        uids: &HashSet<&Uid, S>,
        list: Option<u64>,
        here: impl Fn(&ObjectKey) -> bool,
    ) {
        let is_older = |revision: Option<u64>| revision.zip(list).is_some_and(|(last, list)| last > list);
        self.by_uid.retain(|uid, known| uids.contains(uid) || !here(&known.key) || is_older(known.revision));
        let by_uid = &self.by_uid;
        self.by_key.retain(|_, uid| by_uid.contains_key(uid));
        self.unreported.retain(|revision, uid| {
            by_uid.get(uid).is_some_and(|known| !here(&known.key)) || is_older(Some(*revision))
        });
    }

    /// Whatever is known of what is `here` never happened.
    pub(super) fn forget(&mut self, here: impl Fn(&ObjectKey) -> bool) {
        self.by_uid.retain(|_, known| !here(&known.key));
        let by_uid = &self.by_uid;
        self.by_key.retain(|_, uid| by_uid.contains_key(uid));
        self.unreported.retain(|_, uid| by_uid.contains_key(uid));
        self.ended = Ended::default();
    }
}
