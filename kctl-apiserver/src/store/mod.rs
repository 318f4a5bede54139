//! Where objects live: one revision for all writes, and a bounded history of each resource for watches and old pages.

mod addresses;
mod compaction;
mod definitions;
#[cfg(test)]
mod full_disk;
mod journal;
mod kept;
mod object;
mod owners;
pub(crate) mod private;
#[cfg(test)]
mod redefined;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, LazyLock, OnceLock},
};

use serde_json::Value;
use tokio::sync::watch;

pub(crate) use crate::key::Key;
use crate::{
    clock::{Chance, Clock},
    controllers::{
        Controller, ControllerOptions, accounts,
        api_services::{self, API_SERVICES},
        quotas,
        tokens::{self, TokenWork},
    },
    kinds::{Registry, Resource},
    metrics::Counts,
    server::{Change, RequestRecord},
    session::Session,
    status::GroupResource,
    tokens::{Signer, SignerError},
    transport::Transport,
    verbs::{
        grants::{Grants, RBAC},
        impersonation::Ways,
    },
};
pub(crate) use addresses::address;
use compaction::Compaction;
pub(crate) use definitions::DEFINITIONS;
use definitions::Redefinition;
use journal::Journal;
pub(crate) use object::{Kind, Lines, Object, event_line, head};
use owners::Owners;
pub(crate) use owners::{has_finalizer, is_blocked_by};
pub(crate) use table::{Event, HISTORY_LEN_MAX, Table};

/// Told of each request.
pub(crate) type Observer = Box<dyn Fn(&RequestRecord) + Send>;
/// Told of each change of an object.
pub(crate) type ChangeObserver = Box<dyn Fn(&Change) + Send>;

static EVENTS: LazyLock<GroupResource> = LazyLock::new(|| GroupResource::new("", "events"));

/// The table in which the objects of a resource are: the events of both groups are in one.
fn home(of: &GroupResource) -> &GroupResource {
    if of.resource == "events" && of.group == "events.k8s.io" { &EVENTS } else { of }
}

/// Who changes something, as observers are told.
#[derive(Default)]
pub(crate) struct Acting {
    pub(crate) by: String,
    pub(crate) trace: String,
}

/// Everything that the server knows. One lock guards it: requests are handled one after the other.
pub(crate) struct State {
    pub(crate) revision: u64,
    /// Of all kinds: what was up to this revision is forgotten. What nobody has asked for yet has a history, too, which is empty.
    compacted: u64,
    /// In an order, in which the end of a namespace deletes: one seed gives one sequence.
    tables: BTreeMap<GroupResource, Table>,
    owners: Owners,
    pub(crate) registry: Arc<Registry>,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    pub(crate) requests: VecDeque<RequestRecord>,
    pub(crate) counts: Counts,
    /// Shared with the forks: a token is one of all of them.
    signer: Arc<OnceLock<Signer>>,
    /// Of services, so that each gets its own address.
    pub(crate) n_addresses: u32,
    /// Says that something changed anywhere.
    changed: watch::Sender<u64>,
    journal: Option<Journal>,
    pub(crate) audit: Option<std::fs::File>,
    /// Of requests: drawn beside the uids of objects, which are the same whoever asks.
    pub(crate) audit_ids: Chance,
    pub(crate) observers: Vec<Observer>,
    pub(crate) change_observer: Option<ChangeObserver>,
    /// Whose request is being handled; nobody's while the server's own controllers work.
    pub(crate) acting: Acting,
    pub(crate) transport: Transport,
    /// What roles aggregate may be something else now.
    pub(crate) roles_changed: bool,
    /// Groups in which names of definitions have become free.
    pub(crate) names_freed: BTreeSet<String>,
    /// Namespaces with quotas that may have more left than they say.
    pub(crate) quotas_touched: BTreeSet<String>,
    /// The controllers that run on this server.
    pub(crate) enabled: ControllerOptions,
    compaction: Compaction,
    /// `APIServices` whose availability may be another one now.
    pub(crate) api_services_touched: bool,
    /// Namespaces that may lack their `ServiceAccount` or their certificate authority. Empty while no controller fills them.
    pub(crate) namespaces_touched: BTreeSet<String>,
    /// Secrets and accounts for the controller of tokens. Empty while it does not run.
    pub(crate) tokens_touched: BTreeSet<TokenWork>,
    /// The certificate authority that clients trust, as PEM; `None` before the server listens.
    pub(crate) root_ca: Option<Arc<str>>,
    pub(crate) grants: Grants,
    pub(crate) ways: Ways,
}

impl State {
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        Self {
            revision: 1,
            compacted: 1,
            tables: BTreeMap::new(),
            owners: Owners::default(),
            registry: Arc::new(Registry::built_in()),
            chance: Chance::new(seed),
            clock,
            requests: VecDeque::new(),
            counts: Counts::default(),
            signer: Arc::default(),
            n_addresses: 0,
            changed: watch::Sender::new(1),
            journal: None,
            audit: None,
            audit_ids: Chance::new(!seed),
            observers: Vec::new(),
            change_observer: None,
            acting: Acting::default(),
            transport: Transport::default(),
            roles_changed: false,
            names_freed: BTreeSet::new(),
            quotas_touched: BTreeSet::new(),
            enabled: ControllerOptions::none(),
            compaction: Compaction::from(clock.now()),
            api_services_touched: false,
            namespaces_touched: BTreeSet::new(),
            tokens_touched: BTreeSet::new(),
            root_ca: None,
            grants: Grants::default(),
            ways: Ways::default(),
        }
    }

    /// The same state, for another server: nobody watches it, and nobody is told of its changes.
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
            roles_changed: self.roles_changed,
            names_freed: self.names_freed.clone(),
            quotas_touched: self.quotas_touched.clone(),
            signer: self.signer.clone(),
            transport: self.transport.clone(),
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
        let registry = Registry::with_definitions(definitions.iter().map(AsRef::as_ref));
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
        let services = GroupResource::new("", "services");
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
        self.forget_grants(of);
    }

    fn forget_grants(&mut self, of: &GroupResource) {
        if of.group == RBAC {
            self.grants.forget();
        }
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
        if self.has_quotas() {
            let now = self.clock.now();
            self.quotas_touched.extend(quotas::touched(of, &event, now));
        }
        if self.fills_namespaces() {
            self.namespaces_touched.extend(accounts::touched(of, &event));
        }
        if self.enabled.runs(Controller::ServiceAccountToken) {
            self.tokens_touched.extend(tokens::touched(of, &event));
        }
        if *of == *API_SERVICES {
            self.api_services_touched = true;
            let is_remote = |object: &Object| object.value()["spec"]["service"].is_object();
            if is_remote(&event.object) || event.before.as_ref().is_some_and(|before| is_remote(before)) {
                rebuilds = true;
            }
        } else if self.registry.has_remote() {
            self.api_services_touched |= api_services::depend_on(of);
        }
        let defines = if *of == *DEFINITIONS { Redefinition::by(&event) } else { Redefinition::default() };
        let table = self.table(of);
        table.history.push_back(Arc::new(event));
        if table.history.len() > HISTORY_LEN_MAX {
            table.compacted = table.history.pop_front().map_or(revision, |event| event.revision);
        }
        table.last_change = revision;
        table.changed.notify_waiters();
        self.roles_changed |= of.resource == "clusterroles";
        self.names_freed.extend(defines.frees_names_in);
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
        self.forget_grants(of);
        self.changed.send_replace(revision);
    }

    /// Objects of a custom kind are read by the schemas that it has now.
    fn read_anew(&mut self, resource: &Resource) {
        if let (Some(custom), Some(table)) = (&resource.custom, self.tables.get_mut(&resource.of)) {
            table.read_anew(&|object| custom.read(object));
        }
    }

    /// Most servers have none, and count nothing.
    fn has_quotas(&self) -> bool {
        let of = GroupResource::new("", "resourcequotas");
        self.known_table(&of).is_some_and(|table| !table.objects.is_empty())
    }

    /// Has the controllers look at what is left to do, though no object has changed.
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

impl State {
    /// The objects of a resource, in a namespace or everywhere.
    pub(crate) fn objects(&self, of: &GroupResource, namespace: Option<&str>) -> impl Iterator<Item = Arc<Value>> {
        let table = self.tables.get(home(of)).into_iter();
        table.flat_map(move |table| table.values(namespace).map(|(_, object)| object))
    }
}

impl State {
    /// Runs a request with the time and the chance of its first run. What it draws beyond that is drawn by nobody else.
    pub(crate) fn repeatably<T>(&mut self, session: &Session, run: impl FnOnce(&mut Self) -> T) -> T {
        let first = session.is_first_run();
        let (chance, now) = session.begin(&self.chance, self.clock.now());
        let outer = (std::mem::replace(&mut self.chance, chance), std::mem::replace(&mut self.clock, Clock::At(now)));
        let n_addresses = self.n_addresses;
        let result = run(self);
        let waits = session.waits();
        self.clock = outer.1;
        if waits {
            self.n_addresses = n_addresses;
        }
        match (first, waits) {
            // A request that asks nobody draws as if there were no sessions.
            (true, false) => {}
            (true, true) => {
                let mut apart = outer.0;
                self.chance = Chance::new(apart.next());
            }
            (false, _) => self.chance = outer.0,
        }
        result
    }
}

impl State {
    /// Who signs tokens; the key is made when it is first needed.
    ///
    /// # Errors
    /// Without random numbers there is no key.
    pub(crate) fn signer(&self) -> Result<&Signer, SignerError> {
        if let Some(signer) = self.signer.get() {
            return Ok(signer);
        }
        let made = Signer::new()?;
        Ok(self.signer.get_or_init(|| made))
    }
}
