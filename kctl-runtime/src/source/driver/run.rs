//! The run loop of a source: one future per scope, which performs the requests of its reflector until it is dropped.

use std::{
    collections::{BTreeSet, HashMap},
    future::poll_fn,
    pin::{Pin, pin},
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};

use futures::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use tokio::time::{Instant, timeout_at};

use super::{Source, list::ListBegin};
use crate::{
    source::{
        jitter::Jitter,
        reflector::{Reflector, Request},
    },
    store::{Delta, NamespaceScope},
};

/// Shortest life of a watch that is requested from the API server; the longest is twice that, as in client-go. The
/// server ends the watch, not the client.
const WATCH_LIFE_MIN: Duration = Duration::from_secs(300);

/// The reflected scopes, with the handle that ends each. A `BTreeMap` of one scope would take more memory.
pub(super) type Handles = HashMap<NamespaceScope, AbortHandle>;

/// The time at which a source begins to follow scopes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With the source.
    First,
    /// While the source runs.
    Later,
}

/// Polls the reflected scopes until a future is ready, and returns its output.
///
/// They are polled also while the future waits for room in the queue of the store: room is given in the order of the
/// requests, and a scope that is not polled would keep the room that it was given.
pub(super) async fn drive_until<S: Future, T>(
    running: &mut FuturesUnordered<S>,
    mut until: Pin<&mut impl Future<Output = T>>,
) -> T {
    poll_fn(|cx| {
        if let Poll::Ready(output) = until.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        while let Poll::Ready(Some(_)) = running.poll_next_unpin(cx) {}
        Poll::Pending
    })
    .await
}

impl Source {
    /// Lists and watches until the future is dropped.
    ///
    /// Each scope has its own future inside this one, so a slow or forbidden namespace does not hold up
    /// the others. Changes of the scopes take effect at once: the watch of a removed one is dropped before its objects
    /// leave the store.
    ///
    /// # Cancel safety
    /// Dropping the future ends the watches. The store keeps its objects, which then become outdated.
    pub async fn run(&self) {
        let (mut running, mut handles) = (FuturesUnordered::new(), Handles::new());
        let mut start = Start::First;
        loop {
            let mut update = Box::pin(self.update_scopes(&mut handles, start));
            let added = drive_until(&mut running, update.as_mut()).await;
            drop(update);
            for scope in added {
                let (reflect, handle) = abortable(self.reflect(scope.clone()));
                // Boxed: `FuturesUnordered` keeps one empty node of that size.
                running.push(Box::pin(reflect));
                handles.insert(scope, handle);
            }
            start = Start::Later;
            drive_until(&mut running, pin!(self.scopes.change())).await;
        }
    }

    /// Ends the scopes that were removed, and returns those that have to be listed and watched now. A scope that was
    /// removed and added again is ended and returned.
    pub(super) async fn update_scopes(&self, handles: &mut Handles, start: Start) -> Vec<NamespaceScope> {
        let (removed, mut scopes) = self.scopes.take_removed();
        for scope in &removed {
            // No delta of the scope is sent after this, so `Close` is its last one.
            if let Some(handle) = handles.remove(scope) {
                handle.abort();
            }
            self.condition.forget_scope(scope);
            self.forget_selection(scope);
            self.unreadable.clear(scope);
            self.store.push(Delta::Close(scope.clone())).await;
        }
        scopes.retain(|scope| !handles.contains_key(scope));
        let first: BTreeSet<&str> = self.config.namespaces.iter().map(String::as_str).collect();
        let is_first = |scope: &NamespaceScope| scope.as_deref().is_none_or(|added| first.contains(added));
        for scope in &scopes {
            // The store has the scopes of the watch config. A later one may have been closed after it was added.
            if start == Start::Later || removed.contains(scope) || !is_first(scope) {
                self.store.push(Delta::Incomplete(scope.clone())).await;
            }
        }
        scopes
    }

    /// Lists and watches one scope until the future is dropped: takes the reflector's next request, performs it, and
    /// waits for the returned time.
    async fn reflect(&self, scope: NamespaceScope) {
        // A stream never ends, so a filtered source could not check at its end if slots have moved.
        let streams = self.streams.load(Ordering::Relaxed) && self.filter().is_none();
        let reflector = if streams { Reflector::streaming(scope.clone()) } else { Reflector::new(scope.clone()) };
        let mut reflector = reflector.with_presence(self.config.presence);
        let mut jitter = Jitter::new(self.jitter_seed(), (&self.config, &scope));
        // Held from the first list until the watch after it has begun.
        let (mut permit, mut begun) = (None, ListBegin::default());
        loop {
            // Lists are boxed, so that an informer that only watches does not hold the memory of their futures.
            let wait = match reflector.request() {
                Request::Whole { .. } | Request::List { .. } => {
                    if permit.is_none() {
                        permit = Some(self.list_limiter.acquire().await);
                    }
                    Box::pin(self.list(&mut reflector, &scope, &mut begun)).await
                }
                Request::Probe => Box::pin(self.list(&mut reflector, &scope, &mut begun)).await,
                Request::Stream | Request::Watch { .. } => {
                    self.watch(&mut reflector, &scope, jitter.watch_timeout(WATCH_LIFE_MIN), &mut permit).await
                }
            };
            if let Some(wait) = wait {
                permit = None;
                self.back_off(&scope, jitter.wait(wait)).await;
            }
        }
    }

    /// Waits before the next request of a scope. A move of slots ends the wait: a gained slot is listed only after the
    /// watch was requested with it. The request records the move, so each move ends one wait.
    async fn back_off(&self, scope: &NamespaceScope, wait: Duration) {
        let until = Instant::now() + wait;
        loop {
            // Created before the check, so that no notification is missed.
            let reopen = self.reopen.notified();
            if self.is_reselected(scope) || timeout_at(until, reopen).await.is_err() {
                return;
            }
        }
    }
}
