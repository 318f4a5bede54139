//! Tests the reflector and the cache behind it against a model of an API server that lists, streams, compacts, breaks
//! off and repeats events. In any order of responses the cache holds a true state that never goes back, and in the end
//! the newest one.
//!
//! proptest draws up to 60 steps: writes by this process and by others, answers that are late, repeated or cut, errors,
//! and compactions. [`Watcher`] checks after each delta that no object goes back in version, that changes and cache
//! agree, and that a deleted uid does not return. Then the faults end, and after a bounded number of responses the cache
//! must equal the server. A failing sequence is shrunk to its shortest form.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;

use super::{Effect, Input, Reflector, Request};
use crate::{
    key::ObjectKey,
    object::{Kind, Stored},
    store::{Cache, Change, Delta, NamespaceScope},
    transport::ApiError,
};

/// Number of object names. Few, so that sequences meet the same object often.
const NAMES: u8 = 4;
/// The namespace of each name. The last one is not watched where namespaces are.
const NAMESPACES: [&str; NAMES as usize] = ["a", "a", "b", "c"];
/// Short, so that lists have several pages. Pages are requested only after a whole list broke off twice.
const PAGE_LEN: usize = 1;
/// Number of responses without faults within which the cache must equal the server.
const FAULTLESS_TURNS: usize = 200;
/// Number of events that the server keeps when it compacts.
const KEPT: usize = 2;

/// One step of a sequence: a change in the server, or a response to one of the reflectors.
#[derive(Debug, Clone, Copy)]
enum ModelStep {
    /// An object is made or changed, so that the selector selects it or not. The process does that itself, or another
    /// client.
    Write {
        name: u8,
        selected: bool,
        own: bool,
    },
    Delete {
        name: u8,
        own: bool,
    },
    /// The server forgets older events, so a watch from an old version gets 410.
    Compact,
    /// The server responds correctly, with the state `back` versions ago if that is allowed. `of` is the index of the
    /// reflector, modulo their number.
    Respond {
        of: usize,
        back: usize,
    },
    /// The event `back` versions ago is sent again.
    Repeat {
        of: usize,
        back: usize,
    },
    /// The response ends as watches do.
    Close(usize),
    /// The request fails with this status code before its response begins.
    Fail(usize, u16),
    /// The server does not answer.
    Lose(usize),
    /// A list breaks off in its midst.
    Cut(usize),
    /// A watch sends an error, or a line that is not an event.
    Break(usize, Option<u16>),
}

/// Draws a step. The weights keep answers frequent, so that most sequences get beyond the first list.
fn step() -> impl Strategy<Value = ModelStep> {
    let name = 0..NAMES;
    let codes = prop::sample::select(vec![404_u16, 410, 410, 422, 429, 500, 504]);
    let errors = prop::sample::select(vec![None, Some(410_u16), Some(500)]);
    let of = 0_usize..2;
    prop_oneof![
        6 => (name.clone(), prop::bool::weighted(0.8), any::<bool>())
            .prop_map(|(name, selected, own)| ModelStep::Write { name, selected, own }),
        3 => (name, any::<bool>()).prop_map(|(name, own)| ModelStep::Delete { name, own }),
        1 => Just(ModelStep::Compact),
        16 => (of.clone(), 0_usize..4).prop_map(|(of, back)| ModelStep::Respond { of, back }),
        1 => (of.clone(), 0_usize..4).prop_map(|(of, back)| ModelStep::Repeat { of, back }),
        1 => of.clone().prop_map(ModelStep::Close),
        2 => (of.clone(), codes).prop_map(|(of, code)| ModelStep::Fail(of, code)),
        1 => of.clone().prop_map(ModelStep::Lose),
        3 => of.clone().prop_map(ModelStep::Cut),
        1 => (of, errors).prop_map(|(of, code)| ModelStep::Break(of, code)),
    ]
}

/// A state of an object; its name is its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    name: u8,
    uid: u64,
    revision: u64,
    selected: bool,
}

/// Returns `true` if a reflector follows the namespace of this name.
fn is_in(scope: &NamespaceScope, name: u8) -> bool {
    scope.as_deref().is_none_or(|namespace| NAMESPACES[usize::from(name)] == namespace)
}

impl Known {
    /// Returns the object at a revision as a source would hand it on.
    fn to_stored(self, revision: u64) -> Arc<Stored> {
        let Self { name, uid, .. } = self;
        let namespace = NAMESPACES[usize::from(name)];
        let metadata =
            format!(r#""namespace":"{namespace}","name":"{name}","uid":"{uid}","resourceVersion":"{revision}""#);
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &format!(r#"{{"metadata":{{{metadata}}}}}"#)).unwrap())
    }
}

type State = BTreeMap<u8, Known>;

/// One entry of the server's log, as etcd keeps it: the states before and after a revision.
struct Event {
    revision: u64,
    before: Option<Known>,
    after: Option<Known>,
}

impl Event {
    /// Returns the event that a watch with the selector sends for it.
    ///
    /// An object that stops matching the selector is `DELETED` for the watch, as in the API server's watch cache.
    fn watch_input(&self, scope: &NamespaceScope) -> Option<Input> {
        let name = self.before.or(self.after)?.name;
        if !is_in(scope, name) {
            return None;
        }
        let was = self.before.filter(|before| before.selected);
        match (was, self.after.filter(|after| after.selected)) {
            (_, Some(after)) => Some(Input::Applied(after.to_stored(self.revision))),
            (Some(before), None) => Some(Input::Deleted(before.to_stored(self.revision))),
            (None, None) => None,
        }
    }
}

/// The model: a state, a log of changes, and the revision up to which the log was compacted.
#[derive(Default)]
struct ModelServer {
    state: State,
    log: Vec<Event>,
    revision: u64,
    compacted: u64,
    /// Number of uids given out; a new object never gets an old one.
    n_uids: u64,
}

impl ModelServer {
    /// Applies a change at the present revision and logs it.
    fn change(&mut self, name: u8, after: Option<Known>) {
        let before = self.state.remove(&name);
        self.state.extend(after.map(|after| (name, after)));
        self.log.push(Event { revision: self.revision, before, after });
    }

    fn write(&mut self, name: u8, selected: bool) -> Arc<Stored> {
        self.revision += 1;
        let uid = self.state.get(&name).map_or(self.n_uids + 1, |known| known.uid);
        self.n_uids = self.n_uids.max(uid);
        let after = Known { name, uid, revision: self.revision, selected };
        self.change(name, Some(after));
        after.to_stored(self.revision)
    }

    fn delete(&mut self, name: u8) -> Option<Known> {
        let known = *self.state.get(&name)?;
        self.revision += 1;
        self.change(name, None);
        Some(known)
    }

    fn compact(&mut self) {
        if let Some(first_kept) = self.log.len().checked_sub(KEPT) {
            self.compacted = self.compacted.max(self.log.get(first_kept).map_or(0, |event| event.revision));
        }
    }

    /// Returns the selected objects at a revision.
    ///
    /// It undoes the log from its end, which also checks that the log is complete.
    fn at(&self, revision: u64, scope: &NamespaceScope) -> Vec<Arc<Stored>> {
        let mut state = self.state.clone();
        for event in self.log.iter().rev().take_while(|event| event.revision > revision) {
            if let Some(after) = event.after {
                state.remove(&after.name);
            }
            state.extend(event.before.map(|before| (before.name, before)));
        }
        state
            .values()
            .filter(|known| known.selected && is_in(scope, known.name))
            .map(|known| known.to_stored(known.revision))
            .collect()
    }

    /// Returns the revision that is `back` before the newest one, limited to those that the server may still show.
    fn back(&self, oldest: u64, back: usize) -> u64 {
        let oldest = oldest.max(self.compacted);
        self.revision.saturating_sub(back as u64).max(oldest).min(self.revision)
    }
}

/// Checks of the cache after each delta.
struct Watcher {
    /// The cache under test, fed with the deltas of all reflectors.
    cache: Cache,
    /// The state according to the reported changes alone.
    delivered: BTreeMap<ObjectKey, Arc<Stored>>,
    /// The newest version of each name that was ever reported.
    newest: BTreeMap<ObjectKey, u64>,
    /// The uids that the process itself deleted.
    gone: BTreeSet<String>,
}

impl Watcher {
    /// Applies a delta and checks the changes that follow, and that they add up to the cache.
    fn take(&mut self, delta: Delta) -> Result<(), TestCaseError> {
        let text = format!("{delta:?}");
        let cleared = match &delta {
            Delta::Clear(scope) | Delta::Absent(scope) => Some(scope.clone()),
            _ => None,
        };
        for change in self.cache.apply(delta) {
            self.check_change(&change).map_err(|error| TestCaseError::fail(format!("{error}, by {text:.200}")))?;
        }
        if let Some(scope) = cleared {
            // The kind may be served again with the objects that it had.
            self.newest.retain(|key, _| !key.name.parse().is_ok_and(|name| is_in(&scope, name)));
        }
        let cached: BTreeMap<_, _> = self.cache.all().map(|object| (object.key().clone(), object.clone())).collect();
        let versions = |objects: &BTreeMap<ObjectKey, Arc<Stored>>| -> Vec<_> {
            objects.iter().map(|(key, object)| (key.clone(), object.meta().revision())).collect()
        };
        prop_assert_eq!(
            versions(&cached),
            versions(&self.delivered),
            "the changes are not what is cached, by {}",
            text
        );
        Ok(())
    }

    /// Checks one change: objects are added once, updated from the state that was known, and never go back.
    fn check_change(&mut self, change: &Change<Stored>) -> Result<(), TestCaseError> {
        let latest = change.latest();
        let (key, revision) = (latest.key().clone(), latest.meta().revision().unwrap());
        let known = self.delivered.get(&key);
        match change {
            Change::Added(new) => {
                prop_assert!(known.is_none(), "{} is added twice", key);
                prop_assert!(!self.gone.contains(&new.meta().uid.to_string()), "{} is back after its own delete", key);
                self.delivered.insert(key.clone(), new.clone());
            }
            Change::Updated { old, new } => {
                prop_assert!(known.is_some_and(|known| Arc::ptr_eq(known, old)), "{} was another state", key);
                prop_assert_eq!(&old.meta().uid, &new.meta().uid);
                self.delivered.insert(key.clone(), new.clone());
            }
            Change::Deleted { last } => {
                let known = self.delivered.remove(&key);
                let same = known.is_some_and(|known| {
                    known.meta().uid == last.meta().uid && known.meta().revision() <= last.meta().revision()
                });
                prop_assert!(same, "{} ends with a state older than the last that was known", key);
                self.newest.insert(key, revision);
                return Ok(());
            }
        }
        let before = self.newest.insert(key.clone(), revision);
        prop_assert!(
            before.is_none_or(|before| before < revision),
            "{} goes back from {:?} to {}",
            key,
            before,
            revision
        );
        Ok(())
    }
}

struct Follower {
    scope: NamespaceScope,
    reflector: Reflector,
    /// The rest of the state that a stream has to send, and the state's revision.
    stream: Option<(Vec<Arc<Stored>>, u64)>,
}

struct Run {
    server: ModelServer,
    followers: Vec<Follower>,
    watcher: Watcher,
}

impl Run {
    /// Starts a run with a reflector of each scope, which `reflector` creates.
    fn new(reflector: fn(NamespaceScope) -> Reflector, scopes: Vec<NamespaceScope>) -> Self {
        let server = ModelServer { revision: 10, ..ModelServer::default() };
        let cache = Cache::new(scopes.clone());
        let watcher = Watcher { cache, delivered: BTreeMap::new(), newest: BTreeMap::new(), gone: BTreeSet::new() };
        let followers = scopes.into_iter().map(|scope| {
            let reflector = reflector(scope.clone());
            Follower { scope, reflector, stream: None }
        });
        Self { server, followers: followers.collect(), watcher }
    }

    fn request(&self, of: usize) -> &Request {
        self.followers[of % self.followers.len()].reflector.request()
    }

    fn step(&mut self, step: ModelStep) -> Result<(), TestCaseError> {
        let unanswered = || ApiError::NoResponse { operation: "watch pods".into(), cause: "connection refused".into() };
        match step {
            ModelStep::Write { name, selected, own } => {
                let written = self.server.write(name, selected);
                if own { self.watcher.take(Delta::Written(written)) } else { Ok(()) }
            }
            ModelStep::Delete { name, own } => {
                let Some(known) = self.server.delete(name) else { return Ok(()) };
                if !own {
                    return Ok(());
                }
                let (object, uid) = (known.to_stored(known.revision), known.uid.to_string());
                self.watcher.gone.insert(uid.clone());
                self.watcher.take(Delta::Gone(object.key().clone(), (*uid).into()))
            }
            ModelStep::Compact => {
                self.server.compact();
                Ok(())
            }
            ModelStep::Respond { of, back } => {
                let response = self.respond(of, back);
                self.deliver(of, response)
            }
            ModelStep::Repeat { of, back } => {
                let Request::Watch { version } = self.request(of) else { return Ok(()) };
                let passed: u64 = version.parse().unwrap();
                let scope = &self.followers[of % self.followers.len()].scope;
                let mut known = self.server.log.iter().rev().filter(|event| event.revision <= passed);
                let again = known.nth(back).and_then(|event| event.watch_input(scope));
                again.map_or(Ok(()), |again| self.deliver(of, again))
            }
            ModelStep::Close(of) => self.deliver(of, Input::Closed { lasted: Duration::from_secs(30), any: true }),
            ModelStep::Fail(of, code) => {
                let message =
                    if code == 504 { r#"{"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"# } else { "{}" };
                self.deliver(of, Input::Failed(ApiError::rejected("list pods", code, None, message)))
            }
            ModelStep::Lose(of) => self.deliver(of, Input::Failed(unanswered())),
            ModelStep::Cut(of) if matches!(self.request(of), Request::Whole { .. } | Request::List { .. }) => {
                self.deliver(of, Input::ListInterrupted(unanswered()))
            }
            ModelStep::Break(of, code) if matches!(self.request(of), Request::Watch { .. } | Request::Stream) => {
                let rejected = |code| ApiError::rejected("watch pods", code, None, "{}");
                let error = code.map_or_else(unanswered, rejected);
                self.deliver(of, Input::WatchFailed { error, lasted: Duration::from_secs(30) })
            }
            ModelStep::Cut(_) | ModelStep::Break(..) => Ok(()),
        }
    }

    /// Returns the response of a healthy server.
    fn respond(&mut self, of: usize, back: usize) -> Input {
        let (server, n) = (&self.server, self.followers.len());
        let Follower { scope, reflector, stream } = &mut self.followers[of % n];
        let expired = || Input::Failed(ApiError::rejected("list pods", 410, None, "{}"));
        let oldest =
            |version: Option<String>| version.map_or(server.revision, |v| server.back(v.parse().unwrap(), back));
        match reflector.request().clone() {
            Request::Stream => {
                let newest = || (server.at(server.revision, scope), server.revision);
                let (left, revision) = stream.get_or_insert_with(newest);
                left.pop().map_or_else(|| Input::Synced(revision.to_string()), Input::Applied)
            }
            Request::Probe => Input::Page { objects: Vec::new(), version: server.revision.to_string(), token: None },
            Request::List { token: Some(token), .. } => {
                let (revision, start) = token.split_once('/').unwrap();
                let (revision, start) = (revision.parse().unwrap(), start.parse().unwrap());
                if revision < server.compacted { expired() } else { page(server, scope, revision, start) }
            }
            Request::Whole { version } => {
                let revision = oldest(version);
                Input::Page { objects: server.at(revision, scope), version: revision.to_string(), token: None }
            }
            Request::List { version, token: None } => page(server, scope, oldest(version), 0),
            Request::Watch { version } => {
                let passed: u64 = version.parse().unwrap();
                if passed < server.compacted {
                    return expired();
                }
                let mut later = server.log.iter().filter(|event| event.revision > passed);
                let next = later.find_map(|event| event.watch_input(scope));
                next.unwrap_or_else(|| Input::Bookmark(server.revision.to_string()))
            }
        }
    }

    fn deliver(&mut self, of: usize, input: Input) -> Result<(), TestCaseError> {
        let n = self.followers.len();
        let follower = &mut self.followers[of % n];
        let ends = matches!(
            input,
            Input::Failed(_) | Input::Closed { .. } | Input::WatchFailed { .. } | Input::ListInterrupted(_)
        );
        if ends || *follower.reflector.request() != Request::Stream {
            follower.stream = None;
        }
        for effect in follower.reflector.handle(input) {
            if let Effect::Emit(delta) = effect {
                self.watcher.take(delta)?;
            }
        }
        Ok(())
    }

    /// Ends all faults. The cache then has to become equal to the server's state.
    fn end_faults(&mut self) -> Result<(), TestCaseError> {
        for turn in 0..FAULTLESS_TURNS * self.followers.len() {
            let response = self.respond(turn, 0);
            self.deliver(turn, response)?;
        }
        let state = |objects: Vec<Arc<Stored>>| -> BTreeMap<_, _> {
            objects.iter().map(|object| (object.key().clone(), object.meta().resource_version.clone())).collect()
        };
        let cached = state(self.watcher.cache.all().cloned().collect());
        let in_all_scopes = self.followers.iter().flat_map(|of| self.server.at(self.server.revision, &of.scope));
        prop_assert_eq!(cached, state(in_all_scopes.collect()), "not what the server has");
        prop_assert_eq!(self.watcher.cache.n_tombstones(), 0, "tombstones are never removed");
        Ok(())
    }
}

fn page(server: &ModelServer, scope: &NamespaceScope, revision: u64, start: usize) -> Input {
    let all = server.at(revision, scope);
    let end = (start + PAGE_LEN).min(all.len());
    let token = (end < all.len()).then(|| format!("{revision}/{end}"));
    Input::Page { objects: all[start.min(end)..end].to_vec(), version: revision.to_string(), token }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_gives_true_states_that_never_regress(
        streams in any::<bool>(),
        by_namespace in any::<bool>(),
        pages in any::<bool>(),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let scopes = if by_namespace { vec![Some("a".into()), Some("b".into())] } else { vec![None] };
        let n_followers = scopes.len();
        let mut run = Run::new(if streams { Reflector::streaming } else { Reflector::new }, scopes);
        if pages {
            // A server that rejects both a stream of the initial state and a whole list.
            for of in 0..n_followers {
                run.step(ModelStep::Fail(of, 422))?;
                run.step(ModelStep::Fail(of, 422))?;
            }
        }
        for step in steps {
            run.step(step)?;
        }
        run.end_faults()?;
    }
}
