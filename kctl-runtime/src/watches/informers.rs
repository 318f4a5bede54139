//! The informers of one process: one list and one watch for each identity, running as long as somebody holds it.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    panic::AssertUnwindSafe,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::FutureExt;
use kube::Client;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, task::JoinSet};

use super::WatchError;
use crate::{
    handler::mailbox::Mailbox,
    object::Keep,
    source::{Identity, Places, Source},
    store::{Delta, Scope, SharedStore},
};

/// Maximum number of open informers in a process; further ones fail.
pub const INFORMERS_MAX: usize = 2000;

/// Shared by the manager and all handles. Clones are the same.
#[derive(Clone)]
pub(crate) struct Informers {
    table: Arc<Mutex<Table>>,
    /// Why a part of an informer ended, which none does by itself.
    failed: watch::Sender<Option<String>>,
    closed: watch::Sender<bool>,
    mailboxes: Arc<Mutex<Vec<Weak<Mailbox>>>>,
    /// Initial states are wanted as streams.
    streams: Arc<AtomicBool>,
    /// Namespaces are changed by one at a time.
    changing: Arc<tokio::sync::Mutex<()>>,
    places: Places,
}

#[derive(Default)]
struct Table {
    informers: BTreeMap<Id, Informer>,
    /// Number of the informer that was opened last: one that comes back is another one.
    n_opened: u64,
    /// The manager runs. Before that nothing is listed: controllers that are added later have checks and indexes of their own.
    begun: bool,
}

/// What is shared. Informers of controllers that are limited to namespaces stand apart: the namespaces can be changed, and
/// whoever else asked for them wants what it asked for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    identity: Identity,
    changeable: bool,
    /// Opened at run time with whole objects, beside one of controllers that runs and keeps less.
    apart: bool,
}

struct Informer {
    number: u64,
    source: Arc<Source>,
    n_users: usize,
    /// Empty until the manager runs; they end when this is dropped.
    tasks: JoinSet<()>,
}

/// One use of an informer; the last one that is dropped ends it.
pub(crate) struct Held {
    informers: Informers,
    id: Id,
    number: u64,
    source: Arc<Source>,
}

/// Ends all informers when it is dropped: nothing outlives the manager.
pub(crate) struct Closing(pub(crate) Informers);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closed.send_replace(true);
        let ended = std::mem::take(&mut self.0.table.lock().informers);
        drop(ended);
    }
}

impl Informers {
    pub(crate) fn new() -> Self {
        Self {
            table: Arc::default(),
            failed: watch::Sender::new(None),
            closed: watch::Sender::new(false),
            mailboxes: Arc::default(),
            streams: Arc::default(),
            changing: Arc::default(),
            places: Places::default(),
        }
    }

    /// The manager runs: from now on everything that is open lists and watches.
    pub(crate) fn begin(&self) {
        let mut table = self.table.lock();
        table.begun = true;
        table.start(self);
    }

    /// The informer of an identity: the one that is open, or a new one.
    pub(crate) fn hold(&self, identity: Identity, client: &Client) -> Result<Held, WatchError> {
        let table = self.table.lock();
        if *self.closed.borrow() {
            return Err(WatchError::Closed);
        }
        let mut id = Id { identity, changeable: false, apart: false };
        if let Some(slim) = table.informers.get(&id).filter(|informer| !informer.source.is_whole()) {
            if table.begun {
                id.apart = true;
            } else {
                slim.source.keep_also(&Keep::whole());
            }
        }
        if table.informers.len() >= INFORMERS_MAX && !table.informers.contains_key(&id) {
            return Err(WatchError::TooMany);
        }
        Ok(self.hold_in(table, id, &Keep::whole(), client))
    }

    /// The same for what a controller declares: the number of declarations bounds it. Of each object it keeps what somebody
    /// reads.
    pub(crate) fn hold_own(&self, identity: Identity, keep: &Keep, client: &Client) -> Held {
        let changeable = !identity.namespaces.is_empty();
        let held = self.hold_in(self.table.lock(), Id { identity, changeable, apart: false }, keep, client);
        // It may be open already, for somebody who reads less.
        held.source.keep_also(keep);
        held
    }

    fn hold_in(&self, mut table: MutexGuard<'_, Table>, id: Id, keep: &Keep, client: &Client) -> Held {
        let number = table.n_opened + 1;
        let informer = table.informers.entry(id.clone()).or_insert_with_key(|Id { identity, .. }| {
            let store = Arc::new(SharedStore::of_namespaces(&identity.namespaces));
            let source = Source::new(client.clone(), identity.clone(), store).keeping(keep.clone());
            let source = Arc::new(source.sharing(self.places.clone()));
            if self.streams.load(Ordering::Relaxed) {
                source.stream_state();
            }
            Informer { number, source, n_users: 0, tasks: JoinSet::new() }
        });
        informer.n_users += 1;
        let (number, source) = (informer.number, informer.source.clone());
        table.n_opened = table.n_opened.max(number);
        if table.begun {
            table.start(self);
        }
        Held { informers: self.clone(), id, number, source }
    }

    /// Has initial states streamed from now on, also those of informers that are open and have not begun.
    pub(crate) fn stream_states(&self) {
        self.streams.store(true, Ordering::Relaxed);
        self.open().iter().for_each(|(source, _)| source.stream_state());
    }

    /// What is open, and how many use each.
    pub(crate) fn open(&self) -> Vec<(Arc<Source>, usize)> {
        let table = self.table.lock();
        table.informers.values().map(|informer| (informer.source.clone(), informer.n_users)).collect()
    }

    pub(super) fn note(&self, mailbox: &Arc<Mailbox>) {
        let mut mailboxes = self.mailboxes.lock();
        mailboxes.retain(|mailbox| mailbox.strong_count() > 0);
        mailboxes.push(Arc::downgrade(mailbox));
    }

    /// Changes that wait for the user of a watch who is most behind.
    pub(crate) fn most_waiting(&self) -> usize {
        self.mailboxes.lock().iter().filter_map(Weak::upgrade).map(|mailbox| mailbox.len()).max().unwrap_or(0)
    }

    /// Those whose namespaces can be changed, and whether each runs.
    fn changeable(&self) -> Result<Vec<(Arc<Source>, bool)>, WatchError> {
        let table = self.table.lock();
        let changeable = table.informers.iter().filter(|(id, _)| id.changeable);
        let found: Vec<_> =
            changeable.map(|(_, informer)| (informer.source.clone(), !informer.tasks.is_empty())).collect();
        if found.is_empty() { Err(WatchError::NotLimited) } else { Ok(found) }
    }

    pub(super) fn namespaces(&self) -> Vec<String> {
        let sources = self.changeable().unwrap_or_default();
        let namespaces: BTreeSet<String> = sources.iter().flat_map(|(source, _)| source.namespaces()).collect();
        namespaces.into_iter().collect()
    }

    pub(super) async fn add_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        let _one_at_a_time = self.changing.lock().await;
        let (sources, scope): (_, Scope) = (self.changeable()?, Some(namespace.into()));
        let added: Vec<_> = sources.into_iter().filter(|(source, _)| !source.scopes().has(&scope)).collect();
        // No cache lists it before all of them know that they are not complete: a reconcile would see half of it.
        tell(&added, &Delta::Open(scope.clone())).await;
        for (source, _) in added {
            source.scopes().add(scope.clone());
        }
        Ok(())
    }

    pub(super) async fn remove_namespace(&self, namespace: &str) -> Result<(), WatchError> {
        let _one_at_a_time = self.changing.lock().await;
        let (sources, scope): (_, Scope) = (self.changeable()?, Some(namespace.into()));
        let removed: Vec<_> = sources.into_iter().filter(|(source, _)| source.scopes().has(&scope)).collect();
        // From now on nothing is written there: a reconcile that runs sees objects go that are still there.
        tell(&removed, &Delta::Open(scope.clone())).await;
        for (source, runs) in removed {
            source.scopes().remove(&scope);
            if !runs {
                source.store().push(Delta::Close(scope.clone())).await;
            }
        }
        Ok(())
    }

    /// Returns why a part of an informer ended, once one has.
    pub(crate) async fn failed(&self) -> String {
        let mut failed = self.failed.subscribe();
        let text = failed.wait_for(Option::is_some).await;
        text.ok().and_then(|text| text.clone()).unwrap_or_default()
    }

    /// Returns once the manager has ended.
    pub(crate) async fn closed(&self) {
        let mut closed = self.closed.subscribe();
        let _gone = closed.wait_for(|closed| *closed).await;
    }

    async fn supervise(self, task: impl Future<Output = ()>) {
        let end = AssertUnwindSafe(task).catch_unwind().await;
        let text = match end {
            Ok(()) => "a cache".to_owned(),
            Err(panic) => format!("a cache panicked: {}", crate::worker::panic_text(&*panic)),
        };
        self.failed.send_replace(Some(text));
    }
}

impl Table {
    /// Starts what does not run yet.
    fn start(&mut self, informers: &Informers) {
        for informer in self.informers.values_mut().filter(|informer| informer.tasks.is_empty()) {
            let source = informer.source.clone();
            informer.tasks.spawn(informers.clone().supervise(source.store().clone().write()));
            informer.tasks.spawn(informers.clone().supervise(async move { source.run().await }));
        }
    }
}

/// Tells stores; returns when those that run have taken it in.
async fn tell(sources: &[(Arc<Source>, bool)], delta: &Delta) {
    for (source, runs) in sources {
        if *runs {
            source.store().acknowledged(delta.clone()).await;
        } else {
            source.store().push(delta.clone()).await;
        }
    }
}

impl Held {
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn informers(&self) -> &Informers {
        &self.informers
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut table = self.informers.table.lock();
        let Entry::Occupied(mut informer) = table.informers.entry(self.id.clone()) else { return };
        if informer.get().number != self.number {
            return;
        }
        informer.get_mut().n_users -= 1;
        let ended = (informer.get().n_users == 0).then(|| informer.remove());
        // What it holds may hold other uses, which ask for the table.
        drop(table);
        drop(ended);
    }
}
