//! Rules of a fault plan: decide which request or watch event gets a fault.
//!
//! A rule has two parts: the function that selects, and limits on how often it acts. Functions see
//! summaries, not requests, so they cannot depend on bodies. A function may count its calls or compare simulated time.

use http::Request;

use super::{Connection, EventFault, Fault, RequestFault};
use crate::{
    clock::Rng,
    request::{Params, decode, parse_path, requested_verb},
};

/// A request, as a rule's function sees it.
///
/// It is made from the method, the path and the query, before the server sees the request. The resource need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestSummary {
    /// The name of the client.
    pub client: String,
    /// The name of the server if the client [has several](Connection::to); otherwise empty.
    pub server: String,
    /// The RBAC verb: `get`, `list`, …
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource with its subresource, such as `pods/status`.
    pub resource: String,
    /// The namespace; empty for cluster-scoped resources and for requests across all namespaces.
    pub namespace: String,
    /// The name; empty if the request is about several objects or creates one.
    pub name: String,
    /// `true` for a list or watch that a cache may answer: with `resourceVersion=0`, or with a minimum version.
    pub may_be_cached: bool,
}

impl RequestSummary {
    /// Returns `true` for every verb but `get`, `list` and `watch`. Verbs on subresources count too: `create` of
    /// `pods/exec` is a write.
    pub fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb)
    }

    /// Summarizes a request; `None` if it is not about a resource. Discovery, `/metrics` and the like have no summary,
    /// and never get a fault.
    pub(super) fn new<B>(connection: &Connection, request: &Request<B>) -> Option<Self> {
        let path = decode(request.uri().path());
        let resource_path = parse_path(&path)?;
        let params = Params::parse(request.uri().query().unwrap_or_default());
        let verb = requested_verb(request.method(), &resource_path, &params)?.name();
        let begins = params.flag("sendInitialEvents") || matches!(params.text("resourceVersion"), "" | "0");
        let lists = verb == "list" || (verb == "watch" && begins);
        let slash = if resource_path.subresource.is_empty() { "" } else { "/" };
        Some(Self {
            client: connection.client().into(),
            server: (*connection.server).into(),
            verb,
            group: resource_path.group.into(),
            resource: format!("{}{slash}{}", resource_path.resource, resource_path.subresource),
            namespace: resource_path.namespace.into(),
            name: resource_path.name.into(),
            may_be_cached: lists && params.oldest().is_some(),
        })
    }
}

/// A watch event, as a rule's function sees it.
///
/// Events are selected when they are about to be sent, after the selectors of the watch. Bookmarks are never selected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventSummary {
    /// The name of the client.
    pub client: String,
    /// The name of the server if the client [has several](Connection::to); otherwise empty.
    pub server: String,
    /// The type of the event: `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, such as `pods`.
    pub resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The revision of the change.
    pub revision: u64,
}

/// Selects requests. It is called for each request in the order in which they arrive.
type OfRequest = Box<dyn Fn(&RequestSummary) -> bool + Send>;
/// Selects watch events.
type OfEvent = Box<dyn Fn(&EventSummary) -> bool + Send>;

/// The requests or events that a rule selects, with its fault.
enum RuleTarget {
    /// Selects requests, which get this fault.
    Request(OfRequest, RequestFault),
    /// Selects watch events, which get this fault.
    Event(OfEvent, EventFault),
}

/// A fault, and the requests or events that get it. See [`Faults::add`](super::Faults::add).
///
/// The default acts on each match, always. All limits together decide: `nth(2).per_mille(500)` acts
/// at most once, with even chances.
pub struct Rule {
    /// The function that selects, and the fault.
    picks: RuleTarget,
    /// Acts only on this match, counted from one.
    nth: Option<u64>,
    /// The probability in thousandths.
    per_mille: u64,
    /// The number of injections left.
    times: u64,
    /// The number of matches so far.
    n_picked: u64,
    /// Called after each injection.
    then: Option<Box<dyn FnMut() + Send>>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rule")
            .field("nth", &self.nth)
            .field("per_mille", &self.per_mille)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

impl Rule {
    /// Injects the fault into all requests for which `picks` returns `true`.
    pub fn request(fault: RequestFault, picks: impl Fn(&RequestSummary) -> bool + Send + 'static) -> Self {
        Self::new(RuleTarget::Request(Box::new(picks), fault))
    }

    /// Injects the fault at all events for which `picks` returns `true`.
    pub fn event(fault: EventFault, picks: impl Fn(&EventSummary) -> bool + Send + 'static) -> Self {
        Self::new(RuleTarget::Event(Box::new(picks), fault))
    }

    /// Creates a rule that acts on each match.
    fn new(picks: RuleTarget) -> Self {
        Self { picks, nth: None, per_mille: 1_000, times: u64::MAX, n_picked: 0, then: None }
    }

    /// Limits the rule to the nth match, counted from one. A match counts even if another limit keeps the rule from
    /// acting.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self
    }

    /// Injects the fault at random, with this probability in thousandths. 0 is never, 1,000 is always. The random
    /// numbers come from the seed of the plan, so the same requests get the same faults.
    #[must_use]
    pub fn per_mille(mut self, per_mille: u16) -> Self {
        self.per_mille = per_mille.into();
        self
    }

    /// Injects the fault at most this many times. A match on which the rule acts counts even if an earlier rule of the
    /// plan decides about the fault.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Calls a function each time the fault is injected. It must not use the server or the plan. It is not called for a
    /// match whose fault an earlier rule of the plan decides.
    #[must_use]
    pub fn then(mut self, notify: impl FnMut() + Send + 'static) -> Self {
        self.then = Some(Box::new(notify));
        self
    }

    /// Returns the fault that the rule injects.
    pub fn fault(&self) -> Fault {
        match self.picks {
            RuleTarget::Request(_, fault) => Fault::Request(fault),
            RuleTarget::Event(_, fault) => Fault::Event(fault),
        }
    }

    /// Returns the fault of a request, if the rule acts on it.
    pub(super) fn request_fault(&mut self, request: &RequestSummary, rng: &mut Rng) -> Option<RequestFault> {
        let RuleTarget::Request(picks, fault) = &self.picks else { return None };
        let (fits, fault) = (picks(request), *fault);
        (fits && self.should_inject(rng)).then_some(fault)
    }

    /// Returns the fault of an event, if the rule acts on it.
    pub(super) fn event_fault(&mut self, event: &EventSummary, rng: &mut Rng) -> Option<EventFault> {
        let RuleTarget::Event(picks, fault) = &self.picks else { return None };
        let (fits, fault) = (picks(event), *fault);
        (fits && self.should_inject(rng)).then_some(fault)
    }

    /// Counts a match. Returns `true` if the rule acts on it. A random number is drawn only if the other limits allow
    /// the injection and the probability is below 1,000. So rules without a probability do not shift the sequence of
    /// others.
    fn should_inject(&mut self, rng: &mut Rng) -> bool {
        self.n_picked += 1;
        let acts = self.times > 0
            && self.nth.is_none_or(|nth| nth == self.n_picked)
            && (self.per_mille >= 1_000 || rng.next() % 1_000 < self.per_mille);
        if acts {
            self.times -= 1;
        }
        acts
    }

    /// Calls the function of [`then`](Self::then), because the fault is injected now.
    pub(super) fn notify(&mut self) {
        if let Some(notify) = &mut self.then {
            notify();
        }
    }
}
