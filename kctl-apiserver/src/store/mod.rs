//! Stores objects: one revision for all writes, and a bounded history of each resource for watches and continued lists.
//!
//! A write goes through [`Store::put`] or [`Store::remove`]. They increment the revision, change the [`Table`] of the
//! resource, and update the graph of owners (`owners.rs`). Then they append to the journal of `--data` (`journal.rs`),
//! add an [`Event`] to the history, and announce the change to the server's own controllers. Watches read the history;
//! nothing is buffered per watcher.

mod addresses;
mod change;
mod compaction;
mod definitions;
mod journal;
mod object;
mod owners;
mod persistence;
#[cfg(test)]
mod persistence_tests;
#[cfg(test)]
mod redefinition_tests;
mod table;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tokio::sync::watch;

pub(crate) use crate::key::Key;
use crate::{
    clock::{Clock, Rng},
    registry::{
        BuiltInKinds, Registry, Resource, StoreRoles,
        kind::{Environment, Kind},
    },
    status::GroupResource,
};
pub use change::Change;
pub(crate) use change::{ChangeObserver, ChangeOrigin};
use compaction::Compaction;
use definitions::{Redefinition, changes_delegation};
use journal::Journal;
pub(crate) use object::{EventLines, EventType, Object, event_line, head};
use owners::Owners;
pub(crate) use owners::{has_finalizer, is_blocked_by};
pub(crate) use persistence::Folder;
pub(crate) use table::{Event, HISTORY_LEN_MAX, Table};

/// The objects of a server, as etcd stores them for kube-apiserver: one revision for all writes, tables with bounded
/// histories, and the journal of a folder. Writes are also announced to controllers ([`Store::take_announced`]).
pub(crate) struct Store {
    /// The built-in kinds: their registry and their tables. Passed in, so that the store imports no kind.
    kinds: &'static BuiltInKinds,
    /// The revision of the newest write. Invariant: each write of an object increments it by one.
    pub(crate) revision: u64,
    /// The history up to this revision is dropped for all resources, even for those without a table. Invariant: at most
    /// `revision`.
    compacted: u64,
    /// The tables of all resources. They are ordered, because the namespace controller deletes in this order: one seed
    /// gives one sequence of requests.
    tables: BTreeMap<GroupResource, Table>,
    /// The graph of owner references. Every write goes through [`Owners::update`], so it matches the tables.
    owners: Owners,
    /// The resources that are served: the built-in ones and the kinds of `CustomResourceDefinitions`.
    pub(crate) registry: Arc<Registry>,
    /// The seeded source of uids and generated names.
    pub(crate) rng: Rng,
    /// The time of creation timestamps and of compaction.
    pub(crate) clock: Clock,
    /// The highest number of a cluster IP that a Service got, so that the next Service gets another address.
    pub(crate) n_addresses: u32,
    /// Notified after each change of any object.
    changed: watch::Sender<u64>,
    /// The file of `--data`; `None` for a server in memory.
    journal: Option<Journal>,
    /// The function of `ApiServer::observe_changes`.
    pub(crate) change_observer: Option<ChangeObserver>,
    /// The client whose request is being handled, for the records of changes.
    pub(crate) origin: ChangeOrigin,
    /// Decides which revisions can still be listed. `compacted` is about the history instead, which watches read.
    compaction: Compaction,
    /// Changes that controllers have not seen. Bounded by the changes of one request: the controllers take them after
    /// each request.
    announced: Vec<AnnouncedChange>,
}

/// A change that is announced to controllers.
#[derive(Clone)]
pub(crate) struct AnnouncedChange {
    /// The resource of the object, with the group and the name of its table.
    pub(crate) resource: GroupResource,
    /// The change, shared with the history of the table.
    pub(crate) event: Arc<Event>,
}

impl Store {
    /// Creates an empty store at revision 1. The seed decides all uids and generated names.
    pub(crate) fn new(kinds: &'static BuiltInKinds, clock: Clock, seed: u64) -> Self {
        Self {
            kinds,
            revision: 1,
            compacted: 1,
            tables: BTreeMap::new(),
            owners: Owners::new(kinds),
            registry: kinds.registry.clone(),
            rng: Rng::new(seed),
            clock,
            n_addresses: 0,
            changed: watch::Sender::new(1),
            journal: None,
            change_observer: None,
            origin: ChangeOrigin::default(),
            compaction: Compaction::from(clock.now()),
            announced: Vec::new(),
        }
    }

    /// Returns a copy for another server, without watchers, observers and journal.
    pub(crate) fn fork(&self, clock: Clock, seed: u64) -> Self {
        Self {
            revision: self.revision,
            compacted: self.compacted,
            tables: self.tables.iter().map(|(resource, table)| (resource.clone(), table.fork())).collect(),
            owners: self.owners.clone(),
            registry: self.registry.clone(),
            n_addresses: self.n_addresses,
            changed: watch::Sender::new(self.revision),
            rng: self.rng.fork(seed),
            announced: self.announced.clone(),
            ..Self::new(self.kinds, clock, seed)
        }
    }

    /// Returns the number of objects of each resource that has a table.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (&GroupResource, usize)> {
        self.tables.iter().map(|(resource, table)| (resource, table.objects.len()))
    }

    /// Derives the served resources from the stored CRDs and `APIServices`.
    fn rebuild_registry(&mut self) {
        let StoreRoles { definition, api_service, .. } = self.kinds.roles;
        let definitions: Vec<_> = self.table(&definition.group_resource()).values(None).map(|(_, it)| it).collect();
        let services: Vec<_> = self.table(&api_service.group_resource()).values(None).map(|(_, it)| it).collect();
        let registry = Registry::clone(&self.kinds.registry).with_definitions(definitions.iter().map(AsRef::as_ref));
        self.registry = Arc::new(registry.with_services(services.iter().map(AsRef::as_ref)));
        self.owners.requeue_undecided();
    }

    /// Returns the table of a resource. An empty one is created if it is missing.
    pub(crate) fn table(&mut self, resource: &GroupResource) -> &mut Table {
        let compacted = self.compacted;
        self.tables.entry(self.kinds.table_of(resource).clone()).or_insert_with(|| Table::new(compacted))
    }

    /// Returns the table of a resource, if it has one already.
    pub(crate) fn known_table(&self, resource: &GroupResource) -> Option<&Table> {
        self.tables.get(self.kinds.table_of(resource))
    }

    /// Returns an object, parsed.
    pub(crate) fn get(&self, resource: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        let table = self.tables.get(self.kinds.table_of(resource))?;
        table.objects.get(key).map(|object| table.value(object))
    }

    /// Returns an object of a built-in kind, parsed. The namespace is empty for a cluster-scoped kind.
    pub(crate) fn object(&self, kind: &Kind, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.get(&kind.group_resource(), &(namespace.to_owned(), name.to_owned()))
    }

    /// Returns an object as it is stored: packed JSON with a weak reference to its value.
    pub(crate) fn get_stored(&self, resource: &GroupResource, key: &Key) -> Option<&Arc<Object>> {
        self.tables.get(self.kinds.table_of(resource))?.objects.get(key)
    }

    /// Iterates over the tables in the order of group and resource.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&GroupResource, &Table)> {
        self.tables.iter()
    }

    /// Returns the changes since the last call.
    pub(crate) fn take_announced(&mut self) -> Vec<AnnouncedChange> {
        std::mem::take(&mut self.announced)
    }

    /// Returns the revision of the last change of any resource of a group; 0 before the first one.
    pub(crate) fn last_change_in(&self, group: &str) -> u64 {
        let tables =
            self.tables.range(GroupResource::new(group, "")..).take_while(|(resource, _)| resource.group == group);
        tables.map(|(_, table)| table.last_change).max().unwrap_or(0)
    }

    /// Returns a receiver that is notified after each change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Writes an object. It gets the next revision as its `metadata.resourceVersion`. The observer, the journal and the
    /// watches see the change before this returns.
    pub(crate) fn put(&mut self, resource: &GroupResource, key: Key, mut object: Value) -> Arc<Value> {
        let resource = self.kinds.table_of(resource);
        self.revision += 1;
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let value = Arc::new(object);
        let object = Arc::new(Object::new(&value));
        let table = self.table(resource);
        let before = table.objects.insert(key.clone(), object.clone());
        let old = before.as_ref().map(|before| table.value(before));
        table.cache.insert(&object, value.clone());
        self.owners.update(&self.registry, resource, &key, old.as_deref(), Some(&value));
        self.append_to_journal(resource, &key, Some(&object));
        let lines = EventLines::default();
        self.record_event(resource, Event { revision: self.revision, key, before, object, deleted: false, lines });
        value
    }

    /// Marks that the object was sent with fields that its schema prunes. The next write then counts as a change even
    /// if it sends exactly what reads return.
    pub(crate) fn mark_unread_fields(&mut self, resource: &GroupResource, key: &Key) {
        if let Some(object) = self.table(resource).objects.get_mut(key) {
            *object = Arc::new(object.with_unread_fields());
        }
    }

    /// Sets the next cluster IP after the addresses of the loaded Services.
    pub(crate) fn init_addresses(&mut self) {
        let services = self.objects_of(self.kinds.roles.service, None);
        let used = services.filter_map(|service| addresses::number_of(&service));
        self.n_addresses = used.max().unwrap_or(0);
    }

    /// Stores an object that exists before the first request. It gets the present revision, and no watch sees an event.
    pub(crate) fn put_initial(&mut self, resource: &GroupResource, key: Key, mut object: Value) {
        let revision = self.revision;
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        let value = Arc::new(object);
        let object = Arc::new(Object::new(&value));
        self.owners.update(&self.registry, resource, &key, None, Some(&value));
        self.append_to_journal(resource, &key, Some(&object));
        let table = self.table(resource);
        table.objects.insert(key, object);
        table.last_change = revision;
    }

    /// Removes an object. Returns its last state, with the revision of the removal as its `resourceVersion`, as etcd
    /// does.
    pub(crate) fn remove(&mut self, resource: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        let resource = self.kinds.table_of(resource);
        let before = self.table(resource).objects.remove(key)?;
        self.revision += 1;
        let old = before.value();
        let mut last = Value::clone(&old);
        last["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let last = Arc::new(last);
        self.owners.update(&self.registry, resource, key, Some(&old), None);
        self.append_to_journal(resource, key, None);
        let event = Event {
            revision: self.revision,
            key: key.clone(),
            before: Some(before),
            object: Arc::new(Object::new(&last)),
            deleted: true,
            lines: EventLines::default(),
        };
        self.record_event(resource, event);
        Some(last)
    }

    /// Adds an event to the history and notifies all waiting tasks. If a CRD or `APIService` changes the served
    /// resources, the registry is rebuilt first.
    fn record_event(&mut self, group_resource: &GroupResource, event: Event) {
        let revision = event.revision;
        debug_assert_eq!(revision, self.revision, "a write is logged before the next one begins");
        debug_assert!(self.compacted < revision, "an event is in the history until it is dropped");
        // All elapsed ticks saw the revision before this one as the newest.
        self.compaction = self.compaction.advance(self.clock.now(), revision.saturating_sub(1));
        if let Some(observer) = &self.change_observer {
            observer(&Change::new(&self.origin, group_resource, &event));
        }
        let StoreRoles { definition, api_service, .. } = self.kinds.roles;
        let is_delegation_changed = api_service.is_of(group_resource) && changes_delegation(&event);
        let redefinition =
            if definition.is_of(group_resource) { Redefinition::from_event(&event) } else { Redefinition::default() };
        let event = Arc::new(event);
        self.announced.push(AnnouncedChange { resource: group_resource.clone(), event: event.clone() });
        let table = self.table(group_resource);
        debug_assert!(table.last_change < revision, "a history is ordered by revision, so that it can be searched");
        table.history.push_back(event);
        if table.history.len() > HISTORY_LEN_MAX {
            table.compacted = table.history.pop_front().map_or(revision, |event| event.revision);
            table.drop_compacted_past();
        }
        table.check();
        table.last_change = revision;
        table.changed.notify_waiters();
        if redefinition.is_served || is_delegation_changed {
            self.rebuild_registry();
        }
        if let Some(redefined) = redefinition.resource {
            if let Some(resource) = self.registry.any_version(&redefined) {
                self.redecode(&resource);
            }
            let table = self.table(&redefined);
            table.redefined = revision;
            table.changed.notify_waiters();
        }
        self.changed.send_replace(revision);
    }

    /// Decodes the stored objects of a custom kind again with its present schemas: pruning and defaults may differ. The
    /// written bytes are not changed.
    fn redecode(&mut self, resource: &Resource) {
        if let (Some(custom), Some(table)) = (&resource.custom, self.tables.get_mut(&resource.id)) {
            table.redecode_objects(&|object| custom.read(object));
        }
    }

    /// Wakes the controllers although no object has changed.
    #[cfg(feature = "serve")]
    pub(crate) fn wake(&mut self) {
        self.changed.send_modify(|_| {});
    }

    /// Returns the oldest revision that a `continue` token or an exact `resourceVersion` may name. The history of a
    /// table may begin later: then [`Table::at_revision`] has no state for the token either.
    pub(crate) fn compacted_pages(&self) -> u64 {
        self.compaction.advance(self.clock.now(), self.revision).compacted
    }

    /// Drops the history of all resources: earlier watches and continued lists get 410. Only
    /// `ApiServer::compact` calls this. Otherwise `compaction` ends continued lists, and [`HISTORY_LEN_MAX`] bounds the
    /// history.
    pub(crate) fn compact(&mut self) {
        debug_assert!(self.compacted <= self.revision, "no event of the future is dropped");
        self.compacted = self.revision;
        for table in self.tables.values_mut() {
            table.history.clear();
            table.compacted = self.compacted;
            table.drop_compacted_past();
        }
    }

    /// Returns the graph of owner references, for the garbage collector.
    pub(crate) fn owners(&mut self) -> &mut Owners {
        &mut self.owners
    }

    /// Returns the objects that name this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(GroupResource, Key)> {
        self.owners.dependents(uid)
    }

    /// Returns `true` if the object with this uid is in foreground deletion.
    pub(crate) fn waits_for_dependents(&self, uid: &str) -> bool {
        self.owners.is_waiting(uid)
    }

    /// Iterates over the objects of a built-in kind in a namespace, or in all namespaces.
    pub(crate) fn objects_of(&self, kind: &Kind, namespace: Option<&str>) -> impl Iterator<Item = Arc<Value>> {
        values(self.known_table(&kind.group_resource()), namespace)
    }

    /// Iterates over the objects of a resource in a namespace, or in all namespaces.
    pub(crate) fn objects(
        &self,
        resource: &GroupResource,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = Arc<Value>> {
        values(self.known_table(resource), namespace)
    }
}

/// The functions of kinds that prepare an object see the store only through this trait, so they cannot read other
/// objects.
impl Environment for Store {
    fn now(&self) -> String {
        self.clock.seconds()
    }

    fn uid(&mut self) -> String {
        self.rng.uid()
    }

    fn cluster_ip(&mut self) -> String {
        self.n_addresses += 1;
        addresses::address(self.n_addresses)
    }
}

/// Iterates over the objects of a table, if there is one.
fn values<'a, 'b>(
    table: Option<&'a Table>,
    namespace: Option<&'b str>,
) -> impl Iterator<Item = Arc<Value>> + use<'a, 'b> {
    table.into_iter().flat_map(move |table| table.values(namespace).map(|(_, object)| object))
}
