//! The list-and-watch protocol as a pure state machine: told what the API server answered, it says what to ask next.
//!
//! The state comes as a stream before its watch, from servers that can do that, or as a list in pages. Follows client-go,
//! `tools/cache/reflector.go`, but for the first list, which asks for the newest state: a program that is
//! started again after it was killed must see what it wrote last. Then it lists in pages, watch from the list's
//! version, go on from the last version when a watch ends, list again when it has expired.

use std::{sync::Arc, time::Duration};

use crate::{
    effect::ApiError,
    object::Stored,
    store::{Delta, Scope},
};

/// First wait after a failure (client-go, `reflector.go`, `NewReflectorWithOptions`).
const BACKOFF_MIN: Duration = Duration::from_millis(800);
/// Longest wait after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// A watch that lasted so long was healthy: the next failure waits the first wait again.
const HEALTHY_AFTER: Duration = Duration::from_secs(120);

/// First and longest wait for a kind that the server does not have: so long after its definition was installed it is there.
const ABSENT_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// So many answers in a row that there is no such kind mean that its definition was deleted, and with it all objects: twelve
/// seconds. A server that starts gives some as well (kube-apiserver, before it has read its definitions).
const ABSENT_ANSWERS: u32 = 5;
/// So many lists of the newest state in a row that are older than what was seen mean that the server's state went back.
const BEHIND_ANSWERS: u32 = 2;

/// A server that streams its state does not pause so long in it.
pub(super) const STREAM_SILENCE_MAX: Duration = Duration::from_secs(10);

/// What to ask the API server next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A watch that begins with the whole state (`sendInitialEvents`), newest.
    Stream,
    /// One page of a list.
    List {
        /// `Some("0")` is what the server has at hand, `None` the newest state.
        version: Option<String>,
        /// The page.
        token: Option<String>,
    },
    /// A watch.
    Watch {
        /// Events after this version.
        version: String,
    },
    /// One object of the newest state, for its version: whether the server that was away is where it was.
    Probe,
}

/// What the API server answered.
#[derive(Debug)]
pub enum Input {
    /// One page.
    Page {
        /// Its objects.
        objects: Vec<Arc<Stored>>,
        /// The version of the whole list.
        version: String,
        /// Set when there are more pages.
        token: Option<String>,
    },
    /// An event that carries an object: added or modified.
    Applied(Arc<Stored>),
    /// An object's end.
    Deleted(Arc<Stored>),
    /// A bookmark.
    Bookmark(String),
    /// The bookmark that ends the initial state of a stream.
    Synced(String),
    /// The list failed, or the watch did not begin.
    Failed(ApiError),
    /// The watch brought an ERROR event, or something that is no event.
    Broken {
        /// What it brought.
        error: ApiError,
        /// How long it was open.
        lasted: Duration,
    },
    /// The watch ended as watches do.
    Closed {
        /// How long it was open.
        lasted: Duration,
        /// Whether it brought anything.
        any: bool,
    },
}

/// What the driver has to do before the next request.
#[derive(Debug)]
pub enum Effect {
    /// Hand this on.
    Emit(Delta),
    /// Leave the present request and wait.
    Wait(Duration),
    /// Leave the present request.
    Next,
}

/// The state between two answers.
#[derive(Debug)]
pub struct Reflector {
    scope: Scope,
    request: Request,
    objects: Vec<Arc<Stored>>,
    last: Option<String>,
    /// The server does not stream the initial state: it is listed in pages.
    lists: bool,
    failures: u32,
    /// Answers in a row that there is no such kind.
    absent: u32,
    /// Lists of the newest state in a row that are older than what was seen.
    behind: u32,
    /// The list that is read is of the newest state.
    newest: bool,
}

impl Default for Reflector {
    fn default() -> Self {
        Self::of(None)
    }
}

impl Reflector {
    /// A reflector of one namespace, or of all.
    pub fn of(scope: Scope) -> Self {
        Self {
            scope,
            request: Request::Stream,
            objects: Vec::new(),
            last: None,
            lists: false,
            failures: 0,
            absent: 0,
            behind: 0,
            newest: true,
        }
    }

    /// One that lists the newest state in pages.
    pub(super) fn lists(scope: Scope) -> Self {
        let mut reflector = Self::of(scope);
        reflector.fall_back();
        reflector
    }

    /// What to ask now.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Takes an answer.
    pub fn on(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Page { objects, version, token } => self.page(objects, version, token),
            Input::Applied(object) if self.request == Request::Stream => {
                self.objects.push(object);
                Vec::new()
            }
            // Nothing is deleted in an initial state; a bookmark that does not end it says nothing.
            Input::Deleted(_) | Input::Bookmark(_) if self.request == Request::Stream => Vec::new(),
            Input::Synced(version) => self.synced(version),
            Input::Applied(object) => {
                self.seen(object.meta().resource_version.clone());
                vec![Effect::Emit(Delta::Apply(object))]
            }
            Input::Deleted(object) => {
                self.seen(object.meta().resource_version.clone());
                vec![Effect::Emit(Delta::Delete(object))]
            }
            Input::Bookmark(version) => {
                self.seen(version.clone());
                vec![Effect::Emit(Delta::Bookmark(self.scope.clone(), version))]
            }
            Input::Failed(error) => self.failed(&error),
            Input::Broken { error, lasted } => {
                self.was_healthy_for(lasted);
                self.failed(&error)
            }
            Input::Closed { lasted, any } => self.closed(lasted, any),
        }
    }

    fn page(&mut self, objects: Vec<Arc<Stored>>, version: String, token: Option<String>) -> Vec<Effect> {
        if self.request == Request::Probe {
            return self.probed(&version);
        }
        self.objects.extend(objects);
        if let Some(token) = token.filter(|token| !token.is_empty()) {
            // The token carries the version: naming both is an error on the server.
            self.request = Request::List { version: None, token: Some(token) };
            return vec![Effect::Next];
        }
        let mut effects = self.whole(version);
        effects.push(Effect::Next);
        effects
    }

    /// The state is whole; the stream goes on as a watch.
    fn synced(&mut self, version: String) -> Vec<Effect> {
        if self.request != Request::Stream {
            return Vec::new();
        }
        self.newest = true;
        self.whole(version)
    }

    fn whole(&mut self, version: String) -> Vec<Effect> {
        let (scope, objects) = (self.scope.clone(), std::mem::take(&mut self.objects));
        self.absent = 0;
        if !self.newest || !self.is_behind(&version) {
            self.behind = 0;
            self.seen(version.clone());
            return vec![Effect::Emit(Delta::Replace(scope, objects, version))];
        }
        self.behind += 1;
        if self.behind < BEHIND_ANSWERS {
            // One such list may come from a server that does not ask the others.
            self.relist(None);
            return vec![Effect::Wait(BACKOFF_MIN)];
        }
        self.behind = 0;
        self.seen(version.clone());
        vec![Effect::Emit(Delta::Restore(scope, objects, version))]
    }

    fn probed(&mut self, version: &str) -> Vec<Effect> {
        match self.last.clone() {
            Some(last) if !self.is_behind(version) => self.request = Request::Watch { version: last },
            _ => self.relist(None),
        }
        vec![Effect::Next]
    }

    /// Whether a version is older than what was seen, where versions compare.
    fn is_behind(&self, version: &str) -> bool {
        let last = self.last.as_ref().and_then(|last| last.parse::<u64>().ok());
        version.parse::<u64>().ok().zip(last).is_some_and(|(version, last)| version < last)
    }

    fn seen(&mut self, version: String) {
        self.last = Some(version.clone());
        self.request = Request::Watch { version };
    }

    fn closed(&mut self, lasted: Duration, any: bool) -> Vec<Effect> {
        if self.request == Request::Stream {
            self.objects.clear();
            if lasted < STREAM_SILENCE_MAX {
                return vec![Effect::Wait(self.next_wait())];
            }
            // A server that does not know the option sends a watch without an end of the initial state.
            self.fall_back();
            return vec![Effect::Next];
        }
        // A server that ends watches at once is not well: asking again at full speed would not make it better.
        if lasted < Duration::from_secs(1) && !any {
            return vec![Effect::Wait(self.next_wait())];
        }
        self.was_healthy_for(lasted);
        vec![Effect::Next]
    }

    /// A list that works says nothing about the watch: only a watch that lasts ends a row of failures.
    fn was_healthy_for(&mut self, lasted: Duration) {
        if lasted >= HEALTHY_AFTER {
            self.failures = 0;
        }
    }

    /// The server has no such kind.
    fn missing(&mut self) -> Vec<Effect> {
        self.relist(None);
        self.absent = self.absent.saturating_add(1);
        let mut effects = Vec::new();
        if self.last.is_some() {
            // Its controllers stop at once, and know no objects any more once it is certain.
            effects.extend((self.absent == 1).then(|| Effect::Emit(Delta::Open(self.scope.clone()))));
            effects.extend((self.absent == ABSENT_ANSWERS).then(|| Effect::Emit(Delta::Clear(self.scope.clone()))));
        }
        let (first, longest) = ABSENT_WAIT;
        effects.push(Effect::Wait(first.saturating_mul(1 << (self.absent - 1).min(8)).min(longest)));
        effects
    }

    fn failed(&mut self, error: &ApiError) -> Vec<Effect> {
        if error.is_not_found() {
            return self.missing();
        }
        let wait = error.retry_after().unwrap_or_default();
        match &self.request {
            // Refused as a request, not for now: this server lists.
            Request::Stream if matches!(error.code(), Some(400 | 405 | 422)) => {
                self.fall_back();
                vec![Effect::Next]
            }
            Request::Stream => {
                self.objects.clear();
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
            Request::List { version, token } if error.is_expired() || is_ahead(error) => {
                // A page or a version that is gone, or not there yet: the newest state can always be had.
                let again = version.is_some() || token.is_some();
                self.relist(None);
                if again { vec![Effect::Next] } else { vec![Effect::Wait(self.next_wait())] }
            }
            Request::List { .. } => {
                // Pages of different lists do not fit together.
                self.relist(self.last.clone());
                vec![Effect::Wait(self.next_wait().max(wait))]
            }
            Request::Watch { .. } if error.is_expired() => {
                self.relist(self.last.clone());
                vec![Effect::Next]
            }
            Request::Watch { .. } if matches!(error, ApiError::Unanswered { .. }) => {
                // A server that was restored from a backup would not say anything on a watch from a later version.
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

    /// Begins anew with the whole state. A version is a lower bound for a list; a stream is always of the newest state.
    fn relist(&mut self, version: Option<String>) {
        self.objects.clear();
        self.newest = version.is_none();
        self.request = if self.lists { Request::List { version, token: None } } else { Request::Stream };
    }

    fn fall_back(&mut self) {
        self.lists = true;
        self.relist(None);
    }

    fn next_wait(&mut self) -> Duration {
        let wait = BACKOFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

/// Whether the server says that it has not come so far: its state was restored from a backup, or it is late (client-go,
/// `reflector.go`, `isTooLargeResourceVersionError`, has the same words).
fn is_ahead(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { code: 504, message, .. } if message.contains("Too large resource version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(version: &str, token: Option<&str>) -> Input {
        Input::Page { objects: Vec::new(), version: version.into(), token: token.map(Into::into) }
    }

    fn refused(code: u16) -> Input {
        Input::Failed(ApiError::refused("list pods", code, None, "{}"))
    }

    fn closed(seconds: u64) -> Input {
        Input::Closed { lasted: Duration::from_secs(seconds), any: false }
    }

    /// Feeds inputs and prints what is asked next, with the waits.
    fn check_from_start(inputs: Vec<Input>, expected: &str) {
        check_on(Reflector::default(), inputs, expected);
    }

    /// The same on a server that does not stream its state.
    fn check(inputs: Vec<Input>, expected: &str) {
        let mut reflector = Reflector::default();
        reflector.on(refused(422));
        check_on(reflector, inputs, expected);
    }

    fn check_on(mut reflector: Reflector, inputs: Vec<Input>, expected: &str) {
        let mut seen = Vec::new();
        for input in inputs {
            for effect in reflector.on(input) {
                match effect {
                    Effect::Wait(wait) => seen.push(format!("wait {}", wait.as_millis())),
                    Effect::Emit(Delta::Open(_)) => seen.push("open".into()),
                    Effect::Emit(Delta::Clear(_)) => seen.push("clear".into()),
                    Effect::Emit(Delta::Restore(..)) => seen.push("restore".into()),
                    Effect::Emit(_) | Effect::Next => {}
                }
            }
            seen.push(match reflector.request() {
                Request::List { version, token } => {
                    format!("list {} {}", version.as_deref().unwrap_or("-"), token.as_deref().unwrap_or("-"))
                }
                Request::Stream => "stream".into(),
                Request::Probe => "probe".into(),
                Request::Watch { version } => format!("watch {version}"),
            });
        }
        assert_eq!(seen.join(", "), expected);
    }

    #[test]
    fn state_is_streamed_and_the_stream_goes_on_as_a_watch() {
        check_from_start(vec![Input::Synced("7".into()), closed(300)], "watch 7, watch 7");
    }

    #[test]
    fn server_that_refuses_to_stream_is_listed() {
        check_from_start(vec![refused(422), page("7", None), refused(410)], "list - -, watch 7, list 7 -");
    }

    #[test]
    fn server_that_never_ends_the_state_is_listed() {
        check_from_start(vec![closed(10)], "list - -");
    }

    #[test]
    fn stream_that_breaks_or_is_refused_for_now_is_asked_for_again() {
        check_from_start(
            vec![closed(1), refused(403), refused(503)],
            "wait 800, stream, wait 1600, stream, wait 3200, stream",
        );
    }

    #[test]
    fn expired_watch_streams_the_state_again() {
        check_from_start(vec![Input::Synced("7".into()), refused(410)], "watch 7, stream");
    }

    #[test]
    fn pages_are_followed_and_the_watch_starts_at_the_lists_version() {
        check(vec![page("7", Some("t")), page("7", None)], "list - t, watch 7");
    }

    #[test]
    fn expired_watch_lists_from_the_last_version_then_from_the_newest() {
        check(
            vec![page("7", None), refused(410), refused(410), refused(410)],
            "watch 7, list 7 -, list - -, wait 800, list - -",
        );
    }

    #[test]
    fn expired_page_starts_a_full_list() {
        check(vec![page("7", Some("t")), refused(410)], "list - t, list - -");
    }

    #[test]
    fn ended_watch_goes_on_from_the_last_version_without_a_list() {
        check(vec![page("7", None), closed(300)], "watch 7, watch 7");
    }

    #[test]
    fn watch_that_ends_at_once_backs_off() {
        check(
            vec![page("7", None), closed(0), closed(0), closed(0)],
            "watch 7, wait 800, watch 7, wait 1600, watch 7, wait 3200, watch 7",
        );
    }

    #[test]
    fn throttled_watch_waits_and_does_not_list() {
        check(vec![page("7", None), refused(429)], "watch 7, wait 800, watch 7");
    }

    #[test]
    fn bookmark_moves_the_version_of_the_next_watch() {
        check(vec![page("7", None), Input::Bookmark("20".into()), closed(300)], "watch 7, watch 20, watch 20");
    }

    fn lost() -> Input {
        let cause = "connection refused".into();
        Input::Failed(ApiError::Unanswered { operation: "watch pods".into(), cause })
    }

    #[test]
    fn server_that_was_away_is_asked_where_it_is_before_the_watch_goes_on() {
        let away = vec![page("7", None), lost(), lost(), page("7", None), closed(300)];
        check(away, "watch 7, wait 800, probe, wait 1600, probe, watch 7, watch 7");
        let ahead = vec![page("7", None), lost(), page("900", None)];
        check(ahead, "watch 7, wait 800, probe, watch 7");
    }

    #[test]
    fn state_that_went_back_is_taken_in_when_two_lists_say_so() {
        let restored = vec![page("70", None), lost(), page("7", None), page("7", None), page("8", None)];
        check(restored, "watch 70, wait 800, probe, list - -, wait 800, list - -, restore, watch 8");
        let once = vec![page("70", None), lost(), page("7", None), page("7", None), page("71", None)];
        check(once, "watch 70, wait 800, probe, list - -, wait 800, list - -, watch 71");
        let streamed = vec![Input::Synced("70".into()), lost(), page("7", None), Input::Synced("7".into())];
        check_from_start(streamed, "watch 70, wait 800, probe, stream, wait 800, stream");
        let opaque = vec![page("x", None), lost(), page("a", None), closed(300)];
        check(opaque, "watch x, wait 800, probe, watch x, watch x");
    }

    #[test]
    fn kind_that_is_not_there_is_asked_for_every_few_seconds_and_gone_when_that_lasts() {
        check(
            (0..5).map(|_| refused(404)).collect(),
            "wait 1000, list - -, wait 2000, list - -, wait 4000, list - -, wait 5000, list - -, wait 5000, list - -",
        );
        let mut inputs = vec![page("7", None)];
        inputs.extend((0..6).map(|_| refused(404)));
        inputs.extend([page("9", None), refused(404)]);
        check(
            inputs,
            "watch 7, open, wait 1000, list - -, wait 2000, list - -, wait 4000, list - -, wait 5000, list - -, \
             clear, wait 5000, list - -, wait 5000, list - -, watch 9, open, wait 1000, list - -",
        );
    }

    #[test]
    fn failing_list_backs_off_to_half_a_minute() {
        let inputs = (0..8).map(|_| refused(503)).collect();
        check(
            inputs,
            "wait 800, list - -, wait 1600, list - -, wait 3200, list - -, wait 6400, list - -, wait 12800, list - -, \
             wait 25600, list - -, wait 30000, list - -, wait 30000, list - -",
        );
    }
}
