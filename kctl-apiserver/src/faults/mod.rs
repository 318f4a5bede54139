//! Faults on purpose: what goes wrong between a client and the server, as a plan that can be repeated exactly.

mod rule;
mod service;
mod stream;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub use rule::{Asked, Rule, Told};
pub(crate) use service::Stale;
pub use service::{Faulty, Reset};
pub(crate) use stream::{Gate, Opened, Passage, newest};

use crate::clock::Chance;

/// Whether a request takes effect before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The server never sees it.
    Before,
    /// The server has done it, and the client is not told.
    After,
}

/// A state that is not the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// That at a revision.
    Revision(u64),
    /// That of so many changes ago, of those of the resource that is asked for; the oldest that is known, where fewer are.
    Changes(usize),
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It is refused with this code; `Retry-After` in seconds.
    Refuse {
        /// The HTTP status.
        code: u16,
        /// Seconds of the `Retry-After` header.
        retry_after: Option<u32>,
        /// Before or after it took effect.
        moment: Moment,
    },
    /// The connection breaks.
    Reset(Moment),
    /// The answer breaks off in its middle: the server has done it, and the client cannot read what it is told. Watches are
    /// closed by [`EventFault::Close`] instead.
    Half,
    /// It reaches the server so much later.
    Delay(Duration),
    /// The same, whether the client still waits for the answer then or not, and also if its process has ended: what is on its
    /// way cannot be called back.
    Late(Duration),
    /// Its answer reaches the client so much later.
    DelayAnswer(Duration),
    /// A server whose cache is behind: a list or a watch that asks for what is at hand (`resourceVersion=0`) begins with this
    /// state, while it is known, and events of watches come later. Who asks for the newest state gets it.
    Stale {
        /// The state.
        past: Past,
        /// How long watches stay behind.
        lag: Duration,
    },
    /// A server that takes this state for the newest one, while it is known: also lists that ask for the
    /// newest state get this one, and events of watches come later. What is asked for by its name is true.
    Outdated {
        /// The state.
        past: Past,
        /// How long watches stay behind.
        lag: Duration,
    },
    /// The client's process ends: nothing that it sends from now on reaches the server.
    Crash(Moment),
    /// The same, but this request is on its way already, and reaches the server so much later.
    CrashLate(Duration),
}

/// What happens at an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFault {
    /// The watch ends after it.
    Close,
    /// The watch ends with 410 before it: the client has to list.
    Expire,
    /// It and all that follow come so much later.
    Hold(Duration),
    /// It is not seen: the watch stands still until the object changes again, at most so long, and goes on with the newest
    /// states alone, as a watch does that follows a list.
    Skip(Duration),
    /// It comes twice.
    Repeat,
}

/// One of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// To a request.
    Request(RequestFault),
    /// At an event.
    Event(EventFault),
}

impl Fault {
    /// A short name, under which it is counted.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request(RequestFault::Refuse { code: 409, .. }) => "conflict",
            Self::Request(RequestFault::Refuse { code: 410, .. }) => "gone",
            Self::Request(RequestFault::Refuse { code: 429, .. }) => "too many requests",
            Self::Request(RequestFault::Refuse { .. }) => "refused",
            Self::Request(RequestFault::Reset(_)) => "connection reset",
            Self::Request(RequestFault::Half) => "half answer",
            Self::Request(RequestFault::Delay(_)) => "slow request",
            Self::Request(RequestFault::DelayAnswer(_)) => "slow answer",
            Self::Request(RequestFault::Late(_)) => "late request",
            Self::Request(RequestFault::Stale { .. }) => "stale read",
            Self::Request(RequestFault::Outdated { .. }) => "outdated list",
            Self::Request(RequestFault::Crash(_)) => "crash",
            Self::Request(RequestFault::CrashLate(_)) => "late request of a crash",
            Self::Event(EventFault::Close) => "watch closed",
            Self::Event(EventFault::Expire) => "watch expired",
            Self::Event(EventFault::Hold(_)) => "events held",
            Self::Event(EventFault::Skip(_)) => "state skipped",
            Self::Event(EventFault::Repeat) => "event repeated",
        }
    }
}

/// What an observer is told.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A request was sent.
    Request(&'a Asked),
    /// An event is delivered.
    Event(&'a Told),
    /// A fault was injected into a request.
    InRequest(&'a Asked, Fault),
    /// A fault was injected at an event.
    AtEvent(&'a Told, Fault),
}

type SeenBy = Arc<dyn Fn(Seen<'_>) + Send + Sync>;

/// A plan of faults for the clients that are made from it. Clones share it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use k8s_openapi::api::core::v1::Namespace;
/// use kctl_apiserver::{ApiServer, User, faults::{Faults, Moment, RequestFault, Rule}};
///
/// let (server, faults) = (ApiServer::new(), Faults::seeded(7));
/// faults.add(Rule::request(RequestFault::Reset(Moment::Before), |asked| asked.verb == "list").nth(2));
/// let client = kube::Client::new(server.faulty(User::admin(), &faults.connection("app")), "default");
/// let namespaces = kube::Api::<Namespace>::all(client);
/// assert!(namespaces.list(&Default::default()).await.is_ok());
/// assert!(namespaces.list(&Default::default()).await.is_err());
/// assert_eq!(faults.counts()["connection reset"], 1);
/// # });
/// ```
#[derive(Clone)]
pub struct Faults {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    rules: Vec<Rule>,
    chance: Chance,
    counts: BTreeMap<&'static str, u64>,
    observer: Option<SeenBy>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Faults").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Faults {
    /// A plan without faults; the seed is that of rules that act by chance.
    pub fn seeded(seed: u64) -> Self {
        let inner = Inner { rules: Vec::new(), chance: Chance::new(seed), counts: BTreeMap::new(), observer: None };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Adds a rule. Of several that apply, the first one counts.
    pub fn add(&self, rule: Rule) {
        self.inner.lock().rules.push(rule);
    }

    /// Ends all faults.
    pub fn clear(&self) {
        self.inner.lock().rules.clear();
    }

    /// How often each fault was injected, by its name.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lock().counts.clone()
    }

    /// Calls this for each request, event and fault. It must not use the server.
    pub fn observe(&self, observer: impl Fn(Seen<'_>) + Send + Sync + 'static) {
        self.inner.lock().observer = Some(Arc::new(observer));
    }

    /// A client under this plan: one process, for [`ApiServer::faulty`](crate::ApiServer::faulty).
    pub fn connection(&self, client: &str) -> Connection {
        let shared = Shared { client: client.into(), ..Shared::default() };
        Connection { faults: self.clone(), server: "".into(), shared: Arc::new(shared) }
    }

    fn decide_request(&self, asked: &Asked) -> Option<RequestFault> {
        let mut inner = self.inner.lock();
        inner.tell(Seen::Request(asked));
        let Inner { rules, chance, .. } = &mut *inner;
        // Each rule counts, also where another one was first.
        let faults: Vec<_> = rules.iter_mut().filter_map(|rule| rule.of_request(asked, chance)).collect();
        let fault = *faults.first()?;
        inner.injected(Fault::Request(fault));
        inner.tell(Seen::InRequest(asked, Fault::Request(fault)));
        Some(fault)
    }

    fn decide_event(&self, told: &Told) -> Option<EventFault> {
        let mut inner = self.inner.lock();
        let Inner { rules, chance, .. } = &mut *inner;
        let faults: Vec<_> = rules.iter_mut().filter_map(|rule| rule.of_event(told, chance)).collect();
        let fault = faults.first().copied();
        if let Some(fault) = fault {
            inner.injected(Fault::Event(fault));
            inner.tell(Seen::AtEvent(told, Fault::Event(fault)));
        }
        fault
    }

    fn delivered(&self, told: &Told) {
        self.inner.lock().tell(Seen::Event(told));
    }
}

impl Inner {
    fn injected(&mut self, fault: Fault) {
        *self.counts.entry(fault.name()).or_default() += 1;
    }

    fn tell(&self, seen: Seen<'_>) {
        if let Some(observer) = &self.observer {
            observer(seen);
        }
    }
}

/// One process that talks to the server. Clones are the same process.
#[derive(Clone)]
pub struct Connection {
    faults: Faults,
    server: Arc<str>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    client: String,
    dead: AtomicBool,
    died: Notify,
}

impl Connection {
    /// How often each fault of the plan was injected.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.faults.counts()
    }

    /// The name of the client.
    pub fn client(&self) -> &str {
        &self.shared.client
    }

    /// The way of the same process to another server, which is called so. The name of the first one is empty.
    #[must_use]
    pub fn to(&self, server: &str) -> Self {
        Self { server: server.into(), ..self.clone() }
    }

    /// Returns once the process has crashed.
    pub async fn crashed(&self) {
        while !self.is_dead() {
            self.shared.died.notified().await;
        }
    }

    /// Nothing that the process sends from now on reaches the server, and it is told nothing.
    pub fn cut(&self) {
        self.shared.dead.store(true, Ordering::Release);
        self.shared.died.notify_one();
    }

    fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::Acquire)
    }
}
