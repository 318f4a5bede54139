//! Fault injection: failures between a client and the server, as a plan that repeats exactly.

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

pub use rule::{EventSummary, RequestSummary, Rule};
pub use service::{ConnectionResetError, Faulty};
pub(crate) use stream::{Gate, GateDecision, Opened, newest};

use crate::clock::Rng;
pub use crate::stale::StaleState;

/// The point at which a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// The request fails before the server sees it.
    Before,
    /// The server performs the request, and the client receives no response.
    After,
}

/// A fault that is injected into one request. A [`Rule`] selects the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestFault {
    /// The server responds with an error status.
    Reject {
        /// The HTTP status.
        code: u16,
        /// The value of the `Retry-After` header, in seconds.
        retry_after: Option<u32>,
        /// Fails before or after the request takes effect.
        moment: Moment,
    },
    /// The connection breaks.
    Reset(Moment),
    /// The response is truncated: the server performs the request, and the client can't read the body. Watches are
    /// not truncated; [`EventFault::Close`] closes them.
    Half,
    /// The request reaches the server after this delay.
    Delay(Duration),
    /// Like `Delay`, but the request takes effect even if the client has given up or its process has crashed. A request
    /// that is already in flight can't be called back.
    Late(Duration),
    /// The response reaches the client after this delay.
    DelayResponse(Duration),
    /// A server whose watch cache lags behind. A list or watch with `resourceVersion=0`, or with a minimum version that
    /// is not newer than this state, starts from this state as long as the history has it. Watch events arrive late.
    /// Other requests get the newest state.
    Stale {
        /// The state that is served.
        past: StaleState,
        /// The delay of watch events.
        lag: Duration,
    },
    /// A server that serves this state as the newest one, as long as the history has it, even to lists that request the
    /// newest state. Only a request with a newer minimum version gets the newest state. Watch events arrive late. A
    /// `get` returns the current object.
    Outdated {
        /// The state that is served.
        past: StaleState,
        /// The delay of watch events.
        lag: Duration,
    },
    /// The client's process crashes: no later request of it reaches the server.
    Crash(Moment),
    /// Like `Crash`, but this request is already in flight and reaches the server after this delay.
    CrashLate(Duration),
    /// A watch that allows bookmarks gets many of them for a time, instead of one a minute. Its version then advances
    /// as for a kind with steady changes. Other requests are answered as usual.
    Bookmarks {
        /// The time between two bookmarks.
        every: Duration,
        /// The time for which they are frequent, from the start of the watch.
        lasts: Duration,
    },
}

/// A fault that is injected at one event of a watch. A [`Rule`] selects the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventFault {
    /// The watch ends after the event.
    Close,
    /// The watch ends with 410 before the event, so that the client has to list.
    Expire,
    /// This event and all later ones arrive after this delay.
    Hold(Duration),
    /// The watch pauses at the event until the object changes again, at most for this time. It then delivers only the
    /// newest state of each object, as after a list. So the client misses the event if the object has changed, and gets
    /// it late otherwise.
    Skip(Duration),
    /// The event is delivered twice.
    Repeat,
}

/// A fault of a request or of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A fault of a request.
    Request(RequestFault),
    /// A fault of a watch event.
    Event(EventFault),
}

impl Fault {
    /// Returns the short name of the fault in [`Faults::counts`], such as `connection reset`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request(RequestFault::Reject { code: 409, .. }) => "conflict",
            Self::Request(RequestFault::Reject { code: 410, .. }) => "gone",
            Self::Request(RequestFault::Reject { code: 429, .. }) => "too many requests",
            Self::Request(RequestFault::Reject { .. }) => "rejected",
            Self::Request(RequestFault::Reset(_)) => "connection reset",
            Self::Request(RequestFault::Half) => "half response",
            Self::Request(RequestFault::Delay(_)) => "slow request",
            Self::Request(RequestFault::DelayResponse(_)) => "slow response",
            Self::Request(RequestFault::Late(_)) => "late request",
            Self::Request(RequestFault::Stale { .. }) => "stale read",
            Self::Request(RequestFault::Outdated { .. }) => "outdated list",
            Self::Request(RequestFault::Crash(_)) => "crash",
            Self::Request(RequestFault::CrashLate(_)) => "late request of a crash",
            Self::Request(RequestFault::Bookmarks { .. }) => "frequent bookmarks",
            Self::Event(EventFault::Close) => "watch closed",
            Self::Event(EventFault::Expire) => "watch expired",
            Self::Event(EventFault::Hold(_)) => "events held",
            Self::Event(EventFault::Skip(_)) => "state skipped",
            Self::Event(EventFault::Repeat) => "event repeated",
        }
    }
}

/// A request, an event or an injected fault, as [`Faults::observe`] reports it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Seen<'a> {
    /// A client sent a request.
    Request(&'a RequestSummary),
    /// A watch event is delivered.
    Event(&'a EventSummary),
    /// A fault was injected into a request.
    InRequest(&'a RequestSummary, Fault),
    /// A fault was injected at a watch event.
    AtEvent(&'a EventSummary, Fault),
}

/// The function of [`Faults::observe`].
type SeenBy = Arc<dyn Fn(Seen<'_>) + Send + Sync>;

/// A plan of faults for the clients created from it. Clones share the plan.
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
    /// Shared by all clones and connections.
    inner: Arc<Mutex<Inner>>,
}

/// The state of a plan.
struct Inner {
    /// The rules, in the order in which they were added: the first matching rule decides.
    rules: Vec<Rule>,
    /// The random sequence of rules that act with a probability.
    rng: Rng,
    counts: BTreeMap<&'static str, u64>,
    observer: Option<SeenBy>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Faults").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Faults {
    /// Creates a plan without rules. The seed is for rules that act at random.
    pub fn seeded(seed: u64) -> Self {
        let inner = Inner { rules: Vec::new(), rng: Rng::new(seed), counts: BTreeMap::new(), observer: None };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Adds a rule. If several rules apply to a request or event, the one added first is used.
    pub fn add(&self, rule: Rule) {
        self.inner.lock().rules.push(rule);
    }

    /// Removes all rules, so that later requests and events have no faults.
    pub fn clear(&self) {
        self.inner.lock().rules.clear();
    }

    /// Returns how often each fault was injected, by its name.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lock().counts.clone()
    }

    /// Sets the observer of all requests, events and injected faults; it replaces an earlier one. It must not use the server.
    pub fn observe(&self, observer: impl Fn(Seen<'_>) + Send + Sync + 'static) {
        self.inner.lock().observer = Some(Arc::new(observer));
    }

    /// Returns a connection for a client under this plan. It represents one process; pass it to
    /// [`ApiServer::faulty`](crate::ApiServer::faulty).
    pub fn connection(&self, client: &str) -> Connection {
        let shared = Shared { client: client.into(), ..Shared::default() };
        Connection { faults: self.clone(), server: "".into(), shared: Arc::new(shared) }
    }

    /// Returns the fault of a request, and reports both to the observer.
    fn decide_request(&self, request: &RequestSummary) -> Option<RequestFault> {
        let mut inner = self.inner.lock();
        inner.notify(Seen::Request(request));
        let Inner { rules, rng, .. } = &mut *inner;
        let fault = decide(rules, |rule| rule.request_fault(request, rng))?;
        inner.count_fault(Fault::Request(fault));
        inner.notify(Seen::InRequest(request, Fault::Request(fault)));
        Some(fault)
    }

    /// Returns the fault of a watch event.
    fn decide_event(&self, summary: &EventSummary) -> Option<EventFault> {
        let mut inner = self.inner.lock();
        let Inner { rules, rng, .. } = &mut *inner;
        let fault = decide(rules, |rule| rule.event_fault(summary, rng));
        if let Some(fault) = fault {
            inner.count_fault(Fault::Event(fault));
            inner.notify(Seen::AtEvent(summary, Fault::Event(fault)));
        }
        fault
    }

    /// Reports a delivered event to the observer.
    fn notify_delivered(&self, summary: &EventSummary) {
        self.inner.lock().notify(Seen::Event(summary));
    }
}

/// Returns the fault of the first rule that acts, and notifies that rule alone: the faults of the others are not
/// injected. The later rules are asked too, because each rule counts its matches even if an earlier rule decides.
fn decide<F>(rules: &mut [Rule], mut fault_of: impl FnMut(&mut Rule) -> Option<F>) -> Option<F> {
    let mut decided = None;
    for rule in rules {
        let fault = fault_of(rule);
        if decided.is_none() && fault.is_some() {
            rule.notify();
            decided = fault;
        }
    }
    decided
}

impl Inner {
    /// Counts an injected fault.
    fn count_fault(&mut self, fault: Fault) {
        *self.counts.entry(fault.name()).or_default() += 1;
    }

    /// Calls the observer.
    fn notify(&self, seen: Seen<'_>) {
        if let Some(observer) = &self.observer {
            observer(seen);
        }
    }
}

/// One client process under a plan of faults. Clones are the same process.
#[derive(Clone)]
pub struct Connection {
    /// The plan.
    faults: Faults,
    /// The name of the server; empty for the first one.
    server: Arc<str>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("client", &self.client())
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// The state of a process, shared by its connections.
#[derive(Default)]
struct Shared {
    client: String,
    /// `true` after a crash. Never becomes `false` again.
    dead: AtomicBool,
    /// Wakes all tasks that wait in [`Connection::wait_until_crashed`], which end the process or one of its connections. Requests and
    /// watches of the process are not woken: they remain pending.
    died: Notify,
}

impl Connection {
    /// Returns the number of injected faults of the plan, by name.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.faults.counts()
    }

    /// Returns the name of the client, which [`Faults::connection`] was given.
    pub fn client(&self) -> &str {
        &self.shared.client
    }

    /// Returns a connection of the same process to another server with this name. The name of the first server is
    /// empty.
    #[must_use]
    pub fn to(&self, server: &str) -> Self {
        Self { server: server.into(), ..self.clone() }
    }

    /// Waits until the process has crashed, by a fault such as [`RequestFault::Crash`] or by
    /// [`disconnect`](Self::disconnect).
    pub async fn wait_until_crashed(&self) {
        // Created before the check, so that a crash between both also wakes it.
        let died = self.shared.died.notified();
        if !self.is_dead() {
            died.await;
        }
    }

    /// Cuts the process off: its requests no longer reach the server, and it receives no more responses or events.
    pub fn disconnect(&self) {
        self.shared.dead.store(true, Ordering::Release);
        self.shared.died.notify_waiters();
    }

    /// Returns `true` after a crash.
    fn is_dead(&self) -> bool {
        self.shared.dead.load(Ordering::Acquire)
    }
}
