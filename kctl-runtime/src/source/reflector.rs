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
//!     │ rejected as too large       │  ^
//!     v                 no response │  │ version not behind
//!   List (pages of 500)             v  │
//!                                  Probe ── version behind ────────> Whole
//!   Stream ── initial-events-end ──> Watch
//! ```
//!
//! A watch that ends without an error, with 429 or with an unreadable line is opened again from its last version. The
//! table in `reflector/errors.rs` has all errors.
//!
//! # Invariants
//!
//! - A [`Delta::Replace`] is a complete state of one version. A list that breaks off, or pages of two lists, never
//!   become one.
//! - The version of a watch never falls, except by [`Delta::Restore`]. That needs two lists in a row that are older
//!   than a known version, because one alone may come from a server that lags behind. It relies on a server that sends
//!   events in order. A repeated older event lowers the version until the next one; the store ignores its state.
//! - A wait is always bounded, and a request always follows: no sequence of responses stops the reflector.
//!
//! `reflector_model.rs` checks them with random sequences of responses against a model of an API server.

mod backoff;
mod errors;
mod protocol;

use std::{sync::Arc, time::Duration};

use super::Presence;
use crate::{
    object::Stored,
    store::{Delta, NamespaceScope},
};
use backoff::{BACKOFF_MIN, Backoff};
pub(super) use errors::wants_pages;
pub use protocol::{Effect, Input, Request};

/// Number of lists of the newest state in a row that are older than a known version. At this number the API server's
/// state counts as restored from a backup.
const STALE_LISTS_MAX: u32 = 2;
/// Number of truncated lists in a row after which lists are paged: the server, or a proxy, does not send so much at
/// once.
const BROKEN_LISTS: u32 = 2;

/// A watch that ends without an event before this time has been ended at once.
pub(super) const SHORT_WATCH: Duration = Duration::from_secs(1);
/// Number of such watches in a row that count as a failure (client-go only logs "very short watch").
const SHORT_WATCHES: u32 = 3;

/// A server that streams its state never pauses for this long within it.
pub(super) const STREAM_SILENCE_MAX: Duration = Duration::from_secs(10);

/// The state of the protocol between two answers: call [`request`](Self::request), perform it, and pass each response to
/// [`handle`](Self::handle).
///
/// [`Source`](super::Source) is its driver for a real API server. The [module](super) has an example.
#[derive(Debug)]
pub struct Reflector {
    /// The namespace that its deltas name.
    scope: NamespaceScope,
    /// Decides if a missing kind leaves the store complete.
    presence: Presence,
    request: Request,
    /// The objects of a list or stream that is not complete yet. Invariant: empty for all other requests.
    objects: Vec<Arc<Stored>>,
    /// The last version that was seen.
    last: Option<String>,
    /// The state is requested as a stream, and no server has rejected that. Invariant: then the request is neither
    /// `Whole` nor `List`.
    streams: bool,
    /// The server does not return the whole state. Invariant: then lists are paged.
    pages: bool,
    /// Number of whole lists in a row that broke off. Invariant: at most [`BROKEN_LISTS`].
    broken: u32,
    /// The wait after the next failure.
    backoff: Backoff,
    /// Number of 404s in a row.
    absent: u32,
    /// Number of lists in a row that are older than a known version. Invariant: below [`STALE_LISTS_MAX`] between
    /// inputs.
    behind: u32,
    /// Number of watches in a row that expired before their first event.
    expired: u32,
    /// Number of paged lists in a row whose `continue` token expired before their last page.
    expired_pages: u32,
    /// Number of watches in a row that ended at once, without an event.
    short: u32,
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
    /// The kind is [`Presence::Required`] until [`with_presence`](Self::with_presence) changes that.
    pub fn new(scope: NamespaceScope) -> Self {
        Self {
            scope,
            presence: Presence::Required,
            request: Request::Whole { version: None },
            objects: Vec::new(),
            last: None,
            streams: false,
            pages: false,
            broken: 0,
            backoff: Backoff::default(),
            absent: 0,
            behind: 0,
            expired: 0,
            expired_pages: 0,
            short: 0,
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
    pub fn streaming(scope: NamespaceScope) -> Self {
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
    pub fn scope(&self) -> &NamespaceScope {
        &self.scope
    }

    /// Declares the kind as required or optional.
    ///
    /// ```
    /// use kctl_runtime::{writer::ApiError, source::{Effect, Input, Presence, Reflector}, store::Delta};
    ///
    /// let mut reflector = Reflector::new(None).with_presence(Presence::Optional);
    /// let missing = || Input::Failed(ApiError::rejected("list gateways", 404, None, "404 page not found"));
    /// // A starting API server may answer 404 for a moment, so one answer is not enough.
    /// assert!(matches!(reflector.handle(missing())[..], [Effect::Wait(_)]));
    /// let effects = reflector.handle(missing());
    /// assert!(matches!(effects[..], [Effect::Emit(Delta::Absent(_)), Effect::Wait(_)]));
    /// ```
    #[must_use]
    pub fn with_presence(self, presence: Presence) -> Self {
        Self { presence, ..self }
    }

    /// Returns the next request.
    ///
    /// It changes only by [`handle`](Self::handle). While a watch runs, its version moves with each event, so the same
    /// call returns the version to continue from.
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

    /// Returns `true` if the API server ends each watch at once, without an event. The cache is stale then, although no
    /// request was rejected.
    pub(super) fn has_short_watches(&self) -> bool {
        self.short >= SHORT_WATCHES
    }

    /// Checks the invariants of the fields between two inputs.
    fn check(&self) {
        let is_whole_list = matches!(self.request, Request::Whole { .. });
        let collects = matches!(self.request, Request::Stream | Request::List { token: Some(_), .. });
        debug_assert!(self.objects.is_empty() || collects, "objects of two lists never become one state");
        let lists = is_whole_list || matches!(self.request, Request::List { .. });
        debug_assert!(!self.streams || !lists, "a state that is streamed is not listed as well");
        debug_assert!(!self.pages || !is_whole_list, "a list that broke off is not requested whole again");
        debug_assert!(self.broken <= BROKEN_LISTS, "lists are paged from this number on");
        debug_assert!(self.behind < STALE_LISTS_MAX, "the cache follows a server whose state went back");
    }

    fn advance(&mut self, input: Input) -> Vec<Effect> {
        let is_alive =
            matches!(input, Input::Applied(_) | Input::Deleted(_) | Input::Bookmark(_) | Input::Closed { .. });
        if is_alive && matches!(self.request, Request::Watch { .. }) {
            self.expired = 0;
        }
        let is_short = matches!(input, Input::Closed { lasted, any: false } if lasted < SHORT_WATCH);
        self.short = if is_short { self.short.saturating_add(1) } else { 0 };
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
                self.pass_event(object.meta().resource_version.to_string());
                vec![Effect::Emit(Delta::Apply(object))]
            }
            Input::Deleted(object) => {
                self.pass_event(object.meta().resource_version.to_string());
                vec![Effect::Emit(Delta::Delete(object))]
            }
            Input::Bookmark(version) => {
                self.pass_event(version.clone());
                vec![Effect::Emit(Delta::Bookmark(self.scope.clone(), version))]
            }
            Input::Failed(error) => self.handle_error(&error),
            Input::ListInterrupted(error) => self.list_interrupted(&error),
            Input::WatchFailed { error, lasted } => {
                self.backoff.reset_if_healthy(lasted);
                self.handle_error(&error)
            }
            Input::Closed { lasted, .. } if self.request == Request::Stream => self.handle_stream_end(lasted),
            // A server that ends watches at once is probably overloaded, so the next request waits.
            Input::Closed { .. } if is_short => vec![Effect::Wait(self.backoff.next_wait())],
            Input::Closed { lasted, .. } => {
                self.backoff.reset_if_healthy(lasted);
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
        self.expired_pages = 0;
        if !self.newest || !self.is_behind(&version) {
            self.behind = 0;
            self.watch_from(version.clone());
            return vec![Effect::Emit(Delta::Replace(scope, objects, version))];
        }
        self.behind += 1;
        if self.behind < STALE_LISTS_MAX {
            // One such list may come from a stale API server behind a load balancer.
            self.relist(None);
            return vec![Effect::Wait(BACKOFF_MIN)];
        }
        self.behind = 0;
        self.watch_from(version.clone());
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

    /// Records the version of an event. One without a version leaves the last one: a watch without a version begins with
    /// the objects that exist, so deletions before it would be lost.
    fn pass_event(&mut self, version: String) {
        if !version.is_empty() {
            self.watch_from(version);
        }
    }

    /// Records a version, from which the next watch continues.
    fn watch_from(&mut self, version: String) {
        self.last = Some(version.clone());
        self.request = Request::Watch { version };
    }

    /// Handles the end of a stream before its initial state is complete.
    ///
    /// The state is thrown away: a server may have been stopped. A stream that took longer than [`STREAM_SILENCE_MAX`]
    /// probably comes from a server that does not know the option. Lists are correct with every server.
    fn handle_stream_end(&mut self, lasted: Duration) -> Vec<Effect> {
        self.objects.clear();
        if lasted < STREAM_SILENCE_MAX {
            return vec![Effect::Wait(self.backoff.next_wait())];
        }
        // A server that ignores `sendInitialEvents` never sends the bookmark that ends the initial state.
        self.fall_back();
        vec![Effect::Next]
    }

    /// Starts again with the whole state. A version is a lower bound for a list. A stream is always of the newest
    /// state, and so is the first list of a kind that was not served. The cache waits for a list that is not older.
    ///
    /// Some servers return lists without a version, such as the list of `metrics.k8s.io`. API servers reject an empty
    /// string as the lower bound.
    fn relist(&mut self, version: Option<String>) {
        let version = version.filter(|version| self.absent == 0 && !version.is_empty());
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
}

#[cfg(test)]
mod tests;
