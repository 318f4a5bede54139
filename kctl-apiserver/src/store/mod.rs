//! Where objects live: one revision for all writes, and a bounded history of each resource for watches and old pages.

mod journal;
mod owners;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    ops::Bound,
    path::Path,
    sync::{Arc, LazyLock},
};

use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::{
    clock::{Chance, Clock},
    kinds::Registry,
    request::{Call, User},
    server::{Change, RequestRecord},
    session::Session,
    status::GroupResource,
    transport::Transport,
};
use journal::Journal;
use owners::Owners;

/// Events that are kept for each resource. A watch that starts before them gets 410, as after a compaction of etcd.
pub(crate) const HISTORY_LEN_MAX: usize = 10_000;

/// Namespace (empty for the cluster) and name.
pub(crate) type Key = (String, String);

/// Told of each request.
pub(crate) type Observer = Box<dyn Fn(&RequestRecord) + Send>;
/// Told of each change of an object.
pub(crate) type ChangeObserver = Box<dyn Fn(&Change) + Send>;

/// A change of one object.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    /// The new state. Of a deletion: the last state, with the resourceVersion of the deletion.
    pub(crate) object: Arc<Value>,
    pub(crate) deleted: bool,
}

/// All objects of one resource.
pub(crate) struct Table {
    objects: BTreeMap<Key, Arc<Value>>,
    history: VecDeque<Arc<Event>>,
    /// Events up to this revision are no longer in the history.
    compacted: u64,
    /// The revision of the last change; 0 before the first.
    last_change: u64,
    /// Says that something changed, to watchers in the order in which they wait: tokio's `watch` channel wakes them in any.
    changed: Arc<Notify>,
}

impl Table {
    fn new(revision: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            compacted: revision,
            last_change: 0,
            changed: Arc::default(),
        }
    }

    fn fork(&self) -> Self {
        Self { objects: self.objects.clone(), history: self.history.clone(), changed: Arc::default(), ..*self }
    }

    /// The objects of a namespace, or all, by namespace and name, from after a key on.
    pub(crate) fn range(
        &self,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        let start = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(namespace)) => Bound::Included((namespace.to_owned(), String::new())),
            (None, None) => Bound::Unbounded,
        };
        let namespace = namespace.map(str::to_owned);
        let objects = self.objects.range((start, Bound::Unbounded));
        objects.take_while(move |(key, _)| namespace.as_deref().is_none_or(|wanted| key.0 == wanted))
    }

    /// The events after a revision; `None` when some of them are no longer kept.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let first = self.history.partition_point(|event| event.revision <= revision);
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

    /// The revision that a fault on purpose makes a list show, while it is known.
    pub(crate) fn stale(&self, call: &Call) -> Option<u64> {
        let revision = call.stale?.revision;
        (revision >= self.compacted && revision < self.last_change).then_some(revision)
    }

    /// Notified after each change.
    pub(crate) fn changes(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    pub(crate) fn last_change(&self) -> u64 {
        self.last_change
    }
}

static EVENTS: LazyLock<GroupResource> = LazyLock::new(|| GroupResource::new("", "events"));

/// The table in which the objects of a resource are: the events of both groups are in one.
fn home(of: &GroupResource) -> &GroupResource {
    if of.resource == "events" && of.group == "events.k8s.io" { &EVENTS } else { of }
}

/// Everything that the server knows. One lock guards it: requests are handled one after the other.
pub(crate) struct State {
    pub(crate) revision: u64,
    /// In an order, in which the end of a namespace deletes: one seed gives one sequence.
    tables: BTreeMap<GroupResource, Table>,
    owners: Owners,
    pub(crate) registry: Arc<Registry>,
    pub(crate) chance: Chance,
    pub(crate) clock: Clock,
    pub(crate) requests: VecDeque<RequestRecord>,
    /// Tokens that were handed out, with namespace and name of the service account and when they expire.
    tokens: HashMap<String, (Key, jiff::Timestamp)>,
    /// Of services, so that each gets its own address.
    pub(crate) n_addresses: u32,
    /// Says that something changed anywhere.
    changed: watch::Sender<u64>,
    journal: Option<Journal>,
    pub(crate) audit: Option<std::fs::File>,
    pub(crate) observer: Option<Observer>,
    pub(crate) change_observer: Option<ChangeObserver>,
    /// Whose request is being handled; nobody's while the server's own controllers work.
    pub(crate) acting: String,
    pub(crate) transport: Transport,
}

impl State {
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        Self {
            revision: 1,
            tables: BTreeMap::new(),
            owners: Owners::default(),
            registry: Arc::new(Registry::built_in()),
            chance: Chance::new(seed),
            clock,
            requests: VecDeque::new(),
            tokens: HashMap::new(),
            n_addresses: 0,
            changed: watch::Sender::new(1),
            journal: None,
            audit: None,
            observer: None,
            change_observer: None,
            acting: String::new(),
            transport: Transport::default(),
        }
    }

    /// The same state, for another server: nobody watches it, and nobody is told of its changes.
    pub(crate) fn fork(&self, clock: Clock, seed: u64) -> Self {
        Self {
            revision: self.revision,
            tables: self.tables.iter().map(|(of, table)| (of.clone(), table.fork())).collect(),
            owners: self.owners.clone(),
            registry: self.registry.clone(),
            n_addresses: self.n_addresses,
            changed: watch::Sender::new(self.revision),
            chance: self.chance.fork(seed),
            transport: self.transport.clone(),
            ..Self::new(clock, seed)
        }
    }

    /// Keeps all objects in a folder from now on; those that are in it already replace the present ones.
    pub(crate) fn keep_in(&mut self, folder: &Path) -> io::Result<()> {
        let (mut journal, kept, revision) = Journal::open(folder)?;
        if kept.is_empty() {
            for (of, table) in &self.tables {
                for (key, object) in &table.objects {
                    journal.append(of, key, self.revision, Some(object))?;
                }
            }
        } else {
            self.tables.clear();
            self.owners = Owners::default();
            self.revision = revision;
            for ((of, key), object) in kept {
                self.owners.changed(&of, &key, None, Some(&object));
                let table = self.table(&of);
                table.objects.insert(key, Arc::new(object));
                table.last_change = revision;
            }
            self.rebuild_registry();
            self.n_addresses =
                u32::try_from(self.objects(&GroupResource::new("", "services"), None).count()).unwrap_or(0);
        }
        self.journal = Some(journal);
        Ok(())
    }

    fn rebuild_registry(&mut self) {
        let of = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
        let definitions = self.table(&of).objects.clone();
        self.registry = Arc::new(Registry::with_definitions(definitions.values().map(AsRef::as_ref)));
    }

    /// Writes to the journal. A disk that fails ends the keeping, loudly: what is in memory goes on.
    fn keep(&mut self, of: &GroupResource, key: &Key, object: Option<&Value>) {
        let n_objects = self.tables.values().map(|table| table.objects.len()).sum();
        let revision = self.revision;
        let Some(journal) = &mut self.journal else { return };
        let kept = journal.append(of, key, revision, object).and_then(|()| journal.tidy(n_objects));
        if let Err(error) = kept {
            tracing::error!(%error, "objects are no longer kept on disk");
            self.journal = None;
        }
    }

    pub(crate) fn table(&mut self, of: &GroupResource) -> &mut Table {
        let revision = self.revision;
        self.tables.entry(home(of).clone()).or_insert_with(|| Table::new(revision))
    }

    pub(crate) fn get(&self, of: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        self.tables.get(home(of))?.objects.get(key).cloned()
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
        let object = Arc::new(object);
        let before = self.table(of).objects.insert(key.clone(), object.clone());
        self.owners.changed(of, &key, before.as_deref(), Some(&object));
        self.keep(of, &key, Some(&object));
        self.log(of, Event { revision: self.revision, key, before, object: object.clone(), deleted: false });
        object
    }

    /// Removes an object. Its last state gets the revision of the removal.
    pub(crate) fn remove(&mut self, of: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        let of = home(of);
        let before = self.table(of).objects.remove(key)?;
        self.revision += 1;
        let mut last = Value::clone(&before);
        last["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let object = Arc::new(last);
        self.owners.changed(of, key, Some(&before), None);
        self.keep(of, key, None);
        let event = Event {
            revision: self.revision,
            key: key.clone(),
            before: Some(before),
            object: object.clone(),
            deleted: true,
        };
        self.log(of, event);
        Some(object)
    }

    fn log(&mut self, of: &GroupResource, event: Event) {
        let revision = event.revision;
        if let Some(observer) = &self.change_observer {
            observer(&Change::new(&self.acting, of, &event));
        }
        let table = self.table(of);
        table.history.push_back(Arc::new(event));
        if table.history.len() > HISTORY_LEN_MAX {
            table.compacted = table.history.pop_front().map_or(revision, |event| event.revision);
        }
        table.last_change = revision;
        table.changed.notify_waiters();
        if of.resource == "customresourcedefinitions" {
            self.rebuild_registry();
        }
        self.changed.send_replace(revision);
    }

    /// Forgets the history: watches and continued lists from before get 410.
    pub(crate) fn compact(&mut self) {
        let revision = self.revision;
        for table in self.tables.values_mut() {
            table.history.clear();
            table.compacted = revision;
        }
    }

    pub(crate) fn owners(&mut self) -> &mut Owners {
        &mut self.owners
    }

    /// The objects that name this uid as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(GroupResource, Key)> {
        self.owners.dependents(uid)
    }

    /// Where the object with this uid is.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(GroupResource, Key)> {
        self.owners.by_uid(uid)
    }
}

impl State {
    /// The objects of a resource, in a namespace or everywhere.
    pub(crate) fn objects(&self, of: &GroupResource, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Value>> {
        self.tables
            .get(home(of))
            .into_iter()
            .flat_map(move |table| table.range(namespace, None).map(|(_, object)| object))
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

/// Tokens that are kept; beyond it the expired ones go, and then no new one is valid.
const TOKENS_LEN_MAX: usize = 10_000;

impl State {
    pub(crate) fn add_token(&mut self, token: String, account: Key, expires: jiff::Timestamp) {
        if self.tokens.len() >= TOKENS_LEN_MAX {
            let now = self.clock.now();
            self.tokens.retain(|_, (_, expires)| *expires > now);
        }
        if self.tokens.len() < TOKENS_LEN_MAX {
            self.tokens.insert(token, (account, expires));
        }
    }

    /// Whose token this is, while it is valid and its account exists.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<User> {
        let (account, expires) = self.tokens.get(token)?;
        let exists = self.get(&GroupResource::new("", "serviceaccounts"), account).is_some();
        let (namespace, name) = account;
        (exists && *expires > self.clock.now()).then(|| User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".into(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".into(),
            ],
        })
    }
}
