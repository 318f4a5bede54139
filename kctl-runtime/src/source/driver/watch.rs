//! One watch of a source: opens it, waits for its bytes, and ends it when the connection is silent for too long.

use std::{ops::ControlFlow, pin::Pin, sync::atomic::Ordering, time::Duration};

use futures::{StreamExt, future::BoxFuture};
use http_body_util::{BodyDataStream, BodyExt};
use kctl_apimachinery::url;
use kube::client::Body;
use tokio::time::{Instant, timeout_at};

use super::Source;
use crate::{
    object::drop_unread_values,
    source::{
        METADATA,
        condition::Activity,
        lines::{LINE_LEN_MAX, Lines},
        list_limiter::ListPermit,
        reflector::{Input, Reflector, Request, SHORT_WATCH, STREAM_SILENCE_MAX},
        unreadable::ListNumber,
    },
    store::NamespaceScope,
    transport::{ApiError, Operation},
};

type Chunks = Pin<Box<BodyDataStream<Body>>>;

/// The query of every watch. Bookmarks cost about one line a minute, and keep the version fresh for the next watch.
const WATCH: &str = "watch=true&allowWatchBookmarks=true";

/// A watch that is silent for its life and this time longer has a dead connection.
const WATCH_GRACE: Duration = Duration::from_secs(5);

/// A watch that was open for this time works, even if it has sent no event yet.
const WATCH_ESTABLISHED_AFTER: Duration = Duration::from_secs(1);

/// The content of a line after which the watch continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineUse {
    /// The line had an event.
    Event,
    /// The line is blank, or has an event of an unknown type or without a version. It shows no progress: a watch that only
    /// sends such lines would otherwise be requested again without a wait.
    Ignored,
}

/// A response whose events are being read.
struct OpenWatch {
    chunks: Chunks,
    lines: Lines,
    began: Instant,
    /// Is `true` once the watch has sent an event, or was open for [`WATCH_ESTABLISHED_AFTER`]. The head of a response
    /// proves nothing: a proxy answers 200 with a page, too.
    works: bool,
    /// Number of calls of [`check_served`](Source::check_served) at its begin. A later call ends it.
    n_checks: u32,
    /// The list number of its initial state. `None` for a watch without an initial state, and after the end of that.
    initial: Option<ListNumber>,
}

impl Source {
    /// Performs one watch. Results are handled before anything is awaited: locals that live across an `.await` need
    /// memory as long as the watch lasts.
    ///
    /// Returns the wait before the next request, or `None` to send it at once.
    pub(super) async fn watch(
        &self,
        reflector: &mut Reflector,
        scope: &NamespaceScope,
        life: Duration,
        permit: &mut Option<ListPermit>,
    ) -> Option<Duration> {
        let initial = (*reflector.request() == Request::Stream).then(|| self.unreadable.begin_list());
        let opened = Box::pin(self.open(scope, reflector.request(), life)).await;
        *permit = None;
        // A slow head does not make a watch long.
        let began = Instant::now();
        let chunks = match opened.map_err(|error| self.perform(reflector, Input::Failed(error))) {
            Ok(chunks) => chunks,
            Err(performed) => return performed.await,
        };
        self.condition.record_response();
        let n_checks = self.n_served_checks.load(Ordering::Relaxed);
        let mut watch = OpenWatch { chunks, lines: Lines::default(), began, works: false, n_checks, initial };
        let mut any = false;
        while self.receive_chunk(&mut watch, reflector, scope, life).await {
            while let Some(line) = watch.lines.next() {
                let (rest, next) = self.apply_line(reflector, line, began);
                self.end_initial_state(&mut watch, reflector);
                if let Some(rest) = rest {
                    rest.await;
                }
                match next {
                    // Later events of this response are not applied.
                    ControlFlow::Break(wait) => return wait,
                    ControlFlow::Continue(LineUse::Ignored) => {}
                    ControlFlow::Continue(LineUse::Event) => {
                        any = true;
                        self.record_works(&mut watch, scope);
                    }
                }
            }
            if watch.lines.is_too_long() {
                let cause = format!("an event is longer than {LINE_LEN_MAX} bytes");
                let error = ApiError::Unreadable { operation: self.watching(), cause };
                return self.perform(reflector, Input::WatchFailed { error, lasted: began.elapsed() }).await;
            }
        }
        let (lasted, is_checked) = (began.elapsed(), self.is_checked(&watch));
        // A watch that this process has ended is not a failure, however short it was.
        let any = any || is_checked || self.is_reselected(scope);
        let wait = self.perform(reflector, Input::Closed { lasted, any }).await;
        // Many writes may fail in the same second, and each of them ends the watch.
        wait.or((is_checked && lasted < SHORT_WATCH).then_some(SHORT_WATCH))
    }

    /// Forgets the unreadable objects that the initial state of a stream lacks, once it is complete.
    fn end_initial_state(&self, watch: &mut OpenWatch, reflector: &Reflector) {
        if matches!(reflector.request(), Request::Watch { .. })
            && let Some(list) = watch.initial.take()
        {
            self.unreadable.end_list(reflector.scope(), list);
        }
    }

    /// Waits for more bytes of a watch. Returns `false` if it has ended, is silent for too long, or has to be requested again.
    ///
    /// The server ends a watch at its `timeoutSeconds`. Only a dead connection is silent for longer, because a healthy
    /// one brings a bookmark about once a minute. Pings find most dead connections earlier
    /// ([`connection`](crate::connection)).
    async fn receive_chunk(
        &self,
        watch: &mut OpenWatch,
        reflector: &Reflector,
        scope: &NamespaceScope,
        life: Duration,
    ) -> bool {
        let streams = *reflector.request() == Request::Stream;
        let silent_at = Instant::now() + if streams { STREAM_SILENCE_MAX } else { life + WATCH_GRACE };
        loop {
            // Created before the checks, so that no notification is missed.
            let reopen = self.reopen.notified();
            if self.is_reselected(scope) || self.is_checked(watch) {
                return false;
            }
            let until = if watch.works { silent_at } else { silent_at.min(watch.began + WATCH_ESTABLISHED_AFTER) };
            let chunk = tokio::select! {
                biased;
                chunk = timeout_at(until, watch.chunks.next()) => chunk,
                () = reopen => continue,
            };
            match chunk {
                Ok(Some(Ok(chunk))) => {
                    self.condition.record_response();
                    drop_unread_values();
                    watch.lines.push(&chunk);
                    return true;
                }
                Err(_elapsed) if !watch.works => self.record_works(watch, scope),
                _ => return false,
            }
        }
    }

    /// Returns `true` if a watch has to end so that its next request shows if the kind is still served.
    fn is_checked(&self, watch: &OpenWatch) -> bool {
        self.n_served_checks.load(Ordering::Relaxed) != watch.n_checks
    }

    /// Records that a watch works, which ends the failure of an earlier one.
    fn record_works(&self, watch: &mut OpenWatch, scope: &NamespaceScope) {
        if !std::mem::replace(&mut watch.works, true) {
            self.condition.record_success(&self.config, scope, Activity::Follow);
        }
    }

    /// Applies one line of a watch. Returns the rest for which the store has no room yet. With it comes the wait before
    /// the next request if the watch is over, or else the content of the line.
    ///
    /// An unreadable line or an `ERROR` event ends the watch. Events after it belong to an uncertain state.
    pub(super) fn apply_line(
        &self,
        reflector: &mut Reflector,
        line: &[u8],
        began: Instant,
    ) -> (Option<BoxFuture<'_, ()>>, ControlFlow<Option<Duration>, LineUse>) {
        let mut left = Vec::new();
        let (input, is_over) = match self.read_event(line, reflector, &mut left) {
            Ok(None) => return (None, ControlFlow::Continue(LineUse::Ignored)),
            Ok(Some(input)) => (input, false),
            Err(error) => (Input::WatchFailed { error, lasted: began.elapsed() }, true),
        };
        let (mut deltas, wait) = self.apply_input(reflector, input);
        deltas.splice(0..0, left);
        let is_over = is_over || wait.is_some();
        let next = if is_over { ControlFlow::Break(wait) } else { ControlFlow::Continue(LineUse::Event) };
        (self.push_deltas(deltas), next)
    }

    /// Opens a watch. A separate function, so that the request does not live as long as the response.
    ///
    /// # Errors
    /// The server rejects the watch or does not answer within 60 s.
    async fn open(&self, scope: &NamespaceScope, request: &Request, life: Duration) -> Result<Chunks, ApiError> {
        let from = match request {
            Request::Watch { version } => format!("resourceVersion={}", url::escape(version)),
            _ => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=".to_owned(),
        };
        self.record_selection(scope);
        let query = format!("{WATCH}&{from}&timeoutSeconds={}", life.as_secs());
        let body = self.open_watch(scope, &query, self.accepts(METADATA)).await?;
        Ok(Box::pin(body.into_data_stream()))
    }

    /// Returns the name of a watch in errors.
    pub(in crate::source) fn watching(&self) -> Operation {
        self.config.operation("watch")
    }
}
