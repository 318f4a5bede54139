//! Selection of a replica's objects by the API server: the parameter `shardSelector` (KEP-5866).
//!
//! It saves the transfer of objects that the [`Filter`](super::Filter) would skip. The filter decides in any case, so a
//! server that ignores the parameter only sends more.
//!
//! A watch selects what its request named. So it is requested again when slots have moved, from its last version. For a
//! gained slot this comes before the list of the slot. A watch without the slot could pass the version of that list,
//! and what happened to the slot's objects in between would never arrive.

use std::{
    fmt,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Source,
    filter::{CacheBug, Filter},
};
use crate::store::Scope;

/// Longest wait for the request of a watch, before the caller decides whether to go on waiting.
const REQUESTED_WITHIN: Duration = Duration::from_millis(100);

/// The program that leaves out the objects of other replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SelectedBy {
    /// No list has been answered yet.
    Unknown,
    /// The API server confirmed the `shardSelector` of the last list.
    Server,
    /// The API server ignored it, and this replica skips the objects.
    Replica,
}

impl fmt::Display for SelectedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "an unknown program",
            Self::Server => "the API server",
            Self::Replica => "this replica",
        })
    }
}

/// The selections that were requested, and the answer of the API server.
#[derive(Default)]
pub(super) struct ServerSelection {
    /// By scope: the number of moves at its last request. A scope is listed or watched with the slots from before it.
    requested: Mutex<Vec<(Scope, u64)>>,
    /// Notified of each request.
    changed: Notify,
    /// A [`SelectedBy`].
    by: AtomicU8,
}

impl ServerSelection {
    /// Records that a scope is requested with the slots after this number of moves.
    fn record(&self, scope: &Scope, n_moves: u64) {
        let mut requested = self.requested.lock();
        match requested.iter_mut().find(|(other, _)| other == scope) {
            Some((_, before)) => *before = n_moves,
            None => requested.push((scope.clone(), n_moves)),
        }
        drop(requested);
        self.changed.notify_waiters();
    }

    /// Forgets a scope that is no longer listed and watched.
    fn forget(&self, scope: &Scope) {
        self.requested.lock().retain(|(other, _)| other != scope);
    }

    /// Returns the number of moves at the last request of a scope.
    fn requested(&self, scope: &Scope) -> Option<u64> {
        self.requested.lock().iter().find_map(|(other, n_moves)| (other == scope).then_some(*n_moves))
    }

    /// Waits until a scope is requested with the slots after this number of moves.
    async fn requested_after(&self, scope: &Scope, n_moves: u64) {
        loop {
            let changed = self.changed.notified();
            if self.requested(scope).is_some_and(|requested| requested >= n_moves) {
                return;
            }
            changed.await;
        }
    }

    fn by(&self) -> SelectedBy {
        match self.by.load(Ordering::Relaxed) {
            by if by == SelectedBy::Server as u8 => SelectedBy::Server,
            by if by == SelectedBy::Replica as u8 => SelectedBy::Replica,
            _ => SelectedBy::Unknown,
        }
    }
}

impl Source {
    /// Returns the filter if the API server can select its objects.
    fn selectable(&self) -> Option<&Filter> {
        self.filter().filter(|filter| filter.is_selectable())
    }

    /// Records the present slots as those of the next request of a scope. Call it before the path of the request is made.
    pub(super) fn record_selection(&self, scope: &Scope) {
        if let Some(filter) = self.selectable() {
            filter.selection.record(scope, filter.n_moves());
        }
    }

    /// Forgets the request of a scope that was removed. Added again, it waits for its own first request.
    pub(super) fn forget_selection(&self, scope: &Scope) {
        if let Some(filter) = self.selectable() {
            filter.selection.forget(scope);
        }
    }

    /// Returns `true` if slots have moved since the request of a scope, so that its watch selects the wrong objects.
    pub(super) fn is_reselected(&self, scope: &Scope) -> bool {
        let Some(filter) = self.selectable().filter(|filter| filter.bug != Some(CacheBug::WatchKept)) else {
            return false;
        };
        filter.selection.requested(scope) != Some(filter.n_moves())
    }

    /// Ends watches whose slots have moved. They are requested again at once.
    pub(super) fn reopen_reselected(&self) {
        if self.selectable().is_some_and(|filter| filter.bug != Some(CacheBug::WatchKept)) {
            self.reopen.notify_waiters();
        }
    }

    /// Requests the watch of a scope again if slots have moved, and returns `true` once it is requested with the slots after
    /// `n_moves`. Returns `false` if that takes long, such as while the API server is down.
    ///
    /// A kind that is not served has no watch, and needs none.
    pub(super) async fn reselect(&self, scope: &Scope, n_moves: u64) -> bool {
        let Some(filter) = self.selectable().filter(|_| !self.is_absent()) else { return true };
        if filter.bug == Some(CacheBug::WatchKept) {
            return true;
        }
        self.reopen_reselected();
        tokio::time::timeout(REQUESTED_WITHIN, filter.selection.requested_after(scope, n_moves)).await.is_ok()
    }

    /// Records whether the API server confirmed the `shardSelector` of a list.
    pub(super) fn record_selected(&self, is_confirmed: bool) {
        let Some(filter) = self.selectable() else { return };
        let by = if is_confirmed { SelectedBy::Server } else { SelectedBy::Replica };
        if filter.selection.by.swap(by as u8, Ordering::Relaxed) == by as u8 {
            return;
        }
        let kind = &self.config().kind.plural;
        if is_confirmed {
            tracing::info!(kind, "the API server selects the objects of this replica's slots");
        } else {
            tracing::info!(
                kind,
                "the API server ignores shardSelector (feature gate ShardedListAndWatch); this replica receives all \
                 objects and skips those of other replicas"
            );
        }
    }

    /// Returns what leaves out the objects of other replicas. `None` if the cache has all objects.
    pub(crate) fn selected_by(&self) -> Option<SelectedBy> {
        let filter = self.filter()?;
        Some(if filter.is_selectable() { filter.selection.by() } else { SelectedBy::Replica })
    }
}
