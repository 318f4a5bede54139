//! The objects of one resource, and the history of their changes.
//!
//! A table shares its objects: the map, the history and forks of the server point to the same ones. Past states are
//! computed from the present one and the history, and only the last computed one is kept.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;

use super::{EventLines, Key, Object, object::ValueCache};
use crate::{request::RequestInfo, stale::StaleState};

/// The number of events of each resource in the history. A watch from a revision before the last dropped event
/// (`Table::compacted`) gets 410, as after a compaction of etcd. The limit is per resource: many changes of Leases do
/// not drop the history of Pods.
pub(crate) const HISTORY_LEN_MAX: usize = 10_000;

/// The number of events that are searched one by one from the end of the history, before a binary search. The events of
/// a watcher are found without a search as long as it is at most this many behind.
const LINEAR_SCAN_MAX: usize = 64;

/// A change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    /// The revision of the change. The history is ordered by it.
    pub(crate) revision: u64,
    /// Namespace and name of the object.
    pub(crate) key: Key,
    /// The state before; `None` if the object was created.
    pub(crate) before: Option<Arc<Object>>,
    /// The new state. For a deletion: the last state with the revision of the deletion as its `resourceVersion`.
    pub(crate) object: Arc<Object>,
    /// `true` for a removal. A deletion that finalizers hold is an ordinary change.
    pub(crate) deleted: bool,
    /// The lines of this change that were sent to watchers, shared by all of them.
    pub(crate) lines: EventLines,
}

/// All objects of one resource.
pub(crate) struct Table {
    /// The objects, ordered by namespace and name as etcd orders keys: a list needs no sort.
    pub(super) objects: BTreeMap<Key, Arc<Object>>,
    /// The values of objects that were used last.
    pub(super) cache: ValueCache,
    /// Changes by increasing revision. Invariant: at most [`HISTORY_LEN_MAX`], all of them after `compacted`.
    pub(super) history: VecDeque<Arc<Event>>,
    /// Events up to this revision are no longer in the history.
    pub(super) compacted: u64,
    /// The revision of the last change; 0 before the first.
    pub(super) last_change: u64,
    /// The revision at which the CRD of the resource last changed or was deleted; 0 if it never did. Watches that
    /// started before this revision end.
    pub(super) redefined: u64,
    /// Notified after each change. `Notify` wakes watchers in the order in which they wait, so a seed gives one order;
    /// tokio's `watch` channel wakes them in any order.
    pub(super) changed: Arc<Notify>,
    /// The last result of [`Self::at_revision`], with its revision. All pages of a list read the same past state.
    past: Mutex<Option<(u64, Arc<Table>)>>,
}

impl Table {
    /// Creates an empty table without history before `revision`.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            cache: ValueCache::default(),
            history: VecDeque::new(),
            compacted: revision,
            last_change: 0,
            redefined: 0,
            changed: Arc::default(),
            past: Mutex::default(),
        }
    }

    /// Checks the invariants of the history.
    pub(super) fn check(&self) {
        debug_assert!(self.history.len() <= HISTORY_LEN_MAX, "the oldest event is dropped at the bound");
        let is_after = |event: &Arc<Event>| event.revision > self.compacted;
        debug_assert!(self.history.front().is_none_or(is_after), "a watch from `compacted` on misses no event");
    }

    /// Returns a copy that shares the objects and the history, without watchers. Its watches begin with the shared
    /// history.
    pub(super) fn fork(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            cache: ValueCache::default(),
            history: self.history.clone(),
            changed: Arc::default(),
            past: Mutex::default(),
            ..*self
        }
    }

    /// Drops the past state that is kept if the history no longer reaches back to it.
    pub(super) fn drop_compacted_past(&mut self) {
        let past = self.past.get_mut();
        if past.as_ref().is_some_and(|(revision, _)| *revision < self.compacted) {
            *past = None;
        }
    }

    /// Decodes each object again; see [`Object::redecode`].
    pub(super) fn redecode_objects(&mut self, decode: &impl Fn(&mut Value)) {
        *self.past.get_mut() = None;
        for object in self.objects.values_mut() {
            if let Some(other) = object.redecode(decode) {
                *object = Arc::new(other);
            }
        }
    }

    /// Returns `true` if the table has no objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Iterates over the objects of a namespace, or over all, by namespace and name, starting after a key. The key to
    /// start after need not exist: the object that a `continue` token names may have been deleted.
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
        objects.take_while(move |(key, _)| namespace.as_deref().is_none_or(|selected| key.0 == selected))
    }

    /// Iterates over the same objects, parsed.
    pub(crate) fn values(&self, namespace: Option<&str>) -> impl Iterator<Item = (&Key, Arc<Value>)> {
        self.range(namespace, None).map(|(key, object)| (key, self.value(object)))
    }

    /// Returns the value of an object of this table, which is then cached in parsed form.
    pub(crate) fn value(&self, object: &Object) -> Arc<Value> {
        self.cache.value(object)
    }

    /// Returns the events after a revision, or `None` if some of them are no longer in the history. The last event of
    /// the history may be older than `revision`: then the result is empty.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        // Most watchers are only a few events behind.
        let n_last =
            self.history.iter().rev().take(LINEAR_SCAN_MAX).take_while(|event| event.revision > revision).count();
        let first = match n_last {
            LINEAR_SCAN_MAX => self.history.partition_point(|event| event.revision <= revision),
            n_last => self.history.len() - n_last,
        };
        (revision >= self.compacted).then(|| self.history.range(first..))
    }

    /// Returns the state at a revision, by undoing the events since; `None` if the history does not reach back so far.
    /// The result is for reading: it has no history, and nothing notifies its watchers. The first call for a revision
    /// visits all objects. Further calls return the same state until another revision is read.
    pub(crate) fn at_revision(&self, revision: u64) -> Option<Arc<Table>> {
        let later = self.since(revision)?;
        let mut past = self.past.lock();
        if let Some((kept, table)) = &*past
            && *kept == revision
        {
            return Some(table.clone());
        }
        let mut objects = self.objects.clone();
        for event in later.collect::<Vec<_>>().into_iter().rev() {
            match &event.before {
                Some(before) => objects.insert(event.key.clone(), before.clone()),
                None => objects.remove(&event.key),
            };
        }
        let table = Arc::new(Table { objects, ..Table::new(revision) });
        *past = Some((revision, table.clone()));
        Some(table)
    }

    /// Returns the revision that a fault makes this read return instead of the newest one. `None` without such a fault,
    /// if the state is no longer known, or if the request demands a newer `resourceVersion`. A request without
    /// `resourceVersion` demands the newest state: a stale server serves it, an outdated one does not.
    pub(crate) fn stale(&self, info: &RequestInfo) -> Option<u64> {
        let stale = info.stale?;
        let requested = info.params.oldest();
        let oldest = requested.or(stale.is_outdated.then_some(0))?;
        let revision = match stale.past {
            StaleState::Revision(revision) => revision,
            StaleState::Changes(n_changes) => {
                self.history.iter().rev().nth(n_changes).map_or(self.compacted, |event| event.revision)
            }
        };
        (revision >= self.compacted.max(oldest) && revision < self.last_change).then_some(revision)
    }

    /// Returns the `Notify` that is notified after each change.
    pub(crate) fn changes(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Returns the revision after which the history is complete.
    pub(crate) fn compacted_revision(&self) -> u64 {
        self.compacted
    }

    /// Returns the revision of the last change; 0 before the first.
    pub(crate) fn last_change(&self) -> u64 {
        self.last_change
    }

    /// Returns the revision of the last change of the CRD. A watch ends when it changes.
    pub(crate) fn redefined_revision(&self) -> u64 {
        self.redefined
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ApiServer, status::GroupResource};

    #[tokio::test(start_paused = true)]
    async fn past_state_is_computed_once_per_revision() {
        let server = ApiServer::new();
        let create = async |name: &str| {
            let config = json!({ "metadata": { "name": name } });
            server.succeed("POST", "/api/v1/namespaces/default/configmaps", &config).await
        };
        let configs = GroupResource::new("", "configmaps");
        let past = |revision: u64| server.state.lock().store.table(&configs).at_revision(revision);
        create("a").await;
        let revision = server.state.lock().store.revision;
        create("b").await;
        let first = past(revision).unwrap();
        let key = |name: &str| ("default".to_owned(), name.to_owned());
        assert!(first.objects.contains_key(&key("a")) && !first.objects.contains_key(&key("b")));
        create("c").await;
        assert!(Arc::ptr_eq(&first, &past(revision).unwrap()));
        assert!(past(revision + 1).unwrap().objects.contains_key(&key("b")));
        let again = past(revision).unwrap();
        assert!(!again.objects.contains_key(&key("b")));
        server.state.lock().store.table(&configs).redecode_objects(&|_| ());
        assert!(!Arc::ptr_eq(&again, &past(revision).unwrap()), "a new schema decodes past objects, too");
        server.compact();
        assert!(past(revision).is_none());
    }
}
