//! The list-and-watch protocol as a pure state machine: it gets the responses of the API server and names the next
//! request.
//!
//! The state comes as one list. That costs an API server half the CPU of a stream or of pages (measured,
//! `benches/README.md`). A server that does not return it whole is listed in pages. On request the state comes as a
//! stream before the watch, which costs the server less memory. After that the protocol follows client-go
//! (`tools/cache/reflector.go`). It watches from the version of the list, continues from the last version when a watch
//! ends, and lists again if that version has expired.
//!
//! It differs from client-go in the first list, which is of the newest state (`resourceVersion` unset, not `0`). A
//! program that restarts after a crash must see its own last writes.
//!
//! # States
//!
//! [`Request`] is the state: each one says which request is under way and what its response means.
//!
//! ```text
//!           list, whole or paged             410, 404, other errors
//!   Whole ───────────────────────> Watch ──────────────────────────> Whole
//!     │ rejected as too large        │  ^  closed: same version
//!     v                              │  │
//!   List (pages of 500)              v  │ version not behind
//!                                  Probe ── version behind ────────> Whole
//!   Stream ── initial-events-end ──> Watch
//! ```
//!
//! # Invariants
//!
//! - A [`Delta::Replace`] is a complete state of one version. A list that breaks off, or pages of two lists, never
//!   become one.
//! - The version of a watch never falls, except by [`Delta::Restore`]. That needs two lists in a row that are older
//!   than a known version, because one alone may come from a server that lags behind.
//! - A wait is always bounded, and a request always follows: no sequence of responses stops the reflector.
//!
//! `reflector_model.rs` checks them with random sequences of responses against a model of an API server.

use std::{sync::Arc, time::Duration};

use super::Presence;
use crate::{
    object::Stored,
    store::{Delta, Scope},
    transport::ApiError,
};

/// First wait after a failure (client-go, `reflector.go`, `NewReflectorWithOptions`).
const BACKOFF_MIN: Duration = Duration::from_millis(800);
/// Longest wait after a failure, without jitter. It is reached with the seventh failure in a row.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// A watch that lasted this long was healthy: the next failure has the first wait again (client-go, `reflector.go`,
/// `NewReflectorWithOptions`: the backoff resets after two minutes).
const HEALTHY_AFTER: Duration = Duration::from_secs(120);

/// First and longest wait for a kind that the server does not serve. After its CRD was installed, the kind is found
/// within that time.
const ABSENT_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// Number of 404s in a row, about twelve seconds, after which the CRD counts as deleted, and with it all objects. A
/// starting API server also answers 404 before it has read its CRDs.
const ABSENT_ANSWERS: u32 = 5;
/// Number of 404s in a row, a second apart, after which an optional kind counts as not installed if it was never
/// listed. The number is small because users lose no objects that they knew. A starting kube-apiserver 1.36 does not
/// answer 404 for a kind that exists (429 and 503, in three restarts).
const ABSENT_ANSWERS_AT_START: u32 = 2;
/// Number of lists of the newest state in a row that are older than a known version, after which the API server's state
/// counts as restored from a backup.
const BEHIND_ANSWERS: u32 = 2;

/// Number of truncated lists in a row after which lists are paged: the server, or a proxy, does not send so much at
/// once.
const BROKEN_LISTS: u32 = 2;

/// A server that streams its state never pauses for this long within it.
pub(super) const STREAM_SILENCE_MAX: Duration = Duration::from_secs(10);

/// The next request to the API server.
///
/// The driver turns it into a URL. Selectors and namespace are the same for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A watch that begins with the complete, newest state (`sendInitialEvents=true`).
    Stream,
    /// The complete state in one list.
    Whole {
        /// The oldest acceptable version (`resourceVersionMatch=NotOlderThan`); `None` requests the newest state.
        version: Option<String>,
    },
    /// One page of a list.
    List {
        /// At least this version; `None` is the newest state.
        version: Option<String>,
        /// The `continue` token; `None` for the first page.
        token: Option<String>,
    },
    /// A watch.
    Watch {
        /// Events after this version.
        version: String,
    },
    /// A list with `limit=1` of the newest state. Its version shows if a server that did not answer has gone back to an
    /// earlier state.
    Probe,
}

/// A response or an event of the API server.
///
/// A driver reports every end of a request with one of `Page`, `Failed`, `Cut`, `Broken` or `Closed`. The other inputs
/// are events of a watch that continues.
#[derive(Debug)]
pub enum Input {
    /// A list, or one page of it.
    Page {
        /// The objects of this page.
        objects: Vec<Arc<Stored>>,
        /// The version of the whole list.
        version: String,
        /// Set when there are more pages.
        token: Option<String>,
    },
    /// A watch event with an object that was added or modified.
    Applied(Arc<Stored>),
    /// A watch event with the last state of a deleted object.
    Deleted(Arc<Stored>),
    /// A bookmark: everything up to this version was sent.
    Bookmark(String),
    /// The bookmark that ends the initial state of a stream.
    Synced(String),
    /// The request failed before its response began.
    Failed(ApiError),
    /// The response of a list began and broke off.
    Cut(ApiError),
    /// The watch sent an `ERROR` event, or a line that cannot be read.
    Broken {
        /// The error.
        error: ApiError,
        /// The time for which it was open.
        lasted: Duration,
    },
    /// The watch ended without an error, as watches do.
    Closed {
        /// Time for which it was open.
        lasted: Duration,
        /// Is `true` if it sent at least one event.
        any: bool,
    },
}

/// An action that the caller performs before the next request.
///
/// Perform all of them in the order of the list. At most one of them is [`Wait`](Self::Wait) or [`Next`](Self::Next),
/// and it is the last.
#[derive(Debug)]
pub enum Effect {
    /// Send the delta to the store.
    Emit(Delta),
    /// End the present request and wait, then send [`Reflector::request`]. The driver adds jitter.
    Wait(Duration),
    /// End the present request, and send the next one at once.
    Next,
}

/// The state of the protocol between two answers: call [`request`](Self::request), perform it, and pass each response to
/// [`handle`](Self::handle).
///
/// [`Source`](super::Source) is its driver for a real API server. The [module](super) has an example.
#[derive(Debug)]
pub struct Reflector {
    /// The namespace that its deltas name.
    scope: Scope,
    /// Decides if a missing kind leaves the store complete.
    presence: Presence,
    request: Request,
    /// The objects of a list or stream that is not complete yet. Invariant: empty for all other requests.
    objects: Vec<Arc<Stored>>,
    /// The last version that was seen.
    last: Option<String>,
    /// The state is requested as a stream, and no server has rejected that. Invariant: then nothing is listed.
    streams: bool,
    /// The server does not return the whole state. Invariant: then lists are paged.
    pages: bool,
    /// Number of whole lists in a row that broke off. Invariant: at most [`BROKEN_LISTS`].
    broken: u32,
    /// Number of failures since the last healthy watch. The wait grows with it.
    failures: u32,
    /// Number of 404s in a row.
    absent: u32,
    /// Number of lists in a row that are older than a known version. Invariant: below [`BEHIND_ANSWERS`] between inputs.
    behind: u32,
    /// Number of watches in a row that expired before their first event.
    expired: u32,
    /// Is `true` if the present list is of the newest state.
    newest: bool,
}

impl Default for Reflector {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Reflector {
    /// Creates a reflector of one namespace, or of all with `None`. It starts with a list.
    ///
    /// The kind is [`Presence::Required`] until [`with`](Self::with) changes that.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            presence: Presence::Required,
            request: Request::Whole { version: None },
            objects: Vec::new(),
            last: None,
            streams: false,
            pages: false,
            broken: 0,
            failures: 0,
            absent: 0,
            behind: 0,
            expired: 0,
            newest: true,
        }
    }

    /// Creates a reflector that requests the state as a stream, and falls back to lists if the server rejects that.
    ///
    /// ```
    /// use kctl_runtime::source::{Input, Reflector, Request};
    ///
    /// let mut reflector = Reflector::streaming(None);
    /// assert_eq!(reflector.request(), &Request::Stream);
    /// reflector.handle(Input::Synced("7".into()));
    /// assert_eq!(reflector.request(), &Request::Watch { version: "7".into() });
    /// ```
    #[must_use]
    pub fn streaming(scope: Scope) -> Self {
        let mut reflector = Self { streams: true, ..Self::new(scope) };
        reflector.relist(None);
        reflector
    }

    /// Returns the namespace that it reflects, or `None` for all.
    ///
    /// ```
    /// use kctl_runtime::source::Reflector;
    /// assert_eq!(Reflector::new(Some("default".into())).scope().as_deref(), Some("default"));
    /// assert_eq!(Reflector::default().scope(), &None);
    /// ```
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Declares the kind as required or optional.
    ///
    /// ```
    /// use kctl_runtime::{writer::ApiError, source::{Effect, Input, Presence, Reflector}, store::Delta};
    ///
    /// let mut reflector = Reflector::new(None).with(Presence::Optional);
    /// let missing = || Input::Failed(ApiError::rejected("list gateways", 404, None, "404 page not found"));
    /// // A starting API server may answer 404 for a moment, so one answer is not enough.
    /// assert!(matches!(reflector.handle(missing())[..], [Effect::Wait(_)]));
    /// let effects = reflector.handle(missing());
    /// assert!(matches!(effects[..], [Effect::Emit(Delta::Absent(_)), Effect::Wait(_)]));
    /// ```
    #[must_use]
    pub fn with(self, presence: Presence) -> Self {
        Self { presence, ..self }
    }

    /// Returns the next request.
    ///
    /// It changes only by [`handle`](Self::handle). While a watch runs, its version moves with each event, so the same call
    /// names the place to go on from.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Takes a response and returns the effects to perform, in order. Without [`Effect::Wait`] or [`Effect::Next`] among
    /// them the present request continues.
    ///
    /// ```
    /// use kctl_runtime::{writer::ApiError, source::{Effect, Input, Reflector, Request}};
    ///
    /// let mut reflector = Reflector::new(None);
    /// reflector.handle(Input::Page { objects: Vec::new(), version: "7".into(), token: None });
    ///
    /// // The API server has compacted version 7 away: list again, at least that version.
    /// let status = r#"{"reason": "Expired", "message": "too old resource version", "code": 410}"#;
    /// let expired = ApiError::rejected("watch pods", 410, None, status);
    /// let effects = reflector.handle(Input::Failed(expired));
    /// assert!(matches!(effects[..], [Effect::Next]));
    /// assert_eq!(reflector.request(), &Request::Whole { version: Some("7".into()) });
    /// ```
    pub fn handle(&mut self, input: Input) -> Vec<Effect> {
        let effects = self.advance(input);
        let is_last = |effect: &Effect| matches!(effect, Effect::Wait(_) | Effect::Next);
        debug_assert!(
            effects.iter().rev().skip(1).all(|effect| !is_last(effect)),
            "the present request ends once, after its other effects"
        );
        self.check();
        effects
    }

    /// Checks the invariants of the fields between two inputs.
    fn check(&self) {
        let is_whole = matches!(self.request, Request::Whole { .. });
        let collects = matches!(self.request, Request::Stream | Request::List { token: Some(_), .. });
        debug_assert!(self.objects.is_empty() || collects, "objects of two lists never become one state");
        let lists = is_whole || matches!(self.request, Request::List { .. });
        debug_assert!(!self.streams || !lists, "a state that is streamed is not listed as well");
        debug_assert!(!self.pages || !is_whole, "a list that broke off is not requested whole again");
        debug_assert!(self.broken <= BROKEN_LISTS, "lists are paged from this number on");
        debug_assert!(self.behind < BEHIND_ANSWERS, "the cache follows a server whose state went back");
    }

    fn advance(&mut self, input: Input) -> Vec<Effect> {
        let is_alive =
            matches!(input, Input::Applied(_) | Input::Deleted(_) | Input::Bookmark(_) | Input::Closed { .. });
        if is_alive && matches!(self.request, Request::Watch { .. }) {
            self.expired = 0;
        }
        match input {
            Input::Page { objects, version, token } => self.page(objects, version, token),
            Input::Applied(object) if self.request == Request::Stream => {
                self.objects.push(object);
                Vec::new()
            }
            // The stream of an initial state has no deletions, and only the bookmark at its end has a meaning.
            Input::Deleted(_) | Input::Bookmark(_) if self.request == Request::Stream => Vec::new(),
            Input::Synced(version) => self.end_initial_events(version),
            Input::Applied(object) => {
                self.seen(object.meta().resource_version.to_string());
                vec![Effect::Emit(Delta::Apply(object))]
            }
            Input::Deleted(object) => {
                self.seen(object.meta().resource_version.to_string());
                vec![Effect::Emit(Delta::Delete(object))]
            }
            Input::Bookmark(version) => {
                self.seen(version.clone());
                vec![Effect::Emit(Delta::Bookmark(self.scope.clone(), version))]
            }
            Input::Failed(error) => self.failed(&error),
            Input::Cut(error) => self.list_interrupted(&error),
            Input::Broken { error, lasted } => {
                self.was_healthy_for(lasted);
                self.failed(&error)
            }
            Input::Closed { lasted, .. } if self.request == Request::Stream => self.stream_closed(lasted),
            // A server that ends watches at once is probably overloaded, so the next request waits.
            Input::Closed { lasted, any: false } if lasted < Duration::from_secs(1) => {
                vec![Effect::Wait(self.next_wait())]
            }
            Input::Closed { lasted, .. } => {
                self.was_healthy_for(lasted);
                vec![Effect::Next]
            }
        }
    }

    /// Collects a page. With the last one the state is complete.
    fn page(&mut self, objects: Vec<Arc<Stored>>, version: String, token: Option<String>) -> Vec<Effect> {
        if self.request == Request::Probe {
            return self.resume_or_relist(&version);
        }
        self.objects.extend(objects);
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            // The token contains the version. API servers reject requests with both.
            self.request = Request::List { version: None, token: Some(token) };
            return vec![Effect::Next];
        }
        let mut effects = self.replace(version);
        // A state that may be outdated ends the request with a wait.
        if matches!(effects[..], [Effect::Emit(_)]) {
            effects.push(Effect::Next);
        }
        effects
    }

    /// Ends the initial state of a stream, which continues as a watch.
    fn end_initial_events(&mut self, version: String) -> Vec<Effect> {
        if self.request != Request::Stream {
            return Vec::new();
        }
        self.newest = true;
        self.replace(version)
    }

    /// Hands a complete state to the store, unless it is older than one that was seen.
    ///
    /// A list of the newest state that is older comes from a server restored from a backup, or from a member of etcd
    /// that lags behind. The second repairs itself, so the list is repeated once. Two in a row mean a restore: the
    /// cache follows it, since the objects of later versions exist no longer.
    fn replace(&mut self, version: String) -> Vec<Effect> {
        let (scope, objects) = (self.scope.clone(), std::mem::take(&mut self.objects));
        self.absent = 0;
        self.broken = 0;
        if !self.newest || !self.is_behind(&version) {
            self.behind = 0;
            self.seen(version.clone());
            return vec![Effect::Emit(Delta::Replace(scope, objects, version))];
        }
        self.behind += 1;
        if self.behind < BEHIND_ANSWERS {
            // One such list may come from a stale API server behind a load balancer.
            self.relist(None);
            return vec![Effect::Wait(BACKOFF_MIN)];
        }
        self.behind = 0;
        self.seen(version.clone());
        vec![Effect::Emit(Delta::Restore(scope, objects, version))]
    }

    /// Decides after a server was unreachable: on to the watch if its version did not go back, and to a new list
    /// otherwise.
    fn resume_or_relist(&mut self, version: &str) -> Vec<Effect> {
        match self.last.clone() {
            Some(last) if !self.is_behind(version) => self.request = Request::Watch { version: last },
            _ => self.relist(None),
        }
        vec![Effect::Next]
    }

    /// Returns `true` if a version is older than the last one. Versions that are not numbers are never behind.
    fn is_behind(&self, version: &str) -> bool {
        let last = self.last.as_ref().and_then(|last| last.parse::<u64>().ok());
        version.parse::<u64>().ok().zip(last).is_some_and(|(version, last)| version < last)
    }

    /// Records a version, from which the next watch continues.
    fn seen(&mut self, version: String) {
        self.last = Some(version.clone());
        self.request = Request::Watch { version };
    }

    /// Handles the end of a stream before its initial state is complete.
    ///
    /// The state is thrown away: a server may have been stopped. A stream that took longer than [`STREAM_SILENCE_MAX`]
    /// shows that the server does not know the option.
    fn stream_closed(&mut self, lasted: Duration) -> Vec<Effect> {
        self.objects.clear();
        if lasted < STREAM_SILENCE_MAX {
            return vec![Effect::Wait(self.next_wait())];
        }
        // A server that ignores `sendInitialEvents` never sends the bookmark that ends the initial state.
        self.fall_back();
        vec![Effect::Next]
    }

    /// Resets the backoff after a watch that lasted. A list that works is not enough: the watch may fail each time.
    fn was_healthy_for(&mut self, lasted: Duration) {
        if lasted >= HEALTHY_AFTER {
            self.failures = 0;
        }
    }

    /// Handles a 404: the server does not serve the kind.
    ///
    /// The first 404 makes the store incomplete, so that no controller acts on objects that may be gone. Their deletion
    /// is reported only when it is certain. Deletions cannot be taken back: reconcilers would create all owned objects
    /// again.
    fn kind_not_served(&mut self) -> Vec<Effect> {
        self.relist(None);
        self.absent = self.absent.saturating_add(1);
        let mut effects = Vec::new();
        if self.last.is_some() {
            // The cache is incomplete from the first 404 on, which pauses its controllers. Its objects go with the last one.
            effects.extend((self.absent == 1).then(|| Effect::Emit(Delta::Open(self.scope.clone()))));
        }
        let is_certain = match (self.last.is_some(), self.presence) {
            (true, _) => self.absent == ABSENT_ANSWERS,
            (false, Presence::Optional) => self.absent == ABSENT_ANSWERS_AT_START,
            (false, Presence::Required) => false,
        };
        if is_certain {
            effects.push(Effect::Emit(match self.presence {
                Presence::Required => Delta::Clear(self.scope.clone()),
                Presence::Optional => Delta::Absent(self.scope.clone()),
            }));
        }
        let (first, longest) = ABSENT_WAIT;
        effects.push(Effect::Wait(first.saturating_mul(1 << (self.absent - 1).min(8)).min(longest)));
        effects
    }

    /// Chooses the next request and the wait after an error.
    ///
    /// | Request | Error | Next |
    /// |---|---|---|
    /// | any | 404 | list, with the waits of a missing kind |
    /// | whole list | 400, 405, 413, 422 | pages, at once |
    /// | list, page | 410, or 504 `Too large resource version` | newest state; at once unless that was requested |
    /// | list, page | other | list again after the wait |
    /// | watch | 410 | list of at least the last version, at once; after the wait if the last watch expired too |
    /// | watch | no response | probe after the wait |
    /// | watch | 429, unreadable line | same watch after the wait |
    /// | watch | other | list after the wait |
    /// | stream | 400, 405, 422 | list, at once |
    ///
    /// A `Retry-After` of the response prolongs the wait, and never shortens it.
    fn failed(&mut self, error: &ApiError) -> Vec<Effect> {
        if error.is_not_found() {
            return self.kind_not_served();
        }
        let wait = error.retry_after().unwrap_or_default();
        match &self.request {
            // The server does not support streams: list from now on.
            Request::Stream if matches!(error.code(), Some(400 | 405 | 422)) => {
                self.fall_back();
                vec![Effect::Next]
            }
            Request::Stream => {
                self.objects.clear();
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
            Request::Whole { version } if wants_pages(error) => {
                let version = version.clone();
                self.pages = true;
                self.relist(version);
                vec![Effect::Next]
            }
            Request::Whole { version } if error.is_expired() || is_ahead(error) => {
                let can_continue = version.is_some();
                self.relist(None);
                if can_continue { vec![Effect::Next] } else { vec![Effect::Wait(self.next_wait())] }
            }
            Request::List { version, token } if error.is_expired() || is_ahead(error) => {
                // The page or version has expired, or this server has not reached it. The newest state is always available.
                let can_continue = version.is_some() || token.is_some();
                self.relist(None);
                if can_continue { vec![Effect::Next] } else { vec![Effect::Wait(self.next_wait())] }
            }
            Request::Whole { .. } | Request::List { .. } => {
                // Pages of different lists have different versions, so the list starts again.
                self.relist(self.last.clone());
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
            Request::Watch { .. } if error.is_expired() => {
                self.relist(self.last.clone());
                // The list after the last 410 was of no use, and the next one may be as well.
                self.expired = self.expired.saturating_add(1);
                vec![if self.expired > 1 { Effect::Wait(self.next_wait().max(wait)) } else { Effect::Next }]
            }
            Request::Watch { .. } if matches!(error, ApiError::Unanswered { .. }) => {
                // The server may have been restored from a backup. A watch from a version in its future would stay silent.
                self.request = Request::Probe;
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
            Request::Watch { .. } if error.code() == Some(429) || error.code().is_none() => {
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
            Request::Probe => vec![Effect::Wait(self.next_wait().max(wait))],
            Request::Watch { .. } => {
                self.relist(self.last.clone());
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
        }
    }

    /// Handles a list that broke off.
    ///
    /// Proxies and load balancers limit the size or the time of a response. A whole list that breaks off twice in a row
    /// is therefore requested in pages, from then on.
    fn list_interrupted(&mut self, error: &ApiError) -> Vec<Effect> {
        if matches!(self.request, Request::Whole { .. }) {
            self.broken += 1;
            self.pages |= self.broken >= BROKEN_LISTS;
        }
        self.failed(error)
    }

    /// Starts again with the whole state. A version is a lower bound for a list. A stream is always of the newest
    /// state, and so is the first list of a kind that was not served: the cache waits for a list that is not older.
    fn relist(&mut self, version: Option<String>) {
        let version = version.filter(|_| self.absent == 0);
        self.objects.clear();
        self.newest = version.is_none();
        self.request = match (self.streams, self.pages) {
            (true, _) => Request::Stream,
            (false, true) => Request::List { version, token: None },
            (false, false) => Request::Whole { version },
        };
    }

    /// Switches from streaming to lists for good.
    fn fall_back(&mut self) {
        self.streams = false;
        self.relist(None);
    }

    /// Returns the wait after this failure, 0.8 s doubled each time up to 30 s, and counts it.
    fn next_wait(&mut self) -> Duration {
        let wait = BACKOFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

/// Returns `true` if a whole list was rejected as such, by the server or by a proxy, and not only for now.
pub(super) fn wants_pages(error: &ApiError) -> bool {
    matches!(error.code(), Some(400 | 405 | 413 | 422))
}

/// Returns `true` if the server has not reached the requested version: it was restored from a backup, or is late
/// (client-go, `reflector.go`, `isTooLargeResourceVersionError`).
fn is_ahead(error: &ApiError) -> bool {
    error.code() == Some(504) && error.has_cause("ResourceVersionTooLarge", "")
}

#[cfg(test)]
mod tests;
