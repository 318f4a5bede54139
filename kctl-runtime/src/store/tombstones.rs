//! Own deletes that the watch has not reported yet. Older events and lists must not bring the objects back.
//!
//! A delete by another client counts as an own one if a response or a read shows it before the watch does.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::BuildHasher,
};

use foldhash::fast::FixedState;

use crate::{key::ObjectKey, object::Uid};

/// Maximum number of own deletes that a store remembers until the watch reports them.
///
/// Further deletes are not remembered. Then an event or a list from before such a delete can show the object again,
/// until the watch reports its end.
pub const TOMBSTONES_MAX: usize = 100_000;

/// Maximum number of uids that remain excluded after the watch has reported their end: enough for the deletes of a
/// process whose watch is late.
const ENDED_MAX: usize = 1_000;

/// An own delete that is not reported yet.
struct Tombstone {
    key: ObjectKey,
    /// The last known version. An event that is older cannot prove that the object is gone.
    revision: Option<u64>,
}

/// The last version of an object that this process deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastVersion {
    /// The watch has reported it.
    Reported,
    /// It is an own write that the watch has not reported yet.
    Unreported,
}

/// The objects that this process deleted, by uid.
#[derive(Default)]
pub(super) struct Tombstones {
    /// Invariant: at most [`TOMBSTONES_MAX`].
    by_uid: HashMap<Uid, Tombstone, FixedState>,
    /// The last deleted uid of each name. Invariant: each is in `by_uid`.
    by_key: HashMap<ObjectKey, Uid, FixedState>,
    /// Deleted objects whose last version is an own write that the watch has not reported, by the revision of that
    /// write. If the watch passes the revision, the object is outside of the selector, and no event will report its
    /// end.
    unreported: BTreeMap<u64, Uid>,
    ended: Ended,
}

/// The last uids whose end this process has seen. A watch can report the end of an object twice. An object that left
/// the selector, came back and was deleted by this process leaves the selector once more before its deletion is
/// reported.
#[derive(Default)]
struct Ended {
    uids: HashSet<Uid, FixedState>,
    /// The same uids, oldest first. Invariant: at most [`ENDED_MAX`].
    order: VecDeque<Uid>,
}

impl Ended {
    /// Adds a uid, and drops the oldest one at the bound.
    fn add(&mut self, uid: &Uid) {
        // Without a uid, an object and its successor cannot be distinguished.
        if uid.is_empty() || !self.uids.insert(uid.clone()) {
            return;
        }
        self.order.push_back(uid.clone());
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
        debug_assert_eq!(self.uids.len(), self.order.len(), "both hold the same uids");
        debug_assert!(self.order.len() <= ENDED_MAX, "the oldest uid is dropped at the bound");
    }
}

impl Tombstones {
    /// Returns the number of own deletes that the watch has not reported.
    pub(super) fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// Returns `true` if no own delete waits for the watch, so that a list confirms none.
    pub(super) fn is_empty(&self) -> bool {
        self.by_uid.is_empty() && self.unreported.is_empty()
    }

    /// Returns `true` for an object that this process deleted, or whose end it has seen.
    pub(super) fn has(&self, uid: &Uid) -> bool {
        self.by_uid.contains_key(uid) || self.ended.uids.contains(uid)
    }

    /// Returns `true` if a state is from before a delete: of the object itself, or of its successor, a later object of
    /// the same name.
    pub(super) fn blocks(&self, uid: &Uid, key: &ObjectKey, revision: Option<u64>) -> bool {
        let successor = || self.by_uid.get(self.by_key.get(key)?)?.revision;
        self.has(uid) || successor().zip(revision).is_some_and(|(last, revision)| last > revision)
    }

    /// Remembers the delete of an object that is not in the cache.
    pub(super) fn add_unknown(&mut self, uid: &Uid) {
        self.ended.add(uid);
    }

    /// Remembers a delete. The last version may be an own write that the watch has not reported yet.
    pub(super) fn add(&mut self, uid: Uid, key: ObjectKey, revision: Option<u64>, last: LastVersion) {
        self.ended.add(&uid);
        if self.by_uid.len() >= TOMBSTONES_MAX {
            return;
        }
        if let Some(revision) = revision.filter(|_| last == LastVersion::Unreported) {
            self.unreported.insert(revision, uid.clone());
        }
        self.by_key.insert(key.clone(), uid.clone());
        self.by_uid.insert(uid, Tombstone { key, revision });
        self.check();
    }

    /// Checks the invariants of the maps by their sizes.
    fn check(&self) {
        debug_assert!(self.by_key.len() <= self.by_uid.len(), "each name leads to a uid with a tombstone");
        debug_assert!(self.by_uid.len() <= TOMBSTONES_MAX, "further deletes are not remembered");
    }

    /// Forgets an own delete, because the watch has reported or passed it.
    fn remove(&mut self, uid: &Uid) {
        if let Some(Tombstone { key, .. }) = self.by_uid.remove(uid)
            && self.by_key.get(&key).is_some_and(|last| last == uid)
        {
            self.by_key.remove(&key);
        }
        self.check();
    }

    /// Records that the watch has reported this version.
    pub(super) fn record_version(&mut self, revision: u64) {
        self.unreported.remove(&revision);
    }

    /// Records that the watch reports the end of an object, and returns `true` if this process deleted it. An end
    /// before the last known version only means that the object did not match the selector for a while.
    pub(super) fn record_delete(&mut self, uid: &Uid, revision: Option<u64>) -> bool {
        let Some(tombstone) = self.by_uid.get(uid) else { return self.ended.uids.contains(uid) };
        if tombstone.revision.zip(revision).is_none_or(|(last, end)| last <= end) {
            self.remove(uid);
        }
        true
    }

    /// Records that everything in the scope `here` has been reported up to this revision.
    pub(super) fn advance(&mut self, mark: u64, here: impl Fn(&ObjectKey) -> bool) {
        let is_here = |uid: &Uid| self.by_uid.get(uid).is_none_or(|tombstone| here(&tombstone.key));
        let passed = self.unreported.range(..=mark).filter(|(_, uid)| is_here(uid)).map(|(revision, _)| *revision);
        for revision in passed.collect::<Vec<_>>() {
            if let Some(uid) = self.unreported.remove(&revision) {
                self.remove(&uid);
            }
        }
    }

    /// Records a list of the scope `here`: a deleted object that is not in it is confirmed, unless the list is older
    /// than the delete.
    pub(super) fn apply_list<S: BuildHasher>(
        &mut self,
        uids: &HashSet<&Uid, S>,
        list: Option<u64>,
        here: impl Fn(&ObjectKey) -> bool,
    ) {
        let is_older = |revision: Option<u64>| revision.zip(list).is_some_and(|(last, list)| last > list);
        self.by_uid
            .retain(|uid, tombstone| uids.contains(uid) || !here(&tombstone.key) || is_older(tombstone.revision));
        let by_uid = &self.by_uid;
        self.by_key.retain(|_, uid| by_uid.contains_key(uid));
        self.unreported.retain(|revision, uid| {
            by_uid.get(uid).is_some_and(|tombstone| !here(&tombstone.key)) || is_older(Some(*revision))
        });
        self.check();
    }

    /// Forgets all deletes in the scope `here` that the watch has not reported.
    pub(super) fn forget(&mut self, here: impl Fn(&ObjectKey) -> bool) {
        self.by_uid.retain(|_, tombstone| !here(&tombstone.key));
        let by_uid = &self.by_uid;
        self.by_key.retain(|_, uid| by_uid.contains_key(uid));
        self.unreported.retain(|_, uid| by_uid.contains_key(uid));
        self.check();
    }

    /// Forgets which objects have ended, because the API server's state went back: their uids may appear again.
    pub(super) fn forget_ended(&mut self) {
        self.ended = Ended::default();
    }
}
