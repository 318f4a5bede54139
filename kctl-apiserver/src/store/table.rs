//! All objects of one resource, and the history of their changes.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use serde_json::Value;
use tokio::sync::Notify;

use super::{Key, Lines, Object, object::Warm};
use crate::{request::RequestInfo, stale::Past};

/// Events that are kept for each resource. A watch that starts before them gets 410, as after a compaction of etcd.
pub(crate) const HISTORY_LEN_MAX: usize = 10_000;

/// Events that are looked at one by one from the end of a history, before the place of a revision in it is searched.
const MISSED_MAX: usize = 64;

/// A change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Object>>,
    /// The new state. Of a deletion: the last state, with the resourceVersion of the deletion.
    pub(crate) object: Arc<Object>,
    pub(crate) deleted: bool,
    pub(crate) lines: Lines,
}

/// All objects of one resource.
pub(crate) struct Table {
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    pub(super) warm: Warm,
    pub(super) history: VecDeque<Arc<Event>>,
    /// Events up to this revision are no longer in the history.
    pub(super) compacted: u64,
    /// The revision of the last change; 0 before the first.
    pub(super) last_change: u64,
    /// When the definition of the resource last became another one, or ceased to be; 0 where it never did.
    pub(super) redefined: u64,
    /// Says that something changed, to watchers in the order in which they wait: tokio's `watch` channel wakes them in any.
    pub(super) changed: Arc<Notify>,
}

impl Table {
    pub(super) fn new(revision: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            warm: Warm::default(),
            history: VecDeque::new(),
            compacted: revision,
            last_change: 0,
            redefined: 0,
            changed: Arc::default(),
        }
    }

    pub(super) fn fork(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            warm: Warm::default(),
            history: self.history.clone(),
            changed: Arc::default(),
            ..*self
        }
    }

    pub(super) fn read_anew(&mut self, read: &impl Fn(&mut Value)) {
        for object in self.objects.values_mut() {
            if let Some(other) = object.read_by(read) {
                *object = Arc::new(other);
            }
        }
    }

    /// Returns `true` if there are no objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects of a namespace, or all, by namespace and name, from after a key on.
    pub(crate) fn range(
        &self,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&Key, &Arc<Object>)> {
        let start = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included((namespace.to_owned(), String::new())),
            (None, None) => Bound::Unbounded,
        };
        let namespace = namespace.map(str::to_owned);
        let objects = self.objects.range((start, Bound::Unbounded));
        objects.take_while(move |(key, _)| namespace.as_deref().is_none_or(|wanted| key.0 == wanted))
    }

    /// The same, parsed.
    pub(crate) fn values(&self, namespace: Option<&str>) -> impl Iterator<Item = (&Key, Arc<Value>)> {
        self.range(namespace, None).map(|(key, object)| (key, self.value(object)))
    }

    /// The value of an object of this table, which stays parsed for a while.
    pub(crate) fn value(&self, object: &Object) -> Arc<Value> {
        self.warm.value(object)
    }

    /// The events after a revision; `None` when some of them are no longer kept.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        // Most watchers have missed but a few.
        let n_last = self.history.iter().rev().take(MISSED_MAX).take_while(|event| event.revision > revision).count();
        let first = match n_last {
            MISSED_MAX => self.history.partition_point(|event| event.revision <= revision),
            n_last => self.history.len() - n_last,
        };
        (revision >= self.compacted).then(|| self.history.range(first..))
    }

    /// The state as it was at a revision; `None` when that is too long ago.
    pub(crate) fn at(&self, revision: u64) -> Option<Table> {
        let mut objects = self.objects.clone();
        let later: Vec<_> = self.since(revision)?.collect();
        for event in later.into_iter().rev() {
            match &event.before {
                Some(before) => objects.insert(event.key.clone(), before.clone()),
                None => objects.remove(&event.key),
            };
        }
        Some(Table { objects, ..Table::new(revision) })
    }

    /// The revision that a fault on purpose makes a read show, while it is known, and where one so old is allowed.
    pub(crate) fn stale(&self, info: &RequestInfo) -> Option<u64> {
        let stale = info.stale?;
        let asked = info.params.oldest();
        let oldest = asked.or(stale.misleads.then_some(0))?;
        let revision = match stale.past {
            Past::Revision(revision) => revision,
            Past::Changes(n_changes) => {
                self.history.iter().rev().nth(n_changes).map_or(self.compacted, |event| event.revision)
            }
        };
        (revision >= self.compacted.max(oldest) && revision < self.last_change).then_some(revision)
    }

    /// Notified after each change.
    pub(crate) fn changes(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// What came after this revision is known.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn last_change(&self) -> u64 {
        self.last_change
    }

    /// A watch ends when this has become another number.
    pub(crate) fn redefined(&self) -> u64 {
        self.redefined
    }
}
