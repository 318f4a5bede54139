//! The state of the selection by the API server: the slots that each scope's last request selected, and if the server
//! honours the selector.

use std::{
    collections::BTreeMap,
    fmt,
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::NamespaceScope;

/// Replaces the number of moves for a request that selects the objects of all slots, because the API server rejects the
/// parameter. No move makes it outdated.
pub(super) const ALL_SLOTS: u64 = u64::MAX;

/// The program that leaves out the objects of other replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SelectedBy {
    /// No list has been answered yet.
    Unknown,
    /// The API server confirmed the `shardSelector` of the last list.
    Server,
    /// The API server ignored or rejected it, and this replica skips the objects.
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
    /// By scope: the number of moves at its last request, or [`ALL_SLOTS`]. A scope is listed or watched with the slots from
    /// before it.
    requested: Mutex<BTreeMap<NamespaceScope, u64>>,
    /// Notified of each request.
    changed: Notify,
    /// A [`SelectedBy`].
    pub(super) by: AtomicU8,
    /// Set for good once the API server has rejected the parameter.
    pub(super) is_rejected: AtomicBool,
}

impl ServerSelection {
    /// Records that a scope is requested with the slots after this number of moves.
    pub(super) fn record(&self, scope: &NamespaceScope, n_moves: u64) {
        self.requested.lock().insert(scope.clone(), n_moves);
        self.changed.notify_waiters();
    }

    /// Forgets a scope that is no longer listed and watched.
    pub(super) fn forget(&self, scope: &NamespaceScope) {
        self.requested.lock().remove(scope);
    }

    /// Returns `true` if the API server has rejected the parameter.
    pub(super) fn is_rejected(&self) -> bool {
        self.is_rejected.load(Ordering::Relaxed)
    }

    /// Returns the number of moves at the last request of a scope.
    pub(super) fn moves_at_request(&self, scope: &NamespaceScope) -> Option<u64> {
        self.requested.lock().get(scope).copied()
    }

    /// Waits until a scope is requested with the slots after this number of moves.
    pub(super) async fn requested_after(&self, scope: &NamespaceScope, n_moves: u64) {
        loop {
            let changed = self.changed.notified();
            if self.moves_at_request(scope).is_some_and(|requested| requested >= n_moves) {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn by(&self) -> SelectedBy {
        match self.by.load(Ordering::Relaxed) {
            by if by == SelectedBy::Server as u8 => SelectedBy::Server,
            by if by == SelectedBy::Replica as u8 => SelectedBy::Replica,
            _ => SelectedBy::Unknown,
        }
    }
}
