//! Stores objects: one revision for all writes, and a bounded history of each resource for watches and continued lists.

mod addresses;
mod change;
mod compaction;
mod definitions;
#[cfg(test)]
mod full_disk;
mod journal;
mod object;
mod owners;
mod persistence;
pub(crate) mod private;
#[cfg(test)]
mod redefined;
mod table;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::Value;
use tokio::sync::watch;

pub(crate) use crate::key::Key;
use crate::{
    clock::{Chance, Clock},
    kinds,
    registry::{Registry, Resource},
    status::GroupResource,
};
pub(crate) use addresses::address;
pub use change::Change;
pub(crate) use change::{Acting, ChangeObserver};
use compaction::Compaction;
use definitions::Redefinition;
pub(crate) use definitions::{API_SERVICES, DEFINITIONS};
use journal::Journal;
pub(crate) use object::{EventType, Lines, Object, event_line, head};
use owners::Owners;
pub(crate) use owners::{has_finalizer, is_blocked_by};
pub(crate) use persistence::Folder;
pub(crate) use table::{Event, HISTORY_LEN_MAX, Table};

static EVENTS: LazyLock<GroupResource> = LazyLock::new(|| kinds::core::event::KIND.group_resource());

/// The table in which the objects of a resource are: the events of both groups are in one.
fn home(of: &GroupResource) -> &GroupResource {
    if kinds::events::event::KIND.is_of(of) { &EVENTS } else { of }
}

/// The objects of a server, as etcd keeps those of kube-apiserver: one revision for all writes, tables with bounded histories,
/// and the journal of a folder. Writes are also announced to controllers ([`Store::take_announced`]).
pub(crate) struct Store {
    pub(crate) revision: u64,
    /// The history up to this revision is dropped for all resources, also for those without a table.
    compacted: u64,
    /// Ordered, because the namespace controller deletes in this order: one seed gives one sequence of requests.
    tables: BTreeMap<GroupResource, Table>,
    owners: Owners,
    /// The resources that are served: the built-in ones and those of `CustomResourceDefinitions`.
    pub(crate) registry: Arc<Registry>,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    /// The number of cluster IPs that Services got, so that each gets its own.
    pub(crate) n_addresses: u32,
    /// Notified after each change of any object.
    changed: watch::Sender<u64>,
    journal: Option<Journal>,
    pub(crate) change_observer: Option<ChangeObserver>,
    pub(crate) acting: Acting,
    compaction: Compaction,
    /// Changes that controllers have not seen. The server lets them look after each request, so it is short.
    announced: Vec<Announced>,
}

/// A change that is announced to controllers.
#[derive(Clone)]
pub(crate) struct Announced {
    pub(crate) of: GroupResource,
    pub(crate) event: Arc<Event>,
}

impl Store {
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        Self {
            revision: 1,
            compacted: 1,
            tables: BTreeMap::new(),
            owners: Owners::default(),
            registry: Arc::new(kinds::built_in()),
            chance: Chance::new(seed),
            clock,
            n_addresses: 0,
            changed: watch::Sender::new(1),
            journal: None,
            change_observer: None,
            acting: Acting::default(),
            compaction: Compaction::from(clock.now()),
            announced: Vec::new(),
        }
    }

    /// Returns a copy for another server, without watchers, observers and journal.
    pub(crate) fn fork(&self, clock: Clock, seed: u64) -> Self {
        Self {
            revision: self.revision,
            compacted: self.compacted,
            tables: self.tables.iter().map(|(of, table)| (of.clone(), table.fork())).collect(),
            owners: self.owners.clone(),
            registry: self.registry.clone(),
            n_addresses: self.n_addresses,
            changed: watch::Sender::new(self.revision),
            chance: self.chance.fork(seed),
            announced: self.announced.clone(),
            ..Self::new(clock, seed)
        }
    }

    /// How many objects each resource has.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&GroupResource, usize)> {
        self.tables.iter().map(|(of, table)| (of, table.objects.len()))
    }

    fn rebuild_registry(&mut self) {
        let definitions: Vec<_> = self.table(&DEFINITIONS).values(None).map(|(_, definition)| definition).collect();
        let services: Vec<_> = self.table(&API_SERVICES).values(None).map(|(_, service)| service).collect();
        let registry = kinds::built_in().with_definitions(definitions.iter().map(AsRef::as_ref));
        self.registry = Arc::new(registry.with_services(services.iter().map(AsRef::as_ref)));
        self.owners.kinds_changed();
    }

    pub(crate) fn table(&mut self, of: &GroupResource) -> &mut Table {
        let compacted = self.compacted;
        self.tables.entry(home(of).clone()).or_insert_with(|| Table::new(compacted))
    }

    /// The table of a resource that was asked for before.
    pub(crate) fn known_table(&self, of: &GroupResource) -> Option<&Table> {
        self.tables.get(home(of))
    }

    pub(crate) fn get(&self, of: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        let table = self.tables.get(home(of))?;
        table.objects.get(key).map(|object| table.value(object))
    }

    /// An object as it is stored.
    pub(crate) fn stored(&self, of: &GroupResource, key: &Key) -> Option<&Arc<Object>> {
        self.tables.get(home(of))?.objects.get(key)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = (&GroupResource, &Table)> {
        self.tables.iter()
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_announced(&mut self) -> Vec<Announced> {
        std::mem::take(&mut self.announced)
    }

    /// Returns the revision of the last change of any resource of a group; 0 before the first one.
    pub(crate) fn last_change_in(&self, group: &str) -> u64 {
        let tables = self.tables.range(GroupResource::new(group, "")..).take_while(|(of, _)| of.group == group);
        tables.map(|(_, table)| table.last_change).max().unwrap_or(0)
    }

    /// Returns a receiver that is notified after each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Writes an object. It gets the next revision as its resourceVersion.
    pub(crate) fn put(&mut self, of: &GroupResource, key: Key, mut object: Value) -> Arc<Value> {
        let of = home(of);
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let value = Arc::new(object);
        let object = Arc::new(Object::new(&value));
        let table = self.table(of);
        let before = table.objects.insert(key.clone(), object.clone());
        let was = before.as_ref().map(|before| table.value(before));
        table.warm.keep(&object, value.clone());
        self.owners.changed(&self.registry, (of, &key), was.as_deref(), Some(&value));
        self.keep(of, &key, Some(&object));
        let lines = Lines::default();
        self.log(of, Event { revision: self.revision, key, before, object, deleted: false, lines });
        value
    }

    /// An object is stored with more than is read of it: whoever writes what is read changes it.
    pub(crate) fn leave_unread(&mut self, of: &GroupResource, key: &Key) {
        if let Some(object) = self.table(home(of)).objects.get_mut(key) {
            *object = Arc::new(object.unread());
        }
    }

    /// New services get addresses after those that are there.
    pub(crate) fn count_addresses(&mut self) {
        let services = kinds::core::service::KIND.group_resource();
        let known = self.objects(&services, None).filter_map(|service| addresses::number_of(&service));
        self.n_addresses = known.max().unwrap_or(0);
    }

    /// An object that was there before the first request: its being there is no event.
    pub(crate) fn put_first(&mut self, of: &GroupResource, key: Key, mut object: Value) {
        let revision = self.revision;
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let value = Arc::new(object);
        let object = Arc::new(Object::new(&value));
        self.owners.changed(&self.registry, (of, &key), None, Some(&value));
        self.keep(of, &key, Some(&object));
        let table = self.table(of);
        table.objects.insert(key, object);
        table.last_change = revision;
    }

    /// Removes an object. Its last state gets the revision of the removal.
    pub(crate) fn remove(&mut self, of: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        let of = home(of);
        let before = self.table(of).objects.remove(key)?;
        self.revision += 1;
        let was = before.value();
        let mut last = Value::clone(&was);
        last["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let last = Arc::new(last);
        self.owners.changed(&self.registry, (of, key), Some(&was), None);
        self.keep(of, key, None);
        let event = Event {
            revision: self.revision,
            key: key.clone(),
            before: Some(before),
            object: Arc::new(Object::new(&last)),
            deleted: true,
            lines: Lines::default(),
        };
        self.log(of, event);
        Some(last)
    }

    fn log(&mut self, of: &GroupResource, event: Event) {
        let revision = event.revision;
        // The revision before this one was the newest for all ticks that have passed.
        self.compaction = self.compaction.at(self.clock.now(), revision.saturating_sub(1));
        let mut rebuilds = false;
        if let Some(observer) = &self.change_observer {
            observer(&Change::new(&self.acting, of, &event));
        }
        // APIServices of other servers decide which paths are served here.
        if *of == *API_SERVICES {
            let is_remote = |object: &Object| object.value()["spec"]["service"].is_object();
            rebuilds = is_remote(&event.object) || event.before.as_ref().is_some_and(|before| is_remote(before));
        }
        let defines = if *of == *DEFINITIONS { Redefinition::by(&event) } else { Redefinition::default() };
        let event = Arc::new(event);
        self.announced.push(Announced { of: of.clone(), event: event.clone() });
        let table = self.table(of);
        table.history.push_back(event);
        if table.history.len() > HISTORY_LEN_MAX {
            table.compacted = table.history.pop_front().map_or(revision, |event| event.revision);
        }
        table.last_change = revision;
        table.changed.notify_waiters();
        if defines.is_served || rebuilds {
            self.rebuild_registry();
        }
        if let Some(defined) = defines.anew {
            if let Some(resource) = self.registry.any_version(&defined) {
                self.read_anew(&resource);
            }
            let table = self.table(&defined);
            table.redefined = revision;
            table.changed.notify_waiters();
        }
        self.changed.send_replace(revision);
    }

    /// Objects of a custom kind are read by the schemas that it has now.
    fn read_anew(&mut self, resource: &Resource) {
        if let (Some(custom), Some(table)) = (&resource.custom, self.tables.get_mut(&resource.of)) {
            table.read_anew(&|object| custom.read(object));
        }
    }

    /// Wakes the controllers although no object has changed.
    #[cfg(feature = "serve")]
    pub(crate) fn wake(&mut self) {
        self.changed.send_modify(|_| {});
    }

    /// The oldest revision of which a list may still be asked for by a `continue` token or as an exact version.
    pub(crate) fn compacted_pages(&self) -> u64 {
        self.compaction.at(self.clock.now(), self.revision).compacted
    }

    /// Forgets the history: watches and continued lists from before get 410.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.revision;
        for table in self.tables.values_mut() {
            table.history.clear();
            table.compacted = self.compacted;
        }
    }

    pub(crate) fn owners(&mut self) -> &mut Owners {
        &mut self.owners
    }

    /// The objects that name this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(GroupResource, Key)> {
        self.owners.dependents(uid)
    }

    /// Whether the object with this uid is being deleted after its dependents.
    pub(crate) fn waits_for_dependents(&self, uid: &str) -> bool {
        self.owners.is_waiting(uid)
    }
}

impl Store {
    /// The objects of a resource, in a namespace or everywhere.
    pub(crate) fn objects(&self, of: &GroupResource, namespace: Option<&str>) -> impl Iterator<Item = Arc<Value>> {
        let table = self.tables.get(home(of)).into_iter();
        table.flat_map(move |table| table.values(namespace).map(|(_, object)| object))
    }
}
